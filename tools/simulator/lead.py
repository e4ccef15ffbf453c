"""What runs beside the lead's broker: the agent and the undrainer, as the lead's scripts start and stop them."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

from tools.simulator.clock import Process, threading_module
from tools.simulator.handle import Handle, modules
from tools.simulator.instance import Instance
from tools.simulator.kubernetes import Kubernetes
from tools.simulator.shipped import Machine, Programs, text_file

#: What wakes the programs of the lead
STREAMS = {"agent": ("jobs", "nodes", "size", "starts"), "undrainer": ("nodes", "exceptions")}
#: After a change they look so much later
SETTLED_SECONDS = 0.05


class LeadPrograms:
    """The programs that run while there is a lead."""

    def __init__(
        self,
        flux: Instance,
        kubernetes: Kubernetes,
        settings: Mapping[str, Any],
        texts: Mapping[str, tuple[str, str]],
        say: Callable[..., None],
    ) -> None:
        """Take the settings of the agent, changes of the programs' texts, and what is told of their lines."""
        self.flux, self.kubernetes, self.loop, self.random = flux, kubernetes, flux.loop, flux.random
        self._settings, self._texts, self._say = settings, texts, say
        self.programs = self.load()
        self.running: dict[str, Process] = {}
        self.napping: set[str] = set()  #: programs that wait for a change
        self.changed: set[str] = set()  #: programs that are to look

    def load(self) -> Programs:
        """Load the programs as a new process does."""
        stand_ins = {**modules(self.flux), "time": self.loop.time_module(), "os": Machine(self._signal)}
        stand_ins["threading"] = threading_module(self.loop)
        # the volume is never full
        stand_ins["saved"] = SimpleNamespace(problem=lambda _: "", state_folder=None)
        programs = Programs(stand_ins, self._say, self._texts)
        error = programs.kube.KubeError

        def call(_: object, method: str, path: str, body: Any = None, *_kind: str) -> Any:
            return self.kubernetes.call(error, method, path, body)

        programs.kube.Kube.call = call
        return programs

    def _signal(self, pid: int, _signum: int) -> None:
        index = pid - 1000
        self.loop.at(self.random.uniform(0.0, 0.3), lambda: self.kubernetes.terminate(index))

    def begin(self) -> None:
        """Start the programs of a new lead."""
        generation = self.flux.generation
        for least, most, start in ((0.5, 2.0, self.start_undrainer), (1.0, 4.0, self.start_agent)):
            self.loop.at(self.random.uniform(least, most), partial(self._if_lives, generation, start))

    def _if_lives(self, generation: int, start: Callable[[], None]) -> None:
        """Start a program if the lead is still the same."""
        if self.flux.is_alive and generation == self.flux.generation:
            start()

    def start_agent(self) -> None:
        """Start the agent; one that runs is killed."""
        settings = json.dumps(self._settings)
        problems = SimpleNamespace(write=lambda _: None)

        def work() -> None:
            agent = self.programs.agent.Agent(Handle(self.flux, 0), text_file(lambda: settings), problems)
            self.programs.agent.work(agent, self._changes("agent"))

        self._start("agent", work)

    def start_undrainer(self) -> None:
        """Start the undrainer; one that runs is killed."""
        programs = self.load()
        module = programs.undrainer

        def work() -> None:
            handle = Handle(self.flux, 0)
            copies = programs.put_back.Copies()
            self.flux.service = lambda wanted: programs.put_back.make_copies(handle, wanted, copies)
            module.undrain(handle, module.replaced_ranks(handle))
            module.watch(handle, programs.losses.Losses(handle, "requeue", copies), self._changes("undrainer"))

        self._start("undrainer", work)

    def _start(self, name: str, work: Callable[[], None]) -> None:
        if name in self.running:
            self.running.pop(name).kill()
        self.napping.discard(name)
        self.changed.discard(name)
        if self.flux.is_alive:
            self.running[name] = Process(self.loop, work, lambda: self._start_again(name))

    def _start_again(self, name: str) -> None:
        """Start a program that has failed, unless its broker is gone."""
        generation = self.flux.generation
        start = {"agent": self.start_agent, "undrainer": self.start_undrainer}[name]
        self.loop.at(10.0, partial(self._if_lives, generation, start))

    def _changes(self, name: str) -> SimpleNamespace:
        """Return what stands for the `Changes` of a program."""
        return SimpleNamespace(wait=partial(self._wait_for_change, name))

    def _wait_for_change(self, name: str, least: float, most: float) -> None:
        """Let a program wait, as `Changes.wait` does."""
        end = self.loop.now + most
        self.loop.sleep(min(least, most))
        if name not in self.changed:
            self.napping.add(name)
            self.loop.sleep(max(0.0, end - self.loop.now))
            self.napping.discard(name)
        self.changed.discard(name)

    def wake(self, what: str) -> None:
        """Wake the programs for which a change is."""
        for name in (name for name, streams in STREAMS.items() if what in streams):
            self.changed.add(name)
            if name in self.napping:
                self.napping.discard(name)
                self.running[name].wake(SETTLED_SECONDS)

    def end(self) -> None:
        """End all."""
        for program in self.running.values():
            program.kill()
