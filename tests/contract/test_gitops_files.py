"""The programs that the files in gitops/ are for accept them."""

import copy
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from minicluster.commands import argocd
from support import BIN, ROOT, Helm, one, tool

GITOPS = ROOT / "gitops"
APPLICATIONS = sorted((GITOPS / "argocd").glob("application*.yaml"))


def load(file: str) -> Any:
    return yaml.safe_load((GITOPS / file).read_text())


def test_argo_cd_knows_each_field_of_the_applications() -> None:
    program = tool("argocd-cmp")
    if not program:
        pytest.skip("argocd-cmp is missing: run `make tools`")
    assert APPLICATIONS
    subprocess.run([program, "check", *APPLICATIONS], check=True)


@pytest.mark.parametrize("file", APPLICATIONS, ids=lambda path: path.stem)
def test_the_plugin_knows_the_parameters_of_each_application(tmp_path: Path, file: Path) -> None:
    application = yaml.safe_load(file.read_text())
    source = application["spec"].get("template", application)["spec"]["source"]
    if "plugin" not in source:
        assert source["path"].startswith("rendered/")
        return
    assert source["plugin"]["name"] == load("argocd/plugin.yaml")["metadata"]["name"]
    folder = tmp_path / "team" / "flux-sample"
    folder.mkdir(parents=True)
    (folder / argocd.VALUES_NAME).touch()
    (tmp_path / "common-values.yaml").touch()
    environment = {
        "ARGOCD_APP_NAME": "app",
        "ARGOCD_APP_NAMESPACE": "team",
        "ARGOCD_APP_SOURCE_PATH": "team/flux-sample",
        "ARGOCD_APP_PARAMETERS": json.dumps(source["plugin"]["parameters"]),
    }
    assert argocd.release(environment, folder).namespace == "team"


def spec_of(file: Path) -> dict[str, Any]:
    """Return the spec of an Application, also of one in an ApplicationSet."""
    application = yaml.safe_load(file.read_text())
    spec: dict[str, Any] = application["spec"].get("template", application)["spec"]
    return spec


@pytest.mark.parametrize("file", APPLICATIONS, ids=lambda path: path.stem)
def test_each_application_prunes_and_heals_what_differs_from_git(file: Path) -> None:
    assert spec_of(file)["syncPolicy"]["automated"] == {"prune": True, "selfHeal": True}


def without(document: Any, pointers: list[str]) -> Any:
    """Return a document without the values at some JSON pointers (RFC 6901)."""
    document = copy.deepcopy(document)
    for pointer in pointers:
        *path, last = pointer.removeprefix("/").split("/")
        place = document
        for key in path:
            place = place[key]
        del place[last]
    return document


def test_a_sync_of_the_autoscaled_application_ignores_the_size(helm4: Helm) -> None:
    spec = spec_of(GITOPS / "argocd/application-autoscaled.yaml")
    [ignored] = spec["ignoreDifferences"]
    values = {"maxSize": 8, "autoscaling": {"enabled": True}}
    git, live = (one(helm4.template(values={**values, "size": size}), "Job") for size in (2, 5))
    assert (ignored["group"], ignored["kind"]) == ("batch", git["kind"])
    assert git != live
    assert without(git, ignored["jsonPointers"]) == without(live, ignored["jsonPointers"])
    # without this option, Argo CD applies the fields that it ignores in comparisons ("Diff Customization")
    assert "RespectIgnoreDifferences=true" in spec["syncPolicy"]["syncOptions"]


def test_the_image_of_the_plugin_has_plugin_yaml_where_argo_cd_reads_it() -> None:
    """Argo CD, "Config Management Plugins": the server in a sidecar reads plugin.yaml in this folder."""
    lines = (GITOPS / "argocd/Containerfile").read_text().splitlines()
    copies = [line.split()[1:] for line in lines if line.startswith("COPY gitops")]
    assert copies == [["gitops/argocd/plugin.yaml", "/home/argocd/cmp-server/config/plugin.yaml"]]
    assert (ROOT / copies[0][0]).exists()


def test_the_argo_cd_sidecar_has_each_volume_that_it_mounts() -> None:
    pod = load("argocd/repo-server-patch.yaml")["spec"]["template"]["spec"]
    own = {volume["name"] for volume in pod["volumes"]}
    # volumes that Argo CD's own Deployment has
    assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} == own | {"var-files", "plugins"}


def pinned(tool: str, module: str) -> str:
    """Return the version of a module that the tests run."""
    found = re.search(rf"{re.escape(module)} v(\S+)", (ROOT / f"tools/{tool}/go.mod").read_text())
    assert found
    return found[1]


