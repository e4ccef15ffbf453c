"""When waiting jobs start, by the time limits of those before them."""

import itertools
import math
import time
from typing import Any

import pytest
from fake_flux import FakeFlux, install, resource_set
from hypothesis import given
from hypothesis import strategies as st
from need import Request
from start_times import PLANNED_JOBS, Planned, Start, Timeline, Waiting, estimate, plan

NOW = 1000.0
#: Two nodes of four cores; job 7 has all of the first for 60 s, job 8 three cores of the second without a limit
NODES = {0: (4, 0), 1: (4, 0)}
RUNNING = [Planned(7, NOW + 60, {0: (4, 0)}), Planned(8, math.inf, {1: (3, 0)})]


def waits(job: int, request: Request, seconds: float = math.inf) -> Waiting:
    return Waiting(job, request, seconds)


CORE, NODE, BOTH = Request(1, 1, 0), Request(1, 4, 0), Request(2, 1, 0, apart=True, exclusive=True)


@pytest.mark.parametrize(
    ("queue", "in_order", "expected"),
    [
        ([waits(1, CORE)], True, {1: Start(NOW)}),
        ([waits(1, NODE)], True, {1: Start(NOW + 60, 7)}),
        # a node that is needed whole never gets free
        ([waits(1, BOTH), waits(2, NODE)], False, {1: Start(math.inf, 8), 2: Start(NOW + 60, 7)}),
        ([waits(1, BOTH), waits(2, NODE)], True, {1: Start(math.inf, 8), 2: Start(math.inf, 8)}),
        # the second fits before the first, and after it
        ([waits(1, NODE, 30), waits(2, CORE, 50)], True, {1: Start(NOW + 60, 7), 2: Start(NOW + 60)}),
        ([waits(1, NODE, 30), waits(2, CORE, 50)], False, {1: Start(NOW + 60, 7), 2: Start(NOW)}),
        ([waits(1, NODE, 30), waits(2, NODE, 5)], False, {1: Start(NOW + 60, 7), 2: Start(NOW + 90, 1)}),
        # one that would still run when the first needs the core
        ([waits(1, Request(5, 1, 0), 30), waits(2, CORE, 61)], False, {1: Start(NOW + 60, 7), 2: Start(NOW + 90, 1)}),
        ([waits(1, Request(1, 1, 0, ranks=frozenset({0})))], False, {1: Start(NOW + 60, 7)}),
        ([waits(n, CORE, 1) for n in range(PLANNED_JOBS + 2)], False, None),
    ],
)
def test_a_waiting_job_has_the_first_place_with_room_until_its_limit(
    queue: list[Waiting], in_order: bool, expected: dict[int, Start] | None
) -> None:
    assert plan(Timeline(NOW, NODES, RUNNING), queue, in_order=in_order) == expected


def test_a_job_over_its_limit_is_about_to_end() -> None:
    timeline = Timeline(NOW, {0: (4, 0)}, [Planned(7, NOW - 5, {0: (4, 0)})])
    assert plan(timeline, [waits(1, NODE)], in_order=True) == {1: Start(NOW)}


jobs = st.builds(
    lambda chunks, cores, apart, exclusive, seconds: (Request(chunks, cores, 0, apart, exclusive and apart), seconds),
    st.integers(1, 3), st.integers(1, 4), st.booleans(), st.booleans(), st.sampled_from([1.0, 2.0, 5.0, math.inf]),
)  # fmt: skip


@given(st.lists(jobs, max_size=8), st.booleans())
def test_no_node_has_more_jobs_than_room_and_order_is_kept(asked: list[tuple[Request, float]], in_order: bool) -> None:
    timeline = Timeline(NOW, NODES, [])
    queue = [Waiting(place, *each) for place, each in enumerate(asked, 1)]
    starts = plan(timeline, queue, in_order=in_order)
    assert starts is not None and starts.keys() == {job.job for job in queue}
    limits = {job.job: job.seconds for job in queue}
    for at, rank in itertools.product({start.at for start in starts.values()} - {math.inf}, NODES):
        there = [each for each in timeline.placed if starts[each.job].at <= at < starts[each.job].at + limits[each.job]]
        assert sum(each.pairs.get(rank, (0, 0))[0] for each in there) <= NODES[rank][0]
    if in_order:
        assert [start.at for start in starts.values()] == sorted(start.at for start in starts.values())


def jobspec(nodes: int, cores: int, duration: float) -> dict[str, Any]:
    slot = {"type": "slot", "count": 1, "label": "task", "with": [{"type": "core", "count": cores}]}
    return {
        "resources": [{"type": "node", "count": nodes, "with": [slot]}],
        "attributes": {"system": {"duration": duration}},
    }


def test_the_queue_of_a_flux_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    used = {**resource_set({0: (4, 0)}), "id": 7}
    used["execution"]["expiration"] = NOW + 60
    flux = FakeFlux(all={0: (4, 0), 1: (4, 0), 2: (4, 0)}, online={0, 1}, drained={1: "broken"}, used={0: (4, 0)})
    flux.jobs = [
        {"id": 7, "state": "run", "R": used},
        {"id": 8, "state": "sched", "priority": 16, "jobspec": jobspec(1, 4, 30.0)},
        {"id": 9, "state": "sched", "priority": 17, "jobspec": jobspec(1, 2, 10.0)},
        # needs more nodes than are up
        {"id": 10, "state": "sched", "priority": 3, "jobspec": jobspec(2, 1, 0.0)},
        {"id": 11, "state": "sched", "priority": 0, "jobspec": jobspec(1, 1, 0.0)},
    ]
    install(monkeypatch, flux)
    monkeypatch.setattr(time, "time", lambda: NOW)
    starts = {9: Start(NOW + 60, 7), 8: Start(NOW + 70, 9)}
    assert estimate(flux) == {**starts, 10: Start(math.inf)}
    # those of less priority come after it
    assert estimate(flux, jobspec(1, 1, 5.0)) == {**starts, 0: Start(NOW + 100, 8)}
    # Fluxion lets it go first where it delays nobody
    flux.schedulers = ("sched-fluxion-qmanager", "sched-fluxion-resource")
    assert estimate(flux, jobspec(1, 2, 5.0)) == {**starts, 0: Start(NOW + 60, 7)}
    flux.jobs += [{"id": 100 + n, "state": "sched", "priority": 16} for n in range(PLANNED_JOBS)]
    assert estimate(flux) is None
