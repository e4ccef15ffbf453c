"""Options that the SDK's `create` and `run` share."""

from collections.abc import Mapping
from typing import TypedDict

from minicluster.sdk.exceptions import ArgumentError


class NodeOptions(TypedDict, total=False):
    """What the nodes are; what is not given is as in the values."""

    image: str
    nodes: int
    cpu: str  #: of each node, a quantity: its request and its limit
    memory: str  #: of each node, a quantity: its request and its limit
    gpus: int  #: of each node: a limit of nvidia.com/gpu


def refuse_unknown(what: str, options: Mapping[str, object], known: type) -> None:
    """Raise ArgumentError for an option that a TypedDict does not have."""
    names = known.__annotations__
    if unknown := [name for name in options if name not in names]:
        raise ArgumentError(f"{unknown[0]} is not an option of {what}: there are {', '.join(names)}")
