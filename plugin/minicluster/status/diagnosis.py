"""What a MiniCluster lacks, as its status says it: why nodes are missing, the quorum does not come, jobs wait."""

from collections.abc import Iterable, Iterator, Mapping

from minicluster.cluster.groups import GroupNodes
from minicluster.cluster.pods import Pod
from minicluster.cluster.troubles import explained, way_out
from minicluster.flux import to_idset
from minicluster.status.snapshot import StatusSnapshot

#: What the lead says of a group that jobs wait for (pod/queue/unmet.py)
NONE_UP = "the group {} has no node up"
#: How the lead begins to say that a node stays out (pod/queue/state.py)
CHECK_FAILED = "its check failed: "
#: How a node begins to say that it takes no jobs until memory is free that is no job's (pod/queue/state.py)
MEMORY_SHORT = "its memory is short: "
#: Seconds after which a broker should have joined
LATE_SECONDS = 60


def why_missing(pod: Pod | None, why_no_pod: str, drained: str | None = None) -> str:
    """Return why a node is missing: its pod, or why it has none. ``drained`` is the reason of its rank's drain."""
    if pod is None:
        return explained("no pod", "", why_no_pod)
    if pod.is_cut_off:
        return f"{pod.state}: its Kubernetes node {pod.node} gives no sign of life"
    if pod.state != "Running":
        return pod.why
    # the drain may be that of an earlier pod: then this one joins, or fails, in a moment
    return drained if drained and drained.startswith(CHECK_FAILED) else f"{pod.state}: its node is not in Flux"


def held_up(groups: Iterable[GroupNodes], missing: Mapping[int, str], snapshot: StatusSnapshot) -> str:
    """Return why the quorum does not come, "" while it may still come by itself."""
    pods = {each.first + index: pod for each in groups for index, pod in each.pods.items()}
    ways = {rank: pod.way_out for rank, pod in pods.items()}
    lacking = {each.first + index: each.why_no_pod for each in groups for index in range(each.size)}
    ways |= {rank: way_out("", why) for rank, why in lacking.items() if rank not in pods}
    stuck = [rank for rank in missing if ways[rank]]
    if stuck:
        # what Kubernetes says of each may change to and fro
        same = _alike(stuck, ways)
        one, several = ("is", "are") if stuck[0] in pods else ("has", "have")
        return f": {to_idset(same)} {several if len(same) > 1 else one} {missing[same[0]]}"
    unfit = [rank for rank, why in missing.items() if why.startswith(CHECK_FAILED)]
    if unfit:
        same = _alike(unfit, missing)
        return f": {to_idset(same)} {'stay' if len(same) > 1 else 'stays'} out: {missing[same[0]]}"
    late = [rank for rank in missing if rank > 0 and rank in pods and _is_late(pods[rank], snapshot)]
    if not late:
        return ""
    which = f"`minicluster logs {snapshot.name} --node {late[0]}`"
    return (
        f": {to_idset(late)} {'run' if len(late) > 1 else 'runs'} and can't join: {which} says why, or a NetworkPolicy "
        "closes the brokers' port, by default 8050"
    )


def _alike(ranks: list[int], why: Mapping[int, str]) -> list[int]:
    """Return the first rank, and the others of which the same is said."""
    return [rank for rank in ranks if why[rank] == why[ranks[0]]]


def _is_late(pod: Pod, snapshot: StatusSnapshot) -> bool:
    """Return whether a pod runs, and its broker had enough time to join."""
    # its image may have taken minutes
    since = pod.started or pod.created
    return pod.state == "Running" and (snapshot.now - since).total_seconds() > LATE_SECONDS


def of_no_nodes(
    reason: str, name: str, groups: Iterable[GroupNodes], limits: Mapping[str, dict[str, int] | None]
) -> str:
    """Return why jobs wait, with the way out where it is a group without nodes that nobody scales."""
    for group in groups:
        said = NONE_UP.format(group.name)
        if not group.size and not limits.get(group.name) and said in reason:
            empty = f"the group {group.name} has no nodes: `minicluster scale {name} {group.name}=SIZE` adds some"
            return reason.replace(said, empty)
    return reason


def too_many(name: str, groups: Iterable[GroupNodes]) -> Iterator[str]:
    """Yield a problem for each group with more pods than hosts that Flux knows."""
    for group in groups:
        if group.size > group.max_size > 0:
            what = f"the size of {group.name}" if group.name else "the size"
            way = f"{group.name}={group.max_size}" if group.name else str(group.max_size)
            yield (
                f"{what} is {group.size}, and maxSize {group.max_size}: pods beyond maxSize can't join: "
                f"`minicluster scale {name} {way}` removes them"
            )
