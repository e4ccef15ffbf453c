"""The reasons why jobs wait, as the lead's program reports them."""

import time
from typing import Any

import pytest
from fake_flux import FakeFlux, install
from minicluster.cluster.pods import GroupNodes
from minicluster.lead.ask import QUESTIONS
from minicluster.lead.sent import waiting
from minicluster.status import snapshot
from minicluster.status.table import table
from need import Request
from pending import NONE_UP, Constraints, Unmet, in_words
from state import Nodes
from status_samples import FOUR, SETTINGS, flux, job, show

#: Four nodes of four cores; the last has two GPUs. The first two are up, and one core of the first is in use
NODES = Nodes({0: (4, 0), 1: (4, 0), 2: (4, 0), 3: (4, 2)}, {0: (1, 0)}, frozenset({0, 1}), {})


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (
            Request(1, 8, 0),
            "can never run: it asks for 1 slot of 8 cores, and no node has more than 4 cores and 2 GPUs",
        ),
        (
            Request(1, 1, 3),
            "can never run: it asks for 1 slot of 1 core and 3 GPUs, and no node has more than 4 cores and 2 GPUs",
        ),
        (Request(5, 1, 0, apart=True), "can never run: it asks for 5 nodes of 1 core, and all nodes have room for 4"),
        (
            Request(2, 1, 1, apart=True),
            "can never run: it asks for 2 nodes of 1 core and 1 GPU, and all nodes have room for 1",
        ),
        (Request(17, 1, 0), "can never run: it asks for 17 slots of 1 core, and all nodes have room for 16"),
        (Request(3, 4, 0, apart=True), "waits for nodes: it asks for 3 nodes of 4 cores, and 2 are up"),
        (Request(9, 1, 0), "waits for nodes: it asks for 9 slots of 1 core, and 2 are up"),
        (Request(1, 1, 1), "waits for nodes: it asks for 1 slot of 1 core and 1 GPU, and 0 are up"),
        (Request(2, 4, 0, apart=True), "waits for resources that other jobs have"),
        (Request(2, 1, 0, apart=True, exclusive=True), "waits for resources that other jobs have"),
        (Request(2, 3, 0, apart=True), "waits for the scheduler"),
    ],
)
def test_a_job_that_waits_for_resources_has_a_reason(request_: Request, expected: str) -> None:
    why, is_final = Unmet(request_, NODES).reason()
    assert why == expected
    assert is_final == expected.startswith("can never")


@pytest.mark.parametrize(
    ("pairs", "request_", "lacking"),
    [
        ([(2, 0)], Request(1, 1, 1), "no node has a GPU"),
        ([(2, 0)], Request(1, 9, 1), "no node has a GPU"),
        ([(2, 1)], Request(1, 1, 2), "no node has more than 2 cores and 1 GPU"),
        ([(8, 0), (1, 4)], Request(1, 4, 1), "no node has both"),
        ([(8, 0), (1, 4)], Request(1, 9, 1), "no node has more than 8 cores and 4 GPUs"),
    ],
)
def test_what_no_node_has_is_named(pairs: list[tuple[int, int]], request_: Request, lacking: str) -> None:
    there = Nodes(dict(enumerate(pairs)), {}, frozenset(), {})
    assert Unmet(request_, there).reason()[0].endswith(f", and {lacking}")
    constraints = GPUS._replace(ranks=frozenset(there.all))
    assert Unmet(request_, there, constraints).reason()[0].endswith(f", and {lacking.replace('node', 'node of those')}")


def test_the_reason_of_a_waiting_job_counts_drained_nodes() -> None:
    drained = Nodes(NODES.all, {}, NODES.online, {1: "bad"})
    why, _ = Unmet(Request(2, 1, 0, apart=True), drained).reason()
    assert why == "waits for nodes: it asks for 2 nodes of 1 core, and 1 is up, 1 drained"


GPUS = Constraints("gpu", frozenset({2, 3}), "the properties of nodes are gpu")


