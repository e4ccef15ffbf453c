"""The whole table of MiniClusters whose lead answers."""

from typing import Any

import pytest
from minicluster.status.table import duration, table
from status_samples import (
    BUSY,
    CREATED,
    FOUR,
    IDLE,
    SETTINGS,
    SHOWN_IDLE,
    STARTS,
    UNSCHEDULABLE,
    ended,
    flux,
    job,
    pod,
    show,
)


def with_failures(failed: int, most: int) -> dict[str, Any]:
    """Return a Job some of whose pods have failed."""
    found = job()
    found["spec"]["backoffLimit"] = most
    found["status"]["failed"] = failed
    return found


#: Job, pods, the lead's answer (its settings and Flux's summary), and the table
CASES: dict[str, tuple[Any, list[Any], Any, str]] = {
    "idle": (
        *IDLE,
        SHOWN_IDLE,
    ),
    "busy": (
        *BUSY,
        """\
MiniCluster  mini, namespace lab, age 12m50s, Flux 0.88.0
State        Running
Size         4 of at most 8, autoscaling from 1 to 6
Scheduler    Fluxion 0.54.0 (conservative, lonode)
Quorum       4, reached
Nodes         1 up        3 drained      1 missing  3 not started
Drained      1: bad [31mDIMM
             2: bad DIMM
             4: minicluster: the pod was told to stop
Missing      3: Pending: ImagePullBackOff: correct the image's name, or set
             pod.imagePullSecrets for its registry
Bursts       2 up of 3
Cores        76 free     20 allocated  128 total
GPUs          0 free      6 allocated    8 total
Jobs          4 pending   3 running    120 done  2 failed, 1 timeout
Longest wait 1m2s
""",
    ),
    "lost": (
        job(size=6),
        [*FOUR[:3], pod(3), pod(4, ended(137, "OOMKilled"))],
        (SETTINGS, flux(online="0-2")),
        """\
MiniCluster  mini, namespace lab, age 12m50s, Flux 0.88.0
State        Running
Size         6 of at most 8
Scheduler    Fluxion 0.54.0 (conservative, lonode)
Quorum       4, reached
Nodes         3 up       0 drained     3 missing  2 not started
Missing      3: Running: its node is not in Flux
             4: Failed: OOMKilled, exit code 137: it needs more memory: raise
             resources.limits.memory
             5: no pod
Cores        16 free     0 allocated  16 total
Jobs          0 pending  0 running     0 done
""",
    ),
    "no quorum yet": (
        job(),
        [pod(0, STARTS), *(pod(index, UNSCHEDULABLE) for index in (1, 2, 3))],
        (SETTINGS, flux(online="0", total={"cores": 4, "gpus": 0}, free={"cores": 4, "gpus": 0})),
        """\
MiniCluster  mini, namespace lab, age 12m50s, Flux 0.88.0
State        Starting: waits for the quorum, 1 of 4 nodes are up: 1-3 are
             Pending: Unschedulable: 1 Insufficient cpu: lower
             resources.requests or size; it starts when a Kubernetes node has
             room
Size         4 of at most 8
Scheduler    Fluxion 0.54.0 (conservative, lonode)
Quorum       4, not reached
Nodes        1 up       0 drained    3 missing  4 not started
Missing      1-3: Pending: Unschedulable: 1 Insufficient cpu: lower
             resources.requests or size; it starts when a Kubernetes node has
             room
Cores        4 free     0 allocated  4 total
Jobs         0 pending  0 running    0 done
""",
    ),
    "a helper fails": (
        job(),
        FOUR,
        (SETTINGS, flux(online="0-3", problems=["the undrainer failed"])),
        SHOWN_IDLE + "Problem      the undrainer failed\n",
    ),
    "pods have failed": (
        with_failures(3, 100),
        FOUR,
        (SETTINGS, flux(online="0-3")),
        SHOWN_IDLE.replace(
            "Scheduler", "Failures     3 pods; a Job ends with more than 100 (backoffLimit)\nScheduler", 1
        ),
    ),
    "no jobs to read": (
        None,
        [*FOUR[:2], pod(2, ended(85)), pod(3, deletionTimestamp=CREATED)],
        (SETTINGS, flux(online="0-1", total={"cores": 8, "gpus": 0}, free={"cores": 8, "gpus": 0})),
        """\
MiniCluster  mini, namespace lab, age 12m50s, Flux 0.88.0
State        Running
Size         2 of at most 8 (counted by its pods: jobs can't be read)
Scheduler    Fluxion 0.54.0 (conservative, lonode)
Quorum       4, reached
Nodes        2 up       0 drained    0 missing  6 not started
Cores        8 free     0 allocated  8 total
Jobs         0 pending  0 running    0 done
""",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_status_table_shows_a_minicluster_whose_lead_answers(case: str) -> None:
    *seen, text = CASES[case]
    assert table(show(*seen)) == text


@pytest.mark.parametrize("case", CASES)
def test_status_counts_each_node_once(case: str) -> None:
    *seen, _ = CASES[case]
    found = show(*seen)
    assert sum(found["nodes"].values()) == found["maxSize"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.9, "59s"), (60, "1m"), (61, "1m1s"), (3600, "1h"), (3661, "1h1m"), (86400, "1d"), (93784, "1d2h")],
)
def test_status_shows_durations_with_at_most_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text
