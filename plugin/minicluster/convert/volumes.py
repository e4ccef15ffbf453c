"""The volumes of containers, as flux-operator made and mounted them."""

from collections.abc import Iterable

from minicluster.convert.part import Map, Part

#: Sources of a volume, each with its fields; of several that are set, flux-operator used the first in this order
FIELDS_BY_SOURCE = {
    "csiDriver": ("csiDriverAttributes",),
    "secretName": (),
    "emptyDir": ("emptyDirMedium", "emptyDirSizeLimit"),
    "hostPath": (),
    "configMapName": ("items",),
    "claimName": (),
}
KNOWN_FIELDS = {*FIELDS_BY_SOURCE, *(part for parts in FIELDS_BY_SOURCE.values() for part in parts)}
#: Fields of the mount; all others are of the volume
MOUNT_FIELDS = ("path", "readOnly")
#: Where flux-operator mounts an emptyDir
SHM = "/dev/shm"  # noqa: S108


def convert_volumes(spec: Part) -> None:
    """Give each container the volumes that flux-operator mounted in it."""
    for group in ("containers", "services"):
        containers = spec.items(group)
        for container in containers:
            for volume in container.members("volumes").values():
                _keep_one_source(volume)
        # the schema refuses volumes that are no maps
        if all(len(one.members("volumes")) == len(one.at("volumes").fields) for one in containers):
            _share(containers)


def _keep_one_source(volume: Part) -> None:
    """Drop the fields of a volume that flux-operator did not use."""
    source = next((key for key in FIELDS_BY_SOURCE if volume.get(key)), None)
    if source is None:
        return
    if source != "emptyDir" and volume.get("emptyDir"):
        volume.fields["path"] = SHM
    for key in [key for key in volume.fields if key in KNOWN_FIELDS - {source, *FIELDS_BY_SOURCE[source]}]:
        volume.drop(key, f"flux-operator used {source}")
    if source == "emptyDir":
        _convert_empty_dir(volume)


def _convert_empty_dir(volume: Part) -> None:
    if volume.get("path") != SHM:
        volume.drop("path", "flux-operator mounts an emptyDir at /dev/shm")
    volume.drop("readOnly", "flux-operator mounts an emptyDir writable")
    if volume.get("emptyDirMedium") not in (None, "", "memory"):
        volume.drop("emptyDirMedium", "flux-operator knows only memory, in lower case")


def _share(containers: Iterable[Part]) -> None:
    """Make volumes of one name the same: the last container defines the volume, the first one its mount.

    Each container also gets the mounts of those before it.
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
            container.note("volumes", f"flux-operator also mounts those of the containers before it: {names}")
        settled |= {name: volume.fields for name, volume in volumes.items() if name not in settled}


def _settle(volume: Part, first: Map, last: Map) -> None:
    mount = {key: value for key, value in first.items() if key in MOUNT_FIELDS}
    whole = mount | {key: value for key, value in last.items() if key not in MOUNT_FIELDS}
    if volume.fields != whole:
        volume.warn("", "is as flux-operator made it: volumes of one name have one source and one path")
        volume.fields.clear()
        volume.fields.update(whole)
