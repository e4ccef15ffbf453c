"""A release for one run of a command: its name, its values, its install and its removal."""

import json
import math
import secrets
import string
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from minicluster.errors import SpecError, ToolError
from minicluster.kube.names import REQUEUE_ATTRIBUTE
from minicluster.kube.port import KubePort
from minicluster.release import helm
from minicluster.release.options import (
    ReleaseOptions,
    Runner,
    document,
    find_runner,
    node_values,
    of_container,
    run_install,
    set_words,
    words_of_install,
)
from minicluster.render import constants, work
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel

#: Label of the release, by which no other release is removed in its place
RUN_LABEL = "minicluster-run"
#: Seconds by which the Job's deadline is later than ours: it is for a client that was killed, and takes the log away
SLACK_SECONDS = 10
LETTERS = string.ascii_lowercase + string.digits
#: The log has only what the work prints, unless the user's values say otherwise
QUIET = {"quiet": True}


def made_up_name() -> str:
    """Return a name for a release that most likely no other has."""
    return "run-" + "".join(secrets.choice(LETTERS) for _ in range(5))


@dataclass(frozen=True)
class Oneshot(ReleaseOptions):
    """What is asked of a run; None and "" leave a value as the chart or the user's values have it."""

    name: str = ""  #: "" makes one up
    command: Sequence[str] = ()  #: the exact words
    tasks: int | None = None  #: 0: one on each node, as without them if there are nodes and the values have no tasks
    seconds: float | None = None  #: for all of it
    is_idle: bool = False  #: whether the MiniCluster leaves its command out, for clients that submit it
    key: str = field(default_factory=lambda: uuid.uuid4().hex)  #: of this run alone
    is_made_up: bool = field(init=False, default=False)  #: whether no other release has its name, or will have it soon

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", made_up_name())
            object.__setattr__(self, "is_made_up", True)


def cluster_values(asked: Oneshot) -> dict[str, Any]:
    """Return the values that are not of a container, by their paths. Raises SpecError for nodes without a task."""
    if why := too_few_tasks(asked.tasks or 0, asked.nodes or 0):
        raise SpecError(why)
    seconds = None if asked.seconds is None else math.ceil(asked.seconds) + SLACK_SECONDS
    values = {"size": asked.nodes, "tasks": asked.tasks, "deadlineSeconds": seconds}
    # a Job that is removed as soon as it has ended takes the exit code with it
    return {"cleanup": False, **{path: value for path, value in values.items() if value is not None}}


def too_few_tasks(tasks: int, nodes: int) -> str:
    """Return why a job over all nodes can't have this number of tasks, "" if it can; 0 is one on each node."""
    if not 0 < tasks < nodes:
        return ""
    return f"{tasks} tasks are fewer than the {nodes} nodes: ask for at least {nodes}, or 0 for one on each node"


def runner_values(asked: Oneshot, index: int) -> dict[str, Any]:
    """Return the values of the runner, which is a container of an index, by their paths."""
    return of_container(index, {**node_values(asked), "command": list(asked.command)})


def planned(asked: Oneshot) -> tuple[str, list[str]]:
    """Return the name of the MiniCluster, and the words by which Helm installs its release, without a cluster.

    Raises ToolError for values and names that Helm refuses, SpecError when there is nothing to run.
    """
    helm.check_name(asked.name)
    for word in asked.command:
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise SpecError(f"the word {word!r} of the command is not UTF-8, and values are: put it into a file")
    runner = _runner(asked)
    words = _value_words(asked, runner)
    return runner.cluster, words_of_install(asked, words, "--labels", f"{RUN_LABEL}={asked.key}")


def resolve(asked: Oneshot) -> dict[str, Any]:
    """Return the hand-over document of the release, without a cluster. Raises ToolError, SpecError."""
    release = helm.OfflineRelease(asked.name, "default", _value_words(asked, _runner(asked)))
    return document(helm.template(release, helm.values_text(_base(asked))))


class SingleJob(NamedTuple):
    """The work of a release as one job."""

    size: int  #: of the MiniCluster
    values: dict[str, Any]  #: all of the release, without a certificate
    words: list[str]  #: of `flux submit`

    @property
    def given(self) -> dict[str, Any]:
        """The values that are not the chart's defaults."""
        return constants.differing_from_defaults(self.values, constants.default_values())


