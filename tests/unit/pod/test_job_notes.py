"""Which jobs run on a node, by the notes of Flux's shells."""

from pathlib import Path

import job_notes
import pytest
from job_notes import Notes

JOB = 1 << 50


@pytest.fixture
def shells(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The processes that are shells, at an uptime of 100 s."""
    found: set[int] = set()
    monkeypatch.setattr(job_notes, "_is_shell", found.__contains__)
    monkeypatch.setattr(job_notes, "uptime", lambda: 100.0)
    return found


def test_a_job_runs_from_its_first_note_until_its_shell_is_gone(tmp_path: Path, shells: set[int]) -> None:
    path = tmp_path / "jobs"
    notes = Notes(path)
    assert (notes.look(), notes.jobs()) == (set(), set())
    shells.update({7, 8})
    path.write_text(f"{JOB} 7 90.5\n{JOB + 1} 8 91.25\n")
    assert (notes.look(), notes.jobs()) == (set(), {JOB, JOB + 1})
    with path.open("a") as file:
        file.write(f"{JOB} 7 90.5 95.5\n")
    # its shell is about to end
    assert (notes.look(), notes.jobs()) == (set(), {JOB, JOB + 1})
    shells.clear()
    assert (notes.look(), notes.jobs()) == ({JOB, JOB + 1}, set())
    # a shell that was killed notes no end: it is when that is seen
    times = ((80.0, 90.0), (80.0, 90.6), (95.6, 99.0), (200.0, 201.0))
    assert [notes.had(*each) for each in times] == [set(), {JOB}, {JOB + 1}, set()]
    assert notes.look() == set()


def test_a_job_that_came_and_went_between_two_looks_has_ended(tmp_path: Path, shells: set[int]) -> None:
    path = tmp_path / "jobs"
    notes = Notes(path)
    path.write_text(f"{JOB} 7 90.5\n{JOB} 7 90.5 90.7\n{JOB + 1} 7 90.8\n{JOB + 1} 7 90.8 91\n{JOB + 2} 7 92\n")
    shells.add(7)
    # each has the shell's id of the one before
    assert (notes.look(), notes.jobs()) == ({JOB, JOB + 1}, {JOB + 2})
    assert [notes.had(first, first) for first in (90.6, 90.9, 93)] == [{JOB}, {JOB + 1}, {JOB + 2}]


def test_a_full_file_is_read_to_its_end_and_then_the_next_one(tmp_path: Path, shells: set[int]) -> None:
    path, old = tmp_path / "jobs", tmp_path / "jobs.old"
    shells.update({7, 8, 9})
    old.write_text(f"{JOB} 7 90\n")
    path.write_text(f"{JOB + 1} 8 91\n")
    notes = Notes(path)
    notes.look()
    assert notes.jobs() == {JOB, JOB + 1}
    with path.open("a") as file:
        file.write(f"{JOB} 7 90 92\n")
    path.replace(old)
    path.write_text(f"{JOB + 2} 9 93\n")
    shells.remove(7)
    assert (notes.look(), notes.jobs()) == ({JOB}, {JOB + 1, JOB + 2})
