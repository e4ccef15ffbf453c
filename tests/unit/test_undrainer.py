"""On the lead: which ranks are undrained, and when; how a kept queue is repaired after a kill."""

import errno
import subprocess
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import pytest
from fake_flux import Clock, FakeFlux, run_program

TOLD = "minicluster: the pod was told to stop"


@pytest.fixture
def flux(monkeypatch: pytest.MonkeyPatch) -> FakeFlux:
    """Flux, in which each wait for a change has the next event. Then the broker ends."""
    flux = FakeFlux(dict.fromkeys(range(6), (1, 0)), set(range(6)))

    class Changes:
        def __init__(self, _: object, names: Iterable[str]) -> None:
            assert names == ["nodes"]

        def wait(self, least: float, most: float) -> None:
            assert 0 < least < most
            if not flux.events:
                raise OSError("the broker is gone")
            flux.events.pop(0)()

    changes = ModuleType("changes")
    vars(changes).update(Changes=Changes, PAUSE=0.25)
    monkeypatch.setitem(sys.modules, "changes", changes)
    return flux


def run(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, *words: str, clock: Clock | None = None) -> None:
    """Run the undrainer until the broker ends; its last word is why."""
    with pytest.raises(SystemExit, match="the broker is gone"):
        run_program(monkeypatch, flux, "undrainer.py", *words, clock=clock)


def test_what_we_drained_is_undrained_once_its_pod_is_gone(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> None:
    flux.drained = {1: TOLD, 2: "bad DIMM", 3: TOLD, 4: "minicluster: scaling down", 5: ""}
    flux.online = {0, 1, 2}
    run(flux, monkeypatch)
    assert flux.done == [("undrain", "3,4")]
    assert flux.drained == {1: TOLD, 2: "bad DIMM", 5: ""}


def test_it_looks_when_nodes_change(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []

    def drained() -> None:
        flux.drained = {3: TOLD}
        looked.append(list(flux.done))

    def gone() -> None:
        flux.online = {0, 1, 2, 4, 5}
        looked.append(list(flux.done))

    flux.events = [drained, gone, lambda: None]
    run(flux, monkeypatch)
    assert (looked, flux.done) == ([[], []], [("undrain", "3")])


def test_a_failure_is_its_last_word(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> None:
    flux.errors = {"resource.status": OSError(errno.ENOSYS, "No service matching resource.status is registered")}
    with pytest.raises(SystemExit, match="No service matching resource"):
        run_program(monkeypatch, flux, "undrainer.py")


@pytest.mark.parametrize(("kept", "done"), [(["kept"], [("undrain", "3,4,5")]), ([], [])])
def test_what_we_drained_under_a_previous_lead_has_a_new_pod_although_its_rank_is_online(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, kept: list[str], done: list[Any]
) -> None:
    flux.drained = {1: TOLD, 2: "bad DIMM", 3: TOLD, 4: TOLD, 5: "minicluster: scaling down"}
    flux.drained_at = {1: 101.0, 2: 99.0, 3: 99.0, 4: 50.0, 5: 99.0}
    flux.starttime = 100.0
    run(flux, monkeypatch, *kept)
    assert flux.done == done


# A queue that was kept ---------------------------------------------------------------------------------------

OFFLINE = "Scheduler is offline"


@pytest.fixture
def reloaded(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda words, **_: calls.append(words))
    return calls


def test_a_job_whose_nodes_are_in_the_kvs_alone_does_not_stop_the_others(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, reloaded: list[list[str]]
) -> None:
    for number in (1, 2, 3):
        flux.submit(number)
    flux.run(4, "0")
    flux.kvs = {"job.2.R": {}, "job.4.R": {}}
    clock = Clock()
    clock.happens[5] = lambda: setattr(flux, "stop_reason", OFFLINE)
    clock.happens[7] = lambda: setattr(flux, "stop_reason", "")
    run(flux, monkeypatch, "kept", clock=clock)
    [(what, number, note)] = flux.done
    assert (what, number) == ("cancel", 2)
    assert note.endswith("submit it again")
    assert reloaded[:2] == [["flux", "module", verb, "sched-simple"] for verb in ("remove", "load")]
    assert clock.now < 60


FLUXION = ("sched-fluxion-resource", "sched-fluxion-feasibility", "sched-fluxion-qmanager")
RESTART = [
    ["flux", "module", verb, name] for verb, names in (("remove", FLUXION[::-1]), ("load", FLUXION)) for name in names
]


def test_cores_that_fluxion_holds_for_no_job_are_free_again(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, reloaded: list[list[str]]
) -> None:
    flux.schedulers = FLUXION
    flux.run(1, "0")
    flux.held = {0: (1, 0), 3: (1, 0)}
    clock = Clock()
    # after a restart the scheduler asks Flux again
    monkeypatch.setattr(subprocess, "run", lambda words, **_: (reloaded.append(words), flux.held.pop(3, None)))
    run(flux, monkeypatch, "kept", clock=clock)
    assert (flux.done, reloaded) == ([], RESTART)


def test_cores_that_are_just_being_freed_are_not_leaked(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, reloaded: list[list[str]]
) -> None:
    flux.schedulers = FLUXION
    flux.held = {3: (1, 0)}
    clock = Clock()
    clock.happens[1] = lambda: setattr(flux, "held", {4: (1, 0)})
    clock.happens[2] = lambda: setattr(flux, "held", {})
    run(flux, monkeypatch, "kept", clock=clock)
    assert (flux.done, reloaded) == ([], [])


@pytest.mark.parametrize("reason", ["", TOLD, "maintenance"])
def test_a_scheduler_that_goes_on_is_left_alone(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, reloaded: list[list[str]], reason: str
) -> None:
    flux.submit(1)
    flux.kvs = {"job.1.R": {}}
    flux.stop_reason = reason
    run(flux, monkeypatch, "kept")
    assert (flux.done, reloaded) == ([], [])


def test_named_queues_have_no_single_status(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, reloaded: list[list[str]]
) -> None:
    flux.errors = {"job-manager.queue-status": OSError(22, "Invalid argument")}
    flux.drained, flux.online = {3: TOLD}, {0}
    run(flux, monkeypatch, "kept")
    assert (flux.done, reloaded) == ([("undrain", "3")], [])


def test_without_a_kept_queue_the_scheduler_is_not_looked_at(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, reloaded: list[list[str]]
) -> None:
    flux.stop_reason = OFFLINE
    clock = Clock()
    run(flux, monkeypatch, clock=clock)
    assert (reloaded, clock.now) == ([], 0)
