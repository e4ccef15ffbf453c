"""What ``minicluster status`` asks of Kubernetes, and then of the lead unless the state is clear without it."""

import re
from datetime import datetime
from typing import Any

from minicluster.kubectl import CommandError, Kubernetes
from minicluster.status import document
from minicluster.status.document import Answer, Job, Pod, Seen, StatusError

#: Seconds that the lead has to answer.
EXEC_SECONDS = 20.0
#: Prints a JSON list: the settings of the lead's pod, and what Flux knows.
QUESTION = (
    'printf "[" && cat "$MINICLUSTER_HOME/minicluster/agent.json" && printf "," && '
    '"$MINICLUSTER_HOME/bin/flux" python "$MINICLUSTER_HOME/minicluster/state.py" && printf "]"'
)
NEEDS = "status needs `get` and `list` of pods and `create` of pods/exec: ask for a Role that has them"


def take_snapshot(kubernetes: Kubernetes, name: str, now: datetime) -> Seen:
    """Return a MiniCluster as it is now, by its own name or its release's. Raises StatusError, ToolError."""
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
        raise StatusError(f"{name!r} is no name of a MiniCluster: give the release's, of a-z, 0-9 and -")
    try:
        pods, job = _find(kubernetes, name)
        if not pods and not job and (other := _find_name(kubernetes, name)):
            name = other
            pods, job = _find(kubernetes, name)
    except CommandError as error:
        way = NEEDS if error.is_forbidden else "check KUBECONFIG, --context and --namespace"
        raise StatusError(f"{error.reason}: {way}") from None
    if not pods and not job:
        raise StatusError(f"there is no MiniCluster {name} in {kubernetes}: see `helm list -A` and give its -n")
    lead, state, why = document.lead(name, job, pods)
    answer = None
    if lead:
        answer, state, why = _ask_lead(kubernetes, lead)
    return Seen(name, now, pods, job, answer, state, why)


def _find(kubernetes: Kubernetes, name: str) -> tuple[dict[int, Pod], Job | None]:
    """Return the pods and the Job, or what is left of a Job that is gone. Raises CommandError."""
    selector = f"app.kubernetes.io/instance={name},app.kubernetes.io/component=broker"
    pods = document.read_pods(kubernetes.get("pods", f"--selector={selector}"))
    found = _get_readable(kubernetes, "job", name)
    job = document.read_job(found) if found else None
    if not pods and not found:
        left = _get_readable(kubernetes, "configmap", f"{name}-config")
        job = document.read_left(left) if left else None
    return pods, job


def _find_name(kubernetes: Kubernetes, release: str) -> str | None:
    """Return the name of a release's MiniCluster, which a nameOverride made another. Raises CommandError."""
    for kind in ("jobs", "configmaps"):
        found = _get_readable(kubernetes, kind, "--selector=app.kubernetes.io/name=minicluster")
        name = document.named_by(release, found) if found else None
        if name:
            return name
    return None


def _get_readable(kubernetes: Kubernetes, kind: str, *words: str) -> dict[str, Any]:
    """Return objects; an empty map when there are none, or this user may not read them. Raises CommandError."""
    try:
        return kubernetes.get(kind, *words)
    except CommandError as error:
        if error.is_forbidden:
            return {}
        raise


def _ask_lead(kubernetes: Kubernetes, lead: Pod) -> tuple[Answer | None, str, str]:
    """Return the answer of the lead's pod, or the cluster's state without one, and why."""
    words = ("exec", lead.name, f"--container={lead.runner}", "--", "sh", "-c", QUESTION)
    try:
        return document.read_answer(kubernetes.kubectl(*words, seconds=EXEC_SECONDS)), "", ""
    except CommandError as error:
        if error.is_forbidden:
            raise StatusError(f"{error.reason}: {NEEDS}") from None
        return None, *document.silent(lead, error.reason)
    except ValueError as error:
        return None, *document.silent(lead, f"it printed no JSON: {error}")
