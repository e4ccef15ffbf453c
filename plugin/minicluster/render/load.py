"""Turns a hand-over document into a MiniCluster: checked against the schema, with defaults, without contradictions."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from minicluster.documents import BYTE_ORDER_MARK, DEPTH_LEVELS
from minicluster.errors import SpecError
from minicluster.kube.names import LABEL, to_number
from minicluster.render import constants, handover, refusals, schema, upgrade
from minicluster.render.handover import LiveClaim
from minicluster.render.model import MiniClusterModel

_TOO_DEEP = f"spec is nested more than {DEPTH_LEVELS} levels deep"


def load(document: Mapping[str, Any]) -> MiniClusterModel:
    """Return the cluster of a hand-over document.

    Raises SpecError naming the first wrong value.
    """
    metadata = _metadata(document)
    name = metadata["name"]
    if not isinstance(document.get("certificate") or "", str):
        raise SpecError(f"MiniCluster {name}: certificate must be a string")
    try:
        spec = _without_null(_spec(document.get("spec")))
    except SpecError as error:
        raise SpecError(f"MiniCluster {name}: {error}") from None
    for problem in schema.problems(spec):
        raise SpecError(f"MiniCluster {name}: {problem}")
    _resolve_aliases(spec)
    _drop_marks(spec)
    cluster = MiniClusterModel(
        **metadata,
        spec=_merge(constants.default_values(), spec),
        certificate=str(document.get("certificate") or ""),
        installed=handover.installed(document.get("installed")),
        kubernetes=str(document.get("kubernetes") or ""),
        programs=handover.programs(document.get("programs")),
    )
    for refusal in _refusals(cluster):
        raise SpecError(f"MiniCluster {name}: {refusal}")
    if cluster.installed:
        upgrade.refuse(cluster.installed, name, cluster.namespace, dict(upgrade.flat(constants.default_values())))
    for claim in handover.claims(document.get("claims")):
        _refuse_claim_change(claim)
    return cluster


def _metadata(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return name, namespace, labels and annotations. Raises SpecError for a wrong one."""
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
    maps = {key: metadata.get(key) or {} for key in ("labels", "annotations")}
    for key in maps:
        if metadata.get(key) is not None and not _is_string_map(metadata[key]):
            raise SpecError(f"MiniCluster {name}: metadata.{key} must be a map of strings")
    return {"name": name, "namespace": namespace, **maps}


