"""On the lead: which ranks are undrained, and when."""

import errno
import sys
import threading
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import pytest
from fake_flux import Clock, FakeFlux, run_program

TOLD = "minicluster: the pod was told to stop"
#: Set when the recovery of a kept queue has run
RECOVERED = threading.Event()
#: Set when the thread that records jobs runs
RECORDED = threading.Event()


@pytest.fixture
def flux(monkeypatch: pytest.MonkeyPatch) -> FakeFlux:
    """A Flux in which each wait for a change gets the next event; after the last one the broker ends."""
    flux = FakeFlux(dict.fromkeys(range(6), (1, 0)), set(range(6)))

    class Changes:
        def __init__(self, _: object, names: Iterable[str]) -> None:
            assert names == ["nodes", "exceptions"]

        def wait(self, least: float, most: float) -> None:
            assert 0 < least < most
            if not flux.events:
                raise OSError("the broker is gone")
            flux.events.pop(0)()

    changes = ModuleType("changes")
    vars(changes).update(Changes=Changes, pause_after=lambda used: max(0.25, used))
    monkeypatch.setitem(sys.modules, "changes", changes)
    recovery = ModuleType("recovery")
    vars(recovery).update(recover=lambda *_: RECOVERED.set())
    monkeypatch.setitem(sys.modules, "recovery", recovery)
    recorder = ModuleType("recorder")
    vars(recorder).update(
        keep_records=lambda _, ends, __: RECORDED.set() if ends == "ends" else None, Ends=lambda _: "ends"
    )
    monkeypatch.setitem(sys.modules, "recorder", recorder)
    RECOVERED.clear()
    RECORDED.clear()
    return flux


def run(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, *words: str, clock: Clock | None = None) -> None:
    """Run the undrainer until the broker ends, which is its last message."""
    with pytest.raises(SystemExit, match="the broker is gone"):
        run_program(monkeypatch, flux, "undrainer.py", "requeue", *(words or ("lost",)), clock=clock)


