"""Several bursts that follow the queue of one root, until they are told to end."""

import signal
from collections.abc import Sequence
from typing import Any, NamedTuple

from minicluster.burst import plan
from minicluster.burst.demand import Demand, Offer
from minicluster.burst.follower import BurstLimits, Follower
from minicluster.burst.install import How
from minicluster.burst.root import BurstRequest
from minicluster.console import streams
from minicluster.console.signals import handled, join
from minicluster.errors import BurstError
from minicluster.kube.kubectl import Kubernetes
from minicluster.render.model import MiniClusterModel
from minicluster.render.refusals.bursts import BurstSpec, problems

#: Signals that end it; the second one ends it at once.
END_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class FollowRequest(NamedTuple):
    """The bursts that follow the queue, and how."""

    root: MiniClusterModel
    kubernetes: Kubernetes  #: of the root
    bursts: Sequence[tuple[BurstSpec, Kubernetes]]  #: each with the place where it runs; the preferred ones first
    how: How
    backlog: float  #: seconds
    idle: float


def check(request: FollowRequest) -> list[tuple[BurstRequest, BurstLimits]]:
    """Return the bursts and their limits. Raises BurstError if they are impossible."""
    _check_contexts([request.kubernetes, *(target for _, target in request.bursts)])
    troubles = []
    for wanted, target in request.bursts:
        burst = plan.find(request.root, wanted.name)
        if not burst.is_release:
            raise BurstError(f"{wanted.name} is of flux.bursting.hostlist: no release can follow the queue there")
        policy = BurstLimits(wanted.min, wanted.most(burst.size), request.backlog, request.idle)
        troubles.append((BurstRequest(request.root, request.kubernetes, burst, target), policy))
    registered = {one.burst.name: one.burst.size for one, _ in troubles}
    for problem in problems([wanted for wanted, _ in request.bursts], registered):
        raise BurstError(f"there is {problem}")
    return troubles


def _check_contexts(places: Sequence[Kubernetes]) -> None:
    named = {place.context for place in places} - {""}
    if not named:
        return
    known = Kubernetes().kubectl("config", "get-contexts", "--output=name").split("\n")
    unknown = sorted(named - set(known))
    if unknown:
        raise BurstError(
            f"the kubeconfig has no context {unknown[0]}: it has {', '.join(filter(None, known)) or 'none'}"
        )


def follow(request: FollowRequest) -> None:
    """Let the bursts follow the queue until a signal comes. Raises MiniClusterError when the root has ended."""
    troubles = check(request)
    offers = {one.burst.name: Offer(one.burst.first, one.burst.size) for one, _ in troubles}
    demand = Demand(request.root, request.kubernetes, offers)
    followers = [Follower(one, policy, request.how, demand) for one, policy in troubles]
    for one, policy in troubles:
        streams.say(f"{one.burst.name} follows the queue in {one.target}: {policy.min} to {policy.max} hosts")

    def end(*_: Any) -> None:
        if demand.stopped.is_set():
            raise KeyboardInterrupt
        streams.say("ending: what has begun is finished first")
        demand.stop()

    with handled(END_SIGNALS, end):
        threads = [demand.thread, *(follower.thread for follower in followers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            join(thread)
    if demand.error:
        raise demand.error
    streams.say("ended: the bursts stay as they are")
