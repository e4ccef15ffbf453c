"""Why a MiniCluster is as it is, and why a job waits or how it ended, in sentences, with the command that mends it."""

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from minicluster.cluster import states
from minicluster.cluster.find import LiveCluster
from minicluster.console.messages import counted
from minicluster.errors import ChoiceError
from minicluster.kube.names import OUR_PREFIX
from minicluster.kube.port import KubePort
from minicluster.lead import ask
from minicluster.lead.program import BOOT
from minicluster.status import used
from minicluster.status.document import status_of
from minicluster.status.lookup import Unasked, ask_lead, find
from minicluster.status.reported import ASK
from minicluster.status.snapshot import CHECK_FAILED, MEMORY_SHORT
from minicluster.status.table import duration, left_at

#: Why a job waits whose nodes are free (pod/queue/pending.py)
READY = "waits for the scheduler"
#: The pods that tell how long new ones take
LATELY_PODS = 8
#: A start within as many seconds is now
NOW_SECONDS = 1.0
#: A job that prints nothing for as long may hang
NO_PRINT_SECONDS = 300
MAY_HANG = (
    "it has printed nothing for {} and has no time limit: if its work is done, it hangs in its end, as programs with "
    "Debian's MPICH may"
)


class Reason(NamedTuple):
    """A sentence, and the command that would change it; "" for none."""

    text: str
    way: str = ""


def of_cluster(kubernetes: KubePort, name: str) -> Iterator[Reason]:
    """Yield why a MiniCluster is as it is. Raises StatusError."""
    report = status_of(kubernetes, name)
    name = report["name"]
    nodes = report["nodes"]
    is_well = report["state"] == "Running" and not report["why"]
    up = f", {counted(nodes['up'], 'node')} up" if is_well and nodes else ""
    yield Reason(f"{name} is {': '.join(filter(None, (report['state'], report['why'])))}{up}")
    for kind, verb in (("missing", "is missing"), ("drained", "takes no jobs")):
        for one in report[kind] or ():
            way = f"minicluster flux {name} -- resource undrain {one['ranks']}" if kind == "drained" else ""
            own = one["reason"].startswith((OUR_PREFIX, CHECK_FAILED, MEMORY_SHORT))
            # the hosts of groups have other names
            who = f"rank {one['ranks']}" if report["groups"] else f"{name}-{one['ranks']}"
            yield Reason(f"{who} {verb}: {one['reason']}", "" if own else way)
    for one in report["containers"] if nodes else ():
        yield Reason(f"the container {one['name']} of {one['ranks']} fails: {one['reason']}")
    for problem in report["problems"] or ():
        yield Reason(problem)
    for one in report["waiting"] or ():
        first = one["jobs"][0]
        who = f"job {first}" if len(one["jobs"]) == 1 else f"{counted(len(one['jobs']), 'job')} ({first} first)"
        yield Reason(f"{who}: {one['reason']}", f"minicluster why {name} {first.replace('ƒ', 'f')}")


def of_job(kubernetes: KubePort, name: str, job: str) -> Iterator[Reason]:
    """Yield why a job waits, where it runs, or how it ended. Raises ChoiceError, StateError, StatusError."""
    cluster, known = ask_job(kubernetes, name, job)
    yield from job_in_words(cluster.name, known, sizes_of(cluster))


def ask_job(kubernetes: KubePort, name: str, job: str) -> tuple[LiveCluster, dict[str, Any]]:
    """Return a MiniCluster, and what explain.py says of a job. Raises as `of_job` does."""
    way = "`minicluster jobs {}` may know the job"
    cluster, known = _asked(kubernetes, name, "why of a job", [job], way)
    if "error" in known:
        raise ChoiceError(f"{job!r} is not a job's id: give one that `minicluster jobs {cluster.name}` shows")
    if not known["job"]:
        raise ChoiceError(f"{cluster.name} has no job {job}: `minicluster jobs {cluster.name}` lists them")
    return cluster, known


