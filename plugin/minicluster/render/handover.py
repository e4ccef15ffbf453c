"""Facts of the live release, which the chart hands over to the post-renderer: most as JSON in base64.

Each function parses one key of a hand-over document, and raises SpecError for what the chart didn't write.
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from minicluster.errors import SpecError
from minicluster.kube.names import chart_name


class Installed(NamedTuple):
    """What a live cluster was installed with, as the chart found it."""

    release: str
    was: Mapping[str, str]  #: the values that it was installed with, by path
    asked: Mapping[str, str]  #: the values of the upgrade, by path
    files: Mapping[str, str]  #: the files of its ConfigMap
    mutable: Sequence[str]  #: paths of the values that may change
    hint: str = ""  #: what the chart found about a change in place


class LiveJob(NamedTuple):
    """A live Job that stays."""

    spec: Mapping[str, Any]
    changes_in_place: bool


class Newcomer(NamedTuple):
    """A MiniCluster that has no Job, in an upgrade of a release that has others."""

    namespace: str
    name: str
    chart: str  #: the chart's name: its alias in a parent chart
    others: Mapping[str, str]  #: names of the Jobs of the release's MiniClusters, each with its chart


class Claim(NamedTuple):
    """The fields of a claim, or those that the values ask for; None and an empty list ask for nothing."""

    capacity: str
    storage_class: str | None
    access_modes: list[str]


class LiveClaim(NamedTuple):
    """A claim as the chart found it."""

    name: str
    place: str  #: in the values, e.g. ``containers[0].volumes.data`` or ``state``
    was: Claim
    asked: Claim
    deleted: bool  #: whether it was deleted; it stays until the last pod that uses it has ended


class Programs(NamedTuple):
    """The ConfigMap with the programs of a Job's pods."""

    name: str  #: "" for the cluster's own
    version: str
    files: Mapping[str, str]  #: those of the live ConfigMap; one document of a release has them


@contextmanager
def _by_the_chart(key: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SpecError(f"{key} is not what the chart writes: leave it out") from None


def _decode(text: object) -> Any:
    return json.loads(base64.b64decode(str(text), validate=True))


def installed(text: object) -> Installed | None:
    """Return what is said of the live cluster; None when there is none."""
    if not text:
        return None
    with _by_the_chart("installed"):
        fields = _decode(text)
        was, asked, files = (dict(fields[key]) for key in ("was", "asked", "files"))
        mutable = [str(path) for path in fields["mutable"]]
        return Installed(str(fields["release"]), was, asked, files, mutable, str(fields.get("hint", "")))


def live_jobs(document: Mapping[str, Any]) -> dict[tuple[str, str], LiveJob]:
    """Return what a document says of the live Jobs that stay, by namespace and name."""
    text = document.get("kept")
    if not text:
        return {}
    with _by_the_chart("kept"):
        fields = _decode(text)
        namespace, in_place = _namespace(document), fields["change"] == "place"
        return {(namespace, name): LiveJob(dict(spec), in_place) for name, spec in fields["jobs"].items()}


def newcomer(document: Mapping[str, Any]) -> Newcomer | None:
    """Return what a document says of other MiniClusters, if it is of one without a Job; else None."""
    text = document.get("others")
    if not text:
        return None
    with _by_the_chart("others"):
        fields = _decode(text)
        others = {
            str(one["name"]): chart_name(str(one["chart"]))
            for one in fields["jobs"]
            if not one["group"] and not one["deleted"]
        }
        return Newcomer(_namespace(document), str(document["metadata"]["name"]), str(fields["chart"]), others)


def claims(items: object) -> list[LiveClaim]:
    """Return the claims that exist already."""
    with _by_the_chart("claims"):
        return [_live_claim(one) for one in list(items or [])]  # type: ignore[call-overload]


def programs(items: object) -> list[Programs]:
    """Return where the Jobs find their programs."""
    with _by_the_chart("programs"):
        return [] if items is None else [_programs(one) for one in _list(items)]


def _namespace(document: Mapping[str, Any]) -> str:
    return str(document["metadata"].get("namespace") or "default")


def _live_claim(fields: Mapping[str, Any]) -> LiveClaim:
    was, asked = _claim(fields["was"]), _claim(fields["asked"])
    return LiveClaim(str(fields["name"]), str(fields["place"]), was, asked, bool(fields["deleted"]))


def _claim(fields: Mapping[str, Any]) -> Claim:
    storage_class = fields.get("storageClass")
    return Claim(
        str(fields["capacity"]),
        None if storage_class is None else str(storage_class),
        sorted(map(str, fields.get("accessModes") or [])),
    )


def _list(items: object) -> list[Any]:
    if not isinstance(items, list):
        raise TypeError
    return items


def _programs(fields: Mapping[str, Any]) -> Programs:
    files = _decode(fields["files"]) if "files" in fields else {}
    return Programs(str(fields["name"]), str(fields["version"]), {str(key): str(text) for key, text in files.items()})
