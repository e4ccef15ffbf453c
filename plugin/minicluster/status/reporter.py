"""Messages about a MiniCluster whose lead can't be used now, and about one that has ended."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from minicluster.cluster.find import LiveCluster, find_by_name
from minicluster.cluster.job import read_job
from minicluster.cluster.lead import Lead, code_of_work, end_with
from minicluster.cluster.pods import Pod
from minicluster.cluster.reasons import why_failed, with_reasons
from minicluster.cluster.states import CLUSTER_TONES
from minicluster.cluster.without_flux import state_without_flux
from minicluster.console import streams
from minicluster.console.terminal import Progress
from minicluster.errors import DeadlineError, KubernetesError
from minicluster.kube.port import KubePort
from minicluster.lead.ask import LateError, SilentError, ask_status
from minicluster.status.document import answered

#: What differs in a message though nothing has changed, and what stands for it
NO_NEWS = tuple(
    (re.compile(pattern), stands)
    for pattern, stands in (
        # the kubelet tries again, waits, tries again
        (r"\b(ErrImagePull|ImagePullBackOff): .*(?=: )", "no image"),
        # steps of a start
        (r"\bPending(: (ContainerCreating|PodInitializing))?$", "Pending"),
        # of a back-off only the seconds differ
        (r"\d+ s$", ""),
        # how many Kubernetes nodes lack what
        (r"(?<=Unschedulable: )\d+/\d+|\b\d+ (?=Insufficient|node\(s\))", ""),
        # the name of a pod that was not made, a sandbox
        (r'(?<=pods ")[^"]*|\b[0-9a-f]{12,}\b', ""),
    )
)
#: States that the end of the Job follows, which is told then
END_STATES = ("Ending", "Complete", "Failed", "Gone")


def see(kube: KubePort, name: str, job: Mapping[str, Any], lead: Lead | None) -> LiveCluster:
    """Return a MiniCluster, of which Job and lead were read, with the reasons why it, or its lead, is not ready.

    The other pods are like the lead. They are read when it runs: then they may be what it waits for.
    """
    cluster = LiveCluster(name, {0: lead.pod} if lead else {}, read_job(job) if job else None)
    if lead and lead.pod.phase == "Running" and not lead.is_ready:
        try:
            now = find_by_name(kube, name, job)
        except KubernetesError:
            now = None
        cluster = now if now and 0 in now.pods and now.job else cluster
    return cluster if lead and lead.is_ready else with_reasons(kube, cluster)


def describe(kube: KubePort, cluster: LiveCluster) -> tuple[str, str]:
    """Return the state of a MiniCluster, and why. The lead is asked how many brokers the quorum lacks."""
    lead, job = cluster.pods.get(0), cluster.job
    if lead and lead.is_leaving and not (job and job.is_suspended):
        return "Starting", f"the lead's pod {lead.name} was told to stop; Kubernetes replaces it when it has ended"
    now = datetime.now(UTC)
    known = state_without_flux(cluster, now)
    is_ready = lead and lead.is_ready and lead.phase == "Running"
    if known or is_ready:
        return known or ("Running", "")

    def asked(pod: Pod) -> str:
        try:
            return ask_status(kube, pod)
        except KubernetesError as error:
            raise SilentError(str(error)) from None

    shown = answered(cluster, now, asked)
    if shown["state"] == "Running" and lead:
        return "Starting", f"the quorum is there, and Kubernetes has yet to see that the pod {lead.name} is ready"
    return shown["state"], shown["why"]


def news(text: str) -> str:
    """Return what a message means: it is told again only if that is different."""
    for pattern, stands in NO_NEWS:
        text = pattern.sub(stands, text)
    return text


class StateReporter:
    """Says the state of a MiniCluster when its meaning has changed."""

    def __init__(
        self, kube: KubePort, name: str, say: streams.Say, quiet: float = 0, untold: Sequence[str] = END_STATES
    ) -> None:
        """Know no state yet; say nothing in the first seconds, which are ``quiet``, and states that others tell."""
        self._kube, self._name, self._say, self._told, self._untold = kube, name, say, "", untold
        self._begin = time.monotonic() + quiet
        self.state = ""  #: and why, as it was last, also if it was not said

    def __call__(self, job: Mapping[str, Any], lead: Lead | None, *, is_quiet: bool = False) -> LiveCluster:
        """Say the state of a MiniCluster with this Job and this lead, unless quiet, and return its objects."""
        cluster = see(self._kube, self._name, job, lead)
        if is_quiet:
            return cluster
        try:
            state, why = describe(self._kube, cluster)
        except LateError:
            return cluster
        self.state = ": ".join(filter(None, (state, why)))
        meaning = news(self.state)
        if meaning != self._told and state not in self._untold and time.monotonic() >= self._begin:
            self._step(state, self.state)
            self._told = meaning
        return cluster

    def quietly(self, state: str) -> None:
        """Show a state on a terminal; it is no news."""
        self._step(state, state, is_quiet=True)

    def _step(self, state: str, words: str, *, is_quiet: bool = False) -> None:
        self._say(Progress(f"{self._name}: {words}", state, is_quiet=is_quiet, tone=CLUSTER_TONES[state]))

    def forget(self) -> None:
        """Know no state: there is nothing that is waited for."""
        self.state = ""

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let the states have one line of a terminal; add the last one to the error of a wait whose time is over.

        Raises DeadlineError then.
        """
        try:
            with streams.waiting():
                yield
        except DeadlineError as error:
            why = "" if self.state == "Running" else self.state
            raise DeadlineError(": ".join(filter(None, (str(error), why)))) from None


def ended(name: str, end: tuple[str, str], lead: Lead | None) -> str:
    """Return how a MiniCluster ended, as a sentence."""
    code = code_of_work(end[0], lead)
    how = "" if code is None else f" (exit code {code})"
    return f"{name} has ended{how}: {': '.join(filter(None, end))}"


def end_in_words(kube: KubePort, name: str, job: Mapping[str, Any], lead: Lead | None) -> tuple[str, str] | None:
    """Return how a MiniCluster ended, and why, from the failed pod's log too; None while it lives."""
    end, its_job = end_with(name, job, lead), read_job(job) if job else None
    if end and end[0] == "Failed" and its_job:
        return why_failed(kube, replace(its_job, end=end), lead.pod if lead else None)
    return end
