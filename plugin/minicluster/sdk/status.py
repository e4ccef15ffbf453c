"""The document of `minicluster status`, asked through the `kubernetes` client."""

from datetime import UTC, datetime
from typing import Any

from minicluster.sdk.channel import LostError, finish
from minicluster.sdk.errors import NotFoundError
from minicluster.sdk.kube import Kube
from minicluster.status import document
from minicluster.status.ask import QUESTION
from minicluster.status.document import Answer, Pod, Seen


def status(kube: Kube, name: str) -> dict[str, Any]:
    """Return what `minicluster status NAME -o json` prints. Raises NotFoundError, ApiError."""
    labels = f"app.kubernetes.io/instance={name},app.kubernetes.io/component=broker"
    pods = document.read_pods(kube.list("pod", labels))
    found = kube.get("job", name)
    job = document.read_job(found) if found else None
    if not pods and not found:
        left = kube.get("config_map", f"{name}-config")
        job = document.read_left(left) if left else None
    if not pods and not job:
        raise NotFoundError(f"there is no MiniCluster {name} in {kube} any more")
    lead, state, why = document.lead(name, job, pods)
    answer = None
    if lead:
        answer, state, why = _ask(kube, lead)
    return document.document(Seen(name, datetime.now(UTC), pods, job, answer, state, why))


def _ask(kube: Kube, lead: Pod) -> tuple[Answer | None, str, str]:
    """Return the answer of the lead's pod, or the cluster's state without one, and why."""
    try:
        result = finish(kube.run(lead.name, lead.runner, ["sh", "-c", QUESTION]))
        if result.exit_code:
            lines = result.stderr.strip().splitlines() or [f"exit code {result.exit_code}"]
            return None, *document.silent(lead, lines[-1])
        return document.read_answer(result.stdout), "", ""
    except LostError as error:
        return None, *document.silent(lead, str(error))
    except ValueError as error:
        return None, *document.silent(lead, f"it printed no JSON: {error}")
