"""A client's conversation with the lead: one thread submits all jobs, and follows them to their ends.

remote.py runs on the lead as long as the connection holds. If the connection breaks, or the lead is replaced, the next
remote.py gets all open requests.
"""

import contextlib
import logging
import socket
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakSet

from minicluster.console import signals
from minicluster.console.messages import counted
from minicluster.errors import AccessError, KubernetesError, MiniClusterError, RefusedError
from minicluster.kube.outage import OUTAGE_SECONDS, RETRY_SECONDS, Outage
from minicluster.kube.port import Channel
from minicluster.lead.ask import BrokenError, Conversation
from minicluster.lead.program import first_line
from minicluster.sdk.exceptions import ClosedError, SdkError, meant
from minicluster.sdk.lead import LOG, QUIET_SECONDS
from minicluster.sdk.requests import LeadRequest, Message

#: The most seconds until the lead is asked again, which costs a kubectl
LONGEST_PAUSE_SECONDS = 15.0
#: Seconds that the end of the program waits until the lead knows of its jobs and cancellations
KNOWN_SECONDS = 30.0
#: Jobs that may wait for Flux's first answer. More would keep Flux from all else, and a lost connection would leave
#: more of them in doubt
DOUBTFUL_REQUESTS = 100
_SESSIONS: WeakSet["Session"] = WeakSet()


