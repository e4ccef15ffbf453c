"""What the queue needs of each group of unlike nodes."""

import math
from dataclasses import replace

import pytest
from need import Group, Need, Request, queue_needs
from state import Nodes

#: Ranks 0-1 are the cluster's own, 2-4 large ones, 5-7 have GPUs
PAIRS = {**dict.fromkeys(range(2), (2, 0)), **dict.fromkeys(range(2, 5), (8, 0)), **dict.fromkeys(range(5, 8), (4, 2))}
NODE = Request(1, 1, 0, apart=True, since=5)
GPU = Request(1, 1, 1, since=7)
LARGE = Request(1, 8, 0, since=3)


def groups(own: int = 1, large: int = 0, gpu: int = 0, most: tuple[int, int, int] = (2, 3, 3)) -> list[Group]:
    """Return groups of some sizes."""
    return [Group(0, 2, own, most[0]), Group(2, 3, large, most[1]), Group(5, 3, gpu, most[2])]


def nodes(used: dict[int, tuple[int, int]] | None = None, drained: dict[int, str] | None = None) -> Nodes:
    return Nodes(PAIRS, used or {}, frozenset(PAIRS), drained or {})


BUSY = {0: (2, 0)}


@pytest.mark.parametrize(
    ("seen", "sizes", "pending", "expected"),
    [
        pytest.param(nodes(), groups(), [], [Need(0), Need(0), Need(0)], id="no jobs"),
        pytest.param(nodes({3: (1, 0)}), groups(2, 3, 1), [], [Need(0), Need(2), Need(0)], id="a running job"),
        # each job needs the group that it fits
        pytest.param(nodes(BUSY), groups(), [GPU], [Need(1), Need(0), Need(1, 7)], id="a GPU"),
        pytest.param(nodes(BUSY), groups(), [LARGE], [Need(1), Need(1, 3), Need(0)], id="many cores"),
        pytest.param(
            nodes(BUSY), groups(), [GPU] * 5 + [LARGE] * 2, [Need(1), Need(2, 3), Need(3, 7)], id="both, several"
        ),
        # a group that no waiting job could use is free to go
        pytest.param(nodes(), groups(2, 3, 1), [LARGE] * 4, [Need(0), Need(3), Need(0)], id="unused groups"),
        pytest.param(nodes(), groups(2, 1, 1), [NODE], [Need(2), Need(1), Need(1)], id="any group"),
        # the first group grows first, then the next ones
        pytest.param(nodes(BUSY), groups(), [NODE] * 3, [Need(2, 5), Need(1, 5), Need(0)], id="own first"),
        pytest.param(
            nodes(BUSY), groups(), [replace(NODE, chunks=6)], [Need(2, 5), Need(3, 5), Need(2, 5)], id="over groups"
        ),
        pytest.param(nodes(BUSY), groups(most=(1, 3, 0)), [NODE], [Need(1), Need(1, 5), Need(0)], id="at its most"),
        # nodes that run are taken before new ones of any group
        pytest.param(nodes(BUSY), groups(1, 0, 1), [NODE] * 4, [Need(1), Need(0), Need(1)], id="a free node"),
        # constraints
        pytest.param(
            nodes(),
            groups(),
            [replace(NODE, ranks=frozenset({5, 6, 7}))],
            [Need(0), Need(0), Need(1, 5)],
            id="by ranks",
        ),
        pytest.param(
            nodes(), groups(), [replace(NODE, ranks=frozenset({4}))], [Need(0), Need(3, 5), Need(0)], id="one host"
        ),
        pytest.param(nodes(), groups(1, 1), [replace(NODE, ranks=frozenset())], [Need(0), Need(0), Need(0)], id="none"),
        # no size has room
        pytest.param(nodes(), groups(), [replace(GPU, gpus=3)], [Need(0)] * 3, id="impossible"),
        # the hosts of a burst that has joined have room, after all groups
        pytest.param(
            Nodes({**PAIRS, 8: (8, 2)}, BUSY, frozenset({0, 8}), {}),
            groups(most=(2, 0, 1)),
            [replace(GPU, chunks=2, apart=True), LARGE],
            [Need(1), Need(0), Need(1, 7)],
            id="a burst",
        ),
        pytest.param(nodes(drained={5: "broken"}), groups(), [GPU], [Need(0), Need(0), Need(2, 7)], id="a broken node"),
    ],
)
def test_each_group_needs_what_the_jobs_need_that_fit_it(
    seen: Nodes, sizes: list[Group], pending: list[Request], expected: list[Need]
) -> None:
    assert queue_needs(seen, sizes, pending) == expected


def test_groups_are_asked_in_the_order_in_which_they_are_to_grow() -> None:
    own, large, gpu = groups()
    assert queue_needs(nodes(BUSY), [gpu, large, own], [NODE] * 2) == [Need(1, 5), Need(0), Need(1)]
    assert queue_needs(nodes(BUSY), [large, gpu, own], [NODE] * 25) == [Need(3, 5), Need(1, 5), Need(1)]


def test_a_job_that_needs_what_is_busy_waits_there() -> None:
    """It needs all the GPU nodes that there can be, and one of them is busy."""
    found = queue_needs(nodes({5: (4, 2)}), groups(0, 0, 1), [replace(GPU, chunks=3, gpus=2, apart=True)])
    assert found == [Need(0), Need(0), Need(3, 7)]
    assert math.isinf(queue_needs(nodes(), groups(), [])[0].since)
