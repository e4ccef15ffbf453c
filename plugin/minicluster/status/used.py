"""What a job has used of what it had, in words and in a bar for each node, and what to ask for next time."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from minicluster.console.messages import counted
from minicluster.status.table import bar, left_at

#: A job that ran for less says little about the next one
LEAST_TOLD_SECONDS = 15.0
#: Below this part of the cores or of the memory a job asked for too much; above this one of the memory for too little
LOW_PART, SCARCE_PART = 0.5, 0.9
#: A node that had less of the CPU than this part of the busiest one's did no work
IDLE_PART = 0.1
#: The nodes that get bars
BAR_NODES = 16
#: More threads than so many times the cores get in each other's way
CROWD_FACTOR = 2
BYTE_UNITS = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1))


class Part(NamedTuple):
    """What was used of what was there; None is unknown."""

    used: float | None
    of: float | None

    @property
    def share(self) -> float | None:
        """The part of 1."""
        return None if self.used is None or not self.of else self.used / self.of


class NodeUse(NamedTuple):
    """What a job has used of a node, or of all its nodes."""

    memory: Part  #: bytes, at most
    cores: Part  #: on average
    gpus: Part  #: on average
    gpu_memory: Part  #: bytes, at most


def of_nodes(job: Mapping[str, Any]) -> dict[str, NodeUse]:
    """Return what a job has used by node, by its record; {} if nothing is known."""
    used = job.get("usage") or {"nodes": {}}
    return {host: _use(node, job) for host, node in used["nodes"].items()}


def in_all(job: Mapping[str, Any]) -> NodeUse:
    """Return what a job has used in all, by its record."""
    used = job.get("usage")
    return _use(used["total"] if used else {}, job)


def _use(used: Mapping[str, Any], job: Mapping[str, Any]) -> NodeUse:
    seconds, cpu = _seconds(job), used.get("cpu_seconds")
    average = cpu / seconds if cpu is not None and seconds else None
    parts = (("memory_peak", "memory_limit"), ("gpus_busy", "gpus"), ("gpu_memory_peak", "gpu_memory_limit"))
    memory, gpus, gpu_memory = (Part(used.get(one), used.get(of)) for one, of in parts)
    return NodeUse(memory, Part(average, used.get("cores")), gpus, gpu_memory)


def _seconds(job: Mapping[str, Any]) -> float:
    start, end = job.get("t_run"), left_at(job)
    return end - start if start and end else 0.0


def amount(part: Part) -> str:
    """Return bytes of bytes with one unit, "" for unknown ones.

    >>> amount(Part(429496730, 8 << 30)), amount(Part(5 << 20, None)), amount(Part(None, 8 << 30))
    ('0.4 of 8 GiB', '5 MiB', '')
    """
    if part.used is None:
        return ""
    unit, scale = next((name, scale) for name, scale in BYTE_UNITS if (part.of or part.used) >= scale or scale == 1)
    used = f"{part.used / scale:.1f}".removesuffix(".0")
    return f"{used} of {part.of / scale:.1f}".removesuffix(".0") + f" {unit}" if part.of else f"{used} {unit}"


def cores(part: Part, what: str = "core") -> str:
    """Return cores of cores, "" for unknown ones.

    >>> cores(Part(0.96, 4)), cores(Part(0.02, 1), "GPU"), cores(Part(None, 4))
    ('1.0 of 4 cores', '0.0 of 1 GPU', '')
    """
    if part.used is None:
        return ""
    return f"{part.used:.1f} of {counted(int(part.of), what)}" if part.of else f"{part.used:.1f} {what}s"


def told(job: Mapping[str, Any]) -> str:
    """Return what a job has used in all, by its record; "" if nothing is known."""
    total = in_all(job)
    *first, last = [*filter(None, [amount(total.memory), cores(total.cores), gpus(total)])] or [""]
    return " and ".join(filter(None, [", ".join(first), last]))


def inner(job: Mapping[str, Any]) -> str:
    """Return how many jobs there were inside of a job, by its record; "" for none.

    >>> inner({"inner": {"total": 12, "failed": 2, "canceled": 0, "timeout": 1}}), inner({"inner": None})
    ('12, 3 failed', '')
    >>> inner({"inner": {"total": None, "failed": None, "canceled": None, "timeout": None}})
    'unknown'
    """
    counts = job.get("inner") or {}
    if counts and counts["total"] is None:
        return "unknown"  # it was killed
    ended = (("failed", "failed"), ("timeout", "failed"), ("canceled", "canceled"))
    told = {word: sum(counts.get(key, 0) for key, of in ended if of == word) for _, word in ended}
    return ", ".join([f"{counts['total']}", *(f"{n} {word}" for word, n in told.items() if n)]) if counts else ""


def gone_inside(jobs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield which jobs had more inside than are known.

    >>> [*gone_inside([{"id": "f1", "inner": {"total": 1200, "kept": 1000}}, {"id": "f2", "inner": None}])]
    ['the records of 200 jobs inside of f1 are gone, which had 1200']
    """
    for job in jobs:
        counts = job.get("inner") or {}
        gone = (counts.get("total") or 0) - counts.get("kept", math.inf)
        if gone > 0:
            which = f"{counted(int(gone), 'job')} inside of {job['id']}"
            yield f"the records of {which} are gone, which had {counts['total']}"


