"""A pod that is told to stop: its jobs may end, later jobs start on other nodes."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from broker_clusters import Cluster, Make
from broker_pods import Pod

from tools.clients import until
from tools.releases import MOUNT

RETRY = 85
FLUX = f"{MOUNT}/bin/flux"
QUIET = {"logging": {"quiet": True}}
TWO = {"size": 2, **QUIET}
#: With this grace period, jobs may go on for 6 s
SHORT = {**TWO, "pod": {"terminationGracePeriodSeconds": 12}}
TOLD = "minicluster: the pod was told to stop"


def shown(cluster: Cluster, job: str, what: str) -> str:
    """Return a field of a job."""
    return cluster.lead.flux("jobs", "-n", "-o", f"{{{what}}}", job).strip()


def started(cluster: Cluster, *words: str) -> str:
    """Return the id of a new job that runs."""
    job = cluster.lead.flux("submit", *words).strip()
    until(lambda: shown(cluster, job, "state") == "RUN")
    return job


def drains(cluster: Cluster) -> str:
    """Return the ranks that are drained, and why."""
    return cluster.lead.flux("resource", "drain", "-n", "-o", "{ranks} {reason}").strip()


def test_a_worker_that_leaves_drains_its_rank_until_its_next_pod_is_back(make: Make) -> None:
    cluster = make(TWO).start().wait_for_ready()
    job = started(cluster, "-N2", "-n2", "sh", "-c", "until [ -e /tmp/end ]; do sleep 0.1; done")
    cluster.pods[1].signal(signal.SIGTERM)
    assert until(lambda: drains(cluster)) == f"1 {TOLD}"
    other = cluster.lead.flux("submit", "--requires=rank:1", "true").strip()
    for pod in cluster.pods.values():
        pod.run("touch", "/tmp/end")
    assert cluster.pods[1].wait() == RETRY
    assert cluster.pods[1].log == ""
    assert (shown(cluster, job, "result"), shown(cluster, other, "state")) == ("COMPLETED", "SCHED")
    cluster.start([1])
    assert until(lambda: shown(cluster, other, "result")) == "COMPLETED"
    assert drains(cluster) == ""


#: rc1 of a worker that takes its time, as where many pods start
SLOW = """mc_start_words="$mc_start_words -o-Sbroker.rc1_path='sleep 30; $("$mc_flux" config builtin rc1_path)'\""""
STATE = 'import flux; print(flux.Flux().rpc("state-machine.get").get()["state"])'
#: When the lead lost its only child
LOST = """import flux, time
child = flux.Flux().rpc("overlay.health", nodeid=0).get()["children"][0]
print(time.time() - child["duration"] if child["status"] in ("offline", "lost") else "")"""


def test_a_worker_that_is_told_to_stop_while_it_joins_stays_drained_until_its_broker_has_ended(make: Make) -> None:
    cluster = make({**TWO, "minSize": 1}, {"commands": {"workerPre": SLOW}}).start()
    cluster.lead.wait_for_ready()
    worker = cluster.pods[1]
    until(lambda: worker.run(FLUX, "python", "-c", STATE).stdout.strip() == "init")
    stop(worker)
    assert worker.wait() == RETRY
    until(lambda: not drains(cluster))
    events = [line.split() for line in cluster.lead.flux("kvs", "eventlog", "get", "resource.eventlog").splitlines()]
    times = {name: float(at) for at, name, *_ in events}
    assert times["drain"] < float(cluster.lead.flux("python", "-c", LOST)) <= times["undrain"]


def stop(pod: Pod) -> None:
    """Tell a pod to stop as the kubelet does: the hook, then the signal, whether or not the process can handle it."""
    until(lambda: pod.run("sh", f"{MOUNT}/minicluster/stop.sh").returncode == 0)
    # a process that sees the hook's file before the signal ends by itself
    with suppress(ProcessLookupError):
        os.kill(pod.first, signal.SIGTERM)


def test_a_worker_can_be_told_to_stop_at_any_instant(make: Make) -> None:
    cluster = make(TWO).start().wait_for_ready()
    for step in range(14):
        cluster.lead.flux("submit", "--quiet", "--cc=1-8", "sleep", "0.2")
        stop(cluster.pods[1])
        assert cluster.pods[1].wait() == RETRY, f"step {step}: {cluster.pods[1].log}"
        cluster.start([1])
        time.sleep(step * 0.15)  # no synchronisation: the instant is what varies
    until(lambda: cluster.lead.flux("jobs", "-n", "-o", "{id}") == "")
    results = cluster.lead.flux("jobs", "-a", "-n", "-o", "{id} {ranks} {result} {exception.note}").splitlines()
    assert [line for line in results if " COMPLETED" not in line] == []
    assert len(results) == 14 * 8


