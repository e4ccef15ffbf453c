"""The programs of the pods: this version's, and those of a live release, which the chart hands over."""

import base64
import binascii
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from minicluster import pod
from minicluster.errors import SpecError
from minicluster.render.upgrade import NOT_OF_BROKERS

Files = Mapping[str, str]


class Programs(NamedTuple):
    """The ConfigMap with the programs of a Job's pods."""

    name: str  #: "" for the cluster's own
    version: str
    files: Files  #: those of the live ConfigMap; one document of a release has them


def load(found: object) -> list[Programs]:
    """Return what a hand-over document says of the programs. Raises SpecError for what the chart didn't write."""
    try:
        return [_read(one) for one in list(found)] if isinstance(found, list) else _read_none(found)
    except (binascii.Error, ValueError, KeyError, TypeError, AttributeError):
        raise SpecError("programs is not what the chart writes: leave it out") from None


def _read(one: Mapping[str, Any]) -> Programs:
    files = json.loads(base64.b64decode(one["files"], validate=True)) if "files" in one else {}
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
