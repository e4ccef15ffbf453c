"""How the lead follows the cluster's own work that was put back into the queue, to its exit code."""

import subprocess
from typing import Any

import pytest
from fake_flux import FakeFlux, run_program

START = 100.0


@pytest.fixture
def flux() -> FakeFlux:
    return FakeFlux({0: (1, 0)}, {0}, starttime=START)


def add(flux: FakeFlux, number: int, state: str, own: Any = None, **fields: Any) -> None:
    """Add a job of the cluster's own work."""
    jobspec = {"attributes": {"system": {}, "user": {"minicluster": own if own is not None else {"work": 1}}}}
    flux.submit(number, **{"state": state, "jobspec": jobspec, "t_submit": START + number, **fields})


def followed(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, ends: Any = None) -> tuple[int, list[list[str]]]:
    """Return the exit code of work that ended with 143, and the commands that attached to jobs."""
    calls: list[list[str]] = []

    def attach(words: list[str], **_: object) -> None:
        calls.append(words)
        if ends:
            ends(int(words[-1][1:]))

    monkeypatch.setattr(subprocess, "run", attach)
    with pytest.raises(SystemExit) as end:
        run_program(monkeypatch, flux, "follow.py", 143)
    assert isinstance(end.value.code, int)
    return end.value.code, calls


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_of_work_that_was_put_back_is_that_of_its_last_copy(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    add(flux, 1, "canceled", waitstatus=15)
    add(flux, 2, "depend", {"work": 1, "continues": "f1"})

    def ends(number: int) -> None:
        if number == 2:  # it is put back once more
            flux.end(2)
            add(flux, 2, "canceled", {"work": 1, "continues": "f1"}, waitstatus=15)
            add(flux, 3, "run", {"work": 1, "continues": "f2"}, ranks="0")
        else:
            flux.end(3)
            add(flux, 3, "failed" if code else "completed", {"work": 1, "continues": "f2"}, waitstatus=code << 8)

    attached = [["flux", "job", "attach", name] for name in ("f2", "f3")]
    assert followed(flux, monkeypatch, ends) == (code, attached)
    lines = [f"minicluster: the work goes on as job {name}" for name in ("f2", "f3")]
    assert capfd.readouterr().err.splitlines() == lines


def test_work_without_a_copy_keeps_its_exit_code(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> None:
    add(flux, 1, "failed", waitstatus=3 << 8)
    # copies of the jobs of others, and of an earlier lead
    add(flux, 2, "completed", {"continues": "f9"}, waitstatus=0)
    add(flux, 3, "run", {"work": 1, "continues": "f9"}, t_submit=START - 1, ranks="0")
    assert followed(flux, monkeypatch) == (143, [])


@pytest.mark.parametrize(("status", "code"), [(3 << 8, 3), (9, 137), (None, 1)])
def test_another_failed_job_of_the_work_decides_the_exit_code(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, status: int | None, code: int
) -> None:
    add(flux, 1, "canceled", waitstatus=15)
    add(flux, 2, "completed", {"work": 1, "continues": "f1"}, waitstatus=0)
    add(flux, 3, "timeout", **({} if status is None else {"waitstatus": status}))
    assert followed(flux, monkeypatch) == (code, [])


def test_the_copy_of_a_job_that_succeeded_does_not_count(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> None:
    add(flux, 1, "completed", waitstatus=0)
    add(flux, 2, "failed", {"work": 1, "continues": "f1"}, exception_type="dependency")
    assert followed(flux, monkeypatch) == (0, [])
