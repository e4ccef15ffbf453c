"""Objects as kubectl prints them and answers as the lead gives them, of a MiniCluster named mini."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from minicluster.cluster.find import LiveCluster
from minicluster.cluster.job import read_job
from minicluster.cluster.pods import GroupNodes, read_pods
from minicluster.cluster.without_flux import state_of_silent_lead, state_without_flux
from minicluster.lead.ask import read_answer
from minicluster.render.constants import KUEUE_ELASTIC
from minicluster.status.document import document
from minicluster.status.snapshot import StatusSnapshot
from support import as_in_schema

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
CREATED = "2030-01-01T11:47:10Z"
RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
STARTS = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "1 Insufficient cpu."}
    ],
}
#: Spec of a pod that Kueue keeps gated
GATED = {"schedulingGates": [{"name": KUEUE_ELASTIC}]}
EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}


def waiting(reason: str, message: str = "", *, init: str = "") -> dict[str, Any]:
    """Return the status of a pod whose runner, or first an init container, waits."""
    found: dict[str, Any] = {
        "phase": "Pending",
        "containerStatuses": [
            {"name": "mini", "state": {"waiting": {"reason": "PodInitializing" if init else reason}}},
        ],
    }
    if init:
        found["initContainerStatuses"] = [{"name": "view", "state": {"waiting": {"reason": reason}}}]
    else:
        found["containerStatuses"][0]["state"]["waiting"]["message"] = message
    return found


def ended(code: int, reason: str = "Error", name: str = "mini") -> dict[str, Any]:
    """Return the status of a pod with a container that ended."""
    state = {"terminated": {"exitCode": code, "reason": reason}}
    return {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{"name": name, "state": state}]}


def pod(index: int, state: Mapping[str, Any] = RUNNING, created: str = CREATED, **metadata: Any) -> dict[str, Any]:
    """Return a pod of the MiniCluster mini."""
    return {
        "metadata": {
            "name": f"mini-{index}-x",
            "namespace": "lab",
            "creationTimestamp": created,
            "labels": {"batch.kubernetes.io/job-completion-index": str(index)},
            "annotations": {"kubectl.kubernetes.io/default-container": "mini"},
            **metadata,
        },
        "status": state,
    }


def job(size: int = 4, created: str = CREATED, end: tuple[str, str] | None = None, **frozen: str) -> dict[str, Any]:
    """Return the Job of the MiniCluster mini."""
    condition = {"type": end[0], "status": "True", "reason": end[1], "message": "said why"} if end else None
    return {
        "metadata": {
            "name": "mini",
            "namespace": "lab",
            "creationTimestamp": created,
            "annotations": {"minicluster/immutable": json.dumps({"maxSize": "8", **frozen})},
        },
        "spec": {"completions": size},
        "status": {"conditions": [{"type": "Failed", "status": "False"}, *([condition] if condition else [])]},
    }


#: Why the cluster is not there, in the words of `minicluster status`
SUSPENDED = """the Job is suspended: `kubectl patch job mini --type=merge -p '{"spec":{"suspend":false}}'` resumes it"""


def suspended(queue: str = "", annotation: str = "") -> dict[str, Any]:
    """Return a suspended Job, in a queue of Kueue or with an annotation that says who suspended it."""
    found = job()
    found["spec"]["suspend"] = True
    found["metadata"] |= {"uid": "u-1", "labels": {"kueue.x-k8s.io/queue-name": queue} if queue else {}}
    found["metadata"]["annotations"] |= {"minicluster/suspended": annotation} if annotation else {}
    return found


def workload(*conditions: tuple[str, str, str], active: bool = True, name: str = "job-mini") -> dict[str, Any]:
    """Return a Workload of Kueue with conditions of (type, status, message)."""
    found = [{"type": kind, "status": status, "message": text, "reason": "R"} for kind, status, text in conditions]
    return {"metadata": {"name": name}, "spec": {"active": active}, "status": {"conditions": found}}


#: Why a cluster sleeps, as its agent writes it
WHY = "idle for 60 s"


def asleep(version: str = "7", *managers: str, why: str = WHY) -> dict[str, Any]:
    """Return a Job that sleeps, with the managers of its fields."""
    found = suspended(annotation=why)
    found["metadata"] |= {"resourceVersion": version, "managedFields": [{"manager": each} for each in managers]}
    return found


SETTINGS = {"max_size": 8, "policy": None}
JOBS = {
    **dict.fromkeys(("depend", "priority", "sched", "run", "cleanup", "inactive", "total"), 0),
    **dict.fromkeys(("successful", "failed", "canceled", "timeout"), 0),
}


def flux(**found: Any) -> dict[str, Any]:
    """Return what pod/queue/state.py prints: four nodes of 4 cores that are idle."""
    summary: dict[str, Any] = {
        "version": "0.88.0",
        "scheduler": {"name": "Fluxion", "version": "0.54.0", "queuePolicy": "conservative", "matchPolicy": "lonode"},
        "quorum": 4,
        "registered": 8,
        "online": "0-3",
        "allocated": "",
        "drained": {},
        "total": {"cores": 16, "gpus": 0},
        "free": {"cores": 16, "gpus": 0},
        "used": {"cores": 0, "gpus": 0},
        "queue_wait": 0.0,
        "problems": [],
        "jobs": {},
    }
    summary |= found
    return {**summary, "jobs": {**JOBS, **summary["jobs"]}}


FOUR = [pod(index) for index in range(4)]
#: Job, pods and the lead's answer, of an idle and of a busy cluster
IDLE = (job(), FOUR, (SETTINGS, flux()))
BUSY = (
    job(size=4),
    [*FOUR[:3], pod(3, waiting("ImagePullBackOff")), pod(4, deletionTimestamp=CREATED)],
    (
        {"max_size": 8, "policy": {"min": 1, "max": 6}},
        flux(
            online="0-2,4,8-9",
            registered=11,
            drained={
                "2": "bad DIMM",
                "1": "bad\n\x1b[31mDIMM",
                "4": "minicluster: the pod was told to stop",
                "6": "later",
            },
            total={"cores": 128, "gpus": 8},
            free={"cores": 76, "gpus": 0},
            used={"cores": 20, "gpus": 6},
            queue_wait=62.4,
            jobs={"sched": 3, "depend": 1, "run": 2, "cleanup": 1, "inactive": 120, "failed": 2, "timeout": 1},
        ),
    ),
)
#: The table of a cluster without jobs
SHOWN_IDLE = """\
MiniCluster  mini, namespace lab, age 12m50s, Flux 0.88.0
State        Running
Size         4 of at most 8
Scheduler    Fluxion 0.54.0 (conservative, lonode)
Quorum       4, reached
Nodes         4 up       0 drained     0 missing  4 not started
Cores        16 free     0 allocated  16 total
Jobs          0 pending  0 running     0 done
"""


def show(found_job: Any, pods: list[Any], answer: Any, groups: Sequence[GroupNodes] = ()) -> dict[str, Any]:
    """Return the document of a Job, pods, and the lead's answer.

    The answer is the lead's settings and Flux's summary. A text is an error; with None the lead can't be asked.
    """
    job = read_job(found_job) if found_job else None
    by_index = read_pods({"items": pods})
    known = state_without_flux(LiveCluster("mini", by_index, job), NOW)
    assert (known is None) == (answer is not None)
    state, why = known or ("", "")
    given = None
    if isinstance(answer, str):
        state, why = state_of_silent_lead(by_index[0], answer)
    elif answer:
        given = read_answer(json.dumps(answer))
    shown = document(StatusSnapshot("mini", NOW, by_index, job, given, state, why, groups))
    found: dict[str, Any] = as_in_schema("status", json.loads(json.dumps(shown)))
    return found


def explained(job: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return what explain.py says of a job about which there is nothing to say."""
    nothing = {"waits": "", "needs": {}, "said": [], "again": "", "quiet_since": None, "warned": "", "starts": None}
    return {"job": dict(job), **nothing, **more}