def test_the_images_install_what_the_tests_install() -> None:
    # test_packages.py runs the command of one
    installs = [
        re.findall(r"^RUN --mount.*(?:\\\n.*)+", (GITOPS / image / "Containerfile").read_text(), re.MULTILINE)
        for image in ("argocd", "follow")
    ]
    assert len(installs[0]) == 1
    assert installs[0] == installs[1]


@pytest.mark.parametrize("image", ["argocd", "follow"])
def test_the_images_have_the_helm_that_is_tested(image: str) -> None:
    assert f"helm:{pinned('helm', 'helm.sh/helm/v4')} AS helm" in (GITOPS / image / "Containerfile").read_text()


def test_the_follower_image_has_the_kubectl_that_is_tested_and_no_root_user() -> None:
    lines = (GITOPS / "follow/Containerfile").read_text().splitlines()
    assert f"FROM registry.k8s.io/kubectl:v{pinned('kubernetes', 'k8s.io/kubernetes')} AS kubectl" in lines
    # a pod that may not run as root needs a number
    [user] = [line.split()[1] for line in lines if line.startswith("USER")]
    assert int(user) > 0


def test_the_flux_cd_files_apply_and_prune_the_rendered_manifests() -> None:
    repository, kustomization = yaml.safe_load_all((GITOPS / "fluxcd/minicluster.yaml").read_text())
    assert kustomization["spec"]["sourceRef"] == {"kind": repository["kind"], "name": repository["metadata"]["name"]}
    assert (kustomization["spec"]["prune"], kustomization["spec"]["force"]) == (True, False)


def test_the_helmfile_example_renders_with_the_post_renderer(helm: Helm) -> None:
    # helmfile hands chart, values and post-renderer over to Helm
    release = load("helmfile/helmfile.yaml")["releases"][0]
    folder = GITOPS / "helmfile"
    values = [option for file in release["values"] for option in ("--values", folder / file)]
    post = ("--post-renderer", load("helmfile/helmfile.yaml")["helmDefaults"]["postRenderer"])
    made = helm.ok("template", release["name"], folder / release["chart"], *values, *post)
    assert one(made, "Job")["spec"]["completions"] == 2


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Make a repository of values, as the example for GitHub Actions wants it."""
    for path, size in {"team/a": 1, "team/b": 2, "other/a": 3}.items():
        file = tmp_path / "values" / f"{path}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"size: {size}\nmaxSize: 4\nflux: {{curveCertSecret: mine}}\n")
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message=values")
    return tmp_path


def git(folder: Path, *args: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    return subprocess.run(
        ["git", *identity, *args], cwd=folder, check=True, capture_output=True, text=True, env=os.environ | NO_GIT
    ).stdout


NO_GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def step(clone: Path, helm: Helm, name: str) -> str:
    """Run a step of the example as GitHub does."""
    script = next(
        s["run"] for s in load("github-actions/render.yaml")["jobs"]["render"]["steps"] if s.get("name") == name
    )
    env = (
        helm.environment
        | NO_GIT
        | {"HELM_BIN": str(BIN / helm.name), "GITHUB_STEP_SUMMARY": str(clone.parent / "summary")}
    )
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(shell, cwd=clone, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_github_actions_example_renders_and_shows_changes(clone: Path, helm: Helm) -> None:
    step(clone, helm, "Render")
    assert sorted(str(path.relative_to(clone)) for path in clone.glob("rendered/*/*")) == [
        "rendered/other/a",
        "rendered/team/a",
        "rendered/team/b",
    ]
    step(clone, helm, "Show")
    git(clone, "commit", "--quiet", "--message=rendered")
    # without a change of the values, nothing that is rendered changes
    step(clone, helm, "Render")
    assert step(clone, helm, "Show") == "```diff\n```\n"
    (clone / "values/team/b.yaml").unlink()
    (clone / "values/team/a.yaml").write_text("size: 3\nmaxSize: 4\nflux: {curveCertSecret: mine}\n")
    step(clone, helm, "Render")
    shown = step(clone, helm, "Show").splitlines()
    assert [line for line in shown if re.match(r"[-+] +(completions|parallelism): [13]$", line)] == [
        "-  completions: 1",
        "-  parallelism: 1",
        "+  completions: 3",
        "+  parallelism: 3",
    ]
    changed = git(clone, "diff", "--cached", "--name-status").split("\n")[:-1]
    assert changed == [
        "M\trendered/team/a/configmap-a-config.yaml",
        "M\trendered/team/a/job-a.yaml",
        "D\trendered/team/b/configmap-b-config.yaml",
        "D\trendered/team/b/configmap-b-programs-slurm.yaml",
        "D\trendered/team/b/configmap-b-programs.yaml",
        "D\trendered/team/b/job-b.yaml",
        "D\trendered/team/b/service-b.yaml",
    ]
