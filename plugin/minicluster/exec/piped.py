"""kubectl with our standard streams, our signals, and the end of the command that it runs in a pod."""

import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import IO

from minicluster.console import streams
from minicluster.console.signals import HANDLER_SECONDS, SIGNALS, STOP_PRESSES, handle_signals, held
from minicluster.errors import OutputError, StateError
from minicluster.exec.input import READ_BYTES, Input
from minicluster.exec.written import KubectlWords, Written
from minicluster.kube.tool import CommandError, reason, text

#: Gets a signal; returns whether it has dealt with it, so that the command doesn't get it
SignalHandler = Callable[[int], bool]
#: Gets a signal's name and a process id of the pod; returns the words that send the one to the other
SignalWords = Callable[[str, str], Sequence[str]]
#: Seconds until a signal finds the command; that the pod has to take it; that kubectl has afterwards, or after the end
FOUND_SECONDS, SIGNAL_SECONDS, KUBECTL_END_SECONDS = 5.0, 10.0, 5.0
#: Seconds until what may be kubectl's last words is taken for the command's
HOLD_SECONDS = 0.2
#: What kubectl says of a connection that breaks
CUT = re.compile(r"error stream|reset by peer|unexpected EOF|closed network connection|broken pipe|websocket: close")


class CutError(StateError):
    """The connection to a command broke before the command had ended; ``reason`` is why."""

    def __init__(self, why: str, process: str = "", code_of_pod: int | None = None) -> None:
        """Keep the reason, the id of the process in the pod, "" if it may not have begun, and the code of its pod."""
        goes_on = ": the connection broke, and the command may go on: look before you run it again"
        super().__init__(why if code_of_pod else why + goes_on)
        self.reason, self.process, self.code_of_pod = why, process, code_of_pod
        self.code = code_of_pod or self.code


@dataclass
class Ours:
    """What a command has of us."""

    stdin: Input
    told: SignalHandler = lambda _: False
    written: Written = field(default_factory=Written)
    on_terminal: bool = True  #: whether the command has our terminal, if there is one


