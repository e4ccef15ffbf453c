"""Clusters of pods without Kubernetes (broker_pods.py)."""

import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w
import yaml
from broker_pods import NAME, Image, Pod
from minicluster.render import curve, postrender
from minicluster.render.load import load

from tools.releases import MOUNT


class Cluster:
    """The pods of one MiniCluster. Each can be started, and replaced by a new one."""

    def __init__(self, root: Path, values: Mapping[str, Any], runner: Mapping[str, Any], image: Image) -> None:
        self.root, self.image = root, image
        self.size: int = values.get("size", 1)
        self.max_size: int = values.get("maxSize") or self.size
        network = f"127.{random.randrange(1, 255)}.{random.randrange(256)}"
        self.addresses = [f"tcp://{network}.{index + 1}:8050" for index in range(self.max_size)]
        flux: dict[str, Any] = {**values.get("flux", {})}
        flux["container"] = {"disable": image.flux is not None, **flux.get("container", {})}
        document = {
            "metadata": {"name": NAME, "namespace": "default"},
            "spec": {**values, "containers": [{"image": "none", **runner}], "flux": flux},
        }
        config_map, secret = postrender.documents(load(yaml.safe_load(yaml.safe_dump(document))), curve.random_keypair)
        data = image.on_this_machine(config_map["data"])
        self.data = {"minicluster": data, "curve": secret["stringData"]}
        if "brokerConfig" not in flux:
            data["broker.toml"] = self.broker_toml(data["broker.toml"])
        if values.get("state"):
            (root / "claim").mkdir(parents=True)
        self.pods: dict[int, Pod] = {}
        self.gone: list[Pod] = []

    def broker_toml(self, computed: str = "") -> str:
        """Return the computed configuration with brokers on loopback addresses."""
        hosts = [{"host": f"{NAME}-{i}", "bind": a, "connect": a} for i, a in enumerate(self.addresses)]
        bootstrap = {"curve_cert": f"{MOUNT}/config/curve/curve.cert", "hosts": hosts}
        return tomli_w.dumps({**tomllib.loads(computed), "bootstrap": bootstrap})

    def keep_jobs(self, most: int) -> "Cluster":
        """Let Flux keep fewer records of jobs that have ended than the values may say."""
        settings = self.data["minicluster"]
        config = tomllib.loads(settings["broker.toml"])
        config["job-manager"]["inactive-num-limit"] = most
        settings["broker.toml"] = tomli_w.dumps(config)
        return self

    def start(self, indices: Sequence[int] = ()) -> "Cluster":
        """Start pods, by default `size` of them; where there was a pod, start its replacement."""
        for index in indices or range(self.size):
            if index in self.pods:
                self.gone.append(self.pods[index])
            generation = sum(pod.index == index for pod in self.gone)
            self.pods[index] = Pod(self.root / f"pod-{index}-{generation}", index, self.data, self.image)
            self.pods[index].start()
        return self

    @property
    def lead(self) -> Pod:
        """The pod of index 0."""
        return self.pods[0]

    def run(self) -> list[int]:
        """Start all pods and return their exit codes, by index."""
        return self.start().wait()

    def wait(self) -> list[int]:
        """Return the exit codes of all pods, by index."""
        return [self.pods[index].wait() for index in sorted(self.pods)]

    def wait_for_ready(self) -> "Cluster":
        """Wait until every pod is ready."""
        for pod in self.pods.values():
            pod.wait_for_ready()
        return self

    def up(self) -> str:
        """Return the ranks that Flux can use now."""
        done = self.lead.run(f"{MOUNT}/bin/flux", "resource", "list", "-n", "-s", "up", "-o", "{ranks}")
        return done.stdout.strip()

    def end(self) -> None:
        """Kill all pods."""
        for pod in [*self.pods.values(), *self.gone]:
            pod.kill()


#: Makes clusters in a test: values, fields of the runner, fields of its Image.
Make = Callable[..., Cluster]
