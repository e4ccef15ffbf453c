"""What ``minicluster status`` shows: from what kubectl and Flux say to a document, and from that to a table.

Asks nobody itself. The document is what ``-o json`` prints; its keys are in the help of the command.
"""

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

from minicluster.errors import MiniClusterError
from minicluster.pod.state import parse_idset, to_idset

#: Labels and annotations of Kubernetes' and the chart's
INDEX = "batch.kubernetes.io/job-completion-index"
RUNNER = "kubectl.kubernetes.io/default-container"
FROZEN = "minicluster/frozen"
#: How the Job ends, by its condition; the first two say so while pods still leave (Kubernetes 1.31)
ENDS = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed", "Complete": "Complete", "Failed": "Failed"}
#: Columns of the table: of its labels, of all of it
LABEL, WIDTH = 13, 80


class StatusError(MiniClusterError):
    """There is nothing to show."""


@dataclass(frozen=True)
class Job:
    """What the Job says."""

    namespace: str
    created: datetime
    size: int
    max_size: int
    joined: str  #: address of the lead that the cluster's brokers join, "" for its own
    has_socket: bool  #: whether Flux can be asked
    suspended: bool
    end: tuple[str, str] | None  #: Complete or Failed, and why


@dataclass(frozen=True)
class Pod:
    """What a pod says."""

    index: int
    name: str
    namespace: str
    created: datetime
    phase: str
    reason: str  #: in a word, e.g. ``ImagePullBackOff``; "" where the phase says all
    message: str
    leaves: bool
    ready: bool
    runner: str  #: its container that runs Flux
    failing: Mapping[str, str]  #: its other containers that fail, and how

    @property
    def state(self) -> str:
        """Phase and reason, e.g. ``Pending: ImagePullBackOff``."""
        return f"{self.phase}: {self.reason}" if self.reason else self.phase

    @property
    def ended(self) -> bool:
        """Whether all containers have ended for good."""
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True)
class Answer:
    """What the lead's pod says: ``agent.json`` of its ConfigMap, and the summary of ``pod/state.py``."""

    settings: Mapping[str, Any]
    flux: Mapping[str, Any]


def read_job(job: Mapping[str, Any]) -> Job | None:
    """Return what a Job says; None when it isn't a MiniCluster's."""
    metadata, spec = job["metadata"], job["spec"]
    recorded = metadata.get("annotations", {}).get(FROZEN)
    if recorded is None:
        return None
    frozen = json.loads(recorded)
    return Job(
        namespace=metadata["namespace"],
        created=_time(metadata["creationTimestamp"]),
        size=int(spec["completions"]),
        max_size=int(frozen["maxSize"]),
        joined=frozen.get("flux.bursting.leadBroker.address", ""),
        has_socket=frozen.get("flux.disableSocket") != "true",
        suspended=spec.get("suspend", False),
        end=_end(job.get("status", {}).get("conditions", [])),
    )


def read_left(config: Mapping[str, Any]) -> Job | None:
    """Return the Job that a MiniCluster's ConfigMap is left of; None when it isn't a MiniCluster's."""
    metadata, text = config["metadata"], config.get("data", {}).get("agent.json")
    if text is None or metadata.get("labels", {}).get("app.kubernetes.io/name") != "minicluster":
        return None
    settings = json.loads(text)
    return Job(
        namespace=metadata["namespace"],
        created=_time(metadata["creationTimestamp"]),
        size=int(settings["size"]),
        max_size=int(settings["max_size"]),
        joined="",
        has_socket=True,
        suspended=False,
        end=("Gone", "its Job ended and was cleaned up, or was deleted; `helm uninstall` removes the rest"),
    )


def named_by(release: str, answer: Mapping[str, Any]) -> str | None:
    """Return the name of the MiniCluster that has an object of a release in a list; None when there is none."""
    for item in answer["items"]:
        metadata = item["metadata"]
        if metadata.get("annotations", {}).get("meta.helm.sh/release-name") == release:
            name = metadata.get("labels", {}).get("app.kubernetes.io/instance")
            return str(name) if name else None
    return None


def _end(conditions: Iterable[Mapping[str, str]]) -> tuple[str, str] | None:
    for condition in conditions:
        if condition["type"] in ENDS and condition["status"] == "True":
            texts = (condition.get("reason", ""), condition.get("message", ""))
            return ENDS[condition["type"]], ": ".join(filter(None, texts))
    return None


def read_pods(answer: Mapping[str, Any]) -> dict[int, Pod]:
    """Return the pods of a list by index: the newest of each, for a pod that ended may have been replaced."""
    found = [_pod(item) for item in answer["items"] if INDEX in item["metadata"].get("labels", {})]
    return {pod.index: pod for pod in sorted(found, key=lambda pod: (pod.index, pod.created, not pod.leaves))}


