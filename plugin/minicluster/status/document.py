"""The document that ``minicluster status -o json`` prints; its keys are in the help of the command."""

from collections.abc import Iterable, Mapping, Set
from datetime import UTC, datetime
from typing import Any, NamedTuple

from minicluster.cluster.find import LiveCluster
from minicluster.cluster.pods import GroupNodes, Pod
from minicluster.flux import parse_idset, to_idset
from minicluster.kube.port import KubePort
from minicluster.lead.ask import Answer, Question
from minicluster.status.snapshot import (
    StatusSnapshot,
    held_up,
    of_no_nodes,
    snapshot,
    take_snapshot,
    too_many,
    why_missing,
)

#: How the problem begins that the lead's queue is not that of the former one (pod/start/archive.sh)
LOST = "a former lead was lost"
#: Seconds after which a runner that came back is well
WELL_SECONDS = 3600
#: Keys whose values only the lead's answer has
FLUX = (
    "flux",
    "scheduler",
    "autoscaling",
    "quorum",
    "nodes",
    "drained",
    "missing",
    "cores",
    "gpus",
    "jobs",
    "queues",
    "waiting",
    "longestWait",
    "problems",
    "bursts",
    "groups",
)


def status_of(kubernetes: KubePort, name: str) -> dict[str, Any]:
    """Return the status of a MiniCluster, by its own name or its release's. Raises StatusError, ToolError."""
    return document(take_snapshot(kubernetes, name, datetime.now(UTC)))


def answered(cluster: LiveCluster, now: datetime, ask: Question) -> dict[str, Any]:
    """Return the status of a MiniCluster by its objects, and by what its lead answers if it is asked."""
    return document(snapshot(cluster, now, ask))


def document(seen: StatusSnapshot) -> dict[str, Any]:
    """Return the status of a MiniCluster. The keys are the same with and without an answer of the lead."""
    pods = {
        **seen.pods,
        **{group.first + index: pod for group in seen.groups for index, pod in group.pods.items()},
    }
    report: dict[str, Any] = {
        "name": seen.name,
        "namespace": next(one.namespace for one in (seen.job, *seen.pods.values()) if one),
        "age": seen.age,
        "state": seen.state,
        "why": _line(seen.why),
        "size": seen.size,
        "sizeFrom": "job" if seen.job else "pods",
        "maxSize": seen.max_size,
        "failures": _failures(seen),
        "pods": _grouped({**_held(seen.groups), **{rank: pod.state for rank, pod in pods.items()}}),
        "containers": _containers(pods, seen.now),
        "locations": _locations([GroupNodes("", 0, 0, 0, seen.pods), *seen.groups]),
    }
    if seen.answer:
        return report | _flux(seen, seen.answer)
    own = [_line(problem) for problem in seen.problems]
    return report | dict.fromkeys(FLUX) | ({"problems": own} if own else {})


