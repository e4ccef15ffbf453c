"""The document of `minicluster status`, asked through the `kubernetes` client."""

from datetime import UTC, datetime
from typing import Any

from minicluster.program import BOOT, first_line
from minicluster.sdk.channel import LostError, finish
from minicluster.sdk.errors import NotFoundError
from minicluster.sdk.kube import Kube
from minicluster.status.ask import QUESTION, WAITING, SilentError, broker_pods, snapshot
from minicluster.status.document import document
from minicluster.status.objects import job_of_pods, read_deleted_job, read_job
from minicluster.status.pods import Pod, read_pods


def status(kube: Kube, name: str) -> dict[str, Any]:
    """Return what `minicluster status NAME -o json` prints. Raises NotFoundError, ApiError."""
    pods = read_pods(kube.list("pod", broker_pods(name)))
    found = kube.get("job", name)
    job = read_job(found) if found else None
    if pods and not found:
        job = job_of_pods(pods)
    elif not found:
        left = kube.get("config_map", f"{name}-config")
        job = read_deleted_job(left) if left else None
    if not pods and not job:
        raise NotFoundError(f"there is no MiniCluster {name} in {kube} any more")
    return document(snapshot(name, datetime.now(UTC), pods, job, lambda lead: ask_lead(kube, lead)))


def ask_lead(kube: Kube, lead: Pod) -> str:
    """Return what QUESTION prints in the lead's pod. Raises SilentError."""
    try:
        channel = kube.run(lead.name, lead.runner, ["sh", "-c", QUESTION, BOOT], stdin=True)
        channel.write(first_line(WAITING).encode())
        result = finish(channel)
    except LostError as error:
        raise SilentError(str(error)) from None
    if result.exit_code:
        lines = result.stderr.strip().splitlines() or [f"exit code {result.exit_code}"]
        raise SilentError(lines[-1])
    return result.stdout
