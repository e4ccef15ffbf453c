"""Where the requests of a program go: a context and a namespace, for as long as it runs."""

from minicluster import settings
from minicluster.errors import ToolError
from minicluster.kube.kubectl import Kubernetes
from minicluster.sdk.exceptions import ApiError


def settled(context: str, namespace: str) -> Kubernetes:
    """Return the place that is meant now; an empty name is that of the settings, the kubeconfig or the pod.

    Raises ApiError without kubectl; KubernetesError without a context.
    """
    try:
        # Ctrl-C in a terminal or a notebook is for the program: it may go on
        where = Kubernetes(context or settings.text("context"), namespace or settings.text("namespace"), is_apart=True)
        return where.settled()
    except ToolError as error:
        raise ApiError(str(error)) from None
