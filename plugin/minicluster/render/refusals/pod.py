"""Refusals of fields of the pod, and of values that contradict a kept queue."""

from collections.abc import Iterator

from minicluster.kube.names import REQUEUE_ATTRIBUTE
from minicluster.render.model import MiniClusterModel
from minicluster.render.quantity import is_zero


def fields(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield fields of the pod that exclude each other."""
    pod = cluster.spec["pod"]
    if cluster.spec["networkPolicy"]["enabled"] and pod["hostNetwork"]:
        yield (
            "networkPolicy.enabled and pod.hostNetwork are both true: a NetworkPolicy does not apply to the host's "
            "network; drop one of them"
        )
    if cluster.spec["shareProcessNamespace"] and pod["hostPID"]:
        yield "shareProcessNamespace and pod.hostPID are both true: Kubernetes allows one of them; drop the other"
    if pod["sharedMemory"] != "none" and is_zero(pod["sharedMemory"]):
        yield f"pod.sharedMemory is {pod['sharedMemory']}: give a size such as 1Gi, or none for 64 MB"
    template = pod["template"].get("spec") or {}
    if pod["dnsPolicy"] == "None" and not (isinstance(template, dict) and template.get("dnsConfig")):
        yield "pod.dnsPolicy is None and no name server is given: set pod.template.spec.dnsConfig.nameservers"


def on_stop(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield values with which jobs can't run again after a stop."""
    if cluster.spec["pod"]["onStop"] != "requeue":
        return
    if not cluster.spec["pod"]["terminationGracePeriodSeconds"]:
        yield (
            "pod.onStop is 'requeue' and pod.terminationGracePeriodSeconds is 0: a pod is killed before it can put "
            "a job back; allow it some seconds"
        )
    if cluster.runner.get("launcher"):
        yield (
            "pod.onStop is 'requeue' and the runner is a launcher: only a launcher knows which of its jobs run again; "
            f"drop onStop, and have the launcher mark jobs with --setattr={REQUEUE_ATTRIBUTE}=1"
        )


def kept_state(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield values that contradict a kept queue."""
    state = cluster.spec["state"]
    field = "state.claimName" if state["claimName"] else "state.capacity"
    if state["claimName"] and state["capacity"]:
        yield "state.claimName and state.capacity are both set: the claim is yours, or the release makes it; drop one"
    if cluster.state_claim and cluster.joins:
        yield f"{field} and flux.bursting.leadBroker are both set: the lead has the state; drop the claim"
    if cluster.state_claim and cluster.spec["archive"]["path"]:
        yield f"{field} and archive.path are both set: each restores the queue; drop one of them"
    for key in [key for key in ("storageClass", "accessModes") if not state["capacity"] and state[key]]:
        yield f"state.{key} is set without capacity: it is of a claim that the release makes; drop it"