def job_of(asked: Oneshot, by: str) -> SingleJob:
    """Return the work as one job, which ``by`` submits.

    Raises SpecError for values that are refused, or make more than one job; ToolError.
    """
    # the time may be another one when a matrix goes on
    resolved = resolve(replace(asked, seconds=None))
    values: dict[str, Any] = json.loads(resolved["spec"])
    cluster = load(resolved)
    if problem := next(_problems(cluster, by), None):
        raise SpecError(problem)
    # a copy of a run that lost its node would run beside the next one
    once = [f"--setattr={REQUEUE_ATTRIBUTE}=0"] if cluster.spec["pod"]["onStop"] == "requeue" else []
    command = cluster.runner["command"]
    words = list(command) if isinstance(command, list) else ["sh", "-c", command]
    values["flux"]["curveCert"] = ""
    return SingleJob(cluster.size, values, [*work.flags(cluster), *once, *words])


def _problems(cluster: MiniClusterModel, by: str) -> Iterator[str]:
    """Yield what is not one job."""
    runner = cluster.runner
    commands = runner.get("commands", {})
    others = {name: runner.get(name) for name in ("batch", "launcher", "diagnostics")}
    others |= {f"commands.{name}": commands.get(name) for name in ("script", "prefix")}
    for name, value in others.items():
        if value:
            yield f"the values have {name}, and {by} submits a command by itself: drop {name}"
    if not work.flags(cluster):
        yield f"flux.submitCommand is {cluster.flux['submitCommand']!r}, and {by} has its own: drop it"
    if flag := work.only_submit(cluster.flux["optionFlags"]):
        yield f"flux.optionFlags has {flag}, and a run of {by} is one job: drop it"
    if why := too_few_tasks(int(cluster.spec["tasks"]), cluster.all_size):
        yield why


def install(kubernetes: KubePort, asked: Oneshot, words: Sequence[str]) -> None:
    """Install the release. Raises ToolError, after which a part of it may be there."""
    run_install(kubernetes, words, _base(asked))


def is_there(kubernetes: KubePort, asked: Oneshot) -> bool:
    """Return whether this run has a release, even one that was not fully installed. Raises ToolError.

    A release of its name may be from before: then the install was refused.
    """
    states = ("--deployed", "--failed", "--pending", "--uninstalling")
    return bool(kubernetes.helm("list", "--short", *states, f"--selector={RUN_LABEL}={asked.key}").split())


def remove(kubernetes: KubePort, asked: Oneshot, *, waits: bool = True) -> None:
    """Remove the release, with ``waits`` to the end of its pods.

    Raises ToolError, unless someone else has removed it meanwhile.
    """
    try:
        if waits:
            helm.uninstall(kubernetes, asked.name, helm.REMOVAL_SECONDS)
        else:
            helm.let_go(kubernetes, asked.name)
    except ToolError:
        if is_there(kubernetes, asked):
            raise


def _base(asked: Oneshot) -> dict[str, Any]:
    logging = asked.values.get("logging") or {}
    # the chart refuses what is no map
    both = {**QUIET, **logging} if isinstance(logging, Mapping) else logging
    # one on each node, as `flux run -N` and `srun -N` have it
    tasks = {} if asked.nodes is None else {"tasks": 0}
    return {**tasks, **asked.values, "logging": both}


def _value_words(asked: Oneshot, runner: Runner) -> list[str]:
    index = runner.number
    own = {**runner.usual, **cluster_values(asked), **runner_values(asked, index)}
    # the one option that overrides the user's --set
    idle = [f"--set-string=containers[{index}].command="] if asked.is_idle else []
    return ["--values", "-", *asked.given, *set_words(own), *idle]


def _runner(asked: Oneshot) -> Runner:
    """Return the runner in the user's values. Raises SpecError when there is nothing to run."""
    container = find_runner(asked, cluster_values(asked))
    runner = container.container
    has_work = runner.get("command") or (runner.get("commands") or {}).get("script") or runner.get("diagnostics")
    if not asked.command and not has_work:
        raise SpecError(f"{asked.name} has nothing to run: give a command after --, or values with one")
    return container
