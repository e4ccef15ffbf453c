"""`minicluster top` on a terminal: the picture again and again, the keys that are pressed, and one picture without."""

import os
import select
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from minicluster.console import lines, streams, terminal
from minicluster.console.signals import held
from minicluster.kube.port import KubePort
from minicluster.picture.feed import Feed
from minicluster.picture.pages import job_answer
from minicluster.picture.top_view import SORTS, Chosen, jobs_of, screen

#: Seconds between two pictures; that a picture for no terminal waits for the lead
DRAWN_SECONDS, FIRST_SECONDS = 1.0, 10.0
#: Size of the picture where there is no terminal
PLAIN_COLUMNS, PLAIN_LINES = 80, 40


def show(kubernetes: KubePort, name: str) -> None:
    """Show a MiniCluster until q is pressed; without a terminal, print one picture."""
    with ExitStack() as stack:
        with held():  # its threads start processes
            feed = stack.enter_context(closing(Feed(kubernetes, name)))
        if terminal.is_terminal(sys.stdout) and terminal.is_terminal(sys.stdin):
            _Top(kubernetes, feed).run()
        else:
            _print(feed)


def _print(feed: Feed) -> None:
    """Print one picture as plain text."""
    end = time.monotonic() + FIRST_SECONDS
    while not feed.is_complete and time.monotonic() < end:
        time.sleep(terminal.LOOK_AGAIN_SECONDS)
    with feed.lock:
        feed.timeline.changes(time.time())
        text = screen(feed.timeline, Chosen(place=-1), PLAIN_COLUMNS, PLAIN_LINES, time.time()).plain
    shown = [line.rstrip() for line in lines.split(text)[:-1]]
    streams.write(("\n".join(shown).rstrip("\n") + "\n").encode())


class _Top:
    """The picture on a terminal, and what a person has chosen."""

    def __init__(self, kubernetes: KubePort, feed: Feed) -> None:
        self.kubernetes, self.feed, self.sorts = kubernetes, feed, SORTS
        self.chosen, self.pool = Chosen(), ThreadPoolExecutor(1)
        self.asked: Future[dict[str, Any]] | None = None

    def run(self) -> None:
        """Show it until q."""
        with unseen(), terminal.full_screen(sys.stdout) as live:
            while True:
                self._show(live)
                pressed = keys(DRAWN_SECONDS)
                if "q" in pressed:
                    break
                for key in pressed:
                    self._take(key)
        self.pool.shutdown(wait=False, cancel_futures=True)

    def _show(self, live: Any) -> None:
        if self.asked and self.asked.done():
            self.chosen = self.chosen._replace(detail=_told(self.asked.result(), self.chosen.detail or ()))
            self.asked = None
        width, height = live.console.size
        with self.feed.lock:
            self.feed.timeline.changes(time.time())
            shown = screen(self.feed.timeline, self.chosen, width, height, time.time())
        live.update(shown, refresh=True)

    def _take(self, key: str) -> None:
        """Do what a key says."""
        chosen = self.chosen
        if key == "s":
            self.chosen = chosen._replace(sort=self.sorts[(self.sorts.index(chosen.sort) + 1) % len(self.sorts)])
        elif key in ("up", "down", "page up", "page down"):
            step = {"up": -1, "down": 1, "page up": -10, "page down": 10}[key]
            last = len(self.feed.timeline.jobs.jobs) - 1
            self.chosen = chosen._replace(place=max(0, min(last, chosen.place + step)))
        elif key == "escape":
            self.chosen, self.asked = chosen._replace(detail=None), None
        elif key == "enter" and chosen.detail is None:
            self._look()

    def _look(self) -> None:
        """Ask the lead about the chosen job."""
        with self.feed.lock:
            selected = jobs_of(self.feed.timeline, self.chosen.sort, time.time())[self.chosen.place :][:1]
        for job in selected:
            title = f"job {job['id']} ({job.get('name') or '-'})"
            self.chosen = self.chosen._replace(detail=[title, "asking the lead …"])
            self.asked = self.pool.submit(job_answer, self.kubernetes, self.feed.timeline.name, job["id"])


def _told(answer: dict[str, Any], detail: Any) -> list[str]:
    """Return the lines about a job."""
    output = lines.split(answer.get("output", ""))
    said = [answer["error"]] if "error" in answer else [*answer["why"], f"command: {answer['command']}"]
    return [*detail[:1], *said, *(["output:", *output] if output else [])]


#: What a terminal sends for keys that are no characters
NAMED = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
}


@contextmanager
def unseen() -> Iterator[None]:
    """Let standard input, which is a terminal, give each key at once and show none."""
    # Unix alone has them
    import termios  # noqa: PLC0415
    import tty  # noqa: PLC0415

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def keys(seconds: float) -> list[str]:
    """Return the keys that were pressed, at once or after some seconds; "q" at the end of the input."""
    descriptor = sys.stdin.fileno()
    if not select.select([descriptor], [], [], seconds)[0]:
        return []
    return split_keys(os.read(descriptor, 1024).decode(errors="replace")) or ["q"]


def split_keys(text: str) -> list[str]:
    r"""Return the keys in what a terminal has sent.

    >>> split("s\x1b[A\r")
    ['s', 'up', 'enter']
    """
    codes = []
    while text:
        name = next((each for each in NAMED if text.startswith(each)), text[0])
        codes.append(NAMED.get(name, name))
        text = text[len(name) :]
    return codes
