"""How the SDK finds the lead of a MiniCluster, or another of its nodes, and waits for it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from minicluster.cluster.find import Found, find_by_name, own_name
from minicluster.cluster.hosts import Host, find_host
from minicluster.cluster.job import end_of, read_job
from minicluster.cluster.lead import Lead, code_of_work, end_with, labels_of_lead, read_lead
from minicluster.cluster.node import Node, read_node
from minicluster.cluster.wake import MANAGER, is_asleep, wake
from minicluster.cluster.without_flux import state_without_flux
from minicluster.errors import StateError
from minicluster.live.telling import end_in_words, see
from minicluster.sdk.client import WATCH, KubeClient, Object
from minicluster.sdk.exceptions import (
    ApiError,
    ArgumentError,
    ClosedError,
    EndedError,
    NotFoundError,
    WaitTimeoutError,
)
from minicluster.sdk.sdk_evidence import SdkEvidence

#: Gets the Job and the lead of a MiniCluster
Tell = Callable[[Object, Lead | None], object]


def find_job(kube: KubeClient, name: str) -> Object:
    """Return the Job of a MiniCluster, by its own name or its release's. Raises NotFoundError, ApiError."""
    job = kube.get("job", name)
    if job is None:
        other = own_name(kube, name)
        job = kube.get("job", other) if other else None
    if job is None or read_job(job) is None:
        raise NotFoundError(
            f"there is no MiniCluster {name} in {kube}: see `minicluster list -A` and give its namespace"
        )
    return job


def find_lead(kube: KubeClient, name: str) -> Lead | None:
    """Return the newest pod of index 0; None when there is none. Raises ApiError."""
    return read_lead(kube.select("pods", labels_of_lead(name)))


def find_all(kube: KubeClient, name: str) -> Found:
    """Return the objects of a MiniCluster, by its own name. Raises NotFoundError, ApiError."""
    found = find_by_name(kube, name)
    if not found:
        raise NotFoundError(f"there is no MiniCluster {name} in {kube} any more")
    return found


def host_of(kube: KubeClient, name: str, node: str) -> Host:
    """Return the host that a node's name or rank means. Raises ArgumentError, NotFoundError, ApiError."""
    try:
        return find_host(find_all(kube, name), node)
    except StateError as error:
        raise ArgumentError(f"node={node!r}: {error}") from None


def find_node(kube: KubeClient, host: Host) -> Node | None:
    """Return the newest pod of a host; None when there is none. Raises ApiError."""
    return read_node(kube.select("pods", host.labels), host.group, host.index)


def nodes(kube: KubeClient, host: Host) -> Iterator[Node]:
    """Yield the pod of a host at once, and whenever it may have changed. Raises EndedError at the end of its Job."""
    for job in kube.job_changes(host.job, None):
        end = end_of(host.job, job)
        if end:
            raise EndedError(f"{host} in {kube} has ended: {': '.join(filter(None, end))}")
        node = find_node(kube, host)
        if node:
            yield node


def ranks_of(kube: KubeClient, name: str, group: str) -> range:
    """Return the ranks that a group may have, "" for the cluster's own. Raises ArgumentError when there is none."""
    job = read_job(find_job(kube, name))
    most = {"": job.max_size or 0, **job.groups} if job else {}
    if group not in most:
        there = f"there are {', '.join(filter(None, most))}" if len(most) > 1 else "it has none"
        raise ArgumentError(f"group={group!r}: {name} has no such group: {there}")
    first = sum(most[each] for each in list(most)[: list(most).index(group)])
    return range(first, first + most[group])


class JobOf:
    """The Job of a MiniCluster, for `wake`. Each method raises ApiError."""

    def __init__(self, kube: KubeClient, name: str) -> None:
        """Send no request yet."""
        self._kube, self._name = kube, name

    def get(self) -> Object:
        """Return the Job; an empty map when there is none."""
        return self._kube.get("job", self._name) or {}

    def patch(self, change: Mapping[str, Any]) -> Object | None:
        """Merge a change into the Job; None when it was changed meanwhile."""
        try:
            return self._kube.patch_job(self._name, change, MANAGER)
        except ApiError as error:
            if error.status == 409:
                return None
            raise


def leads(  # noqa: PLR0913 - names that its callers have
    kube: KubeClient,
    name: str,
    seconds: float | None,
    stop: threading.Event | None = None,
    *,
    wakes: bool = False,
    tell: Tell | None = None,
    every: float = WATCH,
) -> Iterator[Lead]:
    """Yield the lead at once, and whenever it may have changed, while the MiniCluster lives.

    With ``wakes`` a MiniCluster that was suspended because it was idle is resumed. ``tell`` gets its Job and its lead,
    unless the lead is ready, also without a change ``every`` so many seconds.
    Raises EndedError at its end, WaitTimeoutError when the seconds are over, ClosedError when ``stop`` is set.
    """
    job, lead = {}, None  # type: Object, Lead | None
    try:
        for job in kube.job_changes(name, seconds, stop, every):
            lead = find_lead(kube, name)
            end = end_in_words(SdkEvidence(kube), name, job, lead)
            if end:
                raise EndedError(f"{name} in {kube} has ended: {': '.join(filter(None, end))}")
            if wakes and is_asleep(job):
                _wake(kube, name)
            if tell and not (lead and lead.is_ready):
                tell(job, lead)
            if lead:
                yield lead
    except WaitTimeoutError as error:
        raise WaitTimeoutError(": ".join(filter(None, (str(error), _state(kube, name, job, lead))))) from None
    raise ClosedError(f"{name} was closed")


def _state(kube: KubeClient, name: str, job: Object, lead: Lead | None) -> str:
    """Return the state of a MiniCluster, and why, as far as Kubernetes tells it; "" if its lead has to be asked."""
    if not job or (lead and lead.is_ready):
        return ""
    try:
        known = state_without_flux(see(SdkEvidence(kube), name, job, lead), datetime.now(UTC))
    except ApiError:
        known = None
    return ": ".join(filter(None, known or ()))


def wait_for(
    kube: KubeClient,
    name: str,
    until: Literal["quorum", "end"],
    seconds: float | None,
    tell: Tell | None,
) -> int | None:
    """Return None at the quorum, and at the end the exit code of the work. To reach the quorum it wakes.

    Raises WaitTimeoutError; EndedError when there is no exit code.
    """
    try:
        for lead in leads(kube, name, seconds, wakes=until == "quorum", tell=tell):
            if until == "quorum" and lead.is_ready:
                return None
    except EndedError:
        # the lead's pod may be seen as ended only now
        last = find_lead(kube, name)
        end = end_with(name, kube.get("job", name) or {}, last)
        code = code_of_work(end[0], last) if end else None
        if code is None:
            raise
        return code
    return None


def _wake(kube: KubeClient, name: str) -> None:
    try:
        wake(JobOf(kube, name))
    except StateError as error:
        raise ApiError(f"{name} in {kube}: {error}") from None
