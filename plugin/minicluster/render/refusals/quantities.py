"""Refusals of quantities that nobody means, such as ten bytes of memory: most often the unit is forgotten."""

from collections.abc import Iterator

from minicluster.render.model import MiniClusterModel
from minicluster.render.quantity import is_quantity, unmeant

#: The values of a live release that may change: what it has was allowed once, and stays allowed
MUTABLE = ("services[", "hooks.", "flux.bursting.follow.")


def quantities(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield the quantities that are far too small or large."""
    for path, name, value in _all(cluster):
        why = unmeant(name, value) if is_quantity(value) else ""
        if why and not (cluster.installed and path.startswith(MUTABLE)):
            yield f"{path} is {value}, which is {why}"


def _all(cluster: MiniClusterModel) -> Iterator[tuple[str, str, object]]:
    """Yield the path of each quantity that is set, its resource, and the value."""
    groups = {group.place: group.given for group in cluster.groups}
    for place, container in {**cluster.own_containers, **cluster.containers, **groups}.items():
        for kind in ("limits", "requests"):
            for name, value in container.get("resources", {}).get(kind, {}).items():
                yield f"{place}.resources.{kind}.{name}", name, value
        for volume, fields in container.get("volumes", {}).items():
            for key in ("capacity", "emptyDirSizeLimit"):
                yield f"{place}.volumes.{volume}.{key}", "storage", fields.get(key)
    spec = cluster.spec
    yield "state.capacity", "storage", spec["state"]["capacity"]
    yield "flux.memoryReserve", "memory", spec["flux"]["memoryReserve"]
    yield "pod.sharedMemory", "memory", spec["pod"]["sharedMemory"]
