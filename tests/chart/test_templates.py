"""What the templates render without a cluster."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from minicluster.documents import yamlio
from minicluster.release.helm import version
from minicluster.render import postrender, resources
from renderings import app, at, cluster, job, pod, runner
from support import CHART, EVERYTHING, GROUP, Helm, by_name, deep, load_all, one

SIZES = {"maxSize": 8, "size": 2}


def test_the_defaults_render_to_these_objects(helm: Helm) -> None:
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


def test_no_api_server_knows_an_object_before_the_post_renderer(helm: Helm) -> None:
    text = helm.template(values=EVERYTHING)
    for document in load_all(text):
        # Helm 3 hands over no hooks
        is_hook = "helm.sh/hook" in document["metadata"].get("annotations", {})
        assert document["apiVersion"].startswith(f"{GROUP}/") != is_hook, document["kind"]


def test_the_document_of_the_minicluster_is_the_last_and_ends_with_its_kind(helm: Helm) -> None:
    chunks = [chunk for chunk in re.split(r"^---\n", helm.template(), flags=re.MULTILINE) if chunk.strip()]
    awaiting = [chunk for chunk in chunks if GROUP in chunk]
    assert awaiting[-1].rstrip().endswith("\nkind: MiniCluster")


def test_the_minicluster_document_has_the_whole_spec(helm: Helm) -> None:
    text = helm.template(values={"size": 3, "global": {"x": 1}})
    document = one(text, "MiniCluster")
    assert document["apiVersion"] == f"{GROUP}/v1"
    assert document["metadata"]["namespace"] == "ns"
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert cluster(text).spec == {**values, "size": 3, "maxSize": 3}


@pytest.fixture(scope="module")
def base(helm4: Helm) -> dict[str, Any]:
    """The pod template of a MiniCluster that may grow."""
    return pod(helm4.template(values=SIZES))


@pytest.mark.parametrize(
    "override",
    [
        {"size": 4},
        {"size": 1, "minSize": 1},
        {"tasks": 0},
        {"backoffLimit": 0, "deadlineSeconds": 5, "cleanup": True, "jobLabels": {"a": "b"}},
        {"kueue": {"queueName": "q", "priorityClass": "p", "elastic": True}, "jobAnnotations": {"a": "b"}},
        {"suspend": True},
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
def test_the_pod_template_does_not_depend_on_values_that_may_change(
    helm4: Helm, base: dict[str, Any], override: dict[str, Any]
) -> None:
    assert pod(helm4.template(values=deep(SIZES, override))) == base


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


def test_the_rendered_text_has_the_same_length_for_any_size(helm4: Helm) -> None:
    small, large = (helm4.template(values={"maxSize": n, "size": 2}) for n in (4, 100_000))
    assert len(large) - len(small) == 2 * (len("100000") - 1)
    documents = [
        b"".join(map(yamlio.dump, postrender.documents(cluster(text), lambda: (b"p" * 40, b"s" * 40))))
        for text in (small, large)
    ]
    assert len(documents[1]) - len(documents[0]) < 30


def test_every_path_follows_the_mount_path(helm4: Helm) -> None:
    text = helm4.template(values=at("flux.container.mountPath", "/opt/elsewhere"))
    assert "/mnt/flux" not in json.dumps(pod(text))
    assert "/mnt/flux" not in json.dumps(
        list(postrender.documents(cluster(text), lambda: (b"p" * 40, b"s" * 40)))
    ).replace(
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
def test_the_pull_policy_of_the_runner_follows_the_values(helm4: Helm, fields: dict[str, Any], policy: str) -> None:
    assert app(helm4.template(values=runner(**fields)))["imagePullPolicy"] == policy


def test_an_empty_image_becomes_the_default_image(helm4: Helm) -> None:
    assert app(helm4.template(values=runner(image="")))["image"] == "ubuntu:noble"


def test_labels_of_the_user_do_not_replace_those_that_select_the_pods(helm4: Helm) -> None:
    labels = {"app.kubernetes.io/instance": "other", "app.kubernetes.io/component": "x", "mine": "y"}
    text = helm4.template(values={"jobLabels": labels, "pod": {"labels": labels}})
    selector = one(text, "Service", "flux-sample")["spec"]["selector"]
    for metadata in (job(text)["metadata"], pod(text)["metadata"]):
        assert metadata["labels"]["app.kubernetes.io/instance"] == "flux-sample"
        assert metadata["labels"]["mine"] == "y"
    assert selector.items() <= pod(text)["metadata"]["labels"].items()


def test_disabling_pod_affinity_keeps_node_affinity(helm4: Helm) -> None:
    values = {"pod": {"nodeAffinity": {"a/b": ["c", "true"]}}, "network": {"disableAffinity": True}}
    term = {"matchExpressions": [{"key": "a/b", "operator": "In", "values": ["c", "true"]}]}
    assert pod(helm4.template(values=values))["spec"]["affinity"] == {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }
    assert "affinity" not in pod(helm4.template(values={"network": {"disableAffinity": True}}))["spec"]
    assert set(pod(helm4.template())["spec"]["affinity"]) == {"podAffinity", "podAntiAffinity"}


def test_pod_template_is_merged_over_all_other_values(helm4: Helm) -> None:
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
    plain = [entry for entry in container["env"] if "value" in entry]
    assert plain == [{"name": "MINICLUSTER_HOME", "value": "/x"}, {"name": "A", "value": "b"}]
    assert container["command"] == ["/bin/sh", "/mnt/flux/configmap/start.sh", "entrypoint.sh"]
    assert sidecar == {"name": "sidecar", "image": "side"}
    assert template["spec"]["tolerations"] == [{"key": "b"}]
    assert template["spec"]["terminationGracePeriodSeconds"] == 0
    assert template["spec"]["volumes"][0] == {"name": "minicluster", "emptyDir": {"sizeLimit": "1Gi"}}
    assert template["metadata"]["labels"]["x"] == "y"
    assert "app.kubernetes.io/instance" in template["metadata"]["labels"]


def test_large_numbers_are_rendered_without_exponents(helm: Helm) -> None:
    values = {
        "size": 2,
        "maxSize": 100000,
        "deadlineSeconds": 9007199254740991,
        "backoffLimit": 2147483647,
        "pod": {"securityContext": {"runAsUser": 1000660000}, "terminationGracePeriodSeconds": 2147483647},
        "containers": [{"cores": 8192, "securityContext": {"runAsGroup": 4294967295}}],
    }
    text = helm.template(values={**values, "nameOverride": "a"})
    spec = job(text)["spec"]
    assert (spec["activeDeadlineSeconds"], spec["backoffLimit"]) == (9007199254740991, 2147483647)
    assert pod(text)["spec"]["securityContext"]["runAsUser"] == 1000660000
    assert pod(text)["spec"]["terminationGracePeriodSeconds"] == 2147483647
    assert app(text)["securityContext"]["runAsGroup"] == 4294967295
    assert cluster(text).max_size == 100000
    assert resources.cores(cluster(text).runner) == 8192


def test_a_number_is_recorded_the_same_from_a_file_and_from_the_command_line(helm: Helm) -> None:
    given = {"tasks": 1000000, "containers": [{"securityContext": {"runAsUser": 1000660000}}]}
    file = helm.template(values=given)
    options = ["--set", "tasks=1000000", "--set", "containers[0].securityContext.runAsUser=1000660000"]
    line = helm.template(*options)
    recorded = [job(text)["metadata"]["annotations"]["minicluster/immutable"] for text in (file, line)]
    assert recorded[0] == recorded[1]
