"""The log of the lead, by `kubectl logs`; it goes on when another pod replaces the lead."""

from collections.abc import Callable
from contextlib import closing

from minicluster import streams
from minicluster.cluster.job import end_of
from minicluster.cluster.lead import Lead
from minicluster.errors import StateError
from minicluster.kubectl import Kubernetes
from minicluster.live.loglines import NewLines
from minicluster.live.lookup import Cluster, find_cluster, refusals
from minicluster.live.telling import describe, end_in_words, ended, question, teller
from minicluster.live.watch import looks

Say = Callable[[str], None]


def show(kubernetes: Kubernetes, name: str, container: str) -> None:
    """Print the log of the present lead, or else of the last one. Raises StateError when there is none."""
    cluster = find_cluster(kubernetes, name)
    with refusals():
        lead = cluster.read_lead()
        job = {} if lead else cluster.read_job()
    if lead is None:
        name, end = cluster.name, end_in_words(cluster, job, lead)
        why = ended(name, end, None) if end else ": ".join(describe(question(kubernetes), name, job, None))
        raise StateError(f"there is no log: {why}")
    _PrintedLog(kubernetes, lead, container).copy(follow=False)


def follow(kubernetes: Kubernetes, name: str, container: str, say: Say) -> None:
    """Print the log of the lead, and of those that replace it, until the MiniCluster ends. Raises StateError."""
    cluster = find_cluster(kubernetes, name)
    say(ended(cluster.name, *print_to_end(cluster, container, say)))


def print_to_end(cluster: Cluster, container: str, say: Say) -> tuple[tuple[str, str], Lead | None]:
    """Print the same, and return the end and the lead. Raises StateError, also at the deadline."""
    kubernetes, name = cluster.kubernetes, cluster.name
    log: _PrintedLog | None = None
    tell = teller(question(kubernetes), name, say)
    for job, lead in looks(cluster):
        end = end_of(name, job)
        if lead and (log is None or log.uid != lead.uid):
            if log:
                # the old pod's last lines, from after the connection broke
                log.copy(follow=True)
                say(f"the lead was replaced: the log goes on with pod {lead.pod.name}")
            log = _PrintedLog(kubernetes, lead, container)
        if log and lead and lead.pod.phase != "Pending":
            log.copy(follow=not end)
        if end:
            return end_in_words(cluster, job, lead) or end, lead
        if not lead or lead.pod.phase != "Running":
            tell(job, lead)
    raise AssertionError  # looks only ends with an error


class _PrintedLog:
    """The log of one pod; it prints no line twice."""

    def __init__(self, kubernetes: Kubernetes, lead: Lead, container: str) -> None:
        self.uid = lead.uid
        self._kubernetes, self._pod, self._container = kubernetes, lead.pod.name, container or lead.pod.runner
        self._new = NewLines()

    def copy(self, *, follow: bool) -> None:
        """Print the lines that were not printed before, until the connection ends, or at the deadline.

        With ``follow`` it is no error if the pod is gone, or has not begun. Raises StateError.
        """
        words = ("logs", self._pod, f"--container={self._container}", "--timestamps", f"--follow={str(follow).lower()}")
        with closing(self._kubernetes.stream(*words)) as output:
            for line in output.lines(self._kubernetes.deadline):
                text = self._new.text(line.decode(errors="surrogateescape"))
                if text is not None:
                    streams.write(text.encode(errors="surrogateescape"))
            error = output.error()
        if error is None:
            return
        if error.is_forbidden:
            with refusals():
                raise error
        if not follow or "is not valid for pod" in error.reason:
            raise StateError(f"there is no log: {error.reason}")
