"""The log of the lead or another node, by `kubectl logs`; it goes on when another pod replaces the node's."""

from collections.abc import Callable
from contextlib import closing

from minicluster import streams
from minicluster.cluster.hosts import Host, find_host, lead_of
from minicluster.cluster.job import end_of, read_job
from minicluster.cluster.lead import Lead, end_with
from minicluster.cluster.node import Node
from minicluster.errors import StateError
from minicluster.kubectl import Kubernetes
from minicluster.live.kubectl_evidence import KubectlEvidence
from minicluster.live.loglines import NewLines
from minicluster.live.lookup import Cluster, find, refusals
from minicluster.live.running import absence
from minicluster.live.telling import StateTeller, describe, end_in_words, ended, news, see
from minicluster.live.watch import looks, looks_at

Say = Callable[[str], None]


def show(kubernetes: Kubernetes, name: str, text: str, container: str) -> None:
    """Print the log of the node that a text means, "" for the lead, or else of the last pod that was this node.

    Raises StateError when there is none.
    """
    cluster, host = _find(kubernetes, name, text)
    with refusals():
        node = cluster.read_node(host)
        if node is None:
            raise StateError(f"there is no log: {_absence(cluster, host)}")
    _PrintedLog(kubernetes, node, container).copy(follow=False)


def _find(kubernetes: Kubernetes, name: str, text: str) -> tuple[Cluster, Host]:
    found = find(kubernetes, name)
    return Cluster(kubernetes, found.name), find_host(found, text) if text else lead_of(found.name)


def _absence(cluster: Cluster, host: Host) -> str:
    """Return why a host has no pod. Raises CommandError."""
    job, evidence = cluster.read_job(), KubectlEvidence(cluster.kubernetes)
    end, found = end_in_words(evidence, cluster.name, job, None), read_job(job) if job else None
    if end:
        return ended(cluster.name, end, None)
    if host.is_lead or (found and found.is_suspended):
        return ": ".join(describe(evidence, see(evidence, cluster.name, job, None)))
    return absence(evidence, host, cluster.kubernetes.get("job", host.job), None)[0]


def follow(kubernetes: Kubernetes, name: str, text: str, container: str, say: Say) -> None:
    """Print the same, and the logs of the pods that replace it, until the MiniCluster ends. Raises StateError."""
    cluster, host = _find(kubernetes, name, text)
    if host.is_lead:
        say(ended(cluster.name, *print_to_end(cluster, container, say)))
    else:
        _print_node(cluster, host, container, say)


def _print_node(cluster: Cluster, host: Host, container: str, say: Say) -> None:
    """Print the log of a host's pods until their Job ends, and say why it has none. Raises StateError."""
    log, told = _FollowedLog(cluster.kubernetes, container, str(host), say), ""
    evidence = KubectlEvidence(cluster.kubernetes)
    for job, node in looks_at(cluster, host):
        end = end_of(host.job, job)
        log.copy(node, is_over=bool(end))
        # the Job of a pod that has succeeded is about to end
        is_quiet = node and node.pod.phase in ("Running", "Succeeded") and not end
        why = "" if is_quiet else absence(evidence, host, job, node)[0]
        if why and news(why) != told:
            say(why)
        told = news(why)
        if end:
            return


def print_to_end(cluster: Cluster, container: str, say: Say) -> tuple[tuple[str, str], Lead | None]:
    """Print the log of each lead until the MiniCluster ends; return the end and the lead.

    Raises StateError, also at the deadline.
    """
    kubernetes, name = cluster.kubernetes, cluster.name
    evidence = KubectlEvidence(kubernetes)
    log, tell = _FollowedLog(kubernetes, container, "the lead", say), StateTeller(evidence, name, say)
    with tell.at_deadline():
        for job, lead in looks(cluster):
            end = end_with(name, job, lead)
            log.copy(lead, is_over=bool(end))
            if end:
                return end_in_words(evidence, name, job, lead) or end, lead
            if not lead or lead.pod.phase != "Running":
                tell(job, lead)
            else:
                tell.forget()
    raise AssertionError  # looks only ends with an error


class _FollowedLog:
    """The log of a node, in all of its pods."""

    def __init__(self, kubernetes: Kubernetes, container: str, who: str, say: Say) -> None:
        self._kubernetes, self._container, self._who, self._say = kubernetes, container, who, say
        self._log: _PrintedLog | None = None

    def copy(self, node: Node | None, *, is_over: bool) -> None:
        """Print new lines of the node's present pod, until the connection ends. Raises StateError."""
        if node and (self._log is None or self._log.uid != node.uid):
            if self._log:
                # the old pod's last lines, from after the connection broke
                self._log.copy(follow=True)
                self._say(f"{self._who} was replaced: the log goes on with pod {node.pod.name}")
            self._log = _PrintedLog(self._kubernetes, node, self._container)
        if self._log and node and node.pod.phase != "Pending":
            self._log.copy(follow=not is_over)


class _PrintedLog:
    """The log of one pod; it prints no line twice."""

    def __init__(self, kubernetes: Kubernetes, node: Node, container: str) -> None:
        self.uid = node.uid
        self._kubernetes, self._pod, self._container = kubernetes, node.pod.name, container or node.pod.runner
        self._new = NewLines()

    def copy(self, *, follow: bool) -> None:
        """Print what was not printed before, until the connection ends, or at the deadline.

        With ``follow`` it is no error if the pod is gone, or has not begun. Raises StateError.
        """
        words = ("logs", self._pod, f"--container={self._container}", "--timestamps", f"--follow={str(follow).lower()}")
        with closing(self._kubernetes.stream(*words)) as output:
            for part in self._new.of(output.parts(self._kubernetes.deadline)):
                streams.write(part.text)
            error = output.error()
        if error is None:
            return
        if error.is_forbidden:
            with refusals():
                raise error
        if not follow or "is not valid for pod" in error.reason:
            raise StateError(f"there is no log: {error.reason}")
