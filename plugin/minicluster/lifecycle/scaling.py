"""Changes the size of a MiniCluster: by Helm, or by a request to its autoscaler."""

import time
from collections.abc import Callable
from typing import Any

from minicluster.cluster.find import LiveCluster
from minicluster.cluster.job import end_of, policy_of, release_of
from minicluster.cluster.lead import Lead
from minicluster.cluster.pods import GroupNodes
from minicluster.console import streams
from minicluster.console.messages import counted
from minicluster.console.terminal import Progress, Share, ok
from minicluster.errors import ChoiceError, DeadlineError, EndError, KubernetesError, MiniClusterError, ToolError
from minicluster.kube.outage import RETRY_SECONDS
from minicluster.kube.port import KubePort, Object
from minicluster.lead.ask import SILENCE_SECONDS, BrokenError, Message, SilentError, ask, talk
from minicluster.lifecycle import leaving
from minicluster.release.revisions import check_own_chart, is_made_anew, resize
from minicluster.status.document import status_of
from minicluster.status.lookup import Cluster, find, refusals, refuse_forbidden
from minicluster.waiting.ready import find_ready_lead
from minicluster.waiting.wait import ready_lead


def scale(  # noqa: PLR0913, PLR0917 - one has a name each
    kubernetes: KubePort,
    name: str,
    size: int | None,
    group: str,
    seconds: float | None,
    say: streams.Say,
    *,
    agree: streams.Agree = leaving.agree_to_all,
) -> None:
    """Change the size, or that of a group. With ``seconds`` wait until the nodes are in Flux.

    A size of None leaves it to the autoscaler; the group "" is the cluster's own nodes.
    A smaller size tells which jobs end with the nodes that go. ``agree`` asks before anything changes.
    Raises ChoiceError for what this MiniCluster can't have, EndError, DeadlineError, AccessError, StatusError;
    ToolError when Helm or the chart refuses.
    """
    its_cluster = find(kubernetes, name)
    cluster = Cluster(kubernetes, its_cluster.name)
    with refusals():
        job = cluster.read_job()
        policy = policy_of(kubernetes.get("configmap", f"{its_cluster.name}-config"), group)
    if end := end_of(its_cluster.name, job):
        raise EndError(f"{its_cluster.name} has ended, so it has no size: {': '.join(filter(None, end))}")
    nodes = _nodes(its_cluster, job, group)
    if its_cluster.job and its_cluster.job.lead_address and seconds is not None:
        raise ChoiceError(f"{its_cluster.name} is a burst, and the Flux of its root has its nodes: leave out the wait")
    if policy:
        _ask(kubernetes, its_cluster.name, size, group, policy, say=say, agree=agree)
    elif size is None:
        what = f"the size of {group}" if group else "its size"
        raise ChoiceError(f"{its_cluster.name} has no autoscaler that could choose {what}: give a number")
    else:
        _refuse_size(its_cluster.name, job, nodes, size)
        release = release_of(job)
        check_own_chart(kubernetes, release)
        is_lost = size < nodes.size and _tell_jobs(cluster, job, nodes, size, say)
        agree(f"Scale {its_cluster.name} to {size}?", "jobs" if is_lost else "nothing")
        what = f"{its_cluster.name} in namespace {job['metadata']['namespace']}{f', group {group}' if group else ''}"
        with streams.waiting():
            say(Progress(f"{what}: size {nodes.size} -> {size}", is_quiet=True))
            resize(kubernetes, release, size, group, say)
            _end_with_release(cluster, job, release)
        say(f"{what}: size {nodes.size} -> {size}")
    if size is not None and seconds is not None:
        # an autoscaler may have added more nodes
        most = nodes.max_size or size
        question = {"key": "", "online": [size, most], "first": nodes.first, "more": bool(policy)}
        with streams.waiting():
            _wait(cluster, question, seconds, _NodeTeller(its_cluster.name, size, say), say)


def _nodes(its_cluster: LiveCluster, job: Object, group: str) -> GroupNodes:
    """Return a group, or the cluster's own nodes. Raises ChoiceError when there is no such group."""
    own = GroupNodes(
        "", job["spec"]["completions"], 0, (its_cluster.job and its_cluster.job.max_size) or 0, its_cluster.pods
    )
    by_name = {each.name: each for each in (own, *its_cluster.groups)}
    if group not in by_name:
        names = ", ".join(each.name for each in its_cluster.groups)
        raise ChoiceError(
            f"{its_cluster.name} has no group {group}: {f'there are {names}' if names else 'it has none'}"
        )
    return by_name[group]


def _refuse_size(name: str, job: Object, nodes: GroupNodes, size: int) -> None:
    """Raise ToolError for a size that the chart would refuse, which takes Helm seconds to find."""
    if nodes.max_size and size > nodes.max_size:
        which = f"the maxSize of the group {nodes.name}" if nodes.name else f"the maxSize of {name}"
        if leaving.keeps_queue(job):
            change = "" if nodes.name else f" --set maxSize={size}"
            way = f"`minicluster replace {name}{change}` makes its Job anew with a larger one and keeps the queue"
        else:
            way = f"uninstall {release_of(job)} first, which loses its queue, or install under another name"
        raise ToolError(f"the size {size} is above {which}, {nodes.max_size}: lower it, or {way}")


