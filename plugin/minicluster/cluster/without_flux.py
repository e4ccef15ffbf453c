"""The state of a MiniCluster, and why, as far as Kubernetes tells it."""

from datetime import datetime

from minicluster.cluster import states
from minicluster.cluster.find import LiveCluster
from minicluster.cluster.job import KubernetesJob
from minicluster.cluster.pods import Pod
from minicluster.cluster.troubles import explained

#: Why a Job that is run elsewhere comes to nothing
COPIED = (
    "Kueue's MultiKueue copies the Job alone to another cluster, where its pods can't run: install it there, or use a "
    "queue without MultiKueue"
)
#: Why a Job comes to nothing that got another name when it was rendered
RENAMED = (
    "its Job is {name}, and its configuration is that of {was}: names can't change after the rendering; set "
    "nameOverride to {name} in place of a namePrefix or nameSuffix"
)
#: The end of the reason when a lead failed
IS_REPLACED = "; Kubernetes replaces it, or ends the Job"


def state_without_flux(cluster: LiveCluster, now: datetime) -> tuple[str, str] | None:
    """Return the cluster's state, and why, if it is known without Flux; None if the lead can be asked."""
    name, pods, job, _ = cluster
    if job and job.is_copied and not job.end:
        return "Suspended" if job.is_suspended else "Starting", COPIED
    if job and job.is_suspended and not job.end:
        return "Suspended", _why_suspended(name, job)
    if job and _is_renamed(name, job.cluster):
        return job.end[0] if job.end else "Starting", RENAMED.format(name=name, was=job.cluster)
    if job and job.end:
        return job.end
    if 0 not in pods:
        return "Starting", of_no_pod("the lead has no pod", name, job.why_no_pod if job else "")
    return _state_by_pod(pods[0], job, now)


def _is_renamed(name: str, rendered: str) -> bool:
    """Return whether a name has more than the one that was rendered; any other label is of the user's own."""
    return bool(rendered) and name != rendered and (name.startswith(rendered) or name.endswith(rendered))


def of_no_pod(state: str, job: str, said: str) -> str:
    """Return a state, as ``X has no pod``, with what an event says of the Job that should have made it."""
    return explained(state, "", said) if said else f"{state}: `kubectl describe job {job}` says why"


def _why_suspended(name: str, job: KubernetesJob) -> str:
    if job.is_asleep:
        return f"{job.why_suspended}: `minicluster flux {name} -- COMMAND` or `minicluster scale {name} SIZE` wakes it"
    if job.why_suspended and not job.queue:
        return f"by {job.why_suspended}: an upgrade with suspend=false resumes it"
    if job.queue:
        return job.why_suspended or f"Kueue's queue {job.queue} holds it: `kubectl get workloads` says why"
    patch = '{"spec":{"suspend":false}}'
    return f"the Job is suspended: `kubectl patch job {name} --type=merge -p '{patch}'` resumes it"


def _state_by_pod(lead: Pod, job: KubernetesJob | None, now: datetime) -> tuple[str, str] | None:
    """Return the cluster's state, and why, from the lead's pod; None if the lead can be asked."""
    # Kubernetes sees the end of a container before that of its pod
    has_ended = lead.exit_code is not None and not (lead.is_leaving or lead.kept_by)
    if lead.phase == "Succeeded" or (has_ended and lead.exit_code == 0):
        return "Complete", f"the lead's pod {lead.name} ended with exit code 0"
    if lead.phase == "Failed" or has_ended:
        return _state_of_failed_lead(lead, job, now)
    return ("Unknown", _why_cut_off(lead)) if lead.is_cut_off else _state_of_live_lead(lead, job)


def _state_of_live_lead(lead: Pod, job: KubernetesJob | None) -> tuple[str, str] | None:
    if lead.kept_by and not lead.is_leaving:
        return "Ending", f"the lead is {lead.why}"
    started = "Running" if lead.is_ready else "Starting"
    if job and job.lead_address:
        return started, f"its nodes join the cluster of {job.lead_address}: see the status of that cluster"
    if job and not job.has_socket:
        return started, "flux.disableSocket is set, so Flux can't be asked"
    if lead.phase != "Running":
        return "Starting", f"the lead is {lead.why}"
    return None


def _why_cut_off(lead: Pod) -> str:
    return (
        f"the Kubernetes node {lead.node} of the lead gives no sign of life: Kubernetes replaces the pod when the node "
        f"is back or removed, or after `kubectl delete pod -n {lead.namespace} {lead.name} --force`"
    )


def _state_of_failed_lead(lead: Pod, job: KubernetesJob | None, now: datetime) -> tuple[str, str]:
    why, left = f"the lead's pod {lead.name} is {lead.why}", lead.back_off(now)
    if not lead.is_replaced:
        return "Ending", f"{why}: Kubernetes ends the Job"
    again = "; Kubernetes replaces it" if lead.reason == "Evicted" else IS_REPLACED
    why += f": failure {lead.failures}, next try in about {left:.0f} s" if left > 0 else again
    return "Starting" if job else "Unknown", why


def state_of_silent_lead(lead: Pod, message: str) -> tuple[str, str]:
    """Return the cluster's state, and why, when the lead was asked and gave no answer."""
    log = f"`minicluster logs {lead.name.rsplit('-', 2)[0]} -n {lead.namespace}`"
    known = states.of_silence(message)
    if known == "Ending":
        return known, "the lead's container has ended, and Kubernetes has yet to say how"
    if known and not lead.is_ready:
        return known, f"the lead's broker starts: {log} says how far it is"
    why = f"the lead's broker does not answer ({message}): {log} says more"
    return "Unknown" if lead.is_ready else "Starting", why