def of_request(kubernetes: KubePort, name: str, options: Sequence[str]) -> Iterator[Reason]:
    """Yield whether a job with some options of `flux submit` would run, and when. Raises as `of_job` does."""
    cluster, known = ask_request(kubernetes, name, options)
    yield from request_in_words(cluster.name, known, sizes_of(cluster))


def ask_request(kubernetes: KubePort, name: str, options: Sequence[str]) -> tuple[LiveCluster, dict[str, Any]]:
    """Return a MiniCluster, and what would_fit.py says of a job with some options. Raises as `of_job` does."""
    way = "`minicluster wait {}` waits until it runs"
    cluster, known = _asked(kubernetes, name, "whether a job would fit", options, way)
    if "error" in known:
        raise ChoiceError(f"{shlex.join(options)}: {known['error']}")
    return cluster, known


def _asked(
    kubernetes: KubePort, name: str, what: str, words: Sequence[str], way: str
) -> tuple[LiveCluster, dict[str, Any]]:
    """Return a MiniCluster, and the answer of its lead; ``way`` is what to do when it can't be asked.

    Raises StateError, StatusError.
    """
    cluster = find(kubernetes, name)
    asked = ("/bin/sh", "-c", ASK, BOOT, *words)
    answer = ask_lead(cluster, lambda lead: ask.ask(kubernetes, lead, what, asked))
    if isinstance(answer, Unasked):
        raise answer.error(way.format(cluster.name))
    return cluster, {**json.loads(answer), "pods_took": pods_took(cluster)}


def pods_took(cluster: LiveCluster) -> float | None:
    """Return the seconds that the last pods took from their creation to the start of their runner; None for none."""
    pods = [*cluster.pods.values(), *(pod for group in cluster.groups for pod in group.pods.values())]
    # one that was killed has another start
    began = [pod for pod in pods if pod.started and not pod.came_back]
    last = sorted(began, key=lambda pod: pod.created)[-LATELY_PODS:]
    return median((pod.started - pod.created).total_seconds() for pod in last if pod.started) if last else None


def sizes_of(cluster: LiveCluster) -> dict[str, int]:
    """Return the sizes of a MiniCluster by group, "" for its own nodes."""
    return {"": cluster.job.size if cluster.job else 0} | {group.name: group.size for group in cluster.groups}


def job_in_words(name: str, known: Mapping[str, Any], sizes: Mapping[str, int]) -> Iterator[Reason]:
    """Yield sentences about a job, by what explain.py says of it, and the sizes now."""
    job, now = known["job"], known["now"]
    who = f"job {job['id']}" + (f" ({job['name']})" if job.get("name") else "")
    state = states.of_job(job["state"], job["result"])
    if state == "PENDING":
        yield from _of_waiting(name, who, known, sizes)
    elif state == "RUNNING":
        since = f" for {duration(now - job['t_run'])}" if job["t_run"] else ""
        yield Reason(f"{who} runs on {job['nodes'] or 'its nodes'}{since}")
        yield from map(Reason, used.in_words(job, now))
        if known["warned"]:
            yield Reason(f"it {known['warned']}", f"minicluster flux {name} -- cancel {job['id']}")
        quiet = now - known["quiet_since"] if known["quiet_since"] else 0
        if quiet > NO_PRINT_SECONDS:
            yield Reason(MAY_HANG.format(duration(quiet)), f"minicluster flux {name} -- cancel {job['id']}")
    else:
        yield Reason(f"{who} {_end(job)}")
        yield from map(Reason, used.in_words(job))
        for line in known["said"]:
            yield Reason(f"| {line}")
        if known["again"]:
            yield Reason(f"it runs again as job {known['again']}", f"minicluster why {name} {known['again']}")


