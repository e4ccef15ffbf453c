"""Waits for the quorum of a MiniCluster, or for its end, and ends early when its pods can't start.

It is watched, so nothing asks again and again.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple, TypeVar

from minicluster.cluster.find import Host, LiveCluster, lead_of
from minicluster.cluster.job import end_of, is_asleep, wake
from minicluster.cluster.lead import Lead, Node, code_of_work, read_lead, read_node
from minicluster.cluster.pods import SUSPENDED, Pod
from minicluster.console.streams import Say
from minicluster.errors import DeadlineError, EndError, KubernetesError, RefusedError
from minicluster.kube.outage import RETRY_SECONDS, Outage
from minicluster.kube.port import WATCH_SECONDS, KubePort, Object
from minicluster.status.lookup import Cluster, refusals
from minicluster.status.reporter import END_STATES, StateReporter, end_in_words, ended

Until = Literal["quorum", "end"]


class End(NamedTuple):
    """The end of a MiniCluster."""

    code: int  #: the exit code of the work
    text: str  #: how it ended, as a sentence


def wait(cluster: Cluster, until: Until, say: Say) -> End | None:
    """Return None at the quorum; at the end, which may come first, how it ended.

    To reach the quorum, a MiniCluster that was suspended because it was idle is woken. ``say`` gets each new state.
    Raises DeadlineError at the deadline, EndError at an end without an exit code, AccessError.
    """
    end, lead = look_for(cluster, is_ready if until == "quorum" else None, say)
    return end and end_of_work(cluster.name, end, lead)


def end_of_work(name: str, end: tuple[str, str], lead: Lead | None) -> End:
    """Return the end of a MiniCluster, of which `end_in_words` tells. Raises EndError without an exit code."""
    code, text = code_of_work(end[0], lead), ended(name, end, lead)
    if code is None:
        raise EndError(text)
    return End(code, text)


def is_ready(lead: Lead) -> bool:
    """Return whether the quorum is there."""
    return lead.is_ready


def look_for(
    cluster: Cluster,
    is_there: Callable[[Lead], bool] | None,
    say: Say,
    check: Callable[[LiveCluster], None] | None = None,
    quiet: float = 0,
) -> tuple[tuple[str, str] | None, Lead | None]:
    """Wait until ``is_there`` accepts the lead, or for the end; return the end if that came first, and the lead.

    With ``is_there`` a MiniCluster that was suspended because it was idle is woken. ``check`` gets its objects, with
    the reasons why it is not there yet, and may raise an error. For ``quiet`` seconds no state is told.
    Raises DeadlineError at the deadline, AccessError.
    """
    kubernetes, name = cluster.kubernetes, cluster.name
    # who waits for the lead tells that it is there
    tell = StateReporter(kubernetes, name, say, quiet, (*END_STATES, "Running") if is_there else END_STATES)
    with tell.waiting():
        for job, lead in looks(cluster, say, quiet or WATCH_SECONDS):
            end = end_in_words(kubernetes, name, job, lead)
            if end or (is_there and lead and is_there(lead)):
                return end, lead
            if is_there and is_asleep(job):
                if not quiet:
                    say(f"{name} is suspended, {job['metadata']['annotations'][SUSPENDED]}: waking it")
                with refusals():
                    wake(kubernetes, name)
                continue
            state = tell(job, lead)
            if check:
                check(state)
    raise AssertionError  # looks only ends with an error


def ready_lead(
    cluster: Cluster, say: Say, check: Callable[[LiveCluster], None] | None = None, quiet: float = 0
) -> Lead:
    """Return the lead as soon as it is ready. Raises EndError when it won't be, and what `look_for` raises."""
    end, lead = look_for(cluster, is_ready, say, check, quiet)
    if end or not lead:
        raise EndError(ended(cluster.name, end or ("Gone", ""), lead))
    return lead


Seen = TypeVar("Seen")


def looks(cluster: Cluster, say: Say, every: float = WATCH_SECONDS) -> Iterator[tuple[Object, Lead | None]]:
    """Yield a Job, empty when there is none, and its lead; at once, when they may have changed, and ``every`` seconds.

    The last look is at the deadline. It goes on after an outage of the API server, of which it tells.
    Raises DeadlineError at the deadline; AccessError when Kubernetes refuses, and when the outage takes too long.
    """
    return _looks(cluster, lead_of(cluster.name), read_lead, say, every)


def looks_at(cluster: Cluster, host: Host, say: Say) -> Iterator[tuple[Object, Node | None]]:
    """Yield the Job of a host and the host's node, as `looks` does those of the lead."""
    return _looks(cluster, host, lambda pods: read_node(pods, host.group, host.index), say, WATCH_SECONDS)


def _looks(
    cluster: Cluster, host: Host, read: Callable[[Object], Seen], say: Say, every: float
) -> Iterator[tuple[Object, Seen]]:
    kubernetes, outage = cluster.kubernetes, Outage(say)
    while True:
        begin = time.monotonic()
        with refusals(), _bridged(outage, kubernetes):
            for job, pods in kubernetes.sights(host.job, host.labels, every):
                # the end of a Job may be told before that of its pods
                node = read(kubernetes.select("pods", host.labels) if end_of(host.job, job) else pods)
                outage.end()
                yield job, node
        if kubernetes.is_late:
            how = "stopped" if kubernetes.limit is None else f"gave up after {kubernetes.limit:g} s"
            raise DeadlineError(f"{cluster.name} in {kubernetes}: {how}")
        # a server that ends each watch at once must not be asked all the time
        time.sleep(max(0.0, RETRY_SECONDS - (time.monotonic() - begin)))


@contextmanager
def _bridged(outage: Outage, kubernetes: KubePort) -> Iterator[None]:
    """Ignore errors while Kubernetes is away. Raises KubernetesError for a refusal, or after OUTAGE_SECONDS."""
    try:
        yield
    except KubernetesError as error:
        if kubernetes.is_late:
            return  # the deadline cut it off
        if isinstance(error, RefusedError) or not outage.bears(error.reason):
            raise


#: Seconds for which a pod may fail to start: a registry may be away for a moment
START_SECONDS = 60.0


class StartWatch:
    """Ends the wait for a lead that can't start, or for the quorum when other pods can't."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._since: float | None = None

    def __call__(self, cluster: LiveCluster) -> None:
        """Look at a MiniCluster without a quorum. Raises EndError when a pod has not started for START_SECONDS."""
        lead, groups = cluster.pods.get(0), [cluster.pods, *(group.pods for group in cluster.groups)]
        # the other pods are like the lead, and start if it does
        pods = [pod for its in groups for pod in its.values() if pod is lead or (lead and lead.phase == "Running")]
        pod = next((one for one in pods if one.is_stuck), None)
        self.see(pod, "the lead" if pod is lead else f"pod {pod.name}" if pod else "")

    def see(self, pod: Pod | None, who: str) -> None:
        """Look at a pod that is waited for, and that may be stuck. Raises the same."""
        now = time.monotonic()
        if not (pod and pod.is_stuck):
            self._since = None
            return
        self._since = now if self._since is None else self._since
        # a name that is no image's gets no better
        if now - self._since >= START_SECONDS or pod.reason == "InvalidImageName":
            raise EndError(f"{self._name} can't start: {who} is {pod.why}")
