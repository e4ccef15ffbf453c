"""Rendered manifests for a repository: one file an object, and no Secret."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from minicluster import yamlio
from minicluster.errors import ManifestError
from minicluster.render import defaults, upgrade
from minicluster.render.stream import split

#: The chart's record, on a Job, of what can't change while that Job exists: a flat map as JSON.
FROZEN = "minicluster/frozen"


@dataclass(frozen=True)
class Manifest:
    """An object, and its text without the marker before it."""

    kind: str
    name: str
    text: bytes
    document: Mapping[str, Any]

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"{self.kind}-{self.name}.yaml".lower()


def manifests(stream: bytes) -> Iterator[Manifest]:
    """Yield the objects of a rendered stream. Raises ManifestError for what has no kind and name.

    Helm 3 and 4 differ in the white space at the end of a document, so that goes.
    """
    for chunk in split(stream):
        text = re.sub(rb"\A---[ \t]*\r?\n", b"", chunk).strip() + b"\n"
        document = _read(text, "what Helm made of the chart")
        if document is not None:
            yield Manifest(_text(document, "kind"), _text(document, "metadata", "name"), text, document)


def joined(objects: Sequence[Manifest]) -> bytes:
    """Return the objects as one stream, what pods mount before the pods."""
    ordered = sorted(objects, key=lambda one: one.kind not in ("ConfigMap", "Secret"))
    return b"".join(b"---\n" + one.text for one in ordered)


def vanishing(objects: Sequence[Manifest]) -> str | None:
    """Return what is wrong with a Job that removes itself when it has ended: what applies it, makes it anew."""
    for one in objects:
        if one.kind == "Job" and "ttlSecondsAfterFinished" in _map(one.document, "spec"):
            return f"the Job {one.name} goes when it has ended, and a sync makes and runs it again: drop cleanup"
    return None


def impossible(objects: Sequence[Manifest], folder: Path) -> Iterator[str]:
    """Yield what has changed since a folder was written and can't on a Job that is there."""
    unset = dict(upgrade.flat(defaults.values()))
    for one in objects:
        path = folder / one.file
        if one.kind == "Job" and path.is_file():
            before = _read(path.read_bytes(), path)
            old = _frozen(before)
            found = list(upgrade.changes(old, _frozen(one.document), unset)) if old else []
            for key, was, now in found:
                change = f"{key} can't change on a live Job {one.name}, was {was}, is {now}"
                yield f"{change}: delete the Job, or undo it"
            if not found and upgrade.immutable(before) != upgrade.immutable(one.document):
                charts = f"{_chart(one.document)} makes other pods than {_chart(before)}"
                yield f"{charts}, and a live Job {one.name} can't: delete the Job, or render with its own version"


def write(objects: Sequence[Manifest], folder: Path, release: str) -> None:
    """Make a folder hold these objects of a release, a file each, and no longer those that it once had.

    The first line of a file says which release it is of. Another's, or the user's own, is never touched.
    Raises ManifestError, with nothing written, for a Secret, for a file of others, or two objects of one name.
    """
    mark = f"# {release}, by `minicluster template`: change its values, not this file\n".encode()
    files: dict[Path, bytes] = {}
    for one in objects:
        path = folder / one.file
        if one.kind == "Secret":
            raise ManifestError(
                f"the Secret {one.name} would be in {folder} in plain text: set flux.curveCertSecret to a Secret that "
                "`minicluster keygen` makes once, or leave out --output-dir and pipe the manifests to kubectl"
            )
        if path in files:
            raise ManifestError(f"two objects would be in {path}: rename one, or leave out --output-dir")
        if path.exists() and not _has(path, mark):
            raise ManifestError(f"{path} is not of {release}: move it, or give another --output-dir")
        files[path] = mark + one.text
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.yaml"):
        if path not in files and _has(path, mark):
            path.unlink()
    for path, text in files.items():
        path.write_bytes(text)


def _has(path: Path, mark: bytes) -> bool:
    return path.is_file() and path.read_bytes().startswith(mark)


def _text(document: Any, *path: str) -> str:
    """Return a text in a document that can be in a file's name. Raises ManifestError when there is none."""
    value = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][\w.:-]*", value):
        raise ManifestError(f"an object's {'.'.join(path)} is {value!r}: mend the chart's template")
    return value


def _read(text: bytes, where: object) -> Any:
    """Return a document. Raises ManifestError when it is not YAML."""
    try:
        return yamlio.load(text)
    except yaml.YAMLError as error:
        raise ManifestError(f"{where} is not YAML: {yamlio.problem(error)}") from None


def _map(document: Any, *path: str) -> Mapping[str, Any]:
    """Return the map at a place in a document; an empty one when there is none."""
    value = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _frozen(job: Any) -> dict[str, Any]:
    """Return the record; an empty one where somebody else has written there."""
    try:
        record = json.loads(_map(job, "metadata", "annotations").get(FROZEN, "{}"))
    except (TypeError, ValueError):
        record = {}
    return record if isinstance(record, dict) else {}


def _chart(job: Any) -> Any:
    return _map(job, "metadata", "labels").get("helm.sh/chart")
