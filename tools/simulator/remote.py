"""The program that a client of the SDK runs on the lead, remote.py: its reactor, its Flux and its pipes."""

import errno
import json
from collections import deque
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from tools.simulator.answer import Answer, Submission
from tools.simulator.clock import EPOCH_SECONDS, FOREVER_SECONDS, Process, threading_module
from tools.simulator.flux_modules import modules
from tools.simulator.handle import Handle
from tools.simulator.lead import LeadPrograms
from tools.simulator.shipped import Machine

#: How long an answer is on its way
ANSWER_SECONDS = (0.001, 0.05)
#: Seconds by which the events of a job are stored later than they are told
STORED_SECONDS = 0.1


class Watcher:
    """A watcher of a file or of time."""

    def start(self) -> None:
        """Do nothing: a pipe takes all at once."""

    stop = start

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, *_: object) -> None:
        """End."""


class Reactor(Handle):
    """A connection to the lead's broker with a reactor: what happens is done one after the other."""

    remote: "Remote"

    def soon(self, event: Callable[[], None]) -> None:
        """Let something happen in the broker, soon, if it lives on."""
        its = self.instance
        its.loop.at(self.random_delay(), partial(its.if_lives, self.generation, event))

    def random_delay(self) -> float:
        """Return how long an answer is on its way."""
        return self.instance.random.uniform(*ANSWER_SECONDS)

    def post(self, callback: Callable[[], None]) -> None:
        """Let the program do something."""
        self.remote.do(callback)

    def listen(self, tell: Callable[[Any], None]) -> None:
        """Let the program hear of the events of all jobs."""
        self.remote.hears.append(tell)

    def rpc(self, topic: str, payload: Any = None, *_: int, **__: int) -> Any:
        """Ask a service."""
        name = f"_{topic.replace('.', '_').replace('-', '_')}"
        if not hasattr(self, name):
            return super().rpc(topic, payload)
        answer = Answer(self, lambda: getattr(self, name)(payload))
        answer.is_streaming = topic == "job-manager.events-journal"
        return answer

    def _job_manager_events_journal(self, _: Any) -> None:
        raise AssertionError

    def _state_machine_wait(self, _: Any) -> dict[str, Any]:
        return {}

    def _kvs_commit(self, _: Any) -> dict[str, Any]:
        return {}

    def _job_info_lookup(self, payload: Any) -> dict[str, str]:
        job = self.check().jobs.get(payload["id"])
        if not job:
            raise FileNotFoundError(errno.ENOENT, "No such job")
        now = EPOCH_SECONDS + self.instance.loop.now
        past = [json.dumps(event) for event in job.events if event["timestamp"] < now - STORED_SECONDS]
        return {"jobspec": json.dumps(job.jobspec), "eventlog": "\n".join(past)}

    def _job_list_list_id(self, payload: Any) -> dict[str, Any]:
        job = self.check().jobs.get(payload["id"])
        if not job:
            raise FileNotFoundError(errno.ENOENT, "No such job")
        # the list of a Flux that tells where a job ran with its events is not behind them
        return {"job": {**job.fields, "id": job.number, "state": job.state}}

    def fd_watcher_create(self, number: int, callback: Callable[..., None], _: int) -> Watcher:
        """Watch standard input."""
        if number == 0:
            self.remote.readable = callback
        return Watcher()

    def timer_watcher_create(self, seconds: float, callback: Callable[[], None], repeat: float) -> Watcher:
        """Call a function again and again."""

        def due() -> None:
            if not self.remote.process.is_over:
                self.post(callback)
                self.instance.loop.at(repeat, due)

        self.instance.loop.at(seconds, due)
        return Watcher()

    def reactor_stop(self) -> None:
        """End the program."""
        self.remote.is_stopped = True

    def reactor_run(self) -> None:
        """Do what there is to do, until the program is to end."""
        while not self.remote.is_stopped:
            while self.remote.calls and not self.remote.is_stopped:
                self.remote.calls.popleft()()
            self.check()
            if not self.remote.is_stopped:
                self.remote.is_idle = True
                self.instance.loop.sleep(FOREVER_SECONDS)


class Remote:
    """remote.py, as it runs for one connection."""

    def __init__(self, lead: LeadPrograms, send: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        """Start it; ``send`` takes what it writes."""
        self.flux, self.input = lead.flux, deque[bytes]()
        self.calls: deque[Callable[[], None]] = deque()
        self.hears: list[Callable[[Any], None]] = []
        self.readable: Callable[[], None] = lambda: None
        self.is_stopped, self.is_idle, self._ended = False, False, ended
        self.threads: list[Process] = []
        programs = lead.programs_with(self._stand_ins(send))
        self.flux.journals.append(self._hear)
        programs.replies.end_former = self._end_former
        self.process = Process(self.flux.loop, programs.remote.main, self._end)

    def _end_former(self, client: str) -> None:
        former = self.flux.clients.get(client)
        if former:
            self.flux.loop.sleep(self.flux.random.uniform(0.001, 0.1))
            former()
        self.flux.clients[client] = self.close

    def _thread(self, work: Callable[[], Any]) -> None:
        self.threads.append(Process(self.flux.loop, work, lambda: None))

    def _stand_ins(self, send: Callable[[bytes], None]) -> dict[str, Any]:
        handle, flux = type("Flux", (Reactor,), {"remote": self}), modules(self.flux)
        job = SimpleNamespace(**vars(flux["flux.job"]))
        job.event_watch_async = lambda of, *_, **__: Answer(of, lambda: None)
        job.submit_async = lambda of, spec: Submission(of, spec.jobspec)
        job.cancel_async = lambda of, number, note: Answer(of, lambda: of.check().cancel(int(number), note) or {})
        top = SimpleNamespace(**{**vars(flux["flux"]), "job": job, "Flux": lambda: handle(self.flux, 0)})
        pipe = SimpleNamespace(fileno=lambda: 1)
        system = SimpleNamespace(stdout=pipe, stderr=pipe, path=[], argv=[])

        def write(_: int, data: bytes) -> int:
            send(bytes(data))
            return len(data)

        machine = Machine(lambda *_: None)
        vars(machine).update(read=self._read, write=write, set_blocking=lambda *_: None)
        no_output = SimpleNamespace(LiveOutput=lambda *_: SimpleNamespace(look=lambda _: None))
        threads = threading_module(self.flux.loop, self._thread)
        own = {"sys": system, "os": machine, "threading": threads, "live_output": no_output}
        return {**flux, "flux": top, "flux.job": job, **own}

    def _read(self, *_: int) -> bytes:
        return self.input.popleft()  # the client has written it

    def _hear(self, number: int, event: dict[str, Any]) -> None:
        for tell in self.hears:
            tell({"id": number, "events": [event]})

    def take(self, data: bytes) -> None:
        """Take what the client has written; b"" is its end."""
        if not self.process.is_over:
            self.input.append(data)
            self.do(self.readable_now)

    def do(self, call: Callable[[], None]) -> None:
        """Let the program do something, after what it does."""
        self.calls.append(call)
        if self.is_idle:
            self.is_idle = False
            self.process.wake(0.0)

    def readable_now(self) -> None:
        """Let the program read."""
        if self.input:
            self.readable()

    def _end(self) -> None:
        self.close()
        self._ended()

    def close(self) -> None:
        """End it."""
        for process in (*self.threads, self.process):
            process.kill()
        if self._hear in self.flux.journals:
            self.flux.journals.remove(self._hear)
