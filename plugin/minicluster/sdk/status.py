"""The document of `minicluster status`, asked through the `kubernetes` client."""

from datetime import UTC, datetime
from typing import Any

from minicluster import lines
from minicluster.cluster.pods import Pod
from minicluster.lead.question import WORDS, SilentError, standard_input
from minicluster.live.document import document
from minicluster.live.snapshot import snapshot
from minicluster.sdk.channel import finish
from minicluster.sdk.client import KubeClient
from minicluster.sdk.exceptions import ApiError
from minicluster.sdk.leads import find_all


def status(kube: KubeClient, name: str) -> dict[str, Any]:
    """Return what `minicluster status NAME -o json` prints. Raises NotFoundError, ApiError."""
    return document(snapshot(find_all(kube, name), datetime.now(UTC), lambda lead: ask_lead(kube, lead)))


def ask_lead(kube: KubeClient, lead: Pod) -> str:
    """Return what QUESTION prints in the lead's pod. Raises SilentError; ApiError if this user may not ask."""
    try:
        channel = kube.run(lead.name, lead.runner, WORDS, stdin=True)
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
