"""Reads what Flux knows of the cluster. As a program it prints a summary as JSON; the pods' other programs import it.

So do programs of newer clients, by their names: they stay. Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Container, Iterable, Mapping

import saved
from offers import list_modules

#: The reasons of our drains begin with this
OWN_REASON = "minicluster: "
#: Those of nodes that stay out, because their check failed (check.sh)
CHECK_REASON = "its check failed: "
#: Those of nodes whose memory is short without a job that has it (guard.py)
MEMORY_REASON = "its memory is short: "
#: How a job can have ended (job-list.job-stats)
RESULTS = ("successful", "failed", "canceled", "timeout")
#: Seconds for which it is told that the kernel has killed processes; the log has it for good
KILL_TOLD_SECONDS = 3600
#: Files with the problems of other programs, a line for each
PROBLEMS = ("former-lead.problem", "undrainer.problem", "agent.problem", "memory.problem", "history.problem")


def parse_idset(text: str) -> list[int]:
    """Return the numbers of an idset (RFC 22), e.g. ``0-2,5`` or ``[0-2,5]``. Raises ValueError."""
    numbers: list[int] = []
    text = text.strip("[]")
    for part in text.split(",") if text else []:
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def to_idset(numbers: Iterable[int]) -> str:
    """Return numbers as an idset, "" for none."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def by_rank(resources: Mapping[str, Any] | None) -> dict[int, tuple[int, int]]:
    """Return {rank: (cores, GPUs)} of a resource set (RFC 20); None is the empty one."""
    ranges: dict[int, tuple[int, int]] = {}
    for entry in resources["execution"]["R_lite"] if resources else []:
        children = entry["children"]
        pair = len(parse_idset(children.get("core", ""))), len(parse_idset(children.get("gpu", "")))
        ranges.update(dict.fromkeys(parse_idset(entry["rank"]), pair))
    return ranges


def core_set(resources: str | Mapping[str, Any] | None) -> set[tuple[int, int]]:
    """Return the cores of a resource set (RFC 20), as JSON or parsed, as (rank, core); None is the empty one."""
    parsed = json.loads(resources) if isinstance(resources, str) else resources
    entries = (parsed or {}).get("execution", {}).get("R_lite") or []
    return {
        (rank, core)
        for entry in entries
        for rank in parse_idset(entry["rank"])
        for core in parse_idset(entry["children"].get("core", ""))
    }


@dataclass(frozen=True)
class Nodes:
    """The nodes that are registered in Flux, even those that have never joined."""

    all: Mapping[int, tuple[int, int]]  #: rank to cores and GPUs
    used: Mapping[int, tuple[int, int]]  #: rank to cores and GPUs that jobs use
    online: frozenset[int]
    drained: Mapping[int, str]  #: rank to reason

    def of(self, ranks: range) -> Nodes:
        """Return the nodes of consecutive ranks, which count from 0 then."""
        return self._part(ranks, ranks.start)

    def without(self, ranks: Container[int]) -> Nodes:
        """Return the nodes of all other ranks."""
        return self._part({rank for rank in {*self.all, *self.online, *self.drained} if rank not in ranks}, 0)

    def _part(self, ranks: Container[int], first: int) -> Nodes:
        def cut(by_key: Mapping[int, Any]) -> dict[int, Any]:
            return {rank - first: value for rank, value in by_key.items() if rank in ranks}

        online = frozenset(rank - first for rank in self.online if rank in ranks)
        return Nodes(cut(self.all), cut(self.used), online, cut(self.drained))


def nodes(handle: Any) -> Nodes:
    """Ask Flux for its nodes. Raises OSError."""
    from flux.resource import resource_list

    unused = unused_nodes(handle)
    allocated = resource_list(handle).get().allocated
    return replace(unused, used=by_rank(json.loads(allocated.encode()) if allocated.nnodes else None))


def unused_nodes(handle: Any) -> Nodes:
    """Ask Flux for its nodes, but not the scheduler for what jobs use: that takes longer. Raises OSError."""
    status = handle.rpc("resource.status", nodeid=0).get()
    drain = status["drain"].items()
    return Nodes(
        by_rank(status["R"]),
        {},
        frozenset(parse_idset(status["online"])),
        {rank: entry["reason"] for targets, entry in drain for rank in parse_idset(targets)},
    )


def modules(handle: Any) -> dict[str, list[str]]:
    """Return the modules of this rank's broker, with the services of each. Raises OSError."""
    return {module["name"]: module["services"] for module in list_modules(handle)}


def scheduler(handle: Any) -> dict[str, str]:
    """Return the scheduler's name and, for Fluxion, its version and policies. Raises OSError."""
    name = next((name for name, services in modules(handle).items() if "sched" in services), "none")
    if name != "sched-fluxion-qmanager":
        return {"name": name}
    queue, match = (handle.rpc(f"{module}.params").get()["params"] for module in (name, "sched-fluxion-resource"))
    policies = {"queuePolicy": queue["queue-policy"], "matchPolicy": match["policy"]}
    return {"name": "Fluxion", "version": noted("fluxion"), **policies}


