"""Jobs that a pod puts back into the queue when it is told to stop."""

import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from broker_clusters import Cluster, Make

from tools.clients import until

RETRY = 85
#: With this grace period, jobs may go on for 10 s
SHORT: dict[str, Any] = {"size": 2, "logging": {"quiet": True}, "pod": {"terminationGracePeriodSeconds": 20}}
MARKED = "--setattr=user.minicluster.requeue=1"
OVER = "the pod's grace period is over"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that all pods see; each has a /tmp of its own."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


#: A job that counts, and saves the count when it gets a signal; its next run adds 1000. A file ends it.
COUNTS = """\
save() { echo "$n" >"$SHARED/state"; echo "saved at $n" >>"$SHARED/log"; exit 3; }
trap save SIGNAL
n=0
[ ! -e "$SHARED/state" ] || { n=$(cat "$SHARED/state"); n=$((n + 1000)); echo "goes on" >>"$SHARED/log"; }
echo "starts $MODE" >>"$SHARED/log"
while [ ! -e "$SHARED/end" ]; do n=$((n + 1)); sleep 0.1; done
echo "ends" >>"$SHARED/log"
[ "$n" -gt 1000 ]
"""


def counts(shared: Path, signum: str = "TERM") -> str:
    """Return the path of the job's script."""
    file = shared / "job"
    file.write_text(COUNTS.replace("SIGNAL", signum).replace("$SHARED", str(shared)))
    return str(file)


def lines(shared: Path) -> list[str]:
    """Return what the job noted."""
    return (shared / "log").read_text().splitlines() if (shared / "log").exists() else []


def listed(cluster: Cluster, *words: str) -> list[list[str]]:
    """Return id, result or state, and the note of the exception, of all jobs."""
    text = cluster.lead.flux("jobs", "-a", "-n", "-o", "{id.f58};{status};{exception.note}", *words)
    return sorted(line.replace("ƒ", "f").split(";") for line in text.splitlines())


def started(cluster: Cluster, *words: str) -> str:
    """Return the id of a new job that runs."""
    job = cluster.lead.flux("submit", *words).strip()
    until(lambda: cluster.lead.flux("jobs", "-n", "-o", "{state}", job).strip() == "RUN")
    return cluster.lead.flux("job", "id", "--to=f58plain", job).strip()


def row(cluster: Cluster, job: str) -> list[str]:
    """Return a job's state or result, and the note of its exception."""
    return next(rest for name, *rest in listed(cluster) if name == job)


def only_other(cluster: Cluster, *jobs: str) -> str:
    """Return the one job that is not among these."""
    [other] = {name for name, *_ in listed(cluster)} - set(jobs)
    return other


def test_a_job_marked_for_requeue_saves_its_state_and_continues_elsewhere(make: Make, shared: Path) -> None:
    cluster = make(SHORT).start().wait_for_ready()
    job = started(cluster, MARKED, "--env=MODE=there", "--requires=rank:1", "--urgency=20", "sh", counts(shared))
    other = started(cluster, "--requires=rank:1", "--env=MODE=other", "sleep", "600")
    until(lambda: lines(shared))
    cluster.pods[1].signal(signal.SIGTERM)
    assert cluster.pods[1].wait() == RETRY
    copy = only_other(cluster, job, other)
    again = f"it runs again as {copy}"
    assert row(cluster, job) == [
        "CANCELED",
        f"minicluster: the pod was told to stop and its grace period is over: {again}",
    ]
    assert row(cluster, copy) == ["SCHED", ""]
    assert cluster.pods[1].log.splitlines() == [
        f"minicluster: job {job} is cancelled and runs again as {copy}: {OVER}",
        f"minicluster: job {other} is cancelled: {OVER}",
    ]
    assert cluster.lead.flux("jobs", "-n", "-o", "{urgency}", copy) == "20\n"
    cluster.start([1])
    until(lambda: len(lines(shared)) == 4)
    (shared / "end").touch()
    assert until(lambda: row(cluster, copy)[0] == "COMPLETED")
    assert [line.partition(" at ")[0] for line in lines(shared)] == [
        "starts there", "saved", "goes on", "starts there", "ends"
    ]  # fmt: skip


