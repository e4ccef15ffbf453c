"""Rendered manifests, as a stream, or as files for a repository: one for each object, and no Secret."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from minicluster.console import streams
from minicluster.convert import each_object, is_list
from minicluster.documents import map_at, value_at, yamlio
from minicluster.errors import ManifestError
from minicluster.release import adopt, helm
from minicluster.release.caller import Caller
from minicluster.render import constants, postrender, upgrade
from minicluster.render.stream import split

#: The hook of Helm by which a sync of Argo CD makes Jobs anew (`upgrade.replace`)
REPLACES = "pre-upgrade"


@dataclass(frozen=True)
class Manifest:
    """An object, or a list of objects that has no name; and its text without the marker before it.

    An object whose name the API server makes has the beginning of it, as hooks have with `generateName`.
    """

    kind: str
    name: str
    text: bytes
    document: Mapping[str, Any]

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"{self.kind}-{self.name}.yaml".lower()


def render(release: helm.OfflineRelease, seed: bytes | None) -> list[Manifest]:
    """Return the objects of a release; new certificates come from the seed. Raises MiniClusterError."""
    caller = Caller(release=release.name, environment={"HELM_NAMESPACE": release.namespace}, version=release.version)
    say = streams.say_once()
    data = adopt.adopt(helm.template(release), caller, say)
    return list(parse(postrender.render(data, seed, allow_random=False, say=say)))


def parse(stream: bytes) -> Iterator[Manifest]:
    """Yield the objects of a rendered stream. Raises ManifestError for one without a kind or a name.

    White space at the end of a document is removed, because it differs between Helm 3 and 4.
    """
    for chunk in split(stream):
        text = re.sub(rb"\A---[ \t]*\r?\n", b"", chunk).strip() + b"\n"
        document = _read(text, "Helm's output")
        if document is not None:
            yield _manifest(document, text)


def _manifest(document: Any, text: bytes) -> Manifest:
    return Manifest(_text(document, "kind"), "" if is_list(document) else _name(document), text, document)


def _name(document: Any) -> str:
    """Return the name of an object, or what it begins with, if the API server ends it. Raises ManifestError."""
    metadata = map_at(document, "metadata")
    is_generated = not metadata.get("name") and metadata.get("generateName")
    return _text(document, "metadata", "generateName" if is_generated else "name")


def _apart(given: Iterable[Manifest]) -> Iterator[Manifest]:
    """Yield the objects, also those in lists. Raises ManifestError for one without a kind or a name."""
    for one in given:
        if is_list(one.document):
            items = (item for item in each_object(one.document) if item is not None)
            yield from (_manifest(item, yamlio.dump(item, marker=False)) for item in items)
        else:
            yield one


def join(objects: Sequence[Manifest]) -> bytes:
    """Return the objects as one stream; the objects that pods mount come first."""
    ordered = sorted(objects, key=lambda one: one.kind not in ("ConfigMap", "Secret"))
    return b"".join(b"---\n" + one.text for one in ordered)


def self_removing_job(objects: Sequence[Manifest]) -> str | None:
    """Return the problem of a Job that is removed when it has ended, which the next sync creates again; else None."""
    for one in _apart(objects):
        if one.kind == "Job" and "ttlSecondsAfterFinished" in map_at(one.document, "spec"):
            return f"the Job {one.name} is removed when it has ended, and the next sync runs it again: drop cleanup"
    return None


def immutable_changes(objects: Sequence[Manifest], folder: Path) -> Iterator[str]:
    """Yield what has changed since a folder was written and is immutable on a live Job, which no hook makes anew."""
    objects = list(_apart(objects))
    if any(REPLACES in str(map_at(one.document, "metadata", "annotations").get(adopt.HOOK)) for one in objects):
        return
    unset = dict(upgrade.flat(constants.default_values()))
    for one in objects:
        path = folder / one.file
        if one.kind == "Job" and path.is_file():
            before = _read(path.read_bytes(), path)
            old = _immutable(before)
            changes = list(upgrade.changes(old, _immutable(one.document), unset)) if old else []
            for key, was, now in changes:
                yield (f"{key} can't change on a live Job {one.name}, was {was}, is {now}: delete the Job, or undo it")
            if not changes and upgrade.immutable_fields(before) != upgrade.immutable_fields(one.document):
                yield (
                    f"{_chart(one.document)} makes other pods than {_chart(before)}, and the pods of a live Job "
                    f"{one.name} can't change: delete the Job, or render with {_chart(before)}"
                )


def write(objects: Sequence[Manifest], folder: Path, release: str) -> None:
    """Write the objects of a release into a folder, a file each, and remove the files of objects that are gone.

    The first line of a file names its release. Files of other releases, and of the user's own, are never touched.
    Raises ManifestError, with nothing written, for a Secret, for a file in the way, or for two objects of one name.
    """
    mark = f"# {release}, by `minicluster template`: change its values, not this file\n".encode()
    files: dict[Path, bytes] = {}
    namespaces: dict[Path, object] = {}
    for one in _apart(objects):
        namespace = map_at(one.document, "metadata").get("namespace")
        path = folder / one.file
        if namespaces.setdefault(path, namespace) != namespace:
            # such as the programs of a release whose MiniClusters are in two namespaces
            path = folder / f"{_text(one.document, 'metadata', 'namespace')}-{one.file}"
        if one.kind == "Secret":
            raise ManifestError(
                f"the Secret {one.name} would be in {folder} in plain text: set flux.curveCertSecret to a Secret that "
                "`minicluster keygen` makes once, or leave out --output-dir and pipe the manifests to kubectl"
            )
        if path in files:
            raise ManifestError(f"two objects would be in {path}: rename one, or leave out --output-dir")
        if path.exists() and not _has(path, mark):
            raise ManifestError(f"{path} is not a file of {release}: move it, or give another --output-dir")
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
    """Return the string at a path in a document. Raises ManifestError when there is none, or none for a file's name."""
    value = value_at(document, *path)
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][\w.:-]*", value):
        raise ManifestError(f"an object's {'.'.join(path)} is {value!r}: fix the chart's template")
    return value


def _read(text: bytes, where: object) -> Any:
    """Return a document. Raises ManifestError when it is not YAML."""
    try:
        return yamlio.load(text, duplicates=True)  # Helm takes them
    except yaml.YAMLError as error:
        raise ManifestError(f"{where} {yamlio.problem(error)}") from None


def _immutable(job: Any) -> dict[str, Any]:
    """Return the chart's record; an empty one when the annotation is not the chart's."""
    try:
        record = json.loads(map_at(job, "metadata", "annotations").get(constants.IMMUTABLE, "{}"))
    except (TypeError, ValueError):
        record = {}
    return record if isinstance(record, dict) else {}


def _chart(job: Any) -> Any:
    return map_at(job, "metadata", "labels").get("helm.sh/chart")