def gpus(use: NodeUse) -> str:
    """Return GPUs of GPUs, with the most memory that they had; "" for unknown ones."""
    memory = amount(use.gpu_memory)
    return cores(use.gpus, "GPU") + (f" with {memory}" if memory else "")


def in_words(job: Mapping[str, Any], now: float | None = None) -> Iterator[str]:
    """Yield what a job has used, a bar for each node, and what to ask for next time.

    ``now`` is for one that runs: then what it has used until now. Of one that soon ended only scarce memory is told.
    """
    job = {**job, "t_cleanup": now} if now else job
    nodes, total = of_nodes(job), in_all(job)
    what, is_short = told(job), not now and _seconds(job) < LEAST_TOLD_SECONDS
    if not what or (is_short and not _is_memory_scarce(nodes)):
        return
    notes = [] if now or is_short else [*_notes(job, nodes, total)]
    less = ": ask for less" if any("ask for" in note for note in notes) else ""
    yield f"it {'has used' if now else 'used'} {what} on {counted(len(nodes), 'node')}{less}"
    yield from _bars(nodes)
    yield from (f"* {note}" for note in notes)


def _bars(nodes: Mapping[str, NodeUse]) -> Iterator[str]:
    """Yield a bar for the memory and the CPU of each node."""
    for host, use in [*nodes.items()][:BAR_NODES]:
        parts = (("memory", use.memory, amount(use.memory)), ("CPU", use.cores, cores(use.cores)))
        for what, part, text in (*parts, ("GPU", use.gpus, gpus(use))):
            if part.share is not None:
                yield f"{bar(part.share)} {what} of {host}: {text}"
    if len(nodes) > BAR_NODES:
        yield f"and {counted(len(nodes) - BAR_NODES, 'more node')}"


def _notes(job: Mapping[str, Any], nodes: Mapping[str, NodeUse], total: NodeUse) -> Iterator[str]:
    """Yield what to ask for next time, with the option."""
    idle = _idle(nodes)
    if idle:
        names = ", ".join(idle[:BAR_NODES])
        yield f"{names} did no work: if that is how the program is, ask for -N{len(nodes) - len(idle)}"
    elif total.cores.share is not None and total.cores.share < LOW_PART:
        yield f"most of its cores did nothing: ask for {_fewer(job, total.cores)}"
    if total.gpus.share is not None and total.gpus.share < LOW_PART:
        yield "its GPUs did little: ask for fewer: -g, or give them more work"
    threads = ((job.get("usage") or {}).get("total") or {}).get("threads") or 0
    if (total.cores.share or 0.0) > SCARCE_PART and threads > CROWD_FACTOR * (total.cores.of or threads):
        yield f"it had {threads} threads at once: ask for more cores, -c, or let it start fewer: OMP_NUM_THREADS"
    memory = [use.memory.share for use in nodes.values() if use.memory.share is not None]
    if _is_memory_scarce(nodes):
        yield "it used nearly all of a node's memory: raise resources.limits.memory, or use more nodes: -N"
    elif len(memory) == len(nodes) and max(memory) < LOW_PART:
        yield "less memory would do, if no other job needs it: resources.limits.memory"


def _is_memory_scarce(nodes: Mapping[str, NodeUse]) -> bool:
    """Tell whether a node had next to no memory left."""
    return any((use.memory.share or 0.0) > SCARCE_PART for use in nodes.values())


def _idle(nodes: Mapping[str, NodeUse]) -> Sequence[str]:
    """Return the nodes that did nothing, beside others that did."""
    used = {host: use.cores.used for host, use in nodes.items()}
    busiest = max((cpu for cpu in used.values() if cpu is not None), default=0.0)
    return [host for host, cpu in used.items() if cpu is not None and cpu < IDLE_PART * min(1.0, busiest)]


def _fewer(job: Mapping[str, Any], part: Part) -> str:
    """Return the option of as many cores as a job has kept busy."""
    tasks, used, of = job.get("ntasks") or 1, part.used or 0.0, part.of or 0.0
    # with -N alone it would get whole nodes again
    return f"-n{tasks} -c{max(1, math.ceil(used / tasks))}" if of > tasks else f"-n{max(1, math.ceil(used))}"
