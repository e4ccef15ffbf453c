"""The programs of the pods: this version's, and those of a live release, which the chart hands over."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from minicluster import pod
from minicluster.errors import SpecError
from minicluster.render.upgrade import NOT_OF_BROKERS

Files = Mapping[str, str]
#: Lines that are a comment alone, with the end of the line before them. It reads all programs within half a millisecond
COMMENTS = re.compile(r"\n(?:[ \t]*#[^\n]*\n)+")


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
    return {name: text for name, text in _all().items() if name not in NOT_OF_BROKERS}


@cache
def of_others() -> Files:
    """Return the programs of other pods, which are new with each upgrade. Every cluster has its own."""
    return {name: text for name, text in _all().items() if name in NOT_OF_BROKERS}


@cache
def _all() -> Files:
    return {name: shipped(file.read_text(encoding="utf-8")) for name, file in pod.programs().items()}


def shipped(text: str) -> str:
    r"""Return a program as a ConfigMap has it: without lines that are a comment alone.

    `kubectl apply` keeps all of an object in an annotation too, and annotations have 256 KiB at most.

    >>> shipped("#!/bin/sh\n# one\n  # two\n\n# three\necho '# four' # five\n")
    "#!/bin/sh\n\necho '# four' # five\n"
    """
    return COMMENTS.sub("\n", text)