def test_a_lead_can_be_told_to_stop_at_any_instant(make: Make) -> None:
    cluster = make({"size": 1, **QUIET})
    for step in range(10):
        cluster.start()
        time.sleep(step * 0.2)
        stop(cluster.lead)
        assert cluster.lead.wait() == RETRY, f"step {step}: {cluster.lead.log}"


def test_a_rank_that_others_drained_stays_drained(make: Make) -> None:
    cluster = make(TWO).start().wait_for_ready()
    cluster.lead.flux("resource", "drain", "1", "bad DIMM")
    cluster.pods[1].signal(signal.SIGTERM)
    assert cluster.pods[1].wait() == RETRY
    cluster.start([1])
    cluster.pods[1].wait_for_ready()
    # once this later job has run, the new pod has asked why its rank is drained
    assert cluster.pods[1].flux("run", "--requires=rank:0", "echo", "up") == "up\n"
    assert drains(cluster) == "1 bad DIMM"


def test_a_job_is_cancelled_when_the_grace_period_of_its_pod_is_over(make: Make) -> None:
    cluster = make(SHORT).start().wait_for_ready()
    job = started(cluster, "-N2", "-n2", "sleep", "600")
    cluster.pods[1].signal(signal.SIGTERM)
    assert cluster.pods[1].wait() == RETRY
    # the lead's part of the job may end later than the pod
    until(lambda: shown(cluster, job, "result") == "CANCELED")
    assert shown(cluster, job, "exception.note") == f"{TOLD} and its grace period is over"
    name = cluster.lead.flux("job", "id", "--to=f58plain", job).strip()
    assert cluster.pods[1].log == f"minicluster: job {name} is cancelled: the pod's grace period is over\n"


@pytest.mark.parametrize("code", [0, 3])
def test_work_that_ends_while_the_lead_leaves_decides_its_exit_code(make: Make, code: int) -> None:
    script = f"touch /tmp/runs; until [ -e /tmp/end ]; do sleep 0.1; done; echo done; exit {code}"
    cluster = make(TWO, {"command": script}).start()
    until(lambda: cluster.lead.run("test", "-e", "/tmp/runs").returncode == 0)
    cluster.lead.signal(signal.SIGTERM)
    until(lambda: "Scheduling is stopped" in cluster.lead.flux("queue", "status"))
    cluster.lead.run("touch", "/tmp/end")
    assert cluster.lead.wait() == code
    assert cluster.lead.log.splitlines()[0] == "done"


def test_a_lead_whose_work_outlasts_the_grace_period_is_replaced(make: Make) -> None:
    cluster = make(SHORT, {"command": "until [ -e /tmp/end ]; do sleep 0.1; done"}).start().wait_for_ready()
    until(lambda: cluster.lead.flux("jobs", "-n", "-o", "{state}").strip() == "RUN")
    cluster.lead.signal(signal.SIGTERM)
    assert cluster.lead.wait() == RETRY


def test_a_pod_without_jobs_stops_at_once(make: Make) -> None:
    cluster = make({**TWO, "pod": {"terminationGracePeriodSeconds": 3600}}).start().wait_for_ready()
    for index in (1, 0):
        cluster.pods[index].signal(signal.SIGTERM)
    assert cluster.wait() == [RETRY, RETRY]


