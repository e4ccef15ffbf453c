"""What is asked through the `kubernetes` client about why a MiniCluster is as it is."""

from minicluster import lines
from minicluster.cluster.events import WARNINGS
from minicluster.cluster.pods import Pod
from minicluster.lead.question import WORDS, SilentError, standard_input
from minicluster.sdk.channel import finish
from minicluster.sdk.client import KubeClient, Object
from minicluster.sdk.exceptions import ApiError


class SdkEvidence:
    """`Evidence` of a namespace, by the `kubernetes` client. The methods raise ApiError."""

    def __init__(self, kube: KubeClient) -> None:
        """Send no request yet."""
        self._kube = kube

    def get(self, kind: str, name: str) -> Object | None:
        """Return an object; None when there is none."""
        return self._kube.get(kind, name)

    def select(self, kind: str, labels: str) -> Object:
        """Return the list of the objects that have labels."""
        return self._kube.select(kind, labels)

    def warnings(self) -> Object:
        """Return the list of the namespace's events that may say why a pod waits."""
        return self._kube.events(WARNINGS)

    def tail(self, pod: str, lines: int) -> str:
        """Return the last lines of the log of a pod's runner."""
        return self._kube.log_tail(pod, lines)

    def ask(self, lead: Pod) -> str:
        """Return what QUESTION prints in the lead's pod. Raises SilentError; ApiError if this user may not ask."""
        try:
            channel = self._kube.run(lead.name, lead.runner, WORDS, stdin=True)
            channel.write(standard_input().encode())
            result = finish(channel)
        except ApiError as error:
            # of a container that doesn't run yet, or any more, Kubernetes says 500
            if not error.is_passing:
                raise
            raise SilentError(str(error)) from None
        if result.exit_code:
            said = result.stderr.strip()
            raise SilentError(lines.split(said)[-1] if said else f"exit code {result.exit_code}")
        return result.stdout
