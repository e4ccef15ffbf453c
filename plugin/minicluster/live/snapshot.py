"""A MiniCluster at one time: its objects in Kubernetes, and its lead's answer unless the state is clear without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from minicluster.cluster.find import Found
from minicluster.cluster.groups import GroupNodes
from minicluster.cluster.job import KubernetesJob
from minicluster.cluster.pods import Pod
from minicluster.cluster.reasons import Evidence, why_failed, with_reasons
from minicluster.cluster.without_flux import state_of_silent_lead, state_without_flux
from minicluster.kubectl import Kubernetes
from minicluster.lead.question import Answer, Question, SilentError, read_answer
from minicluster.live.kubectl_evidence import KubectlEvidence
from minicluster.live.lookup import find
from minicluster.live.services import of_services


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
    problems: Sequence[str] = ()  #: beside those that the lead tells

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
    return explained_snapshot(KubectlEvidence(kubernetes), find(kubernetes, name), now)


def explained_snapshot(evidence: Evidence, found: Found, now: datetime) -> StatusSnapshot:
    """Return a MiniCluster from its objects, with all that can be asked of why it is as it is. Raises StatusError."""
    found = with_reasons(evidence, found)
    if found.job and found.job.end:
        ended = replace(found.job, end=why_failed(evidence, found.job, found.pods.get(0)))
        found = found._replace(job=ended)
    return replace(snapshot(found, now, evidence.ask), problems=of_services(evidence, found.name))


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
