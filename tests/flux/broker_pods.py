"""A MiniCluster's pods without Kubernetes: real brokers from the shell that the package ships.

A pod is the process of its entrypoint, the first of its own PID namespace, with the mounts that Kubernetes
would make (``pod.sh``). All pods share this host's network and bind to loopback addresses of their own.
"""

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tools.clients import WAIT_SECONDS, until
from tools.releases import MOUNT
from tools.testbed import choose_scheduler

NAME = "flux-sample"
#: Where an image has its commands
PATH = "/usr/local/bin:/usr/bin:/bin"
MAP_ROOT = [] if os.geteuid() == 0 else ["--map-root-user"]
#: Exit codes of a command that has succeeded, or was killed together with its pod
ENDED = (0, -9, 137)
UNSHARE = ["unshare", *MAP_ROOT, "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]


@dataclass(frozen=True)
class Flux:
    """An installation of Flux on this machine, with one of its schedulers."""

    path: Path
    view: Path | None  #: the tree when it is a view
    scheduler: str

    @property
    def image(self) -> dict[str, Any]:
        """The fields of Image by which a pod finds it."""
        return {"flux": None, "view": self.view} if self.view else {"flux": self.path}

    @cached_property
    def minor(self) -> int:
        """The second number of flux-core's version."""
        done = subprocess.run([self.path, "--version"], capture_output=True, text=True, check=True)
        return int(done.stdout.split()[1].split(".")[1])

    @property
    def has_fluxion(self) -> bool:
        """Whether it has Fluxion (flux-sched)."""
        return any(self.path.parents[1].glob("lib*/**/flux/modules/sched-fluxion-qmanager.so"))

    def since(self, minor: int, lack: str) -> None:
        """Skip the test with a flux-core before 0.MINOR, which lacks something."""
        if self.minor < minor:
            pytest.skip(f"flux-core 0.{self.minor}: {lack}")

    @property
    def has_gpus(self) -> bool:
        """Whether its scheduler knows GPUs."""
        return self.scheduler == "Fluxion" or self.minor >= 84

    def knows_gpus(self) -> None:
        """Skip the test with a scheduler that doesn't know GPUs."""
        if not self.has_gpus:
            pytest.skip(f"flux-core 0.{self.minor}: sched-simple knows no GPUs")

    def values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values that choose the scheduler, unless they have chosen one."""
        return choose_scheduler(values, self.scheduler)


@dataclass(frozen=True)
class Image:
    """How the container of a pod differs from this machine."""

    flux: Path | None = None  #: the flux in PATH; None if Flux comes with a view
    view: Path | None = None  #: a view's tree
    environment: Mapping[str, str] = field(default_factory=dict)
    hide: str = ""  #: commands that the image lacks
    sh: str = ""  #: the shell that is its sh; if unset, that of this host
    read_only: bool = False
    user: int = 0

    def on_this_machine(self, data: dict[str, str]) -> dict[str, str]:
        """Return the files of a ConfigMap with the view's path on this machine."""
        at = f"mc_view={self.view or '/opt/views/view'}\n"
        return {**data, "settings.sh": data["settings.sh"].replace("mc_view=/opt/views/view\n", at)}


class Pod:
    """One pod; ``state`` is the volume that it writes to."""

    def __init__(self, root: Path, index: int, data: Mapping[str, Mapping[str, str]], image: Image) -> None:
        self.root, self.index, self.image = root, index, image
        self.namespace = ""  #: the network namespace, with a host name of its own; if unset, that of this host
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
                    *self._environment,
                    "/bin/sh",
                    f"{MOUNT}/minicluster/entrypoint.sh",
                ],
                env={"PATH": PATH, **pod},
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
    def _environment(self) -> list[str]:
        """The words before a command, whose environment leads no tool of ours astray."""
        return ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in self.environment.items())]

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
            return self.process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"pod {self.index} goes on: {self.log}") from None

    def kill(self) -> None:
        """Kill all that runs in the pod."""
        if self.process.poll() is None:
            os.kill(self.first, signal.SIGKILL)
        self.process.wait(WAIT_SECONDS)

    @property
    def log_file(self) -> Path:
        """File of what the pod prints."""
        return self.root / "log"

    @property
    def log(self) -> str:
        """All that the pod printed."""
        return self.log_file.read_text()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the container's first process, as the kubelet does, once that process handles it."""
        until(lambda: self._handled >> (number - 1) & 1)
        os.kill(self.first, number)

    @property
    def _handled(self) -> int:
        status = Path(f"/proc/{self.first}/status").read_text()
        return int(status.partition("SigCgt:")[2].split()[0], 16)

    def entered(self, *words: str) -> list[str]:
        """Return the words that run a command in the pod."""
        enter = ["nsenter", "--target", str(self.first), *(["--user"] if MAP_ROOT else []), "--mount", "--pid"]
        enter += ["--net", "--uts"] if self.namespace else []
        return [*enter, *self._user, *self._environment, *words]

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command in the pod, as `kubectl exec` does."""
        return subprocess.run(
            self.entered(*words),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )

    def flux(self, *words: str) -> str:
        """Return what flux prints in the pod."""
        done = self.run(f"{MOUNT}/bin/flux", *words)
        assert done.returncode == 0, f"flux {' '.join(words)}: {done.stderr}{self.log}"
        return done.stdout

    def kill_broker(self) -> None:
        """Kill the broker, not the pod."""
        assert self.run("kill", "-9", self.flux("getattr", "broker.pid").strip()).returncode in ENDED

    def shut_down(self, *options: str) -> None:
        """Let the broker end by `flux shutdown`."""
        assert self.run(f"{MOUNT}/bin/flux", "shutdown", *options).returncode in ENDED

    def wait_for_ready(self) -> None:
        """Wait until the startup probe passes."""
        until(lambda: self.ready)

    @property
    def ready(self) -> bool:
        """Whether the startup probe passes."""
        return self.run("/bin/sh", f"{MOUNT}/minicluster/ready.sh").returncode == 0
