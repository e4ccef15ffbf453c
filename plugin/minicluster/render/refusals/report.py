"""Refusals of reports of jobs that would be lost, or that are not wanted where they go."""

import posixpath
from collections.abc import Iterator

from minicluster.render import mounts
from minicluster.render.model import MiniClusterModel

#: Volumes that no pod can write to.
READ_ONLY = ("secretName", "configMapName", "image")


def report(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what is wrong with the report of the jobs."""
    values = cluster.spec["report"]
    for key in [key for key in ("path", "log") if values[key] and cluster.joins]:
        yield f"report.{key} and flux.bursting.leadBroker are both set: the lead cluster has the jobs; drop it"
    if values["log"] and cluster.spec["logging"]["quiet"]:
        yield "report.log and logging.quiet are both true: a quiet log is the job's output alone; set report.path"
    if values["path"] and not cluster.joins:
        yield from _path(cluster, values["path"])


def _path(cluster: MiniClusterModel, given: str) -> Iterator[str]:
    """Yield why a file can't be written, or would be lost."""
    path, mounted = posixpath.normpath(given), _mounts(cluster)
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


def _mounts(cluster: MiniClusterModel) -> dict[str, bool]:
    """Return the paths at which the runner has volumes of the user, and whether it can write there."""
    by_path = {}
    for volume in cluster.runner.get("volumes", {}).values():
        writable = not volume.get("readOnly") and not any(volume.get(source) for source in READ_ONLY)
        by_path[mounts.path_of(volume)] = writable
    if cluster.state_claim:
        by_path[f"{cluster.mount}/state"] = True
    runner = mounts.runner_name(cluster)
    its = (mount for container, mount in mounts.added(cluster) if container == runner)
    return by_path | {posixpath.normpath(mount["mountPath"]): not mount.get("readOnly") for mount in its}
