"""What the commands of `minicluster` run: kubectl and Helm, with their own port to Kubernetes on top."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

from minicluster.console import signals, streams
from minicluster.errors import AwayError
from minicluster.kube import tool as kube_tool
from minicluster.kube.tool import CommandError

from tools.simulator.channel import SENT_STAND_IN, Channel
from tools.simulator.clock import Condition, Process
from tools.simulator.helm import Helm
from tools.simulator.kubernetes import Kubernetes
from tools.simulator.lead import LeadPrograms
from tools.simulator.objects import config_object, job_object, pod_object, select
from tools.simulator.shipped import Programs

#: Until what is watched is looked at again
WATCH_SECONDS = (0.5, 2.0)
#: How often a command is killed together with the Helm that it runs, and its connections end at once
TOGETHER_PART = 0.5


class Commands:
    """A machine on which a user runs commands."""

    def __init__(self, kubernetes: Kubernetes, lead: LeadPrograms, helm: Helm) -> None:
        self.kubernetes, self.lead, self.helm = kubernetes, lead, helm
        self.loop, self.random = kubernetes.loop, kubernetes.random
        self.helms: list[Process] = []
        self.channels: list[Channel] = []
        lead.channels[self] = SimpleNamespace(end=self._end_channels)
        self.secrets: dict[str, Any] = {}
        self.flux: Callable[[Sequence[str]], str] = lambda _: ""  #: answers a command of Flux on the lead

    def programs(self, say: Callable[[str], None], own: Mapping[str, Any] | None = None) -> Programs:
        """Return the programs of a command; its kubectl and Helm are the model's, and ``own`` stands for more."""
        stand_ins = {
            **SENT_STAND_IN,
            "minicluster.console.streams": SimpleNamespace(**{**vars(streams), "say": say, "waiting": nullcontext}),
            "minicluster.console.signals": signals,
            "minicluster.kube.tool": SimpleNamespace(**{**vars(kube_tool), "run": self.run}),
        }
        return self.lead.programs_with({**stand_ins, **(own or {})})

    def port(self, programs: Programs) -> Any:
        """Return the namespace for the programs of a command."""
        module: ModuleType = getattr(programs, "minicluster.kube.kubectl")
        own = {
            "sights": lambda port, job, labels, every=0.0: self._sights(port, job, labels, every),
            "run": lambda _, pod, *__, **___: self._start(pod),
        }
        kind = type("Kubernetes", (module.Kubernetes,), own)
        return kind(namespace="ns", is_apart=True)

    def _sights(self, port: Any, job: str, labels: str, _: float) -> Iterator[Any]:
        """Yield a Job and its pods now and then, which stands for a watch."""
        while True:
            is_last = port.is_late
            yield port._sight(job, labels)
            if is_last:
                return
            self.loop.sleep(self.random.uniform(*WATCH_SECONDS))

    def _start(self, pod: str) -> Channel:
        """Start a command in a pod. Raises AwayError."""
        lead = self.kubernetes.pods.get(0)
        is_there = lead and lead.runs and pod == pod_object(self.kubernetes, lead)["metadata"]["name"]
        self.kubernetes.request(AwayError, lambda: None, changes=False)
        if not is_there or 0 not in self.kubernetes.instance.brokers:
            raise AwayError(f"pod {pod} does not run")
        self.channels.append(Channel(self.kubernetes, self.lead))
        return self.channels[-1]

    def _end_channels(self) -> None:
        for channel in self.channels:
            channel.end()
        self.channels.clear()

    def run(self, tool: str, words: Sequence[str], *, stdin: str = "", seconds: float, **_: Any) -> Any:
        """Run kubectl or Helm. Raises CommandError."""
        where = ("--namespace=", "--context=", "--kube-context=")
        words = [word for word in words if not word.startswith(where)]
        answer = self._helm(words, stdin, seconds) if tool == "helm" else self._kubectl(words, stdin)
        return SimpleNamespace(stdout=answer.encode(), stderr=b"")

    def _helm(self, words: Sequence[str], stdin: str, seconds: float) -> str:
        """Run a Helm, which may go on when the command is killed."""
        came: list[str | CommandError] = []
        ended = Condition(self.loop)

        def work() -> None:
            try:
                came.append(self.helm.run(words, stdin))
            except CommandError as error:
                came.append(error)
            ended.notify_all()

        process = Process(self.loop, work, lambda: None)
        self.helms.append(process)
        try:
            ended.wait_for(lambda: came, seconds)
        except BaseException:
            if self.random.random() < TOGETHER_PART:
                process.kill()
            raise
        if not came:
            process.kill()
            raise CommandError(f"helm {words[0]}", f"no answer within {seconds:g} s")
        if isinstance(came[0], CommandError):
            raise came[0]
        return came[0]

    def _kubectl(self, words: Sequence[str], stdin: str) -> str:  # noqa: PLR0911 - one for each command
        command, *rest = words
        options: Mapping[str, str] = dict(word.partition("=")[::2] for word in rest if word.startswith("-"))
        names = [word for word in rest if not word.startswith("-")]

        def away(why: str) -> CommandError:
            return CommandError(f"kubectl {command}", f"Unable to connect to the server: {why}")

        def ask(answer: Callable[[], Any], *, changes: bool = False) -> str:
            found = self.kubernetes.request(away, answer, changes=changes)
            return found if isinstance(found, str) else json.dumps(found) if found else ""

        if command == "version":
            return ask(lambda: {"serverVersion": {"gitVersion": "v1.36.0"}})
        if command == "get":
            return ask(lambda: self._get(names, options.get("--selector", "")))
        if command == "delete" and "--raw" in options:
            return ask(lambda: self._delete_job(options["--raw"], json.loads(stdin)), changes=True)
        if command == "delete":
            return ask(lambda: self._delete(names[1]), changes=True)
        if command == "apply":
            thing = json.loads(stdin)
            return ask(lambda: self.secrets.update({thing["metadata"]["name"]: thing}), changes=True)
        if command == "exec":
            ask(lambda: "")
            return self.flux(rest[rest.index("--") + 2 :])
        assert command in ("create", "logs"), words
        return ask(lambda: "")

    def _get(self, names: Sequence[str], labels: str) -> Any:
        if len(names) == 1:
            return select(self.kubernetes, names[0], labels)
        kind, name = names
        if kind == "job":
            return job_object(self.kubernetes, name)
        return config_object(self.kubernetes) if name == "mc-config" else self.secrets.get(name)

    def _delete_job(self, path: str, body: Mapping[str, Any]) -> str:
        job = self.kubernetes.jobs[path.rpartition("/")[2]]
        if not job.is_there:
            raise CommandError("kubectl delete", "Error from server (NotFound): it is gone")
        metadata = job.manifest["metadata"]
        if any(metadata[key] != value for key, value in body["preconditions"].items()):
            raise CommandError("kubectl delete", "Error from server (Conflict): it has changed")
        self.kubernetes.delete(job)
        return ""

    def _delete(self, name: str) -> str:
        """Delete a Secret, which may be the record of a revision of Helm."""
        self.secrets.pop(name, None)
        if match := re.fullmatch(r"sh\.helm\.release\.v1\.(.+)\.v(\d+)", name):
            revisions = self.helm.releases.get(match[1], [])
            revisions[:] = [each for each in revisions if each.number != int(match[2])]
        return ""

    def lose(self) -> None:
        """Lose the machine at once: nobody is told that its connections have ended."""
        for channel in self.channels:
            channel.cut(is_silent=True)
        self.channels.clear()

    def end(self) -> None:
        """End all."""
        for process in self.helms:
            process.kill()
