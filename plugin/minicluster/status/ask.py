"""What ``minicluster status`` asks of Kubernetes, and then of the lead unless the state is clear without it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from minicluster.errors import StatusError
from minicluster.kubectl import CommandError, Kubernetes
from minicluster.names import LABEL
from minicluster.program import BOOT, first_line
from minicluster.status import kueue, objects, words
from minicluster.status.objects import Job, Snapshot
from minicluster.status.pods import Pod, read_pods

#: Seconds that the lead has to answer
EXEC_SECONDS = 20.0
#: Lines at the end of a log that say why a pod failed
LINES = 50
#: What asks Flux
WAITING = Path(__file__).with_name("waiting.py")
#: Prints a JSON list: the settings of the lead's pod, and what Flux knows. Takes BOOT, and WAITING as standard input
QUESTION = (
    'printf "[" && cat "$MINICLUSTER_HOME/minicluster/agent.json" && printf "," && '
    '"$MINICLUSTER_HOME/bin/flux" python -c "$0" && printf "]"'
)
REPLACED = "; Kubernetes replaces it, or ends the Job"
#: Label selector of what the chart makes
MADE_BY_CHART = "app.kubernetes.io/name=minicluster"
NEEDS = "this needs `get` and `list` of pods and `create` of pods/exec: ask for a Role that has them"


def take_snapshot(kubernetes: Kubernetes, name: str, now: datetime) -> Snapshot:
    """Return a MiniCluster as it is now, by its own name or its release's. Raises StatusError, ToolError."""
    name, pods, job = find(kubernetes, name)
    if job and job.end:
        job = replace(job, end=why_failed(kubernetes, job, pods.get(0)))
    return snapshot(name, now, pods, job, lambda lead: ask_lead(kubernetes, lead))


def why_failed(kubernetes: Kubernetes, job: Job, lead: Pod | None) -> tuple[str, str] | None:
    """Return the end of a Job; of one that failed with what the log of its pod says, if the user may read that."""
    pod = job.failed_pod or (lead.name if lead and lead.phase == "Failed" else "")
    if not (job.end and job.end[0] == "Failed" and pod):
        return job.end
    try:
        lines = kubernetes.kubectl("logs", pod, f"--tail={LINES}", seconds=EXEC_SECONDS).splitlines()
    except CommandError:
        lines = []
    why = words.of_log(lines) or job.end[1]
    if lead and lead.name == pod and lead.reason.startswith("OOMKilled") and words.MEMORY not in why:
        why = f"{why} ({words.MEMORY})"
    return "Failed", why


def find(kubernetes: Kubernetes, name: str) -> tuple[str, dict[int, Pod], Job | None]:
    """Return a MiniCluster's own name, its pods, and its Job if the user may read that. Raises StatusError."""
    check_name(name)
    try:
        pods, job = _find(kubernetes, name)
        if not pods and not job and (other := _find_name(kubernetes, name)):
            name = other
            pods, job = _find(kubernetes, name)
    except CommandError as error:
        way = NEEDS if error.is_forbidden else "check KUBECONFIG, --context and --namespace"
        raise StatusError(f"{error.reason}: {way}") from None
    if job and job.is_suspended and job.queue:
        job = replace(job, why_suspended=_ask_kueue(kubernetes, job))
    if not pods and not job:
        raise StatusError(f"there is no MiniCluster {name} in {kubernetes}: see `minicluster list -A` and give its -n")
    return name, pods, job


def check_name(name: str) -> None:
    """Raise StatusError for what can't be a MiniCluster's name, such as a selector of more than one."""
    if not re.fullmatch(LABEL, name):
        raise StatusError(f"{name!r} is not a MiniCluster's name: give the release's name, of a-z, 0-9 and -")


class SilentError(Exception):
    """The lead gave no answer; the text says why."""


class LateError(Exception):
    """There was no time for the lead's answer."""


def snapshot(name: str, now: datetime, pods: Mapping[int, Pod], job: Job | None, ask: Callable[[Pod], str]) -> Snapshot:
    """Return a MiniCluster by what Kubernetes has of it, and by the lead's answer unless the state is clear without it.

    ``ask`` returns what QUESTION prints in a pod, or raises SilentError.
    """
    known = state_without_flux(name, job, pods, now)
    if known:
        return Snapshot(name, now, pods, job, None, *known)
    try:
        return Snapshot(name, now, pods, job, objects.read_answer(ask(pods[0])))
    except SilentError as error:
        why = str(error)
    except ValueError as error:
        why = f"it printed no JSON: {error}"
    return Snapshot(name, now, pods, job, None, *state_of_silent_lead(pods[0], why))


def broker_pods(name: str) -> str:
    """Return the label selector of a MiniCluster's brokers."""
    return f"app.kubernetes.io/instance={name},app.kubernetes.io/component=broker"


