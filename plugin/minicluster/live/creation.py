"""Creates a MiniCluster that stays, and waits for its quorum."""

from dataclasses import replace

from minicluster.errors import DeadlineError, EndError, KubernetesError, StateError
from minicluster.kube.port import KubePort
from minicluster.live.lookup import find_cluster, refusals
from minicluster.live.start_watch import StartWatch
from minicluster.live.telling import ended
from minicluster.live.wait import is_ready, look_for
from minicluster.release import created
from minicluster.release.created import Created
from minicluster.release.storage import find_class
from minicluster.streams import Say
from minicluster.terminal import well

#: The Role that the agent needs (templates/agent/role.yaml)
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"generateName": "minicluster-"},
    "rules": [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
    ],
}


def with_storage(kubernetes: KubePort, asked: Created) -> Created:
    """Return what is asked, with what its storage class offers. Raises UsageError, StateError, AccessError."""
    created.check(asked)
    if not asked.keep:
        return asked
    with refusals():
        found = find_class(kubernetes, asked.keep.storage_class, f"--keep {asked.keep.capacity}@CLASS")
    if not (found and found.is_of_one_node and max(asked.nodes or 1, asked.most or 1) > 1):
        return asked
    return replace(asked, keep=asked.keep._replace(of_one_node=f"{found.name} ({found.provisioner})"))


def _check_role(kubernetes: KubePort, asked: Created) -> None:
    """Raise StateError if this user may not give the autoscaler's agent its rights: Helm would leave half a release."""
    if not asked.autoscales or asked.files or any("rbac" in text for text in asked.sets):
        return
    try:
        kubernetes.made(ROLE)
    except KubernetesError as error:
        if error.is_forbidden:
            raise StateError(
                "--autoscale needs the right to create Roles, which the ClusterRole edit has not: ask for admin in "
                f"this namespace, or leave it out and change the size by `minicluster scale {asked.name} SIZE`"
            ) from None


def remark(asked: Created) -> str:
    """Return what a person has to know of the nodes that share a volume; "" for nothing."""
    keep = asked.keep
    if not (keep and keep.of_one_node):
        return ""
    return (
        f"the storage class {keep.of_one_node} has volumes for one Kubernetes node at a time, so all pods of "
        f"{asked.name} run on one; --keep {keep.capacity}@CLASS takes a class for several nodes (ReadWriteMany)"
    )


def create(kubernetes: KubePort, asked: Created, seconds: float | None, say: Say, show: Say) -> None:
    """Install a MiniCluster, and give ``show`` the command of Helm; with ``seconds`` wait for the quorum.

    After the install the MiniCluster stays. Raises ToolError, StateError for a refusal; EndError, DeadlineError.
    """
    _check_role(kubernetes, asked)
    show(created.install(kubernetes, asked))
    if text := remark(asked):
        say(text)
    if seconds is None:
        return
    cluster = find_cluster(kubernetes, asked.name)
    stays = f"the release stays: `minicluster delete {asked.name}` removes it"
    try:
        end, lead = look_for(cluster.within(seconds), is_ready, say, StartWatch(cluster.name))
    except (EndError, DeadlineError) as error:
        raise type(error)(f"{error}; {stays}") from None
    except KeyboardInterrupt:
        say(stays)
        raise
    if end:
        raise EndError(ended(cluster.name, end, lead))
    say(well(f"{cluster.name}: Running: `minicluster status {cluster.name}` shows it"))