@pytest.mark.parametrize(
    ("request_", "constraints", "expected"),
    [
        (
            Request(1, 1, 0),
            Constraints("nosuch", frozenset(), "no node has a property"),
            "can never run: it asks for 1 slot of 1 core with nosuch, and no node has that: no node has a property",
        ),
        (
            Request(3, 1, 0, apart=True),
            GPUS,
            "can never run: it asks for 3 nodes of 1 core with gpu, and all nodes of those have room for 2",
        ),
        (
            Request(1, 5, 0),
            GPUS,
            "can never run: it asks for 1 slot of 5 cores with gpu, and no node of those has more than 4 cores and 2 "
            "GPUs",
        ),
        (
            Request(1, 1, 0),
            GPUS,
            "waits for nodes: it asks for 1 slot of 1 core with gpu, and the group gpu has no node up",
        ),
        # without constraints, too, where only the group has what it asks for
        (
            Request(1, 1, 1),
            None,
            "waits for nodes: it asks for 1 slot of 1 core and 1 GPU, and the group gpu has no node up",
        ),
        (Request(1, 4, 0), GPUS._replace(ranks=frozenset({0, 3})), "waits for resources that other jobs have"),
        # only the scheduler knows which
        (Request(1, 1, 0), GPUS._replace(ranks=None), "waits for the scheduler"),
    ],
)
def test_the_constraints_of_a_job_and_its_group_are_in_its_reason(
    request_: Request, constraints: Constraints | None, expected: str
) -> None:
    assert Unmet(request_, NODES, constraints, {"big": range(1), "gpu": range(2, 4)}).reason()[0] == expected


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        ({"properties": ["gpu"]}, "gpu"),
        ({"properties": ["gpu", "^big"]}, "gpu and ^big"),
        ({"hostlist": ["mini-[0-1]"]}, "host mini-[0-1]"),
        ({"ranks": ["0-1"]}, "rank 0-1"),
        ({"or": [{"properties": ["a"]}, {"ranks": ["1"]}]}, '{"or": [{"properties": ["a"]}, {"ranks": ["1"]}]}'),
    ],
)
def test_constraints_are_told_in_words(constraints: dict[str, Any], expected: str) -> None:
    assert in_words(constraints) == expected


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> FakeFlux:
    """A Flux with two nodes; one is up."""
    found = FakeFlux({0: (4, 0), 1: (4, 0)}, {0})
    install(monkeypatch, found)
    return found


def submit(handle: FakeFlux, number: int, nodes: int = 1, **fields: Any) -> None:
    handle.submit(number, nodes, **fields)
    handle.jobs[-1]["jobspec"]["attributes"] = {"system": fields.get("system", {})}


def test_each_waiting_job_of_the_queue_has_its_reason(handle: FakeFlux) -> None:
    submit(handle, 1, 3)
    submit(handle, 2, 2)
    submit(handle, 3, urgency=0, priority=0)
    submit(handle, 4, state="depend", dependencies=["after-success=f1"])
    submit(handle, 5, 2, annotations={"sched": {"reason_pending": "no"}}, system={"constraints": {}})
    assert waiting.reasons(handle) == {
        1: "can never run: it asks for 3 nodes of 1 core, and all nodes have room for 2",
        2: "waits for nodes: it asks for 2 nodes of 1 core, and 1 is up",
        3: "is held: `flux job urgency ID 16` releases it",
        4: "waits for after-success=f1",
        5: "waits for nodes: it asks for 2 nodes of 1 core, and 1 is up (no)",
    }
    assert list(waiting.reasons(handle, [2])) == [2]
    handle.stop_reason = "maintenance"
    assert waiting.queue_problem(handle) == "the queue is stopped (maintenance)"
    stopped = waiting.reasons(handle)
    assert stopped[2] == "the queue is stopped (maintenance)"
    assert stopped[1].startswith("can never run")


def test_status_says_why_jobs_wait() -> None:
    found = [
        {"jobs": ["ƒA", "ƒB", "ƒC", "ƒD", "ƒE"], "reason": "waits for resources that other jobs have"},
        {"jobs": ["ƒF"], "reason": "can never run: it asks for 5 nodes of 1 core, and all nodes have room for 1"},
    ]
    shown = show(job(), FOUR, (SETTINGS, flux(waiting=found, queue_problem="the queue is stopped (why)")))
    assert (shown["state"], shown["why"], shown["waiting"]) == ("Running", "the queue is stopped (why)", found)
    assert table(shown).endswith(
        """\
Jobs          0 pending  0 running     0 done
Pending      ƒA, ƒB, ƒC and 2 more: waits for resources that other jobs have
             ƒF: can never run: it asks for 5 nodes of 1 core, and all nodes
             have room for 1
"""
    )


