"""A pod that is told to stop: what it does in Flux before its broker ends."""

import errno
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fake_flux
import pytest
from fake_flux import Clock, FakeFlux, run_program

REASON = "minicluster: the pod was told to stop"
#: Seconds in which jobs may end by themselves
SECONDS = 20
#: Seconds that jobs get to stop after that
KILL = 8
#: Seconds that the broker gets
END = 7
#: What a worker does first
LEAVES = [("drain", "1")]


class Pod:
    """A pod that leaves: its Flux, its clock and its folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.monkeypatch, self.folder, self.clock = monkeypatch, folder, Clock()
        self.kill, self.end = KILL, END
        self.late = self.slow = 0.0  #: seconds since the stop, and since the start of Python
        self.archive = self.report = ""
        self.flux = FakeFlux(dict.fromkeys(range(4), (4, 0)), set(range(4)))

    def at(self, seconds: float, what: Any) -> None:
        """Let something happen after some seconds."""
        self.clock.happens[seconds] = what

    def leave(self, role: str, on_stop: str = "cancel", *lost: str) -> None:
        self.flux.rank = 0 if role == "lead" else 1
        now = self.clock.now
        times = (now - self.late, now - self.slow, SECONDS, self.kill, self.end)
        words = (role, *times, self.folder, on_stop, *(lost or ("kept",)), self.archive, self.report)
        run_program(self.monkeypatch, self.flux, "leave.py", *words, clock=self.clock)

    @property
    def done(self) -> list[Any]:
        return self.flux.done

    @property
    def cancelled(self) -> list[int]:
        return [entry[1] for entry in self.done if entry[0] == "cancel"]

    @property
    def stopping(self) -> bool:
        return (self.folder / "stopping").exists()


@pytest.fixture
def pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pod:
    return Pod(monkeypatch, tmp_path)


# A worker ----------------------------------------------------------------------------------------------------


def test_a_worker_without_jobs_drains_its_rank_and_goes_at_once(pod: Pod) -> None:
    pod.flux.run(1, "0,2-3")
    pod.leave("worker")
    assert (pod.done, pod.flux.drained) == (LEAVES, {1: REASON})
    # it looks twice
    assert (pod.clock.now, pod.stopping) == (0.5, False)


def test_a_job_that_gets_the_rank_just_before_its_drain_is_known_may_end(pod: Pod) -> None:
    pod.at(0.5, lambda: pod.flux.run(1, "1"))
    pod.at(7, lambda: pod.flux.end(1))
    pod.leave("worker")
    assert (pod.done, pod.stopping) == (LEAVES, False)
    assert 7 <= pod.clock.now < 9


def test_a_worker_waits_for_the_jobs_that_it_has(pod: Pod) -> None:
    pod.flux.run(1, "0-2")
    pod.at(7, lambda: pod.flux.end(1))
    pod.leave("worker")
    assert (pod.done, pod.stopping) == (LEAVES, False)
    assert 7 <= pod.clock.now < 8


def test_a_worker_cancels_only_the_jobs_on_its_rank_when_its_time_is_over(
    pod: Pod, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, ranks in ((1, "0"), (2, "0-1"), (3, "2-3"), (4, "1")):
        pod.flux.run(number, ranks)
    pod.flux.submit(5)
    pod.leave("worker")
    assert pod.cancelled == [2, 4]
    assert pod.done[1] == ("cancel", 2, f"{REASON} and its grace period is over")
    assert SECONDS <= pod.clock.now < SECONDS + 1
    assert pod.stopping
    said = "minicluster: job f{} is cancelled: the pod's grace period is over\n"
    assert capsys.readouterr() == (said.format(2) + said.format(4), "")


def test_a_pod_waits_for_the_nodes_of_a_job_not_only_for_its_end(pod: Pod) -> None:
    """A job ends before its nodes are free. If its broker ended in between, the job would not end properly."""
    pod.flux.run(1, "1")
    pod.at(3, pod.flux.jobs.clear)
    pod.at(5, pod.flux.used.clear)
    pod.leave("worker")
    assert 5 <= pod.clock.now < 6
    assert not pod.stopping


def test_a_rank_that_the_lead_undrains_meanwhile_is_drained_again(pod: Pod) -> None:
    """For a pod that was gone: this one is the next of that rank, and leaves already."""
    pod.flux.run(1, "1")
    pod.at(3, pod.flux.drained.clear)
    pod.at(7, lambda: pod.flux.end(1))
    pod.leave("worker")
    assert (pod.done, pod.flux.drained) == ([*LEAVES, LEAVES[0]], {1: REASON})
    assert 7 <= pod.clock.now < 8


@pytest.mark.parametrize("reason", ["bad DIMM", "minicluster: scaling down"])
def test_a_rank_that_is_drained_already_keeps_its_reason_and_its_jobs_may_end(pod: Pod, reason: str) -> None:
    pod.flux.drained = {1: reason}
    pod.flux.run(1, "1")
    pod.at(7, lambda: pod.flux.end(1))
    pod.leave("worker")
    assert (pod.done, pod.flux.drained) == (LEAVES[1:], {1: reason})
    assert 7 <= pod.clock.now < 8


# The lead ----------------------------------------------------------------------------------------------------


def test_the_lead_stops_the_queue_and_waits_for_all_that_runs(pod: Pod) -> None:
    pod.flux.run(1, "2")
    pod.flux.submit(2)
    pod.at(7, lambda: pod.flux.end(1))
    pod.leave("lead")
    assert (pod.done, pod.flux.stop_reason, pod.flux.drained) == (["queue stop"], REASON, {})
    assert (7 <= pod.clock.now < 8, pod.stopping) == (True, False)


def test_the_lead_cancels_all_that_runs_when_its_time_is_over_and_nothing_that_waits(pod: Pod) -> None:
    pod.flux.run(1, "2")
    pod.flux.run(2, "0-1")
    pod.flux.submit(3)
    pod.leave("lead")
    assert pod.cancelled == [1, 2]
    assert pod.stopping


def test_what_is_cancelled_has_no_result(pod: Pod) -> None:
    pod.flux.run(1, "1")
    found = []
    cancel = pod.flux.end
    pod.flux.end = lambda number: (found.append(pod.stopping), cancel(number))[0]  # type: ignore[assignment,func-returns-value]
    pod.leave("lead")
    assert found == [True]


def test_a_job_that_does_not_stop_is_killed_in_time(pod: Pod) -> None:
    pod.flux.run(1, "1")
    pod.flux.run(2, "2")
    pod.flux.stubborn = {2}
    pod.leave("lead")
    assert pod.cancelled == [1, 2]
    assert pod.done[-1] == ("kill", 2, signal.SIGKILL)
    assert SECONDS < pod.clock.now < SECONDS + KILL


@pytest.mark.parametrize(("works", "jobs", "waits"), [(True, True, True), (True, False, False), (False, True, False)])
def test_the_lead_waits_for_the_exit_code_of_work_that_ended(pod: Pod, works: bool, jobs: bool, waits: bool) -> None:
    if works:
        (pod.folder / "working").touch()
    if jobs:
        pod.flux.run(1, "1")
        pod.at(1, lambda: pod.flux.end(1))
    pod.at(3, (pod.folder / "exit-code").touch)
    pod.leave("lead")
    assert (pod.folder / "exit-code").exists() == waits
    assert pod.clock.now < 4


@pytest.mark.parametrize(("kill", "waits"), [(KILL, 5), (2, 2)])
def test_the_wait_for_an_exit_code_has_a_limit(pod: Pod, kill: int, waits: int) -> None:
    pod.kill = kill
    (pod.folder / "working").touch()
    pod.flux.run(1, "1")
    pod.at(1, lambda: pod.flux.end(1))
    pod.leave("lead")
    assert 1 + waits <= pod.clock.now < 2 + waits


# A launcher --------------------------------------------------------------------------------------------------


@pytest.fixture
def launcher(pod: Pod) -> Iterator[subprocess.Popen[bytes]]:
    """A shell that is not a job of Flux, and waits for its child."""
    with subprocess.Popen(["sh", "-c", "sleep 600; exit 3"]) as process:
        (pod.folder / "working").touch()
        (pod.folder / "launcher").write_text(f"{process.pid}\n")
        yield process
        process.kill()


def test_a_launcher_may_end_as_a_job_may(pod: Pod, launcher: subprocess.Popen[bytes]) -> None:
    pod.flux.run(1, "1")
    pod.at(5, lambda: pod.flux.end(1))
    pod.at(7, (pod.folder / "launcher").unlink)
    pod.at(8, (pod.folder / "exit-code").touch)
    pod.leave("lead")
    assert (pod.done, pod.stopping, launcher.poll()) == (["queue stop"], False, None)
    assert 8 <= pod.clock.now < 9


def test_a_launcher_is_told_to_stop_before_its_jobs_are(
    pod: Pod, launcher: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    pod.flux.run(1, "1")
    found: list[tuple[object, ...]] = []

    def gone() -> None:
        # its child was told too, else the shell would still wait for it
        found.append((launcher.wait(10), pod.stopping, pod.cancelled))
        (pod.folder / "launcher").unlink()

    pod.at(SECONDS + 1, gone)
    pod.leave("lead")
    assert found == [(-signal.SIGTERM, True, [])]
    assert pod.cancelled == [1]
    assert capsys.readouterr().out.splitlines() == [
        "minicluster: the launcher is told to stop: the pod's grace period is over",
        "minicluster: job f1 is cancelled: the pod's grace period is over",
    ]


@pytest.mark.usefixtures("launcher")
def test_a_launcher_that_does_not_stop_leaves_its_jobs_time_to_end(pod: Pod) -> None:
    pod.flux.run(1, "1")
    pod.leave("lead")
    assert pod.cancelled == [1]
    assert pod.clock.now <= SECONDS + KILL / 2 + 1


@pytest.mark.usefixtures("launcher")
def test_an_instance_that_ends_with_its_launcher_is_no_error(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        (pod.folder / "launcher").unlink()

        def jobs(*_: object) -> list[Any]:
            raise OSError(errno.ECONNRESET, "Connection reset by peer")

        monkeypatch.setattr(fake_flux.JobList, "fetch_jobs", jobs)

    pod.at(SECONDS + 1, gone)
    pod.leave("lead")
    assert pod.stopping


# Nobody to ask -----------------------------------------------------------------------------------------------


def test_a_worker_that_waits_for_the_quorum_may_have_jobs_already(pod: Pod) -> None:
    pod.flux.state = "quorum"
    pod.leave("worker")
    assert (pod.done, pod.flux.drained) == (LEAVES, {1: REASON})


@pytest.mark.parametrize("role", ["lead", "worker"])
@pytest.mark.parametrize("state", ["cleanup", "shutdown", "finalize"])
def test_a_broker_that_ends_is_left_alone(pod: Pod, role: str, state: str) -> None:
    pod.flux.state = state
    pod.flux.run(1, "0-3")
    pod.leave(role)
    assert (pod.done, pod.clock.now) == ([], 0)


@pytest.mark.parametrize("role", ["lead", "worker"])
@pytest.mark.parametrize("state", ["load-builtins", "none", "join", "config-sync", "init"])
@pytest.mark.parametrize("then", ["shutdown", "gone"])
def test_a_broker_that_starts_is_stopped_at_once(
    pod: Pod, monkeypatch: pytest.MonkeyPatch, role: str, state: str, then: str
) -> None:
    """It misses the first signals."""
    killed: list[tuple[int, int]] = []

    def kill(*call: int) -> None:
        killed.append(call)
        if len(killed) == 3 and then == "gone":
            pod.flux.errors = {"state-machine.get": OSError(errno.ECONNRESET, "Connection reset by peer")}
        elif len(killed) == 3:
            pod.flux.state = then

    monkeypatch.setattr("os.kill", kill)
    pod.flux.state = state
    pod.leave(role)
    assert (pod.done, killed) == (LEAVES if (role, state) == ("worker", "init") else [], [(4711, signal.SIGTERM)] * 3)
    assert pod.clock.now < 1


def test_a_broker_that_joins_all_the_same_leaves_as_any_other(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.kill", lambda *_: setattr(pod.flux, "state", "run"))
    pod.flux.state = "init"
    pod.leave("worker")
    assert (pod.done, pod.flux.drained) == (LEAVES, {1: REASON})


# The grace period --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("late", "slow", "goes_on"),
    [
        (0.0, 0.0, SECONDS),
        # the time since the stop counts: a hook, a slow start of Python
        (6.0, 0.0, SECONDS - 6),
        (6.0, 1.0, SECONDS - 6),
        # on a slow machine the broker's own end is slow, too: 12 s in place of 7
        (4.0, 4.0, SECONDS - 4 - 5),
        # but has half of the period at most
        (9.0, 9.0, (SECONDS + KILL + END) / 2 - KILL - 9),
        (40.0, 9.0, 0),
    ],
)
def test_jobs_end_within_what_is_left_of_the_grace_period(pod: Pod, late: float, slow: float, goes_on: float) -> None:
    pod.late, pod.slow = late, slow
    pod.clock.now = 100.0
    pod.flux.run(1, "1")
    pod.leave("worker")
    assert pod.cancelled == [1]
    assert max(0, goes_on) <= pod.clock.now - 100 <= max(0, goes_on) + 1


# The archive -------------------------------------------------------------------------------------------------


@pytest.fixture
def flux_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A flux in PATH; it writes its words to the file that is its last one, and fails where `fails` is."""
    path = tmp_path / "bin" / "flux"
    path.parent.mkdir()
    path.write_text(
        '#!/bin/sh\nfor to; do :; done\necho "$*" >"$to"\n[ ! -e "$0.fails" ] || { echo no room >&2; exit 3; }\n'
    )
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    return path


