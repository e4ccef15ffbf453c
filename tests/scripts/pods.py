"""The files of a pod: the ConfigMap and the Secret as they are mounted, an image's commands, and a stand-in for flux
(flux_stand_in.sh). The scripts run in them as plain processes.
"""

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from minicluster.render import postrender
from minicluster.render.load import load
from support import Done, deep

from tools import clients

NAME = "flux-sample"
#: In values, the folder that contains all files of a pod
ROOT = "/ROOT"
#: Each step of a test takes fewer seconds than this, also on a busy machine.
PATIENCE = 30.0
until = partial(clients.until, seconds=PATIENCE)
#: The commands that each common image has, Alpine's and Debian's; no bash.
COMMANDS = (
    "cat chmod chown cp date dirname env false head id kill ln ls mkdir mkfifo mv printf readlink rm sed sleep sort "
    "tail test timeout touch tr true wc"
)
RETRY = 85


#: What the scripts know of a container, and what it is in the folder of a pod
OF_A_CONTAINER = {
    # the memory of the test's own machine decides nothing, and is not touched
    " /sys/fs/cgroup\n": f" {ROOT}/cgroup\n",
    " /dev/shm\n": f" {ROOT}/shm\n",
    "make_folders /tmp\n": f"make_folders {ROOT}\n",
    # the image's own tools are in one folder
    " *:/usr/bin:*)": f" *:{ROOT}/bin:*)",
    ":}/usr/bin:/bin": f":}}{ROOT}/bin",
}


@cache
def for_tests(text: str) -> tuple[str, str]:
    """Return a file of the ConfigMap as tests have it, and a name for it. All pods have the same programs."""
    for its, ours in OF_A_CONTAINER.items():
        text = text.replace(its, ours)
    return text, hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Call:
    """A call of flux."""

    words: list[str]
    env: dict[str, str]


