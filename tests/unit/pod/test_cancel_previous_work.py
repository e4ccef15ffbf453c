"""A new lead cancels the cluster's own work in a kept queue, and no other job."""

from typing import Any

import pytest
from fake_flux import FakeFlux, run_program
from minicluster.render import work
from minicluster.render.load import load


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
    run_program(monkeypatch, flux, "cancel_previous_work.py")
    assert flux.done == [("cancel", number, flux.done[0][2]) for number in range(4)]
    assert before - {job["id"] for job in flux.jobs} == set(range(4))


def test_cancelling_previous_work_skips_a_job_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    flux = FakeFlux({0: (1, 0)}, {0})
    flux.submit(1, jobspec=None)
    flux.submit(2, **OWN)
    run_program(monkeypatch, flux, "cancel_previous_work.py")
    assert [entry[1] for entry in flux.done] == [2]
