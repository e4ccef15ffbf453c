"""A MiniCluster at one time: its objects in Kubernetes, and its lead's answer unless the state is clear without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from minicluster import lines
from minicluster.cluster import words
from minicluster.cluster.find import Found
from minicluster.cluster.groups import GroupNodes
from minicluster.cluster.job import KubernetesJob
from minicluster.cluster.pods import Pod
from minicluster.cluster.without_flux import of_absence, state_of_silent_lead, state_without_flux
from minicluster.errors import StatusError
from minicluster.kubectl import CommandError, Kubernetes
from minicluster.lead.question import WORDS, Answer, Question, SilentError, read_answer, standard_input
from minicluster.live.events import why_silent
from minicluster.live.held import with_reasons_of_kueue
from minicluster.live.lookup import NEEDS, find

#: Seconds that the lead has to answer
EXEC_SECONDS = 20.0
#: Lines at the end of a log that say why a pod failed
LINES = 50


@dataclass(frozen=True)
class StatusSnapshot:
    """A MiniCluster at one time: its objects in Kubernetes, and the lead's answer if there is one."""

    name: str
    now: datetime
    pods: Mapping[int, Pod]  #: by index
    job: KubernetesJob | None  #: None when the user may not read jobs
    answer: Answer | None
    state: str = ""  #: set when there is no answer
    why: str = ""
    groups: Sequence[GroupNodes] = ()

    @property
    def size(self) -> int:
        """The Job's number of pods; without a Job, the highest index and one."""
        if self.job:
            return self.job.size
        there = [pod.index for pod in self.pods.values() if not (pod.has_ended or pod.is_leaving)]
        return max(there or self.pods) + 1

    @property
    def max_size(self) -> int | None:
        """Own hosts in Flux's configuration; None when neither the Job nor the lead says how many."""
        if self.job:
            return self.job.max_size
        return self.answer.settings["max_size"] if self.answer else None

    @property
    def age(self) -> int:
        """Seconds."""
        created = self.job.created if self.job else min(pod.created for pod in self.pods.values())
        return max(0, int((self.now - created).total_seconds()))


def take_snapshot(kubernetes: Kubernetes, name: str, now: datetime) -> StatusSnapshot:
    """Return a MiniCluster as it is now, by its own name or its release's. Raises StatusError, ToolError."""
    found = with_reasons_of_kueue(kubernetes, find(kubernetes, name))
    if found.job and found.job.end:
        ended = replace(found.job, end=why_failed(kubernetes, found.job, found.pods.get(0)))
        found = found._replace(job=ended)
    taken = snapshot(found, now, lambda lead: ask_lead(kubernetes, lead))
    said = why_silent(kubernetes, found) if taken.state == "Starting" else ""
    return replace(taken, why=f"{of_absence(found.pods.get(0))}: {said}") if said else taken


def why_failed(kubernetes: Kubernetes, job: KubernetesJob, lead: Pod | None) -> tuple[str, str] | None:
    """Return how a Job ended, and why. If it failed, the reason is from its pod's log, if the user may read that."""
    pod = job.failed_pod or (lead.name if lead and lead.phase == "Failed" else "")
    if not (job.end and job.end[0] == "Failed" and pod):
        return job.end
    try:
        log = kubernetes.kubectl("logs", pod, f"--tail={LINES}", seconds=EXEC_SECONDS)
    except CommandError:
        log = ""
    why = words.of_log(lines.split(log)) or job.end[1]
    if lead and lead.name == pod and lead.reason.startswith("OOMKilled") and words.MEMORY not in why:
        why = f"{why} ({words.MEMORY})"
    return "Failed", why


def snapshot(found: Found, now: datetime, ask: Question) -> StatusSnapshot:
    """Return a MiniCluster from its objects, and from the lead's answer unless the state is clear without it."""
    name, pods, job, groups = found
    made = partial(StatusSnapshot, name, now, pods, job, groups=groups)
    known = state_without_flux(found, now)
    if known:
        return made(None, *known)
    try:
        return made(read_answer(ask(pods[0])))
    except SilentError as error:
        why = str(error)
    except ValueError as error:
        why = f"it printed no JSON: {error}"
    return made(None, *state_of_silent_lead(pods[0], why))


def ask_lead(kubernetes: Kubernetes, lead: Pod) -> str:
    """Return what QUESTION prints in the lead's pod. Raises SilentError, StatusError."""
    try:
        return kubernetes.kubectl(*lead.exec_words("--stdin"), *WORDS, stdin=standard_input(), seconds=EXEC_SECONDS)
    except CommandError as error:
        if error.is_forbidden:
            raise StatusError(f"{error.reason}: {NEEDS}") from None
        raise SilentError(error.reason) from None
