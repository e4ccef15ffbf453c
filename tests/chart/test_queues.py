"""The labels, annotations and objects that Kueue and gang schedulers read."""

import json
from typing import Any

import pytest
from minicluster.render.constants import IMMUTABLE
from minicluster.render.upgrade import changes
from renderings import job, pod
from support import CHART, Helm, awaiting, by_name, load_all, one

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


def test_kueue_reads_the_place_of_segments_from_the_pods_of_each_job(helm: Helm) -> None:
    kueue = {"kueue": {"queueName": "q"}}
    group: dict[str, Any] = {"name": "gpu", "size": 6, "cores": 1}
    groups = [group, {**group, "name": "any", "pod": {"segments": {"size": 2}}}]

    def annotations(**values: Any) -> list[dict[str, str]]:
        found = by_name(helm.template(values={"size": 6, "groups": groups, **kueue, **values}))
        names = ("flux-sample", "flux-sample-gpu", "flux-sample-any")
        return [found["Job", name]["spec"]["template"]["metadata"]["annotations"] for name in names]

    plain, mine = annotations(), {"annotations": {"a": "b"}}
    place = {
        "kueue.x-k8s.io/podset-slice-required-topology": "example.com/rack",
        "kueue.x-k8s.io/podset-slice-size": "3",
    }
    found = annotations(pod={"segments": {"size": 3, "topologyKey": "example.com/rack"}, **mine})
    assert found == [one | extra | mine["annotations"] for one, extra in zip(plain, (place, place, {}), strict=True)]
    # the names alone change no pod
    assert annotations(pod={"segments": {"size": 4}}) == plain


def test_the_value_suspend_suspends_the_job(helm4: Helm) -> None:
    plain = job(helm4.template())
    found = job(helm4.template(values={"suspend": True}))
    assert found["spec"] == {**plain["spec"], "suspend": True}
    assert found["metadata"]["annotations"].pop("minicluster/suspended") == "the value suspend"
    assert found["metadata"]["annotations"].keys() == plain["metadata"]["annotations"].keys()


NATIVE = {"gang": {"kind": "kubernetes"}}
#: The APIs of a cluster: Kubernetes 1.36 with its gates for gangs, 1.37 with them, and any without such gates.
FIXED = ("--api-versions=batch/v1/Job,v1/Pod,scheduling.k8s.io/v1alpha2/PodGroup", "--kube-version=1.36.3")
RESIZABLE = ("--api-versions=batch/v1/Job,v1/Pod,scheduling.k8s.io/v1beta1/PodGroup", "--kube-version=1.37.0")
NONE = ("--api-versions=batch/v1/Job,v1/Pod", "--kube-version=1.36.3")
SCALES = {"size": 3, "maxSize": 8, "autoscaling": {"enabled": True, "min": 2}}
GROUPS = {
    "groups": [
        {"name": "a", "size": 3, "cores": 1},
        {"name": "b", "size": 2, "minSize": 0, "cores": 1},
        {"name": "c", "cores": 1},
    ]
}
LIMITED = {"groups": [{"name": "a", "size": 3, "cores": 1, "autoscaling": {"min": 2}}, {"name": "b", "cores": 1}]}


@pytest.mark.parametrize(
    ("values", "least"),
    [
        ({"size": 4}, 4),
        ({"size": 4, "minSize": 3}, 3),
        (SCALES, 2),
        ({**SCALES, "minSize": 1}, 1),
        ({"size": 2, **GROUPS}, 6),
        ({**SCALES, **LIMITED}, 4),
    ],
    ids=lambda x: str(x)[:80],
)
def test_a_pod_group_starts_the_smallest_size_at_once(helm4: Helm, values: dict[str, Any], least: int) -> None:
    gang = {"gang": {"kind": "coscheduling"}, "pod": {"schedulerName": "s"}}
    assert one(helm4.template(values=values | gang), "PodGroup")["spec"] == {"minMember": least}
    group = one(helm4.template(*RESIZABLE, values=values | NATIVE), "PodGroup")
    assert group["spec"] == {"schedulingPolicy": {"gang": {"minCount": least}}}


def test_the_pods_name_the_pod_group_of_their_gang_scheduler(helm4: Helm) -> None:
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
        assert (group["apiVersion"], group["metadata"]["name"]) == (awaiting(version), "flux-sample")
        assert group["metadata"]["namespace"] == "ns"
        assert group["spec"] == {"minMember": 1, **spec}
        groups = {"groups": [{"name": "gpu", "cores": 1}]}
        of_group = by_name(helm4.template(values={"gang": {"kind": kind}, "pod": {"schedulerName": "s"}, **groups}))
        template = of_group["Job", "flux-sample-gpu"]["spec"]["template"]["metadata"]
        assert labels.items() <= template["labels"].items()
        assert annotations.items() <= template["annotations"].items()
        metadata = pod(text)["metadata"]
        assert metadata["labels"] == plain["labels"] | labels
        assert metadata["annotations"] == plain["annotations"] | annotations
    assert ("PodGroup", "flux-sample") not in by_name(helm4.template())


def test_the_pods_name_the_pod_group_of_a_gang_of_kubernetes(helm: Helm) -> None:
    plain = pod(helm.template(*NONE))
    for served, version in ((FIXED, "v1alpha2"), (RESIZABLE, "v1beta1")):
        text = helm.template(*served, values=NATIVE)
        group = one(text, "PodGroup")
        assert group["apiVersion"] == awaiting(f"scheduling.k8s.io/{version}")
        assert (group["metadata"]["name"], group["metadata"]["namespace"]) == ("flux-sample", "ns")
        assert pod(text)["spec"].pop("schedulingGroup") == {"podGroupName": "flux-sample"}
        assert pod(text)["metadata"] == plain["metadata"]


