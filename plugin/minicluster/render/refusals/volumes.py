"""Refusals of volumes, of mounts that would hide other files, and of reports of jobs that no volume keeps."""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from minicluster.kube.names import is_zero
from minicluster.render import mounts
from minicluster.render.model import MiniClusterModel

#: Where a volume can come from.
VOLUME_SOURCES = ("claimName", "hostPath", "secretName", "configMapName", "emptyDir", "csiDriver", "capacity", "image")
#: Fields of some sources only.
SOURCE_FIELDS = {
    "items": ("configMapName", "secretName"),
    "emptyDirMedium": ("emptyDir",),
    "emptyDirSizeLimit": ("emptyDir",),
    "csiDriverAttributes": ("csiDriver",),
    "imagePullPolicy": ("image",),
    **dict.fromkeys(("storageClass", "accessModes", "labels", "annotations", "keep"), ("capacity",)),
}
#: Folders below the mount path that have volumes of their own.
FOLDERS = ("minicluster", "configmap", "curve", "config", "state", "munge", "copy", "bin", "files", "slurm")
VIEW = ("/opt/software", "/opt/views")


def volumes(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield the volumes that can't be mounted, or that two containers describe differently."""
    seen: dict[tuple[str, str], Mapping[str, Any]] = {}
    for container, fields in cluster.containers.items():
        group, place = container.partition("[")[0], f"{container}.volumes"
        named = fields.get("volumes", {})
        yield from _mounts(cluster, container, named)
        for name, volume in named.items():
            yield from _volume(f"{place}.{name}", name, volume)
            settings = {key: value for key, value in volume.items() if key not in ("path", "readOnly")}
            # the brokers' pods and the services' pod share a claim of the release
            groups = (group, "claims") if volume.get("capacity") else (group,)
            if any(seen.setdefault((one, name), settings) != settings for one in groups):
                yield f"{place}.{name} differs from the volume {name} of another container: rename one of them"
            pods = cluster.max_size if group == "containers" else 1
            yield from _claim(f"{place}.{name}", volume.get("capacity"), volume.get("accessModes"), pods)
            if name == "state" and volume.get("capacity") and cluster.spec["state"]["capacity"]:
                yield f"{place}.state.capacity and state.capacity make one claim, {cluster.name}-state: rename it"
    state = cluster.spec["state"]
    yield from _claim("state", state["capacity"], state["accessModes"], cluster.max_size)
    if state["accessModes"] == ["ReadOnlyMany"]:
        yield "state.accessModes is ReadOnlyMany: the lead writes to the claim; use ReadWriteMany"


def _claim(place: str, capacity: Any, modes: list[str] | None, pods: int) -> Iterator[str]:
    """Yield what a claim of ``pods`` pods can't have."""
    if is_zero(capacity):
        yield f"{place}.capacity is {capacity}: a claim has some size; give e.g. 1Gi"
    if modes and "ReadWriteOncePod" in modes and len(modes) > 1:
        yield f"{place}.accessModes has ReadWriteOncePod and others: it excludes them; drop it, or the others"
    elif modes == ["ReadWriteOncePod"] and pods > 1:
        yield f"{place}.accessModes is ReadWriteOncePod, and up to {pods} pods mount the claim: use ReadWriteMany"


def _mounts(cluster: MiniClusterModel, container: str, volumes: Mapping[str, Any]) -> Iterator[str]:
    """Yield the volumes of a container whose paths are taken."""
    # what the cluster uses itself, with all below
    trees = [f"{cluster.mount}/{name}" for name in FOLDERS]
    if container.startswith("containers") and not cluster.flux["container"]["disable"]:
        trees += VIEW
    place, seen = f"{container}.volumes", dict[str, str]()
    for name, volume in volumes.items():
        path = mounts.path_of(volume)
        own = cluster.mount if path == cluster.mount else None
        tree = next((tree for tree in trees if f"{path}/".startswith(f"{tree}/")), own)
        if tree:
            yield f"{place}.{name}.path is {path}: {tree} is the cluster's own; mount it elsewhere"
        elif path == "/":
            yield f"{place}.{name}.path is /: it would hide the whole image; mount it elsewhere"
        if path in seen:
            yield f"{place}: {seen[path]} and {name} are both at {path}; mount one elsewhere"
        seen[path] = name


def _volume(place: str, name: str, volume: Mapping[str, Any]) -> Iterator[str]:
    sources = [key for key in VOLUME_SOURCES if volume.get(key)]
    if is_zero(volume.get("emptyDirSizeLimit")):
        yield f"{place}.emptyDirSizeLimit is {volume['emptyDirSizeLimit']}, which limits nothing: drop it, or give 1Gi"
    if name.startswith("minicluster"):
        yield f"{place}: names that begin with minicluster are the cluster's own; rename it"
    if is_zero(volume.get("capacity")):
        return
    if len(sources) != 1:
        yield f"{place} has {' and '.join(sources) or 'no source'}: give exactly one of {', '.join(VOLUME_SOURCES)}"
    elif not volume.get("path") and sources != ["emptyDir"]:
        yield f"{place} has no path: say where to mount it"
    for key, owners in SOURCE_FIELDS.items():
        if volume.get(key) and not set(owners) & set(sources):
            yield f"{place}.{key} is set without {' or '.join(owners)}: drop it"
    if volume.get("image") and volume.get("readOnly") is False:
        yield f"{place}.readOnly is false: an image is there for reading only; drop it, and write to another volume"
    paths = {f"items.{key}": path for key, path in volume.get("items", {}).items()}
    for key, path in {**paths, **{key: volume.get(key, "") for key in ("path", "hostPath")}}.items():
        if ".." in path.split("/"):
            yield f"{place}.{key} is {path}: Kubernetes allows no .. in a path; write it without"


#: Volumes that no pod can write to.
READ_ONLY = ("secretName", "configMapName", "image")


def report(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield why the report of the jobs can't be written, or would be lost."""
    given: str = cluster.spec["report"]["path"]
    if not given or cluster.joins:
        return
    path, mounted = posixpath.normpath(given), _runner_mounts(cluster)
    if path == posixpath.normpath(cluster.spec["archive"]["path"]):
        yield f"report.path and archive.path are both {given}: name two files"
    if given.endswith("/") or path in mounted:
        yield f"report.path is {given}, a folder: name a file in it"
        return
    # the innermost volume has the file
    mount_path = max((mount for mount in mounted if path.startswith(f"{mount.rstrip('/')}/")), key=len, default=None)
    if mount_path is None:
        yield f"report.path is {given}, on no volume of the runner: the file is lost with the pod; mount a volume there"
    elif not mounted[mount_path]:
        yield f"report.path is {given}, and the volume at {mount_path} is read-only: name a file on another one"


def _runner_mounts(cluster: MiniClusterModel) -> dict[str, bool]:
    """Return the paths at which the runner has volumes of the user, and whether it can write there."""
    by_path = {}
    for volume in cluster.runner.get("volumes", {}).values():
        writable = not volume.get("readOnly") and not any(volume.get(source) for source in READ_ONLY)
        by_path[mounts.path_of(volume)] = writable
    if cluster.state_claim:
        by_path[f"{cluster.mount}/state"] = True
    its = (mount for container, mount in mounts.added(cluster) if container == cluster.runner_name)
    return by_path | {posixpath.normpath(mount["mountPath"]): not mount.get("readOnly") for mount in its}
