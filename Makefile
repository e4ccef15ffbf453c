# Builds and runs everything; `make` lists the targets.

MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

BIN := .tools/bin
VENV := .venv
PYTHON := python3
# for commands that need the tools and the package in PATH
WITH := PATH="$(CURDIR)/$(BIN):$(CURDIR)/$(VENV)/bin:$$PATH"

# tools/NAME/go.mod pins the tool that becomes $(BIN)/NAME; registry, argocd-cmp and kueue are for the tests
GO_TOOLS := $(addprefix $(BIN)/,helm helm3 kubeconform ct helm-docs etcd kwok registry argocd-cmp kueue)
# for one test, which is skipped without it: its build takes minutes
PROMTOOL := $(BIN)/promtool
# tools/kubernetes/go.mod pins these, and kubectl
KUBERNETES := $(addprefix $(BIN)/,kube-apiserver kube-controller-manager kube-scheduler)
# the CRDs of Kueue and of the gang schedulers, from the modules that tools/kueue/go.mod pins
CRDS := .tools/crds

# The linker sets the versions, as for released binaries. Without them Helm 3 takes an offline cluster for
# Kubernetes 1.20, and clients can't parse the API server's version.
version = $$(go list -m -f '{{.Version}}' $1)
minor = $$(go list -m -f '{{.Version}}' $1 | cut -d. -f2)
LDFLAGS_helm = -X helm.sh/helm/v4/internal/version.version=$(call version,helm.sh/helm/v4)
LDFLAGS_helm3 = -X helm.sh/helm/v3/internal/version.version=$(call version,helm.sh/helm/v3) \
	$(foreach package,pkg/chartutil pkg/lint/rules, \
		-X helm.sh/helm/v3/$(package).k8sVersionMajor=1 \
		-X helm.sh/helm/v3/$(package).k8sVersionMinor=$(call minor,k8s.io/client-go))
LDFLAGS_kubeconform = -X main.version=$(call version,github.com/yannh/kubeconform)
LDFLAGS_ct = -X github.com/helm/chart-testing/v3/ct/cmd.Version=$(call version,github.com/helm/chart-testing/v3)
LDFLAGS_helm-docs = -X main.version=$(call version,github.com/norwoodj/helm-docs)
# without the code of cloud providers, which takes most of its build
TAGS_promtool = -tags=remove_all_sd,netgo
LDFLAGS_promtool = -X github.com/prometheus/common/version.Version=$(call version,github.com/prometheus/prometheus)
# before 1.31 the API server contains the code of cloud providers, which takes half of its build
TAGS_kubernetes = -tags=providerless
LDFLAGS_kubernetes = -X k8s.io/component-base/version.gitVersion=$(call version,k8s.io/kubernetes) \
	-X k8s.io/component-base/version.gitMajor=1 \
	-X k8s.io/component-base/version.gitMinor=$(call minor,k8s.io/kubernetes)

# need COMMAND,WHAT TO DO: stops with one line if the command is missing
need = @command -v $1 >/dev/null || { echo "make: $1 is missing: $2" >&2; exit 1; }
# go-build NAME,OUTPUT,[FOLDER],[PACKAGES]: builds the `tool` lines of FOLDER/go.mod, by default tools/NAME/go.mod
define go-build
	$(call need,go,install Go 1.26 or later)
	@mkdir -p $(dir $2)
	@echo "building $(if $(filter $1,kubernetes),Kubernetes (takes minutes),$1)"
	@cd $(or $3,tools/$1) && go build -buildvcs=false $(TAGS_$1) -ldflags "-s -w $(LDFLAGS_$1)" \
		-o $(CURDIR)/$2 $(or $4,tool)
endef

.PHONY: help tools setup requirements docs test test-all unit coverage chart golden flux kubernetes kueue lint demo release clean

help: ## this list
	@awk -F ' *:.*## ' '/^[a-z-]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' Makefile

tools: $(GO_TOOLS) $(KUBERNETES) $(BIN)/kubectl $(CRDS) ## build Helm 4 and 3, kubectl, a local control plane and the chart's linters into .tools/bin

