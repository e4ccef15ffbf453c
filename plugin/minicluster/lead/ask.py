"""Questions to a program in a lead's pod, and conversations with one; the one table of the time that an answer has."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from minicluster.cluster.lead import Lead
from minicluster.cluster.pods import FIND_TOOLS, Pod
from minicluster.console import lines
from minicluster.errors import KubernetesError, MiniClusterError
from minicluster.kube import tool
from minicluster.kube.port import Channel, KubePort
from minicluster.lead.program import BOOT, first_line


class Limit(NamedTuple):
    """What can be asked."""

    seconds: float  #: that the answer has
    program: str = ""  #: what BOOT runs, if the words of the question have it; "" if they are a command of the pod


#: All questions. Beside them there are conversations, which are dead after SILENCE_SECONDS
QUESTIONS = {
    "status": Limit(20, "waiting"),
    "jobs": Limit(20, "job_report"),
    "why of a job": Limit(20, "explain"),
    "whether a job would fit": Limit(30, "would_fit"),
    "picture": Limit(60, "observe"),
    "change of a page": Limit(20),
    "events of a job": Limit(20),
    "output of a job": Limit(60, "printed"),
    "log of a broker": Limit(20),
    "job of a client": Limit(20, "mine"),
    "submission": Limit(60),
    "size": Limit(60),
    "jobs that would end": Limit(10, "ending"),
    "cancellation": Limit(10),
}


class SilentError(MiniClusterError):
    """The lead gave no answer; ``reason`` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LateError(MiniClusterError):
    """There was no time for an answer: the deadline of the whole cut it off."""


def ask(kube: KubePort, pod: Pod, what: str, words: Sequence[str]) -> str:
    """Return what a command prints in a pod's runner; ``what`` is one of QUESTIONS.

    Raises SilentError when it fails, or has no answer in time; LateError; RefusedError for a user who may not ask.
    """
    seconds, program = QUESTIONS[what]
    text = first_line(program) if program else ""
    try:
        with closing(kube.run(pod.name, pod.runner, words, has_input=bool(text))) as channel:
            if text:
                channel.write(text.encode())
            out = read(channel, kube.left(seconds))
    except KubernetesError as error:
        if error.is_forbidden:
            raise
        raise SilentError(error.reason) from None
    if out is None and kube.is_late:
        raise LateError("the time was over")
    if out is None:
        raise SilentError(f"no answer within {seconds:g} s")
    if channel.exit_code:
        raise SilentError(tool.reason(channel.stderr.decode(errors="replace")) or f"exit code {channel.exit_code}")
    return out.decode(errors="replace")


def read(channel: Channel, seconds: float | None) -> bytes | None:
    """Return what a command prints until its end; None if that is not within the time. Raises KubernetesError."""
    out = bytearray()
    return bytes(out) if take(channel, seconds, out.extend) else None


def take(channel: Channel, seconds: float | None, each: Callable[[bytes], None]) -> bool:
    """Give what a command prints to ``each``, and return whether it ended within the time. Raises KubernetesError."""
    end = None if seconds is None else time.monotonic() + seconds
    while channel.wait(None, None if end is None else max(0.0, end - time.monotonic())):
        data = channel.read()
        if data is None:
            return True
        each(data)
    return False


def program_words(lead: Lead, *words: str) -> list[str]:
    """Return the words that run a program of ours on a lead, with some words of its own."""
    return lead.flux_words("python", "-c", BOOT, *words)


def start(kube: KubePort, lead: Lead, *words: str) -> Channel:
    """Start what takes a program with some words of its own, for a conversation. Raises KubernetesError."""
    return kube.run(lead.pod.name, lead.pod.runner, program_words(lead, *words), has_input=True)


#: Prints a JSON list: the settings of the lead's pod, and what Flux knows. Takes BOOT, and the program
QUESTION = (
    FIND_TOOLS + 'printf "[" && cat "$MINICLUSTER_HOME/minicluster/agent.json" && printf "," && '
    '"$MINICLUSTER_HOME/bin/flux" python -c "$0" && printf "]"'
)
#: The words that run it in the lead's pod
QUESTION_WORDS = ("/bin/sh", "-c", QUESTION, BOOT)

#: Returns what QUESTION prints in a pod, or raises SilentError
Question = Callable[[Pod], str]


@dataclass(frozen=True)
class Answer:
    """The lead's answer: ``agent.json`` of its ConfigMap, and the summary that ``pod/queue/state.py`` prints."""

    settings: Mapping[str, Any]
    flux: Mapping[str, Any]

    @property
    def now(self) -> datetime | None:
        """The lead's time, if it tells that."""
        told = self.flux.get("now")
        return datetime.fromtimestamp(told, UTC) if told else None


def ask_status(kube: KubePort, lead: Pod) -> str:
    """Return what QUESTION prints in the lead's pod. Raises what `ask` raises."""
    return ask(kube, lead, "status", QUESTION_WORDS)


def read_answer(text: str) -> Answer:
    """Return what the lead's pod printed: a list of its settings and Flux's summary.

    Raises ValueError when it is something else.
    """
    settings, flux = json.loads(text)
    return Answer(settings, flux)


Message = Mapping[str, Any]
#: Seconds without a sign of life after which a connection is dead
SILENCE_SECONDS = 30.0


class BrokenError(MiniClusterError):
    """The program on the lead has ended, or is silent."""


class Conversation:
    """Messages and replies over a channel, where BOOT runs. Each method raises BrokenError, or the channel's error."""

    def __init__(self, channel: Channel, program: str) -> None:
        """Send the program: a line that `first_line` returns."""
        self.channel, self._cutter = channel, lines.Cutter()
        channel.write(program.encode())

    def begin(self, wake: socket.socket | None, stop: threading.Event) -> None:
        """Return when the program can be asked, or ``stop`` is set."""
        while not stop.is_set() and not any("ready" in reply for reply in self.replies(wake)):
            pass

    def say(self, messages: Iterable[Message]) -> None:
        """Send messages."""
        self.channel.write("".join(json.dumps(message) + "\n" for message in messages).encode())

    def replies(self, wake: socket.socket | None = None, seconds: float | None = None) -> list[dict[str, Any]]:
        """Wait for replies, or for data on ``wake``, which is emptied; return the replies."""
        seconds = SILENCE_SECONDS if seconds is None else seconds
        if not self.channel.wait(wake, seconds):
            raise BrokenError(f"the lead was silent for {seconds:g} s")
        if wake:
            with suppress(BlockingIOError):
                wake.recv(4096)
        came: list[bytes] = []
        while self.channel.wait(None, 0):
            data = self.channel.read()
            if data is None:
                if came:
                    break  # the next call raises
                why = tool.reason(tool.text(self.channel.stderr)) or f"exit code {self.channel.exit_code}"
                raise BrokenError(f"the lead's program ended: {why}")
            came += self._cutter.take(data)
        return [json.loads(line) for line in came if line != b"\n"]


@contextmanager
def talk(kube: KubePort, lead: Lead, program: str, *words: str) -> Iterator[Conversation]:
    """Begin a conversation with a program on the lead, which has some words. Raises KubernetesError."""
    with closing(start(kube, lead, *words)) as channel:
        yield Conversation(channel, first_line(program))