class Piped:
    """A kubectl."""

    def __init__(self, words: Sequence[str], signal_words: SignalWords, ours: Ours) -> None:
        self._words, self._signal_words, self._stdin = words, signal_words, ours.stdin
        self._told, self._written = ours.told, ours.written
        self._process: subprocess.Popen[bytes] | None = None
        self._said = KubectlWords(0)
        self._interrupts, self._quiet_since = 0, time.monotonic()
        self._left: tuple[int, float] | None = None  # by which signal, and when, nobody waits any more
        self._failure: OSError | None = None  # of our standard output

    def run(self) -> int:
        """Run it, and return the exit code of the command. Raises CutError, and StateError if it can't be run."""
        source = self._stdin.descriptor()
        # before the process begins: a signal that ended us would leave the process behind
        with handle_signals(self._signal), streams.until_unread(self._signal), ExitStack() as stack:
            with held():  # the readers learn which process in the pod gets a signal
                # a session of its own: Ctrl-C would end kubectl, and leave the command in the pod behind
                pipe = subprocess.PIPE
                self._process = process = stack.enter_context(
                    subprocess.Popen(self._words, stdin=source, stdout=pipe, stderr=pipe, start_new_session=True)  # noqa: S603 - words, no shell
                )
                self._said = KubectlWords(process.pid)
                readers = (
                    threading.Thread(target=self._read_errors, args=(process.stderr,), daemon=True),
                    threading.Thread(target=self._read, args=(process.stdout,), daemon=True),
                )
                for reader in readers:
                    reader.start()
            if source is not None:
                os.close(source)
            for reader in readers:
                self._wait_for(reader, process)
            code = process.wait()
        self._stdin.end()
        return self._code(code)

    def _wait_for(self, reader: threading.Thread, process: "subprocess.Popen[bytes]") -> None:
        """Wait until a reader has ended; end a kubectl that goes on though the command has ended, or was told to."""
        while reader.is_alive():
            reader.join(HANDLER_SECONDS)
            over = [self._quiet_since] if self._said.code is not None else []
            over += [self._left[1]] if self._left else []
            if over and time.monotonic() > min(over) + KUBECTL_END_SECONDS:
                process.kill()

    def _code(self, code: int) -> int:
        """Return the exit code of the command, by that of kubectl."""
        said = self._said
        if self._failure:
            raise OutputError(f"standard output can't be written: {self._failure.strerror}")
        is_unread = self._left is not None and self._left[0] not in SIGNALS
        if said.code is not None and self._interrupts < STOP_PRESSES and not is_unread:
            return said.code
        if self._left:
            return 128 + self._left[0]
        if said.failed is not None and said.id:
            why = f"the command was ended with its container: exit code {said.failed}"
            raise CutError(why, said.id.decode(), said.failed)
        if said.failed is not None:
            return said.failed
        raise failure(code, text(said.own), said.id.decode())

    def _read(self, source: IO[bytes]) -> None:
        """Copy the command's standard output."""
        is_open = True
        while is_open:
            data = source.read1(READ_BYTES)  # type: ignore[attr-defined]  # a BufferedReader
            is_open = bool(data)
            try:
                sys.stdout.buffer.write(self._written.new(0, data) if data else self._written.rest())
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                pass  # it is a signal, too
            except OSError as error:
                self._failure = error
            self._quiet_since = time.monotonic()
            self._end_at_mark()

    def _read_errors(self, source: IO[bytes]) -> None:
        """Copy the command's standard error."""
        said, is_ended = self._said, False
        while True:
            if said.holds and not select.select([source], [], [], HOLD_SECONDS)[0]:
                self._write_error(said.release())
            if not (data := source.read1(READ_BYTES)):  # type: ignore[attr-defined]  # a BufferedReader
                break
            self._write_error(said.take(data))
            if said.code is not None and not is_ended:
                is_ended, self._quiet_since = True, time.monotonic()
                self._stdin.end()
                self._end_at_mark()
        self._write_error(said.end())

    def _end_at_mark(self) -> None:
        """End kubectl once all of the command's output is here, which then needs nobody any more."""
        if self._written.is_over and self._said.code is not None and self._process:
            with suppress(OSError):  # it has just ended
                os.killpg(self._process.pid, signal.SIGKILL)

    def _write_error(self, data: bytes) -> None:
        with suppress(OSError):  # nobody listens
            sys.stderr.buffer.write(self._written.new(1, data))
            sys.stderr.buffer.flush()

    def _signal(self, number: int, _frame: FrameType | None) -> None:
        """Pass a signal on to the command in the pod; end only kubectl if the command can't be reached."""
        process = self._process
        if process is None:  # it could not be started
            return
        self._interrupts += number == signal.SIGINT
        if self._told(number):
            return
        is_over = self._interrupts >= STOP_PRESSES or not self._is_told(process, number)
        if is_over or number != signal.SIGINT:
            self._left = self._left or (number, time.monotonic())
        if is_over:
            process.send_signal(number)

    def _is_told(self, process: "subprocess.Popen[bytes]", number: int) -> bool:
        """Send a signal to the command in the pod, which may not have begun yet; return whether it got it."""
        end = time.monotonic() + FOUND_SECONDS
        # no lock: another signal may come meanwhile
        while not self._said.id and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        if not self._said.id:
            return False
        # flux, as each program in Python, ignores SIGPIPE, which we get when nobody reads
        name = signal.Signals(number if number in SIGNALS else signal.SIGTERM).name.removeprefix("SIG")
        return send(self._signal_words(name, self._said.id.decode()))


def send(words: Sequence[str]) -> bool:
    """Run a command that sends a signal; return whether it could."""
    none = subprocess.DEVNULL
    try:
        done = subprocess.run(  # noqa: S603 - words, no shell
            words, stdin=none, capture_output=True, start_new_session=True, timeout=SIGNAL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def failure(code: int, said: str, process: str = "") -> StateError:
    """Return the error of a kubectl whose command has not ended, or not begun, as far as is known."""
    how = f"kubectl was ended by {signal.Signals(-code).name}" if code < 0 else f"kubectl ended with {code}"
    why = reason(said) or how
    if process or CUT.search(why):
        return CutError(why, process)
    way = (
        "ask for a Role that allows it"
        if CommandError("kubectl exec", why).is_forbidden
        else "see the status of the MiniCluster"
    )
    return StateError(f"{why}: {way}")


def code_of(code: int) -> int:
    """Return the exit code that a shell gives a process; a signal's is 128 and its number."""
    return 128 - code if code < 0 else code
