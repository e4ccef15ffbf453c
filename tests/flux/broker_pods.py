"""A MiniCluster's pods without Kubernetes: real brokers from the shell that the package ships.

A pod is the process of its entrypoint, the first of its own PID namespace, with the mounts that Kubernetes
would make (``pod.sh``). All pods share this host's network and bind to loopback addresses of their own.
"""

import os
import random
import signal
import subprocess
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import tomli_w
import yaml
from minicluster.render import config, curve
from minicluster.render.load import load

T = TypeVar("T")

NAME = "flux-sample"
MOUNT = "/mnt/flux"
#: Where an image has its commands
PATH = "/usr/local/bin:/usr/bin:/bin"
#: Seconds within which anything here happens, also on a busy machine.
PATIENCE = 60.0
MAP_ROOT = [] if os.geteuid() == 0 else ["--map-root-user"]
UNSHARE = ["unshare", *MAP_ROOT, "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]


def until(found: Callable[[], T], seconds: float = PATIENCE) -> T:
    """Return the first true value, asking often; fail after a while."""
    end = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)
    return value


@dataclass(frozen=True)
class Flux:
    """A Flux of this machine, with one of its schedulers."""

    path: Path
    view: Path | None  #: the tree when it is a view
    scheduler: str

    @property
    def image(self) -> dict[str, Any]:
        """How a pod comes to it."""
        return {"flux": None, "view": self.view} if self.view else {"flux": self.path}

    def values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values that choose the scheduler, where they leave it open."""
        return choose_scheduler(values, self.scheduler)


SCHEDULERS = ("sched-simple", "Fluxion")


def choose_scheduler(values: Mapping[str, Any], scheduler: str) -> dict[str, Any]:
    """Return values that choose one, where they leave it open."""
    flux = values.get("flux", {})
    if scheduler == "Fluxion" or "scheduler" in flux or "brokerConfig" in flux:
        return {**values}
    return {**values, "flux": {**flux, "scheduler": {"simple": True}}}


@dataclass(frozen=True)
class Image:
    """What is particular about the container that a pod runs."""

    flux: Path | None = None  #: what PATH has; None where Flux comes with a view
    view: Path | None = None  #: a view's tree
    environment: Mapping[str, str] = field(default_factory=dict)
    hide: str = ""  #: commands that it lacks
    sh: str = ""  #: what its sh is, unset: this host's
    read_only: bool = False
    user: int = 0

    def on_this_machine(self, data: dict[str, str]) -> dict[str, str]:
        """Return the files of a ConfigMap with the view where it is here."""
        at = f"mc_view={self.view or '/opt/views/view'}\n"
        return {**data, "settings.sh": data["settings.sh"].replace("mc_view=/opt/views/view\n", at)}


class Pod:
    """One pod; ``state`` is the volume that it writes to."""

    def __init__(self, root: Path, index: int, data: Mapping[str, Mapping[str, str]], image: Image) -> None:
        self.root, self.index, self.image = root, index, image
        self.namespace = ""  #: of the network, with a host name of its own; this host's when unset
        self.state = root / "state"
        for folder in (root / "bin", self.state):
            folder.mkdir(parents=True)
        self.state.chmod(0o777)
        if image.flux:
            (root / "bin/flux").symlink_to(image.flux)
        for folder_name, files in data.items():
            (root / folder_name).mkdir()
            for name, text in files.items():
                path = root / folder_name / name
                path.write_text(text)
                path.chmod(0o555 if folder_name == "minicluster" else 0o644)
        self.environment: dict[str, str] = {
            "PATH": f"/mnt/bin:{PATH}",
            "HOME": "/tmp/home",
            "MINICLUSTER_HOME": MOUNT,
            "JOB_COMPLETION_INDEX": str(index),
            **image.environment,
        }

    def start(self) -> None:
        """Start the entrypoint as the container's process."""
        image = self.image
        pod = {
            "POD": str(self.root),
            "POD_HIDE": image.hide,
            "POD_SH": image.sh,
            "POD_READ_ONLY": "1" if image.read_only else "",
        }
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *self._network,
                    *UNSHARE,
                    "sh",
                    f"{Path(__file__).parent}/pod.sh",
                    *self._user,
                    "sh",
                    f"{MOUNT}/minicluster/entrypoint.sh",
                ],
                env={**self.environment, **pod},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def _network(self) -> list[str]:
        rename = f"echo {NAME}-{self.index} >/proc/sys/kernel/hostname"
        enter = ["nsenter", f"--net=/run/netns/{self.namespace}", "unshare", "--uts", "sh", "-c"]
        return [*enter, f'{rename} && exec "$@"', "sh"] if self.namespace else []

    @property
    def _user(self) -> list[str]:
        user = str(self.image.user)
        return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"] if self.image.user else []

    @cached_property
    def first(self) -> int:
        """Process id, on this host, of the container's first process."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(until(lambda: children.read_text().split())[0])

    def wait(self) -> int:
        """Return the exit code of the container."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"pod {self.index} goes on: {self.log}") from None

    def kill(self) -> None:
        """Kill all that runs in the pod."""
        if self.process.poll() is None:
            os.kill(self.first, signal.SIGKILL)
        self.process.wait(PATIENCE)

    @property
    def log_file(self) -> Path:
        """File of what the pod prints."""
        return self.root / "log"

    @property
    def log(self) -> str:
        """All that the pod printed."""
        return self.log_file.read_text()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the container's first process, as the kubelet does, once it handles it at all."""
        until(lambda: self._handled >> (number - 1) & 1)
        os.kill(self.first, number)

    @property
    def _handled(self) -> int:
        status = Path(f"/proc/{self.first}/status").read_text()
        return int(status.partition("SigCgt:")[2].split()[0], 16)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the pod, as `kubectl exec` does."""
        enter = ["nsenter", "--target", str(self.first), *(["--user"] if MAP_ROOT else []), "--mount", "--pid"]
        enter += ["--net", "--uts"] if self.namespace else []
        return subprocess.run(
            [*enter, *self._user, *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def flux(self, *words: str) -> str:
        """Return what flux prints in the pod."""
        done = self.run(f"{MOUNT}/bin/flux", *words)
        assert done.returncode == 0, f"flux {' '.join(words)}: {done.stderr}{self.log}"
        return done.stdout

    def kill_broker(self) -> None:
        """Kill the broker, not the pod."""
        # the pod's end may take the command with it
        assert self.run("kill", "-9", self.flux("getattr", "broker.pid").strip()).returncode in (0, -9, 137)

    def wait_for_ready(self) -> None:
        """Wait until the startup probe passes."""
        until(lambda: self.ready)

    @property
    def ready(self) -> bool:
        """What the startup probe says."""
        return self.run("sh", f"{MOUNT}/minicluster/ready.sh").returncode == 0


class Cluster:
    """The pods of one MiniCluster, of which any may be started, and started anew."""

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
        config_map, secret = config.documents(load(yaml.safe_load(yaml.safe_dump(document))), curve.random_keypair)
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

    def start(self, indices: Sequence[int] = ()) -> "Cluster":
        """Start pods, all of `size` when none is named; where there was one, the one that replaces it."""
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
        """Wait until every pod is."""
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


#: What makes clusters in a test: values, what the runner has, what its image is.
Make = Callable[..., Cluster]
