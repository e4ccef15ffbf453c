"""What runs beside the lead's broker: the agent and the undrainer, as the lead's scripts start and stop them."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from tools.simulator.clock import Loop, Process, threading_module
from tools.simulator.flux_modules import modules
from tools.simulator.handle import Handle
from tools.simulator.kubernetes import Kubernetes
from tools.simulator.shipped import Folder, Machine, Programs, text_file

#: What wakes the agent
AGENT_STREAMS = ("jobs", "nodes", "size", "starts")
#: After a change they look so much later
SETTLED_SECONDS = 0.05


class LeadPrograms:
    """The programs that run while there is a lead."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        settings: Mapping[str, Any],
        preemption: Sequence[str],
        texts: Mapping[str, tuple[str, str]],
        say: Callable[..., None],
    ) -> None:
        """Take the settings of the agent, `flux.preemption`, changes of the programs' texts, and their log."""
        self.kubernetes, self.flux = kubernetes, kubernetes.instance
        self.loop, self.random = self.flux.loop, self.flux.random
        self._settings, self._preemption, self.texts, self.say = settings, preemption, texts, say
        self.running: dict[str, list[Process]] = {}  #: the threads of each program
        self.listeners: dict[str, list[Listener]] = {}  #: what wakes them
        self.records: dict[int, dict[str, Any]] = {}  #: of the history, on a claim
        self.channels: dict[object, Any] = {}  #: the connections to it, by who has them
        self.flux.lead_ended = self._end_channels
        self.programs = self.load("agent")

    def load(self, name: str) -> Programs:
        """Load the programs as a new process does."""
        stand_ins = {**modules(self.flux), "os": Machine(self._signal)}
        stand_ins["threading"] = threading_module(self.loop, partial(self._thread, name))
        # the volume is never full, its store never large
        stand_ins["saved"] = SimpleNamespace(problem=lambda _: "", state_folder=None)
        compaction = SimpleNamespace(look=lambda _: "")
        stand_ins["kvs_cleanup"] = SimpleNamespace(
            Compaction=lambda _: compaction, remove_empty_directories=lambda _: None
        )
        programs = self.programs_with(stand_ins)
        listen = self.listeners.setdefault(name, [])
        programs.changes.Changes = type("Changes", (Listener,), {"loop": self.loop, "others": listen})
        error = programs.kube.KubeError

        def call(_: object, method: str, path: str, body: Any = None, *_kind: str) -> Any:
            return self.kubernetes.call(error, method, path, body)

        programs.kube.Kube.call = call
        return programs

    def _end_channels(self) -> None:
        for channel in [*self.channels.values()]:
            channel.end()

    def programs_with(self, stand_ins: Mapping[str, Any], say: Callable[..., None] | None = None) -> Programs:
        """Return the programs of a process, with what stands for other modules there, and for `print`."""
        programs = Programs({**stand_ins, "time": self.loop.time_module()}, say or self.say, self.texts)
        programs.history.History = lambda _: Records(self.records)
        programs.history.folder = Folder
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
            self.programs.agent.work(agent, Listener.of(self.loop, self.listeners["agent"], AGENT_STREAMS))

        self._start("agent", work)

    def start_undrainer(self) -> None:
        """Start the undrainer; one that runs is killed."""
        module = self.load("undrainer").undrainer
        settings = text_file(lambda: json.dumps(self._settings))
        self._start("undrainer", lambda: module.main("requeue", True, self._preemption, settings))

    def _start(self, name: str, work: Callable[[], None]) -> None:
        self._stop(name)
        if self.flux.is_alive:
            self._thread(name, work)

    def _stop(self, name: str) -> None:
        for thread in self.running.pop(name, []):
            thread.kill()
        self.listeners.get(name, []).clear()

    def _thread(self, name: str, work: Callable[[], Any]) -> None:
        """Start a thread of a program, which ends with it."""
        thread = Process(self.loop, work, lambda: self._fail(name, thread))
        self.running.setdefault(name, []).append(thread)

    def _fail(self, name: str, thread: Process) -> None:
        """Start a program again of which a thread has failed, unless its broker is gone."""
        if thread.has_failed and thread in self.running.get(name, []):
            self._stop(name)
            start = {"agent": self.start_agent, "undrainer": self.start_undrainer}[name]
            self.loop.at(10.0, partial(self._if_lives, self.flux.generation, start))

    def wake(self, what: str) -> None:
        """Wake the programs for which a change is."""
        for listeners in self.listeners.values():
            for listener in listeners:
                listener.hear(what)

    def end(self) -> None:
        """End all."""
        for name in [*self.running]:
            self._stop(name)


class Records:
    """What stands for the history."""

    def __init__(self, records: dict[int, dict[str, Any]]) -> None:
        self._records = records

    def append(self, lines: Iterable[str]) -> None:
        """Add lines."""
        self._records.update((record["number"], record) for record in map(json.loads, lines))

    def last(self) -> dict[int, dict[str, Any]]:
        """Return the last records."""
        return dict(self._records)

    def record(self, number: int) -> dict[str, Any] | None:
        """Return the record of a job."""
        return self._records.get(number)

    def find(self, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], dict[str, Any]]]:
        """Yield the records in which a pattern is."""
        for record in [*self._records.values()]:
            if match := pattern.search(json.dumps(record)):
                yield match, record


class Listener:
    """What stands for the `Changes` of a program."""

    loop: Loop
    others: list["Listener"]

    def __init__(self, _handle: object, names: Collection[str] = (), _groups: object = ()) -> None:
        """Listen to changes."""
        self._names, self._has_changed = names, False
        self._napping: Process | None = None
        self.others.append(self)

    @classmethod
    def of(cls, loop: Loop, others: list["Listener"], names: Collection[str]) -> "Listener":
        """Return one for a program that has no module `changes`."""
        made: Listener = type("Changes", (cls,), {"loop": loop, "others": others})(None, names)
        return made

    def wait(self, least: float, most: float) -> None:
        """Let a program wait, as `Changes.wait` does."""
        end = self.loop.now + most
        self.loop.sleep(min(least, most))
        if not self._has_changed:
            self._napping = self.loop.running
            self.loop.sleep(max(0.0, end - self.loop.now))
            self._napping = None
        self._has_changed = False

    def hear(self, what: str) -> None:
        """Wake the program if a change is for it."""
        if what in self._names:
            self._has_changed = True
            if self._napping:
                self._napping.wake(SETTLED_SECONDS)
                self._napping = None
