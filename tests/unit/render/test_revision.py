"""A live Job is rendered as the last revision of the release has it, if that made it."""

import base64
import gzip
import json
from typing import Any

import pytest
import yaml
from minicluster.render import revision
from support import deep

RECORD = {"minicluster/immutable": "{}"}
SENT: dict[str, Any] = {
    "kind": "Job",
    "metadata": {"name": "mc", "namespace": "ns", "annotations": RECORD},
    "spec": {
        "completionMode": "Indexed",
        "completions": 2,
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "containers": [
                    {"name": "mc", "env": [{"name": "A", "value": ""}], "resources": {"limits": {"cpu": 2}}, "args": []}
                ],
                "nodeSelector": {"a": "b"},
                "tolerations": [{"key": "x"}],
                "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}],
            },
        },
    },
}
POD = ("spec", "template", "spec")


def changed(*path: Any, value: Any) -> dict[str, Any]:
    """Return the Job as the API server has it, with one value of it changed or added."""
    job: dict[str, Any] = json.loads(json.dumps(SENT))
    at: Any = job
    for key in path[:-1]:
        at = at[key]
    if isinstance(at, list):
        at.insert(path[-1], value)
    else:
        at[path[-1]] = value
    pod = job["spec"]["template"]["spec"]
    pod["containers"][-1]["resources"]["limits"]["cpu"] = "2"
    pod["containers"][-1].pop("args", None)
    pod["volumes"][-1]["emptyDir"]["sizeLimit"] = "1Gi"
    pod["schedulerName"] = "default-scheduler"
    job["spec"]["completions"] = 3
    return job


@pytest.mark.parametrize(
    "job",
    [
        changed("metadata", "labels", value={}),
        changed("spec", "template", "metadata", "labels", "cost", value="1"),
        changed("spec", "template", "metadata", "annotations", value={"c": "d"}),
        changed(*POD, "containers", 0, "env", 0, value={"name": "B", "value": "c"}),
        changed(*POD, "containers", 0, value={"name": "injected"}),
        changed(*POD, "initContainers", value=[{"name": "injected"}]),
        changed(*POD, "imagePullSecrets", value=[{"name": "pull"}]),
        changed(*POD, "tolerations", 0, "operator", value="Equal"),
        changed(*POD, "volumes", 0, value={"name": "w", "emptyDir": {}}),
    ],
)
def test_what_was_added_to_a_job_is_left_out(job: dict[str, Any]) -> None:
    found = revision.as_sent(job, SENT)
    assert found == {**job, "spec": {**SENT["spec"], "completions": 3}}


@pytest.mark.parametrize(
    "job",
    [
        changed("spec", "template", "metadata", "labels", "a", value="c"),
        changed(*POD, "containers", 0, "image", value="mirror/a")
        | {"spec": deep(SENT["spec"], {"completionMode": "x"})},
        changed(*POD, "containers", 0, "name", value="other"),
        changed(*POD, "containers", 0, "env", value=[]),
        changed(*POD, "containers", 0, "env", 0, "value", value="0"),
        # Kubernetes replaces such a list: the additions would be gone
        changed(*POD, "tolerations", 0, value={"key": "y"}),
        changed(*POD, "nodeSelector", "c", value="d"),
        # a suspended Job changes in place
        changed("metadata", "annotations", "minicluster/immutable", value='{"pod.labels.a": "b"}'),
        changed(*POD, "volumes", 0, "emptyDir", value={"sizeLimit": "2Gi"}) | {"spec": {"template": {}}},
    ],
)
def test_a_job_that_is_another_stays_as_it_is_live(job: dict[str, Any]) -> None:
    assert revision.as_sent(job, SENT) is job
    assert revision.as_sent(job, None) is job


def kept(manifest: str) -> str:
    """Return a revision as Helm's Secret has it."""
    packed = gzip.compress(json.dumps({"manifest": manifest}).encode(), mtime=0)
    return base64.b64encode(base64.b64encode(packed)).decode()


def test_the_jobs_of_a_revision_are_those_of_miniclusters() -> None:
    other = {**SENT, "metadata": {"name": "other"}}
    without = deep(SENT, {"metadata": {"name": "b"}})
    del without["metadata"]["namespace"]
    texts = [yaml.dump(document) for document in (SENT, other, {"kind": "Pod", **SENT}, without)]
    manifest = "---\n# Source: x\n" + "---\n".join([*texts, "minicluster/immutable: [\n", "minicluster/immutable\n"])
    found = revision.jobs(kept(manifest))
    assert dict(found) == {("ns", "mc"): SENT, ("default", "b"): without}


@pytest.mark.parametrize("text", ["x", "eA==", base64.b64encode(b"eA==").decode(), kept("")[:-9], ""])
def test_a_revision_that_can_not_be_read_has_no_jobs(text: str) -> None:
    assert revision.jobs(text) == {}