def test_a_job_gets_its_chosen_signal_and_runs_again_unless_it_succeeded(make: Make, shared: Path) -> None:
    """The grace period is longer than this test waits, so only the signal can end these jobs."""
    cluster = make({**SHORT, "pod": {"terminationGracePeriodSeconds": 600}}).start().wait_for_ready()
    chosen = (MARKED, "--setattr=user.minicluster.signal=USR1", "--env=MODE=")
    saves = started(cluster, *chosen, "--requires=rank:1", "sh", counts(shared, "USR1"))
    script = f"trap 'exit 0' USR1; touch {shared}/ready; while :; do sleep 0.1; done"
    ends = started(cluster, *chosen, "--requires=rank:1", "sh", "-c", script)
    until(lambda: lines(shared) and (shared / "ready").exists())
    cluster.pods[1].signal(signal.SIGTERM)
    assert cluster.pods[1].wait() == RETRY
    assert cluster.pods[1].log.splitlines() == [
        f"minicluster: job {job} gets SIGUSR1: the pod was told to stop" for job in (saves, ends)
    ]
    rows = {name: result for name, result, _ in listed(cluster)}
    assert (rows.pop(saves), rows.pop(ends)) == ("FAILED", "COMPLETED")
    # the job that ended well does not run again
    assert sorted(rows.values()) == ["FAILED", "SCHED"]
    assert any(line.startswith("saved at") for line in lines(shared))


def test_a_job_over_several_pods_that_leave_is_put_back_once(make: Make) -> None:
    values = {**SHORT, "size": 3, "pod": {**SHORT["pod"], "onStop": "requeue"}}
    cluster = make(values).start().wait_for_ready()
    job = started(cluster, "-N2", "-n2", "--requires=ranks:1-2", "sleep", "600")
    never = started(cluster, "--setattr=user.minicluster.requeue=0", "--requires=rank:1", "sleep", "600")
    for index in (1, 2):
        cluster.pods[index].signal(signal.SIGTERM)
    assert [cluster.pods[index].wait() for index in (1, 2)] == [RETRY, RETRY]
    copy = only_other(cluster, job, never)
    assert (row(cluster, job)[0], row(cluster, never)[0], row(cluster, copy)) == ("CANCELED", "CANCELED", ["SCHED", ""])
    # the second pod finds nothing to cancel if the first was much quicker
    said = f"job {job} is cancelled and runs again as {copy}"
    assert any(said in cluster.pods[index].log for index in (1, 2))
    # the copy is put back too, also once
    cluster.start([1, 2])
    until(lambda: row(cluster, copy)[0] == "RUN")
    cluster.pods[2].signal(signal.SIGTERM)
    assert cluster.pods[2].wait() == RETRY
    assert row(cluster, only_other(cluster, job, never, copy)) == ["SCHED", ""]


def test_the_next_lead_runs_cancelled_jobs_again_with_a_kept_queue(make: Make, shared: Path) -> None:
    values = {**SHORT, "size": 1, "archive": {"path": f"{shared}/state.tgz"}}
    cluster = make(values).start().wait_for_ready()
    job = started(cluster, MARKED, "--env=MODE=", "sh", counts(shared))
    until(lambda: lines(shared))
    cluster.lead.signal(signal.SIGTERM)
    assert cluster.lead.wait() == RETRY
    (shared / "end").touch()
    cluster.start([0]).wait_for_ready()
    copy = only_other(cluster, job)
    assert until(lambda: row(cluster, copy)[0] == "COMPLETED")
    assert row(cluster, job)[0] == "CANCELED"


