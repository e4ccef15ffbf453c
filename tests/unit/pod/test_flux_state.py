import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import state
from fake_flux import FakeFlux, install, resource_set
from hypothesis import given
from hypothesis import strategies as st

PAIRS = st.tuples(st.integers(0, 300), st.integers(0, 16))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("[]", []),
        ("0", [0]),
        ("0-2,5", [0, 1, 2, 5]),
        ("[0-2,5]", [0, 1, 2, 5]),
        ("7-7,10-11", [7, 10, 11]),
    ],
)
def test_parse_idset_reads_spans_and_brackets(text: str, expected: list[int]) -> None:
    assert state.parse_idset(text) == expected


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([], ""), ([3], "3"), ([1, 0], "0-1"), ([5, 0, 1, 1, 2], "0-2,5"), (range(8), "0-7"), ([0, 2, 4], "0,2,4")],
    ids=str,
)
def test_to_idset_writes_sorted_spans(numbers: list[int], expected: str) -> None:
    assert state.to_idset(numbers) == expected


@given(numbers=st.lists(st.integers(0, 200)), brackets=st.booleans())
def test_an_idset_is_read_as_it_was_written(numbers: list[int], brackets: bool) -> None:
    text = state.to_idset(numbers)
    assert state.parse_idset(f"[{text}]" if brackets else text) == sorted(set(numbers))


@pytest.mark.parametrize(
    ("lite", "expected"),
    [
        pytest.param([], {}, id="no ranks"),
        pytest.param(
            [{"rank": "0-1", "children": {"core": "0-3", "gpu": "0"}}], {0: (4, 1), 1: (4, 1)}, id="identical ranks"
        ),
        pytest.param(
            [{"rank": "0,2", "children": {"core": "0,3"}}, {"rank": "1", "children": {"gpu": "0-7", "core": "0"}}],
            {0: (2, 0), 2: (2, 0), 1: (1, 8)},
            id="different ranks",
        ),
    ],
)
def test_by_rank_reads_the_cores_and_gpus_of_each_rank_from_r(
    lite: list[Any], expected: dict[int, tuple[int, int]]
) -> None:
    assert state.by_rank({"execution": {"R_lite": lite}}) == expected
    assert state.by_rank(None) == {}


@given(pairs=st.dictionaries(st.integers(0, 500), PAIRS))
def test_by_rank_reads_a_resource_set_as_it_was_written(pairs: dict[int, tuple[int, int]]) -> None:
    assert state.by_rank(resource_set(pairs)) == pairs


@given(pairs=st.lists(PAIRS))
def test_totals_sums_cores_and_gpus(pairs: list[tuple[int, int]]) -> None:
    assert state.totals(iter(pairs)) == {"cores": sum(p[0] for p in pairs), "gpus": sum(p[1] for p in pairs)}


@pytest.mark.parametrize(
    ("whole", "used", "left"),
    [((4, 2), (0, 0), (4, 2)), ((4, 2), (3, 2), (1, 0)), ((1, 0), (2, 1), (0, 0))],
    ids=str,
)
def test_subtract_leaves_what_is_unused_and_never_less_than_zero(
    whole: tuple[int, int], used: tuple[int, int], left: tuple[int, int]
) -> None:
    assert state.subtract(whole, used) == left


def test_first_keeps_the_nodes_of_the_lowest_ranks() -> None:
    nodes = state.Nodes({0: (1, 0), 1: (2, 0), 2: (3, 0)}, {1: (1, 0), 2: (1, 0)}, frozenset({0, 2}), {1: "a", 2: "b"})
    assert nodes.of(range(2)) == state.Nodes({0: (1, 0), 1: (2, 0)}, {1: (1, 0)}, frozenset({0}), {1: "a"})
    assert nodes.of(range(3)) == nodes.without(range(3, 9)) == nodes
    assert nodes.of(range(1, 9)) == state.Nodes(
        {0: (2, 0), 1: (3, 0)}, {0: (1, 0), 1: (1, 0)}, frozenset({1}), {0: "a", 1: "b"}
    )
    assert nodes.without(range(1, 9)) == nodes.of(range(1))
    assert nodes.of(range(0)) == state.Nodes({}, {}, frozenset(), {})


@pytest.mark.parametrize(
    ("pending", "expected"),
    [([], 0.0), ([{"t_depend": 90.0}, {"t_depend": 70.5}], 29.5), ([{}], 0.0), ([{"t_depend": 101.0}], 0.0)],
    ids=str,
)
def test_longest_wait_is_that_of_the_job_that_came_first(pending: list[dict[str, float]], expected: float) -> None:
    assert state.longest_wait(pending, 100.0) == expected


