"""The settings of the `kubernetes` client: from the kubeconfig, or in a pod from its service account."""

import os
import re
import warnings
from urllib.parse import urlsplit

from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import InsecureRequestWarning

from minicluster.errors import RefusedError
from minicluster.kubeconfig import missing


def warn_once(server: str) -> None:
    """Let urllib3 warn once of a certificate that the kubeconfig doesn't check, not at each request.

    A filter of the user's own comes first: only urllib3's "always" gives way.
    """
    found = (action for action, _, category, *_ in warnings.filters if issubclass(InsecureRequestWarning, category))
    if next(found, "default") == "always":
        host = re.escape(f"host '{urlsplit(server).hostname}'")
        warnings.filterwarnings("once", f".*{host}", InsecureRequestWarning)


def read(context: str) -> tuple[client.Configuration, str]:
    """Return the client's settings, and the namespace of the context. Raises RefusedError."""
    settings = client.Configuration()
    # read now: the package kubernetes has only the KUBECONFIG from the time of its import
    file = os.environ.get("KUBECONFIG") or None
    try:
        contexts, active = config.list_kube_config_contexts(file)
        config.load_kube_config(file, context or None, settings)
    except (ConfigException, OSError) as error:
        if context or file:
            why = missing(os.environ) or f"the kubeconfig can't be used: {error}"
            raise RefusedError(f"{why}: check KUBECONFIG and the context") from None
        return _in_cluster(settings)
    chosen = next((one for one in contexts if one["name"] == context), active)
    return settings, chosen["context"].get("namespace", "")


def _in_cluster(settings: client.Configuration) -> tuple[client.Configuration, str]:
    """Return the same for a pod, by its service account. Raises RefusedError."""
    try:
        config.load_incluster_config(settings)
    except ConfigException:
        raise RefusedError("there is no kubeconfig, and this is not a pod with a token: set KUBECONFIG") from None
    with open("/var/run/secrets/kubernetes.io/serviceaccount/namespace", encoding="utf-8") as file:  # noqa: PTH123
        return settings, file.read().strip()