@pytest.mark.parametrize("code", [0, 3])
def test_the_work_of_the_cluster_goes_on_after_a_stop_and_keeps_its_exit_code(
    make: Make, shared: Path, code: int
) -> None:
    values = {**SHORT, "tasks": 2, "pod": {**SHORT["pod"], "onStop": "requeue"}}
    # the task in pod 1
    command = f"""\
[ "$FLUX_TASK_RANK" = 1 ] || exit 0
echo x >>{shared}/starts
until [ -e {shared}/end ]; do sleep 0.1; done
echo done
exit {code}
"""
    cluster = make(values, {"command": command}).start()
    starts = shared / "starts"
    until(starts.exists)
    cluster.pods[1].signal(signal.SIGTERM)
    assert cluster.pods[1].wait() == RETRY
    cluster.start([1])
    until(lambda: starts.read_text().count("x") == 2)
    (shared / "end").touch()
    assert cluster.lead.wait() == code
    assert "the work goes on as job" in cluster.lead.log
    assert "done" in cluster.lead.log.splitlines()


def test_a_job_that_loses_a_node_runs_again(make: Make) -> None:
    cluster = make(SHORT).start().wait_for_ready()
    again = started(cluster, MARKED, "--requires=rank:1", "sleep", "600")
    never = started(cluster, "--requires=rank:1", "sleep", "600")
    cluster.pods[1].kill_broker()
    copy = until(lambda: [name for name, *_ in listed(cluster) if name not in (again, never)])[0]
    assert (row(cluster, again)[0], row(cluster, never)[0]) == ("FAILED", "FAILED")
    # the broker comes back in its pod
    until(lambda: row(cluster, copy)[0] == "RUN")
    assert f"minicluster: job {again} lost a node: it runs again as {copy}" in cluster.lead.log
    assert never not in cluster.lead.log


def test_a_job_that_was_warned_by_its_leaving_pod_and_then_loses_its_node_has_one_copy(make: Make) -> None:
    values = {**SHORT, "size": 3, "pod": {"terminationGracePeriodSeconds": 600}}
    cluster = make(values).start().wait_for_ready()
    # what had been put back was read once, at the first loss
    first = started(cluster, MARKED, "--requires=rank:1", "sleep", "600")
    cluster.pods[1].kill_broker()
    other = until(lambda: [name for name, *_ in listed(cluster) if name != first])[0]
    words = (
        "--setattr=user.minicluster.signal=USR1",
        "--requires=rank:2",
        "sh",
        "-c",
        "trap '' USR1; sleep 600",
    )
    job = started(cluster, MARKED, *words)
    cluster.pods[2].signal(signal.SIGTERM)
    until(lambda: f"job {job} gets SIGUSR1" in cluster.pods[2].log)
    cluster.pods[2].kill_broker()
    until(lambda: row(cluster, job)[0] == "FAILED")
    # the next loss comes after all that is done about this one
    until(lambda: row(cluster, other)[0] == "RUN")
    cluster.pods[1].kill_broker()
    until(lambda: f"job {other} lost a node: it runs again as" in cluster.lead.log)
    copies = {name for name, *_ in listed(cluster)} - {first, other, job}
    assert len(copies) == 2, listed(cluster)
    assert f"job {job} lost a node" not in cluster.lead.log


def test_the_work_of_the_cluster_goes_on_after_a_loss(make: Make, shared: Path) -> None:
    values = {**SHORT, "tasks": 2, "pod": {**SHORT["pod"], "onStop": "requeue"}}
    command = f"echo x >>{shared}/starts; until [ -e {shared}/end ]; do sleep 0.1; done; exit 3"
    cluster = make(values, {"command": command}).start()
    starts = shared / "starts"
    until(lambda: starts.exists() and starts.read_text().count("x") == 2)
    cluster.pods[1].kill_broker()
    until(lambda: starts.read_text().count("x") == 4)
    (shared / "end").touch()
    assert cluster.lead.wait() == 3
