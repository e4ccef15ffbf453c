"""The autoscaler's policy: what the queue needs, and when the cluster grows and shrinks."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from autoscale import Autoscaler, Decision, Policy, Snapshot
from hypothesis import given
from hypothesis import strategies as st
from need import Group, Need, Request, Room, parse_resources, queue_needs
from state import Nodes

POLICY = Policy(min=1, max=8, backlog=10, idle=60)
NODE = Request(1, 1, 0, apart=True)


def nodes(
    most: int = 8,
    pair: tuple[int, int] = (4, 0),
    used: dict[int, tuple[int, int]] | None = None,
    drained: tuple[int, ...] = (),
) -> Nodes:
    """Return identical nodes."""
    return Nodes(dict.fromkeys(range(most), pair), used or {}, frozenset(range(most)), dict.fromkeys(drained, "x"))


def need(seen: Nodes, size: int, most: int, pending: Iterable[Request]) -> Need:
    """Return what the queue needs of a cluster without groups, whose hosts are the first eight."""
    return queue_needs(seen, [Group(0, 8, size, most)], pending)[0]


# What jobs ask for -------------------------------------------------------------------------------------------


def level(kind: str, count: Any, *below: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": kind, "count": count, **({"with": list(below)} if below else {}), **fields}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        # flux submit -n 3 -c 2 -g 1
        pytest.param(level("slot", 3, level("core", 2), level("gpu", 1)), Request(3, 2, 1), id="slots"),
        # flux submit -N 2 -n 4
        pytest.param(level("node", 2, level("slot", 2, level("core", 1))), Request(2, 2, 0, apart=True), id="nodes"),
        # flux submit -N 2 -n 8 -c 3 -g 2
        pytest.param(
            level("node", 2, level("slot", 4, level("core", 3), level("gpu", 2))),
            Request(2, 12, 8, apart=True),
            id="slots on nodes",
        ),
        # flux submit -N 2 --exclusive
        pytest.param(
            level("node", 2, level("slot", 1, level("core", 1)), exclusive=True),
            Request(2, 1, 0, apart=True, exclusive=True),
            id="exclusive nodes",
        ),
        # flux submit --tasks-per-node: nodes below a slot
        pytest.param(
            level("slot", 3, level("node", 1, level("core", 2))), Request(1, 6, 0, apart=True), id="nodes in slots"
        ),
        pytest.param(
            level("node", {"min": 2, "max": 4}, level("slot", 1, level("core", 1))),
            Request(2, 1, 0, apart=True),
            id="range of nodes",
        ),
        *(
            pytest.param(
                level("node", count, level("slot", 1, level("core", 1))), Request(least, 1, 0, apart=True), id=count
            )
            for count, least in (("3+", 3), ("3+:2:*", 3), ("2-4", 2), ("2,4", 2), ("2-8:2:*", 2), ("5", 5))
        ),
    ],
)
def test_parse_resources_reads_what_flux_commands_request(resources: dict[str, Any], expected: Request) -> None:
    assert parse_resources([resources]) == expected


# What the queue needs ----------------------------------------------------------------------------------------

BUSY = dict.fromkeys(range(2), (4, 0))


@pytest.mark.parametrize(
    ("seen", "size", "pending", "expected"),
    [
        # no job waits: the nodes that jobs hold
        pytest.param(nodes(), 3, [], 0, id="no jobs"),
        pytest.param(nodes(used={1: (1, 0)}), 3, [], 2, id="only a running job"),
        # there is room, or soon will be: never less than the size
        pytest.param(nodes(), 3, [NODE], 3, id="room"),
        pytest.param(nodes(used=BUSY), 2, [NODE], 3, id="one job"),
        pytest.param(nodes(used=BUSY), 2, [NODE] * 40, 8, id="many jobs"),
        pytest.param(nodes(used=BUSY), 2, [Request(3, 1, 0, apart=True)], 5, id="nodes of a job"),
        # several jobs share a node, as do slots without nodes
        pytest.param(nodes(used=BUSY), 2, [NODE] * 4, 3, id="four jobs on a node"),
        pytest.param(nodes(used=BUSY), 2, [NODE] * 5, 4, id="fifth job"),
        pytest.param(nodes(used=BUSY), 2, [Request(4, 1, 0)], 3, id="four slots"),
        pytest.param(nodes(used=BUSY), 2, [Request(9, 1, 0)], 5, id="nine slots"),
        pytest.param(nodes(used=BUSY), 2, [Request(3, 3, 0)], 5, id="slots of three cores"),
        pytest.param(nodes(used={0: (1, 0)}), 1, [Request(5, 1, 0)], 2, id="rest of a used node"),
        # whole nodes
        pytest.param(nodes(used={0: (1, 0)}), 1, [replace(NODE, exclusive=True)], 2, id="exclusive"),
        pytest.param(nodes(), 1, [replace(NODE, exclusive=True)] * 2, 2, id="two exclusive"),
        # a job that fits only when the running jobs have ended
        pytest.param(nodes(used=BUSY), 2, [Request(8, 1, 0, apart=True)], 8, id="all nodes"),
        # jobs that not even an empty cluster could run
        pytest.param(nodes(used=BUSY), 2, [Request(9, 1, 0, apart=True)], 2, id="more nodes than max"),
        pytest.param(nodes(used=BUSY), 2, [Request(1, 5, 0)], 2, id="more cores than a node"),
        pytest.param(nodes(used=BUSY), 2, [Request(1, 5, 0), NODE], 3, id="impossible job before another"),
        pytest.param(nodes(), 2, [Request(1, 1, 1)], 0, id="no GPUs"),
        # GPUs
        pytest.param(nodes(pair=(4, 2)), 1, [Request(1, 1, 2, apart=True)] * 3, 3, id="all GPUs of a node"),
        pytest.param(nodes(pair=(4, 2), used={0: (1, 1)}), 1, [Request(1, 1, 1)], 1, id="free GPU"),
        pytest.param(nodes(pair=(4, 2), used={0: (1, 1)}), 1, [Request(1, 1, 2)], 2, id="more GPUs than are free"),
        pytest.param(nodes(pair=(4, 2)), 1, [Request(1, 0, 3)], 0, id="more GPUs than a node"),
        # nodes that others drained take no jobs, also those to come
        pytest.param(nodes(drained=(0, 1)), 2, [NODE], 3, id="all drained"),
        pytest.param(nodes(drained=(1,)), 2, [NODE] * 5, 3, id="one drained"),
        pytest.param(nodes(drained=(2,)), 2, [Request(3, 1, 0, apart=True)], 4, id="later node drained"),
        pytest.param(nodes(drained=(0,)), 2, [Request(8, 1, 0, apart=True)], 0, id="all nodes with one drained"),
        # hosts of bursts, from rank 8 on, are not the cluster's own nodes: they count as room once they have joined
        pytest.param(nodes(10), 2, [Request(10, 1, 0, apart=True)], 8, id="joined hosts of bursts"),
        pytest.param(nodes(10, used=BUSY), 2, [Request(10, 1, 0, apart=True)], 8, id="joined hosts and running jobs"),
        pytest.param(nodes(10), 2, [Request(3, 1, 0, apart=True)], 3, id="own nodes suffice"),
        pytest.param(nodes(10, used={9: (1, 0)}), 2, [], 0, id="job on a burst"),
        pytest.param(nodes(10, drained=(9,)), 2, [Request(10, 1, 0, apart=True)], 0, id="drained host of a burst"),
        pytest.param(
            replace(nodes(10), online=frozenset(range(9))),
            2,
            [Request(10, 1, 0, apart=True)],
            0,
            id="host of a burst not joined",
        ),
        # we drained it, and its pod starts again
        pytest.param(
            replace(nodes(), drained={1: "minicluster: the pod was told to stop"}), 2, [NODE] * 5, 2, id="our drain"
        ),
    ],
)
def test_queue_need_is_the_size_that_the_pending_jobs_need(
    seen: Nodes, size: int, pending: list[Request], expected: int
) -> None:
    assert need(seen, size, 8, pending).size == expected


@pytest.mark.parametrize(
    ("pending", "expected"),
    [
        pytest.param([], Need(2), id="no jobs"),
        # jobs for which there is room, or that no size has room for, have waited for nothing
        pytest.param([(3, replace(NODE, cores=3))], Need(2), id="room"),
        pytest.param([(3, replace(NODE, cores=5))], Need(2), id="impossible"),
        # rank 1 has one core left, for the third
        pytest.param([(3, replace(NODE, cores=4)), (9, NODE), (1, NODE)], Need(3, 3), id="one of three jobs"),
        pytest.param(
            [(7, replace(NODE, cores=4)), (5, replace(NODE, cores=4)), (9, replace(NODE, cores=4))],
            Need(5, 5),
            id="oldest of three jobs",
        ),
        # it waits for running jobs, and needs more nodes than there are
        pytest.param([(4, replace(NODE, chunks=8, cores=2))], Need(8, 4), id="after running jobs"),
        pytest.param([(4, replace(NODE, chunks=2, cores=4))], Need(4, 4), id="two nodes"),
    ],
)
def test_queue_need_tells_since_when_more_nodes_are_needed(
    pending: list[tuple[float, Request]], expected: Need
) -> None:
    seen = nodes(used={0: (4, 0), 1: (1, 0)})
    assert need(seen, 2, 8, [replace(request, since=since) for since, request in pending]) == expected


def test_queue_need_does_not_exceed_the_largest_size() -> None:
    assert need(nodes(used=BUSY), 2, 4, [NODE] * 40).size == 4
    assert need(nodes(used={5: (1, 0)}), 6, 4, []) == Need(0)


def test_queue_need_stops_reading_the_queue_once_the_result_is_certain() -> None:
    read = []

    def pending() -> Iterator[Request]:
        for number in range(1000):
            read.append(number)
            yield replace(NODE, cores=4)

    assert need(nodes(), 1, 8, pending()).size == 8
    assert len(read) == 8


@given(
    seen=st.builds(
        nodes,
        pair=st.tuples(st.integers(1, 8), st.integers(0, 4)),
        drained=st.sets(st.integers(0, 7)).map(tuple),
    ),
    size=st.integers(1, 8),
    asked=st.builds(Request, st.integers(1, 9), st.integers(0, 9), st.integers(0, 5), st.booleans(), st.booleans()),
)
def test_a_job_needs_as_many_identical_empty_nodes_as_a_division_says(seen: Nodes, size: int, asked: Request) -> None:
    """On identical empty nodes, the number of nodes is a division."""
    by_kind = zip(seen.all[0], (asked.cores, asked.gpus), strict=True)
    fits = min((room // wanted for room, wanted in by_kind if wanted), default=1)
    each = min(fits, 1) if asked.apart else fits
    usable = [rank for rank in range(8) if rank >= size or rank not in seen.drained]
    wanted = -(-asked.chunks // each) if each else 99
    room = Room(seen, usable)
    assert room.place(asked) == (wanted <= len(usable))
    assert set(room.since) == set(usable[:wanted] if wanted <= len(usable) else ())


# When it grows and shrinks -----------------------------------------------------------------------------------


def look(
    size: int, wish: int = 0, now: float = 0, used: tuple[int, ...] = (), since: float = 0, **fields: Any
) -> Snapshot:
    """Return a snapshot in which a job has waited since a time."""
    there = nodes(used=dict.fromkeys(used, (4, 0)))
    return Snapshot(now=now, size=size, nodes=there, **{"need": Need(wish, since), "waiting": 3, **fields})


GROWS = "3 jobs wait for nodes"
WAITS = f"waits: {GROWS}, for less than 10 s"
ASKED = "waits: 5 nodes were requested, for less than 10 s"
STEPPED = "waits: the last step is less than a period ago"
IDLE = "waits: nodes have been idle for less than 60 s"


@pytest.mark.parametrize(
    ("policy", "seen", "expected"),
    [
        pytest.param({}, [look(2, 2)], (2, "nothing to do"), id="nothing to do"),
        # the backlog's window
        pytest.param({}, [look(1, 4)], (1, WAITS), id="first look"),
        pytest.param({}, [look(1, 4), look(1, 4, 9.9)], (1, WAITS), id="before the backlog window"),
        pytest.param({}, [look(1, 4), look(1, 4, 10)], (4, GROWS), id="after the backlog window"),
        # of a job: short ones that come and go don't count
        pytest.param({}, [look(1, 4, now, since=now - 9) for now in range(0, 90, 3)], (1, WAITS), id="short jobs"),
        pytest.param({}, [look(1, 4, 30, since=20)], (4, GROWS), id="job that waited"),
        pytest.param({"backlog": 0}, [look(1, 4)], (4, GROWS), id="no backlog window"),
        # limits
        pytest.param({}, [look(1, 40), look(1, 40, 10)], (8, GROWS), id="at most 8 nodes"),
        pytest.param({"max": 3}, [look(1, 40), look(1, 40, 10)], (3, GROWS), id="at most 3 nodes"),
        pytest.param({"step_up": 2}, [look(1, 8), look(1, 8, 10)], (3, GROWS), id="step up"),
        pytest.param({"step_up": 2}, [look(1, 2), look(1, 2, 10)], (2, GROWS), id="last step up"),
        pytest.param(
            {"step_up": 2, "period": 5}, [look(1, 8, 10), look(3, 8, 15)], (5, GROWS), id="step after a period"
        ),
        pytest.param(
            {"step_up": 2, "period": 5}, [look(1, 8, 10), look(3, 8, 14.9)], (3, STEPPED), id="step before a period"
        ),
        pytest.param({"period": 5}, [look(1, 4, 10), look(4, 8, 11)], (8, GROWS), id="growth without steps"),
        pytest.param({"min": 3}, [look(1)], (3, "autoscaling.min"), id="min at once"),
        pytest.param({"min": 3}, [look(5), look(5, 0, 60)], (3, "nodes idle for 60 s"), id="no smaller than min"),
        # the idle window, of the whole cluster and of each node
        pytest.param({}, [look(4)], (4, IDLE), id="idle first look"),
        pytest.param({}, [look(4), look(4, 0, 59.9)], (4, IDLE), id="before the idle window"),
        pytest.param({}, [look(4), look(4, 0, 60)], (1, "nodes idle for 60 s"), id="after the idle window"),
        pytest.param({}, [look(4), look(4, 4, 30, used=(3,)), look(4, 0, 60)], (4, IDLE), id="job in the idle window"),
        pytest.param({"idle": 0}, [look(4)], (1, "nodes idle for 0 s"), id="no idle window"),
        pytest.param({"step_down": 2}, [look(4), look(4, 0, 60)], (2, "nodes idle for 60 s"), id="step down"),
        pytest.param(
            {"step_down": 1, "period": 5},
            [look(4), look(4, 0, 60), look(3, 0, 64.9)],
            (3, STEPPED),
            id="step down before a period",
        ),
        pytest.param(
            {"step_down": 1, "period": 5},
            [look(4), look(4, 0, 60), look(3, 0, 65)],
            (2, "nodes idle for 60 s"),
            id="step down after a period",
        ),
        pytest.param(
            {"period": 5},
            [look(4), look(4, 0, 60), look(3, 0, 61)],
            (1, "nodes idle for 60 s"),
            id="shrink without steps",
        ),
        # only over idle nodes, even if the wish is smaller
        pytest.param(
            {},
            [look(4, 2, used=(1,)), look(4, 2, 60, used=(1,))],
            (2, "nodes idle for 60 s"),
            id="down to the need",
        ),
        pytest.param(
            {},
            [look(4, 1, used=(3,)), look(4, 1, 60, used=(3,))],
            (4, "waits: the highest nodes have jobs"),
            id="highest node has a job",
        ),
        pytest.param(
            {},
            [look(4, 1), look(4, 1, 30, used=(2,)), look(4, 1, 60)],
            (3, "nodes idle for 60 s"),
            id="window of each node",
        ),
        # size set by hand, or max lowered: down to max
        pytest.param({"max": 3}, [look(6, 6), look(6, 6, 60)], (3, "nodes idle for 60 s"), id="above max"),
        # minicluster-scale
        pytest.param(
            {},
            [look(1, requested=5), look(1, now=10, requested=5)],
            (5, "5 nodes were requested"),
            id="request",
        ),
        pytest.param(
            {}, [look(5, requested=5), look(5, now=60, requested=5)], (5, "nothing to do"), id="request is met"
        ),
        pytest.param(
            {},
            [look(5, requested=9), look(5, now=60, requested=9)],
            (8, "9 nodes were requested"),
            id="request above max",
        ),
        # a queue that wants more, but has not waited, does not hide it; nor does it become the queue's size
        pytest.param(
            {},
            [look(1, 6, now, since=now, requested=3) for now in (0, 5, 10)],
            (3, "3 nodes were requested"),
            id="request beside the queue",
        ),
        pytest.param(
            {},
            [look(1, requested=5), look(1, now=5), look(1, now=10, requested=5)],
            (1, ASKED),
            id="request withdrawn meanwhile",
        ),
        # CPU
        pytest.param(
            {"cpu_target": 50},
            [look(2, cpu=1.0), look(2, now=10, cpu=1.0)],
            (4, "CPU use is 100% of the request"),
            id="CPU above target",
        ),
        pytest.param(
            {"cpu_target": 50},
            [look(4, cpu=0.1), look(4, now=60, cpu=0.1)],
            (1, "nodes idle for 60 s"),
            id="CPU below target",
        ),
        pytest.param(
            {"cpu_target": 50}, [look(4, cpu=0.5), look(4, now=60, cpu=0.5)], (4, "nothing to do"), id="CPU at target"
        ),
        pytest.param(
            {"cpu_target": 50}, [look(4, cpu=None), look(4, now=60, cpu=None)], (4, "nothing to do"), id="CPU unknown"
        ),
    ],
)
def test_the_autoscaler_decides_by_its_policy_and_what_it_has_seen(
    policy: dict[str, Any], seen: list[Snapshot], expected: tuple[int, str]
) -> None:
    assert decided(replace(POLICY, **policy), seen)[:2] == expected


def decided(policy: Policy, seen: list[Snapshot]) -> Decision:
    """Return the last decision; the ones before it change the size."""
    autoscaler, last = Autoscaler(), Decision(0, "")
    for before, each in zip([seen[0], *seen], seen, strict=False):
        if each.size != before.size:
            autoscaler.stepped = before.now
        last = autoscaler.decide(policy, each)
    return last


@pytest.mark.parametrize(
    ("policy", "seen", "expected"),
    [
        pytest.param({}, [look(1, 4, 3, since=1)], 8, id="backlog window"),
        pytest.param({}, [look(1, 4, 11, since=1)], math.inf, id="window over"),
        # the earlier of two reasons
        pytest.param(
            {}, [look(1, now=0, requested=5), look(1, 4, 4, since=3, requested=5)], 6, id="request before queue"
        ),
        pytest.param({"step_up": 2, "period": 5}, [look(1, 8, 10), look(3, 8, 12)], 3, id="period of a step"),
        # a shrink needs no extra look
        pytest.param({}, [look(4)], math.inf, id="no need"),
        pytest.param({}, [look(2, 2)], math.inf, id="nothing to do"),
    ],
)
def test_the_autoscaler_tells_when_it_would_grow(policy: dict[str, Any], seen: list[Snapshot], expected: float) -> None:
    assert decided(replace(POLICY, **policy), seen).wait == expected


@pytest.mark.parametrize(
    ("size", "use", "target", "expected"),
    [
        # desiredReplicas = ceil(currentReplicas * currentMetric / desiredMetric); within 10 % it stays
        (4, 1.0, 50, 8),
        (4, 0.5, 50, 4),
        (4, 0.54, 50, 4),
        (4, 0.56, 50, 5),
        (4, 0.45, 50, 4),
        (4, 0.44, 50, 4),
        (4, 0.37, 50, 3),
        (8, 0.01, 50, 1),
        (3, 0.0, 50, 0),
        # whole percents, as in Kubernetes: rounding of floats adds no node
        (3, 1.1, 55, 6),
        (1, 2.5, 80, 4),
    ],
)
def test_the_cpu_target_sets_the_size_as_in_the_autoscaler_of_kubernetes(
    size: int, use: float, target: int, expected: int
) -> None:
    policy = replace(POLICY, cpu_target=target)
    wishes = look(size, cpu=use).wishes(policy)
    assert wishes == {"queue": 0, "asked": 0, "min": 1, "cpu": expected}
    assert "cpu" not in look(size, cpu=use).wishes(POLICY)


POLICIES = st.builds(
    Policy,
    min=st.integers(1, 4),
    max=st.integers(4, 8),
    backlog=st.sampled_from([0, 10, 25]),
    idle=st.sampled_from([0, 10, 25]),
    step_up=st.integers(0, 3),
    step_down=st.integers(0, 3),
)
LOOKS = st.lists(
    st.tuples(
        st.integers(0, 10),
        st.integers(0, 30),
        st.integers(0, 10),
        st.sets(st.integers(0, 7)),
        st.sampled_from([1, 10, 30]),
    ),
    max_size=20,
)


@given(policy=POLICIES, first=st.integers(1, 8), looks=LOOKS)
def test_the_autoscaler_keeps_limits_and_windows_for_any_history(policy: Policy, first: int, looks: list[Any]) -> None:
    autoscaler, size, now = Autoscaler(), first, 0.0
    idle: dict[int, float] = {}
    wanted: float | None = None
    for wish, waited, asked, busy, seconds in looks:
        now += seconds
        used = {rank for rank in busy if rank < size}
        idle = {rank: idle.get(rank, now) for rank in range(size) if rank not in used}
        wanted = (now if wanted is None else wanted) if min(asked, policy.max) > size else None
        seen = look(size, wish, now, used=tuple(used), since=now - waited, requested=asked)
        after, _, wait = autoscaler.decide(policy, seen)
        assert wait > 0
        assert min(size, policy.min) <= after <= max(size, policy.max)
        assert after >= policy.min
        if after > size >= policy.min:
            by_queue = wish if waited >= policy.backlog else 0
            by_request = asked if wanted is not None and now - wanted >= policy.backlog else 0
            assert after <= max(by_queue, by_request)
            assert after - size <= (policy.step_up or 8)
        for rank in range(after, size):
            assert rank not in used
            assert now - idle[rank] >= policy.idle
        assert size - after <= (policy.step_down or 8)
        size = after


# A run -------------------------------------------------------------------------------------------------------


def run(
    policy: Policy, arrivals: list[float], lasts: float, until: int, *, period: int = 10, start: int = 15
) -> list[int]:
    """Return the size in each period, for one-node jobs of ``lasts`` s and nodes that start within ``start`` s."""
    autoscaler, size, sizes = Autoscaler(), policy.min, []
    ready = dict.fromkeys(range(size), 0)
    running: dict[int, float] = {}
    queue = sorted(arrivals)
    for now in range(until):
        running = {rank: end for rank, end in running.items() if end > now}
        for rank in sorted(ready):
            if queue and queue[0] <= now and ready[rank] <= now and rank not in running:
                running[rank] = now + lasts
                queue.pop(0)
        if now % period:
            continue
        waiting = [replace(NODE, since=arrival) for arrival in queue if arrival <= now]
        used = dict.fromkeys(running, (1, 0))
        seen = nodes(pair=(1, 0), used=used)
        needed = need(seen, size, policy.max, waiting)
        after = autoscaler.decide(policy, Snapshot(float(now), size, seen, needed, len(waiting))).size
        assert all(rank < after for rank in running), "a node went that had a job"
        ready = {rank: ready.get(rank, now + start) for rank in range(after)}
        size = after
        sizes.append(size)
    assert not queue
    return sizes


def turns(sizes: list[int]) -> list[int]:
    """Return the sizes without repetitions."""
    return [size for index, size in enumerate(sizes) if index == 0 or size != sizes[index - 1]]


@pytest.mark.parametrize("lasts", [1, 5, 30, 47, 200])
def test_the_autoscaler_grows_to_eight_nodes_for_forty_jobs_and_back(lasts: float) -> None:
    sizes = run(POLICY, [0.0] * 40, lasts, until=2000)
    top = sizes.index(max(sizes))
    assert sizes[:top] == sorted(sizes[:top])
    assert sizes[top:] == sorted(sizes[top:], reverse=True)
    assert sizes[-1] == 1
    if lasts >= 5:
        # the size that is needed, in the second period
        assert sizes[:3] == [1, 8, 8]


def test_the_autoscaler_grows_and_shrinks_by_its_steps() -> None:
    sizes = turns(run(replace(POLICY, step_up=3, step_down=2), [0.0] * 40, 60, until=2000))
    assert sizes == [1, 4, 7, 8, 6, 4, 2, 1]


@pytest.mark.parametrize(("every", "lasts"), [(10, 25), (5, 30), (20, 10), (7, 23), (10, 65), (60, 50)])
def test_the_autoscaler_keeps_a_constant_size_under_a_constant_load(every: int, lasts: int) -> None:
    sizes = run(POLICY, [float(at) for at in range(0, 6000, every)], lasts, until=6000 + lasts)
    settled = sizes[100:-10]
    assert len(set(settled)) == 1, turns(sizes)
    assert settled[0] >= -(-lasts // every) * 0.9