def _jobs(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of jobs."""
    # programs of an older version don't say it
    purged = counts.get("purged", 0)
    return {
        "pending": counts["depend"] + counts["priority"] + counts["sched"],
        "running": counts["run"] + counts["cleanup"],
        "done": counts["inactive"] + purged,
        **{result: counts[result] for result in ("failed", "canceled", "timeout")},
        "purged": purged,
    }


def _failures(snapshot: StatusSnapshot) -> dict[str, Any] | None:
    """Return how many pods have failed, those of groups by group, and the most that may; None where it isn't known."""
    job = snapshot.job
    if not job or job.most_failures is None:
        return None
    groups = {group.name: group.failures for group in snapshot.groups}
    return {"pods": job.failures, "most": job.most_failures, "groups": groups}


def _problems(snapshot: StatusSnapshot, problems: Iterable[str]) -> list[str]:
    """Return the problems; that of a lost lead with when and why it was lost."""
    former = snapshot.pods[0].former if 0 in snapshot.pods else ""
    return [_line(f"{each}; it was {former}" if former and each.startswith(LOST) else each) for each in problems]


def _held(groups: Iterable[GroupNodes]) -> dict[int, str]:
    """Return why Kueue holds pods of groups back, by rank."""
    return {each.first + index: each.why_held for each in groups if each.why_held for index in range(each.size)}


def _containers(pods: Mapping[int, Pod], now: datetime) -> list[dict[str, str]]:
    """Return ``[{"name": container, "ranks": idset, "reason": text}]`` of the containers that fail.

    The runner is among them for some time after it was killed.
    """
    failing: dict[str, dict[int, str]] = {}
    for rank, pod in pods.items():
        is_well = pod.came_back and (now - pod.came_back).total_seconds() > WELL_SECONDS
        for name, reason in pod.failing.items():
            if name != pod.runner or not is_well:
                failing.setdefault(name, {})[rank] = reason
    return [{"name": name, **group} for name, reasons in failing.items() for group in _grouped(reasons)]


def _locations(groups: Iterable[GroupNodes]) -> list[dict[str, str | None]]:
    """Return ``[{"ranks": idset, "node": name, "zone": name or None}]`` of the Kubernetes nodes, by zone and name."""
    by_place: dict[tuple[str, str], list[int]] = {}
    for group in groups:
        for index, pod in group.pods.items():
            if pod.node and not pod.has_ended:
                by_place.setdefault((pod.zone, pod.node), []).append(group.first + index)
    return [
        {"ranks": to_idset(by_place[zone, node]), "node": node, "zone": zone or None} for zone, node in sorted(by_place)
    ]


def _flux(snapshot: StatusSnapshot, answer: Answer) -> dict[str, Any]:
    """Return the part of the document that needs the lead's answer."""
    flux = answer.flux
    limits = {each["name"]: _limits(each) for each in answer.settings.get("groups", ())}
    brokers = set(parse_idset(flux["online"]))
    why_no_pod = snapshot.job.why_no_pod if snapshot.job else ""
    own = GroupNodes("", snapshot.size, 0, snapshot.max_size or 0, snapshot.pods, why_no_pod=why_no_pod)
    groups = [own, *snapshot.groups]
    parts = [_ranks(each, brokers, flux["drained"]) for each in groups]
    drained = {rank: reason for part in parts for rank, reason in part.drained.items()}
    missing = {rank: reason for part in parts for rank, reason in part.missing.items()}
    known = sum(each.max_size for each in groups)
    needed = flux["quorum"]
    # a quorum that was reached stays reached when brokers are lost later
    reached = len(brokers) >= needed or (0 in snapshot.pods and snapshot.pods[0].is_ready)
    starts = f"waits for the quorum, {len(brokers)} of {needed} nodes are up" + held_up(groups, missing, snapshot)
    return {
        "state": "Running" if reached else "Starting",
        "why": _line(flux.get("queue_problem", "")) if reached else starts,
        "flux": flux["version"],
        # programs of an older version don't say it
        "scheduler": flux.get("scheduler"),
        "autoscaling": _limits(answer.settings),
        "quorum": {"needed": needed, "reached": reached},
        "nodes": {key: sum(each.counts[key] for each in parts) for key in parts[0].counts},
        "drained": _grouped(drained),
        "missing": _grouped(missing),
        "cores": _resource(flux, "cores"),
        "gpus": _resource(flux, "gpus"),
        "jobs": _jobs(flux["jobs"]),
        "queues": [{**each, "problem": _line(each["problem"])} for each in flux.get("queues", ())],
        "waiting": [
            {"jobs": each["jobs"], "reason": _line(of_no_nodes(each["reason"], snapshot.name, groups, limits))}
            for each in flux.get("waiting", ())
        ],
        "longestWait": flux["queue_wait"],
        "problems": _problems(
            snapshot, (*flux.get("problems", ()), *too_many(snapshot.name, groups), *snapshot.problems)
        ),
        "bursts": {"registered": max(0, flux["registered"] - known), "up": sum(rank >= known for rank in brokers)},
        "groups": [_group(each, part, limits) for each, part in zip(groups[1:], parts[1:], strict=True)],
    }


def _group(group: GroupNodes, part: "Ranks", limits: Mapping[str, dict[str, int] | None]) -> dict[str, Any]:
    sizes = {"size": group.size, "maxSize": group.max_size}
    return {"name": group.name, **sizes, "autoscaling": limits[group.name], "nodes": part.counts}


def _limits(settings: Mapping[str, Any]) -> dict[str, int] | None:
    """Return the autoscaler's limits for the cluster's own nodes or for a group; None while it is off."""
    policy = settings["policy"]
    return {"min": policy["min"], "max": policy["max"]} if policy else None


class Ranks(NamedTuple):
    """The nodes of a group: how many are in each state, and why the drained and the missing ones are, by rank."""

    counts: dict[str, int]
    drained: dict[int, str]
    missing: dict[int, str]


def _ranks(group: GroupNodes, brokers: Set[int], drains: Mapping[str, str]) -> Ranks:
    ranks = range(group.first, group.first + group.max_size)
    online = {rank for rank in ranks if rank in brokers}
    drained = {int(rank): reason for rank, reason in drains.items() if int(rank) in online}
    missing = {
        rank: group.why_held or why_missing(group.pods.get(rank - group.first), group.why_no_pod, drains.get(f"{rank}"))
        for rank in ranks[: group.size]
        if rank not in online
    }
    counts = {
        "up": len(online) - len(drained),
        "drained": len(drained),
        "missing": len(missing),
        "notStarted": sum(rank not in online for rank in ranks[group.size :]),
    }
    return Ranks(counts, drained, missing)


def _grouped(reasons: Mapping[int, str]) -> list[dict[str, str]]:
    """Return ``[{"ranks": idset, "reason": text}]``, by the first of the ranks."""
    groups: dict[str, list[int]] = {}
    for rank in sorted(reasons):
        groups.setdefault(_line(reasons[rank]), []).append(rank)
    return [{"ranks": to_idset(ranks), "reason": reason} for reason, ranks in groups.items()]


def _resource(flux: Mapping[str, Any], kind: str) -> dict[str, int]:
    return {"free": flux["free"][kind], "allocated": flux["used"][kind], "total": flux["total"][kind]}


def _line(text: str) -> str:
    """Return text from outside on one line, fit for a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
