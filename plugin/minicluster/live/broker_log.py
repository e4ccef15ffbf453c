"""The log of a node's broker, which is in files of its pod (pod/start/broker.sh)."""

from minicluster.cluster.hosts import Host
from minicluster.cluster.pods import FIND_TOOLS
from minicluster.errors import StateError
from minicluster.lead.ask import SilentError, ask
from minicluster.live.lookup import Cluster, refusals
from minicluster.live.running import absence

#: Prints the files, the older one first. Takes the folder of Flux
PRINT_FILES = (
    f'{FIND_TOOLS}for file in broker.log.old broker.log; do cat "$0/config/run/$file" 2>/dev/null || true; done'
)


def read(cluster: Cluster, host: Host) -> str:
    """Return what the broker of a host has logged in its pod.

    Raises StateError when the pod can't be asked, or has no such file.
    """
    with refusals():
        node = cluster.read_node(host)
        if node is None or not node.is_running:
            job = cluster.kubernetes.get("job", host.job)
            why = absence(cluster.kubernetes, host, job, node)[0] if job else f"{host} has no pod"
            raise StateError(f"the log of its broker can't be read: {why}")
        try:
            found = ask(cluster.kubernetes, node.pod, "log of a broker", ("/bin/sh", "-c", PRINT_FILES, node.home))
        except SilentError as error:
            raise StateError(f"the log of its broker can't be read: {error.reason}") from None
    if not found:
        raise StateError(f"{host} has no file of its broker's log: the log has what the broker says")
    return found
