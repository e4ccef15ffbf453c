"""Creates a MiniCluster that stays, and waits for its quorum."""

from dataclasses import replace

from minicluster.errors import DeadlineError, EndError
from minicluster.kube.port import KubePort
from minicluster.live.lookup import find_cluster, refusals
from minicluster.live.once import StartWatch
from minicluster.live.telling import ended
from minicluster.live.wait import is_ready, look_for
from minicluster.release import created
from minicluster.release.created import Created
from minicluster.release.storage import find_class
from minicluster.streams import Say


def with_storage(kubernetes: KubePort, asked: Created, say: Say) -> Created:
    """Return what is asked, with what its storage class offers. Raises StateError, AccessError."""
    keep = asked.keep
    if not keep:
        return asked
    with refusals():
        found = find_class(kubernetes, keep.storage_class)
    if not (found and found.is_of_one_node and max(asked.nodes or 1, asked.most or 1) > 1):
        return asked
    say(
        f"the storage class {found.name} ({found.provisioner}) has volumes for one Kubernetes node at a time, so all "
        f"pods of {asked.name} run on one; --keep {keep.capacity}@CLASS takes a class for several nodes (ReadWriteMany)"
    )
    return replace(asked, keep=keep._replace(is_of_one_node=True))


def create(kubernetes: KubePort, asked: Created, seconds: float | None, say: Say, show: Say) -> None:
    """Install a MiniCluster, and give ``show`` the command of Helm; with ``seconds`` wait for the quorum.

    After the install the MiniCluster stays. Raises ToolError, StateError for a refusal; EndError, DeadlineError.
    """
    show(created.install(kubernetes, asked))
    if seconds is None:
        return
    cluster = find_cluster(kubernetes, asked.name)
    try:
        end, lead = look_for(cluster.within(seconds), is_ready, say, StartWatch(cluster.name))
    except (EndError, DeadlineError) as error:
        raise type(error)(f"{error}; the release stays: `minicluster delete {asked.name}` removes it") from None
    if end:
        raise EndError(ended(cluster.name, end, lead))
    say(f"{cluster.name} is ready: `minicluster status {cluster.name}` shows it")
