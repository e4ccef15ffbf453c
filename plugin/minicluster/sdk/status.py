"""The document of `minicluster status`, asked through the `kubernetes` client."""

from datetime import UTC, datetime
from typing import Any

from minicluster.sdk.channel import LostError, finish
from minicluster.sdk.errors import NotFoundError
from minicluster.sdk.kube import Kube
from minicluster.status.ask import QUESTION, state_of_silent_lead, state_without_flux
from minicluster.status.document import document
from minicluster.status.objects import Answer, Snapshot, read_answer, read_deleted_job, read_job
from minicluster.status.pods import Pod, read_pods


def status(kube: Kube, name: str) -> dict[str, Any]:
    """Return what `minicluster status NAME -o json` prints. Raises NotFoundError, ApiError."""
    labels = f"app.kubernetes.io/instance={name},app.kubernetes.io/component=broker"
    pods = read_pods(kube.list("pod", labels))
    found = kube.get("job", name)
    job = read_job(found) if found else None
    if not pods and not found:
        left = kube.get("config_map", f"{name}-config")
        job = read_deleted_job(left) if left else None
    if not pods and not job:
        raise NotFoundError(f"there is no MiniCluster {name} in {kube} any more")
    answer = None
    known = state_without_flux(name, job, pods)
    state, why = known or ("", "")
    if not known:
        answer, state, why = _ask(kube, pods[0])
    return document(Snapshot(name, datetime.now(UTC), pods, job, answer, state, why))


def _ask(kube: Kube, lead: Pod) -> tuple[Answer | None, str, str]:
    """Return the answer of the lead's pod, or the cluster's state without one, and why."""
    try:
        result = finish(kube.run(lead.name, lead.runner, ["sh", "-c", QUESTION]))
        if result.exit_code:
            lines = result.stderr.strip().splitlines() or [f"exit code {result.exit_code}"]
            return None, *state_of_silent_lead(lead, lines[-1])
        return read_answer(result.stdout), "", ""
    except LostError as error:
        return None, *state_of_silent_lead(lead, str(error))
    except ValueError as error:
        return None, *state_of_silent_lead(lead, f"it printed no JSON: {error}")
