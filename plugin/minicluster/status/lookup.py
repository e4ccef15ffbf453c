"""Finds a MiniCluster, once; then its Job and its lead are read whenever they may have changed."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

from minicluster.cluster import find as by_name
from minicluster.cluster.job import read_job
from minicluster.cluster.lead import Lead, Node, read_lead, read_node
from minicluster.cluster.pods import Pod, labels_of_pods
from minicluster.cluster.without_flux import state_of_silent_lead, state_without_flux
from minicluster.errors import AbsentError, AccessError, KubernetesError, StateError, StatusError
from minicluster.kube.outage import is_of_outage
from minicluster.kube.port import KubePort, Object
from minicluster.lead.ask import SilentError
from minicluster.render.constants import GROUP_LABEL

Reply = TypeVar("Reply")

NEEDED_RIGHTS = "this needs `get` and `list` of pods and `create` of pods/exec: ask for a Role that has them"
CHECK = "check KUBECONFIG, --context and --namespace"
GOES_ON = "jobs go on without the API server: try again, or check KUBECONFIG and --context"
LOG_IN = "log in to the cluster again, or check KUBECONFIG and --context"
#: What kubectl says when the user's credentials can't be had, or count no more
LOGGED_OUT = re.compile(r"getting credentials: |You must be logged in to the server|\(Unauthorized\)")


@dataclass(frozen=True)
class Cluster:
    """A MiniCluster in a namespace."""

    kubernetes: KubePort
    name: str  #: its own

    def within(self, seconds: float | None) -> "Cluster":
        """Return the same with a deadline, in that many seconds; None sets none."""
        return replace(self, kubernetes=self.kubernetes.within(seconds))

    def read_job(self) -> Object:
        """Return its Job as it is; an empty map when there is none. Raises KubernetesError."""
        return self.kubernetes.get("job", self.name)

    def read_node(self, host: by_name.Host) -> Node | None:
        """Return the newest pod of one of its hosts as it is; None when there is none. Raises KubernetesError."""
        return read_node(self.kubernetes.select("pods", host.labels), host.group, host.index)

    def read_lead(self) -> Lead | None:
        """Return the newest pod of index 0 as it is; None when there is none. Raises KubernetesError."""
        return read_lead(self.kubernetes.select("pods", labels_of_pods(self.name, 0)))


def find(kubernetes: KubePort, name: str) -> by_name.LiveCluster:
    """Return the objects of a MiniCluster, by its own name or its release's. Raises StatusError."""
    live, names = search(kubernetes, name)
    if not live:
        raise absent(kubernetes, name, names)
    return live


def find_only(kubernetes: KubePort, option: str) -> str:
    """Return the name of the namespace's one MiniCluster; ``option`` chooses one. Raises StatusError."""
    with refusals(NEEDED_RIGHTS):
        jobs = kubernetes.select("jobs", f"{by_name.MADE_BY_CHART},!{GROUP_LABEL}")["items"]
    names = sorted(job["metadata"]["name"] for job in jobs)
    if len(names) != 1:
        known = f"{len(names)} MiniClusters: {', '.join(names)}" if names else "no MiniCluster"
        way = f"choose one by {option}" if names else f"`minicluster create` makes one; {CHECK}"
        raise StatusError(f"{kubernetes} has {known}; {way}")
    return str(names[0])


def search(kubernetes: KubePort, name: str) -> tuple[by_name.LiveCluster | None, set[str]]:
    """Return the same, or None and the names that there are. Raises StatusError."""
    with refusals(NEEDED_RIGHTS):
        return by_name.search(kubernetes, name)


def absent(kubernetes: KubePort, name: str, names: set[str]) -> AbsentError:
    """Return the error for a name that is none of those that there are. Raises StatusError without such a namespace."""
    import difflib  # noqa: PLC0415 - milliseconds that only errors need

    if not names:
        check_namespace(kubernetes)
    near = difflib.get_close_matches(name, names)
    meant = f"did you mean {' or '.join(near)}?" if near else "see `minicluster list -A` and give its -n"
    return AbsentError(f"there is no MiniCluster {name} in {kubernetes}: {meant}")


def find_job(kubernetes: KubePort, name: str) -> Object:
    """Return the Job of a MiniCluster, by its own name or its release's. Raises StatusError."""
    cluster = find(kubernetes, name)
    with refusals():
        job = kubernetes.get("job", cluster.name)
    if not (job and read_job(job)):
        raise AbsentError(f"there is no Job of MiniCluster {name} in {kubernetes}: see `minicluster status {name}`")
    return job


def check_namespace(kubernetes: KubePort) -> None:
    """Raise StatusError if there is no such namespace; most users may not ask, and then nobody says it."""
    if not kubernetes.namespace:
        return
    with suppress(KubernetesError):
        if not kubernetes.get("namespace", kubernetes.namespace):
            raise StatusError(f"there is no namespace {kubernetes.namespace}: `minicluster list -A` shows MiniClusters")


def find_cluster(kubernetes: KubePort, name: str) -> Cluster:
    """Return a MiniCluster, by its own name or its release's. Raises StatusError."""
    return Cluster(kubernetes, find(kubernetes, name).name)


class Unasked(NamedTuple):
    """A MiniCluster whose lead can't be asked, and its state and the reason for that."""

    name: str
    state: tuple[str, str]

    def error(self, way: str) -> StateError:
        """Return the error for it; ``way`` is what to do instead."""
        return StateError(f"{self.name} is {': '.join(filter(None, self.state))}; {way}")


def ask_lead(cluster: by_name.LiveCluster, question: Callable[[Pod], Reply]) -> Reply | Unasked:
    """Return what a MiniCluster's lead answers; ``question`` asks it, and may raise SilentError. Raises AccessError."""
    state = state_without_flux(cluster, datetime.now(UTC))
    if state is None:
        lead = cluster.pods[0]
        try:
            with refusals():
                return question(lead)
        except SilentError as error:
            state = state_of_silent_lead(lead, error.reason)
    return Unasked(cluster.name, state)


@contextmanager
def refusals(needs: str = "ask for a Role that allows it") -> Iterator[None]:
    """Give an error of Kubernetes the way out; ``needs`` is that of a refusal. Raises AccessError."""
    try:
        yield
    except KubernetesError as error:
        raise AccessError(error, _way_out(error, needs)) from None


def refuse_forbidden(error: KubernetesError) -> None:
    """Raise AccessError for what this user may not do; other errors are the caller's."""
    if error.is_forbidden:
        with refusals():
            raise error


def _way_out(error: KubernetesError, needs: str) -> str:
    if error.is_forbidden:
        return needs
    if LOGGED_OUT.search(error.reason):
        return LOG_IN
    return GOES_ON if is_of_outage(error.reason) else CHECK
