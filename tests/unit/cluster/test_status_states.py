"""The state of MiniClusters whose lead is not asked or gives no answer, as the table shows it."""

from typing import Any

import pytest
from minicluster.status.table import table
from status_samples import (
    CREATED,
    EVICTED,
    FOUR,
    GATED,
    STARTS,
    UNSCHEDULABLE,
    ended,
    job,
    pod,
    show,
    suspended,
    waiting,
)

#: Job, pods, the error of asking the lead (None when it is not asked), and the table
CASES: dict[str, tuple[Any, list[Any], Any, str]] = {
    "the broker starts": (
        job(),
        [pod(0, STARTS), *FOUR[1:]],
        "no socket",
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Starting: the lead's broker does not answer (no socket):
             `minicluster logs mini -n lab` says more
Size         4 of at most 8
Pods         0-3: Running
""",
    ),
    "the broker hangs": (
        job(),
        FOUR,
        "no answer within 20 s",
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Unknown: the lead's broker does not answer (no answer within 20 s):
             `minicluster logs mini -n lab` says more
Size         4 of at most 8
Pods         0-3: Running
""",
    ),
    "no image": (
        job(),
        [pod(0, waiting("ErrImagePull", "nope:1 is not there")), *(pod(i, waiting("ErrImagePull")) for i in (1, 3))],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Starting: the lead is Pending: ErrImagePull: nope:1 is not there:
             correct the image's name, or set pod.imagePullSecrets for its
             registry
Size         4 of at most 8
Pods         0-1,3: Pending: ErrImagePull
""",
    ),
    "no view": (
        job(),
        [pod(0, waiting("CrashLoopBackOff", init="view")), pod(1, waiting("PodInitializing")), pod(2, UNSCHEDULABLE)],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Starting: the lead is Pending: CrashLoopBackOff
Size         4 of at most 8
Pods         0: Pending: CrashLoopBackOff
             1: Pending: PodInitializing
             2: Pending: Unschedulable
Containers   0: view fails: CrashLoopBackOff
""",
    ),
    "no place": (
        job(),
        [pod(0, UNSCHEDULABLE), pod(1, {})],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Starting: the lead is Pending: Unschedulable: 1 Insufficient cpu:
             lower resources.requests or size; it starts when a Kubernetes node
             has room
Size         4 of at most 8
Pods         0: Pending: Unschedulable
             1: Pending
""",
    ),
    "no pods": (
        job(),
        [],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Starting: the lead has no pod: `kubectl describe job mini` says why
Size         4 of at most 8
""",
    ),
    "suspended": (
        suspended(),
        [],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Suspended: the Job is suspended:
             `kubectl patch job mini --type=merge -p '{"spec":{"suspend":false}}'`
             resumes it
Size         4 of at most 8
""",
    ),
    "suspended by a value": (
        suspended(annotation="the value suspend"),
        [],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Suspended: by the value suspend: an upgrade with suspend=false
             resumes it
Size         4 of at most 8
""",
    ),
    "suspended by Kueue": (
        suspended(queue="q"),
        [],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Suspended: Kueue's queue q holds it: `kubectl get workloads` says
             why
Size         4 of at most 8
""",
    ),
    "gated by Kueue": (
        job(size=2),
        [pod(0, UNSCHEDULABLE), pod(1, UNSCHEDULABLE) | {"spec": GATED}],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Starting: the lead is Pending: Unschedulable: 1 Insufficient cpu:
             lower resources.requests or size; it starts when a Kubernetes node
             has room
Size         2 of at most 8
Pods         0: Pending: Unschedulable
             1: Pending: waits for Kueue
""",
    ),
    "joins another": (
        job(size=2, **{"flux.bursting.leadBroker.address": "lead.example"}),
        FOUR[:2],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Running: its nodes join the cluster of lead.example: see the status
             of that cluster
Size         2 of at most 8
Pods         0-1: Running
""",
    ),
    "joins another, by the other name of the field": (
        job(size=2, **{"flux.leadBroker.address": "lead.example"}),
        FOUR[:2],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Running: its nodes join the cluster of lead.example: see the status
             of that cluster
Size         2 of at most 8
Pods         0-1: Running
""",
    ),
    "the lead is replaced": (
        job(size=2),
        [pod(0, ended(85), deletionTimestamp=CREATED), pod(1)],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Starting: the lead's pod mini-0-x is Failed: exit code 85;
             Kubernetes replaces it, or ends the Job
Size         2 of at most 8
Pods         0: Failed: exit code 85
             1: Running
""",
    ),
    "the lead failed, no jobs to read": (
        None,
        [pod(0, EVICTED), pod(1, ended(2, "Error", "view"))],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Unknown: the lead's pod mini-0-x is Failed: Evicted: low on memory:
             set resources.requests.memory to what it needs: others are then
             evicted first; Kubernetes replaces it
Size         2 (counted by its pods: jobs can't be read)
Pods         0: Failed: Evicted
             1: Failed: view, exit code 2
""",
    ),
    "the lead ended, no jobs to read": (
        None,
        [pod(0, ended(0)), pod(1, deletionTimestamp=CREATED)],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Complete: the lead's pod mini-0-x ended with exit code 0
Size         2 (counted by its pods: jobs can't be read)
Pods         0: Succeeded
             1: Running: Terminating
""",
    ),
    "the lead's container ended, which its pod has yet to say": (
        job(size=2),
        [pod(0, {**ended(0), "phase": "Running"}), pod(1)],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Complete: the lead's pod mini-0-x ended with exit code 0
Size         2 of at most 8
Pods         0-1: Running
""",
    ),
    "about to fail": (
        job(size=2, end=("FailureTarget", "PodFailurePolicy")),
        [pod(0), pod(1)],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Failed: PodFailurePolicy: said why
Size         2 of at most 8
Pods         0-1: Running
""",
    ),
    "complete": (
        job(size=2, end=("Complete", "SuccessPolicy")),
        [pod(0, ended(0)), pod(1, ended(0))],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Complete
Size         2 of at most 8
Pods         0-1: Succeeded
""",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_status_table_shows_a_minicluster_whose_lead_gives_no_answer(case: str) -> None:
    *seen, text = CASES[case]
    assert table(show(*seen)) == text