def _of_waiting(name: str, who: str, known: Mapping[str, Any], sizes: Mapping[str, int]) -> Iterator[Reason]:
    """Yield why a job waits, and what would let it run."""
    job, why, flux = known["job"], known["waits"], f"minicluster flux {name} --"
    if why.startswith("can never run"):
        yield Reason(f"{who} {why}")
        yield Reason("nothing that comes can change that", f"{flux} cancel {job['id']}")
    elif why.startswith("is held"):
        yield Reason(f"{who} is held", f"{flux} job urgency {job['id']} default")
    else:
        what = why.removeprefix("waits")
        yield Reason(
            f"{who} waits for {duration(known['now'] - job['t_submit'])}{what or ': Flux has yet to look at it'}"
        )
    if known["warned"]:
        yield Reason(f"stopped for it: {known['warned']}")
    yield from _start("it starts", known)
    yield from _growth("it can run", name, known, sizes)


def request_in_words(name: str, known: Mapping[str, Any], sizes: Mapping[str, int]) -> Iterator[Reason]:
    """Yield sentences about a job that was not submitted, by what would_fit.py says of it."""
    if known["refused"]:
        yield Reason(f"it can never run: {known['refused']}")
    elif known["waits"] == READY:
        if runs_now(known):
            yield Reason("it would run now")
        elif known["starts"] is None:
            yield Reason("its nodes are free, and jobs wait that are before it")
        yield from _start("it would start", known)
    else:
        yield Reason(re.sub("^waits", "it would wait", known["waits"]))
        yield from _start("it would start", known)
        yield from _growth("it could run", name, known, sizes)


def runs_now(known: Mapping[str, Any]) -> bool:
    """Say whether a job that was not submitted would run now, by what would_fit.py says of it."""
    at = (known["starts"] or {}).get("at")
    return known["waits"] == READY and at is not None and at <= known["now"] + NOW_SECONDS


def _start(verb: str, known: Mapping[str, Any]) -> Iterator[Reason]:
    """Yield when a job starts, where that is not now."""
    starts = known["starts"]
    # it may wait for nodes that are drained, or those of a burst: no job before it is the reason
    if not starts or known["waits"].startswith("waits for nodes"):
        return
    after, left = starts["after"], (starts["at"] or math.inf) - known["now"]
    if math.isinf(left):
        before = f"job {after} before it has no time limit" if after else "a job before it waits for nodes"
        yield Reason(f"when {verb} is not known: {before}")
    elif left > NOW_SECONDS:
        when = f"when the time limit of job {after} is over" if after else "by the time limits of jobs before it"
        yield Reason(f"{verb} in about {duration(left)}, {when}")


def _growth(verb: str, name: str, known: Mapping[str, Any], sizes: Mapping[str, int]) -> Iterator[Reason]:
    """Yield which size a job needs, and who makes it."""
    for group, size in known["needs"].items():
        of = f" of {group}" if group else ""
        if size <= sizes.get(group, 0):
            yield Reason("its nodes have yet to come", f"minicluster status {name}")
        # an older lead's program does not say
        elif size <= known.get("grows", {}).get(group, 0):
            took = known.get("pods_took")
            lately = f", and new pods took {duration(took)} lately" if took else ""
            yield Reason(f"autoscaling makes the size{of} {size} first{lately}")
        else:
            what = f"{group}={size}" if group else str(size)
            yield Reason(f"{verb} once the size{of} is {size}", f"minicluster scale {name} {what}")


def _end(job: Mapping[str, Any]) -> str:
    """Return how a job ended."""
    kind, _, note = (job.get("exception") or "").partition(": ")
    if job["result"] == "COMPLETED":
        kind = ""
    return states.of_job_end(job["exit_code"], kind, note, _where(job))


def _where(job: Mapping[str, Any]) -> str:
    """Return for how long a job ran, and where."""
    end = left_at(job)
    if not job["t_run"] or not end:
        return ""
    return f" after {duration(max(0.0, end - job['t_run']))}" + (f" on {job['nodes']}" if job["nodes"] else "")
