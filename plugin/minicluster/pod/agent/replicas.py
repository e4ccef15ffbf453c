"""The replicas of a Deployment, by which `kubectl scale`, a HorizontalPodAutoscaler or KEDA requests a size.

A Job has no scale subresource, and a Deployment has one. This one is paused, so Kubernetes makes no pods for it.
Replicas that the agent did not write are a request, which holds like that of minicluster-scale. When the size has
changed, the agent writes it into the replicas, so other clients see the live size.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autoscale import Policy
from kube import Kube
from log import Once
from state import request_size

#: Annotation of the Deployment: the replicas that the agent has seen or written last
SEEN = "minicluster/replicas"
#: The replicas of a new Deployment whose manifest names none
NEW_REPLICAS = 1


@dataclass
class Replicas:
    """Remembers the size that the replicas were last compared with."""

    size: int = 0  #: 0: none yet

    def ask(self, handle: Any, kube: Kube, once: Once, size: int, policy: Policy) -> None:
        """Request in Flux what somebody requests by the replicas, and write a size that is new into them.

        ``size`` is that of the Job; a request is brought into the policy's limits. Raises KubeError, OSError.
        """
        deployment = kube.get_deployment()
        asked = int(deployment["spec"]["replicas"])
        seen = deployment["metadata"].get("annotations", {}).get(SEEN)
        if str(asked) != (seen or str(NEW_REPLICAS)):
            replicas = max(policy.min, min(asked, policy.max))
            limits = f", and the size is from {policy.min} to {policy.max}: {replicas} is requested"
            about = "" if replicas == asked else limits
            once.log(f"replicas of Deployment {kube.name} are {asked}{about}", "replicas")
            # before it is marked as seen: an agent that ends in between does this again
            request_size(handle, replicas)
        else:
            replicas = asked if seen and size == self.size else size
        if (replicas, str(replicas)) != (asked, seen):
            kube.set_replicas(deployment, replicas, {SEEN: str(replicas)})
        self.size = size