@pytest.mark.usefixtures("flux_command")
def test_the_lead_dumps_the_queue_before_its_jobs_end(pod: Pod, tmp_path: Path) -> None:
    archive = tmp_path / "it's $HOME"
    pod.archive = str(archive)
    begun = tmp_path / f"{archive.name}.begun"
    begun.touch()
    pod.flux.run(1, "1")
    found = []
    cancel = pod.flux.end
    pod.flux.end = lambda number: (found.append(archive.read_text()), cancel(number))[0]  # type: ignore[assignment,func-returns-value]
    pod.leave("lead")
    assert found == [f"dump --quiet {archive}.early.tgz\n"]
    assert not begun.exists()
    assert not Path(f"{archive}.early.tgz").exists()


def test_a_dump_that_fails_leaves_the_archive(
    pod: Pod, flux_command: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(f"{flux_command}.fails").touch()
    archive = tmp_path / "state.tgz"
    archive.write_text("good")
    pod.archive = str(archive)
    pod.leave("lead")
    assert (archive.read_text(), pod.done) == ("good", ["queue stop"])
    assert capsys.readouterr().out == "minicluster: the queue is dumped at the broker's end only: no room\n"


def test_the_lead_reports_its_jobs_before_they_end(pod: Pod, tmp_path: Path) -> None:
    pod.report = str(tmp_path / "reports" / "jobs.jsonl")
    pod.flux.run(1, "1", jobspec={"attributes": {"user": {"a": "b"}}})
    pod.leave("lead")
    found = json.loads(Path(pod.report).read_text())
    assert (found["id"], found["state"], found["ranks"], found["user"]) == ("f1", "run", "1", {"a": "b"})
    assert pod.cancelled == [1]


def test_a_report_that_can_not_be_written_stops_nothing(
    pod: Pod, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    pod.report = str(tmp_path / "file" / "jobs.jsonl")
    pod.leave("lead")
    said = f"minicluster: the report of the jobs failed: [Errno 17] File exists: '{tmp_path}/file'\n"
    assert (pod.done, capsys.readouterr().out) == (["queue stop"], said)


@pytest.mark.parametrize("topic", ["state-machine.get", "resource.drain", "resource.status"])
def test_a_lead_that_is_gone_is_an_error_of_one_line(pod: Pod, topic: str) -> None:
    pod.flux.errors = {topic: OSError(errno.EHOSTUNREACH, "No route to host")}
    with pytest.raises(SystemExit) as end:
        pod.leave("worker")
    assert end.value.code == "minicluster: the broker can't be asked about its jobs: [Errno 113] No route to host"
