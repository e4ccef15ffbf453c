"""What the templates make of values, without a cluster."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from minicluster import yamlio
from minicluster.release.helm import version
from minicluster.render import config, resources, stream
from minicluster.render.load import load
from minicluster.render.model import MiniCluster
from support import CHART, GROUP, Helm, as_container_sees, by_name, deep, load_all, nested, one, values_text

LIVE = ("--api-versions", "batch/v1/Job", "--kube-version", "1.36.0")


def job(text: str) -> dict[str, Any]:
    return one(text, "Job")


def pod(text: str) -> dict[str, Any]:
    template: dict[str, Any] = job(text)["spec"]["template"]
    return template


def app(text: str) -> dict[str, Any]:
    container: dict[str, Any] = pod(text)["spec"]["containers"][0]
    return container


def cluster(text: str) -> MiniCluster:
    """Return the hand-over document as the post-renderer reads it."""
    found = [d for d in map(stream.parse, stream.split(text.encode())) if d]
    assert len(found) == 1
    return load(found[0])


def at(path: str, value: Any) -> dict[str, Any]:
    values: dict[str, Any] = nested(path.split("."), value)
    return values


def runner(**fields: Any) -> dict[str, Any]:
    return {"containers": [fields]}


def test_what_there_is(helm: Helm) -> None:
    assert set(by_name(helm.template())) == {
        ("Service", "flux-sample"),
        ("Job", "flux-sample"),
        ("MiniCluster", "flux-sample"),
        ("Service", "flux-sample-ready"),
        ("Pod", "flux-sample-quorum"),
    }
    assert set(by_name(helm.template("--skip-tests"))) == {
        ("Service", "flux-sample"),
        ("Job", "flux-sample"),
        ("MiniCluster", "flux-sample"),
    }


def test_the_hand_over_has_the_whole_spec(helm: Helm) -> None:
    text = helm.template(values={"size": 3, "global": {"x": 1}})
    document = one(text, "MiniCluster")
    assert document["apiVersion"] == f"{GROUP}/v1"
    assert document["metadata"]["namespace"] == "ns"
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert cluster(text).spec == {**values, "size": 3, "maxSize": 3}


@pytest.mark.parametrize(
    "override",
    [
        {"size": 4},
        {"size": 1, "minSize": 1},
        {"tasks": 0},
        {"backoffLimit": 0, "deadlineSeconds": 5, "cleanup": True, "jobLabels": {"a": "b"}},
        {"interactive": True},
        {"logging": {"quiet": True, "debug": True, "strict": False, "zeromq": True, "timed": True}},
        runner(command="echo other", cores=3, logs="/tmp/x", commands={"pre": "x", "post": "y"}),
        at("flux", {"wrap": "strace", "topology": "binomial", "logLevel": 0, "environment": {"A": "b"}}),
        at("flux.scheduler", {"simple": True}),
        at("flux.brokerConfig", "a = 1\n"),
        at("flux.minimalService", True),
        at("network", {"clusterDomain": "x", "interface": "*"}),
    ],
    ids=str,
)
def test_the_pod_template_depends_on_nothing_that_may_change(helm4: Helm, override: dict[str, Any]) -> None:
    base = {"maxSize": 8, "size": 2}
    assert pod(helm4.template(values=deep(base, override))) == pod(helm4.template(values=base))


def test_the_pod_template_does_not_depend_on_max_size(helm4: Helm) -> None:
    assert pod(helm4.template(values={"maxSize": 4})) == pod(helm4.template(values={"maxSize": 100_000}))


def test_the_pod_template_does_not_depend_on_the_charts_version(helm: Helm, tmp_path: Path) -> None:
    shutil.copytree(CHART, tmp_path / "minicluster")
    path = tmp_path / "minicluster" / "Chart.yaml"
    path.write_text(
        path.read_text()
        .replace(f"version: {version()}", "version: 9.8.7+x.y")
        .replace("appVersion: 0.88", "appVersion: 9")
    )
    old, new = helm.template(), helm.template(chart=tmp_path / "minicluster")
    assert "helm.sh/chart: minicluster-9.8.7_x.y" in new
    assert pod(old) == pod(new)
    selectors = [one(text, "Service", "flux-sample")["spec"] for text in (old, new)]
    assert selectors[0] == selectors[1]


def test_rendering_costs_the_same_for_any_size(helm4: Helm) -> None:
    small, large = (helm4.template(values={"maxSize": n, "size": 2}) for n in (4, 100_000))
    assert len(large) - len(small) == 2 * (len("100000") - 1)
    documents = [
        b"".join(map(yamlio.dump, config.documents(cluster(text), lambda: (b"p" * 40, b"s" * 40))))
        for text in (small, large)
    ]
    assert len(documents[1]) - len(documents[0]) < 30


@pytest.mark.parametrize(
    ("values", "mode"),
    [
        ({}, "copy"),
        (at("flux.container.mode", "copy"), "copy"),
        (at("flux.container.mode", "image"), "image"),
        (at("flux.container.disable", True), "none"),
    ],
)
def test_how_the_view_comes_offline(helm: Helm, values: dict[str, Any], mode: str) -> None:
    assert view_mode(helm.template(values=values)) == mode


@pytest.mark.parametrize(
    ("version", "mode", "fields"),
    [
        ("1.27.0", "copy", set()),
        ("1.28.9", "copy", set()),
        ("1.29.0", "copy", {"backoffLimitPerIndex"}),
        ("1.30.5", "copy", {"backoffLimitPerIndex"}),
        ("1.31.0", "copy", {"backoffLimitPerIndex", "successPolicy"}),
        ("1.35.3", "copy", {"backoffLimitPerIndex", "successPolicy"}),
        ("1.36.0-alpha.1", "image", {"backoffLimitPerIndex", "successPolicy"}),
        ("1.36.0-gke.100", "image", {"backoffLimitPerIndex", "successPolicy"}),
        ("1.40.1+k3s1", "image", {"backoffLimitPerIndex", "successPolicy"}),
    ],
)
def test_a_live_cluster_gets_what_its_version_knows(helm: Helm, version: str, mode: str, fields: set[str]) -> None:
    text = helm.template("--api-versions", "batch/v1/Job", "--kube-version", version)
    assert view_mode(text) == mode
    assert {"backoffLimitPerIndex", "successPolicy"} & set(job(text)["spec"]) == fields


def view_mode(text: str) -> str:
    """Return how the view comes into the pods, and check that all parts of the way are there."""
    spec = pod(text)["spec"]
    init = [container["name"] for container in spec.get("initContainers", [])]
    view = next((volume for volume in spec["volumes"] if volume["name"] == "minicluster-view"), None)
    mounts = {
        m["mountPath"]: m["subPath"] for m in spec["containers"][0]["volumeMounts"] if m["name"] == "minicluster-view"
    }
    if view is None:
        assert (init, mounts) == ([], {})
        return "none"
    if "image" in view:
        assert (init, mounts) == ([], {"/opt/software": "opt/software", "/opt/views": "opt/views"})
        return "image"
    assert (init, mounts) == (["flux-view"], {"/opt/software": "software", "/opt/views": "views"})
    return "copy"


@pytest.mark.parametrize(
    ("flux", "image"),
    [
        ({}, "ghcr.io/converged-computing/flux-view-ubuntu:tag-noble"),
        ({"arch": "arm"}, "ghcr.io/converged-computing/flux-view-ubuntu:arm-jammy"),
        ({"arch": "arm", "container": {"image": "mine"}}, "mine"),
        ({"container": {"image": "mine"}}, "mine"),
    ],
)
@pytest.mark.parametrize("mode", ["image", "copy"])
def test_the_image_of_the_view(helm4: Helm, flux: dict[str, Any], image: str, mode: str) -> None:
    spec = pod(helm4.template(values=deep({"flux": flux}, at("flux.container.mode", mode))))["spec"]
    if mode == "copy":
        assert spec["initContainers"][0]["image"] == image
    else:
        assert next(v for v in spec["volumes"] if v["name"] == "minicluster-view")["image"]["reference"] == image


def test_every_path_follows_the_mount_path(helm4: Helm) -> None:
    text = helm4.template(values=at("flux.container.mountPath", "/opt/elsewhere"))
    assert "/mnt/flux" not in json.dumps(pod(text))
    assert "/mnt/flux" not in json.dumps(list(config.documents(cluster(text), lambda: (b"p" * 40, b"s" * 40)))).replace(
        ". /mnt/flux/flux-view.sh",
        "",  # a comment
    )


@pytest.mark.parametrize(
    ("fields", "policy"),
    [
        ({}, "IfNotPresent"),
        ({"imagePullPolicy": ""}, "IfNotPresent"),
        ({"imagePullPolicy": "Never"}, "Never"),
        ({"pullAlways": True}, "Always"),
        ({"pullAlways": True, "imagePullPolicy": "Never"}, "Always"),
    ],
)
def test_pull_policy(helm4: Helm, fields: dict[str, Any], policy: str) -> None:
    assert app(helm4.template(values=runner(**fields)))["imagePullPolicy"] == policy


def test_an_empty_image_is_the_default_one(helm4: Helm) -> None:
    assert app(helm4.template(values=runner(image="")))["image"] == "ubuntu:noble"


def test_users_do_not_take_over_what_selects_the_pods(helm4: Helm) -> None:
    labels = {"app.kubernetes.io/instance": "other", "app.kubernetes.io/component": "x", "mine": "y"}
    text = helm4.template(values={"jobLabels": labels, "pod": {"labels": labels}})
    selector = one(text, "Service", "flux-sample")["spec"]["selector"]
    for metadata in (job(text)["metadata"], pod(text)["metadata"]):
        assert metadata["labels"]["app.kubernetes.io/instance"] == "flux-sample"
        assert metadata["labels"]["mine"] == "y"
    assert selector.items() <= pod(text)["metadata"]["labels"].items()


def test_affinity_of_nodes_stays_when_that_of_pods_is_dropped(helm4: Helm) -> None:
    values = {"pod": {"nodeAffinity": {"a/b": ["c", "true"]}}, "network": {"disableAffinity": True}}
    term = {"matchExpressions": [{"key": "a/b", "operator": "In", "values": ["c", "true"]}]}
    assert pod(helm4.template(values=values))["spec"]["affinity"] == {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }
    assert "affinity" not in pod(helm4.template(values={"network": {"disableAffinity": True}}))["spec"]
    assert set(pod(helm4.template())["spec"]["affinity"]) == {"podAffinity", "podAntiAffinity"}


def test_a_fragment_is_merged_last(helm4: Helm) -> None:
    fragment = {
        "metadata": {"labels": {"x": "y"}},
        "spec": {
            "restartPolicy": "Never",
            "tolerations": [{"key": "b"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "flux-sample", "image": "other", "env": [{"name": "MINICLUSTER_HOME", "value": "/x"}]},
                {"name": "sidecar", "image": "side"},
            ],
            "volumes": [{"name": "minicluster", "emptyDir": {"sizeLimit": "1Gi"}}],
        },
    }
    values = {"pod": {"tolerations": [{"key": "a"}], "template": fragment}, "containers": [{"environment": {"A": "b"}}]}
    template = pod(helm4.template(values=values))
    container, sidecar = template["spec"]["containers"]
    assert container["image"] == "other"
    assert container["env"] == [{"name": "MINICLUSTER_HOME", "value": "/x"}, {"name": "A", "value": "b"}]
    assert container["command"] == ["/bin/sh", "/mnt/flux/configmap/start.sh", "entrypoint.sh"]
    assert sidecar == {"name": "sidecar", "image": "side"}
    assert template["spec"]["tolerations"] == [{"key": "b"}]
    assert template["spec"]["terminationGracePeriodSeconds"] == 0
    assert template["spec"]["volumes"][0] == {"name": "minicluster", "emptyDir": {"sizeLimit": "1Gi"}}
    assert template["metadata"]["labels"]["x"] == "y"
    assert "app.kubernetes.io/instance" in template["metadata"]["labels"]


# Any text ----------------------------------------------------------------------------------------------------

TEXT = st.text(
    st.characters(codec="utf-8", min_codepoint=32, exclude_categories=["Cc"], exclude_characters="\ufffe\uffff")
    | st.sampled_from("\t\n")
)
NASTY = [
    *(
        "=",
        "<<",
        "~",
        "null",
        "yes",
        "no",
        "on",
        "true",
        "012",
        "0o7",
        "0x1F",
        "1e3",
        "1_000",
        "1:30",
        "1.10",
        ".5",
        ".",
    ),
    *(
        "2001-02-03",
        "2001-99-99",
        "0000-00-00",
        "2001-02-03 04:05:06",
        ".inf",
        "-.INF",
        ".nan",
        "+1",
        "-",
        "--",
        "---",
        "...",
    ),
    *(
        "",
        " ",
        "  lead",
        "trail  ",
        "a\nb",
        "\n",
        "\n\na\n\n",
        "  indented\nfirst",
        "\n  second",
        "\t",
        "\tx\ty ",
        "a \nb\t\n",
    ),
    *(
        "'",
        '"',
        "''",
        "\\",
        "\\n",
        "a: b",
        "a #b",
        "# c",
        "- a",
        "? a",
        "{a}",
        "[a]",
        "{{ .Values }}",
        "{{",
        "}}",
        "%a",
        "@a",
    ),
    *(
        "!!str a",
        "!a",
        "&a",
        "*a",
        "|",
        ">",
        "|-\n a",
        "`id`",
        "$HOME",
        "$(NAME)",
        "$$",
        "$$(NAME)",
        "$",
        "${A}",
        "<b>&",
        ",",
    ),
    *("é", "日本", "🚀", "\u00a0", "\u200b", "x" * 3000, "word " * 60, "---\na: b", "\n---\n", "EOF", "y" * 63),
]
TEXTS = st.sampled_from(NASTY) | TEXT


def check_texts(helm: Helm, texts: list[str]) -> None:
    """Send texts through Helm into every place that takes one, and read them back there."""
    environment = {f"V{index}": text for index, text in enumerate(texts)}
    lines = [text for text in texts if "\n" not in text and "\t" not in text]
    values = {
        "containers": [
            {
                "command": texts,
                "environment": environment,
                "commands": {
                    "init": texts[0],
                    "pre": texts[-1],
                    "brokerPre": "\n".join(texts),
                    "prefix": lines[0] if lines else "",
                },
                "workingDir": f"/{lines[-1]}" if lines else "",
            }
        ],
        "flux": {"environment": environment, "optionFlags": lines[-1] if lines else ""},
        "pod": {"annotations": {f"a/v{index}": text for index, text in enumerate(texts)}},
    }
    text = helm.template(values=values)
    spec = cluster(text).spec
    assert spec["containers"] == values["containers"]
    assert spec["flux"]["environment"] == environment
    assert spec["flux"]["optionFlags"] == values["flux"]["optionFlags"]
    assert spec["pod"]["annotations"] == values["pod"]["annotations"]
    assert {key: pod(text)["metadata"]["annotations"].get(key) for key in values["pod"]["annotations"]} == values[
        "pod"
    ]["annotations"]
    container = app(text)
    seen = {variable["name"]: as_container_sees(variable["value"]) for variable in container["env"]}
    assert {name: seen[name] for name in environment} == environment
    assert container.get("workingDir", "") == values["containers"][0]["workingDir"]


@pytest.mark.parametrize("some", [NASTY[0::2], NASTY[1::2]], ids=["even", "odd"])
def test_nasty_texts_reach_their_places(helm: Helm, some: list[str]) -> None:
    check_texts(helm, some)


@pytest.mark.parametrize("text", ["\u0080", "\u009f", "\ufffe", "\uffff", "a\u0085b"])
def test_what_yaml_can_not_hold_is_refused(helm: Helm, text: str) -> None:
    done = helm.run("template", "x", CHART, "--values", "-", stdin=values_text(runner(environment={"A": text})))
    assert done.code != 0
    assert "environment" in done.err


@pytest.mark.parametrize("name", ["helm", "helm3"])
@given(texts=st.lists(TEXTS, min_size=10, max_size=60))
@settings(max_examples=10)
def test_any_text_reaches_its_place(both: dict[str, Helm], name: str, texts: list[str]) -> None:
    check_texts(both[name], texts)


@pytest.fixture(scope="module")
def both(helm3: Helm, helm4: Helm) -> dict[str, Helm]:
    return {"helm": helm4, "helm3": helm3}


# Autoscaling and metrics --------------------------------------------------------------------------------------

AGENTS: list[Any] = [
    ({}, [], []),
    ({"metrics": {"enabled": True}}, ["minicluster-agent"], []),
    ({"autoscaling": {"enabled": True}}, ["minicluster-agent"], ["minicluster-agent"]),
    # a token of the user's own wish is theirs, by another way
    (
        {"autoscaling": {"enabled": True}, "pod": {"serviceAccountName": "mine"}},
        ["minicluster-agent"],
        ["minicluster-agent"],
    ),
]


@pytest.mark.parametrize(("values", "agents", "mounting"), AGENTS, ids=["none", "metrics", "autoscaling", "account"])
def test_only_the_agent_has_a_token(
    helm4: Helm, values: dict[str, Any], agents: list[str], mounting: list[str]
) -> None:
    containers = [{"runFlux": True}, {"name": "side", "image": "busybox", "command": "sleep inf"}]
    services = [{"name": "web", "image": "nginx", "command": "sleep inf"}]
    text = helm4.template(values={"size": 2, "containers": containers, "services": services, **values})
    specs = [d["spec"] for d in load_all(text) if d["kind"] == "Pod"] + [pod(text)["spec"]]
    assert len(specs) > 1
    named, mount = [], []
    for spec in specs:
        assert spec["automountServiceAccountToken"] is False
        for container in spec["containers"] + spec.get("initContainers", []):
            named += [container["name"]] if container["name"] == "minicluster-agent" else []
            mount += [container["name"] for m in container.get("volumeMounts", []) if m["name"] == "minicluster-token"]
    assert (named, mount) == (agents, mounting)
    volumes = [v["name"] for spec in specs for v in spec.get("volumes", []) if "projected" in v]
    assert volumes == ["minicluster-token"] * len(mounting)


def test_what_autoscaling_and_metrics_would_be_changes_nothing_while_they_are_off(helm: Helm) -> None:
    values = {
        "autoscaling": {"enabled": False, "min": 2, "max": 3, "targetCPUUtilizationPercentage": 50, "rbac": True},
        "metrics": {"enabled": False, "podMonitor": {"labels": {"a": "b"}}},
        "agent": {"periodSeconds": 3},
    }
    monitored = ("--api-versions", "monitoring.coreos.com/v1/PodMonitor")
    before, after = by_name(helm.template(*monitored)), by_name(helm.template(*monitored, values=values))
    spec = [objects.pop(("MiniCluster", "flux-sample"))["spec"] for objects in (before, after)]
    assert before == after
    assert spec[0] != spec[1]


def test_numbers_stay_whole(helm: Helm) -> None:
    values = {
        "size": 2,
        "maxSize": 2147483647,
        "deadlineSeconds": 9007199254740991,
        "backoffLimit": 2147483647,
        "pod": {"securityContext": {"runAsUser": 1000660000}, "terminationGracePeriodSeconds": 2147483647},
        "containers": [{"cores": 1000000, "securityContext": {"runAsGroup": 4294967295}}],
    }
    text = helm.template(values={**values, "nameOverride": "a"})
    spec = job(text)["spec"]
    assert (spec["activeDeadlineSeconds"], spec["backoffLimit"]) == (9007199254740991, 2147483647)
    assert pod(text)["spec"]["securityContext"]["runAsUser"] == 1000660000
    assert pod(text)["spec"]["terminationGracePeriodSeconds"] == 2147483647
    assert app(text)["securityContext"]["runAsGroup"] == 4294967295
    assert cluster(text).max_size == 2147483647
    assert resources.cores(cluster(text).runner) == 1000000


def test_a_number_is_recorded_the_same_from_a_file_and_from_the_command_line(helm: Helm) -> None:
    given = {"tasks": 1000000, "containers": [{"securityContext": {"runAsUser": 1000660000}}]}
    file = helm.template(values=given)
    options = ["--set", "tasks=1000000", "--set", "containers[0].securityContext.runAsUser=1000660000"]
    line = helm.template(*options)
    recorded = [job(text)["metadata"]["annotations"]["minicluster/frozen"] for text in (file, line)]
    assert recorded[0] == recorded[1]


# NetworkPolicy ------------------------------------------------------------------------------------------------

CLOSED: dict[str, Any] = {"networkPolicy": {"enabled": True}}
BROKERS = {
    "app.kubernetes.io/name": "minicluster",
    "app.kubernetes.io/instance": "flux-sample",
    "app.kubernetes.io/component": "broker",
}
SERVICES = {**BROKERS, "app.kubernetes.io/component": "services"}
LEADS = {**BROKERS, "batch.kubernetes.io/job-completion-index": "0"}
FROM_BROKERS = {"from": [{"podSelector": {"matchLabels": BROKERS}}]}


def tcp(*ports: int) -> dict[str, Any]:
    return {"ports": [{"protocol": "TCP", "port": port} for port in ports]}


POLICIES: list[Any] = [
    ({}, {"": (BROKERS, [FROM_BROKERS])}),
    (
        {
            "containers": [
                {"runFlux": True, "ports": [9000]},
                {"name": "a", "ports": [80, 443]},
                {"name": "b", "ports": [80]},
            ]
        },
        {"": (BROKERS, [FROM_BROKERS, tcp(9000, 80, 443)])},
    ),
    ({"metrics": {"enabled": True, "port": 9100}}, {"": (BROKERS, [FROM_BROKERS, tcp(9100)])}),
    ({"metrics": {"enabled": False, "port": 9100}}, {"": (BROKERS, [FROM_BROKERS])}),
    *(
        (
            {"flux": {"bursting": {"expose": expose}}},
            {"": (BROKERS, [FROM_BROKERS]), "-lead": (LEADS, [tcp(8050)])},
        )
        for expose in ({"type": "NodePort"}, {"type": "LoadBalancer"}, {"address": "192.0.2.7:30050"})
    ),
    ({"flux": {"bursting": {"clusters": [{"size": 1}]}}}, {"": (BROKERS, [FROM_BROKERS])}),
    (
        {"services": [{"name": "web", "ports": [80]}, {"name": "db"}]},
        {"": (BROKERS, [FROM_BROKERS]), "-services": (SERVICES, [FROM_BROKERS, tcp(80)])},
    ),
    (
        {"services": [{"name": "db"}]},
        {"": (BROKERS, [FROM_BROKERS]), "-services": (SERVICES, [FROM_BROKERS])},
    ),
]


@pytest.mark.parametrize(("values", "policies"), POLICIES)
def test_who_may_connect(helm: Helm, values: dict[str, Any], policies: dict[str, Any]) -> None:
    objects = by_name(helm.template(values={**values, **CLOSED}))
    found = {name: one["spec"] for (kind, name), one in objects.items() if kind == "NetworkPolicy"}
    assert found == {
        f"flux-sample{suffix}": {
            "podSelector": {"matchLabels": selector},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        }
        for suffix, (selector, ingress) in policies.items()
    }


def test_the_policies_select_the_pods(helm4: Helm) -> None:
    objects = by_name(helm4.template(values={"services": [{"name": "web"}], **CLOSED}))
    for kind, name, policy in (("Job", "", ""), ("Deployment", "-services", "-services")):
        labels = objects[kind, f"flux-sample{name}"]["spec"]["template"]["metadata"]["labels"]
        selector = objects["NetworkPolicy", f"flux-sample{policy}"]["spec"]["podSelector"]["matchLabels"]
        assert selector.items() <= labels.items()


def test_without_it_there_is_no_policy(helm: Helm) -> None:
    assert "NetworkPolicy" not in helm.template(values={"flux": {"bursting": {"expose": {"type": "NodePort"}}}})
