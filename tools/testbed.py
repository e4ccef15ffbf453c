"""The real cluster and the images for the pods' tests and for chaos, from the environment (CONTRIBUTING.md)."""

import json
import os
import secrets
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tools import tenant
from tools.clients import BIN, ROOT, Helm, KubernetesCluster
from tools.releases import FluxRelease, Release
from tools.tenant import PLAIN, ROOT_PODS, Tenant

KUBECONFIG = "MINICLUSTER_TEST_KUBECONFIG"
#: The name of the releases.
NAME = "mini"
#: The world of the namespaces, unless a test needs less.
WORLD = ROOT_PODS
SCHEDULERS = ("sched-simple", "Fluxion")


def kubernetes() -> KubernetesCluster:
    """Return the cluster; its commands use helm, kubectl and minicluster of this repository."""
    path = os.pathsep.join([str(BIN), str(Path(sys.executable).parent), os.environ["PATH"]])
    return KubernetesCluster(
        {**os.environ, "PATH": path, "KUBECONFIG": os.environ[KUBECONFIG], "HELM_PLUGINS": str(ROOT)},
    )


@cache
def minor_version() -> int:
    """Return the N of the cluster's Kubernetes 1.N."""
    versions = json.loads(kubernetes().kubectl("version", "--output=json"))
    return int(versions["serverVersion"]["minor"].rstrip("+"))


def release(namespace: str, values: Mapping[str, Any], home: Path, helm: str = "helm", name: str = NAME) -> FluxRelease:
    """Return a release that is not installed yet; ``home`` is a folder for Helm's own files."""
    client = Helm(helm, home, {"KUBECONFIG": os.environ[KUBECONFIG]})
    return FluxRelease(client, kubernetes(), namespace, name, values=dict(values), world=WORLD)


@contextmanager
def new_namespace(*labels: str, world: Tenant = WORLD) -> Iterator[str]:
    """Make a namespace in a user's world, and remove it with all that is in it; `tenant.leave` ends that world."""
    cluster, name = kubernetes(), f"minicluster-test-{secrets.token_hex(4)}"
    cluster.kubectl("create", "namespace", name)
    try:
        if marks := [*(f"{key}={value}" for key, value in world.namespace_labels.items()), *labels]:
            cluster.kubectl("label", "namespace", name, *marks)
        # each time, and after the marks: others who end meanwhile may have removed the policies
        tenant.govern(cluster)
        tenant.arrange(cluster, name, world)
        yield name
    finally:
        # a namespace with a Job that has backoffLimitPerIndex is never removed: the Job goes first
        cluster.kubectl("-n", name, "delete", "jobs", "--all", "--wait=false", "--ignore-not-found")
        cluster.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@contextmanager
def new_volume() -> Iterator[str]:
    """Reserve the name of a volume for `bind`, and remove the volume."""
    name = f"minicluster-test-{secrets.token_hex(4)}"
    yield name
    kubernetes().kubectl("delete", "persistentvolume", name, "--ignore-not-found", "--wait=false")


#: Fields of the volumes and claims of the tests, which no storage class makes.
BY_HAND: dict[str, Any] = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}


def offer(cluster: Release, claim: str, volume: str, folder: Path, storage_class: str = "") -> None:
    """Make a volume of a class, a folder of the node, for a claim in the release's namespace."""
    source = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": str(folder), "type": "DirectoryOrCreate"}}
    cluster.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                **BY_HAND,
                "storageClassName": storage_class,
                **source,
                "claimRef": {"namespace": cluster.namespace, "name": claim},
            },
        },
    )


def bind(cluster: Release, claim: str, volume: str, folder: Path) -> None:
    """Make a claim in the release's namespace and a volume for it, a folder of the node."""
    offer(cluster, claim, volume, folder)
    cluster.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": cluster.namespace},
            "spec": {**BY_HAND, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume},
        },
    )


def tools_in(image: str, looks: Mapping[str, str]) -> set[str]:
    """Return which tools an image has: those for which a shell command in ``looks`` succeeds."""
    script = "".join(f"({look}) >/dev/null 2>&1 && echo {shlex.quote(tool)}\n" for tool, look in looks.items())
    with new_namespace(world=PLAIN) as namespace:
        cluster = kubernetes()
        words = ("-n", namespace, "run", "tools", f"--image={image}", "--image-pull-policy=IfNotPresent")
        cluster.kubectl(*words, "--restart=Never", "--command", "--", "sh", "-c", f"{script}true")

        def ended() -> bool:
            return bool(cluster.get("pod", "tools", "-n", namespace)["status"]["phase"] == "Succeeded")

        cluster.wait(f"the list of tools in {image}", ended, 120)
        return set(cluster.kubectl("-n", namespace, "logs", "tools").splitlines())


def tolerations(node: str) -> list[dict[str, Any]]:
    """Return tolerations of a node's taints."""
    taints = kubernetes().get("node", node)["spec"].get("taints", ())
    return [{"key": taint["key"], "operator": "Exists", "effect": taint["effect"]} for taint in taints]


def choose_scheduler(values: Mapping[str, Any], scheduler: str) -> dict[str, Any]:
    """Return values with a scheduler, unless they choose one themselves."""
    flux = values.get("flux", {})
    if scheduler == "Fluxion" or "scheduler" in flux or "brokerConfig" in flux:
        return {**values}
    return {**values, "flux": {**flux, "scheduler": {"simple": True}}}


def views() -> list[str]:
    """Return the view images from the environment, first the one for most tests; none: the chart's default."""
    return os.environ.get("MINICLUSTER_TEST_VIEW_IMAGE", "").split()


def images() -> dict[str, Any]:
    """Return the values with the images from the environment, or else the chart's defaults."""
    values: dict[str, Any] = {"containers": [{"image": os.environ.get("MINICLUSTER_TEST_IMAGE", "ubuntu:noble")}]}
    return {**values, "flux": {"container": {"image": views()[0]}}} if views() else values


def values_of(
    values: Mapping[str, Any],
    runner: Mapping[str, Any],
    mode: str = "auto",
    scheduler: str = "Fluxion",
    world: Tenant = WORLD,
) -> dict[str, Any]:
    """Return values with a runner, images, the view's mode, a scheduler and what the namespace asks for.

    Their other containers are sidecars.
    """
    base = images()
    values = choose_scheduler(values, scheduler)
    sidecars = [{"image": base["containers"][0]["image"], **sidecar} for sidecar in values.get("containers", ())]
    flux = dict(values.get("flux", {}))
    flux["container"] = {"mode": mode, **base.get("flux", {}).get("container", {}), **flux.get("container", {})}
    made = {**values, "containers": [{**base["containers"][0], **runner}, *sidecars], "flux": flux}
    return tenant.values(made, world)
