import json
import os
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from minicluster import kubectl as client
from minicluster.commands import status as command
from minicluster.status import ask
from minicluster.status import document as status
from support import front_door

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
EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}
FORBIDDEN = (
    'Error from server (Forbidden): jobs.batch "mini" is forbidden: User "u" cannot get resource "jobs" in API '
    'group "batch" in the namespace "lab"'
)
NO_EXEC = (
    'error: unable to upgrade connection: pods "mini-0-x" is forbidden: User "u" cannot create resource "pods/exec" '
    'in API group "" in the namespace "lab"'
)
REFUSED = (
    'E1121 13:00:00.1 7 memcache.go:265] "Unhandled Error"\n'
    "The connection to the server localhost:8080 was refused - did you specify the right host or port?"
)
NEEDS = "status needs `get` and `list` of pods and `create` of pods/exec: ask for a Role that has them"


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
    """Return the status of a pod one of whose containers ended."""
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
            "annotations": {"minicluster/frozen": json.dumps({"maxSize": "8", **frozen})},
        },
        "spec": {"completions": size},
        "status": {"conditions": [{"type": "Suspended", "status": "False"}, *([condition] if condition else [])]},
    }


def suspended() -> dict[str, Any]:
    """Return a Job that a queue holds back."""
    found = job()
    found["spec"]["suspend"] = True
    return found


SETTINGS = {"max_size": 8, "policy": None}
JOBS = {
    **dict.fromkeys(("depend", "priority", "sched", "run", "cleanup", "inactive", "total"), 0),
    **dict.fromkeys(("successful", "failed", "canceled", "timeout"), 0),
}


def flux(**found: Any) -> dict[str, Any]:
    """Return what scripts/state.py prints: four nodes of 4 cores that are idle."""
    summary: dict[str, Any] = {
        "version": "0.88.0",
        "scheduler": {"name": "Fluxion", "queuePolicy": "easy", "matchPolicy": "lonode"},
        "quorum": 4,
        "registered": 8,
        "online": "0-3",
        "allocated": "",
        "drained": {},
        "total": {"cores": 16, "gpus": 0},
        "free": {"cores": 16, "gpus": 0},
        "used": {"cores": 0, "gpus": 0},
        "queue_wait": 0.0,
        "jobs": {},
    }
    summary |= found
    return {**summary, "jobs": {**JOBS, **summary["jobs"]}}


BUSY = flux(
    online="0-2,4,8-9",
    registered=11,
    drained={"2": "bad DIMM", "1": "bad\n\x1b[31mDIMM", "4": "minicluster: the pod was told to stop", "6": "later"},
    total={"cores": 128, "gpus": 8},
    free={"cores": 76, "gpus": 0},
    used={"cores": 20, "gpus": 6},
    queue_wait=62.4,
    jobs={"sched": 3, "depend": 1, "run": 2, "cleanup": 1, "inactive": 120, "failed": 2, "timeout": 1},
)
FOUR = [pod(index) for index in range(4)]

