"""Signals at bad moments: just before a wait begins, as `interrupt_main` marks one, and while a process starts."""

import _thread
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from minicluster.cluster.lead import Lead
from minicluster.cluster.pods import read_pods
from minicluster.console.signals import handled, interruptible, wait
from minicluster.errors import AwayError
from minicluster.exec import run
from minicluster.exec.input import Input
from minicluster.exec.piped import Ours, Piped
from minicluster.exec.written import START
from minicluster.kube import tool
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.kubectl_stream import Stream
from minicluster.lead.ask import read
from status_samples import pod

from tools.clients import until

#: Seconds of the commands, and those within which a signal has its effect
LONG, SOON = 30, 15.0


@contextmanager
def signal_during(function: str) -> Iterator[None]:
    """Mark SIGTERM as received as soon as the main thread is in a function, and wake nothing."""
    main = threading.main_thread().ident

    def is_in() -> bool:
        frame = sys._current_frames().get(main or 0)
        while frame:
            if frame.f_code.co_name == function:
                return True
            frame = frame.f_back
        return False

    def mark() -> None:
        until(is_in, SOON, f"the main thread in {function}")
        _thread.interrupt_main(signal.SIGTERM)

    thread = threading.Thread(target=mark)
    begin = time.monotonic()
    thread.start()
    yield
    thread.join()
    assert time.monotonic() - begin < SOON


def test_a_signal_ends_a_command_in_the_pod() -> None:
    words = ["sh", "-c", START, "own", "sleep", str(LONG)]

    def signal_words(name: str, process: str) -> list[str]:
        return ["kill", "-s", name, process]

    with Path(os.devnull).open("rb") as null, signal_during("join"):
        assert Piped(words, signal_words, Ours(Input(null))).run() == 128 + signal.SIGTERM


def test_a_signal_ends_a_command_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    # a terminal that is closed, when kubectl says something of that at the same moment
    monkeypatch.setattr(run, "is_on_terminal", lambda: True)
    monkeypatch.setattr(Kubernetes, "words", lambda _, *words: ["sleep", str(LONG)] if "--tty" in words else ["true"])
    node = Lead(read_pods({"items": [pod(0)]})[0], "/mnt/flux", "")
    with signal_during("_end_of"):
        assert run.run(Kubernetes(), node, ["a"]) == 128 + signal.SIGTERM


def test_a_signal_ends_the_reading_of_a_stream() -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with (
        closing(Stream(["sleep", str(LONG)], lambda *_: AwayError(""), has_input=False, apart=False)) as stream,
        handled([signal.SIGTERM], stop),
        signal_during("select"),
        pytest.raises(KeyboardInterrupt),
    ):
        read(stream, None)


@pytest.mark.parametrize(("seconds", "answers", "found"), [(0, [False], False), (None, [False, True], True)])
def test_a_wait_asks_once_at_least_and_ends_at_its_limit(
    seconds: float | None, answers: list[bool], found: bool
) -> None:
    left = iter(answers)
    assert wait(lambda _: next(left), seconds) is found
    assert list(left) == []


def test_a_signal_while_a_process_starts_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            started.append(self)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    words = ["sleep", str(LONG)]
    with pytest.raises(KeyboardInterrupt), interruptible():
        Stream(words, lambda *_: AwayError(""), has_input=False, apart=False)
    with pytest.raises(KeyboardInterrupt), interruptible():
        tool.run("sleep", words[1:], seconds=LONG)
    assert [process.returncode for process in started] == [-signal.SIGKILL, -signal.SIGTERM]