class Session:
    """A thread that talks to the lead while there are open requests."""

    def __init__(self, connect: Callable[[threading.Event, Callable[[str], None]], Channel]) -> None:
        """Make it; ``connect`` starts BOOT on the lead: it gets what stops it, and what takes why there is none yet."""
        self._connect = connect
        self._begin_anew()
        signals.keep_after_fork(self)
        _SESSIONS.add(self)

    def _begin_anew(self) -> None:
        self._name = uuid.uuid4().hex
        self._open: dict[str, LeadRequest] = {}
        self._outbox: deque[Message] = deque()
        self._unanswered: set[str] = set()
        self._changed = threading.Condition()
        self._is_connected = self._was_connected = self._has_told = False
        self.problem = ""  #: why there is no connection
        self._stop = threading.Event()
        # made with the thread: a client that only reads Kubernetes needs neither
        self._reader: socket.socket | None = None
        self._waker: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="minicluster-session", daemon=True)

    def after_fork(self) -> None:
        """Talk to the lead by a thread and a connection of one's own, in a child; what is open is its parent's."""
        was_closed, requests = self._stop.is_set(), list(self._open.values())
        for one in filter(None, (self._reader, self._waker)):
            one.close()
        self._begin_anew()
        if was_closed:
            self._stop.set()
        for request in requests:
            request.leave()

    def send(self, request: LeadRequest) -> None:
        """Send a request. Raises ClosedError."""
        with self._changed:
            if self._stop.is_set():
                raise ClosedError("the MiniCluster was closed: connect to it again")
            if not self._waker:
                self._reader, self._waker = socket.socketpair()
                self._waker.setblocking(False)
                self._reader.setblocking(False)
                self._thread.start()
            self._open[request.key] = request
            # without a connection it is sent as soon as there is one
            self._say([request.message()] if self._is_connected else [])

    def say(self, request: LeadRequest, messages: list[Message], *, is_last: bool = False) -> None:
        """Send more messages of an open request; after the last ones nobody waits for it."""
        with self._changed:
            if messages and request.key in self._open and self._is_connected:
                self._say(messages)
            if is_last:
                self._open.pop(request.key, None)
            self._changed.notify_all()

    def open_requests(self) -> list[LeadRequest]:
        """Return the requests that are not over."""
        with self._changed:
            return [*self._open.values()]

    def settle(self, seconds: float) -> None:
        """Wait until the lead knows of all jobs and cancellations; log of how many it does not."""

        def owed() -> int:
            return sum(request.is_owed for request in self._open.values())

        with self._changed:
            if self._thread is not threading.current_thread():
                self._changed.wait_for(lambda: self._stop.is_set() or not owed(), seconds)
            left = owed()
        if left and seconds:
            jobs = counted(left, "job that was", "jobs that were")
            LOG.warning("Flux may not know of %s submitted or cancelled: %s", jobs, self.problem or "no answer came")

    def close(self, reason: str, seconds: float = 0.0) -> None:
        """Settle within some seconds, and end; all open requests fail."""
        self.settle(seconds)
        with self._changed:
            if self._stop.is_set():
                return
            self._stop.set()
            self._wake()
        for request in self._take_open():
            request.fail(ClosedError(f"{reason}{request.fate}"))
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(2)

    def _say(self, messages: Sequence[Message | None]) -> None:
        self._outbox.extend(message for message in messages if message)
        self._wake()

    def _wake(self) -> None:
        self._changed.notify_all()
        if self._waker:
            with contextlib.suppress(OSError):  # full: the thread wakes anyway; or closed: the thread has ended
                self._waker.send(b"!")

    def _take_open(self) -> list[LeadRequest]:
        with self._changed:
            requests, self._open = self.open_requests(), {}
            self._outbox.clear()
        return requests

    def _fail(self, error: SdkError) -> None:
        for request in self._take_open():
            request.fail(error)

    def _run(self) -> None:
        """Talk until the session is closed; then close the sockets."""
        with contextlib.ExitStack() as sockets:
            for one in filter(None, (self._reader, self._waker)):
                sockets.enter_context(one)
            self._talk()

    def _talk(self) -> None:
        """Connect whenever there are open requests."""
        outage = Outage()
        while self._wait_for_work(outage):
            try:
                with contextlib.closing(self._connect(self._stop, self._note)) as channel:
                    conversation = self._begin(channel)
                    outage.end()
                    self.problem, self._has_told = "", False
                    self._converse(conversation)
            except MiniClusterError as error:
                if not (self._may_pass(error) and outage.bears(str(error))):
                    self._fail(meant(error))
                    outage.end()
                self._tell(outage, error)
                self._stop.wait(min(LONGEST_PAUSE_SECONDS, RETRY_SECONDS + outage.seconds / 10))
            except Exception as error:
                # the thread must live on: without it later requests would wait forever
                logging.getLogger(__name__).exception("the conversation with the lead broke")
                self._fail(SdkError(f"the SDK has a bug, please report it: {error!r}"))
                self._stop.wait(RETRY_SECONDS)
            finally:
                self._is_connected = False

    def _may_pass(self, error: MiniClusterError) -> bool:
        if isinstance(error, AccessError) and isinstance(error.cause, RefusedError):
            error = error.cause  # jobs run on while the user's credentials are renewed
        if isinstance(error, KubernetesError):
            return self._was_connected or not error.is_forbidden
        return isinstance(error, BrokenError)

    def _note(self, problem: str) -> None:
        self.problem = problem

    def _tell(self, outage: Outage, error: MiniClusterError) -> None:
        """Note an outage, and log it once when it has lasted a while."""
        self._note(str(error))
        if outage.seconds >= QUIET_SECONDS and not self._has_told:
            self._has_told = True
            LOG.warning("%s: jobs go on, and the lead is asked again for %g s", error, OUTAGE_SECONDS)

    def _wait_for_work(self, outage: Outage) -> bool:
        with self._changed:
            if not self._open:
                outage.end()  # nobody bears it
            self._changed.wait_for(lambda: self._open or self._stop.is_set())
        return not self._stop.is_set()

    def _begin(self, channel: Channel) -> Conversation:
        """Start remote.py, and send all open requests. Raises KubernetesError, BrokenError."""
        conversation = Conversation(channel, first_line("remote"))
        conversation.begin(self._reader, self._stop)
        with self._changed:
            self._is_connected = self._was_connected = True
            # the program of a connection that broke may still do what it has read
            self._outbox = deque([{"key": self._name, "client": True}])
            messages = {key: request.message() for key, request in self._open.items()}
            # requests without a message were cancelled before they were sent
            self._open = {key: request for key, request in self._open.items() if messages[key]}
            self._unanswered.clear()
            self._say(list(messages.values()))
        return conversation

    def _converse(self, conversation: Conversation) -> None:
        """Send messages and pass replies to their requests, until it is closed. Raises KubernetesError, BrokenError."""
        while not self._stop.is_set():
            with self._changed:
                messages = list(self._next())
            if messages:
                conversation.say(messages)
            for reply in conversation.replies(self._reader):
                self._unanswered.discard(reply.get("key", ""))
                self._receive(reply)

    def _next(self) -> Iterator[Message]:
        """Take messages from the outbox, as many as may wait for Flux's answer."""
        while self._outbox and len(self._unanswered) < DOUBTFUL_REQUESTS:
            message = self._outbox.popleft()
            if "again" in message:
                self._unanswered.add(message["key"])
            yield message

    def _receive(self, reply: dict[str, Any]) -> None:
        if request := self._open.get(reply.get("key", "")):
            more = request.receive(reply)
            self.say(request, more or [], is_last=more is None)


def _settle_all() -> None:
    for session in list(_SESSIONS):
        session.settle(KNOWN_SECONDS)


# as concurrent.futures does: `atexit` would be too late, a connection may need a thread
threading._register_atexit(_settle_all)  # type: ignore[attr-defined]