# Asked of Flux -----------------------------------------------------------------------------------------------


@pytest.fixture
def flux(monkeypatch: pytest.MonkeyPatch) -> FakeFlux:
    install(monkeypatch)
    return FakeFlux(
        {0: (4, 1), 1: (4, 1), 2: (4, 1), 3: (4, 1)}, {0, 1, 2}, used={1: (3, 1)}, drained={2: "broken", 3: "gone"}
    )


def test_nodes_reads_used_online_and_drained_nodes_from_flux(flux: FakeFlux) -> None:
    assert state.nodes(flux) == state.Nodes(flux.all, flux.used, frozenset({0, 1, 2}), {2: "broken", 3: "gone"})
    flux.used = {}
    assert state.nodes(flux).used == {}


def test_waiting_jobs_are_sorted_by_priority_and_age_without_held_ones(flux: FakeFlux) -> None:
    flux.submit(7)
    flux.submit(5, priority=0)
    flux.submit(3)
    flux.submit(9, priority=31)
    assert [job["id"] for job in state.waiting_jobs(flux)] == [9, 3, 7]


def test_the_summary_of_flux_has_these_fields_and_values(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> None:
    flux.submit(1)
    monkeypatch.setattr(state.time, "time", lambda: 112.34)
    summary = state.summary(flux)
    assert json.loads(json.dumps(summary)) == {
        "version": "0.88.0",
        "quorum": 1,
        "scheduler": {"name": "sched-simple"},
        "registered": 4,
        "online": "0-2",
        "allocated": "1",
        "drained": {"2": "broken", "3": "gone"},
        "total": {"cores": 12, "gpus": 3},
        "free": {"cores": 5, "gpus": 1},
        "used": {"cores": 3, "gpus": 1},
        "jobs": {
            "depend": 0,
            "priority": 0,
            "sched": 1,
            "run": 1,
            "cleanup": 0,
            "inactive": 3,
            "successful": 2,
            "failed": 1,
            "canceled": 0,
            "timeout": 0,
            "purged": 0,
        },
        "problems": [],
        "queue_wait": 12.3,
    }


def test_the_summary_names_the_scheduler_and_its_policies(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert state.scheduler(flux) == {"name": "sched-simple"}
    flux.schedulers = ("sched-fluxion-resource", "sched-fluxion-feasibility", "sched-fluxion-qmanager")
    policies = {"queuePolicy": "easy", "matchPolicy": "lonode"}
    assert state.scheduler(flux) == {"name": "Fluxion", "version": "", **policies}
    monkeypatch.setenv("MINICLUSTER_HOME", str(tmp_path))
    (tmp_path / "config/run").mkdir(parents=True)
    (tmp_path / "config/run/fluxion").write_text("0.54.0\n")
    assert state.scheduler(flux) == {"name": "Fluxion", "version": "0.54.0", **policies}
    flux.schedulers = ()
    assert state.scheduler(flux) == {"name": "none"}


def test_the_summary_reports_what_the_other_programs_of_the_pod_can_not_do(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MINICLUSTER_HOME", str(tmp_path))
    (tmp_path / "config/run").mkdir(parents=True)
    (tmp_path / "config/run/undrainer.problem").write_text("the undrainer failed: no\n")
    assert state.summary(flux)["problems"] == ["the undrainer failed: no"]
    (tmp_path / "config/run/agent.problem").write_text("no size\nno metrics\n")
    assert state.summary(flux)["problems"] == ["the undrainer failed: no", "no size", "no metrics"]


def test_that_the_kernel_has_killed_is_told_for_an_hour(
    flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MINICLUSTER_HOME", str(tmp_path))
    (tmp_path / "config/run").mkdir(parents=True)
    path = tmp_path / "config/run/memory.problem"
    path.write_text("mc-0: the kernel has killed a process\n")
    for seconds, expected in ((3500, ["mc-0: the kernel has killed a process"]), (3700, [])):
        os.utime(path, (0, time.time() - seconds))
        assert state.summary(flux)["problems"] == expected


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(None, set(), id="no R"),
        pytest.param({"execution": {"R_lite": None}}, set(), id="no ranks"),
        pytest.param(
            {"execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0,3"}}, {"rank": "2", "children": {}}]}},
            {(0, 0), (0, 3), (1, 0), (1, 3)},
            id="ranks",
        ),
    ],
)
def test_core_set_lists_each_core_of_a_resource_set(resources: Any, expected: set[tuple[int, int]]) -> None:
    assert state.core_set(resources) == expected
    assert state.core_set(json.dumps(resources)) == expected