def test_the_pods_get_a_basic_group_where_kubernetes_makes_gangs_by_itself(helm: Helm) -> None:
    volcano = {"gang": {"kind": "volcano"}, "pod": {"schedulerName": "s"}}
    for values, others in (({}, []), (volcano, [awaiting("scheduling.volcano.sh/v1beta1")])):
        text = helm.template(*FIXED, values=values)
        groups = {each["apiVersion"]: each["spec"] for each in load_all(text) if each["kind"] == "PodGroup"}
        assert groups.pop(awaiting("scheduling.k8s.io/v1alpha2")) == {"schedulingPolicy": {"basic": {}}}
        assert list(groups) == others
        assert pod(text)["spec"]["schedulingGroup"] == {"podGroupName": "flux-sample"}


def test_the_pods_get_no_group_where_kubernetes_makes_no_gangs_by_itself(helm: Helm) -> None:
    own = {"pod": {"template": {"spec": {"schedulingGroup": {"podGroupName": "mine"}}}}}
    for served in ((), NONE, RESIZABLE):
        text = helm.template(*served)
        assert ("PodGroup", "flux-sample") not in by_name(text)
        assert "schedulingGroup" not in pod(text)["spec"]
    text = helm.template(*FIXED, values=own)
    assert ("PodGroup", "flux-sample") not in by_name(text)
    assert pod(text)["spec"]["schedulingGroup"] == {"podGroupName": "mine"}


@pytest.mark.parametrize(
    ("offline", "version"),
    [
        ((), "v1beta1"),
        (("--kube-version=1.36", "--api-versions=batch/v1/Job"), "v1alpha2"),
        (("--kube-version=1.37", "--api-versions=batch/v1/Job"), "v1beta1"),
    ],
    ids=["no version", "1.36", "1.37"],
)
def test_kube_version_chooses_the_api_version_of_an_offline_pod_group(
    helm: Helm, offline: tuple[str, ...], version: str
) -> None:
    group = one(helm.template(*offline, values=NATIVE), "PodGroup")
    assert group["apiVersion"] == awaiting(f"scheduling.k8s.io/{version}")


def test_a_gang_of_kubernetes_is_refused_by_a_cluster_without_pod_groups(helm: Helm) -> None:
    refusal = helm.fails("template", "flux-sample", CHART, *NONE, "--set", "gang.kind=kubernetes")
    assert (
        "gang.kind is kubernetes, and this cluster, v1.36.3, serves no PodGroups of scheduling.k8s.io: they need "
        "Kubernetes 1.37 with the feature gate GenericWorkload, or the version before with GangScheduling too; ask its "
        "administrator, or drop gang.kind"
    ) in " ".join(refusal.split())


def test_job_template_adds_fields_to_the_job(helm: Helm) -> None:
    plain = job(helm.template())
    spec = {"managedBy": "example.com/jobs", "x": {"y": [TEXT]}}
    found = job(helm.template(values={"job": {"template": {"spec": spec}}}))
    assert found["spec"] == plain["spec"] | spec


def test_the_job_records_a_change_of_job_template(helm4: Helm) -> None:
    policies = [{"job": {"template": {"spec": {"scheduling": {"schedulingPolicy": {kind: {}}}}}}} for kind in "ab"]
    records = [job(helm4.template(values=values))["metadata"]["annotations"][IMMUTABLE] for values in policies]
    assert len(list(changes(*map(json.loads, records), {"job.template": "{}"}))) == 1


def test_job_template_does_not_replace_fields_that_the_chart_writes(helm: Helm) -> None:
    plain = job(helm.template())
    for spec in ({"parallelism": 9, "template": {}}, [], "x"):
        assert job(helm.template(values={"job": {"template": {"spec": spec}}}))["spec"] == plain["spec"]


def test_a_group_without_pods_is_suspended_but_not_in_a_queue_which_would_resume_it(helm4: Helm) -> None:
    def counts(**values: Any) -> list[Any]:
        groups = [{"name": "a", "size": 2, "cores": 1}, {"name": "b", "size": 0, "cores": 1}]
        found = by_name(helm4.template(values={"groups": groups} | values))
        specs = [found["Job", f"flux-sample-{name}"]["spec"] for name in ("a", "b")]
        return [(spec["completions"], spec["parallelism"], spec.get("suspend")) for spec in specs]

    assert counts() == [(2, 2, None), (1, 1, True)]
    for queue in ({"kueue": {"queueName": "q"}}, {"jobLabels": {"kueue.x-k8s.io/queue-name": "q"}}):
        assert counts(**queue) == [(2, 2, None), (1, 0, None)]


def test_a_group_of_a_suspended_cluster_says_by_whom_unless_it_has_no_pods_anyway(helm4: Helm) -> None:
    groups = [{"name": "a", "size": 2, "cores": 1}, {"name": "b", "size": 0, "cores": 1}]
    found = by_name(helm4.template(values={"groups": groups, "suspend": True}))
    annotations = [found["Job", f"flux-sample-{name}"]["metadata"]["annotations"] for name in ("a", "b")]
    assert [each.get("minicluster/suspended") for each in annotations] == ["the value suspend", None]
