"""The MiniCluster that a hand-over document describes: validated, with defaults, and its names and paths.

The schema and the defaults are the chart's own files, so that a hand-written document and a values
file mean the same and get the same errors.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard

from minicluster import yamlio
from minicluster.errors import SpecError
from minicluster.render import refusals, schema, upgrade

DEFAULTS = Path(__file__).parent.parent / "chart" / "values.yaml"


@dataclass(frozen=True)
class MiniCluster:
    """A validated cluster; ``spec`` has every key of the chart's values.yaml."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]
    certificate: str  #: of the live release, "" when there is none
    live: upgrade.Live | None = None  #: the live cluster that this upgrades
    kubernetes: str = ""  #: version of the live cluster, "" when Helm talks to none

    @property
    def size(self) -> int:
        """Pods at start."""
        return int(self.spec["size"])

    @property
    def max_size(self) -> int:
        """Hosts that the broker configuration registers."""
        return int(self.spec["maxSize"] or self.size)

    @property
    def flux(self) -> Mapping[str, Any]:
        """The ``flux`` part of the spec."""
        flux: Mapping[str, Any] = self.spec["flux"]
        return flux

    @cached_property
    def runner(self) -> Mapping[str, Any]:
        """The container that runs Flux."""
        containers: list[Mapping[str, Any]] = self.spec["containers"]
        return containers[0] if len(containers) == 1 else next(c for c in containers if c.get("runFlux"))

    @cached_property
    def sidecars(self) -> list[Mapping[str, Any]]:
        """The other containers of the brokers' pods."""
        return [c for c in self.spec["containers"] if c is not self.runner]

    @property
    def joins(self) -> bool:
        """Whether this cluster is a burst: all its pods are workers of another cluster's lead."""
        return bool(self.flux["bursting"]["leadBroker"])

    @property
    def spans(self) -> bool:
        """Whether the table has hosts of several clusters."""
        bursting = self.flux["bursting"]
        return bool(self.joins or bursting["clusters"] or bursting["hostlist"])

    @cached_property
    def bursts(self) -> list[Mapping[str, Any]]:
        """The clusters that may join the root, each with a name and a size; unset, it is the root's maxSize."""
        bursting = self.flux["bursting"]
        # not `size`, which changes while the table of hosts can't, and is not the same on both sides
        size = bursting["leadBroker"].get("size", 1) if self.joins else self.max_size
        return [
            c | {"name": c.get("name") or f"burst-{n}", "size": c.get("size", size)}
            for n, c in enumerate(bursting["clusters"])
        ]

    @cached_property
    def autoscaling(self) -> Mapping[str, Any]:
        """How the cluster scales by itself, ``max`` resolved; empty when it doesn't."""
        autoscaling: Mapping[str, Any] = self.spec["autoscaling"]
        return {**autoscaling, "max": autoscaling["max"] or self.max_size} if autoscaling["enabled"] else {}

    @property
    def keeps_state(self) -> bool:
        """Whether the queue outlives the lead's pod."""
        return bool(self.spec["archive"]["path"] or self.spec["state"]["claimName"])

    @property
    def service(self) -> str:
        """Name of the headless Service, part of every host's domain."""
        return str(self.spec["network"]["headlessName"] or self.name)

    @property
    def mount(self) -> str:
        """Where the cluster's files are in the pods."""
        return str(self.flux["container"]["mountPath"])

    @property
    def files(self) -> str:
        """Folder of the ConfigMap in the pods."""
        return f"{self.mount}/minicluster"

    @property
    def state(self) -> str:
        """Folder that a broker writes to, laid out as flux-operator does."""
        return f"{self.mount}/config"


def defaults() -> dict[str, Any]:
    """Return the chart's values."""
    values: dict[str, Any] = yamlio.load(DEFAULTS.read_bytes())
    return values