def _refusals(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield the contradictions, without those that a live cluster has had since its install.

    Its immutable values can't change, even if a newer version of minicluster refuses them.
    """
    known: set[str] = set()
    if cluster.installed:
        immutable = upgrade.immutable_values(cluster.installed, cluster.spec, constants.default_values())
        known = set(refusals.refusals(cluster._replace(spec=immutable)))
    return (refusal for refusal in refusals.refusals(cluster) if refusal not in known)


def _is_string_map(value: Any) -> bool:
    """Tell whether a value is a map of strings, as labels are."""
    return isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)


def _is_label(name: Any) -> TypeGuard[str]:
    return isinstance(name, str) and bool(re.fullmatch(LABEL, name))


#: Fields with two names, the one in flux-operator's documentation and the one in its API.
ALIASES = {"preCommand": "pre", "preWorker": "workerPre", "preBroker": "brokerPre"}


def _resolve_aliases(spec: dict[str, Any]) -> None:
    """Rename aliases to the fields that they stand for. Raises SpecError when both are set."""
    for container in [*spec.get("containers", []), *spec.get("services", [])]:
        if "fluxUser" in container and "fluxuser" in container:
            raise SpecError("fluxuser and fluxUser are both set: they are two names of one field; give one of them")
        for alias, name in ALIASES.items():
            _rename(container.get("commands", {}), alias, container.get("commands", {}), name)
    flux = spec.get("flux", {})
    if "leadBroker" in flux:
        _rename(flux, "leadBroker", flux.setdefault("bursting", {}), "leadBroker", place="flux.")
    _resolve_hostlist(flux.get("bursting", {}))


def _drop_marks(spec: dict[str, Any]) -> None:
    """Drop the marks before texts that may be of files: a mark would hide a `#!`, and be a part of a command's name."""
    containers = [*spec.get("containers", []), *spec.get("services", [])]
    for texts in (spec.get("flux", {}), *containers, *(container.get("commands", {}) for container in containers)):
        for key, text in texts.items():
            if isinstance(text, str):
                texts[key] = text.removeprefix(BYTE_ORDER_MARK)


def _resolve_hostlist(bursting: dict[str, Any]) -> None:
    """Take over the hostlist of leadBroker. Raises SpecError when there is another one."""
    # it stays there: an empty leadBroker would mean that this cluster is a root
    if hostlist_text := bursting.get("leadBroker", {}).get("hostlist"):
        if bursting.setdefault("hostlist", hostlist_text) not in ("", hostlist_text):
            raise SpecError(
                "flux.bursting.leadBroker.hostlist and flux.bursting.hostlist differ: they are two names of one field; "
                "give one of them"
            )
        bursting["hostlist"] = hostlist_text


def _rename(source: dict[str, Any], alias: str, target: dict[str, Any], name: str, place: str = "") -> None:
    if alias not in source:
        return
    value = source.pop(alias)
    if target.get(name):
        raise SpecError(f"{place}{alias} and {name} are both set: they are two names of one field; give one of them")
    target[name] = value


def _spec(given: Any) -> Any:
    """Return the values of a hand-over document: JSON in a text from the chart, or a map. Raises SpecError."""
    if not isinstance(given, str):
        return {} if given is None else given
    try:
        return json.loads(given)
    except RecursionError:
        raise SpecError(_TOO_DEEP) from None
    except ValueError as error:
        raise SpecError(f"spec is a text that is not JSON ({error}): write it as a map") from None


def _without_null(value: Any, level: int = 1) -> Any:
    """Drop the keys that are null: as in Helm, null is unset.

    Raises SpecError for a key that is not a string, and for what is nested too deeply.
    """
    if level > DEPTH_LEVELS:
        raise SpecError(_TOO_DEEP)
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise SpecError(f"the key {key!r} is not a string: write it in quotes")
        return {key: _without_null(item, level + 1) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_null(item, level + 1) for item in value]
    return value


def _merge(base: Any, over: Any) -> Any:
    """Merge maps key by key, as Helm does with values; anything else is replaced."""
    if isinstance(base, dict) and isinstance(over, dict):
        return base | {key: _merge(base.get(key), value) for key, value in over.items()}
    return over


def _refuse_claim_change(claim: LiveClaim) -> None:
    """Raise SpecError if the values ask for what the claim can't change: it can only grow.

    The API server would refuse it only when half of the release is applied.
    """
    was, asked = claim.was, claim.asked
    anew = f"uninstall, delete the claim with its data (kubectl delete pvc {claim.name}), and install again"
    if claim.deleted:
        raise SpecError(f"{claim.place}: the claim {claim.name} is being deleted: wait until it is gone")
    if to_number(asked.capacity) < to_number(was.capacity):
        raise SpecError(
            f"{claim.place}.capacity is {asked.capacity}, the claim {claim.name} has {was.capacity}: "
            f"a claim can't shrink; ask for {was.capacity} or more, or {anew}"
        )
    for field, asks, has in (
        ("storageClass", asked.storage_class, was.storage_class or ""),
        ("accessModes", ", ".join(asked.access_modes) or None, ", ".join(was.access_modes)),
    ):
        if asks is not None and asks != has:
            raise SpecError(
                f"{claim.place}.{field} is {asks or '(none)'}, the claim {claim.name} has {has or '(none)'}: "
                f"that is immutable; drop the value, or {anew}"
            )