def _find(kubernetes: Kubernetes, name: str) -> tuple[dict[int, Pod], Job | None]:
    """Return the pods and the Job; the Job also when only its pods or its ConfigMap are left. Raises CommandError."""
    pods = read_pods(kubernetes.get("pods", f"--selector={broker_pods(name)}"))
    found = _get_readable(kubernetes, "job", name)
    if found:
        return pods, objects.read_job(found)
    if pods:
        # no answer at all: the user may not read jobs
        return pods, objects.job_of_pods(pods) if found is not None else None
    config = _get_readable(kubernetes, "configmap", f"{name}-config")
    return pods, objects.read_deleted_job(config) if config else None


def _find_name(kubernetes: Kubernetes, release: str) -> str | None:
    """Return the name of a release's MiniCluster, which nameOverride may have set. Raises CommandError."""
    for kind in ("jobs", "configmaps"):
        found = _get_readable(kubernetes, kind, f"--selector={MADE_BY_CHART}")
        name = objects.read_name(release, found) if found else None
        if name:
            return name
    return None


def _get_readable(kubernetes: Kubernetes, kind: str, *words: str) -> dict[str, Any] | None:
    """Return objects, an empty map when there are none; None when the user may not read them. Raises CommandError."""
    try:
        return kubernetes.get(kind, *words)
    except CommandError as error:
        if error.is_forbidden:
            return None
        raise


def _ask_kueue(kubernetes: Kubernetes, job: Job) -> str:
    """Return why Kueue holds a Job back."""
    try:
        return kueue.why_held(job.queue, kubernetes.get(kueue.WORKLOADS, f"--selector={kueue.JOB}={job.uid}"))
    except CommandError as error:
        return f"Kueue's queue {job.queue}: why is unknown, {error.reason}"


def ask_lead(kubernetes: Kubernetes, lead: Pod) -> str:
    """Return what QUESTION prints in the lead's pod. Raises SilentError, StatusError."""
    command = ("exec", lead.name, f"--container={lead.runner}", "--stdin", "--", "sh", "-c", QUESTION, BOOT)
    try:
        return kubernetes.kubectl(*command, stdin=first_line(WAITING), seconds=EXEC_SECONDS)
    except CommandError as error:
        if error.is_forbidden:
            raise StatusError(f"{error.reason}: {NEEDS}") from None
        raise SilentError(error.reason) from None


def state_without_flux(name: str, job: Job | None, pods: Mapping[int, Pod], now: datetime) -> tuple[str, str] | None:
    """Return the cluster's state, and why, where Flux can't be asked; None where the lead is there to be asked."""
    if job and job.is_suspended and not job.end:
        return "Suspended", _why_suspended(name, job)
    if job and job.end:
        return job.end
    if 0 not in pods:
        return "Starting", f"the lead has no pod: `kubectl describe job {name}` says why"
    return _state_by_pod(pods[0], job, now)


def _why_suspended(name: str, job: Job) -> str:
    if job.is_asleep:
        return f"{job.why_suspended}: `minicluster flux {name} -- COMMAND` or `minicluster scale {name} SIZE` wakes it"
    if job.why_suspended and not job.queue:
        return f"by {job.why_suspended}: `helm upgrade` with suspend=false resumes it"
    if job.queue:
        return job.why_suspended or f"Kueue's queue {job.queue} holds it: `kubectl get workloads` says why"
    patch = '{"spec":{"suspend":false}}'
    return f"the Job is suspended: `kubectl patch job {name} --type=merge -p '{patch}'` resumes it"


def _state_by_pod(lead: Pod, job: Job | None, now: datetime) -> tuple[str, str] | None:
    """Return the cluster's state, and why, by the pod of the lead; None where it is there to be asked."""
    if lead.phase == "Succeeded":
        return "Complete", f"the lead's pod {lead.name} ended with exit code 0"
    if lead.phase == "Failed":
        return _state_of_failed_lead(lead, job, now)
    started = "Running" if lead.is_ready else "Starting"
    if job and job.lead_address:
        return started, f"its brokers join the cluster of {job.lead_address}: see the status of that cluster"
    if job and not job.has_socket:
        return started, "flux.disableSocket is set, so Flux can't be asked"
    if lead.phase != "Running":
        return "Starting", ": ".join(filter(None, [f"the lead is {lead.state}", lead.message]))
    return None


def _state_of_failed_lead(lead: Pod, job: Job | None, now: datetime) -> tuple[str, str]:
    why, left = f"the lead's pod {lead.name} is {lead.state}", lead.back_off(now)
    if not lead.is_replaced:
        return "Ending", f"{why}: Kubernetes ends the Job"
    why += f": failure {lead.failures}, next try in about {left:.0f} s" if left > 0 else REPLACED
    return "Starting" if job else "Unknown", why


def state_of_silent_lead(lead: Pod, message: str) -> tuple[str, str]:
    """Return the cluster's state, and why, when the lead was asked and gave no answer."""
    log, known = f"`kubectl logs -n {lead.namespace} {lead.name}`", words.of_silence(message)
    if known == "Ending":
        return known, "the lead's container has ended, and Kubernetes has yet to say how"
    if known and not lead.is_ready:
        return known, f"the lead's broker starts: {log} says how far it is"
    why = f"the lead's broker does not answer ({message}): {log} says more"
    return "Unknown" if lead.is_ready else "Starting", why