def load(document: Mapping[str, Any]) -> MiniCluster:
    """Return the cluster of a hand-over document.

    Raises SpecError naming the first wrong value.
    """
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise SpecError(f"a MiniCluster's metadata is {metadata!r}: it must be a map with a name")
    name, namespace = metadata.get("name"), metadata.get("namespace") or "default"
    if not _is_label(name):
        raise SpecError(
            f"the name {name!r} is not a DNS label: use a-z, 0-9 and - (nameOverride, or the release's name)"
        )
    if not _is_label(namespace):
        raise SpecError(f"MiniCluster {name}: the namespace {namespace!r} is not a DNS label: use a-z, 0-9 and -")
    for key in ("labels", "annotations"):
        texts = metadata.get(key)
        if texts is not None and not (_is_texts(texts)):
            raise SpecError(f"MiniCluster {name}: metadata.{key} must be a map of texts")
    if not isinstance(document.get("certificate") or "", str):
        raise SpecError(f"MiniCluster {name}: certificate must be a text")
    given = document.get("spec")
    spec = _without_null({} if given is None else given)
    problem = next(schema.problems(spec), None)
    if problem:
        raise SpecError(f"MiniCluster {name}: {problem}")
    _resolve_aliases(spec)
    given = defaults()
    cluster = MiniCluster(
        name=name,
        namespace=namespace,
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        spec=_merge(given, spec),
        certificate=str(document.get("certificate") or ""),
        live=upgrade.load(document.get("live")),
        kubernetes=str(document.get("kubernetes") or ""),
    )
    refusal = next(_refusals(cluster, given), None)
    if refusal:
        raise SpecError(f"MiniCluster {name}: {refusal}")
    if cluster.live:
        upgrade.refuse(cluster.live, name, dict(upgrade.flat(given)))
    return cluster


def _refusals(cluster: MiniCluster, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield what contradicts what; on a live cluster only where a value that may change has a part in it.

    What it was installed with it can't get rid of, whatever a newer version thinks of that.
    """
    known: set[str] = set()
    if cluster.live:
        settled = upgrade.settled(cluster.live, cluster.spec, given)
        known = set(refusals.refusals(replace(cluster, spec=settled)))
    return (refusal for refusal in refusals.refusals(cluster) if refusal not in known)


def _is_texts(value: Any) -> bool:
    """Tell whether something is a map of texts, as labels are."""
    return isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)


def _is_label(name: Any) -> TypeGuard[str]:
    return isinstance(name, str) and bool(re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", name))


#: Names that flux-operator's documentation and its API spell differently: the documentation's, the API's.
ALIASES = {"preWorker": "workerPre", "preBroker": "brokerPre"}


def _resolve_aliases(spec: dict[str, Any]) -> None:
    """Give what stands under another name its own. Raises SpecError when it stands under both."""
    for container in [*spec.get("containers", []), *spec.get("services", [])]:
        for alias, name in ALIASES.items():
            _rename(container.get("commands", {}), alias, container.get("commands", {}), name)
    flux = spec.get("flux", {})
    if "leadBroker" in flux:
        _rename(flux, "leadBroker", flux.setdefault("bursting", {}), "leadBroker", place="flux.")


def _rename(source: dict[str, Any], alias: str, target: dict[str, Any], name: str, place: str = "") -> None:
    if alias not in source:
        return
    value = source.pop(alias)
    if target.get(name):
        raise SpecError(
            f"{place}{alias} and {name} are both set: the one is another name of the other; give one of them"
        )
    target[name] = value


def _without_null(value: Any) -> Any:
    """Drop keys that are null: unset, as Helm takes them. Raises SpecError for a key that is no text."""
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise SpecError(f"{key!r} is not a text, and so no field or name: write it in quotes")
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_null(item) for item in value]
    return value


def _merge(base: Any, over: Any) -> Any:
    """Merge maps key by key, as Helm does with values; anything else is replaced."""
    if isinstance(base, dict) and isinstance(over, dict):
        return base | {key: _merge(base.get(key), value) for key, value in over.items()}
    return over
