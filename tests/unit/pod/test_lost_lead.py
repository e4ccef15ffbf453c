"""What a worker does when the connection to its lead is gone."""

import errno
import os
import signal
from typing import Any

import pytest
from fake_flux import Clock, FakeFlux, run_program


class Worker(FakeFlux):
    """A worker's broker; it records where its requests go, and ends when it is killed."""

    def state_machine_get(self, _: Any, nodeid: int | None = None) -> dict[str, str]:
        self.done.append(("asked", nodeid))
        if nodeid == 0 and "lost" in self.done:
            raise OSError(errno.EHOSTUNREACH, "No route to host")
        if "killed" in self.done:
            raise ConnectionResetError
        return {"state": self.state}


def watched(monkeypatch: pytest.MonkeyPatch, clock: Clock, worker: Worker) -> float:
    """Run the program to its end, and return when it ended; the broker has the process id 4711."""

    def kill(pid: int, number: int) -> None:
        assert (pid, number) == (4711, signal.SIGKILL)
        worker.done.append("killed")

    monkeypatch.setattr(os, "kill", kill)
    run_program(monkeypatch, worker, "lost_lead.py", clock=clock)
    return clock.now


def test_the_lead_gets_a_message_and_a_broker_that_runs_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker({}, set(), state="run")
    assert watched(monkeypatch, Clock(), worker) == 20
    assert worker.done[0] == ("asked", 0)
    assert "killed" not in worker.done


@pytest.mark.parametrize("begin", [0.0, 5.0])
def test_a_broker_that_waits_for_a_goodbye_is_killed(monkeypatch: pytest.MonkeyPatch, begin: float) -> None:
    worker = Worker({}, set(), state="finalize")
    clock = Clock(happens={begin: lambda: setattr(worker, "state", "goodbye")})
    ended = watched(monkeypatch, clock, worker)
    assert "killed" in worker.done
    assert begin + 2 <= ended <= begin + 3.5


def test_a_broker_that_gets_its_goodbye_in_time_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker({}, set(), state="goodbye")
    clock = Clock(happens={1.5: lambda: setattr(worker, "state", "exit")})
    assert watched(monkeypatch, clock, worker) == 20
    assert "killed" not in worker.done


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_broker_that_waits_for_the_quorum_of_a_lead_that_is_gone_is_killed(
    monkeypatch: pytest.MonkeyPatch, is_lost: bool
) -> None:
    worker = Worker({}, set(), state="quorum")
    clock = Clock(happens={5.0: lambda: worker.done.append("lost")} if is_lost else {})
    ended = watched(monkeypatch, clock, worker)
    assert (ended < 8.5, "killed" in worker.done) == (is_lost, is_lost)
