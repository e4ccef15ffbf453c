"""How many nodes, tasks, cores and GPUs a job has, as Slurm counts them, and the resources of a jobspec (RFC 25).

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from typing import Any, Mapping, NamedTuple

from slurm_parse import SlurmError
from slurm_words import gpus_of, nodes_of, number_of


class Layout(NamedTuple):
    """The shape of a job."""

    nodes: int  #: 0: as many as Flux finds for the tasks
    tasks: int
    cpus: int  #: of a task
    node_gpus: int
    task_gpus: int
    exclusive: bool
    is_given: bool  #: somebody gave the number of tasks

    @property
    def tasks_of_node(self) -> int:
        """The most tasks on one node; 0 if only Flux knows."""
        return math.ceil(self.tasks / self.nodes) if self.nodes else 0

    @property
    def is_single(self) -> bool:
        """Whether it is one task on one node."""
        return self.tasks == 1 and self.nodes <= 1


def layout_of(given: Mapping[str, str], hosts: int, cores: int) -> Layout:
    """Return the shape of a job that names so many hosts, where a node has so many cores. Raises SlurmError."""

    def number(name: str) -> int:
        return number_of(given[name], f"--{name}") if name in given else 0

    tasks, of_node, cpus = number("ntasks"), number("ntasks-per-node"), number("cpus-per-task") or 1
    nodes = max(nodes_of(given["nodes"])[0] if "nodes" in given else 0, hosts)
    is_given = bool(tasks or of_node)
    if of_node and tasks and not nodes:
        nodes = math.ceil(tasks / of_node)
    if of_node and tasks > nodes * of_node:
        raise SlurmError(
            f"--ntasks={tasks}: --nodes={nodes} with --ntasks-per-node={of_node} has room for {nodes * of_node}"
        )
    if of_node and not tasks:
        nodes = nodes or 1
        tasks = of_node * nodes
    tasks = tasks or nodes or 1
    # Slurm: can't run 1 processes on 2 nodes, setting nnodes to 1
    nodes = min(nodes, tasks)
    node_gpus, task_gpus = _gpus(given, nodes, tasks)
    if "cpus-per-gpu" in given:
        of_task = task_gpus or node_gpus * max(nodes, 1) // tasks
        cpus = number("cpus-per-gpu") * max(of_task, 1)
    exclusive = "exclusive" in given
    if exclusive and given["exclusive"] not in ("", "user", "exclusive"):
        raise SlurmError(f"--exclusive={given['exclusive']}: a MiniCluster has one user: give --exclusive alone")
    if (exclusive or node_gpus) and not nodes:
        nodes = math.ceil(tasks / max(cores // cpus, 1)) if exclusive else 1
    return Layout(nodes, tasks, cpus, node_gpus, task_gpus, exclusive, is_given)


def _gpus(given: Mapping[str, str], nodes: int, tasks: int) -> tuple[int, int]:
    """Return the GPUs of each node and those of each task. Raises SlurmError."""
    of_node = sum(gpus_of(part)[1] for part in _gres(given))
    if "gpus-per-node" in given:
        of_node = gpus_of(given["gpus-per-node"])[1]
    of_task = gpus_of(given["gpus-per-task"])[1] if "gpus-per-task" in given else 0
    total = gpus_of(given["gpus"])[1] if "gpus" in given else 0
    if total and not (of_node or of_task):
        if nodes and total % nodes == 0:
            return total // nodes, 0
        if total % tasks == 0:
            return 0, total // tasks
        if not nodes:
            return total, 0
        raise SlurmError(f"--gpus={given['gpus']}: not a multiple of {nodes} nodes: use --gpus-per-node")
    return (0, of_task) if of_task else (of_node, 0)


def _gres(given: Mapping[str, str]) -> list[str]:
    """Return the parts of --gres, which are GPUs alone. Raises SlurmError."""
    parts = [part for part in given.get("gres", "").split(",") if part and part.lower() != "none"]
    for part in parts:
        if part.split(":")[0].split("=")[0] not in ("gpu", "gres/gpu"):
            raise SlurmError(f"--gres={part}: Invalid generic resource (gres) specification: a node has GPUs alone")
    return parts


def types_of_gpus(given: Mapping[str, str]) -> set[str]:
    """Return the types of GPUs that are asked for. Raises SlurmError."""
    parts = _gres(given) + [given[name] for name in ("gpus", "gpus-per-node", "gpus-per-task") if name in given]
    return {kind for kind, _ in map(gpus_of, parts) if kind}


def of_tasks(layout: Layout) -> tuple[list[dict[str, Any]], dict[str, int], dict[str, Any]]:
    """Return resources, the count of tasks and shell options of a job whose tasks are the command."""
    if not layout.node_gpus:
        slots = layout.tasks_of_node or layout.tasks
        slot = _slot(slots, layout.cpus, layout.task_gpus)
        is_even = not layout.nodes or layout.tasks % layout.nodes == 0
        count = {"per_slot": 1} if is_even else {"total": layout.tasks}
        return [_node(layout, slot)] if layout.nodes else [slot], count, {}
    if layout.tasks % layout.nodes:
        raise SlurmError(f"--ntasks={layout.tasks}: with GPUs for each node, a multiple of {layout.nodes} nodes")
    slot = _slot(1, layout.tasks_of_node * layout.cpus, layout.node_gpus)
    options = {"per-resource": {"type": "node", "count": layout.tasks_of_node}} if layout.tasks_of_node > 1 else {}
    return [_node(layout, slot)], {"per_slot": 1}, options


def of_instance(layout: Layout) -> tuple[list[dict[str, Any]], dict[str, int], dict[str, Any]]:
    """Return the same of a job with one broker on each node."""
    if not layout.nodes:
        return (
            [_slot(layout.tasks, layout.cpus, layout.task_gpus)],
            {"per_slot": 1},
            {"per-resource": {"type": "node"}},
        )
    slots = layout.tasks_of_node
    slot = _slot(1, slots * layout.cpus, layout.node_gpus or slots * layout.task_gpus)
    return [_node(layout, slot)], {"per_slot": 1}, {}


def _slot(count: int, cores: int, gpus: int) -> dict[str, Any]:
    parts = [{"type": "core", "count": cores}, *([{"type": "gpu", "count": gpus}] if gpus else [])]
    return {"type": "slot", "count": count, "label": "task", "with": parts}


def _node(layout: Layout, slot: Mapping[str, Any]) -> dict[str, Any]:
    whole = {"exclusive": True} if layout.exclusive else {}
    return {"type": "node", "count": layout.nodes, **whole, "with": [slot]}
