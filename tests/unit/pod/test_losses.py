"""Jobs of lost nodes: which ones go back to the queue, and how often."""

import importlib
import sys
from types import ModuleType
from typing import Any

import pytest
from fake_flux import FakeFlux, modules

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
    for name, module in modules(flux).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("time.time", lambda: 1000.0)
    for name in ("requeue", "losses"):
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
    watch = losses.Losses(flux, "cancel")
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
        # what failed under an earlier lead
        ("requeue", {"t_inactive": 400.0}),
    ],
    ids=["unmarked", "marked", "cancelled", "failed", "shell", "completed", "long ago"],
)
def test_other_jobs_are_not_put_back(
    flux: FakeFlux, losses: ModuleType, on_stop: str, fields: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    flux.starttime = 500.0
    watch = losses.Losses(flux, on_stop)
    lose(flux, 5, **fields)
    watch.repair()
    assert (flux.submitted, capsys.readouterr().out) == ([], "")


@pytest.mark.parametrize("before", [0, 2])
def test_losses_are_counted(flux: FakeFlux, losses: ModuleType, before: int) -> None:
    watch = losses.Losses(flux, "requeue")
    lose(flux, 5, own={"losses": before, "continues": "f4"})
    watch.repair()
    [(jobspec, _)] = flux.submitted
    assert jobspec["attributes"]["user"]["minicluster"] == {"continues": "f5", "losses": before + 1}
    later = {"scheme": "begin-time", "value": str(1000.0 + (before * 20 or 1))}
    assert jobspec["attributes"]["system"]["dependencies"] == [later]


def test_a_job_that_loses_its_nodes_again_and_again_ends(
    flux: FakeFlux, losses: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = losses.Losses(flux, "requeue")
    lose(flux, 5, own={"losses": 3})
    watch.repair()
    assert flux.submitted == []
    assert capsys.readouterr().out == "minicluster: job f5 lost a node again, 3 times are the most: it ends\n"


def test_a_program_that_starts_again_makes_no_second_copy(flux: FakeFlux, losses: ModuleType) -> None:
    lose(flux, 5, t_inactive=990.0)
    lose(flux, 6, own={"continues": "f5"}, state="sched")
    losses.Losses(flux, "requeue").repair()
    assert flux.submitted == []


def test_a_refused_copy_is_told_and_does_not_stop_the_others(
    flux: FakeFlux, losses: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = losses.Losses(flux, "requeue")
    lose(flux, 5, own={"requeue": 7})
    lose(flux, 6)
    watch.repair()
    assert capsys.readouterr().out.splitlines() == [
        "minicluster: job f5 lost a node and is not put back into the queue: "
        "user.minicluster.requeue is 7: must be 0 or 1",
        "minicluster: job f6 lost a node: it runs again as f1000",
    ]