#: What is seen (Job, pods, the lead's answer: its settings and Flux's summary, or how it failed), and what is shown
CASES: dict[str, tuple[Any, list[Any], Any, str]] = {
    "idle": (
        job(),
        FOUR,
        (SETTINGS, flux()),
        """\
MiniCluster  mini, namespace lab, age 12m50s, Flux 0.88.0
State        Running
Size         4 of at most 8
Scheduler    Fluxion (easy, lonode)
Quorum       4, reached
Nodes         4 up       0 drained     0 missing  4 not started
Cores        16 free     0 allocated  16 total
Jobs          0 pending  0 running     0 done
""",
    ),
    "busy": (
        job(size=4),
        [*FOUR[:3], pod(3, waiting("ImagePullBackOff")), pod(4, deletionTimestamp=CREATED)],
        ({"max_size": 8, "policy": {"min": 1, "max": 6}}, BUSY),
        """\
MiniCluster  mini, namespace lab, age 12m50s, Flux 0.88.0
State        Running
Size         4 of at most 8, autoscaling from 1 to 6
Scheduler    Fluxion (easy, lonode)
Quorum       4, reached
Nodes         1 up        3 drained      1 missing  3 not started
Drained      1: bad [31mDIMM
             2: bad DIMM
             4: minicluster: the pod was told to stop
Missing      3: Pending: ImagePullBackOff
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
Scheduler    Fluxion (easy, lonode)
Quorum       4, reached
Nodes         3 up       0 drained     3 missing  2 not started
Missing      3: Running: its broker is not in Flux
             4: Failed: OOMKilled, exit code 137
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
State        Starting: waits for the quorum, 1 of 4 brokers are online
Size         4 of at most 8
Scheduler    Fluxion (easy, lonode)
Quorum       4, not reached
Nodes        1 up       0 drained    3 missing  4 not started
Missing      1-3: Pending: Unschedulable
Cores        4 free     0 allocated  4 total
Jobs         0 pending  0 running    0 done
""",
    ),
    "no jobs to read": (
        None,
        [*FOUR[:2], pod(2, ended(85)), pod(3, deletionTimestamp=CREATED)],
        (SETTINGS, flux(online="0-1", total={"cores": 8, "gpus": 0}, free={"cores": 8, "gpus": 0})),
        """\
MiniCluster  mini, namespace lab, age 12m50s, Flux 0.88.0
State        Running
Size         2 of at most 8 (counted by its pods: jobs can't be read)
Scheduler    Fluxion (easy, lonode)
Quorum       4, reached
Nodes        2 up       0 drained    0 missing  6 not started
Cores        8 free     0 allocated  8 total
Jobs         0 pending  0 running    0 done
""",
    ),
    "the broker starts": (
        job(),
        [pod(0, STARTS), *FOUR[1:]],
        "no socket",
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Starting: the lead's broker does not answer (no socket): `kubectl
             logs -n lab mini-0-x` says more
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
             `kubectl logs -n lab mini-0-x` says more
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
State        Starting: the lead is Pending: ErrImagePull: nope:1 is not there
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
State        Starting: the lead is Pending: Unschedulable: 1 Insufficient cpu.
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
State        Suspended: the Job is suspended; who did that, or a queue such as
             Kueue, resumes it
Size         4 of at most 8
""",
    ),
    "joins another": (
        job(size=2, **{"flux.bursting.leadBroker.address": "lead.example"}),
        FOUR[:2],
        None,
        """\
MiniCluster  mini, namespace lab, age 12m50s
State        Running: its brokers join the cluster of lead.example: ask for that
             one's status
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
State        Unknown: the lead's pod mini-0-x is Failed: Evicted; Kubernetes
             replaces it, or ends the Job
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
State        Complete: SuccessPolicy: said why
Size         2 of at most 8
Pods         0-1: Succeeded
""",
    ),
}


def see(found_job: Any, pods: list[Any], answer: Any) -> dict[str, Any]:
    """Return the document of what is seen."""
    read_job = status.read_job(found_job) if found_job else None
    read_pods = status.read_pods({"items": pods})
    lead, state, why = status.lead("mini", read_job, read_pods)
    assert (lead is not None) == (answer is not None)
    said = None
    if isinstance(answer, str):
        assert lead
        state, why = status.silent(lead, answer)
    elif answer:
        said = status.read_answer(json.dumps(answer))
    return status.document(status.Seen("mini", NOW, read_pods, read_job, said, state, why))


@pytest.mark.parametrize("case", CASES)
def test_the_table(case: str) -> None:
    *seen, text = CASES[case]
    assert status.table(see(*seen)) == text


@pytest.mark.parametrize("case", CASES)
def test_each_node_is_counted_once(case: str) -> None:
    *seen, _ = CASES[case]
    found = see(*seen)
    if found["nodes"]:
        assert sum(found["nodes"].values()) == found["maxSize"]


def test_the_document() -> None:
    *seen, _ = CASES["busy"]
    assert see(*seen) == {
        "name": "mini",
        "namespace": "lab",
        "age": 770,
        "state": "Running",
        "why": "",
        "size": 4,
        "sizeFrom": "job",
        "maxSize": 8,
        "pods": [
            {"ranks": "0-2", "reason": "Running"},
            {"ranks": "3", "reason": "Pending: ImagePullBackOff"},
            {"ranks": "4", "reason": "Running: Terminating"},
        ],
        "containers": [],
        "flux": "0.88.0",
        "scheduler": {"name": "Fluxion", "queuePolicy": "easy", "matchPolicy": "lonode"},
        "autoscaling": {"min": 1, "max": 6},
        "quorum": {"needed": 4, "reached": True},
        "nodes": {"up": 1, "drained": 3, "missing": 1, "notStarted": 3},
        "drained": [
            {"ranks": "1", "reason": "bad [31mDIMM"},
            {"ranks": "2", "reason": "bad DIMM"},
            {"ranks": "4", "reason": "minicluster: the pod was told to stop"},
        ],
        "missing": [{"ranks": "3", "reason": "Pending: ImagePullBackOff"}],
        "cores": {"free": 76, "allocated": 20, "total": 128},
        "gpus": {"free": 0, "allocated": 6, "total": 8},
        "jobs": {"pending": 4, "running": 3, "done": 120, "failed": 2, "canceled": 0, "timeout": 1},
        "longestWait": 62.4,
        "bursts": {"registered": 3, "up": 2},
    }


def test_the_keys_are_the_same_with_and_without_an_answer_and_in_the_help() -> None:
    keys = [list(see(*seen)) for *seen, _ in CASES.values()]
    assert keys == [keys[0]] * len(CASES)
    lines = [line.strip().split("  ")[0] for line in (command.command.help or "").splitlines() if "  " in line.strip()]
    assert sorted(name for line in lines for name in line.split(", ")) == sorted(keys[0])


def test_the_newest_pod_of_an_index_counts() -> None:
    old, new = "2030-01-01T11:00:00Z", "2030-01-01T11:30:00Z"
    items = [pod(0, RUNNING, new), pod(0, ended(85), old), pod(1, ended(85), old), pod(1, RUNNING, new)]
    items += [pod(2, RUNNING, old), pod(2, RUNNING, old, deletionTimestamp=new), pod(3, labels={})]
    assert {index: one.state for index, one in status.read_pods({"items": items}).items()} == {
        0: "Running",
        1: "Running",
        2: "Running",
    }


def test_a_job_of_somebody_elses_is_no_minicluster() -> None:
    other = job()
    other["metadata"]["annotations"] = {}
    assert status.read_job(other) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.9, "59s"), (60, "1m"), (61, "1m1s"), (3600, "1h"), (3661, "1h1m"), (86400, "1d"), (93784, "1d2h")],
)
def test_durations_have_two_units(seconds: float, text: str) -> None:
    assert status.duration(seconds) == text


# ---- the command, with a kubectl of the test's

FAKE = """#!/bin/sh
# answers the first time as told in NAME, the nth time as in NAME.n where that is there
folder=${0%/*}
echo "$*" >>"$folder/asked"
case " $* " in
*" get pods "*) name=pods ;;
*" get job "*) name=job ;;
*" get jobs "*) name=jobs ;;
*" get configmap "*) name=configmap ;;
*" get configmaps "*) name=configmaps ;;
*" exec "*) name=exec ;;
esac
echo >>"$folder/$name.count"
count=$(($(wc -l <"$folder/$name.count")))
[ ! -e "$folder/$name.$count" ] || name=$name.$count
. "$folder/$name"
"""
Kubectl = Callable[..., Result]


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    """Runs `minicluster status`, kubectl answering as told: JSON to print, or what it says as it fails."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "kubectl").write_text(FAKE)
    (tmp_path / "kubectl").chmod(0o755)

    def run(*words: str, **answers: Any) -> Result:
        created = (datetime.now(UTC) - timedelta(hours=76, minutes=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
        defaults = {
            "pods": {"items": [pod(index, created=created) for index in range(4)]},
            "job": job(created=created),
            "exec": [SETTINGS, flux()],
            **dict.fromkeys(("jobs", "configmap", "configmaps")),
        }
        for name, answer in (defaults | answers).items():
            code, said, out = (1, answer, ">&2") if isinstance(answer, str) else (0, json.dumps(answer), "")
            say = "" if answer is None else f"cat {out} <<'END'\n{said}\nEND\n"
            (tmp_path / name.replace("_", ".")).write_text(f"{say}exit {code}\n")
        return CliRunner().invoke(front_door, ["status", *words])

    return run


def config(release: str = "mini", **metadata: Any) -> dict[str, Any]:
    """Return the ConfigMap of the MiniCluster mini, of a release."""
    return {
        "metadata": {
            "name": "mini-config",
            "namespace": "lab",
            "creationTimestamp": (datetime.now(UTC) - timedelta(minutes=90)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "labels": {"app.kubernetes.io/name": "minicluster", "app.kubernetes.io/instance": "mini"},
            "annotations": {"meta.helm.sh/release-name": release},
            **metadata,
        },
        "data": {"agent.json": json.dumps({"size": 4, "max_size": 8, "policy": None})},
    }


GONE = """\
MiniCluster  mini, namespace lab, age 1h30m
State        Gone: its Job ended and was cleaned up, or was deleted; `helm
             uninstall` removes the rest
Size         4 of at most 8
"""


def test_a_release_that_ended_and_was_cleaned_up(kubectl: Kubectl) -> None:
    done = kubectl("mini", **NONE, configmap=config())
    assert (done.exit_code, done.stdout, done.stderr) == (0, GONE, "")
    assert json.loads(kubectl("mini", "-o", "json", **NONE, configmap=config()).stdout)["state"] == "Gone"


@pytest.mark.parametrize(
    "left", [config(labels={}), config() | {"data": {}}, FORBIDDEN.replace("jobs.batch", "configmaps")]
)
def test_what_is_left_of_something_else(kubectl: Kubectl, left: object) -> None:
    done = kubectl("mini", **NONE, configmap=left)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("minicluster: there is no MiniCluster mini in ")


def named(release: str, kind: str) -> dict[str, Any]:
    """Return a list of what releases have, as kubectl does."""
    found = job() if kind == "jobs" else config()
    of_it = config(release)["metadata"]
    others = [{"metadata": {}}, {"metadata": {"annotations": {"meta.helm.sh/release-name": "x"}}}]
    return {
        kind: {
            "items": [
                *others,
                found
                | {
                    "metadata": found["metadata"]
                    | {"labels": of_it["labels"]}
                    | {"annotations": {**found["metadata"]["annotations"], **of_it["annotations"]}}
                },
            ]
        }
    }


@pytest.mark.parametrize("kind", ["jobs", "configmaps"])
def test_a_release_whose_minicluster_has_another_name(kubectl: Kubectl, tmp_path: Path, kind: str) -> None:
    (tmp_path / "pods.1").write_text('echo "{\\"items\\": []}"\n')
    (tmp_path / "job.1").write_text("\n")
    answers = named("release", kind) | ({"jobs": FORBIDDEN} if kind == "configmaps" else {})
    done = kubectl("release", "-n", "lab", **answers)
    assert (done.exit_code, done.stdout, done.stderr) == (0, IDLE, "")
    assert asked(tmp_path)[-2].split(" ")[1:4] == ["get", "job", "mini"]


def test_without_a_socket_flux_is_not_asked(kubectl: Kubectl, tmp_path: Path) -> None:
    done = kubectl("mini", job=job(**{"flux.disableSocket": "true"}))
    assert done.stdout.splitlines()[1] == "State        Running: flux.disableSocket is set, so Flux can't be asked"
    assert [line.split()[0] for line in asked(tmp_path)] == ["get", "get"]
    assert "socket" not in kubectl("mini", job=job(**{"flux.disableSocket": "false"})).stdout


def beside(name: str, restarts: int = 0, **state: Any) -> dict[str, Any]:
    """Return the status of a sidecar."""
    last = state.pop("last", None)
    return {"name": name, "restartCount": restarts, "state": state, "lastState": {"terminated": last} if last else {}}


CRASHES = beside("web", 3, waiting={"reason": "CrashLoopBackOff"}, last={"exitCode": 7})
RUNS_AGAIN = beside("web", 1, running={}, last={"exitCode": 7})
CONTAINERS: dict[str, tuple[list[list[dict[str, Any]]], list[tuple[str, str, str]]]] = {
    "all is well": ([[beside("web", running={})], [beside("web", 2, running={}, last={"exitCode": 0})]], []),
    "it begins": ([[beside("web", waiting={"reason": "PodInitializing"}), beside("a", waiting={})]], []),
    "it crashes": ([[CRASHES], [CRASHES]], [("web", "0-1", "CrashLoopBackOff, exit code 7, 3 restarts")]),
    "it runs again": ([[RUNS_AGAIN], [CRASHES]], [
        ("web", "0", "exit code 7, 1 restart"), ("web", "1", "CrashLoopBackOff, exit code 7, 3 restarts")]),
    "no image": ([[beside("a", running={}), beside("b", waiting={"reason": "ImagePullBackOff"})]],
        [("b", "0", "ImagePullBackOff")]),
    "it ended": ([[beside("a", terminated={"exitCode": 3})]], [("a", "0", "exit code 3")]),
    "the one that runs Flux": ([[beside("mini", 1, running={}, last={"exitCode": 85})]], []),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTAINERS)
def test_containers_that_fail_are_named(case: str) -> None:
    containers, expected = CONTAINERS[case]
    pods = [pod(index, {**RUNNING, "initContainerStatuses": found}) for index, found in enumerate(containers)]
    found = see(job(), pods, [SETTINGS, flux()])
    assert [tuple(one[key] for key in ("name", "ranks", "reason")) for one in found["containers"]] == expected
    shown = [line for line in status.table(found).splitlines() if " fails: " in line]
    assert [line[13:].strip() for line in shown] == [f"{ranks}: {name} fails: {why}" for name, ranks, why in expected]
    assert shown == [] or shown[0].startswith("Containers ")


def test_containers_of_a_pod_that_leaves_or_ended_are_not_looked_at() -> None:
    for one in (pod(0, {**RUNNING, "initContainerStatuses": [CRASHES]}, deletionTimestamp=CREATED),
                pod(0, {"phase": "Succeeded", "initContainerStatuses": [CRASHES]})):  # fmt: skip
        assert status.read_pods({"items": [one]})[0].failing == {}


def asked(folder: Path) -> list[str]:
    """Return the command lines that kubectl got."""
    return (folder / "asked").read_text().splitlines()


IDLE = """\
MiniCluster  mini, namespace lab, age 3d4h, Flux 0.88.0
State        Running
Size         4 of at most 8
Scheduler    Fluxion (easy, lonode)
Quorum       4, reached
Nodes         4 up       0 drained     0 missing  4 not started
Cores        16 free     0 allocated  16 total
Jobs          0 pending  0 running     0 done
"""


def test_the_command_asks_for_pods_the_job_and_the_lead(kubectl: Kubectl, tmp_path: Path) -> None:
    done = kubectl("mini", "-n", "lab", "--context", "a b")
    assert (done.exit_code, done.stdout, done.stderr) == (0, IDLE, "")
    given = "--context=a b --namespace=lab"
    assert asked(tmp_path) == [
        f"{given} get pods --selector=app.kubernetes.io/instance=mini,app.kubernetes.io/component=broker "
        "--ignore-not-found --output=json --request-timeout=10s",
        f"{given} get job mini --ignore-not-found --output=json --request-timeout=10s",
        f"{given} exec mini-0-x --container=mini -- sh -c {ask.QUESTION}",
    ]


def test_without_options_kubectl_chooses(kubectl: Kubectl, tmp_path: Path) -> None:
    assert kubectl("mini").stdout == IDLE
    assert [line.split()[0] for line in asked(tmp_path)] == ["get", "get", "exec"]


def test_json(kubectl: Kubectl) -> None:
    done = kubectl("mini", "-o", "json")
    found = json.loads(done.stdout)
    assert found.pop("age") // 3600 == 76
    *seen, _ = CASES["idle"]
    expected = see(*seen)
    del expected["age"]
    assert (done.exit_code, found) == (0, expected)


@pytest.mark.parametrize("unreadable", [FORBIDDEN, None])
def test_a_user_who_may_only_see_pods_and_exec(kubectl: Kubectl, unreadable: str | None) -> None:
    expected = IDLE.replace("at most 8", "at most 8 (counted by its pods: jobs can't be read)")
    done = kubectl("mini", job=unreadable)
    assert (done.exit_code, done.stdout, done.stderr) == (0, expected, "")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Unable to connect to Flux: no socket\ncommand terminated with exit code 1", "connect to Flux: no socket)"),
        ("command terminated with exit code 137", "(exit code 1)"),
        ('error: unable to upgrade connection: container not found ("mini")', 'container not found ("mini"))'),
        ({}, "it printed no JSON"),
        ([{}], "it printed no JSON"),
    ],
)
def test_a_lead_that_does_not_answer_is_no_error(kubectl: Kubectl, said: Any, shown: str) -> None:
    done = kubectl("mini", exec=said)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "State        Unknown: the lead's broker does not answer (" in done.stdout
    assert shown in " ".join(done.stdout.split())
    assert done.stdout.endswith("\nPods         0-3: Running\n")


def test_a_pod_that_is_not_there_is_not_asked(kubectl: Kubectl, tmp_path: Path) -> None:
    done = kubectl("mini", pods={"items": []})
    assert "the lead has no pod" in done.stdout
    assert len(asked(tmp_path)) == 2


NONE = {"pods": {"items": []}, "job": None}
ERRORS: dict[str, tuple[list[str], dict[str, Any], str]] = {
    "no release": (
        ["mini", "-n", "lab"],
        NONE,
        "there is no MiniCluster mini in namespace lab: see `helm list -A` and give its -n",
    ),
    "no release here": (
        ["mini"],
        NONE,
        "there is no MiniCluster mini in the current namespace: see `helm list -A` and give its -n",
    ),
    "no name": (["a,b"], {}, "'a,b' is no name of a MiniCluster: give the release's, of a-z, 0-9 and -"),
    "no pods for me": (
        ["mini"],
        {"pods": FORBIDDEN.replace("jobs", "pods")},
        f"{FORBIDDEN.replace('jobs', 'pods')}: {NEEDS}",
    ),
    "no exec for me": (["mini"], {"exec": NO_EXEC}, f"{NO_EXEC.removeprefix('error: ')}: {NEEDS}"),
    "no server": (
        ["mini"],
        {"pods": REFUSED},
        f"{REFUSED.splitlines()[1]}: check KUBECONFIG, --context and --namespace",
    ),
    "no server any more": (
        ["mini"],
        {"job": REFUSED},
        f"{REFUSED.splitlines()[1]}: check KUBECONFIG, --context and --namespace",
    ),
    "no context": (
        ["mini", "--context=x"],
        {"pods": 'error: context "x" does not exist'},
        'context "x" does not exist: check KUBECONFIG, --context and --namespace',
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_is_one_line(kubectl: Kubectl, case: str) -> None:
    words, answers, message = ERRORS[case]
    for watch in ([], ["--watch"]):
        done = kubectl(*words, *watch, **answers)
        assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"minicluster: {message}\n")


def test_no_kubectl(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    done = kubectl("mini")
    message = "there is no kubectl in PATH: install it, https://kubernetes.io/docs/tasks/tools"
    assert (done.exit_code, done.stderr) == (1, f"minicluster: {message}\n")


@pytest.mark.parametrize(("name", "state"), [("pods", None), ("exec", "Unknown")])
def test_kubectl_that_hangs(
    kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, state: str | None
) -> None:
    monkeypatch.setattr(*((client, "GET_SECONDS") if name == "pods" else (ask, "EXEC_SECONDS")), 0.3)
    sleep = shutil.which("sleep")
    fake = (
        (tmp_path / "kubectl").read_text().replace('. "$folder', f'[ $name != {name} ] || exec {sleep} 60\n. "$folder')
    )
    (tmp_path / "kubectl").write_text(fake)
    done = kubectl("mini")
    assert "no answer within 0.3 s" in " ".join(done.output.split())
    assert done.exit_code == (0 if state else 1)


def test_watch_shows_it_again_until_ctrl_c(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "time", SimpleNamespace(sleep=sleep))
    # the second time Kubernetes is away
    done = kubectl("mini", "-w", pods_2=REFUSED)
    assert (done.exit_code, done.stdout, slept) == (0, IDLE * 2, [2, 2, 2])
    assert done.stderr == f"minicluster: {ERRORS['no server'][2]}\n"
