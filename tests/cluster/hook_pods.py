"""Plays the pods of the hooks of `upgrade.replace`: runs their program with the token of their account."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from quick import QuickCluster
from support import hook_program

from tools.clients import ProcessError
from tools.releases import Release


def load() -> ModuleType:
    """Return the program, which a test may change."""
    program = hook_program()
    program.__dict__["PAUSE"] = program.server.__dict__["PAUSE"] = 0.1
    return program


@dataclass
class HookPods:
    """The hook pods of a release, by a thread."""

    release: Release
    folder: Path
    program: ModuleType = field(default_factory=load)
    said: list[str] = field(default_factory=list)  #: what the pods printed
    tells_checks: bool = False  #: whether `said` has what the pods that check printed
    played: set[str] = field(default_factory=set)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Play the pods until the test ends."""
        while not self.stop.wait(0.2):
            for pod in self.release.items("pods"):
                name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
                begun = pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
                if "-replace-" in name and begun and uid not in self.played:
                    self.played.add(uid)
                    self._play(pod)

    def _play(self, pod: dict[str, Any]) -> None:
        release = self.release
        assert isinstance(release.cluster, QuickCluster)
        config = json.loads(release.cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
        plan = json.loads(release.get("configmap", f"{release.name}-replace")["data"]["jobs.json"])
        token = release.cluster.token(release.namespace, pod["spec"]["serviceAccountName"])
        (self.folder / "token").write_text(token)
        (self.folder / "namespace").write_text(release.namespace)
        (self.folder / "ca.crt").write_text(Path(config["certificate-authority"]).read_text())
        jobs = self.program.Jobs(config["server"], self.folder)
        action, name = pod["spec"]["containers"][0]["command"][-2], pod["metadata"]["name"]
        try:
            said = self.program.run(jobs, action, plan, name)
            self.said += [said] if action != "check" or self.tells_checks else []
            code = 0
        except (self.program.ReplaceError, InterruptedError) as error:
            self.said.append(str(error))
            code = 1
        try:
            if len(pod["spec"]["containers"]) == 1:
                release.cluster.end_pod(release.namespace, name, code)
        except ProcessError as error:
            self.said.append(str(error))  # a test compares what was said


@contextmanager
def playing(release: Release, folder: Path) -> Iterator[HookPods]:
    """Play the hook pods of a release meanwhile."""
    pods = HookPods(release, folder)
    thread = threading.Thread(target=pods.run, daemon=True)
    thread.start()
    try:
        yield pods
    finally:
        pods.stop.set()
        thread.join(30)