def _pod(item: Mapping[str, Any]) -> Pod:
    metadata, status = item["metadata"], item.get("status", {})
    runner = metadata.get("annotations", {}).get(RUNNER, "")
    leaves = "deletionTimestamp" in metadata
    reason, message = _reason(status, runner, leaves)
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions", [])}
    return Pod(
        index=int(metadata["labels"][INDEX]),
        name=metadata["name"],
        namespace=metadata["namespace"],
        created=_time(metadata["creationTimestamp"]),
        phase=status.get("phase", "Pending"),
        reason=reason,
        message=message,
        leaves=leaves,
        ready=conditions.get("Ready") == "True",
        runner=runner,
        failing={} if leaves else dict(_failing(status, runner)),
    )


def _failing(status: Mapping[str, Any], runner: str) -> Iterator[tuple[str, str]]:
    """Yield the containers beside the runner that can't run or whose last run failed, and how, until the pod ends."""
    if status.get("phase") in ("Succeeded", "Failed"):
        return
    for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        state, last = container.get("state", {}), container.get("lastState", {})
        word = state.get("waiting", {}).get("reason", "")
        ended = state.get("terminated") or last.get("terminated") or {}
        code, restarts = ended.get("exitCode", 0), container.get("restartCount", 0)
        if container["name"] == runner or not (code or word not in ("", "PodInitializing", "ContainerCreating")):
            continue
        times = f"{restarts} restart{'s' if restarts > 1 else ''}" if restarts else ""
        yield container["name"], ", ".join(filter(None, [word, f"exit code {code}" if code else "", times]))


def _reason(status: Mapping[str, Any], runner: str, leaves: bool) -> tuple[str, str]:
    """Return why a pod is in its phase, in a word and as a message; "" where there is nothing to say."""
    phase = status.get("phase", "Pending")
    if phase == "Failed":
        return status.get("reason") or _exit(status, runner), status.get("message", "")
    if leaves:
        return "Terminating", ""
    return _wait(status) if phase == "Pending" else ("", "")


def _exit(status: Mapping[str, Any], runner: str) -> str:
    """Return how the runner failed, or else another container."""
    for container in [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]:
        ended = container["state"].get("terminated")
        if ended and ended["exitCode"]:
            name = "" if container["name"] == runner else container["name"]
            word = ended.get("reason", "").removeprefix("Error")
            return ", ".join(filter(None, [name, word, f"exit code {ended['exitCode']}"]))
    return ""


