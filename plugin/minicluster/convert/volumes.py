"""The volumes of containers, as flux-operator made and mounted them."""

from collections.abc import Iterable

from minicluster.convert.part import Map, Part

#: Where a volume comes from, the first that is set: flux-operator's order; and what belongs to each
SOURCES = {
    "csiDriver": ("csiDriverAttributes",),
    "secretName": (),
    "emptyDir": ("emptyDirMedium", "emptyDirSizeLimit"),
    "hostPath": (),
    "configMapName": ("items",),
    "claimName": (),
}
KNOWN = {*SOURCES, *(part for parts in SOURCES.values() for part in parts)}
#: What says where a volume is mounted; all else says what it is
MOUNT = ("path", "readOnly")
#: Where flux-operator mounts what has emptyDir
SHM = "/dev/shm"  # noqa: S108


def convert_volumes(spec: Part) -> None:
    """Give each container the volumes that flux-operator mounted in it."""
    for group in ("containers", "services"):
        containers = spec.items(group)
        for container in containers:
            for volume in container.members("volumes").values():
                _keep_one_source(volume)
        if all(_are_maps(container) for container in containers):
            _share(containers)


def _keep_one_source(volume: Part) -> None:
    """Leave of a volume what flux-operator used."""
    source = next((key for key in SOURCES if volume.get(key)), None)
    if source is None:
        return
    if source != "emptyDir" and volume.get("emptyDir"):
        volume.fields["path"] = SHM
    for key in [key for key in volume.fields if key in KNOWN - {source, *SOURCES[source]}]:
        volume.drop(key, f"flux-operator used {source}")
    if source == "emptyDir":
        _convert_empty_dir(volume)


def _convert_empty_dir(volume: Part) -> None:
    if volume.get("path") != SHM:
        volume.drop("path", "flux-operator mounts an emptyDir at /dev/shm")
    volume.drop("readOnly", "flux-operator mounts an emptyDir to be written to")
    if volume.get("emptyDirMedium") not in (None, "", "memory"):
        volume.drop("emptyDirMedium", "flux-operator knows memory only, in lower case")


def _are_maps(container: Part) -> bool:
    """Whether all volumes are maps; the schema refuses any other."""
    return len(container.members("volumes")) == len(container.at("volumes").fields)


def _share(containers: Iterable[Part]) -> None:
    """Settle volumes of one name: the last container says what it is, the first where it is mounted.

    A container has the mounts of those before it, too.
    """
    last = {name: volume.fields for c in containers for name, volume in c.members("volumes").items()}
    settled: dict[str, Map] = {}
    for container in containers:
        volumes = container.members("volumes")
        for name, volume in volumes.items():
            _settle(volume, settled.get(name) or volume.fields, last[name])
        inherited = {name: dict(volume) for name, volume in settled.items() if name not in volumes}
        if inherited:
            container.make("volumes").fields.update(inherited)
            names = ", ".join(inherited)
            container.note("volumes", f"flux-operator mounts {names} here, from the containers before")
        settled |= {name: volume.fields for name, volume in volumes.items() if name not in settled}


def _settle(volume: Part, first: Map, last: Map) -> None:
    mount = {key: value for key, value in first.items() if key in MOUNT}
    whole = mount | {key: value for key, value in last.items() if key not in MOUNT}
    if volume.fields != whole:
        volume.warn("", "is as flux-operator made it: one volume of a name, mounted once")
        volume.fields.clear()
        volume.fields.update(whole)
