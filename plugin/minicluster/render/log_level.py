"""Where the log of a pod's broker is: on standard error, or in a file of the pod."""

from minicluster.render.model import MiniClusterModel


def attributes(cluster: MiniClusterModel, *, to_file: bool) -> dict[str, object]:
    """Return the attributes of a broker's log on standard error; ``to_file`` if a file has what is not there."""
    own: int | None = cluster.flux["logLevel"]
    # errors, or information, as syslog(3) counts
    level = own if own is not None else 3 if to_file else 6
    return {"log-stderr-mode": "local", "log-stderr-level": 0 if cluster.spec["logging"]["quiet"] else level}


def has_file(cluster: MiniClusterModel) -> bool:
    """Say whether a file has the log of a pod's broker: what the values want on stderr is no log."""
    logging = cluster.spec["logging"]
    return bool(logging["quiet"] or (cluster.flux["logLevel"] is None and not logging["debug"]))
