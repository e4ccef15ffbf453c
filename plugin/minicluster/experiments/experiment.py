"""What a matrix runs at one size: the values, and the words that submit the command as a job of its own."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from minicluster.errors import SpecError
from minicluster.kube.names import REQUEUE_ATTRIBUTE
from minicluster.release import oneshot
from minicluster.release.oneshot import Oneshot
from minicluster.render import constants, work
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel


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
    # the time may be another one when the matrix goes on
    document = oneshot.resolve(replace(one, seconds=None))
    values: dict[str, Any] = json.loads(document["spec"])
    cluster = load(document)
    problem = next(_problems(cluster, size), None)
    if problem:
        raise SpecError(problem)
    values["flux"]["curveCert"] = ""
    # a copy of a run that lost its node would run beside the next one
    once = [f"--setattr={REQUEUE_ATTRIBUTE}=0"] if cluster.spec["pod"]["onStop"] == "requeue" else []
    words = [*work.flags(cluster), *once, *_command(cluster)]
    return Experiment(replace(one, is_idle=True), values, words)


def _problems(cluster: MiniClusterModel, size: int) -> Iterator[str]:
    """Yield what is not one job of this size."""
    runner, tasks = cluster.runner, int(cluster.spec["tasks"])
    commands = runner.get("commands", {})
    others = {name: runner.get(name) for name in ("batch", "launcher", "diagnostics")}
    others |= {f"commands.{name}": commands.get(name) for name in ("script", "prefix")}
    for name, value in others.items():
        if value:
            yield f"the values have {name}, and a matrix submits a command by itself: drop {name}"
    if cluster.size != size:
        yield f"the values set size to {cluster.size}, and a matrix has its own sizes: drop it from --set"
    if not work.flags(cluster):
        yield f"flux.submitCommand is {cluster.flux['submitCommand']!r}, and a matrix has its own: drop it"
    flag = work.only_submit(cluster.flux["optionFlags"])
    if flag:
        yield f"flux.optionFlags has {flag}, and a run of a matrix is one job: drop it"
    if why := oneshot.too_few_tasks(tasks, cluster.all_size):
        yield why


def _command(cluster: MiniClusterModel) -> list[str]:
    """Return the words of the command; a text is one for a shell."""
    command = cluster.runner["command"]
    return list(command) if isinstance(command, list) else ["sh", "-c", command]
