"""Shells that submit jobs by `minicluster flux`."""

import os
import queue
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from minicluster.kube.names import REQUEUE_ATTRIBUTE

from tools.chaos.client import END_SECONDS, MAY_HAVE_RUN, Client, Heard
from tools.chaos.jobs import records
from tools.chaos.watched import say
from tools.clients import Done, run, until

#: Seconds that a submission has: those of an outage, and of a lead that is replaced
SUBMIT_SECONDS = 1500.0
#: What the note of a job says that goes on as another one
GOES_ON_AS = re.compile(r"runs again as (\S+)$")


@dataclass
class Shells(Client):
    """So many shells at once."""

    number: int = field(kw_only=True)
    said: dict[str, Done] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._wanted: queue.Queue[tuple[str, list[str]]] = queue.Queue(1)
        for _ in range(self.number):
            threading.Thread(target=self._work, daemon=True).start()

    def submit(self, name: str, script: str, *, is_marked: bool) -> None:
        """Let the next shell that is free submit a job."""
        mark = [f"--setattr={REQUEUE_ATTRIBUTE}=1"] if is_marked else []
        words = ["submit", f"--job-name={name}", *mark, "sh", "-c", script]
        self._wanted.put((name, words))

    def _work(self) -> None:
        cluster = self.release
        command = ("minicluster", "flux", cluster.name, "--namespace", cluster.namespace, "--")
        env = {**cluster.cluster.env, "KUBECONFIG": os.environ["KUBECONFIG"]}
        while True:
            name, words = self._wanted.get()
            self.said[name] = done = run(*command, *words, env=env, seconds=SUBMIT_SECONDS)
            if done.code:
                say(f"{name}: {done.code} {done.err.strip()}")
            self._wanted.task_done()

    def told(self) -> dict[str, Heard]:
        """Wait for all jobs; return what the shells printed, and how these jobs ended."""
        self._wanted.join()
        until(lambda: self.release.flux(0, "jobs", "-n", "-o", "{id}") == "" and self.answers(), END_SECONDS)
        jobs = {row["id"]: row for row in records(self.release, 2 * self.count)}
        names = [f"job-{number}" for number in range(self.count)]
        return {name: told(name, self.said[name], jobs) for name in names}


def told(name: str, said: Done, jobs: Mapping[str, Mapping[str, Any]]) -> Heard:
    """Return what a shell printed of its job, and how the job ended."""
    if said.code:
        return Heard("", "refused", said.err.strip())
    doubt = partial(Heard, said.out.strip(), "in doubt")
    if not re.fullmatch(r"\S+\n", said.out):
        return doubt(f"printed {said.out!r}")
    job = jobs.get(plain(said.out))
    while job and (copy := GOES_ON_AS.search(job["exception"] or "")):
        job = jobs.get(plain(copy[1]))
    if not job:
        return Heard(said.out.strip(), "lost")
    if job["name"] != name:
        return doubt(f"is {job}")
    if job["result"] == "COMPLETED":
        return Heard(job["id"], "completed")
    why = str(job["exception"])
    return Heard(job["id"], "may have run", why) if any(note in why for note in MAY_HAVE_RUN) else doubt(f"is {job}")


def plain(name: str) -> str:
    """Return a job's id as records have it."""
    return name.strip().replace("ƒ", "f")
