"""The kubeconfig's files. Without any, kubectl and Helm ask an API server on this machine, or miss the context."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

#: What they say then
NO_CLUSTER_TEXT = re.compile(
    r"(?:localhost|127\.0\.0\.1|\[::1\]):8080|context .*(?:not found|does not exist)|locate context|no configuration"
)
#: What kubectl says of one that leaves open which context is meant
NO_CONTEXT_TEXT = re.compile("current-context must exist.*")


def missing(environment: Mapping[str, str]) -> str:
    """Return that there is no file, and where it was looked for; "" when there is one."""
    named = [path for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path]
    default = Path(environment.get("HOME", "/"), ".kube", "config")
    if any(path.exists() for path in map(Path, named or [str(default)])):
        return ""
    if named:
        return f"KUBECONFIG is {os.pathsep.join(named)}: there is no such file"
    return f"there is no kubeconfig: KUBECONFIG is not set, and {default} doesn't exist"


def unusable(reason: str, environment: Mapping[str, str]) -> str:
    """Return why there is no context, by what kubectl says."""
    said = NO_CONTEXT_TEXT.sub("it has no current context", reason)
    return missing(environment) or f"the kubeconfig can't be used: {said}"


def is_pod(environment: Mapping[str, str]) -> bool:
    """Return whether kubectl finds an API server without a kubeconfig, by the service account of a pod."""
    return bool(environment.get("KUBERNETES_SERVICE_HOST") and environment.get("KUBERNETES_SERVICE_PORT"))


def explained(reason: str, environment: Mapping[str, str]) -> str:
    """Return the reason of a failure, or a better one."""
    return (missing(environment) if NO_CLUSTER_TEXT.search(reason) else "") or reason
