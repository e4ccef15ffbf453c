"""Which jobs are stopped for another one, and how."""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fake_flux import FakeFlux, install, resource_set
from need import Request
from preemption_plan import Stoppable, Stops, Waiter, fewest, stops_for

WHOLE = dict.fromkeys(range(4), (4, 1))


def node(count: int = 1, **fields: Any) -> Request:
    """Return a request for whole nodes."""
    return Request(count, 1, 0, apart=True, exclusive=True, **fields)


def runs(job: int, ranks: range, pair: tuple[int, int] = (4, 1), ran: float = 100.0) -> Stoppable:
    return Stoppable(job, dict.fromkeys(ranks, pair), ran, 16)


#: A job on each node, and one on two
EACH = [runs(rank, range(rank, rank + 1), ran=100.0 + rank) for rank in range(4)]
PAIR = [runs(8, range(2)), runs(9, range(2, 3), ran=1.0), runs(10, range(3, 4), ran=2.0)]
#: Jobs of one core
CORES = [runs(10 * rank + core, range(rank, rank + 1), (1, int(core == 0))) for rank in range(4) for core in range(4)]


@pytest.mark.parametrize(
    ("request_", "stoppable", "stops"),
    [
        pytest.param(node(), EACH, [0], id="the one that has run least"),
        pytest.param(node(3), EACH, [0, 1, 2], id="three of four"),
        pytest.param(node(ranks=frozenset([2, 3])), EACH, [2], id="where it may run"),
        pytest.param(node(2), PAIR, [8], id="one of two nodes before two of one"),
        pytest.param(node(3), PAIR, [9, 8], id="a third beside it"),
        pytest.param(node(), CORES, [0, 1, 2, 3], id="all on one node"),
        pytest.param(Request(2, 1, 0), CORES, [0, 1], id="cores anywhere"),
        pytest.param(Request(2, 1, 1, apart=True), EACH, [0, 1], id="GPUs"),
        pytest.param(node(2), EACH[:1], [], id="too few"),
        pytest.param(node(), [], [], id="none"),
    ],
)
def test_the_fewest_jobs_are_stopped(request_: Request, stoppable: list[Stoppable], stops: list[int]) -> None:
    free = dict.fromkeys(WHOLE, (0, 0))
    assert fewest(request_, free, WHOLE, stoppable) == stops


def test_of_many_jobs_none_is_stopped_that_is_not_needed() -> None:
    whole = dict.fromkeys(range(300), (4, 0))
    jobs = [Stoppable(rank, {rank: (4, 0)}, float(rank), 16) for rank in whole]
    assert fewest(node(100), dict.fromkeys(whole, (0, 0)), whole, jobs) == list(range(100))


def waits(job: int, request: Request, waited: float = 60.0, urgency: int = 16) -> Waiter:
    return Waiter(job, request, waited, urgency)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(
    ("queue", "free", "growth", "stops"),
    [
        pytest.param([waits(1, node())], {}, {}, Stops(1, [0]), id="long enough"),
        pytest.param([waits(1, node(), 59.0)], {}, {}, None, id="not yet"),
        pytest.param([waits(1, node())], {4: (4, 1)}, {}, None, id="it has room"),
        pytest.param([waits(1, node()), waits(2, node())], {4: (4, 1)}, {}, Stops(2, [0]), id="the next has none"),
        pytest.param([waits(1, node(2))], {4: (4, 1)}, {}, Stops(1, [0]), id="what is free counts"),
        pytest.param([waits(1, node(9))], {}, {}, None, id="never enough"),
        pytest.param([waits(1, node())], {}, {5: (4, 1)}, None, id="it can grow"),
        pytest.param([waits(1, node(), 120.0)], {}, {5: (4, 1)}, Stops(1, [0]), id="it could have grown"),
        pytest.param([waits(1, node(2))], {}, {5: (4, 1)}, Stops(1, [0, 1]), id="growth is not enough"),
        pytest.param([waits(1, node(), urgency=15)], {}, {}, None, id="less urgent than all"),
    ],
)
def test_jobs_are_stopped_for_the_first_that_needs_it(
    queue: list[Waiter], free: Any, growth: Any, stops: Stops | None, in_order: bool
) -> None:
    there = {**dict.fromkeys(WHOLE, (0, 0)), **free}
    assert stops_for(queue, (there, {**WHOLE, **free}, growth), EACH, 60.0, in_order) == stops


@pytest.mark.parametrize(("in_order", "stops"), [(True, None), (False, Stops(2, [0]))])
def test_a_job_that_waits_in_front_holds_up_the_others_where_they_start_in_order(
    in_order: bool, stops: Stops | None
) -> None:
    queue = [waits(1, node(9)), waits(2, node())]
    assert stops_for(queue, (dict.fromkeys(WHOLE, (0, 0)), WHOLE, {}), EACH, 60.0, in_order) == stops