def _tell_jobs(cluster: Cluster, job: Object, nodes: GroupNodes, size: int, say: streams.Say) -> bool:
    """Say what happens to jobs on the nodes that go; return whether there may be any."""
    with refusals():
        lead = cluster.read_lead()
    ranks = f"{nodes.first + size}-{nodes.first + nodes.size - 1}"
    going = leaving.find_affected(cluster.kubernetes, lead, leaving.on_stop(job), ranks)
    return leaving.tell(cluster.name, going, "the nodes that go", leaving.of_pods(job), say)


def _end_with_release(cluster: Cluster, job: Object, release: str) -> None:
    """Raise EndError if somebody uninstalled the release meanwhile, and remove what Helm then made anew.

    An upgrade that has begun makes what it doesn't find: after a `helm uninstall` beside it the release would be back.
    """
    with refusals():
        now = cluster.read_job()
    if now and now["metadata"].get("uid") == job["metadata"].get("uid"):
        return
    if not now or is_made_anew(cluster.kubernetes, release):
        if now:
            cluster.kubernetes.helm("uninstall", release)
        raise EndError(f"{release} was uninstalled meanwhile, so {cluster.name} has no size")


def _ask(  # noqa: PLR0913 - one has a name each
    kubernetes: KubePort,
    name: str,
    size: int | None,
    group: str,
    policy: dict[str, Any],
    *,
    say: streams.Say,
    agree: streams.Agree,
) -> None:
    """Ask the autoscaler for a size, or for that of a group. Raises ChoiceError when it refuses."""
    prefix = f"{group}=" if group else ""
    itself = f"{name} sizes its group {group}" if group else f"{name} sizes itself"
    limits = f"from {policy['min']} to {policy['max']}"
    if size is not None and size > policy["max"]:
        raise ChoiceError(f"{itself}: {size} is over the maximum of {policy['max']}")
    agree(
        f"Ask the autoscaler of {group or name} for {'its own size' if size is None else f'at least {size} nodes'}?",
        "nothing",
    )
    lead = find_ready_lead(kubernetes, name, say)
    words = (f"{lead.home}/bin/minicluster-scale", prefix + ("auto" if size is None else str(size)))
    try:
        with refusals():
            ask(kubernetes, lead.pod, "size", words)
    except SilentError as error:
        raise ChoiceError(f"{name} sizes itself: {error.reason.removeprefix('minicluster-scale: ')}") from None
    if size is None:
        say(f"{itself} {limits}, by its queue alone")
    else:
        withdraw = f"`minicluster scale {name} {prefix}auto` withdraws that"
        say(f"{itself} {limits}: asked it for at least {size} nodes; {withdraw}")


class _NodeTeller:
    """Says how many nodes are up, when that has changed."""

    def __init__(self, name: str, wanted: int, say: streams.Say) -> None:
        self._name, self._wanted, self._say = name, wanted, say
        self._told: int | None = None

    def __call__(self, up: int) -> None:
        if up == self._told:
            return
        self._told, text = up, f"{self._name}: {counted(up, 'node')} up"
        self._say(ok(text) if up == self._wanted else Progress(text, "", Share(up, max(up, self._wanted))))


def _wait(cluster: Cluster, question: Message, seconds: float, tell: Callable[[int], None], say: streams.Say) -> None:
    """Wait until the nodes are in Flux, even if the lead is replaced. Raises DeadlineError."""
    name, end = cluster.name, time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if left <= 0:
            why = _lacking(cluster) or "see its status"
            raise DeadlineError(f"{name} has its new size, but not all of its nodes within {seconds:g} s: {why}")
        lead = ready_lead(cluster.within(left), say)
        if _watch(cluster.kubernetes, lead, question, end, tell):
            return
        time.sleep(RETRY_SECONDS)  # the lead's pod may be about to end


def _lacking(cluster: Cluster) -> str:
    """Return which nodes are not there, and why, in words; "" if nobody knows."""
    try:
        missing = status_of(cluster.kubernetes, cluster.name)["missing"]
    except MiniClusterError:
        return ""
    return "; ".join(f"{each['ranks']}: {each['reason']}" for each in missing or ())


def _watch(kubernetes: KubePort, lead: Lead, question: Message, end: float, tell: Callable[[int], None]) -> bool:
    """Ask which brokers are online; return whether the wanted ones were within the time. Raises AccessError."""
    try:
        with talk(kubernetes, lead, "remote") as conversation:
            while (left := end - time.monotonic()) > 0:
                for reply in conversation.replies(seconds=min(left, SILENCE_SECONDS)):
                    if "ready" in reply:
                        conversation.say([question])
                    elif "up" in reply:
                        tell(reply["up"])
                    elif "online" in reply:
                        return True
    except BrokenError:
        return False
    except KubernetesError as error:
        refuse_forbidden(error)
    return False