class Process:
    """A container's main process. Its output goes to a file; its children end with the test."""

    def __init__(self, log: Path, argv: list[str], env: Mapping[str, str]) -> None:
        self._log = log
        with log.open("wb") as out:
            self.popen = subprocess.Popen(
                argv, env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    @property
    def log(self) -> str:
        """Everything that it printed."""
        return self._log.read_text()

    @property
    def runs(self) -> bool:
        return self.popen.poll() is None

    def wait(self) -> int:
        """Return the exit code."""
        try:
            return self.popen.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it goes on: {self.log}") from None

    def stop(self) -> int:
        """Tell it to stop, as the kubelet does, and return the exit code."""
        self.popen.send_signal(signal.SIGTERM)
        return self.wait()

    def end(self) -> None:
        """Kill it and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()


def _write(path: str, text: str, mode: int) -> None:
    file = Path(path)
    file.write_text(text)
    file.chmod(mode)


def _link_commands(folder: Path, shell: str) -> None:
    """Fill a folder with the commands of an image whose /bin/sh is this shell."""
    folder.mkdir()
    own = shutil.which(shell)
    assert own
    for command in COMMANDS.split():
        path = shutil.which(command)
        assert path, f"this machine has no {command}"
        (folder / command).symlink_to(own if shell == "busybox" else path)
    # images of Debian have dash and bash, those of Alpine have neither
    (folder / "sh").symlink_to(own)
    if shell == "bash":
        (folder / "bash").symlink_to(own)


class Pod:
    """One pod of a cluster. Its container can start again, with the same volumes."""

    def __init__(self, root: Path, shared: Path, shell: str, index: int, cluster: Mapping[str, Any]) -> None:
        """Make the files; ``cluster`` is the document, whose paths may begin with ROOT."""
        self.root, self.shared, self.shell, self.index = root, shared, shell, index
        self.home = root / "mnt"
        self.state = self.home / "config"
        self.run_folder = self.state / "run"
        self.told_to_stop = self.home / "told-to-stop"
        self.processes: list[Process] = []
        for folder in (self.home, root / "bin", root / "plays", root / "called", root / "home"):
            folder.mkdir(parents=True)
        self._commands()
        self._files(cluster)
        #: the container's environment
        self.environment = {
            "PATH": str(root / "bin"),
            "HOME": str(root / "home"),
            "SHELL": str(root / "bin/sh"),
            "MINICLUSTER_HOME": str(self.home),
            "JOB_COMPLETION_INDEX": str(index),
        }

    def _put(self, path: str, text: str, mode: int) -> None:
        """Make a file by a link to that of an earlier pod: to write all the programs takes longer than most tests."""
        text, name = for_tests(text)
        if ROOT in text:
            _write(path, text.replace(ROOT, str(self.root)), mode)
            return
        first = f"{self.shared}/{name}-{mode:o}"
        try:
            os.link(first, path)
        except FileNotFoundError:
            _write(first, text, mode)
            os.link(first, path)

    def _commands(self) -> None:
        first = self.shared / self.shell
        if not first.exists():
            _link_commands(first, self.shell)
        for path in first.iterdir():
            os.link(path, self.root / "bin" / path.name, follow_symlinks=False)
        here = Path(__file__).parent
        paths = {"here": self.root, "python": sys.executable, "broker": here / "broker_stand_in.py"}
        sets = "".join(f"{name}={shlex.quote(str(path))}\n" for name, path in paths.items())
        self.command("flux", f"#!/bin/sh\n{sets}{(here / 'flux_stand_in.sh').read_text()}")

    def _files(self, document: Mapping[str, Any]) -> None:
        here = {"spec": {"flux": {"container": {"disable": True, "mountPath": f"{ROOT}/mnt"}}}}
        cluster = load(json.loads(json.dumps(deep(document, here)).replace(f"{ROOT}/", f"{self.root}/")))
        config_map, secret = postrender.documents(cluster, lambda: (b"p" * 40, b"s" * 40))
        for folder, files in (("minicluster", config_map["data"]), ("curve", secret["stringData"])):
            (self.home / folder).mkdir()
            for file, text in files.items():
                self._put(f"{self.home}/{folder}/{file}", text, 0o555 if folder == "minicluster" else 0o440)

    def command(self, name: str, text: str) -> None:
        """Replace a command of the image, or add one."""
        path = self.root / "bin" / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def wrap(self, name: str, first: str) -> None:
        """Let a command of the image run a line of shell first."""
        real = self.root / "real" / name  # a busybox knows by this name what it is to do
        real.parent.mkdir(exist_ok=True)
        (self.root / "bin" / name).rename(real)
        self.command(name, f'#!/bin/sh\n{first}\nexec {real} "$@"\n')

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace a text in a file of the ConfigMap, which must have it."""
        path = self.home / "minicluster" / file
        text = path.read_text()
        assert old in text
        path.unlink()  # other pods have it too
        path.write_text(text.replace(old, new))
        path.chmod(0o755)

    def play(self, words: str, text: str) -> None:
        """Let calls of flux that begin with these words run a text for a shell."""
        (self.root / "plays" / words).write_text(text)

    def start(self, script: str = "entrypoint.sh", *args: str, **env: str) -> Process:
        """Start one of the scripts as the container's process."""
        argv = [str(self.root / "bin/sh"), str(self.home / "minicluster" / script), *args]
        log = self.root / f"log-{len(self.processes)}"
        self.processes.append(Process(log, argv, self.environment | env))
        return self.processes[-1]

    def renew(self) -> None:
        """Let the next process be that of a new pod, with the same claims: the volumes of the pod are empty."""
        shutil.rmtree(self.state)

    def run(self, script: str = "entrypoint.sh", *args: str, **env: str) -> tuple[int, str]:
        """Run one of the scripts to its end; return its exit code and its output."""
        process = self.start(script, *args, **env)
        return process.wait(), process.log

    def exec(self, text: str, **env: str) -> Done:
        """Run a text in the container's shell, as `kubectl exec` does."""
        done = subprocess.run(
            [self.root / "bin/sh", "-c", text],
            env=self.environment | env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def calls(self, *first: str) -> list[Call]:
        """Return the calls of flux that begin with these words. Of a path only the last part counts."""
        file = self.root / "calls"
        # the last line may be half written
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        found = [self._call(line.rstrip("\n")) for line in lines if line.endswith("\n")]
        return [call for call in found if [Path(word).name for word in call.words[: len(first)]] == list(first)]

    def _call(self, name: str) -> Call:
        environ, _, words = os.fsdecode((self.root / "called" / name).read_bytes()).partition("\0\0")
        env = dict(line.split("=", 1) for line in environ.split("\0") if line)
        return Call(words.split("\0")[:-1], env)

    def verbs(self) -> list[str]:
        """Return the first word of each call of flux, in order; of `flux python` also the program."""
        return [
            " ".join(call.words[:1] if call.words[0] != "python" else ["python", Path(call.words[1]).name])
            for call in self.calls()
        ]

    def attributes(self, call: Call) -> dict[str, str]:
        """Return the attributes that a broker was started with. When one is given twice, the last counts."""
        return dict(word[4:].split("=", 1) for word in call.words if word.startswith("-o-S"))

    def end(self) -> None:
        """Kill everything that runs."""
        for process in self.processes:
            process.end()


#: Makes a pod in a test: from values, fields of the runner, then index=, name=, shell=.
Make = Callable[..., Pod]