def test_status_has_the_queues_with_names() -> None:
    states = {"depend": 1, "priority": 0, "sched": 2, "run": 3, "cleanup": 1, "inactive": 9}
    handle = FakeFlux(
        {0: (1, 0)}, {0}, queues=[{"name": "slow", "job_states": states}, {"name": "a", "job_states": states}]
    )
    handle.stop_reason = "why"
    queues = waiting.queues(handle)
    assert queues == [
        {"name": name, "pending": 3, "running": 4, "problem": "the queue is stopped (why)"} for name in ("a", "slow")
    ]
    shown = show(job(), FOUR, (SETTINGS, flux(queues=[queues[0], {**queues[1], "problem": ""}])))
    assert table(shown).splitlines()[-2:] == [
        "Queues       a  3 pending, 4 running: the queue is stopped (why)",
        "             slow  3 pending, 4 running",
    ]


@pytest.mark.parametrize(
    ("size", "policy", "expected"),
    [
        (0, None, "the group gpu has no nodes: `minicluster scale mini gpu=SIZE` adds some"),
        (1, None, "the group gpu has no node up"),
        # the autoscaler does
        (0, {"min": 0, "max": 2}, "the group gpu has no node up"),
    ],
)
def test_status_says_that_a_group_has_no_nodes(size: int, policy: Any, expected: str) -> None:
    assert snapshot.NONE_UP == NONE_UP
    said = f"waits for nodes: it asks for 1 slot of 1 core with gpu, and {NONE_UP.format('gpu')}"
    settings = SETTINGS | {"groups": [{"name": "gpu", "policy": policy}]}
    shown = show(
        job(),
        FOUR,
        (settings, flux(waiting=[{"jobs": ["ƒA"], "reason": said}])),
        [GroupNodes("gpu", size, 8, 2, {})],
    )
    assert shown["waiting"][0]["reason"] == f"waits for nodes: it asks for 1 slot of 1 core with gpu, and {expected}"


@pytest.mark.parametrize(
    ("request_", "constraints", "groups", "expected"),
    [
        (Request(3, 4, 0, apart=True), None, {}, {"": 3}),
        (Request(9, 1, 0), None, {}, {"": 3}),
        (Request(1, 1, 1), None, {}, {"": 4}),
        # in a group, of which one node is enough
        (Request(1, 1, 1), None, {"gpu": range(2, 4)}, {"gpu": 2}),
        (Request(1, 1, 0), GPUS, {"gpu": range(2, 4)}, {"gpu": 1}),
        # the nodes that are up and those of a group together
        (Request(3, 1, 0, apart=True), None, {"gpu": range(2, 4)}, {"gpu": 1}),
        # nodes are up, never enough, or only the scheduler knows
        (Request(2, 4, 0, apart=True), None, {}, {}),
        (Request(5, 1, 0, apart=True), None, {}, {}),
        (Request(3, 1, 0, apart=True), Constraints("x", None, ""), {}, {}),
        # the other nodes are a burst's
        (Request(3, 4, 0, apart=True), None, {"": range(2)}, {}),
        (Request(3, 1, 0, apart=True), None, {"": range(2), "gpu": range(2, 3)}, {"gpu": 1}),
    ],
)
def test_the_sizes_that_would_give_a_job_its_nodes(
    request_: Request, constraints: Constraints | None, groups: dict[str, range], expected: dict[str, int]
) -> None:
    assert Unmet(request_, NODES, constraints, groups).sizes() == expected


def test_the_nodes_of_bursts_are_in_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    its = {"max_size": 3, "groups": [{"name": "gpu", "max_size": "2"}]}
    monkeypatch.setattr(waiting, "settings", lambda: its)
    assert waiting.groups() == {"": range(3), "gpu": range(3, 5)}


def test_the_sizes_for_a_job_of_many_nodes_are_there_before_the_question_is_given_up() -> None:
    nodes, begin = Nodes(dict.fromkeys(range(10_000), (4, 0)), {}, frozenset({0}), {}), time.process_time()
    assert Unmet(Request(9000, 4, 0, apart=True), nodes).sizes() == {"": 9000}
    assert time.process_time() - begin < QUESTIONS["why of a job"].seconds / 4
