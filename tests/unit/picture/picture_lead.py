"""A stand-in for the lead of a picture: a namespace with the MiniCluster mini, what observe.py would tell, its page."""

import asyncio
import json
import queue
import select
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fake_kube import FakeChannel, FakeKube
from status_samples import SETTINGS, flux
from status_samples import job as kubernetes_job
from status_samples import pod as plain_pod

if TYPE_CHECKING:
    from minicluster.picture.served import PageServer

START = 1_893_499_200.0  # 2030-01-01T12:00:00Z


def job(number: int, **fields: Any) -> dict[str, Any]:
    """Return the record of a job that has completed."""
    found = {"id": f"f{number}", "number": number, "name": "work", "state": "INACTIVE", "result": "COMPLETED"}
    times = {"t_submit": START - 1, "t_run": START, "t_cleanup": START + 62, "t_inactive": START + 63}
    where = {"nodes": "mini-[0-1]", "ranks": "0-1", "ntasks": 2, "ncores": 4, "user": {}}
    return {**found, "exit_code": 0, **where, **times, **fields}


def past(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the lead of four nodes tells at first."""
    return [
        {"ready": "0.88.0"},
        {"jobs": [*rows]},
        {"status": [SETTINGS, {**flux(), "waiting": [], "queue_problem": ""}], "now": START},
        {"past": True},
        {"nodes": [{"t": START - 50, "event": "online", "ranks": "0-3"}], "hosts": ["mini-[0-3]"]},
    ]


class TellingChannel:
    """The conversation with observe.py: what the test says comes out of it."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self.stderr = b""
        self._near, self._far = socket.socketpair()

    def wait(self, wake: socket.socket | None, seconds: float | None) -> bool:
        """Wait for what is told."""
        return bool(select.select([self._near, *([wake] if wake else [])], [], [], seconds)[0])

    def read(self) -> bytes | None:
        """Return it."""
        if not select.select([self._near], [], [], 0)[0]:
            return b""
        data = self._near.recv(1 << 16)
        if data:
            return data
        self.exit_code = 1
        return None

    def write(self, data: bytes) -> None:
        """Take the program."""

    def abort(self) -> None:
        """End."""

    def close(self) -> None:
        """End."""
        self._near.close()
        self._far.close()

    def say(self, **told: Any) -> None:
        """Tell an object."""
        self._far.sendall(json.dumps(told).encode() + b"\n")

    def end(self) -> None:
        """Let the program end."""
        with suppress(OSError):
            self._far.shutdown(socket.SHUT_WR)


class PictureLead:
    """The lead: each conversation with it is a `TellingChannel`, and `answers` are those about jobs, by their ids."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.changes: list[list[str]] = []  #: commands of flux, which it refuses if `refuses` says why
        self.refuses = ""
        self.talks: queue.Queue[TellingChannel] = queue.Queue()
        self._all: list[TellingChannel] = []
        pods = [plain_pod(index, uid=f"uid {index}") for index in range(4)]
        for each in pods:
            home = {"name": "MINICLUSTER_HOME", "value": "/mnt"}
            each["spec"] = {"containers": [{"name": "mini", "env": [home]}]}
        self.kube = FakeKube(has={"job": kubernetes_job(), "pods": pods}, commands=[self._run])

    def _run(self, words: Sequence[str]) -> Any:
        if words[0] == "/bin/sh":
            return FakeChannel(json.dumps(self.answers.get(words[-2], {"error": "no id"})).encode())
        if words[1] in ("cancel", "resource"):
            self.changes.append([*words])
            return FakeChannel(stderr=self.refuses.encode(), code=1 if self.refuses else 0)
        talk = TellingChannel()
        self._all.append(talk)
        self.talks.put(talk)
        return talk

    def talk(self) -> TellingChannel:
        """Return the next conversation."""
        return self.talks.get(timeout=20)

    def begin(self, rows: Sequence[dict[str, Any]] = (), **summary: Any) -> TellingChannel:
        """Tell the past to the next conversation."""
        talk = self.talk()
        talk.say(ready="0.88.0")
        talk.say(jobs=[*rows])
        talk.say(status=[SETTINGS, {**flux(**summary), "waiting": [], "queue_problem": ""}], now=START)
        talk.say(past=True)
        talk.say(nodes=[{"t": START - 60, "event": "restart", "ranks": "0-3"}], hosts=["mini-[0-3]"])
        talk.say(nodes=[{"t": START - 50, "event": "online", "ranks": "0-3"}])
        return talk

    def drop(self) -> None:
        """Close all."""
        for talk in self._all:
            talk.end()


class Served:
    """A server that runs in a thread of its own."""

    def __init__(self, server: "PageServer") -> None:
        self.pages, self._server, ready = server.pages, server, threading.Event()
        run = self._server.run(0, ready.set, takes_signals=False)
        self._thread = threading.Thread(target=lambda: asyncio.run(run))
        self._thread.start()
        assert ready.wait(20)

    def stop(self) -> None:
        """Stop it, as Ctrl-C does."""
        self._server.stop()
        self._thread.join(20)
        assert not self._thread.is_alive()
