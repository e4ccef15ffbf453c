"""What is a GPU for Flux: extended resources and device classes, and by which variable a task is told its own.

The table is in the chart's ``files/constants.json``, because the notes of a release need it too. What a resource is
called, and what a runtime reads, is in the vendors' documentation: docs/how-to/use-gpus.md names it.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from minicluster.render.constants import GPUS, NO_GPUS
from minicluster.render.model import MiniClusterModel

#: What Kubernetes calls the devices of a class, when a limit asks for them (a DeviceClass's implicit resource name).
CLASS = "deviceclass.resource.kubernetes.io/"


def limits(runner: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the limits of a container, by resource."""
    amounts: Mapping[str, Any] = runner.get("resources", {}).get("limits", {})
    return amounts


def variable(resource: str) -> str | None:
    """Return the variable of a GPU, "" for one whose runtime has none; None for a resource that is no GPU.

    >>> variable("nvidia.com/mig-1g.5gb")
    'CUDA_VISIBLE_DEVICES'
    """
    return next((str(kind["variable"]) for kind in GPUS if _matches(resource, kind["resources"])), None)


def names() -> list[str]:
    """Return the resources that are GPUs, with patterns, without those of device classes."""
    return [name for kind in GPUS for name in kind["resources"] if not name.startswith(CLASS)]


def task_variable(cluster: MiniClusterModel) -> str:
    """Return the variable by which a task is told its GPUs; "" where Flux's own, CUDA_VISIBLE_DEVICES, stands.

    That is the one of the devices in the limits and claims of the runner, if they have the same one.
    """
    used = _claims(cluster.runner)
    claims = [claim for claim in cluster.spec["pod"]["resourceClaims"] if claim["name"] in used]
    resources = [*limits(cluster.runner), *(CLASS + name for claim in claims for name in _classes(claim))]
    kinds = {text for text in map(variable, resources) if text is not None}
    return kinds.pop() if len(kinds) == 1 else ""


def _classes(claim: Mapping[str, Any]) -> Iterator[str]:
    """Yield the device classes that a claim of the pod asks for, as far as the values have them."""
    for request in claim.get("spec", {}).get("devices", {}).get("requests", []):
        for one in [request.get("exactly", {}), *request.get("firstAvailable", [])]:
            yield str(one.get("deviceClassName", ""))


def uncounted(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield a sentence for each device of the runner that Flux doesn't count; the chart's notes have the same ones.

    A number in ``gpus`` says what Flux has, so then there is none.
    """
    runner = cluster.runner
    if "gpus" in runner:
        return
    place = cluster.runner_place
    way = f"set {place}.gpus to the number that jobs may ask for, 0 for none"
    for name in sorted(limits(runner)):
        if "/" in name and variable(name) is None and not _matches(name, NO_GPUS):
            yield f"{place}.resources.limits.{name} looks like a device, and Flux doesn't know it: {way}"
    for name in dict.fromkeys(_claims(runner)):
        yield f"{place}.resources.claims: Flux doesn't know how many devices {name} has: {way}"


def _claims(runner: Mapping[str, Any]) -> list[str]:
    """Return the names of the claims that a container uses."""
    return [str(claim["name"]) for claim in runner.get("resources", {}).get("claims", [])]


def _matches(name: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
