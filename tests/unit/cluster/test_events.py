"""What is read from events of pods that wait in silence, and what is asked for."""

from collections.abc import Mapping
from typing import Any

import pytest
from minicluster.cluster.find import find_by_name
from minicluster.cluster.reasons import pod_with_reason, why_no_pod, with_reasons
from minicluster.cluster.troubles import silent_troubles
from minicluster.cluster.without_flux import state_without_flux
from minicluster.errors import RefusedError
from status_samples import NOW, RUNNING, UNSCHEDULABLE, job, pod, waiting

MOUNT = 'MountVolume.SetUp failed for volume "munge" : secret "munge-key" not found'
CREATE = "create it in this namespace, or correct the value that names it: the pod then starts by itself"
OWN = (
    "it is the release's own: restore it, or install the release again; a Job that was copied from another cluster, as "
    "MultiKueue does, can't run here"
)
QUOTA = 'Error creating: pods "mini-1-x" is forbidden: exceeded quota: few'
QUOTA_WAY = "lower resources or size, or ask for a larger quota"
CREATING = waiting("ContainerCreating")


def event(reason: str, message: str, kind: str = "Pod", name: str = "mini-0-x", **times: Any) -> dict[str, Any]:
    return {"reason": reason, "message": message, "involvedObject": {"kind": kind, "name": name}, **times}


def at(minute: int, second: int = 0) -> str:
    return f"2030-01-01T11:{minute:02}:{second:02}Z"


def told(*events: Mapping[str, Any]) -> str:
    return silent_troubles({"items": events}).get(("Pod", "mini-0-x"), "")


def test_the_newest_event_that_explains_counts() -> None:
    old = event("FailedMount", "old", lastTimestamp=at(0))
    new = event("FailedMount", "new", lastTimestamp=None, eventTime=at(30))
    series = event("FailedCreate", "last", series={"lastObservedTime": at(40)}, eventTime=at(10))
    other = event("BackOff", "other", lastTimestamp=at(59))
    assert told(new, old, other) == "new"
    assert told(series, new, old) == "last"
    assert told(other) == told() == ""
    assert silent_troubles({}) == {}
    assert told(event("FailedMount", "another pod's", name="mini-0-y", lastTimestamp=at(0))) == ""
    assert told(event("FailedCreate", f"(combined from similar events): {QUOTA}")) == QUOTA


def test_of_several_troubles_the_same_is_told_whichever_came_last() -> None:
    first, second = event("FailedMount", MOUNT), event("FailedMount", MOUNT.replace("munge", "other"))
    vague = event("FailedMount", "A timed out")
    for times in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        stamps = [{"lastTimestamp": at(5, 20 * time)} for time in times]
        assert told(first | stamps[0], second | stamps[1], vague | stamps[2]) == MOUNT
    # what was said minutes ago is over
    assert told(first | {"lastTimestamp": at(5)}, second | {"lastTimestamp": at(8)}) == second["message"]


class Objects:
    """A MiniCluster with some pods and events; it notes whether events are asked for."""

    def __init__(self, pods: list[Any], *events: Any, size: int = 2, refused: bool = False) -> None:
        self.pods, self.events, self.size, self.refused = pods, events, size, refused
        self.asked = 0

    def get(self, kind: str, name: str) -> Any:
        return job(self.size) if (kind, name) == ("job", "mini") else {}

    def select(self, kind: str, _labels: str = "", fields: str = "") -> Any:
        if kind == "pods":
            return {"items": self.pods}
        assert (kind, fields[:12]) == ("events", "type=Warning")
        self.asked += 1
        if self.refused:
            raise RefusedError("list events: no", status=403)
        return {"items": self.events}

    def state(self) -> tuple[str, str] | None:
        """Return the state, and why."""
        mini = find_by_name(self, "mini")
        assert mini
        return state_without_flux(with_reasons(self, mini), NOW)


def named(found: dict[str, Any]) -> dict[str, Any]:
    """Return a pod with the label of its MiniCluster."""
    found["metadata"]["labels"]["app.kubernetes.io/instance"] = "mini"
    return found


@pytest.mark.parametrize(
    ("message", "way"),
    [
        (MOUNT, CREATE),
        ('MountVolume.SetUp failed for volume "c" : configmap "mini-config" not found', OWN),
        ('MountVolume.SetUp failed for volume "c" : secret "mini-curve" not found', OWN),
        ('MountVolume.SetUp failed for volume "c" : secret "other-curve" not found', CREATE),
    ],
)
def test_a_volume_that_can_not_be_mounted_is_the_reason_of_a_pod(message: str, way: str) -> None:
    objects = Objects([named(pod(0, CREATING)), pod(1, CREATING)], event("FailedMount", message))
    assert objects.state() == ("Starting", f"the lead is Pending: ContainerCreating: {message}: {way}")
    assert objects.asked == 1
    mini = find_by_name(objects, "mini")
    assert mini
    lead = pod_with_reason(objects, mini.pods[0])
    assert (lead.is_stuck, lead.way_out) == (True, way)
    assert not pod_with_reason(objects, mini.pods[1]).is_stuck


def test_an_event_of_a_pod_that_has_its_volumes_is_over() -> None:
    there = {**CREATING, "conditions": [{"type": "PodReadyToStartContainers", "status": "True"}]}
    objects = Objects([pod(0, there), pod(1, there)], event("FailedMount", MOUNT))
    assert objects.state() == ("Starting", "the lead is Pending: ContainerCreating")
    assert not objects.asked
    # another pod may lack its own
    assert Objects([pod(0, there), pod(1, CREATING)], event("FailedMount", MOUNT)).state() == objects.state()


def test_a_job_that_can_make_no_pod_says_why() -> None:
    refused = event("FailedCreate", QUOTA, "Job", "mini")
    assert Objects([], refused).state() == ("Starting", f"the lead has no pod: {QUOTA}: {QUOTA_WAY}")
    assert Objects([]).state() == ("Starting", "the lead has no pod: `kubectl describe job mini` says why")
    assert why_no_pod(Objects([], refused), "mini") == QUOTA
    # one pod too few, when the lead runs
    objects = Objects([pod(0)], refused)
    mini = find_by_name(objects, "mini")
    assert mini
    job_of_mini = with_reasons(objects, mini).job
    assert job_of_mini
    assert job_of_mini.why_no_pod == QUOTA


@pytest.mark.parametrize(
    "pods", [[pod(0), pod(1)], [pod(0, UNSCHEDULABLE)], [pod(0, waiting("ErrImagePull")), pod(1, RUNNING)]]
)
def test_events_are_asked_for_only_if_something_waits_in_silence(pods: list[Any]) -> None:
    objects = Objects(pods)
    mini = find_by_name(objects, "mini")
    assert mini
    assert with_reasons(objects, mini).pods == mini.pods
    assert not objects.asked


def test_a_user_who_may_not_read_events_gets_the_state_without_them() -> None:
    objects = Objects([pod(0, CREATING)], refused=True)
    assert objects.state() == ("Starting", "the lead is Pending: ContainerCreating")
    assert objects.asked
