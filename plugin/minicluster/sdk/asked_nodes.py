"""What the SDK's `create` and `run` both ask of nodes, and how many nodes `scale` may ask for."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from minicluster.sdk.exceptions import ArgumentError


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
