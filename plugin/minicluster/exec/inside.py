"""Runs a command in an instance of Flux of its own inside a MiniCluster that stays: `minicluster run --in NAME`."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minicluster.cluster.lead import Lead
from minicluster.console.streams import Say
from minicluster.errors import DeadlineError, KubernetesError
from minicluster.exec.found_again import CLIENT_ATTRIBUTE, read_only
from minicluster.exec.submitted import Following
from minicluster.exec.written import UntilMark
from minicluster.kube.kubectl import Kubernetes
from minicluster.lead.ask import LateError, SilentError
from minicluster.lead.program import program_text
from minicluster.waiting.ready import find_ready_lead

if TYPE_CHECKING:
    from minicluster.exec.upload import Upload
    from minicluster.exec.uploaded import Brought

#: Seconds after which it is said why an instance does not begin
WAIT_SECONDS = 3.0


@dataclass(frozen=True)
class Work:
    """What runs in the instance."""

    command: Sequence[str]
    nodes: int = 1
    tasks: int | None = None  #: None is one on each node, which it has whole
    seconds: float | None = None  #: for the start and the work
    upload: Upload | None = None


def run_inside(kubernetes: Kubernetes, name: str, work: Work, say: Say) -> int:
    """Run the work in an instance of a MiniCluster, which is woken if it sleeps, and return its exit code.

    Raises StateError, StatusError; DeadlineError when the time is over.
    """
    upload = work.upload
    if upload:
        upload.check()
    kubernetes = kubernetes.within(work.seconds)
    lead = find_ready_lead(kubernetes, name, say)
    brought = upload.bring(kubernetes, lead, say) if upload else None
    code = _Instance(kubernetes, lead, work, brought, say).run(("python", "-c", program_text("instance")))
    if upload and brought:
        upload.fetch(kubernetes, lead, brought, say)
    return code


class _Instance(Following):
    """An instance. Its streams are pipes even on a terminal, so that their ends are seen."""

    on_terminal = False

    def __init__(self, kubernetes: Kubernetes, lead: Lead, work: Work, brought: Brought | None, say: Say) -> None:
        super().__init__(kubernetes, lead, say)
        self._limit = kubernetes
        self._work, self._brought, self._written = work, brought, UntilMark()
        self._stopped_by, self._is_late = 0, False

    def run(self, words: Sequence[str]) -> int:
        """Return the exit code; that of a signal, if one has ended it. Raises DeadlineError when the time is over."""
        with self._limited():
            code = super().run(words)
        if self._is_late:
            raise DeadlineError(f"{self._name} in {self._kubernetes}: gave up after {self._work.seconds:g} s")
        return 128 + self._stopped_by if self._stopped_by else code

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Stop at the end of the time, as if a signal came; and say why it has not begun."""
        timers = [threading.Timer(WAIT_SECONDS, self._tell)]
        if self._work.seconds is not None:
            timers.append(threading.Timer(self._limit.left(self._work.seconds), self._end))
        for timer in timers:
            timer.daemon = True
            timer.start()
        try:
            yield
        finally:
            for timer in timers:
                timer.cancel()

    def _end(self) -> None:
        self._is_late = True
        os.kill(os.getpid(), signal.SIGTERM)

    def _tell(self) -> None:
        """Say why it waits, if it does."""
        with suppress(KubernetesError, SilentError, LateError):
            job = self._ask("waits")
            if job.get("waits"):
                self._say(f"job {job['id']} {job['waits']}")

    def _told(self, number: int) -> bool:
        """Cancel the job at the first signal; there may be none yet, so the command that submits it gets the signal."""
        self._stopped_by = self._stopped_by or number
        self._begin_to_end()
        # what fails here is said when it is tried again
        self._cancel(lambda _: None)
        return self._is_cancelled

    def _attach(self, _words: Sequence[str], job: Mapping[str, Any]) -> tuple[str, ...]:
        return ("job", "attach", *read_only(job), job["id"])

    def _marked(self, words: Sequence[str]) -> Sequence[str]:
        job = {
            "command": self._work.command,
            "nodes": self._work.nodes,
            "tasks": self._work.tasks,
            "seconds": self._work.seconds or 0,
            # None is that of the lead's container
            "cwd": self._brought.path if self._brought else None,
            "environment": self._brought.environment if self._brought else {},
            "user": {CLIENT_ATTRIBUTE.partition(".")[2]: self._key},
        }
        return (*words, f"{self._lead.home}/bin/flux", json.dumps(job), f"{CLIENT_ATTRIBUTE}={self._key}")
