"""The programs of the pods: this version's, and those of a live release, which the chart hands over."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from minicluster import pod
from minicluster.render import handed
from minicluster.render.upgrade import NOT_OF_BROKERS

Files = Mapping[str, str]


class Programs(NamedTuple):
    """The ConfigMap with the programs of a Job's pods."""

    name: str  #: "" for the cluster's own
    version: str
    files: Files  #: those of the live ConfigMap; one document of a release has them


def load(found: object) -> list[Programs]:
    """Return what a hand-over document says of the programs. Raises SpecError for what the chart didn't write."""
    with handed.by_the_chart("programs"):
        return [_read(one) for one in list(found)] if isinstance(found, list) else _read_none(found)


def _read(one: Mapping[str, Any]) -> Programs:
    files = handed.read(one["files"]) if "files" in one else {}
    return Programs(str(one["name"]), str(one["version"]), {str(key): str(text) for key, text in files.items()})


def _read_none(found: object) -> list[Programs]:
    if found is not None:
        raise TypeError
    return []


@cache
def of_brokers() -> Files:
    """Return the programs of the brokers' pods and services by file name."""
    return {name: text for name, text in pod.shipped().items() if name not in NOT_OF_BROKERS}


@cache
def of_others() -> Files:
    """Return the programs of other pods, which are new with each upgrade. Every cluster has its own."""
    return {name: text for name, text in pod.shipped().items() if name in NOT_OF_BROKERS}
