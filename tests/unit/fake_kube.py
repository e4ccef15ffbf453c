"""The port to Kubernetes without a process: a namespace of objects, and a lead that a test plays."""

import copy
import select
import socket
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from minicluster.errors import AwayError, RefusedError
from minicluster.kube.port import WATCH_SECONDS, Forward, KubePort, Object, Sight
from minicluster.kube.tool import CommandError

#: An object or a list, an error, or a `Then` of them
Answer = Any


class Then(list[Answer]):
    """Answers one after the other; the last one stays."""

    def next(self) -> Answer:
        """Return the next one."""
        return self.pop(0) if len(self) > 1 else self[0]


def forbidden(what: str) -> RefusedError:
    """Return the error of a user without a right."""
    why = f'{what} is forbidden: User "u" cannot do that'
    return RefusedError(f"ask: {why}", why, 403)


def away() -> AwayError:
    """Return the error of an API server that is not there."""
    return AwayError("ask: no server", "the connection to the server x was refused")


class FakeChannel:
    """A command of a lead: what it prints and its exit code, or nothing, ever."""

    def __init__(self, out: bytes = b"", code: int = 0, stderr: bytes = b"", *, is_silent: bool = False) -> None:
        self.exit_code: int | None = None
        self.stderr, self._code, self._parts, self._is_silent = stderr, code, [out] if out else [], is_silent
        self.written = b""
        self.is_closed = False
        self._never, self._far = socket.socketpair()

    def wait(self, _wake: socket.socket | None, seconds: float | None) -> bool:
        """Return at once, or after the time."""
        return not self._is_silent or bool(select.select([self._never], [], [], seconds)[0])

    def read(self) -> bytes | None:
        """Return what comes."""
        if self._parts:
            return self._parts.pop(0)
        self.exit_code = self._code
        return None

    def write(self, data: bytes) -> None:
        """Keep it."""
        self.written += data

    def abort(self) -> None:
        """Wake a reader."""
        self._far.close()

    def close(self) -> None:
        """Note it."""
        self.is_closed = True
        self._never.close()
        self._far.close()


Run = Callable[[Sequence[str]], FakeChannel | Exception]


@dataclass(frozen=True)
class FakeKube(KubePort):
    """A namespace; ``has`` are the answers by kind: `job`, `pods`, `configmap`, …; `get` and `select` share them."""

    has: dict[str, Answer] = field(default_factory=dict)
    logs: dict[str, Answer] = field(default_factory=dict)  #: bytes by pod
    commands: list[Run] = field(default_factory=list)  #: what runs in a pod, one function
    ran: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    asked: list[tuple[str, ...]] = field(default_factory=list)
    patches: list[Any] = field(default_factory=list)
    helms: list[tuple[str, ...]] = field(default_factory=list)

    def _answer(self, kind: str, nothing: Answer) -> Answer:
        found = self.has.get(kind, nothing)
        found = found.next() if isinstance(found, Then) else found
        if isinstance(found, Exception):
            raise found
        return copy.deepcopy(nothing if found is None else found)

    def get(self, kind: str, name: str) -> Object:
        """Return an object."""
        self.asked.append(("get", kind, name))
        found: Object = self._answer(kind if kind != "job" or name == "mini" else f"job {name}", {})
        return found

    def select(self, kind: str, labels: str = "", fields: str = "") -> Object:
        """Return a list."""
        self.asked.append(("select", kind, labels or fields))
        return {"items": self._answer(kind, [])}

    def patch(self, _kind: str, _name: str, change: Object, _manager: str) -> Object | None:
        """Note a change; the answer is that of `patch`, by default a conflict."""
        self.patches.append(change)
        found: Object | None = self._answer("patch", {}) or None
        return found

    def made(self, what: Object) -> Object:
        """Return what is to be made, or the answer of `create KIND`."""
        kind = what["kind"].lower()
        self.asked.append(("create", kind, what["metadata"]["generateName"]))
        found: Object = self._answer(f"create {kind}", what)
        return found

    def sights(self, job: str, labels: str, every: float = WATCH_SECONDS) -> Iterator[Sight]:
        """Yield again and again until the deadline, a hundred times a second; each time something may be new."""
        self.asked.append(("sights", job, f"{every:g}"))
        while True:
            is_last = self.is_late
            yield Sight(self.get("job", job), self.select("pods", labels))
            if is_last:
                return
            time.sleep(0.01)

    def run(self, pod: str, _container: str, words: Sequence[str], *, has_input: bool = False) -> FakeChannel:
        """Run the test's function."""
        self.ran.append((pod, tuple(words)))
        done = self.commands[0](words)
        assert has_input in (True, False)
        if isinstance(done, Exception):
            raise done
        return done

    def forward(self, pod: str, port: int) -> Forward:
        """Forward nothing: who does has a kubectl."""
        raise NotImplementedError

    def log(
        self, pod: str, container: str = "", *, follow: bool = False, times: bool = False, tail: int | None = None
    ) -> Generator[bytes]:
        """Yield a log."""
        self.asked.append(("log", pod, container))
        assert not (follow and tail) and times in (True, False)
        if pod not in self.logs:
            raise RefusedError(f"log of pod {pod}: gone", "gone", 404)
        found = self.logs[pod].next() if isinstance(self.logs[pod], Then) else self.logs[pod]
        if isinstance(found, Exception):
            raise found
        # the parts are of any size
        yield from (found[place : place + 7] for place in range(0, len(found), 7))

    def helm(self, *words: str, stdin: str = "", seconds: float = 0) -> str:
        """Note what is asked of Helm; the answer is that of `helm`."""
        assert stdin is not None and seconds is not None
        self.helms.append(words)
        found = self.has.get("helm", "")
        if isinstance(found, CommandError):
            raise found
        return str(found.get(words[1], "") if isinstance(found, dict) else found)

    def __str__(self) -> str:
        """Name it."""
        return "namespace lab"
