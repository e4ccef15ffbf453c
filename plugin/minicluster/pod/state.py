"""What Flux knows of the cluster: printed as JSON by itself; the other programs of a pod read it as a module.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Iterable, Mapping

#: KVS key under which minicluster-scale leaves the size that it asks for
ASKED = "minicluster.size"
#: How the reasons of our own drains begin
OURS = "minicluster: "
#: How a job can have ended (job-list.job-stats)
RESULTS = ("successful", "failed", "canceled", "timeout")


def ids(text: str) -> list[int]:
    """Return the numbers of an idset (RFC 22), e.g. ``0-2,5`` or ``[0-2,5]``."""
    numbers: list[int] = []
    text = text.strip("[]")
    for part in text.split(",") if text else []:
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def idset(numbers: Iterable[int]) -> str:
    """Return numbers as an idset, "" for none."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def by_rank(resources: Mapping[str, Any] | None) -> dict[int, tuple[int, int]]:
    """Return {rank: (cores, GPUs)} of a resource set (RFC 20); None is the empty one."""
    found: dict[int, tuple[int, int]] = {}
    for entry in resources["execution"]["R_lite"] if resources else []:
        children = entry["children"]
        pair = len(ids(children.get("core", ""))), len(ids(children.get("gpu", "")))
        found.update(dict.fromkeys(ids(entry["rank"]), pair))
    return found


def cores(resources: str | Mapping[str, Any] | None) -> set[tuple[int, int]]:
    """Return the cores of a resource set (RFC 20), a text or read, as (rank, core); None is the empty one."""
    found = json.loads(resources) if isinstance(resources, str) else resources
    lite = (found or {}).get("execution", {}).get("R_lite") or []
    return {(rank, core) for e in lite for rank in ids(e["rank"]) for core in ids(e["children"].get("core", ""))}


@dataclass(frozen=True)
class Nodes:
    """The nodes that Flux knows, those that never came too."""

    all: Mapping[int, tuple[int, int]]  #: rank to cores and GPUs
    used: Mapping[int, tuple[int, int]]  #: rank to cores and GPUs that jobs have
    online: frozenset[int]
    drained: Mapping[int, str]  #: rank to reason

    def first(self, size: int) -> Nodes:
        """Return the nodes of the first ranks."""

        def cut(ranks: Mapping[int, Any]) -> dict[int, Any]:
            return {rank: value for rank, value in ranks.items() if rank < size}

        return Nodes(cut(self.all), cut(self.used), frozenset(r for r in self.online if r < size), cut(self.drained))


def nodes(handle: Any) -> Nodes:
    """Ask Flux for its nodes."""
    from flux.resource import resource_list

    status = handle.rpc("resource.status", nodeid=0).get()
    allocated = resource_list(handle).get().allocated
    return Nodes(
        by_rank(status["R"]),
        by_rank(json.loads(allocated.encode()) if allocated.nnodes else None),
        frozenset(ids(status["online"])),
        {rank: entry["reason"] for targets, entry in status["drain"].items() for rank in ids(targets)},
    )


def modules(handle: Any) -> dict[str, list[str]]:
    """Return the modules of this rank's broker, with the services of each."""
    return {module["name"]: module["services"] for module in handle.rpc("module.list").get()["mods"]}


def scheduler(handle: Any) -> dict[str, str]:
    """Return the scheduler's name and, of Fluxion, its policies."""
    name = next((name for name, services in modules(handle).items() if "sched" in services), "none")
    if name != "sched-fluxion-qmanager":
        return {"name": name}
    queue, match = (handle.rpc(f"{module}.params").get()["params"] for module in (name, "sched-fluxion-resource"))
    return {"name": "Fluxion", "queuePolicy": queue["queue-policy"], "matchPolicy": match["policy"]}


def jobs(handle: Any, states: str, attributes: list[str]) -> list[dict[str, Any]]:
    """Ask Flux for the jobs in some states (``pending``, ``sched``, ``running``), in the order of their ids."""
    from flux.job import JobList

    asked = JobList(handle, attrs=attributes, filters=[states], user="all", max_entries=0)
    found: list[dict[str, Any]] = asked.fetch_jobs().get_jobs()
    return sorted(found, key=lambda job: job["id"])


def counts(handle: Any) -> dict[str, int]:
    """Return how many jobs are in each state, and how those that are done ended."""
    stats = handle.rpc("job-list.job-stats", {}).get()
    return {**stats["job_states"], **{key: stats.get(key, 0) for key in RESULTS}}


def waiting(handle: Any) -> list[dict[str, Any]]:
    """Return the jobs that wait for nothing but resources, by priority."""
    found = jobs(handle, "sched", ["priority", "t_depend"])
    return sorted((job for job in found if job.get("priority", 0) > 0), key=lambda job: -job["priority"])


def queue_wait(pending: Iterable[Mapping[str, Any]], now: float) -> float:
    """Return for how many seconds the one that has waited longest has."""
    return max([0.0, *(now - float(job["t_depend"]) for job in pending if "t_depend" in job)])


def minus(all_of: tuple[int, int], used: tuple[int, int]) -> tuple[int, int]:
    """Return the cores and GPUs that are left."""
    return max(0, all_of[0] - used[0]), max(0, all_of[1] - used[1])


def totals(pairs: Iterable[tuple[int, int]]) -> dict[str, int]:
    """Return the sums of cores and of GPUs."""
    every = list(pairs)
    return {"cores": sum(cores for cores, _ in every), "gpus": sum(gpus for _, gpus in every)}


def summary(handle: Any) -> dict[str, Any]:
    """Return what `minicluster status` shows of Flux; ranks are idsets."""
    found = nodes(handle)
    online = {rank: pair for rank, pair in found.all.items() if rank in found.online}
    return {
        "version": handle.attr_get("version"),
        "quorum": int(handle.attr_get("broker.quorum")),
        "scheduler": scheduler(handle),
        "registered": len(found.all),
        "online": idset(found.online),
        "allocated": idset(found.used),
        "drained": {str(rank): reason for rank, reason in sorted(found.drained.items())},
        "total": totals(online.values()),
        "free": totals(
            minus(pair, found.used.get(rank, (0, 0))) for rank, pair in online.items() if rank not in found.drained
        ),
        "used": totals(found.used.values()),
        "jobs": counts(handle),
        "queue_wait": round(queue_wait(waiting(handle), time.time()), 1),
    }


if __name__ == "__main__":
    import flux

    print(json.dumps(summary(flux.Flux())))