def jobs(handle: Any, states: str, attributes: list[str], since: float = 0.0) -> list[dict[str, Any]]:
    """Ask Flux for the jobs in some states (``pending``, ``sched``, ``running``), ordered by id.

    Of those that have ended only the ones that did so after ``since``, in seconds since the epoch. Raises OSError.
    """
    from flux.job import JobList

    query = JobList(handle, attrs=attributes, filters=[states], user="all", max_entries=0, since=since)
    listed: list[dict[str, Any]] = query.fetch_jobs().get_jobs()
    return sorted(listed, key=lambda job: job["id"])


def exit_code(status: int) -> int:
    """Return the exit code of a job's wait status, as a shell gives it."""
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def job_counts(handle: Any, stats: Mapping[str, Any] | None = None) -> dict[str, int]:
    """Return how many jobs are in each state, and how many ended in each way. Raises OSError.

    Of those that are `purged` Flux no longer has a record, and no longer knows how they ended.
    """
    stats = stats or handle.rpc("job-list.job-stats", {}).get()
    counts = {**stats["job_states"], **{key: stats.get(key, 0) for key in RESULTS}}
    return {**counts, "purged": stats.get("inactive_purged", 0)}


def waiting_jobs(handle: Any) -> list[dict[str, Any]]:
    """Return the jobs that wait for nothing but resources, by priority. Raises OSError."""
    waiting = jobs(handle, "sched", ["priority", "t_depend", "queue", "urgency"])
    return sorted((job for job in waiting if job.get("priority", 0) > 0), key=lambda job: -job["priority"])


def longest_wait(pending: Iterable[Mapping[str, Any]], now: float) -> float:
    """Return the wait, in seconds, of the job that has waited longest; ``now`` in seconds since the epoch."""
    return max([0.0, *(now - float(job["t_depend"]) for job in pending if "t_depend" in job)])


def size_key(group: str = "") -> str:
    """Return the KVS key of the size that minicluster-scale, or the replicas of the Deployment, request."""
    return f"minicluster.sizes.{group}" if group else "minicluster.size"


def requested_size(handle: Any, group: str = "") -> int:
    """Return the size that somebody requests; 0 for none."""
    import flux.kvs

    try:
        return int(flux.kvs.get(handle, size_key(group)))
    except (OSError, ValueError, TypeError):
        return 0


def request_size(handle: Any, size: int, group: str = "") -> None:
    """Request a size until the next request; 0 withdraws it. Raises OSError."""
    import flux.kvs

    flux.kvs.put(handle, size_key(group), size)
    flux.kvs.commit(handle)


def subtract(all_of: tuple[int, int], used: tuple[int, int]) -> tuple[int, int]:
    """Return the cores and GPUs that are left."""
    return max(0, all_of[0] - used[0]), max(0, all_of[1] - used[1])


def totals(pairs: Iterable[tuple[int, int]]) -> dict[str, int]:
    """Return the sums of cores and of GPUs."""
    every = list(pairs)
    return {"cores": sum(cores for cores, _ in every), "gpus": sum(gpus for _, gpus in every)}


def noted(name: str) -> str:
    """Return a text that the lead's scripts wrote to a file, "" for none."""
    try:
        return Path(os.environ.get("MINICLUSTER_HOME", ""), "config/run", name).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def noted_problems() -> list[str]:
    """Return what the other programs of the lead's pod say that they can't do."""
    memory = Path(os.environ.get("MINICLUSTER_HOME", ""), "config/run/memory.problem")
    is_old = memory.exists() and time.time() - memory.stat().st_mtime > KILL_TOLD_SECONDS
    names = [name for name in PROBLEMS if name != memory.name or not is_old]
    return [line for name in names for line in noted(name).split("\n") if line]


def summary(handle: Any) -> dict[str, Any]:
    """Return what `minicluster status` shows of Flux; ranks are idsets. Raises OSError."""
    there = nodes(handle)
    online = {rank: pair for rank, pair in there.all.items() if rank in there.online}
    free = (subtract(pair, there.used.get(rank, (0, 0))) for rank, pair in online.items() if rank not in there.drained)
    return {
        "version": handle.attr_get("version"),
        "quorum": int(handle.attr_get("broker.quorum")),
        "scheduler": scheduler(handle),
        "registered": len(there.all),
        "online": to_idset(there.online),
        "allocated": to_idset(there.used),
        "drained": {str(rank): reason for rank, reason in sorted(there.drained.items())},
        "total": totals(online.values()),
        "free": totals(free),
        "used": totals(there.used.values()),
        "jobs": job_counts(handle),
        "problems": [*noted_problems(), *filter(None, [saved.problem(handle)])],
        "queue_wait": round(longest_wait(waiting_jobs(handle), time.time()), 1),
    }


if __name__ == "__main__":
    import flux

    print(json.dumps(summary(flux.Flux())))
