"""What is asked through kubectl about why a MiniCluster is as it is."""

from minicluster.cluster.events import WARNINGS
from minicluster.cluster.find import Object
from minicluster.cluster.pods import Pod
from minicluster.errors import StatusError
from minicluster.kubectl import CommandError, Kubernetes
from minicluster.lead.question import WORDS, LateError, SilentError, standard_input
from minicluster.live.lookup import NEEDS

#: Seconds that the lead has to answer
EXEC_SECONDS = 20.0


class KubectlEvidence:
    """`Evidence` of a namespace, by kubectl. The methods raise CommandError."""

    def __init__(self, kubernetes: Kubernetes) -> None:
        """Send no request yet."""
        self._kubernetes = kubernetes

    def get(self, kind: str, name: str) -> Object:
        """Return an object; an empty map when there is none."""
        return self._kubernetes.get(kind, name)

    def select(self, kind: str, labels: str) -> Object:
        """Return the list of the objects that have labels."""
        return self._kubernetes.select(kind, labels)

    def warnings(self) -> Object:
        """Return the list of the namespace's events that may say why a pod waits."""
        return self._kubernetes.get("events", f"--field-selector={WARNINGS}")

    def tail(self, pod: str, lines: int) -> str:
        """Return the last lines of the log of a pod's runner."""
        return self._kubernetes.kubectl("logs", pod, f"--tail={lines}", seconds=EXEC_SECONDS)

    def ask(self, lead: Pod) -> str:
        """Return what QUESTION prints in the lead's pod. Raises SilentError, LateError, StatusError."""
        words = (*lead.exec_words("--stdin"), *WORDS)
        try:
            return self._kubernetes.kubectl(*words, stdin=standard_input(), seconds=EXEC_SECONDS)
        except CommandError as error:
            if self._kubernetes.is_late:
                # the deadline cut the question off
                raise LateError(error.reason) from None
            if error.is_forbidden:
                raise StatusError(f"{error.reason}: {NEEDS}") from None
            raise SilentError(error.reason) from None