def _wait(status: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a pod waits for: a node, or else what its containers do."""
    states = [c["state"] for key in ("initContainerStatuses", "containerStatuses") for c in status.get(key, [])]
    found = [c for c in status.get("conditions", []) if c["type"] == "PodScheduled" and c["status"] == "False"]
    # the others wait for the one that does not say PodInitializing
    waiting = [state["waiting"] for state in states if "waiting" in state]
    found += sorted(waiting, key=lambda state: state.get("reason") == "PodInitializing")
    return (found[0].get("reason", ""), found[0].get("message", "")) if found else ("", "")


def read_answer(text: str) -> Answer:
    """Return what the lead's pod printed: a list of its settings and Flux's summary.

    Raises ValueError when it is something else.
    """
    settings, flux = json.loads(text)
    return Answer(settings, flux)


def lead(name: str, job: Job | None, pods: Mapping[int, Pod]) -> tuple[Pod | None, str, str]:
    """Return the pod to ask for Flux's view; where there is none the cluster's state, and why."""
    pod = pods.get(0)
    if job and (found := _held(job)):
        return None, *found
    if pod is None:
        return None, "Starting", f"the lead has no pod: `kubectl describe job {name}` says why"
    found = _not_there(pod, job)
    return (None, *found) if found else (pod, "", "")


def _held(job: Job) -> tuple[str, str] | None:
    """Return the state, and why, of a Job that has no pods running."""
    if job.suspended and not job.end:
        return "Suspended", "the Job is suspended; who did that, or a queue such as Kueue, resumes it"
    return job.end


def _not_there(pod: Pod, job: Job | None) -> tuple[str, str] | None:
    """Return the state, and why, where the lead can't be asked; None where it can."""
    if pod.phase == "Succeeded":
        return "Complete", f"the lead's pod {pod.name} ended with exit code 0"
    if pod.phase == "Failed":
        why = f"the lead's pod {pod.name} is {pod.state}; Kubernetes replaces it, or ends the Job"
        return "Starting" if job else "Unknown", why
    if job and job.joined:
        why = f"its brokers join the cluster of {job.joined}: ask for that one's status"
        return "Running" if pod.ready else "Starting", why
    if job and not job.has_socket:
        return "Running" if pod.ready else "Starting", "flux.disableSocket is set, so Flux can't be asked"
    if pod.phase != "Running":
        return "Starting", ": ".join(filter(None, [f"the lead is {pod.state}", pod.message]))
    return None


def silent(pod: Pod, message: str) -> tuple[str, str]:
    """Return the cluster's state, and why, when the lead was asked and did not answer."""
    why = f"the lead's broker does not answer ({message}): `kubectl logs -n {pod.namespace} {pod.name}` says more"
    return "Unknown" if pod.ready else "Starting", why


@dataclass(frozen=True)
class Seen:
    """All that was seen at a time: of Kubernetes, and of Flux unless the lead did not answer."""

    name: str
    now: datetime
    pods: Mapping[int, Pod]
    job: Job | None  #: None when jobs can't be read
    answer: Answer | None
    state: str = ""  #: without an answer
    why: str = ""

    @property
    def size(self) -> int:
        """Pods that the Job has; without it, up to the highest that there is."""
        if self.job:
            return self.job.size
        there = [pod.index for pod in self.pods.values() if not (pod.ended or pod.leaves)]
        return max(there or self.pods) + 1

    @property
    def max_size(self) -> int | None:
        """Hosts that are registered for this cluster."""
        if self.job:
            return self.job.max_size
        return self.answer.settings["max_size"] if self.answer else None

    @property
    def age(self) -> int:
        """Seconds."""
        created = self.job.created if self.job else min(pod.created for pod in self.pods.values())
        return max(0, int((self.now - created).total_seconds()))


def document(seen: Seen) -> dict[str, Any]:
    """Return all that is to be shown, with keys that stay."""
    found: dict[str, Any] = {
        "name": seen.name,
        "namespace": next(one.namespace for one in (seen.job, *seen.pods.values()) if one),
        "age": seen.age,
        "state": seen.state,
        "why": _line(seen.why),
        "size": seen.size,
        "sizeFrom": "job" if seen.job else "pods",
        "maxSize": seen.max_size,
        "pods": _grouped({index: pod.state for index, pod in seen.pods.items()}),
        "containers": _containers(seen.pods),
    }
    return found | (_flux(seen, seen.answer) if seen.answer else dict.fromkeys(FLUX))


def _containers(pods: Mapping[int, Pod]) -> list[dict[str, str]]:
    """Return ``[{"name": container, "ranks": idset, "reason": text}]`` of the containers that fail."""
    names = dict.fromkeys(name for pod in pods.values() for name in pod.failing)
    return [
        {"name": name, **group}
        for name in names
        for group in _grouped({index: pod.failing[name] for index, pod in pods.items() if name in pod.failing})
    ]


#: Keys that only an answer of the lead's fills
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
    "longestWait",
    "bursts",
)


def _flux(seen: Seen, answer: Answer) -> dict[str, Any]:
    flux, policy = answer.flux, answer.settings["policy"]
    size, own = seen.size, seen.max_size or 0
    every = set(parse_idset(flux["online"]))
    online = {rank for rank in every if rank < own}
    drained = {int(rank): reason for rank, reason in flux["drained"].items() if int(rank) in online}
    missing = {rank: _missing(seen.pods.get(rank)) for rank in range(size) if rank not in online}
    needed, jobs = flux["quorum"], flux["jobs"]
    # once reached it stays so, whoever is lost later
    reached = len(every) >= needed or (0 in seen.pods and seen.pods[0].ready)
    return {
        "state": "Running" if reached else "Starting",
        "why": "" if reached else f"waits for the quorum, {len(every)} of {needed} brokers are online",
        "flux": flux["version"],
        # pods of an older version don't say
        "scheduler": flux.get("scheduler"),
        "autoscaling": {"min": policy["min"], "max": policy["max"]} if policy else None,
        "quorum": {"needed": needed, "reached": reached},
        "nodes": {
            "up": len(online) - len(drained),
            "drained": len(drained),
            "missing": len(missing),
            "notStarted": sum(rank not in online for rank in range(size, own)),
        },
        "drained": _grouped(drained),
        "missing": _grouped(missing),
        "cores": _resource(flux, "cores"),
        "gpus": _resource(flux, "gpus"),
        "jobs": {
            "pending": jobs["depend"] + jobs["priority"] + jobs["sched"],
            "running": jobs["run"] + jobs["cleanup"],
            "done": jobs["inactive"],
            **{result: jobs[result] for result in ("failed", "canceled", "timeout")},
        },
        "longestWait": flux["queue_wait"],
        "bursts": {"registered": max(0, flux["registered"] - own), "up": len(every) - len(online)},
    }


def _missing(pod: Pod | None) -> str:
    if pod is None:
        return "no pod"
    return f"{pod.state}: its broker is not in Flux" if pod.state == "Running" else pod.state


