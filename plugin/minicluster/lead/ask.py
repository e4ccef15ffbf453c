"""Questions to a program in a lead's pod, and conversations with one; the one table of the time that an answer has."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

from minicluster import tool
from minicluster.cluster.lead import Lead
from minicluster.cluster.pods import Pod
from minicluster.errors import KubernetesError, MiniClusterError
from minicluster.kube.port import Channel, KubePort
from minicluster.lead.conversation import Conversation
from minicluster.lead.program import BOOT, first_line


class Limit(NamedTuple):
    """What can be asked."""

    seconds: float  #: that the answer has
    program: str = ""  #: what BOOT runs, if the words of the question have it; "" if they are a command of the pod


#: All questions. Beside them there are conversations, which are dead after conversation.SILENCE
QUESTIONS = {
    "status": Limit(20, "waiting"),
    "jobs": Limit(20, "job_report"),
    "why of a job": Limit(20, "explain"),
    "picture": Limit(60, "observe"),
    "job of a picture": Limit(20, "detail"),
    "events of a job": Limit(20),
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
    end, out = None if seconds is None else time.monotonic() + seconds, bytearray()
    while channel.wait(None, None if end is None else max(0.0, end - time.monotonic())):
        data = channel.read()
        if data is None:
            return bytes(out)
        out += data
    return None


def program_words(lead: Lead, *words: str) -> list[str]:
    """Return the words that run a program of ours on a lead, with some words of its own."""
    return lead.flux_words("python", "-c", BOOT, *words)


def start(kube: KubePort, lead: Lead) -> Channel:
    """Start what takes a program, for a conversation. Raises KubernetesError."""
    return kube.run(lead.pod.name, lead.pod.runner, program_words(lead), has_input=True)


@contextmanager
def talk(kube: KubePort, lead: Lead, program: str) -> Iterator[Conversation]:
    """Begin a conversation with a program on the lead. Raises KubernetesError."""
    with closing(start(kube, lead)) as channel:
        yield Conversation(channel, first_line(program))
