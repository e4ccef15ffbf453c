"""The SDK's calls of Helm: they install and remove a release with this package's chart and post-renderer."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from minicluster.console.streams import Say
from minicluster.kube.port import KubePort
from minicluster.sdk.exceptions import ArgumentError, ReleaseError

if TYPE_CHECKING:
    from minicluster.release.created import CreateReleaseOptions


class NodeOptions(TypedDict, total=False):
    """What the nodes are, for `MiniCluster.create` and `MiniCluster.run`; what is not given is as in the values."""

    image: str  #: of your application
    nodes: int  #: ``size`` of the values
    cpu: str  #: of each node, a quantity: its request and its limit
    memory: str  #: of each node, a quantity: its request and its limit
    gpus: int  #: of each node: a limit of nvidia.com/gpu
    files: Sequence[str]  #: values files, as Helm's ``--values`` takes them; they override ``values``
    sets: Sequence[str]  #: ``KEY=VALUE``, as Helm's ``--set`` takes it; they override all else


def refuse_unknown(what: str, options: Mapping[str, object], known: type) -> None:
    """Raise ArgumentError for an option that a TypedDict does not have."""
    names = known.__annotations__
    if unknown := [name for name in options if name not in names]:
        raise ArgumentError(f"{unknown[0]} is not an option of {what}: give one of {', '.join(names)}")


def check_size(size: int | None, group: str) -> None:
    """Raise ArgumentError for a size that a MiniCluster, or its group, can't have; None asks for none."""
    least = 0 if group else 1
    if size is not None and (not isinstance(size, int) or size < least):
        way = "" if group else "; delete() removes the MiniCluster"
        raise ArgumentError(f"size={size!r}: give a whole number, {least} or more{way}")


class CreateOptions(NodeOptions, total=False):
    """The options of `MiniCluster.create`, besides those of NodeOptions: all that ``minicluster create`` has."""

    max_nodes: int  #: that it can have later
    autoscale: bool  #: from ``nodes`` to ``max_nodes``, as the queue needs them
    idle: float  #: seconds without a job or client after which it ends; with ``autoscale`` and ``keep`` it sleeps
    keep: str  #: SIZE or SIZE@CLASS: volumes for the queue and a shared folder /data, also after the end


def asked_for(release: str, values: Mapping[str, Any], chart: str, options: CreateOptions) -> "CreateReleaseOptions":
    """Return what is asked of a MiniCluster that stays. Raises ArgumentError for an unknown option, SpecError."""
    from minicluster.release.created import CreateReleaseOptions, read_keep  # noqa: PLC0415 - who only submits jobs has no release

    refuse_unknown("create", options, CreateOptions)
    keep = read_keep(options["keep"]) if "keep" in options else None
    own: dict[str, Any] = {"most": options.get("max_nodes"), "autoscales": options.get("autoscale", False)}
    own |= {"keep": keep, "idle": options.get("idle")}
    nodes = {name: value for name, value in options.items() if name in NodeOptions.__annotations__}
    return CreateReleaseOptions(name=release, values=values, chart=chart, **own, **nodes)  # type: ignore[arg-type]


def install(kube: KubePort, asked: "CreateReleaseOptions", seconds: float | None, progress: Say) -> None:
    """Install the chart, and with ``seconds`` wait for the quorum.

    Raises ReleaseError, ToolError, StateError, UsageError; EndError, DeadlineError.
    """
    from minicluster.lifecycle.creation import create, with_storage  # noqa: PLC0415

    check_post_renderer()
    create(kube, with_storage(kube, asked), seconds, progress, progress)


def uninstall(kube: KubePort, release: str, seconds: float) -> None:
    """Remove the release, if it is there, and wait until its pods are gone. Raises ToolError."""
    from minicluster.release import helm  # noqa: PLC0415

    helm.uninstall(kube, release, seconds, "--ignore-not-found")


def check_post_renderer() -> None:
    """Raise ReleaseError when Helm would not find this package; a notebook's PATH often lacks its environment."""
    if not shutil.which("minicluster"):
        folder = Path(sys.executable).parent
        raise ReleaseError(f"Helm runs minicluster, which is not in PATH: add {folder} to PATH")