def _grouped(reasons: Mapping[int, str]) -> list[dict[str, str]]:
    """Return ``[{"ranks": idset, "reason": text}]``, by the first of the ranks."""
    groups: dict[str, list[int]] = {}
    for rank in sorted(reasons):
        groups.setdefault(_line(reasons[rank]), []).append(rank)
    return [{"ranks": to_idset(ranks), "reason": reason} for reason, ranks in groups.items()]


def _resource(flux: Mapping[str, Any], kind: str) -> dict[str, int]:
    return {"free": flux["free"][kind], "allocated": flux["used"][kind], "total": flux["total"][kind]}


def table(found: Mapping[str, Any]) -> str:
    """Return a document as a text for people."""
    return "\n".join(_rows(found)) + "\n"


def _rows(found: Mapping[str, Any]) -> Iterator[str]:
    version = f", Flux {found['flux']}" if found["flux"] else ""
    yield _row("MiniCluster", f"{found['name']}, namespace {found['namespace']}, age {duration(found['age'])}{version}")
    yield _row("State", ": ".join(filter(None, [found["state"], found["why"]])))
    yield _row("Size", _size(found))
    if not found["nodes"]:
        yield from _reasons("Pods", found["pods"])
        yield from _reasons("Containers", _named(found["containers"]))
        return
    quorum, nodes, gpus = found["quorum"], found["nodes"], found["gpus"]
    if found["scheduler"]:
        name, *policies = found["scheduler"].values()
        yield _row("Scheduler", f"{name} ({', '.join(policies)})" if policies else name)
    yield _row("Quorum", f"{quorum['needed']}, {'reached' if quorum['reached'] else 'not reached'}")
    numbers, cores, gpu_row, jobs = _grid(
        ("Nodes", {**nodes, "not started": nodes["notStarted"]}, ("up", "drained", "missing", "not started")),
        ("Cores", found["cores"], ("free", "allocated", "total")),
        ("GPUs", gpus, ("free", "allocated", "total")),
        ("Jobs", found["jobs"], ("pending", "running", "done")),
    )
    yield numbers
    yield from _reasons("Drained", found["drained"])
    yield from _reasons("Missing", found["missing"])
    yield from _reasons("Containers", _named(found["containers"]))
    if found["bursts"]["registered"]:
        yield _row("Bursts", "{up} up of {registered}".format_map(found["bursts"]))
    yield cores
    if gpus["total"] or gpus["allocated"]:
        yield gpu_row
    ends = [f"{found['jobs'][end]} {end}" for end in ("failed", "canceled", "timeout") if found["jobs"][end]]
    yield f"{jobs}  {', '.join(ends)}".rstrip()
    if found["longestWait"]:
        yield _row("Longest wait", duration(found["longestWait"]))


def _named(containers: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    return [{**one, "reason": f"{one['name']} fails: {one['reason']}"} for one in containers]


def _size(found: Mapping[str, Any]) -> str:
    text = str(found["size"])
    if found["maxSize"]:
        text += f" of at most {found['maxSize']}"
    if found["autoscaling"]:
        text += ", autoscaling from {min} to {max}".format_map(found["autoscaling"])
    return text if found["sizeFrom"] == "job" else f"{text} (counted by its pods: jobs can't be read)"


def _row(label: str, text: str) -> str:
    indent = " " * LABEL
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=f"{label:{LABEL}}",
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _reasons(label: str, groups: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Yield a line for each reason, the label before the first."""
    for number, group in enumerate(groups):
        yield _row("" if number else label, f"{group['ranks']}: {group['reason']}")


def _grid(*rows: tuple[str, Mapping[str, int], Sequence[str]]) -> Iterator[str]:
    """Yield rows of a label and cells ``number word``, the columns aligned."""
    grid = [[(str(numbers[word]), word) for word in words] for _, numbers, words in rows]
    columns = zip_longest(*grid, fillvalue=("", ""))
    widths = [[max(len(text) for text in texts) for texts in zip(*column, strict=True)] for column in columns]
    for (label, *_), cells in zip(rows, grid, strict=True):
        pairs = zip(cells, widths, strict=False)
        texts = [f"{number:>{right}} {word:{left}}" for (number, word), (right, left) in pairs]
        yield f"{label:{LABEL}}{'  '.join(texts)}".rstrip()


def duration(seconds: float) -> str:
    """Return seconds in the two greatest units that count.

    >>> duration(59), duration(3600), duration(93784)
    ('59s', '1h', '1d2h')
    """
    left = int(seconds)
    parts: list[str] = []
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
    return "".join(parts[:2]) or "0s"


def _line(text: str) -> str:
    """Return text from outside on one line, fit for a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
