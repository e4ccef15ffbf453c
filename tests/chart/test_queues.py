"""What Kueue and gang schedulers read of the rendered objects."""

from typing import Any

import pytest
from renderings import job, pod
from support import Helm, by_name, one

TEXT = 'it\'s "$HOME" `id`\nß'


def test_kueue_reads_labels_and_annotations_of_the_job(helm: Helm) -> None:
    plain = job(helm.template())
    kueue = {"queueName": "team.q", "priorityClass": "high", "elastic": True}
    values = {"kueue": kueue, "jobLabels": {"mine": "y"}, "jobAnnotations": {"a.b/c": TEXT}}
    found = job(helm.template(values=values))
    assert found["metadata"]["labels"] == plain["metadata"]["labels"] | {
        "kueue.x-k8s.io/queue-name": "team.q",
        "kueue.x-k8s.io/priority-class": "high",
        "mine": "y",
    }
    assert {key: found["metadata"]["annotations"][key] for key in ("a.b/c", "kueue.x-k8s.io/elastic-job")} == {
        "a.b/c": TEXT,
        "kueue.x-k8s.io/elastic-job": "true",
    }
    assert found["spec"] == plain["spec"]


def test_a_job_is_suspended_by_the_value_only(helm4: Helm) -> None:
    plain = job(helm4.template())
    found = job(helm4.template(values={"suspend": True}))
    assert found["spec"] == {**plain["spec"], "suspend": True}
    assert found["metadata"]["annotations"].pop("minicluster/suspended") == "the value suspend"
    assert found["metadata"]["annotations"].keys() == plain["metadata"]["annotations"].keys()


SCALES = {"size": 3, "maxSize": 8, "autoscaling": {"enabled": True, "min": 2}}


@pytest.mark.parametrize(
    ("values", "least"), [({"size": 4}, 4), ({"size": 4, "minSize": 3}, 3), (SCALES, 2), ({**SCALES, "minSize": 1}, 1)]
)
def test_a_pod_group_starts_the_smallest_size_at_once(helm4: Helm, values: dict[str, Any], least: int) -> None:
    gang = {"gang": {"kind": "coscheduling"}, "pod": {"schedulerName": "s"}}
    assert one(helm4.template(values=values | gang), "PodGroup")["spec"] == {"minMember": least}


def test_the_pods_name_their_group(helm4: Helm) -> None:
    plain = pod(helm4.template(values={"pod": {"schedulerName": "s"}}))["metadata"]
    for kind, version, spec, labels, annotations in (
        ("coscheduling", "scheduling.x-k8s.io/v1alpha1", {}, {"scheduling.x-k8s.io/pod-group": "flux-sample"}, {}),
        (
            "volcano",
            "scheduling.volcano.sh/v1beta1",
            {"queue": "q"},
            {},
            {"scheduling.k8s.io/group-name": "flux-sample"},
        ),
    ):
        text = helm4.template(values={"gang": {"kind": kind, **spec}, "pod": {"schedulerName": "s"}})
        group = one(text, "PodGroup")
        assert (group["apiVersion"], group["metadata"]["name"]) == (version, "flux-sample")
        assert group["metadata"]["namespace"] == "ns"
        assert group["spec"] == {"minMember": 1, **spec}
        metadata = pod(text)["metadata"]
        assert metadata["labels"] == plain["labels"] | labels
        assert metadata["annotations"] == plain["annotations"] | annotations
    assert ("PodGroup", "flux-sample") not in by_name(helm4.template())
