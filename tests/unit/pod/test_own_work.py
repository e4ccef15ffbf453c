"""How a new lead cancels the cluster's own work in a kept queue, and the lead follows work that was put back."""

import subprocess
from typing import Any

import pytest
from fake_flux import FakeFlux, run_program
from minicluster.render import work
from minicluster.render.load import load

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
        run_program(monkeypatch, flux, "own_work.py", "follow", 143)
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


def marked(user: Any) -> dict[str, Any]:
    return {"jobspec": {"attributes": {"system": {"cwd": "/"}, **({} if user is None else {"user": user})}}}


#: The mark that work.py sets, as `flux submit` writes it
OWN = marked({"minicluster": {"work": 1}})


def test_the_work_is_submitted_with_its_mark() -> None:
    cluster = load({"metadata": {"name": "a"}, "spec": {"state": {"claimName": "queue"}}})
    for words in (work.submit(cluster), work.batch(cluster)):
        assert [word for word in words if word.startswith("--setattr")] == ["--setattr=user.minicluster.work=1"]


def test_marked_work_is_cancelled_in_any_active_state_and_other_jobs_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    flux = FakeFlux({0: (1, 0)}, {0})
    for number, state in enumerate(("depend", "priority", "sched")):
        flux.submit(number, state=state, **OWN)
    flux.run(3, "0", **OWN)
    for number, user in enumerate((None, {}, {"minicluster": "other"}, {"minicluster": {"requeue": 1}}, ""), start=10):
        flux.submit(number, **marked(user))
        flux.run(number + 10, "0", **marked(user))
    flux.submit(30, jobspec={})
    before = {job["id"] for job in flux.jobs}
    run_program(monkeypatch, flux, "own_work.py", "cancel")
    assert flux.done == [("cancel", number, flux.done[0][2]) for number in range(4)]
    assert before - {job["id"] for job in flux.jobs} == set(range(4))


def test_cancelling_previous_work_skips_a_job_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    flux = FakeFlux({0: (1, 0)}, {0})
    flux.submit(1, jobspec=None)
    flux.submit(2, **OWN)
    run_program(monkeypatch, flux, "own_work.py", "cancel")
    assert [entry[1] for entry in flux.done] == [2]
