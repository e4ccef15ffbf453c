"""Jobs of lost nodes: which ones go back to the queue, and how often."""

import errno
import importlib
import sys
import threading
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import pytest
from fake_flux import FakeFlux, install

NOW = "node failure on mini-gpu-0 (rank 3)"
#: flux-core before 0.72
OLD = "lost contact with job shell on broker mini-gpu-0 (rank 3)"
#: Of jobs that ran when their lead was killed
KILLED = ("failed to create guest ns: No such file", "reattach to running job is not implemented: Function not")


@pytest.fixture
def flux() -> FakeFlux:
    return FakeFlux(dict.fromkeys(range(4), (4, 0)), set(range(4)))


@pytest.fixture
def losses(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    install(monkeypatch, flux)
    monkeypatch.setattr("time.time", lambda: 1000.0)
    for name in ("requeue", "put_back", "losses"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("losses")


def lose(flux: FakeFlux, number: int, note: str = NOW, state: str = "failed", **fields: Any) -> None:
    """Add a job that lost a node; ``own`` are its attributes of ours."""
    user = {"user": {"minicluster": fields.pop("own")}} if "own" in fields else {}
    jobspec = {"attributes": {"system": {"cwd": "/"}, **user}}
    fields = {"exception_type": "exec", "exception_note": note, "urgency": 16, "jobspec": jobspec, **fields}
    flux.submit(number, state=state, **fields)


AGAIN = {"requeue": 1}


@pytest.mark.parametrize("note", [NOW, OLD, *KILLED])
@pytest.mark.parametrize("state", ["failed", "cleanup"])
def test_a_job_that_lost_a_node_is_put_back_once(
    flux: FakeFlux, losses: ModuleType, note: str, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = losses.Losses(flux, "cancel", losses.Copies())
    lose(flux, 5, note, state, own=AGAIN)
    watch.repair()
    watch.repair()
    [(jobspec, urgency)] = flux.submitted
    assert urgency == 16
    assert jobspec["attributes"]["user"]["minicluster"] == {"requeue": 1, "continues": "f5", "losses": 1}
    soon = {"scheme": "begin-time", "value": "1001.0"}
    # one that has ended needs no dependency
    end = [] if state == "failed" else [{"scheme": "afternotok", "value": "f5"}]
    assert jobspec["attributes"]["system"]["dependencies"] == [soon, *end]
    assert capsys.readouterr().out == "minicluster: job f5 lost a node: it runs again as f1000\n"


@pytest.mark.parametrize(
    ("on_stop", "fields"),
    [
        ("cancel", {}),
        ("requeue", {"own": {"requeue": 0}}),
        ("requeue", {"exception_type": "cancel"}),
        ("requeue", {"exception_type": "", "note": ""}),
        ("requeue", {"note": "job shell exec error on broker mini-1 (rank 1): No such file"}),
        ("requeue", {"state": "completed"}),
        # what failed long before this lead
        ("requeue", {"t_inactive": -3101.0}),
    ],
    ids=["unmarked", "marked", "cancelled", "failed", "shell", "completed", "long ago"],
)
def test_other_jobs_are_not_put_back(
    flux: FakeFlux, losses: ModuleType, on_stop: str, fields: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    flux.starttime = 500.0
    watch = losses.Losses(flux, on_stop, losses.Copies())
    lose(flux, 5, **fields)
    watch.repair()
    assert (flux.submitted, capsys.readouterr().out) == ([], "")


@pytest.mark.parametrize("before", [0, 2])
def test_losses_are_counted(flux: FakeFlux, losses: ModuleType, before: int) -> None:
    watch = losses.Losses(flux, "requeue", losses.Copies())
    lose(flux, 5, own={"losses": before, "continues": "f4"})
    watch.repair()
    [(jobspec, _)] = flux.submitted
    assert jobspec["attributes"]["user"]["minicluster"] == {"continues": "f5", "losses": before + 1}
    later = {"scheme": "begin-time", "value": str(1000.0 + (before * 20 or 1))}
    assert jobspec["attributes"]["system"]["dependencies"] == [later]


def test_a_job_that_loses_its_nodes_again_and_again_ends(
    flux: FakeFlux, losses: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = losses.Losses(flux, "requeue", losses.Copies())
    lose(flux, 5, own={"losses": 3})
    watch.repair()
    assert flux.submitted == []
    assert capsys.readouterr().out == "minicluster: job f5 lost a node again, 3 times are the most: it ends\n"


def test_a_program_that_starts_again_makes_no_second_copy(flux: FakeFlux, losses: ModuleType) -> None:
    lose(flux, 5, t_inactive=990.0)
    lose(flux, 6, own={"continues": "f5"}, state="sched")
    losses.Losses(flux, "requeue", losses.Copies()).repair()
    assert flux.submitted == []


def test_a_refused_copy_is_told_and_does_not_stop_the_others(
    flux: FakeFlux, losses: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = losses.Losses(flux, "requeue", losses.Copies())
    lose(flux, 5, own={"requeue": 7})
    lose(flux, 6)
    watch.repair()
    assert capsys.readouterr().out.splitlines() == [
        "minicluster: job f5 lost a node and is not put back into the queue: "
        "user.minicluster.requeue is 7: must be 0 or 1",
        "minicluster: job f6 lost a node: it runs again as f1000",
    ]


# Retries -------------------------------------------------------------------------------------------------------


def copies(losses: ModuleType) -> Any:
    """Return the copies of a program, with one that a leaving pod asked for."""
    return losses.Copies({6: 1006})


def failed(flux: FakeFlux, code: int, **fields: Any) -> dict[str, Any]:
    """Add a job that has ended with an exit code; return it as Flux lists it."""
    lose(flux, 5, waitstatus=code << 8, t_inactive=1001.0, **{"exception_occurred": False, **fields})
    return flux.jobs[-1]


@pytest.mark.parametrize(
    ("own", "ends"),
    [
        ({"retries": 3}, (1, 1)),
        ({"retries": "3", "retried": 2}, (1, 3)),
        ({"retries": 3, "retried": 3}, (1, 0)),
        ({"retries": 3}, (0, 0)),
        ({"retries": 3, "retryOn": "29,137"}, (137, 1)),
        ({"retries": 3, "retryOn": [29, 137]}, (29, 1)),
        ({"retries": 3, "retryOn": 29}, (1, 0)),
        ({"retryOn": 29}, (29, 0)),
        ({"requeue": 1}, (1, 0)),
    ],
)
def test_a_job_is_tried_again_by_its_exit_code(
    flux: FakeFlux, losses: ModuleType, own: Any, ends: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    code, tries = ends
    losses.Retries(flux, copies(losses)).look(failed(flux, code, own=own), {"minicluster": own})
    again = [jobspec["attributes"]["user"]["minicluster"] for jobspec, _ in flux.submitted]
    assert again == ([{**own, "continues": "f5", "retried": tries}] if tries else [])
    most = own.get("retries")
    said = f"minicluster: job f5 ended with {code}: try {tries} of {most} is f1000\n" if tries else ""
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    "fields",
    [
        {"exception_occurred": True, "exception_severity": 0},
        {"id": 6},
    ],
    ids=["ended by an exception", "has a copy"],
)
def test_a_job_that_ended_otherwise_is_not_tried_again(
    flux: FakeFlux, losses: ModuleType, fields: dict[str, Any]
) -> None:
    own = {"retries": 3}
    losses.Retries(flux, copies(losses)).look(failed(flux, 1, own=own, **fields), {"minicluster": own})
    assert flux.submitted == []


def test_a_program_that_starts_again_tries_no_job_twice(
    flux: FakeFlux, losses: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"retries": 3}
    job = failed(flux, 1, own=own)
    losses.Retries(flux, copies(losses)).look(job, {"minicluster": own})
    monkeypatch.setattr("time.time", lambda: 1002.0)
    losses.Retries(flux, copies(losses)).look(job, {"minicluster": own})
    assert len(flux.submitted) == 1


def test_a_job_that_fails_while_its_copy_is_being_made_has_that_one(
    flux: FakeFlux, losses: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, made = {"retries": 3, "requeue": 1}, losses.Copies()
    job = failed(flux, 1, own=own)
    resubmit, asked = sys.modules["put_back"].resubmit, []

    def slow(*words: Any) -> int:
        monkeypatch.setattr("put_back.resubmit", resubmit)
        thread = threading.Thread(target=losses.Retries(flux, made).look, args=(job, {"minicluster": own}))
        asked.append(thread)
        thread.start()
        return int(resubmit(*words))

    monkeypatch.setattr("put_back.resubmit", slow)
    made.make(flux, job, {})
    asked[0].join(10)
    assert len(flux.submitted) == 1


@pytest.mark.parametrize(("number", "is_raised"), [(errno.EHOSTUNREACH, True), (errno.EINVAL, False)])
def test_a_job_is_tried_again_by_the_next_lead_if_this_one_is_gone(
    flux: FakeFlux, losses: ModuleType, monkeypatch: pytest.MonkeyPatch, number: int, is_raised: bool
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr("put_back.resubmit", refuse)
    own = {"retries": 3}
    with pytest.raises(OSError, match="no") if is_raised else nullcontext():
        losses.Retries(flux, copies(losses)).look(failed(flux, 1, own=own), {"minicluster": own})


def test_wishes_that_are_wrong_are_told(flux: FakeFlux, losses: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    own = {"retries": 3, "retryOn": "oom"}
    losses.Retries(flux, copies(losses)).look(failed(flux, 1, own=own), {"minicluster": own})
    why = "retries is 3 and retryOn 'oom': must be like retries=3 and retryOn=29,137"
    assert capsys.readouterr().out == f"minicluster: job f5 is not tried again: {why}\n"
    assert flux.submitted == []


def test_a_job_whose_pod_asked_for_its_copy_before_it_lost_a_node_has_one_copy(
    flux: FakeFlux, losses: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = losses.Losses(flux, "cancel", copies := losses.Copies())
    lose(flux, 4, own=AGAIN)
    watch.repair()
    # the pod of this one warns it, and the job goes on
    flux.run(5, "1", urgency=16, jobspec={"attributes": {"system": {}, "user": {"minicluster": AGAIN}}})
    asked = importlib.import_module("put_back").make_copies(flux, [5], copies)
    flux.end(5)
    lose(flux, 5, state="cleanup", own=AGAIN)
    watch.repair()
    assert asked == {"copies": {"f5": "f1001"}, "errors": {}}
    assert len(flux.submitted) == 2
    assert capsys.readouterr().out == "minicluster: job f4 lost a node: it runs again as f1000\n"


@pytest.mark.parametrize(
    ("looked", "ended", "again"),
    [(True, 450.0, True), (True, 300.0, False), (False, 450.0, True), (False, -3101.0, False)],
)
def test_a_job_that_was_lost_under_leads_that_were_killed_before_they_looked_is_put_back(
    flux: FakeFlux, losses: ModuleType, looked: bool, ended: float, again: bool
) -> None:
    flux.starttime = 400.0
    if looked:
        losses.Losses(flux, "requeue", losses.Copies()).repair()
    # the second lead did not look, the third one does
    lose(flux, 5, KILLED[0], t_inactive=ended)
    flux.starttime = 500.0
    losses.Losses(flux, "requeue", losses.Copies()).repair()
    assert len(flux.submitted) == again