def test_the_undrainer_undrains_our_ranks_once_their_pod_is_gone(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = "its memory is short: 4 GiB of /dev/shm belong to no job"
    flux.drained = {0: short, 1: TOLD, 2: "bad DIMM", 3: short, 4: "minicluster: scaling down", 5: ""}
    flux.online = {0, 1, 2}
    run(flux, monkeypatch)
    assert flux.done == [("undrain", "3,4")]
    assert flux.drained == {0: short, 1: TOLD, 2: "bad DIMM", 5: ""}


def test_a_node_that_was_out_gets_jobs_once_its_check_has_succeeded(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = "its check failed: no GPU"
    flux.drained, flux.online = {1: out, 2: out, 3: "its check failed"}, {0, 2, 3}
    looked: list[Any] = []

    def joined() -> None:
        looked.append(list(flux.done))
        flux.online.add(1)

    flux.events = [joined, lambda: None]
    run(flux, monkeypatch)
    assert (looked, flux.done) == ([[("undrain", "2")]], [("undrain", "2"), ("undrain", "1")])
    assert flux.drained == {3: "its check failed"}, "not in our words"


def test_a_rank_that_was_drained_while_it_joined_stays_drained_until_its_broker_has_ended(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch
) -> None:
    flux.online, flux.joining, flux.drained = {0, 1, 2, 4, 5}, {3}, {3: TOLD}
    looked: list[Any] = []

    def joined() -> None:
        looked.append(list(flux.done))
        flux.online, flux.joining = {*range(6)}, set()

    def gone() -> None:
        looked.append(list(flux.done))
        flux.online.remove(3)

    flux.events = [joined, gone, lambda: None]
    run(flux, monkeypatch)
    assert (looked, flux.done) == ([[], []], [("undrain", "3")])


def test_a_rank_that_flux_still_gives_jobs_to_stays_drained(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is lost before the resource module knows of it."""
    flux.drained, flux.lost = {3: TOLD}, {3}
    looked: list[Any] = []

    def known() -> None:
        looked.append(list(flux.done))
        flux.online.remove(3)

    flux.events = [known, lambda: None]
    run(flux, monkeypatch)
    assert (looked, flux.done) == ([[]], [("undrain", "3")])


def test_the_undrainer_does_not_wait_long_for_the_end_of_a_broker_that_joins(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was never online, so no change tells of its end."""
    flux.online, flux.drained = {0, 1, 2, 4, 5}, {1: TOLD}
    waits: list[float] = []

    def wait(_: object, __: float, most: float) -> None:
        waits.append(most)
        clock.now += most
        if len(waits) == 3:
            flux.drained[3], flux.joining = TOLD, {3}
        elif len(waits) == 6:
            raise OSError("the broker is gone")

    monkeypatch.setattr(sys.modules["changes"].Changes, "wait", wait)
    clock = Clock()
    run(flux, monkeypatch, clock=clock)
    assert waits == [1, 2, 4, 1, 1, 1]


def test_a_rank_whose_next_pod_is_there_already_is_undrained(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lead was busy, and has not seen it go."""
    monkeypatch.setattr("time.time", lambda: 1000.0)
    flux.drained, flux.drained_at = dict.fromkeys([1, 2, 3], TOLD), dict.fromkeys([1, 2, 3], 900.0)
    # rank 1 may have connected before the drain, whose time is in whole seconds
    flux.connected = {1: 99.5, 2: 101.0, 3: 98.5}
    run(flux, monkeypatch)
    assert flux.done == [("undrain", "3")]


def test_of_a_tree_of_brokers_each_parent_is_asked_about_its_children(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of rank 1 changes with that of rank 3 below it, and rank 5 is away with its parent."""
    monkeypatch.setattr("time.time", lambda: 1000.0)
    flux.tree = {0: [1, 2], 1: [3, 4], 2: [5]}
    flux.online, flux.connected = {0, 1, 4}, {1: 1.0, 4: 1.0}
    flux.drained, flux.drained_at = dict.fromkeys([1, 3, 4, 5], TOLD), dict.fromkeys([1, 3, 4, 5], 900.0)
    run(flux, monkeypatch)
    assert flux.done == [("undrain", "3,4,5")]


def test_the_undrainer_looks_when_nodes_change(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_undrainer_ends_with_the_reason_of_its_failure(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> None:
    flux.errors = {"resource.status": OSError(errno.ENOSYS, "No service matching resource.status is registered")}
    with pytest.raises(SystemExit, match="No service matching resource"):
        run_program(monkeypatch, flux, "undrainer.py", "cancel", "lost")


@pytest.mark.parametrize(("kept", "done"), [(["kept"], [("undrain", "3,4,5")]), ([], [])], ids=["kept", "not kept"])
def test_with_a_kept_queue_online_ranks_drained_under_a_previous_lead_are_undrained(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, kept: list[str], done: list[Any]
) -> None:
    flux.drained = {1: TOLD, 2: "bad DIMM", 3: TOLD, 4: TOLD, 5: "minicluster: scaling down"}
    flux.drained_at = {1: 101.0, 2: 99.0, 3: 99.0, 4: 50.0, 5: 99.0}
    flux.starttime = 100.0
    run(flux, monkeypatch, *kept)
    assert flux.done == done
    assert RECOVERED.wait(30 if kept else 0) == bool(kept)
    assert RECORDED.wait(30)


def test_the_undrainer_puts_back_what_lost_its_node(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobspec = {"attributes": {"system": {}}}

    def lost() -> None:
        exception = {"exception_type": "exec", "exception_note": "node failure on mini-3 (rank 3)"}
        flux.submit(7, state="failed", jobspec=jobspec, urgency=16, **exception)

    flux.events = [lost, lambda: None, lambda: None]
    run(flux, monkeypatch)
    assert capsys.readouterr().out == "minicluster: job f7 lost a node: it runs again as f1000\n"
