"""When a cluster without a command ends by itself."""

import os
import subprocess
import time
from typing import Any

import pytest
from fake_flux import FakeFlux, install


@pytest.fixture
def flux() -> FakeFlux:
    return FakeFlux({0: (1, 0)}, {0})


def looks_until_the_end(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, events: list[Any], there: list[set[int]]
) -> int:
    """Return the seconds after which the program ends; ``there`` are the processes from outside at each look."""
    clock = [0.0]
    happens = iter(events)

    def pause(seconds: float) -> None:
        clock[0] += seconds
        if event := next(happens, None):
            event()

    install(monkeypatch, flux)
    import end_idle  # noqa: PLC0415 - with our modules of Flux

    monkeypatch.setattr(end_idle.flux, "Flux", lambda: flux)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", pause)
    monkeypatch.setattr(end_idle, "connected", lambda: there.pop(0) if there else set())
    end_idle.main(12.0)
    return int(clock[0])


def test_it_ends_when_nothing_has_happened_for_so_long(monkeypatch: pytest.MonkeyPatch, flux: FakeFlux) -> None:
    assert looks_until_the_end(monkeypatch, flux, [], []) == 12


def test_jobs_keep_it_also_those_that_began_and_ended_between_two_looks(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux
) -> None:
    def submit() -> None:
        flux.submit(1)

    def end() -> None:
        flux.jobs.clear()

    def ended() -> None:
        flux.inactive += 1

    assert looks_until_the_end(monkeypatch, flux, [None, submit, None, end, ended], []) == 25 + 12


def test_who_is_connected_keeps_it_but_a_probe_does_not(monkeypatch: pytest.MonkeyPatch, flux: FakeFlux) -> None:
    assert looks_until_the_end(monkeypatch, flux, [], [{5}, {6}, {7}]) == 12
    assert looks_until_the_end(monkeypatch, flux, [], [{5}, {5, 6}, {5}, {7}]) == 10 + 12


def test_processes_of_the_container_itself_are_nobodys(monkeypatch: pytest.MonkeyPatch, flux: FakeFlux) -> None:
    install(monkeypatch, flux)
    import end_idle  # noqa: PLC0415

    with subprocess.Popen(["sleep", "60"]) as child:
        assert {os.getpid(), child.pid}.isdisjoint(end_idle.connected())
        monkeypatch.setattr(end_idle, "children", lambda: {0: [os.getppid(), child.pid], os.getppid(): [os.getpid()]})
        assert end_idle.connected() == {child.pid}
        child.kill()
