"""Where containers mount volumes: those of the values, and those that pod.template adds."""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from minicluster.documents import maps_at
from minicluster.render.model import MiniClusterModel

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - where the C library has it
#: The volume that the chart mounts there (templates/broker/_volumes.tpl)
OWN_VOLUME = "minicluster-shm"


def path_of(volume: Mapping[str, Any]) -> str:
    """Return where a volume of the values is mounted."""
    return posixpath.normpath("/" + (volume.get("path") or SHARED_MEMORY).lstrip("/"))


def added(cluster: MiniClusterModel) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the mounts that pod.template adds, each with the name of its container."""
    for key in ("containers", "initContainers"):
        for container in maps_at(cluster.spec["pod"]["template"], "spec", key):
            for mount in maps_at(container, "volumeMounts"):
                if "mountPath" in mount:
                    yield str(container.get("name")), mount


def has_own_shared_memory(cluster: MiniClusterModel) -> bool:
    """Return whether nothing but the runner has its /dev/shm: no other container, pod or machine."""
    pod = cluster.spec["pod"]
    there = {name: each for name, each in cluster.runner.get("volumes", {}).items() if path_of(each) == SHARED_MEMORY}
    own = all(each.get("emptyDir") for each in there.values()) if there else pod["sharedMemory"] != "none"
    names = {*there, OWN_VOLUME}
    others = {name for each in cluster.sidecars for name in each.get("volumes", {})}
    for container, mount in added(cluster):
        if container != cluster.runner_name:
            others.add(mount.get("name", ""))
        elif posixpath.normpath(mount["mountPath"]) == SHARED_MEMORY:
            own = False
    return own and not pod["hostIPC"] and not names & others