@pytest.fixture
def volume() -> Iterator[Path]:
    """A folder that all pods share; each has a /tmp of its own."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def test_a_job_that_a_kill_left_half_allocated_does_not_stop_the_queue(make: Make, volume: Path) -> None:
    """The test makes the state that such a kill leaves in the KVS: resources that no event of the job mentions."""
    cluster = make({**QUIET, "archive": {"path": f"{volume}/state.tgz"}}).start().wait_for_ready()
    lead = cluster.lead
    stuck, behind = (lead.flux("submit", "--urgency=hold", "true").strip() for _ in range(2))
    resources = lead.flux("job", "info", lead.flux("submit", "--wait", "true").strip(), "R").strip()
    lead.flux("kvs", "put", "--raw", f"{lead.flux('job', 'id', '--to=kvs', stuck).strip()}.R={resources}")
    lead.signal(signal.SIGTERM)
    assert lead.wait() == RETRY
    cluster.start([0]).wait_for_ready()
    for job in (stuck, behind):
        cluster.lead.flux("job", "urgency", job, "16")
    assert until(lambda: shown(cluster, behind, "result")) == "COMPLETED"
    # an older Flux gives the job its nodes once more
    if shown(cluster, stuck, "result") != "COMPLETED":
        assert shown(cluster, stuck, "result") == "CANCELED"
        _, _, copy = shown(cluster, stuck, "exception.note").partition(" before it ran: it runs again as ")
        assert until(lambda: shown(cluster, copy, "result")) == "COMPLETED", cluster.lead.flux("job", "eventlog", copy)


#: A launcher and its job; each prints how it ended
LAUNCHES = """\
trap 'echo the launcher is told; flux jobs -n -o {state}; exit 4' TERM
flux submit --quiet --output=/tmp/out sh -c 'touch /tmp/runs; until [ -e /tmp/end ]; do sleep 0.1; done; echo job'
while [ $(flux jobs -n -o {id} | wc -l) != 0 ]; do sleep 0.1; done
cat /tmp/out
exit 3
"""


@pytest.mark.parametrize("in_time", [True, False], ids=["in time", "late"])
def test_a_launcher_gets_the_same_grace_period_as_a_job(make: Make, in_time: bool) -> None:
    # a busy machine takes some seconds of it
    grace = {"pod": {"terminationGracePeriodSeconds": 60}} if in_time else SHORT
    cluster = make({**SHORT, **grace}, {"command": LAUNCHES, "launcher": True}).start()
    until(lambda: cluster.lead.run("test", "-e", "/tmp/runs").returncode == 0)
    cluster.lead.signal(signal.SIGTERM)
    until(lambda: "Scheduling is stopped" in cluster.lead.flux("queue", "status"))
    if in_time:
        cluster.lead.run("touch", "/tmp/end")
    assert cluster.lead.wait() == (3 if in_time else RETRY)
    lines = cluster.lead.log.splitlines()
    if in_time:
        # a module of Flux 0.88 may complain at its own end, in a line between these
        ours = [line for line in lines if line == "job" or line.startswith("minicluster: ")]
        assert ours == ["job", "minicluster: the job failed with exit code 3"]
    else:
        # the job went on until the launcher had ended
        told = "minicluster: the launcher is told to stop: the pod's grace period is over"
        # it may stand between the launcher's lines
        lines.remove(told)
        assert lines[lines.index("the launcher is told") + 1] == "RUN"


def test_the_queue_is_dumped_before_the_jobs_end(make: Make, volume: Path) -> None:
    archive = volume / "state.tgz"
    cluster = make({"size": 1, "archive": {"path": str(archive)}}).start().wait_for_ready()
    held = cluster.lead.flux("submit", "--urgency=hold", "true").strip()
    running = started(cluster, "sleep", "600")
    assert not archive.exists()
    cluster.lead.signal(signal.SIGTERM)
    until(archive.exists)
    # the lead is killed before it could dump at its end
    cluster.lead.kill()
    cluster.start([0]).wait_for_ready()
    assert f"UTC is restored from {archive}" in cluster.lead.log
    assert "saved no state" not in cluster.lead.log
    assert (shown(cluster, held, "state"), shown(cluster, running, "result")) == ("SCHED", "FAILED")
    # a kill leaves no dump
    cluster.lead.kill()
    cluster.start([0]).wait_for_ready()
    assert "saved no state: its jobs are lost" in cluster.lead.log


def test_a_short_grace_period_has_time_for_the_archive(make: Make, volume: Path) -> None:
    """The same holds for a job that ignores SIGTERM."""
    archive = volume / "state.tgz"
    grace = 16
    values = {**QUIET, "archive": {"path": str(archive)}, "pod": {"terminationGracePeriodSeconds": grace}}
    cluster = make(values).start().wait_for_ready()
    started(cluster, "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
    begin = time.monotonic()
    cluster.lead.signal(signal.SIGTERM)
    assert cluster.lead.wait() == RETRY
    assert time.monotonic() - begin < grace
    assert archive.exists()
    assert "the state was not dumped" not in cluster.lead.log
