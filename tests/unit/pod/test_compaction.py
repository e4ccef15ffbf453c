"""When Flux's content store is compacted: `flux gc` runs beside the queue."""

import sys
from pathlib import Path

import kvs_cleanup
import pytest
from fake_flux import FakeFlux

from tools.clients import until


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with a line for each compaction. One that finds a file `fails` fails."""
    monkeypatch.setattr(kvs_cleanup, "LEAST_JOBS", 10)
    program = (
        "import os, sys; open('runs', 'a').write('x');"
        "os.path.exists('fails') and sys.exit('flux: first line\\nflux: no room')"
    )
    monkeypatch.setattr(kvs_cleanup, "COMMAND", (sys.executable, "-c", program))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def looks(found: kvs_cleanup.Compaction, *ended: int) -> list[str]:
    """Look after so many ends of jobs, each time when the last compaction has ended."""
    problems = []
    for count in ended:
        if found.process:
            found.process.wait()
        problems.append(found.look(count))
    return problems


def count(runs: Path) -> int:
    return len(runs.read_text()) if runs.exists() else 0


def flux(tmp_path: Path, *, inactive: int = 3, compacts: bool = True) -> FakeFlux:
    found = FakeFlux({0: (1, 0)}, {0}, compacts=compacts, statedir=str(tmp_path))
    found.inactive = inactive
    return found


def test_the_store_is_compacted_each_time_that_many_jobs_have_ended(runs: Path, tmp_path: Path) -> None:
    found = kvs_cleanup.Compaction(flux(tmp_path))
    assert looks(found, 0, 9, 10, 10, 19, 20, 20) == [""] * 7
    assert count(runs) == 2


def test_jobs_that_flux_keeps_are_not_read_for_a_few_new_ones(runs: Path, tmp_path: Path) -> None:
    looks(kvs_cleanup.Compaction(flux(tmp_path, inactive=25)), 20, 24, 25, 25)
    assert count(runs) == 1


def test_the_store_of_a_former_lead_is_compacted_at_once_if_it_is_large(runs: Path, tmp_path: Path) -> None:
    with (tmp_path / "content.sqlite").open("wb") as file:
        file.truncate(kvs_cleanup.FORMER_BYTES)
        looks(kvs_cleanup.Compaction(flux(tmp_path)), 0, 0)
        assert count(runs) == 0
        file.truncate(kvs_cleanup.FORMER_BYTES + 1)
    looks(kvs_cleanup.Compaction(flux(tmp_path)), 0, 0, 9, 9)
    assert count(runs) == 1


def test_a_flux_that_can_not_is_not_asked_to(runs: Path, tmp_path: Path) -> None:
    looks(kvs_cleanup.Compaction(flux(tmp_path, compacts=False)), 0, 100, 100)
    assert count(runs) == 0


def test_a_failure_is_returned_once_and_does_not_end_it(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "fails").touch()
    found = kvs_cleanup.Compaction(flux(tmp_path))
    said = "Flux's content store can't be compacted: flux: no room"
    assert looks(found, 10, 10, 11) == ["", said, ""]
    (tmp_path / "fails").unlink()
    assert looks(found, 20, 20) == ["", ""]
    assert count(runs) == 2


def test_nobody_waits_for_a_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.01)"
    monkeypatch.setattr(kvs_cleanup, "COMMAND", (sys.executable, "-c", program))
    monkeypatch.setattr(kvs_cleanup, "LEAST_JOBS", 10)
    monkeypatch.chdir(tmp_path)
    found = kvs_cleanup.Compaction(flux(tmp_path))
    assert [found.look(10), found.look(20)] == ["", ""]
    first = found.process
    assert first
    (tmp_path / "go").touch()
    until(lambda: first.poll() is not None)
    assert found.look(20) == ""
    assert found.process not in (None, first)
    found.process.communicate()  # type: ignore[union-attr]
