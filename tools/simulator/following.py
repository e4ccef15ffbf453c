"""Bursts that follow the queue: `minicluster burst follow` as it ships, which may be killed and started again."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any

from minicluster.console import signals
from minicluster.errors import MiniClusterError
from minicluster.flux import parse_idset, to_idset
from minicluster.kube.tool import CommandError
from minicluster.render.load import load
from minicluster.render.refusals.bursts import BurstSpec

from tools.simulator.clock import Process, threading_module
from tools.simulator.commands import Commands
from tools.simulator.handle import Handle
from tools.simulator.helm import Helm
from tools.simulator.indexed_job import IndexedJob
from tools.simulator.kubernetes import Kubernetes
from tools.simulator.lead import LeadPrograms
from tools.simulator.setting import Setting

#: How long a job waits before a burst grows, hosts are not needed before it shrinks, and have to join
BACKLOG_SECONDS, IDLE_SECONDS, JOIN_SECONDS = 5.0, 45.0, 120.0
#: When somebody starts it again after its end, and how often its machine is lost, of all times that it is killed
START_SECONDS, LOST_PART = (1.0, 200.0), 0.5
#: How long it takes at most until nothing is left of the bursts of a root that has ended
END_SECONDS = 600.0
#: The Secret of a burst, by its name
CURVE_NAME = "{}-root-curve"
#: How often a root is deleted, of all times that it ends; and how often the command is killed then, of the others
DELETED_PART, KILLED_PART = 0.5, 0.5
#: When a Helm is in the midst of a removal, after its begin
MIDST_SECONDS = (0.0, 6.0)
#: How often the main thread looks whether the others have ended
JOIN_POLL_SECONDS = 10.0


@cache
def root_of(setting: Setting) -> Any:
    """Return the root."""
    bursting = {"clusters": [{"name": name, "size": size} for name, size in setting.bursts]}
    spec = {
        "size": setting.least,
        "maxSize": setting.most,
        "interactive": True,
        "containers": [{"image": "image", "cores": setting.cores}],
        "autoscaling": {"enabled": True, "min": setting.least, "max": setting.most},
        "flux": {"bursting": {**bursting, "expose": {"address": "lead:8050"}}},
    }
    return load({"metadata": {"name": "mc", "namespace": "ns"}, "spec": spec})


class Following:
    """The bursts of a MiniCluster, and the command that follows its queue."""

    def __init__(self, kubernetes: Kubernetes, lead: LeadPrograms, setting: Setting) -> None:
        self.kubernetes, self.lead, self.loop, self._root = kubernetes, lead, kubernetes.loop, root_of(setting)
        self._limits = [BurstSpec(name, 0, size, None, None) for name, size in setting.bursts]
        self.commands = Commands(kubernetes, lead, Helm(kubernetes, self._apply))
        self.commands.flux = self._flux
        certificate = base64.b64encode(b"certificate").decode()
        self.commands.secrets["mc-curve"] = {"data": {"curve.cert": certificate}}
        self.threads: list[Process] = []
        self.grown = 0  #: how often a burst grew
        self._end: Callable[[], None] = lambda: None
        self.start()

    def _apply(self, name: str, values: Mapping[str, Any]) -> None:
        """Make the Job of a burst, or change its size."""
        job, size = self.kubernetes.jobs[name], int(values["size"])
        assert size <= len(job.ranks), f"{name} gets {size} hosts, and {len(job.ranks)} are registered"
        assert CURVE_NAME.format(name) in self.commands.secrets, f"the pods of {name} have no certificate"
        self.grown += size > job.size
        if not job.is_there:
            job.make(size, {})
        elif not job.is_leaving:
            self._shrink(job, size)
            job.manifest["spec"].update(completions=size, parallelism=size)
        self.kubernetes.write(job.manifest)

    def _shrink(self, job: IndexedJob, size: int) -> None:
        if size < job.size:
            self.kubernetes.shrinks(job, size)

    def start(self) -> None:
        """Start the command, unless it runs."""
        if self.is_on:
            return
        programs = self.commands.programs(self._say, self._stand_ins())
        address = getattr(programs, "minicluster.burst.address")
        vars(address)["probe"] = lambda *_: address.Handshake.LEAD
        module, install = (getattr(programs, f"minicluster.burst.{name}") for name in ("followers", "install"))
        place = self.commands.port(programs)
        how = install.How(None, "chart", (), JOIN_SECONDS)
        bursts = [(limits, place) for limits in self._limits]
        request = module.FollowRequest(self._root, place, bursts, how, BACKLOG_SECONDS, IDLE_SECONDS)

        def work() -> None:
            try:
                module.follow(request)
            except MiniClusterError as error:
                self._say(f"it has ended: {error}")

        self.threads = []
        self._thread(work)

    @property
    def is_on(self) -> bool:
        """Whether it runs."""
        return any(not thread.is_over for thread in self.threads)

    def _say(self, text: str) -> None:
        self.lead.say(f"follow: {text}")

    def _thread(self, work: Callable[[], Any]) -> Process:
        self.threads.append(Process(self.loop, work, lambda: None))
        return self.threads[-1]

    def _stand_ins(self) -> dict[str, Any]:
        threads = threading_module(self.loop, self._thread)
        own = {**vars(signals), "handled": self._handled, "join": self._join}
        return {"threading": threads, "minicluster.console.signals": SimpleNamespace(**own)}

    @contextmanager
    def _handled(self, _: object, end: Callable[[], None]) -> Iterator[None]:
        self._end = end
        yield

    def _join(self, _: object) -> None:
        """Wait for the other threads."""
        while any(not thread.is_over for thread in self.threads[1:]):
            self.loop.sleep(JOIN_POLL_SECONDS)

    def _flux(self, words: Sequence[str]) -> str:
        """Answer a command of Flux on the lead. Raises CommandError."""
        try:
            return self._answer(Handle(self.kubernetes.instance, 0), words)
        except OSError as error:
            raise CommandError("kubectl exec", str(error)) from None

    def _answer(self, handle: Handle, words: Sequence[str]) -> str:
        its = handle.check()
        if words[1] == "status":
            return handle.ask(lambda: to_idset(its.online))
        if words[1] == "list":
            return handle.ask(lambda: f"all {to_idset(its.cores)}\nallocated {to_idset(its.used())}")
        if words[1] == "undrain":
            if missing := handle.ask(lambda: {*parse_idset(words[2])} - its.drained.keys()):
                raise CommandError("kubectl exec", f"rank {min(missing)} not drained")
            handle.rpc("resource.undrain", {"targets": words[2]})
            return ""
        if "--update" in words:
            handle.rpc("resource.drain", {"targets": words[3], "reason": words[4], "mode": "update"})
            return ""
        return handle.ask(lambda: "\n".join(f"{rank}|{reason}" for rank, (reason, _) in its.drained.items()))

    # people

    def kill(self, random: Random) -> None:
        """Kill the command, or lose its machine; somebody starts it again."""
        if self.is_on:
            self._say("it is killed")
            if random.random() < LOST_PART:
                self.commands.lose()
            for thread in self.threads:
                thread.kill()
            self.loop.at(random.uniform(*START_SECONDS), self.start)

    def kill_at_removal(self, random: Random) -> None:
        """Kill the command in the midst of the next removal."""

        def kill() -> None:
            self.commands.helm.removes = lambda: None
            self.loop.at(random.uniform(*MIDST_SECONDS), lambda: self.kill(random))

        self.commands.helm.removes = kill

    def stop(self, random: Random) -> None:
        """Tell the command to end; somebody starts it again."""
        if self.is_on:
            with suppress(KeyboardInterrupt):  # the second time
                self._end()
            self.loop.at(random.uniform(*START_SECONDS), self._start_again)

    def _start_again(self) -> None:
        """Start the command once it has finished what it had begun."""
        if self.is_on:
            self.loop.at(JOIN_POLL_SECONDS, self._start_again)
        self.start()

    def settle(self, run: Callable[[float], None], submit: Callable[[], None]) -> str:
        """Let a job need a burst that nothing disturbs, and return what is wrong then."""
        self.commands.helm.removes = lambda: None
        before = self.grown
        submit()
        run(4 * JOIN_SECONDS)
        times = self.grown - before
        return "" if times == 1 else f"bursts grew {times} times for one job"

    def left(self) -> list[str]:
        """Return what there is of the bursts."""
        names = [limits.name for limits in self._limits]
        secrets = [f"Secret {each}" for each in map(CURVE_NAME.format, names) if each in self.commands.secrets]
        releases = [f"release {name}" for name in names if self.commands.helm.releases.get(name)]
        return [*(f"Job {name}" for name in names if self.kubernetes.jobs[name].is_there), *releases, *secrets]

    def end_root(self, run: Callable[[float], None], submit: Callable[[], object]) -> str:
        """Let the root end, or delete it, while a job runs on a burst, and return what is wrong then."""
        kubernetes, random = self.kubernetes, self.kubernetes.random
        submit()
        run(JOIN_SECONDS)
        if random.random() < DELETED_PART:
            kubernetes.delete(kubernetes.own)
        else:
            kubernetes.instance.lose(0)
            for job in kubernetes.jobs.values():
                job.has_ended = True
            kubernetes.reconcile_soon()
            if random.random() < KILLED_PART:
                self.loop.at(random.uniform(0.0, JOIN_SECONDS), lambda: self.kill(random))
        run(END_SECONDS)
        left = self.left()
        return f"the root has ended, and there is the {', '.join(left)}" if left else ""

    def end(self) -> None:
        """End all."""
        for thread in self.threads:
            thread.kill()
        self.commands.end()
