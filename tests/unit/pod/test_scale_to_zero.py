"""Scale to zero: how long a cluster has been idle."""

import math
from typing import Any

import pytest
from autoscale import Policy, Snapshot
from need import Need
from state import Nodes
from suspend import Idle, Use

POLICY = Policy(min=2, max=8, backlog=1, idle=60, cpu_target=50, suspend=30)
NODES = Nodes(dict.fromkeys(range(8), (1, 0)), {}, frozenset(range(8)), {})
RUNS = Use(active=0, newest=7, runs=True)


def left(idle: Idle, now: float, found: Use = RUNS, **seen: Any) -> float:
    return idle.left(POLICY, Snapshot(now, **{"size": 2, "nodes": NODES, **seen}), found)


def test_the_idle_window_begins_with_the_first_look() -> None:
    idle = Idle()
    assert [left(idle, now) for now in (100, 110, 129, 130, 140)] == [30, 20, 1, 0, 0]


NEEDED: list[tuple[str, Use, dict[str, Any]]] = [
    ("a job of any state", RUNS._replace(active=1), {}),
    ("the quorum is not reached yet", RUNS._replace(runs=False), {}),
    ("a size was requested", RUNS, {"requested": 3}),
    ("CPU use in a shell", RUNS, {"cpu": 0.9}),
    ("CPU use of added nodes that nobody measures", RUNS, {"size": 5}),
    ("nodes that the queue needs", RUNS, {"need": Need(3, 0)}),
]


@pytest.mark.parametrize(
    ("found", "seen"), [(found, seen) for _, found, seen in NEEDED], ids=[why for why, *_ in NEEDED]
)
def test_the_idle_window_starts_again_when_the_cluster_is_needed(found: Use, seen: dict[str, Any]) -> None:
    idle = Idle()
    assert left(idle, 0) == 30
    assert left(idle, 20, found, **seen) == math.inf
    assert left(idle, 50) == 30


@pytest.mark.parametrize(
    "seen", [{"requested": 2}, {"requested": 1}, {"cpu": 0.1}, {"cpu": 0.5}, {"size": 5, "cpu": 0.1}], ids=str
)
def test_the_idle_window_goes_on_whatever_the_request_cpu_use_and_size(seen: dict[str, Any]) -> None:
    idle = Idle()
    assert [left(idle, 0, **seen), left(idle, 30, **seen)] == [30, 0]


def test_the_idle_window_starts_again_for_a_job_that_came_and_went_between_looks() -> None:
    idle = Idle()
    assert left(idle, 0) == 30
    assert left(idle, 29, RUNS._replace(newest=8)) == 30
    assert left(idle, 40, RUNS._replace(newest=8)) == 19
