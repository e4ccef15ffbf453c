"""A root and its bursts without Kubernetes: pods of several MiniClusters with the configuration that is computed.

All reach the lead at a loopback address of the root's own, as they would reach its node port.
"""

import random
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tomli_w
from broker_clusters import Cluster
from broker_pods import Flux, Image, Pod
from minicluster.burst import plan
from minicluster.burst.address import Address
from minicluster.render import curve, postrender
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel

from tools.releases import MOUNT

ROOT = "root"


class Side(Cluster):
    """A root or one of its bursts; a burst has the root's ``certificate``."""

    def __init__(self, folder: Path, cluster: MiniClusterModel, address: str, certificate: str, image: Image) -> None:
        self.root, self.image, self.cluster, self.address = folder, image, cluster, address
        self.size, self.max_size = cluster.size, cluster.max_size
        documents = list(postrender.documents(cluster, curve.random_keypair))
        self.certificate: str = certificate or documents[1]["stringData"]["curve.cert"]
        data: dict[str, str] = image.on_this_machine(documents[0]["data"])
        # there is no DNS here, so the root's own workers reach the lead by its address, as the bursts do
        toml = tomllib.loads(data["broker.toml"])
        toml["bootstrap"]["default_connect"] = f"tcp://{address}:%p"
        self.data = {
            # a test does not wait for a minute
            "minicluster": {name: text.replace("sleep 60", "sleep 1") for name, text in data.items()}
            | {"broker.toml": tomli_w.dumps(toml)},
            "curve": {"curve.cert": self.certificate},
        }
        self.pods, self.gone, self.of_groups = {}, [], list[Pod]()

    def start_group(self, name: str, index: int) -> Pod:
        """Start a pod of a group."""
        pod = Pod(self.root / f"{name}-{index}", index, self.data, self.image)
        pod.environment["MINICLUSTER_GROUP"] = name
        pod.start()
        self.of_groups.append(pod)
        return pod

    def end(self) -> None:
        """Kill all pods."""
        super().end()
        for pod in self.of_groups:
            pod.kill()


class Sides:
    """A root and the bursts that join it."""

    def __init__(self, folder: Path, flux: Flux) -> None:
        self.folder, self.flux = folder, flux
        self.address = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.1"
        self.all: list[Side] = []

    def start_root(self, values: Mapping[str, Any]) -> Side:
        """Start a root and wait until it is ready."""
        values = self.flux.values(values)
        values |= {"network": {"interface": self.address}, "containers": [{"image": "none", "cores": 1}]}
        self.lead = self._side(ROOT, values)
        self.lead.start().wait_for_ready()
        return self.lead

    def burst(self, name: str, size: int, certificate: str = "", change: Callable[[Any], None] | None = None) -> Side:
        """Return a burst as `minicluster burst values` makes it, with its values changed."""
        root = self.lead.cluster
        found = plan.find(root, name)
        values = plan.values(root, found, size, Address(self.address, 8050))
        if change:
            change(values)
        return self._side(name, values, certificate or self.lead.certificate)

    def _side(self, name: str, values: Mapping[str, Any], certificate: str = "") -> Side:
        flux = {**values.get("flux", {}), "container": {"disable": not self.flux.view}}
        cluster = load({"metadata": {"name": name, "namespace": "default"}, "spec": {**values, "flux": flux}})
        folder = self.folder / f"{name}-{len(self.all)}"
        self.all.append(Side(folder, cluster, self.address, certificate, Image(**self.flux.image)))
        return self.all[-1]

    def end(self) -> None:
        """Kill all pods."""
        for side in self.all:
            side.end()


def submit(side: Side, rank: int, *words: str) -> str:
    """Return the id of a job that runs on a rank."""
    job = side.lead.flux("submit", f"--requires=rank:{rank}", *words).strip()
    side.lead.flux("job", "wait-event", "-t60", job, "start")
    return job


def status(side: Side, job: str) -> int:
    """Return the exit code of a job."""
    return side.lead.run(f"{MOUNT}/bin/flux", "job", "status", job).returncode
