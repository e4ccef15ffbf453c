"""A kubectl whose output is read while it runs, and what the events of its watches make of a Job and its pods."""

import json
import os
import selectors
import socket
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import IO

from minicluster.console import signals
from minicluster.errors import KubernetesError
from minicluster.kube import tool
from minicluster.kube.port import STDERR_BYTES, Object, Sight

#: The most bytes of a part of the output
PART_BYTES = 1 << 16


class Stream:
    """A command that runs until it ends, or is closed: a `Channel`. One thread reads it."""

    def __init__(
        self, words: Sequence[str], failure: Callable[[int, bytes], KubernetesError], *, has_input: bool, apart: bool
    ) -> None:
        """Start a command line; with ``apart`` a terminal's Ctrl-C doesn't reach it.

        ``failure`` makes an error of its exit code and its standard error.
        """
        pipe, stdin = subprocess.PIPE, subprocess.PIPE if has_input else subprocess.DEVNULL
        self._failure = failure
        with signals.held():
            self._process = subprocess.Popen(  # noqa: S603 - words, no shell
                words, bufsize=0, stdin=stdin, stdout=pipe, stderr=pipe, start_new_session=apart
            )
            signals.LEFT.add(self._process)
        self.exit_code: int | None = None  #: None until it has ended
        self.stderr = b""  #: its end, when the command has ended
        self._errors = threading.Thread(target=self._read_errors, args=(self._process.stderr,), daemon=True)
        # not Popen's: who closes a stream must not close what the thread reads
        self._process.stderr = None
        self._errors.start()
        self._input = bytearray()  # what the pipe had no room for; `wait` writes it
        self._lock = threading.Lock()  # of the input: who reads may be another thread
        # in a session of its own it would outlive us
        self._at_exit = weakref.finalize(self, self._process.kill)
        signals.keep_after_fork(self)
        if self._process.stdin:
            os.set_blocking(self._process.stdin.fileno(), False)

    def _read_errors(self, source: IO[bytes]) -> None:
        """Read standard error as it comes: a command whose pipe is full waits for ever."""
        with source:
            while data := source.read(PART_BYTES):
                self.stderr = (self.stderr + data)[-STDERR_BYTES:]

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin  # a pipe
        return self._process.stdin

    def fileno(self) -> int:
        """Return the descriptor of standard output, for a selector."""
        assert self._process.stdout  # a pipe
        return self._process.stdout.fileno()

    def wait(self, wake: socket.socket | None, seconds: float | None) -> bool:
        """Wait for output, or for data on the socket ``wake``; return whether there is any within the time."""
        with selectors.DefaultSelector() as selector:
            selector.register(self, selectors.EVENT_READ)
            if wake:
                selector.register(wake, selectors.EVENT_READ)
            if self._input:
                selector.register(self._stdin, selectors.EVENT_WRITE)
            return signals.wait(lambda part: self._is_there(selector, part), seconds)

    def _is_there(self, selector: selectors.BaseSelector, seconds: float) -> bool:
        """Wait for output or ``wake``, and write the input meanwhile."""
        end = time.monotonic() + seconds
        while ready := selector.select(max(0.0, end - time.monotonic())):
            if any(events == selectors.EVENT_READ for _, events in ready):
                return True
            self._push()
            if not self._input:
                selector.unregister(self._stdin)
        return False

    def read(self) -> bytes | None:
        """Return new standard output; None at the end. Raises KubernetesError when kubectl itself has failed."""
        assert self._process.stdout  # a pipe
        data: bytes = self._process.stdout.read(PART_BYTES)
        if data:
            return data
        if self.exit_code is None:
            signals.join(self._errors)
            self.exit_code = self._process.wait()
        if self.exit_code and not tool.COMMAND_FAILED.search(self.stderr):
            raise self._failure(self.exit_code, self.stderr)
        return None

    def write(self, data: bytes) -> None:
        """Write to standard input, or as ``wait`` is called if a command is slow to read it.

        A failure is ignored: the command has ended, and ``read`` is about to find that.
        """
        with self._lock:
            self._input += data
        self._push()

    def _push(self) -> None:
        """Write as much input as the pipe takes."""
        with self._lock:
            try:
                while self._input:
                    del self._input[: os.write(self._stdin.fileno(), self._input)]
            except BlockingIOError:
                return
            except OSError:
                self._input.clear()

    def abort(self) -> None:
        """End the command; another thread may still read it."""
        self._process.kill()

    def after_fork(self) -> None:
        """Let go of the pipes in a child: the command is its parent's, and ends with it."""
        self._at_exit.detach()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def close(self) -> None:
        """End the command, and release its pipes and its process."""
        self._at_exit.detach()
        with self._process:
            self.abort()
        signals.LEFT.discard(self._process)
        # what a child of its own keeps open is not waited for
        self._errors.join(signals.HANDLER_SECONDS)


#: Types of events of an object that is there, and of one that is gone
THERE, REMOVED = ("ADDED", "MODIFIED"), "DELETED"


def after_event(sight: Sight, events: Iterable[bytes]) -> Sight | None:
    """Return a Job and its pods after some events, each a line; the same if nothing has changed.

    None after an event of another type, such as an error: then all must be read anew.
    """
    job, pods = sight.job, {pod["metadata"]["uid"]: pod for pod in sight.pods["items"]}
    has_changed = False
    for line in events:
        event = json.loads(line)
        kind, event_object = event["type"], event["object"]
        if kind not in (*THERE, REMOVED):
            return None
        is_job, uid = event_object["kind"] == "Job", event_object["metadata"]["uid"]
        known = job if is_job else pods.get(uid, {})
        if kind in THERE and not _is_newer(event_object, known):
            continue
        has_changed = True
        if is_job:
            job = event_object if kind in THERE else {}
        elif kind in THERE:
            pods[uid] = event_object
        else:
            pods.pop(uid, None)
    return Sight(job, {"items": list(pods.values())}) if has_changed else sight


def _is_newer(event_object: Object, known: Object) -> bool:
    """Return whether an object is newer than what is known: a watch begins with what there was before the reading."""
    one, other = event_object["metadata"], known.get("metadata", {})
    return one["uid"] != other.get("uid") or int(one["resourceVersion"]) > int(other["resourceVersion"])
