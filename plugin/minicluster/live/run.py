"""Runs a command in a node's pod with our terminal or streams, our signals, and the command's exit code."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from types import FrameType
from typing import IO

from minicluster.cluster.node import Node
from minicluster.errors import StateError
from minicluster.kube.kubectl import Kubernetes
from minicluster.live.input import Input
from minicluster.signals import Handler, handled, join
from minicluster.tool import CommandError, reason

#: Gets a signal; returns whether it has dealt with it, so that the command doesn't get it
Told = Callable[[int], bool]
#: Comes before the process id, so that a signal finds the command
PROCESS_MARK = b"minicluster-process "
START = f'echo "{PROCESS_MARK.decode()}$$" >&2; exec "$@"'
SEND_SIGNAL = 'kill -s "$1" "$2"'
#: kubectl says this of a command that fails
EXEC_FAILED = re.compile(rb"(?:\A|(?<=\n))command terminated with exit code \d+\n?\Z")
#: Seconds that the pod has to take a signal
SIGNAL_SECONDS = 10.0
#: The number of Ctrl-C after which the command is left alone
STOP_PRESSES = 3
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def run(
    kubernetes: Kubernetes, node: Node, words: Sequence[str], stdin: Input | None = None, told: Told = lambda _: False
) -> int:
    """Run a command in a node's container, and return its exit code. Raises StateError when it can't be run.

    On a terminal the command has a terminal too, and Ctrl-C is a key there. Otherwise it has our standard streams, and
    gets our signals, except those that ``told`` has dealt with.
    """
    if sys.stdin.isatty() and sys.stdout.isatty():
        return _Terminal(kubernetes.words(*node.pod.exec_words("--stdin", "--tty"), *words), told).run()
    return _piped(kubernetes, node, words, told).run(stdin.descriptor() if stdin else None)


def run_program(kubernetes: Kubernetes, node: Node, words: Sequence[str], text: str) -> int:
    """Run a command whose standard input is a text, like `run` without a terminal."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        return _piped(kubernetes, node, words, lambda _: False).run(os.dup(file.fileno()))


def _piped(kubernetes: Kubernetes, node: Node, words: Sequence[str], told: Told) -> "_Piped":
    signals = kubernetes.words(*node.pod.exec_words(), "sh", "-c", SEND_SIGNAL, "sh")
    return _Piped(kubernetes.words(*node.pod.exec_words("--stdin"), "sh", "-c", START, "sh", *words), signals, told)


class _Terminal:
    """kubectl with our terminal; what it writes to standard error is its own."""

    def __init__(self, words: Sequence[str], told: Told) -> None:
        self._words, self._told = words, told

    def run(self) -> int:
        with subprocess.Popen(self._words, stderr=subprocess.PIPE) as process:  # noqa: S603 - words, no shell

            def pass_on(number: int, _frame: FrameType | None) -> None:
                # on a terminal kubectl gets Ctrl-C itself, and passes it on as a key
                if number != signal.SIGINT and not self._told(number):
                    process.send_signal(number)

            with handle_signals(pass_on):
                said = process.stderr.read() if process.stderr else b""
                code = process.wait()
        return _code(code, said)


class _Piped:
    """kubectl with our standard streams."""

    def __init__(self, words: Sequence[str], signals: Sequence[str], told: Told) -> None:
        self._words, self._signals, self._told = words, signals, told
        self._id = b""  #: of the process in the pod
        self._said, self._interrupts = b"", 0
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []  #: signals that came before there was a process

    def run(self, stdin: int | None) -> int:
        # before the process begins: a signal that ended us would leave the process behind
        with handle_signals(self._signal):
            # a session of its own: Ctrl-C would end kubectl, and leave the command in the pod behind
            self._process = process = subprocess.Popen(  # noqa: S603 - words, no shell
                self._words, stdin=stdin, stderr=subprocess.PIPE, start_new_session=True
            )
            if stdin is not None:
                os.close(stdin)
            with process:
                reader = threading.Thread(target=self._read, args=(process.stderr,), daemon=True)
                reader.start()
                while self._early:
                    self._signal(self._early.pop(0), None)
                join(reader)
                code = process.wait()
        return code_of(code) if self._id else _code(code, self._said)

    def _read(self, source: IO[bytes]) -> None:
        """Copy the command's standard error, which begins with its process id; kubectl's own words are kept."""
        while not self._id and (line := source.readline()):
            if line.startswith(PROCESS_MARK):
                self._id = line.removeprefix(PROCESS_MARK).strip()
            else:
                self._said += line
        held = b""
        while data := source.read1(1 << 16):  # type: ignore[attr-defined]  # a BufferedReader
            data = held + data
            noise = EXEC_FAILED.search(data)
            held = noise[0] if noise else b""
            _write(sys.stderr.buffer, data[: len(data) - len(held)])

    def _signal(self, number: int, _frame: FrameType | None) -> None:
        """Pass a signal on to the command in the pod; end only kubectl if the command can't be reached."""
        process = self._process
        if process is None:
            self._early.append(number)
            return
        self._interrupts += number == signal.SIGINT
        if self._told(number):
            return
        if self._interrupts >= STOP_PRESSES or not self._is_told(process, number):
            process.send_signal(number)

    def _is_told(self, process: subprocess.Popen[bytes], number: int) -> bool:
        """Send a signal to the command in the pod, which may not have begun yet; return whether it got it."""
        end = time.monotonic() + SIGNAL_SECONDS
        # no lock: another signal may come meanwhile
        while not self._id and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        words = [*self._signals, signal.Signals(number).name.removeprefix("SIG"), self._id.decode()]
        none = subprocess.DEVNULL
        try:
            done = subprocess.run(  # noqa: S603 - words, no shell
                words, stdin=none, capture_output=True, start_new_session=True, timeout=SIGNAL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def handle_signals(handler: Handler) -> AbstractContextManager[None]:
    """Set a handler for the signals that end a program."""
    # nohup, or a shell's &, makes us ignore some: we still do
    return handled((number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN), handler)


def _write(stream: IO[bytes], data: bytes) -> None:
    with suppress(OSError):  # nobody listens
        stream.write(data)
        stream.flush()


def _code(code: int, said: bytes) -> int:
    """Return the exit code of a kubectl. Raises StateError if kubectl says that the command didn't run."""
    text = said.decode(errors="replace")
    why = reason(text)
    if code > 0 and why:
        refused = CommandError("kubectl exec", why)
        way = "ask for a Role that allows it" if refused.is_forbidden else "see `minicluster status`"
        raise StateError(f"{why}: {way}")
    return code_of(code)


def code_of(code: int) -> int:
    """Return the exit code that a shell gives a process; a signal's is 128 and its number."""
    return 128 - code if code < 0 else code
