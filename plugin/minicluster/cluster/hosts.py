"""The hosts of a MiniCluster by the names that people give them: each has a place in a Job."""

import re
from dataclasses import dataclass

from minicluster.cluster.find import Found
from minicluster.cluster.groups import GroupNodes
from minicluster.cluster.pods import labels_of_pods
from minicluster.errors import ChoiceError


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


def find_host(found: Found, text: str) -> Host:
    """Return the host that is meant by a rank, or by its name with or without that of the MiniCluster.

    Raises ChoiceError when there is none.
    """
    most = (found.job.max_size if found.job else None) or max(found.pods, default=0) + 1
    groups = [GroupNodes("", most, 0, most, found.pods), *found.groups]
    jobs = {each.name: f"{found.name}-{each.name}" if each.name else found.name for each in groups}
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
    unknown = "" if found.job else "; those of groups are unknown, because this user may not read its Job"
    raise ChoiceError(f"{found.name} has no node {text}: there are {there}{unknown}")


def _range(group: str, count: int) -> str:
    begin = f"{group}-" if group else ""
    return f"{begin}0" if count == 1 else f"{begin}0 to {begin}{count - 1}"
