"""Changes the size of a MiniCluster: by Helm, or by a request to its autoscaler."""

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from minicluster.cluster.job import end_of, policy_of, read_job, release_of
from minicluster.cluster.lead import Lead
from minicluster.errors import StateError
from minicluster.kubectl import CommandError, Kubernetes
from minicluster.lead.conversation import SILENCE, BrokenError, Conversation, Message
from minicluster.lead.program import BOOT, remote
from minicluster.live.lookup import Cluster, find, find_cluster, refusals
from minicluster.live.ready import find_ready_lead
from minicluster.live.wait import wait
from minicluster.live.watch import RETRY
from minicluster.release.resize import resize

Say = Callable[[str], None]


def scale_group(
    kubernetes: Kubernetes, name: str, asked: tuple[str, int | None], seconds: float | None, say: Say
) -> None:
    """Change a group to a size; None leaves it to the autoscaler. With ``seconds`` wait until its nodes are in Flux.

    Raises StateError, StatusError; ToolError when Helm or the chart refuses.
    """
    group, size = asked
    found = find(kubernetes, name)
    names = [each.name for each in found.groups]
    if group not in names:
        there = f"there are {', '.join(names)}" if names else "it has none"
        raise StateError(f"{found.name} has no group {group}: {there}")
    cluster = Cluster(kubernetes, found.name)
    with refusals():
        job = cluster.read_job()
        policy = policy_of(kubernetes.get("configmap", f"{found.name}-config"), group)
    _refuse_end(found.name, job)
    one = found.groups[names.index(group)]
    if policy:
        _ask(kubernetes, found.name, asked, policy, say)
    elif size is None:
        raise StateError(f"{found.name} has no autoscaler that could choose the size of {group}: give a number")
    else:
        resize(kubernetes, release_of(job), size, group)
        say(f"{found.name}, group {group}: size {one.size} -> {size}")
    if size is not None and seconds is not None:
        question = {"key": "", "online": [size, one.max_size], "first": one.first, "more": bool(policy)}
        _wait(cluster, question, seconds, say)


def scale(kubernetes: Kubernetes, name: str, size: int | None, seconds: float | None, say: Say) -> None:
    """Change the size; None leaves it to the autoscaler. With ``seconds`` wait until the nodes are in Flux.

    Raises StateError, StatusError; ToolError when Helm or the chart refuses.
    """
    cluster = find_cluster(kubernetes, name)
    name = cluster.name
    with refusals():
        job = cluster.read_job()
        policy = policy_of(kubernetes.get("configmap", f"{name}-config"))
    _refuse_end(name, job)
    found = read_job(job)
    if found and found.lead_address and seconds is not None:
        raise StateError(f"{name} joins another cluster, whose Flux has its nodes: leave out --wait")
    if policy:
        _ask(kubernetes, name, ("", size), policy, say)
    elif size is None:
        raise StateError(f"{name} has no autoscaler that could choose its size: give a number")
    else:
        was = job["spec"]["completions"]
        resize(kubernetes, release_of(job), size)
        say(f"{name}: size {was} -> {size}")
    if size is not None and seconds is not None:
        most = found.max_size if found else size
        # an autoscaler may have added more nodes
        _wait(cluster, {"key": "", "online": [size, most], "more": bool(policy)}, seconds, say)


def _refuse_end(name: str, job: dict[str, Any]) -> None:
    """Raise StateError for a MiniCluster that has ended."""
    end = end_of(name, job)
    if end:
        raise StateError(f"{name} has ended, so it has no size: {': '.join(filter(None, end))}")


def _ask(kubernetes: Kubernetes, name: str, asked: tuple[str, int | None], policy: dict[str, Any], say: Say) -> None:
    """Ask the autoscaler for a size, or for that of a group. Raises StateError when it refuses."""
    group, size = asked
    prefix = f"{group}=" if group else ""
    lead = find_ready_lead(kubernetes, name, say)
    words = (f"{lead.home}/bin/minicluster-scale", prefix + ("auto" if size is None else str(size)))
    try:
        kubernetes.kubectl(*lead.pod.exec_words(), *words)
    except CommandError as error:
        raise StateError(f"{name} sizes itself: {error.reason.removeprefix('minicluster-scale: ')}") from None
    itself = f"{name} sizes its group {group}" if group else f"{name} sizes itself"
    limits = f"from {policy['min']} to {policy['max']}"
    if size is None:
        say(f"{itself} {limits}, by its queue alone")
    else:
        withdraw = f"`minicluster scale {name} {prefix}auto` withdraws that"
        say(f"{itself} {limits}: asked it for at least {size} nodes; {withdraw}")


def _wait(cluster: Cluster, question: Message, seconds: float, say: Say) -> None:
    """Wait until the nodes are in Flux, even if the lead is replaced. Raises StateError when the seconds are over."""
    name, end = cluster.name, time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if left <= 0:
            raise StateError(f"{name} has its new size, but not all of its nodes within {seconds:g} s: see its status")
        code = wait(cluster.within(left), "quorum", say)
        if code:
            raise StateError(f"{name} has ended with exit code {code}")
        lead = find_ready_lead(cluster.kubernetes, name, say)
        if _watch(cluster.kubernetes, lead, question, end, lambda up: say(f"{name}: {up} nodes up")):
            return
        time.sleep(RETRY)  # the lead's pod may be about to end


def _watch(kubernetes: Kubernetes, lead: Lead, question: Message, end: float, tell: Callable[[int], None]) -> bool:
    """Ask which brokers are online; return whether the wanted ones were within the time."""
    words = (*lead.pod.exec_words("--stdin"), *lead.flux_words("python", "-c", BOOT))
    with closing(kubernetes.stream(*words, has_input=True)) as stream:
        conversation = Conversation(stream, remote())
        try:
            while (left := end - time.monotonic()) > 0:
                for reply in conversation.replies(seconds=min(left, SILENCE)):
                    if "ready" in reply:
                        conversation.say([question])
                    elif "up" in reply:
                        tell(reply["up"])
                    elif "online" in reply:
                        return True
        except BrokenError:
            error = stream.error()
            if error and error.is_forbidden:
                with refusals():
                    raise error from None
    return False