# In Flux -------------------------------------------------------------------------------------------------------


@pytest.fixture
def flux() -> FakeFlux:
    return FakeFlux(dict.fromkeys(range(2), (4, 0)), {0, 1})


@pytest.fixture
def preemption(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    install(monkeypatch, flux)
    changes = ModuleType("changes")
    vars(changes).update(Changes=None, pause_after=None)
    monkeypatch.setitem(sys.modules, "changes", changes)
    for name in ("requeue", "recovery", "preemption"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module("preemption")
    monkeypatch.setattr("time.time", lambda: NOW[0])
    NOW[0] = 1000.0
    (tmp_path / "agent.json").write_text(json.dumps({"size": 2, "max_size": 2, "policy": None, "groups": []}))
    return module.Preemption(flux, module.Rules(60.0, 30.0, 15.0), tmp_path / "agent.json")


NOW = [1000.0]


def job_of(own: dict[str, Any]) -> dict[str, Any]:
    resources = [{"type": "node", "count": 1, "exclusive": True, "with": [{"type": "slot", "count": 1}]}]
    return {"resources": resources, "attributes": {"system": {"cwd": "/"}, "user": {"minicluster": own}}, "tasks": []}


def add(flux: FakeFlux, number: int, own: dict[str, Any], rank: int | None = None, since: float = 900.0) -> None:
    fields = {"jobspec": job_of(own), "urgency": 16, "t_run": since, "t_depend": since}
    if rank is None:
        flux.submit(number, **fields)
    else:
        flux.run(number, str(rank), R=resource_set({rank: (4, 0)}), **fields)


MARKED = {"preemptible": 1}


def test_nothing_is_asked_while_no_job_waits(flux: FakeFlux, preemption: Any) -> None:
    add(flux, 1, MARKED, 0)
    assert (preemption.look(), flux.lookups, flux.done) == (60.0, [], [])


def test_a_job_is_put_back_and_cancelled_for_one_that_waited(
    flux: FakeFlux, preemption: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    add(flux, 1, MARKED, 0)
    add(flux, 2, {}, 1)
    add(flux, 3, MARKED)  # waits, before the other
    add(flux, 4, {}, since=950.0)
    assert (preemption.look(), flux.done) == (10.0, [])
    NOW[0] = 1010.0
    assert preemption.look() == 0.5
    why = "minicluster: stopped for job f4, which has waited long (flux.preemption): it runs again as f1000"
    assert flux.done == [("copies", {"f1": "f1000"}), ("cancel", 1, why)]
    [(again, urgency)] = flux.submitted
    assert (again["attributes"]["user"]["minicluster"], urgency) == ({"preemptible": 1, "continues": "f1"}, 16)
    assert {job["id"]: job["urgency"] for job in flux.jobs if job["id"] in (3, 4)} == {3: 15, 4: 16}
    [memo] = [job["annotations"]["user"] for job in flux.jobs if job["id"] == 4]
    assert memo == {"minicluster_stops": "f1"}
    said = "minicluster: job f1 is stopped for job f4, which has waited long: it runs again as f1000\n"
    assert capsys.readouterr().out == said
    # the room is free, and the job has yet to start
    assert preemption.look() == 60.0
    assert len(flux.done) == 2


def test_a_job_has_the_time_that_it_wishes_and_nothing_else_is_stopped_meanwhile(
    flux: FakeFlux, preemption: Any
) -> None:
    flux.stubborn.add(1)
    add(flux, 1, {**MARKED, "signal": "USR1@20s", "requeue": 0}, 0)
    add(flux, 2, MARKED, 1, since=500.0)
    add(flux, 4, {})
    kills: list[Any] = []
    sys.modules["preemption"].__dict__["send"] = lambda _, job, signum: kills.append((job, int(signum)))
    assert (preemption.look(), kills, flux.done) == (0.5, [(1, 10)], [])
    NOW[0] += 19.5
    assert (preemption.look(), flux.done) == (0.5, [])
    NOW[0] += 1.0
    assert (preemption.look(), flux.done) == (
        0.5,
        [("cancel", 1, "minicluster: stopped for job f4, which has waited long (flux.preemption)")],
    )
    assert flux.submitted == []


@pytest.mark.parametrize(
    ("own", "since"), [({}, 900.0), (MARKED, 980.0)], ids=["not marked", "has run for less than it may"]
)
def test_other_jobs_run_on(flux: FakeFlux, preemption: Any, own: dict[str, Any], since: float) -> None:
    add(flux, 1, own, 0, since)
    add(flux, 2, {}, 1)
    add(flux, 4, {})
    assert (preemption.look(), flux.done) == (5.0, [])
    flux.stop_reason = "by hand"
    add(flux, 5, MARKED, 1, since=1.0)
    assert (preemption.look(), flux.done) == (5.0, [])