$(GO_TOOLS) $(PROMTOOL): $(BIN)/%: tools/%/go.mod tools/%/go.sum
	$(call go-build,$*,$@)

$(BIN)/argocd-cmp: tools/argocd-cmp/main.go

module = $$(go mod download -json $1 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')

# kueue-crds FOLDER,OUTPUT
define kueue-crds
	@mkdir -p $2
	@cd $1 && kueue=$(call module,sigs.k8s.io/kueue)/config/components && \
		install -m 644 $$kueue/crd/bases/*.yaml $$kueue/webhook/manifests.yaml $(CURDIR)/$2
endef

$(CRDS): tools/kueue/go.mod tools/kueue/go.sum
	$(call need,go,install Go 1.26 or later)
	$(call kueue-crds,tools/kueue,$@)
	@cd tools/kueue && install -m 644 \
		$(call module,sigs.k8s.io/scheduler-plugins)/config/crd/bases/scheduling.x-k8s.io_podgroups.yaml \
		$(call module,volcano.sh/apis)/pkg/apis/scheduling/v1beta1/types.go $(CURDIR)/$@
	@touch $@

# one build for the three, which share most packages; kubectl has its own, because some targets need only that
$(KUBERNETES) &: tools/kubernetes/go.mod tools/kubernetes/go.sum
	$(call go-build,kubernetes,$(BIN)/,,$(patsubst $(BIN)/%,k8s.io/kubernetes/cmd/%,$(KUBERNETES)))

$(BIN)/kubectl: tools/kubernetes/go.mod tools/kubernetes/go.sum
	$(call go-build,kubernetes,$@,,k8s.io/kubernetes/cmd/kubectl)

setup: $(VENV)/installed ## make .venv with the package and what the tests need

$(VENV)/installed: pyproject.toml plugin/requirements.txt tools/requirements.txt
	$(call need,$(PYTHON),install Python 3.11 or later)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: $$($(PYTHON) --version) is too old: make PYTHON=python3.11, or later" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "make: Python's venv is missing: install it (Debian: python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --require-hashes --only-binary :all: --requirement tools/requirements.txt
	$(VENV)/bin/pip install --quiet --no-deps --no-build-isolation --editable .
	$(VENV)/bin/pip download --quiet --require-hashes --only-binary :all: --dest $(VENV)/wheels \
		--requirement plugin/requirements.txt
	@touch $@

# pin FILE,FIRST LINE,[OPTIONS]: writes versions and hashes, for all systems; those in the file stay where they can
define pin
	uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --only-binary :all: \
		--no-header --output-file $1 $3 $(ARGS)
	@{ echo '# $2'; cat $1; } >$1.new && mv $1.new $1
endef

requirements: ## pin the Python packages by version and hash, after a change in pyproject.toml; ARGS=--upgrade renews all
	$(call need,uv,pip install uv)
	$(call pin,plugin/requirements.txt,Versions and hashes of what the package needs at run time)
	$(call pin,tools/requirements.txt,Versions and hashes of everything in .venv,--extra dashboard --extra mcp --extra docs --extra test \
		--constraint plugin/requirements.txt)

# ARGS="…" goes to pytest in all of these
PYTEST = $(WITH) pytest -n auto --dist loadgroup
CHART_TOOLS := $(addprefix $(BIN)/,helm helm3 helm-docs)
POD_TOOLS := $(addprefix $(BIN)/,helm helm3 kubectl)

# tests wait for half of their time, so there are three workers for each processor
WORKERS := $$((3 * $$(getconf _NPROCESSORS_ONLN)))

test: setup tools ## run all tests that can run here, each with the Helm and the shell whose turn it is; ARGS="…" goes to pytest, here and below
	MINICLUSTER_TEST_TOOLS=built $(PYTEST) -n $(WORKERS) --turns $(ARGS)

test-all: setup tools ## run them with both Helms and each shell
	MINICLUSTER_TEST_TOOLS=built $(PYTEST) -n $(WORKERS) $(ARGS)

unit: setup ## run the unit tests, and those of the pods' scripts, each with the shell whose turn it is: no Go, no Flux
	$(PYTEST) -n $(WORKERS) --turns tests/unit tests/scripts $(ARGS)

coverage: setup ## run them, and fail when they reach less of the package than pyproject.toml says
	@rm -rf build/coverage
	$(WITH) coverage run -m pytest -n auto --dist loadgroup --turns tests/unit tests/scripts $(ARGS)
	$(WITH) coverage combine --quiet
	$(WITH) coverage report

simulate: setup ## run the pods' programs against models of Kubernetes and Flux, in virtual time
	$(WITH) python -m tools.simulator $(ARGS)

chart: setup $(CHART_TOOLS) ## run the chart's tests, with both Helms
	$(PYTEST) tests/chart $(ARGS)

golden: setup $(CHART_TOOLS) ## write the golden files anew: read their diff, then commit it
	$(PYTEST) tests/chart --update-golden $(ARGS)

# the tests in pods run only where this variable names a cluster
flux: setup $(if $(MINICLUSTER_TEST_KUBECONFIG),$(POD_TOOLS)) ## run the tests with real brokers, by the flux in PATH, or by each in the list FLUX_PREFIX
	@for flux in $(if $(FLUX_PREFIX),$(FLUX_PREFIX:%=%/bin/flux),flux); do command -v $$flux >/dev/null || \
		{ echo "make: $$flux is missing: install flux-core, or set FLUX_PREFIX to the prefix of one" >&2; exit 1; }; done
	$(PYTEST) tests/flux $(ARGS)

# Builds other versions than tools/NAME/go.mod pins, by VERSION=…: each has a module and programs in its own folder.
OTHER_KUBERNETES := .tools/kubernetes-$(VERSION)
OTHER_KUEUE := .tools/kueue-$(VERSION)
ifneq ($(filter kubernetes kueue,$(MAKECMDGOALS)),)
$(if $(shell echo '$(VERSION)' | grep -Ex '[0-9]+\.[0-9]+\.[0-9]+'),,$(error VERSION is "$(VERSION)": give a release, such as \
	make kubernetes VERSION=1.33.13 or make kueue VERSION=0.18.3))
endif

# new-module FOLDER,PACKAGE: adds this program to the module, whose go.mod may have `replace` lines already
define new-module
	@cd $1 && go get $(TAGS_$3) -tool $2@v$(VERSION) 2>get.log || { tail -n 5 get.log >&2; exit 1; }
endef

# as in tools/kubernetes/go.mod, staging modules are replaced by their releases
$(OTHER_KUBERNETES)/go.mod:
	$(call need,go,install Go 1.26 or later)
	@mkdir -p $(@D)
	@cd $(@D) && source=$(call module,k8s.io/kubernetes@v$(VERSION)) && \
		printf 'module minicluster/tools/kubernetes\n\ngo 1.26.0\n' >go.mod && \
		sed -n 's#^[[:space:]]*\(k8s.io/[a-z0-9-]*\) => ./staging.*#replace \1 => \1 v$(VERSION:1.%=0.%)#p' $$source/go.mod >>go.mod
	$(call new-module,$(@D),k8s.io/kubernetes/cmd/kube-apiserver,kubernetes)

$(OTHER_KUBERNETES)/bin/kube-apiserver: $(OTHER_KUBERNETES)/go.mod
	$(call go-build,kubernetes,$@,$(<D))

kubernetes: setup $(addprefix $(BIN)/,helm helm3 etcd kubectl) $(OTHER_KUBERNETES)/bin/kube-apiserver ## run the tests that need an API server alone, with that of VERSION=1.33.13
	MINICLUSTER_TEST_TOOLS=built MINICLUSTER_TEST_KUBERNETES=$(CURDIR)/$(OTHER_KUBERNETES) \
		$(PYTEST) tests/cluster/test_api.py tests/cluster/test_fields.py $(ARGS)

$(OTHER_KUEUE)/go.mod:
	$(call need,go,install Go 1.26 or later)
	@mkdir -p $(@D)
	@printf 'module minicluster/tools/kueue\n\ngo 1.26.0\n' >$@
	$(call new-module,$(@D),sigs.k8s.io/kueue/cmd/kueue)

$(OTHER_KUEUE)/bin/kueue: $(OTHER_KUEUE)/go.mod
	$(call go-build,kueue,$@,$(<D))
	$(call kueue-crds,$(<D),$(<D)/crds)

kueue: setup $(addprefix $(BIN)/,helm helm3 etcd kwok kubectl) $(KUBERNETES) $(OTHER_KUEUE)/bin/kueue ## run the tests of Kueue with VERSION=0.18.3
	MINICLUSTER_TEST_TOOLS=built MINICLUSTER_TEST_KUEUE=$(CURDIR)/$(OTHER_KUEUE) $(PYTEST) tests/cluster/test_kueue*.py $(ARGS)

# the programs of the pods, those that are sent to the lead, and those of the hooks import each other by file name alone
POD_FOLDERS := $(wildcard plugin/minicluster/pod/[a-z]*)
SENT := plugin/minicluster/lead/sent
SHELL_FILES = .ci/run plugin/minicluster/pod/work/flux-broker $(shell find plugin tests -name '*.sh')

lint: setup ## check the style of Python, shell and YAML, and what workflows may do
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	MYPYPATH=$$(echo $(POD_FOLDERS) $(SENT) charts/minicluster/files | tr ' ' :) $(VENV)/bin/mypy --explicit-package-bases \
		--cache-dir .mypy_cache/pod plugin/minicluster/pod/*/*.py $(SENT)/[a-z]*.py charts/minicluster/files/*.py
	$(VENV)/bin/shellcheck --external-sources $(POD_FOLDERS:%=--source-path=%) $(SHELL_FILES)
	$(VENV)/bin/yamllint --strict .
	$(VENV)/bin/zizmor --offline --quiet --no-progress .github gitops/github-actions/render.yaml

# what draws the diagrams in a reader's browser, so that no page asks another host for it
MERMAID_VERSION := 11.12.1
MERMAID_SHA256 := 3bd65ddefe97fb2e01d976a01d4078f8d773bfc56c6a75a9abf08b564ce0f8b2
MERMAID := $(VENV)/mermaid-$(MERMAID_VERSION)
# `make docs DOCS=FOLDER` builds the site there
DOCS := build/docs

$(MERMAID): | setup
	$(call need,npm,install Node.js with npm)
	@rm -rf $@.new && mkdir $@.new
	@cd $@.new && npm pack --silent mermaid@$(MERMAID_VERSION) >/dev/null && \
		echo '$(MERMAID_SHA256)  mermaid-$(MERMAID_VERSION).tgz' | sha256sum --check --quiet && \
		tar -xzf *.tgz --strip-components=2 --exclude='*.map' \
			package/dist/mermaid.esm.min.mjs package/dist/chunks/mermaid.esm.min && rm *.tgz
	@mv $@.new $@

docs: setup $(MERMAID) ## build the site into build/docs: a warning is an error
	DOCS_MERMAID=$(CURDIR)/$(MERMAID) $(VENV)/bin/sphinx-build --quiet --fail-on-warning --fresh-env --jobs auto \
		--doctree-dir build/doctrees docs $(DOCS) $(ARGS)
	node tools/search_site.cjs $(DOCS)

# with CONTEXT=name only Helm is built
DEMO_TOOLS := $(addprefix $(BIN)/,helm $(if $(CONTEXT),,etcd kwok kubectl $(notdir $(KUBERNETES))))

demo: setup $(DEMO_TOOLS) ## install, scale and remove a MiniCluster on a local control plane, or on CONTEXT=name
	$(WITH) python -m tools.demo $(if $(CONTEXT),--context '$(CONTEXT)')

# ARGS="-- --key NAME …" are Helm's options for signing
release: setup $(BIN)/helm ## build what is published into dist: chart, plugin, packages, SBOM, checksums
	$(WITH) python -m tools.artifacts dist $(ARGS)

clean: ## remove what was built
	rm -rf .tools .venv build dist *.egg-info
