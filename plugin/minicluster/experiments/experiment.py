"""What a matrix runs at one size: the values, and the words that submit the command as a job of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from minicluster.errors import SpecError
from minicluster.release import oneshot
from minicluster.release.oneshot import Oneshot
from minicluster.render import constants


@dataclass(frozen=True)
class Experiment:
    """The runs of one size."""

    asked: Oneshot  #: of its MiniCluster, which runs no command itself
    values: dict[str, Any]  #: all values of a run, with the command; without a certificate
    words: Sequence[str]  #: of `flux submit`

    @property
    def given(self) -> dict[str, Any]:
        """The values that are not the chart's defaults."""
        return constants.differing_from_defaults(self.values, constants.default_values())

    @property
    def size(self) -> int:
        """The nodes of each run."""
        return int(self.values["size"])


def plan(asked: Oneshot, size: int) -> Experiment:
    """Return what runs at a size; the name of its release ends with the size.

    Raises SpecError for values that are refused, or make more than one job; ToolError.
    """
    one = replace(asked, name=f"{asked.name}-{size}", nodes=size)
    cluster, values, words = oneshot.job_of(one, "a matrix")
    if cluster.size != size:
        raise SpecError(f"the values set size to {cluster.size}, and a matrix has its own sizes: drop it from --set")
    values["flux"]["curveCert"] = ""
    return Experiment(replace(one, is_idle=True), values, words)
