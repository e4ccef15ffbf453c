"""What keeps the services of a MiniCluster from running: they have a Deployment of their own."""

from collections.abc import Sequence

from minicluster.cluster.troubles import way_out
from minicluster.errors import KubernetesError
from minicluster.kube.port import KubePort

#: Conditions of a Deployment that is in trouble, with the status that says so
TROUBLES = (("ReplicaFailure", "True"), ("Progressing", "False"))


def of_services(kube: KubePort, name: str) -> Sequence[str]:
    """Return why the pod of the services is missing; nothing without services, or for a user who may not read them."""
    try:
        found = kube.get("deployment", f"{name}-services")
    except KubernetesError:
        return ()
    conditions = found.get("status", {}).get("conditions", []) if found else []
    said = [c.get("message", "") for kind in TROUBLES for c in conditions if (c["type"], c["status"]) == kind]
    return [": ".join(filter(None, ["the services have no pod", said[0], way_out("", said[0])]))] if said else ()
