"""Which directories of jobs are removed from Flux's KVS."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from fake_flux import FakeFlux, imported

#: The step of the newest job
NEWEST = 0x0002_0100


@pytest.fixture
def flux() -> FakeFlux:
    return FakeFlux({0: (1, 0)}, {0})


@pytest.fixture
def program(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    yield from imported(monkeypatch, flux, "kvs_cleanup")


def job(step: int) -> int:
    """Return the id of a job that was submitted in a step."""
    return step << 32 | 0x0A00_0001


def make(flux: FakeFlux, step: int, entries: dict[str, Any]) -> None:
    """Let a step have a directory."""
    flux.directories.setdefault("job", {}).setdefault(f"{step >> 16:04x}", {})[f"{step & 0xFFFF:04x}"] = entries


def left(flux: FakeFlux) -> list[str]:
    return [f"{first}.{second}" for first, steps in flux.directories["job"].items() for second in steps]


def test_the_empty_directories_of_old_steps_are_removed(program: ModuleType, flux: FakeFlux) -> None:
    flux.run(job(NEWEST), "0")
    flux.submit(job(0x0001_0003), state="completed", t_inactive=5.0)
    kept = {"0a00": {"0001": {"eventlog": 1}}}
    make(flux, NEWEST, kept)
    make(flux, 0x0001_0003, kept)
    # no job that Flux knows, but it has something
    make(flux, 0x0001_0004, {"0100": {}, "0a00": {"0001": 1}})
    # of the last minute
    make(flux, NEWEST - 234, {"0a00": {}})
    for step in (0x0000_FFFF, 0x0001_0001, NEWEST - 235):
        make(flux, step, {"0a00": {}, "0b00": {}})
    make(flux, 0x0001_0002, {})
    flux.directories["job"]["lost+found"] = {"0001": {}}
    program.remove_empty_directories(flux)
    assert left(flux) == [
        "0002.0100",
        "0002.0016",
        "0001.0003",
        "0001.0004",
        "lost+found.0001",
    ]


def test_equal_directories_are_looked_at_once(program: ModuleType, flux: FakeFlux) -> None:
    flux.run(job(NEWEST), "0")
    make(flux, 7, {f"{number:04x}": {} for number in range(50)})
    program.remove_empty_directories(flux)
    assert (left(flux), flux.read) == ([], ["job", "job.0000", "job.0000.0007", "job.0000.0007.0000"])


def test_many_are_removed_in_parts(program: ModuleType, flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "BATCH_NAMES", 3)
    flux.run(job(NEWEST), "0")
    for step in range(10):
        make(flux, step, {})
    program.remove_empty_directories(flux)
    assert left(flux) == []


def test_without_jobs_nothing_is_removed(program: ModuleType, flux: FakeFlux) -> None:
    program.remove_empty_directories(flux)
    make(flux, 7, {"0a00": {}})
    program.remove_empty_directories(flux)
    assert left(flux) == ["0000.0007"]
