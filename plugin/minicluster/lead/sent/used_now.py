"""What jobs that run use now, and have used until now: the guard of each of their nodes writes it (job_peaks.py).

A module of explain.py and observe.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import Any, Iterable, Mapping

from flux import constants
from flux.job import job_kvs_lookup
from job_record import RANK_PREFIX, USAGE_KEY, annotation, usage
from state import by_rank, parse_idset, to_idset

#: Nodes that are asked at most; seconds for their answers
ASKED_NODES, USED_SECONDS = 256, 10.0
#: Seconds between two looks for a picture at least, and how many times as long as its CPU time the pause after one is
USE_SECONDS, USE_PAUSE_FACTOR = 5.0, 500
#: The states of jobs that no longer run (job_record.py)
ENDED = ("CLEANUP", "INACTIVE")

#: What nodes say, by their ranks as texts
OfNodes = Mapping[str, Mapping[str, Any]]


def words(ranks: str) -> list[str]:
    """Return the words that print what the guards of nodes have written."""
    home = os.environ.get("MINICLUSTER_HOME", "")
    return [f"{home}/bin/flux", "exec", "-q", "--label-io", "-r", ranks, "cat", f"{home}/config/run/usage/now"]


def of_nodes(text: str) -> OfNodes:
    """Return what nodes have said."""
    told = {}
    for line in filter(None, text.split("\n")):
        rank, _, said = line.partition(": ")
        with suppress(ValueError):
            told[rank] = json.loads(said)
    return told


def used_now(handle: Any, job: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a job has used, as its record will have it; None if no node says it."""
    ranks = job.get("ranks", "")
    if not ranks or len(parse_idset(ranks)) > ASKED_NODES:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - no shell
            words(ranks), capture_output=True, text=True, check=False, timeout=USED_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    had = by_rank((job_kvs_lookup(handle, job["id"], keys=["R"]) or {}).get("R"))
    told: dict[str, Any] = {}
    for rank, said in of_nodes(done.stdout).items():
        with suppress(KeyError, TypeError):
            told[f"{RANK_PREFIX}{rank}"] = {**said["jobs"][str(job["id"])], "cores": had[int(rank)][0]}
            if had[int(rank)][1]:
                told[f"{RANK_PREFIX}{rank}"]["gpus"] = had[int(rank)][1]
    ended = annotation(job, "user", USAGE_KEY) or {}
    return usage({**job, "annotations": {"user": {USAGE_KEY: {**told, **ended}}}}) if told else None


class Looks:
    """Runs a program again and again, beside another that goes on."""

    pause_factor = USE_PAUSE_FACTOR

    def __init__(self, handle: Any, reply: Any) -> None:
        self.handle, self.reply = handle, reply
        self.child: Any = None
        self.watcher: Any = None
        self.text, self.began, self.next_look = b"", 0.0, 0.0

    def asked(self) -> list[str]:
        """Return the words of the program; [] where there is nothing to look at."""
        raise NotImplementedError

    def told(self, text: str) -> None:
        """Take what it has printed."""
        raise NotImplementedError

    def look(self) -> None:
        """Run it, if it is time."""
        now = time.monotonic()
        if self.child:
            if now > self.began + USED_SECONDS:
                self.child.send_signal(signal.SIGKILL)  # a node is silent
        elif now >= self.next_look and (asked := self.asked()):
            self._ask(asked, now)

    def _ask(self, asked: list[str], now: float) -> None:
        none, pipe = subprocess.DEVNULL, subprocess.PIPE
        with suppress(OSError):
            self.child = subprocess.Popen(asked, stdin=none, stdout=pipe, stderr=none)  # noqa: S603 - no shell
            self.text, self.began = b"", now
            self.watcher = self.handle.fd_watcher_create(self.child.stdout.fileno(), self._read, constants.FLUX_POLLIN)
            self.watcher.start()

    def _read(self, *_: Any) -> None:
        part = os.read(self.child.stdout.fileno(), 1 << 16)
        self.text += part
        if not part:
            self.watcher.stop()
            self.child.stdout.close()
            took = os.wait4(self.child.pid, 0)[2]
            self.child.returncode, self.child = 0, None
            self.next_look = self.began + max(USE_SECONDS, self.pause_factor * (took.ru_utime + took.ru_stime))
            self.told(self.text.decode(errors="replace"))


class UseLooks(Looks):
    """Looks at what the jobs that run use."""

    def __init__(self, handle: Any, reply: Any) -> None:
        super().__init__(handle, reply)
        self.ranks: dict[int, str] = {}  #: of the jobs that run
        self.has_told = False

    def see(self, jobs: Iterable[Mapping[str, Any]]) -> None:
        """Take jobs, or what has changed of them."""
        for job in jobs:
            if job.get("state") in ENDED:
                self.ranks.pop(job["number"], None)
            elif job.get("ranks"):
                self.ranks[job["number"]] = job["ranks"]

    def asked(self) -> list[str]:
        """Return the words that ask the nodes of jobs."""
        asked = sorted({rank for ranks in self.ranks.values() for rank in parse_idset(ranks)})[:ASKED_NODES]
        if not asked and self.has_told:
            self._tell({})
        return words(to_idset(asked)) if asked else []

    def told(self, text: str) -> None:
        """Tell it on."""
        self._tell(of_nodes(text))

    def _tell(self, told: OfNodes) -> None:
        self.has_told = bool(told)
        self.reply(use=told, now=time.time())
