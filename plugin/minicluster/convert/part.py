"""A map in a spec, with its path, and the report of a conversion.

Nothing is validated yet: the schema refuses wrong types later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minicluster.documents import map_at, yamlio
from minicluster.render.model import may_run_flux

Map = dict[str, Any]
#: Folder of the cluster's files in the pods, unless `flux.container.mountPath` is set
MOUNT_PATH = "/mnt/flux"


@dataclass(frozen=True)
class Part:
    """A map in a spec; paths of its methods are dotted, and begin at this map."""

    path: str  #: e.g. ``containers[0].commands``; "" for the whole spec
    fields: Map
    report: Report

    def at(self, path: str) -> Part:
        """Return the map at a path; an empty one when there is none."""
        return Part(self._join(path), map_at(self.fields, *path.split(".")), self.report)

    def make(self, key: str) -> Part:
        """Return the map under a key, and make it when there is nothing."""
        self.fields.setdefault(key, {})
        return self.at(key)

    def items(self, key: str) -> list[Part]:
        """Return the maps in the list under a key."""
        value = self.fields.get(key)
        named = enumerate(value if isinstance(value, list) else [])
        return [Part(self._join(f"{key}[{n}]"), item, self.report) for n, item in named if isinstance(item, dict)]

    def members(self, key: str) -> dict[str, Part]:
        """Return the maps in the map under a key, by their names."""
        named = self.at(key).fields.items()
        return {
            name: Part(self._join(f"{key}.{name}"), item, self.report) for name, item in named if isinstance(item, dict)
        }

    def get(self, path: str) -> Any:
        """Return the value at a path, None when there is none."""
        parent, key = self._parent(path)
        return parent.fields.get(key)

    def text(self, path: str) -> str:
        """Return the text at a path; "" when there is something else."""
        value = self.get(path)
        return value if isinstance(value, str) else ""

    def warn(self, path: str, text: str) -> None:
        """Report that a field, or this map for "", runs differently."""
        self.report.warnings.append(f"{self._join(path)} {text}")

    def note(self, path: str, text: str) -> None:
        """Report that a field was written out so that it runs as before."""
        self.report.notes.append(f"{self._join(path)}: {text}")

    def drop(self, path: str, why: str) -> None:
        """Remove a field, and report the reason when it was set to something."""
        parent, key = self._parent(path)
        if parent.fields.pop(key, None):
            self.warn(path, f"is dropped: {why}")

    def drop_zero(self, path: str) -> bool:
        """Remove a field that is 0 or an empty text, and return whether it was."""
        parent, key = self._parent(path)
        value = parent.fields.get(key)
        if value not in ("", 0) or isinstance(value, bool):
            return False
        del parent.fields[key]
        return True

    def rename(self, old: str, new: str) -> None:
        """Give a field of this map its other name, in its place, unless both are there."""
        if old not in self.fields or new in self.fields:
            return
        items = [(new if key == old else key, value) for key, value in self.fields.items()]
        self.fields.clear()
        self.fields.update(items)
        self.warn(old, f"is called {new} here")

    def _parent(self, path: str) -> tuple[Part, str]:
        parent, _, key = path.rpartition(".")
        return (self.at(parent) if parent else self), key

    def _join(self, path: str) -> str:
        return ".".join(filter(None, [self.path, path]))


def every_container(spec: Part) -> list[Part]:
    """Return the containers of the brokers' pods and of the services' pod."""
    return spec.items("containers") + spec.items("services")


def runners(spec: Part) -> list[Part]:
    """Return the container that runs Flux, or each that may: the post-renderer refuses several."""
    containers = spec.items("containers")
    return [containers[place] for place in _runners(containers)]


def sidecars(spec: Part) -> list[Part]:
    """Return the other containers of the brokers' pods."""
    containers = spec.items("containers")
    runners = _runners(containers)
    return [one for place, one in enumerate(containers) if place not in runners]


def _runners(containers: list[Part]) -> list[int]:
    return may_run_flux([container.fields for container in containers])


@dataclass
class Report:
    """What was found while a MiniCluster was converted."""

    warnings: list[str] = field(default_factory=list)  #: what runs differently, each with the path of its field
    notes: list[str] = field(
        default_factory=list
    )  #: what was written out so that it runs as before, and what needs no change


@dataclass(frozen=True)
class ValuesFile:
    """The values of a MiniCluster or an MPIJob, and what their reader must know."""

    kind: str
    name: str
    namespace: str  #: "" for none
    release: str  #: the name by which the MiniCluster can be installed
    values: dict[str, Any]
    notes: list[str]
    warnings: list[str]

    @property
    def title(self) -> str:
        """Kind and name, as messages have them."""
        return f"{self.kind} {self.name}"

    @property
    def text(self) -> str:
        """The values as a file that begins with the command that installs them, and with the notes."""
        where = f" -n {self.namespace}" if self.namespace else ""
        files = f"-f {self.name}-values.yaml --post-renderer minicluster"
        head = [f"helm install {self.release} charts/minicluster{where} {files}", *self.notes]
        return "".join(f"# {line}\n" for line in head) + yamlio.dump(self.values, marker=False).decode()
