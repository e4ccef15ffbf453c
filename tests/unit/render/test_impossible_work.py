"""Work is refused only if it requests more nodes or cores than the cluster can ever have."""

from collections.abc import Callable
from typing import Any

import pytest
from minicluster.errors import SpecError
from minicluster.render.handover import Installed
from minicluster.render.model import MiniClusterModel
from minicluster.render.refusals.sizes import impossible
from minicluster.render.resources import Shape, shape

Make = Callable[..., MiniClusterModel]
HALF = {"resources": {"limits": {"cpu": "500m"}}}
TWO = {"cores": 2}
NEVER = "the work could never run"


def values(flags: str = "", size: int = 1, tasks: int = 1, **fields: Any) -> dict[str, Any]:
    container = {"command": "x", **fields}
    return {"size": size, "tasks": tasks, "containers": [container], "flux": {"optionFlags": flags}}


def of_cores(subject: str, cores: int, there: int) -> str:
    return (
        f"{subject}: that is {cores} cores of a node, and Flux has {there} there: {NEVER}; ask for less, or set "
        "containers[0].cores, otherwise a node's CPU limit or request"
    )


REFUSED: list[tuple[dict[str, Any], str]] = [
    (values(tasks=4, **HALF), of_cores("tasks is 4 and size 1", 4, 1)),
    (values(tasks=5, size=2, **TWO), of_cores("tasks is 5 and size 2", 3, 2)),
    (values(tasks=4, batch=True, **HALF), of_cores("tasks is 4 and size 1", 4, 1)),
    (values("-c 4", **TWO), of_cores("tasks is 1 and size 1, flux.optionFlags is -c 4", 4, 2)),
    (values("-n8 -o x", **TWO), of_cores("tasks is 1 and size 1, flux.optionFlags is -n8 -o x", 8, 2)),
    (
        values(tasks=4, **HALF) | {"flux": {"submitCommand": "flux submit", "optionFlags": ""}},
        of_cores("tasks is 4 and size 1", 4, 1),
    ),
    (
        values("-N 8"),
        f"flux.optionFlags is -N 8, which asks for 8 nodes of at most 1: {NEVER}; set size, which asks for as many",
    ),
    (
        values("--nodes=9 -n9", size=2) | {"maxSize": 8},
        f"flux.optionFlags is --nodes=9 -n9, which asks for 9 nodes of at most 8: {NEVER}; set size, which asks for as "
        "many",
    ),
    (
        values("-N2") | {"maxSize": 4},
        "flux.optionFlags is -N2, which asks for more nodes (2) than tasks (1): Flux refuses that; set size and tasks",
    ),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED, ids=lambda x: x[:60] if isinstance(x, str) else "")
def test_work_that_no_scheduler_can_ever_run_is_refused(cluster_of: Make, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        cluster_of(spec)
    assert str(caught.value) == f"MiniCluster flux-sample: {message}"


BURST = [{"name": "b", "size": 1, "cores": 8}]
TAKEN: list[dict[str, Any]] = [
    values(tasks=4),  # the node tells how many cores it has
    values(tasks=4, cores=4, **HALF),
    values(tasks=4, size=4, **HALF),
    values(tasks=3, size=4, **HALF),
    values(tasks=0, **HALF),
    values("-N2 -n2") | {"maxSize": 4},
    values("-N 4 -n 4", size=2, tasks=2) | {"maxSize": 4},
    values("-n 1", tasks=4, **HALF),
    values("--cores=4 --tasks-per-core=1", tasks=4, **HALF),
    values("-N1-4", tasks=4, **HALF),
    values(tasks=4, launcher=True, **HALF),
    values(tasks=4, command="", **HALF),
    values(tasks=4, diagnostics=True, **HALF),
    values(tasks=4, **HALF) | {"flux": {"submitCommand": "my-own submit"}},
    values(tasks=4, **HALF) | {"flux": {"submitCommand": "flux submit --cc=1-2"}},
    values(tasks=4, **HALF) | {"flux": {"brokerConfig": "a = 1"}},
    values(tasks=8, **TWO) | {"flux": {"bursting": {"clusters": BURST}}},
    values("-N 2 -n 2", **TWO) | {"flux": {"bursting": {"clusters": BURST}}},
]


@pytest.mark.parametrize("spec", TAKEN, ids=str)
def test_work_that_can_run_at_some_time_is_accepted(cluster_of: Make, spec: dict[str, Any]) -> None:
    cluster_of(spec)


def test_a_live_cluster_may_shrink_below_its_work(cluster_of: Make) -> None:
    spec = values(tasks=4, size=2, **HALF)
    with pytest.raises(SpecError, match=NEVER):
        cluster_of(spec)
    taken = cluster_of(values(tasks=4, size=4, **HALF))
    installed = Installed("flux-sample", was={}, asked={}, files={}, mutable=[])
    assert list(impossible(taken._replace(spec={**taken.spec, "size": 2}, installed=installed))) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", Shape(0, 0, 1)),
        ("-N 2 -n 4 -c 3", Shape(2, 4, 3)),
        ("-N2 -n4 -c3", Shape(2, 4, 3)),
        ("--nodes=2 --ntasks=4 --cores-per-task=3", Shape(2, 4, 3)),
        ("--nodes 2 --nslots 4 --cores-per-slot 3", Shape(2, 4, 3)),
        ("-N1 -n1 --label-io -o cpu-affinity=off -N 8 --env X=1", Shape(8, 1, 1)),
        ("-N", None),
        ("-N 1-4", None),
        ("-n x", None),
        ("-n4 --cores=4", None),
        ("--tasks-per-node=2", None),
        ("-N1 -x", None),
    ],
)
def test_shape_reads_nodes_tasks_and_cores_from_option_flags(words: str, expected: Shape | None) -> None:
    assert shape(words.split()) == expected


@pytest.mark.parametrize(
    ("asked", "cores"), [(Shape(2, 4, 3), 6), (Shape(2, 5, 1), 3), (Shape(0, 7, 2), 2), (Shape(3, 0, 1), 1)], ids=str
)
def test_shape_computes_the_cores_that_a_node_must_have(asked: Shape, cores: int) -> None:
    assert asked.cores_of_a_node == cores
