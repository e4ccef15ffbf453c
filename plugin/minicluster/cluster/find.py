"""How a MiniCluster is found, by its own name or its release's, and its hosts, by the names that people give them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from minicluster.cluster.job import KubernetesJob, job_of_pods, read_deleted_job, read_job, read_names
from minicluster.cluster.pods import GroupNodes, Pod, labels_of_pods, read_groups, read_pods
from minicluster.errors import ChoiceError, KubernetesError, StatusError
from minicluster.kube.names import LABEL
from minicluster.kube.port import KubePort, Object
from minicluster.render.constants import GROUP_LABEL

#: Label selector of what the chart makes
MADE_BY_CHART = "app.kubernetes.io/name=minicluster"


class LiveCluster(NamedTuple):
    """The objects that were found of a MiniCluster."""

    name: str  #: its own
    pods: dict[int, Pod]  #: by index
    job: KubernetesJob | None  #: also when only its pods or its ConfigMap are left; None: the user may not read jobs
    groups: Sequence[GroupNodes] = ()


def search(kube: KubePort, name: str) -> tuple[LiveCluster | None, set[str]]:
    """Return a MiniCluster, by its own name or its release's; when there is none, also the names that there are.

    Raises StatusError for what can't be a name, KubernetesError.
    """
    check_name(name)
    if live := find_by_name(kube, name):
        return live, set()
    lists = [_readable(kube.select, kind, MADE_BY_CHART) for kind in ("jobs", "configmaps")]
    there = dict(pair for objects in lists if objects for pair in read_names(objects))
    other = next((own for own, release in there.items() if release == name), None)
    return find_by_name(kube, other) if other else None, {*there, *there.values()}


def check_name(name: str) -> None:
    """Raise StatusError for what can't be a MiniCluster's name, such as a selector of more than one."""
    if not re.fullmatch(LABEL, name):
        raise StatusError(f"{name!r} is not a MiniCluster's name: give the release's name, of a-z, 0-9 and -")


def find_by_name(kube: KubePort, name: str, known: Object | None = None) -> LiveCluster | None:
    """Return a MiniCluster by its own name; None when there is none. Raises KubernetesError.

    ``known`` is its Job, if that was read.
    """
    items = kube.select("pods", broker_pods(name))
    job = known or _readable(kube.get, "job", name)
    its = read_job(job) if job else None
    if its and its.cluster != name:  # the Job was renamed after the rendering, and its pods' labels were not
        items = kube.select("pods", broker_pods(its.cluster))
    return live_cluster(kube, name, job, items)


def live_cluster(kube: KubePort, name: str, its_job: Object | None, items: Object) -> LiveCluster | None:
    """Return a MiniCluster by its Job, {} when there is none, and its brokers' pods. Raises KubernetesError.

    None when there is neither; the Job is None for a user who may not read it.
    """
    pods = read_pods(items)
    if its_job:
        job = read_job(its_job)
    elif pods:
        # found is None when the user may not read jobs
        job = job_of_pods(pods) if its_job is not None else None
    else:
        config = _readable(kube.get, "configmap", f"{name}-config")
        job = read_deleted_job(config) if config else None
    if not (job and job.groups):
        return LiveCluster(name, pods, job) if pods or job else None
    jobs = _readable(kube.select, "jobs", f"app.kubernetes.io/instance={name},{GROUP_LABEL}")
    return LiveCluster(name, pods, job, list(read_groups(job.groups, job.max_size or 0, jobs, items)))


def broker_pods(name: str) -> str:
    """Return the label selector of a MiniCluster's brokers."""
    return f"app.kubernetes.io/instance={name},app.kubernetes.io/component=broker"


def _readable(ask: Callable[[str, str], Object], kind: str, which: str) -> Object | None:
    """Return what is there, an empty map for nothing; None when the user may not read it. Raises KubernetesError."""
    try:
        return ask(kind, which)
    except KubernetesError as error:
        if error.is_forbidden:
            return None
        raise


@dataclass(frozen=True)
class Host:
    """A host of a MiniCluster, whether it has a pod or not."""

    job: str  #: name of the Job that makes its pods
    group: str  #: "" for the cluster's own
    index: int

    @property
    def is_lead(self) -> bool:
        """Whether its pod is the lead."""
        return not self.group and self.index == 0

    @property
    def labels(self) -> str:
        """Label selector of its pods."""
        return labels_of_pods(self.job, self.index)

    def scaled(self, size: int) -> str:
        """Return the words by which `minicluster scale` gives it a size: NAME SIZE, or NAME GROUP=SIZE."""
        return f"{self.job.removesuffix(f'-{self.group}')} {self.group}={size}" if self.group else f"{self.job} {size}"

    def __str__(self) -> str:
        return f"{self.job}-{self.index}"


def lead_of(name: str) -> Host:
    """Return the host of a MiniCluster's lead."""
    return Host(name, "", 0)


def find_host(cluster: LiveCluster, text: str) -> Host:
    """Return the host that is meant by a rank, or by its name with or without that of the MiniCluster.

    Raises ChoiceError when there is none.
    """
    most = (cluster.job.max_size if cluster.job else None) or max(cluster.pods, default=0) + 1
    groups = [GroupNodes("", most, 0, most, cluster.pods), *cluster.groups]
    jobs = {each.name: f"{cluster.name}-{each.name}" if each.name else cluster.name for each in groups}
    # where both are a host's, the whole name counts
    by_stem = {each.name: each for each in groups if each.name} | {jobs[each.name]: each for each in groups}
    stem, dash, number = text.rpartition("-")
    if re.fullmatch("0|[1-9][0-9]{0,8}", number):
        near = groups if not dash else [by_stem[stem]] if stem in by_stem else []
        for group in near:
            index = int(number) - (0 if dash else group.first)
            if 0 <= index < group.max_size:
                return Host(jobs[group.name], group.name, index)
    there = ", ".join(_range(each.name, each.max_size) for each in groups)
    unknown = "" if cluster.job else "; those of groups are unknown, because this user may not read its Job"
    raise ChoiceError(f"{cluster.name} has no node {text}: there are {there}{unknown}")


def _range(group: str, count: int) -> str:
    begin = f"{group}-" if group else ""
    return f"{begin}0" if count == 1 else f"{begin}0 to {begin}{count - 1}"
