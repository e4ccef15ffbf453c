"""What is lost when pods of a MiniCluster go: the jobs that run on them, how long they get, and what happens then."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from minicluster.cluster.job import recorded
from minicluster.cluster.lead import Lead
from minicluster.console.messages import counted
from minicluster.console.streams import Say, Stake
from minicluster.errors import KubernetesError
from minicluster.kube.port import KubePort, Object
from minicluster.lead.ask import LateError, SilentError, ask, program_words
from minicluster.render.broker import grace_parts
from minicluster.render.constants import default_value


def agree_to_all(_question: str, _stake: Stake) -> None:
    """Ask nobody."""


class JobImpact(NamedTuple):
    """What happens to jobs on pods that go."""

    time: str  #: that they get, such as 15 s
    again: str = ""  #: then to those that may run again, as of a job
    otherwise: str = ""  #: and to the others
    work: str = ""  #: and to the command of the MiniCluster, if to that something else
    waiting: str = ""  #: what jobs that wait are; "" when nothing happens to them


class AffectedJobs(NamedTuple):
    """The jobs of a MiniCluster whose pods, or some of them, go."""

    running: list[dict[str, Any]]  #: the first ones
    more: int = 0  #: how many run beside these
    waiting: int = 0
    why_unknown: str = ""


def find_affected(kube: KubePort, lead: Lead | None, on_stop: str, ranks: str = "") -> AffectedJobs:
    """Return the jobs that run on some ranks, an idset, or on all. A lead that is silent doesn't stop anything."""
    if not (lead and lead.is_running):
        return AffectedJobs([])  # no queue runs
    if not lead.is_ready:
        return AffectedJobs([], why_unknown="the lead is not ready")
    try:
        answer = json.loads(ask(kube, lead.pod, "jobs that would end", program_words(lead, on_stop, ranks)))
        return AffectedJobs(answer["running"], answer["more"], answer["waiting"])
    except (SilentError, KubernetesError) as error:
        return AffectedJobs([], why_unknown=error.reason)
    except (LateError, ValueError, LookupError) as error:
        return AffectedJobs([], why_unknown=str(error))


def tell(name: str, going: AffectedJobs, where: str, fate: JobImpact, say: Say) -> bool:
    """Say what happens to the jobs; return whether any would be lost, or put back, or is not known."""
    said = list(_lines(going, where, fate))
    for line in said:
        say(f"{name}: {line}")
    return bool(said)


def _lines(going: AffectedJobs, where: str, fate: JobImpact) -> Iterator[str]:
    if going.why_unknown:
        yield f"its jobs are not known: {going.why_unknown}; those that run on {where} have {fate.time} to end"
    count = len(going.running) + going.more
    if count:
        yield f"{counted(count, 'job runs', 'jobs run')} on {where}, with {fate.time} to end"
    for job in going.running:
        end = fate.again if job["again"] else fate.otherwise
        what = "the command of the MiniCluster" if job["is_work"] else job["name"]
        end = fate.work if fate.work and job["is_work"] else end
        yield " ".join(filter(None, (f"job {job['id']} ({what}) on {job['nodes']}", end)))
    if going.more:
        yield f"and {counted(going.more, 'more job', 'more jobs')}"
    if going.waiting and fate.waiting:
        yield f"{counted(going.waiting, 'job waits, and is', 'jobs wait, and are')} {fate.waiting}"


def of_pods(job: Object, *, keeps_queue: bool = True) -> JobImpact:
    """Return what happens to jobs on pods that are told to stop, by their Job; without the queue, if that goes too."""
    dump_seconds = int(_value(job, "archive.dumpSeconds")) if _value(job, "archive.path") else None
    seconds = grace_parts(int(_value(job, "pod.terminationGracePeriodSeconds")), dump_seconds)[0]
    if keeps_queue:
        return JobImpact(f"{seconds} s", "is then put back into the queue", "is then cancelled")
    lost = "is then cancelled"
    return JobImpact(f"{seconds} s", lost, lost, waiting="lost: the queue is not kept")


def on_stop(job: Object) -> str:
    """Return what pods that are told to stop do with jobs that outlast them: cancel, or requeue."""
    return str(_value(job, "pod.onStop"))


def keeps_queue(job: Object) -> bool:
    """Return whether the queue of a MiniCluster outlives its pods."""
    return any(_value(job, path) for path in ("state.capacity", "state.claimName", "archive.path"))


def _value(job: Object, path: str) -> Any:
    """Return an immutable value of a live MiniCluster: its Job has those that differ from the defaults."""
    return recorded(job).get(path, default_value(path))
