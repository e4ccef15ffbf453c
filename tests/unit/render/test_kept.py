"""A live Job that an upgrade keeps is sent as it is live, but for what may change."""

import base64
import json
from typing import Any

import pytest
from minicluster.documents import yamlio
from minicluster.errors import SpecError
from minicluster.release import adopt
from minicluster.render import revision
from support import GROUP, deep, load_all

RECORD = {"minicluster/immutable": "{}"}
SERVER = {"controller-uid": "u", "job-name": "mc", "batch.kubernetes.io/controller-uid": "u"}
SERVER["batch.kubernetes.io/job-name"] = "mc"
LIVE: dict[str, Any] = {
    "completionMode": "Indexed",
    "completions": 2,
    "parallelism": 2,
    "suspend": False,
    "selector": {"matchLabels": {"controller-uid": "u"}},
    "manualSelector": False,
    "podReplacementPolicy": "Failed",
    "template": {
        "metadata": {"creationTimestamp": None, "labels": {"a": "b", **SERVER}},
        "spec": {
            "schedulerName": "default-scheduler",
            "nodeSelector": {"old": "1"},
            "initContainers": [{"name": "added", "resources": {}}],
            "containers": [{"name": "mc", "image": "a", "resources": {"limits": {"cpu": "1"}}}],
        },
    },
}
NEW: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "mc", "namespace": "ns", "annotations": RECORD},
    "spec": {
        "completionMode": "Indexed",
        "completions": 3,
        "parallelism": 3,
        "backoffLimit": 7,
        "successPolicy": {"rules": []},
        "template": {
            "metadata": {"labels": {"c": "d"}, "annotations": {"e": "f"}},
            "spec": {
                "tolerations": [{"key": "x"}],
                "affinity": {"nodeAffinity": {}},
                "containers": [{"name": "mc", "image": "b", "resources": {"limits": {"cpu": 3}}}],
            },
        },
    },
}
OTHER = b"---\n# Source: x\nkind: Job  # as it is\nmetadata: {name: mc, namespace: ns}\n"


def handed(change: str = "", name: str = "mc", **spec: Any) -> dict[str, Any]:
    """Return a hand-over document of a live Job."""
    found = {"change": change, "jobs": {name: deep(LIVE, spec)}}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "MiniCluster",
        "metadata": {"name": name, "namespace": "ns"},
        "kept": base64.b64encode(json.dumps(found).encode()).decode(),
    }


def rendered(document: dict[str, Any]) -> list[dict[str, Any]]:
    documents = [OTHER, yamlio.dump(NEW), yamlio.dump(document)]
    found = revision.with_kept(b"".join(documents))
    assert found.startswith(OTHER)
    assert found.endswith(documents[2])
    return load_all(found)


def test_a_job_that_stays_has_the_immutable_fields_of_the_live_one_alone() -> None:
    _, job, _ = rendered(handed())
    assert job == {
        **NEW,
        "spec": {
            "completionMode": "Indexed",
            "podReplacementPolicy": "Failed",
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": LIVE["template"]["spec"]},
            "completions": 3,
            "parallelism": 3,
            "backoffLimit": 7,
        },
    }


def test_a_suspended_job_changes_in_what_it_may_and_keeps_the_rest() -> None:
    _, job, _ = rendered(handed("place"))
    assert job["spec"]["template"] == {
        "metadata": NEW["spec"]["template"]["metadata"],
        "spec": {
            "schedulerName": "default-scheduler",
            "tolerations": [{"key": "x"}],
            "affinity": {"nodeAffinity": {}},
            "initContainers": [{"name": "added", "resources": {}}],
            "containers": [{"name": "mc", "image": "a", "resources": {"limits": {"cpu": 3}}}],
        },
    }
    assert "successPolicy" not in job["spec"]


@pytest.mark.parametrize(
    "document",
    [handed(name="another"), {**handed(), "kept": ""}, {**handed(), "metadata": {"name": "mc", "namespace": "other"}}],
    ids=["of another name", "none", "in another namespace"],
)
def test_a_new_job_stays_as_the_chart_renders_it(document: dict[str, Any]) -> None:
    data = b"".join([OTHER, yamlio.dump(NEW), yamlio.dump(document)])
    assert revision.with_kept(data) == data


def test_a_helm_in_another_one_hands_out_the_live_jobs_once() -> None:
    job, covered = load_all(b"".join(adopt.cover(yamlio.dump(NEW) + yamlio.dump(handed()))))
    assert job["spec"]["template"]["spec"] == LIVE["template"]["spec"]
    # the outer one compares the Job with that of the last revision, which must not come undone
    assert json.loads(covered["data"][GROUP]).keys() == handed().keys() - {"kept"}


@pytest.mark.parametrize(
    "text",
    ["x", "e30=", base64.b64encode(b"[1]").decode(), base64.b64encode(b'{"change": "", "jobs": {"a": 1}}').decode(), 7],
)
def test_a_text_that_the_chart_did_not_write_is_refused(text: Any) -> None:
    with pytest.raises(SpecError, match=r"^kept is not what the chart writes: leave it out$"):
        revision.with_kept(yamlio.dump({**handed(), "kept": text}))
