"""Runs a flux command on the lead; a job that it follows is cancelled with it, or followed again after a sleep."""

import json
import signal
import time
import uuid
from collections.abc import Sequence
from typing import Any

from minicluster.cluster.lead import Lead
from minicluster.cluster.wake import is_asleep, was_woken
from minicluster.errors import KubernetesError, StateError
from minicluster.kube.kubectl import Kubernetes
from minicluster.lead.ask import SilentError, ask, program_words
from minicluster.live.input import Input
from minicluster.live.lookup import Cluster, refusals
from minicluster.live.ready import find_ready_lead
from minicluster.live.run import handle_signals, run
from minicluster.streams import Say

#: The flux commands that submit a job and follow it
FOLLOWING = ("run", "alloc")
#: The user attribute by which the job is found again
CLIENT_ATTRIBUTE = "user.minicluster-client"
#: The most seconds between our clock and the queue's times
CLOCK_SECONDS = 60.0


def run_flux(kubernetes: Kubernetes, name: str, words: Sequence[str], say: Say, *, waits: bool) -> int:
    """Run a flux command on the lead, and return its exit code. Raises StateError, StatusError.

    With ``waits`` it waits for a MiniCluster that starts or sleeps.
    """
    lead = find_ready_lead(kubernetes, name, say, waits=waits)
    if words[0] not in FOLLOWING:
        return run(kubernetes, lead, lead.flux_words(*words))
    return _Following(kubernetes, lead, say).run(words)


class _Following:
    """A flux command that follows a job of its own."""

    def __init__(self, kubernetes: Kubernetes, lead: Lead, say: Say) -> None:
        # apart: Ctrl-C on a terminal must not end our questions to the lead
        self._kubernetes = Kubernetes(kubernetes.context, kubernetes.namespace, is_apart=True)
        self._lead, self._stdin, self._say = lead, Input(), say
        self._name = lead.cluster
        self._key, self._begin, self._was_told = f"key-{uuid.uuid4().hex}", time.monotonic(), False

    def run(self, words: Sequence[str]) -> int:
        marked = (words[0], f"--setattr={CLIENT_ATTRIBUTE}={self._key}", *words[1:])
        code, error = self._run(marked)
        end = time.monotonic()
        while (code or error) and not self._was_told and self._fell_asleep():
            former = self._lead
            self._lead = find_ready_lead(self._kubernetes, self._name, self._say)
            if self._lead.uid == former.uid:
                break
            job = self._ask("find")
            if "exit_code" in job:
                self._say(f"job {job['id']} has ended, and Flux no longer has its output")
                return 1 if job["exit_code"] is None else int(job["exit_code"])
            if job and job["began"] is not None and job["began"] > time.monotonic() - end:
                break  # its output so far would be printed twice
            if not self._stdin.rewind():
                raise StateError(f"its input is lost{': ' + self._goes_on(job) if job else '; run the command again'}")
            self._say(f"job {job['id']} goes on" if job else "the job was not submitted: running the command again")
            code, error = self._run(("job", "attach", job["id"]) if job else marked)
        if error:
            raise error
        return code

    def _run(self, words: Sequence[str]) -> tuple[int, StateError | None]:
        """Return the exit code, or why the command could not be run. Cancels a job that the command leaves behind."""
        code, error = 0, None
        # a second Ctrl-C must not end us before the job is cancelled
        with handle_signals(lambda *_: None):
            try:
                code = run(self._kubernetes, self._lead, self._lead.flux_words(*words), self._stdin, self._told)
            except StateError as raised:
                error = raised
            if self._was_told or code == 128 + signal.SIGINT:
                self._was_told = True
                self._cancel()
        return code, error

    def _told(self, number: int) -> bool:
        """Return whether a signal needs no more: a job that waits gets no signals, so it is cancelled."""
        self._was_told = True
        # after Ctrl-C flux asks for a second one, and then cancels the job itself
        return number != signal.SIGINT and bool(self._try("stop").get("cancelled"))

    def _cancel(self) -> None:
        job = self._try("cancel")
        if job:
            self._say(f"job {job['id']} is cancelled")

    def _try(self, action: str) -> dict[str, Any]:
        try:
            return self._ask(action)
        except (KubernetesError, SilentError) as error:
            self._say(f"{error.reason}: {self._goes_on({})}")
            return {}

    def _ask(self, action: str) -> dict[str, Any]:
        """Ask the lead for the job. Raises what `ask` raises."""
        lead, age = self._lead, time.monotonic() - self._begin + CLOCK_SECONDS
        words = program_words(lead, self._key, f"{age:.0f}", action)
        found: dict[str, Any] = json.loads(ask(self._kubernetes, lead.pod, "job of a client", words))
        return found

    def _goes_on(self, job: dict[str, Any]) -> str:
        """Return what the user can do about a job that goes on."""
        flux = f"`minicluster flux {self._name} --"
        if job:
            name = job["id"]
            return f"job {name} goes on: {flux} job attach {name}` shows its output, {flux} cancel {name}` ends it"
        return f"what was submitted goes on: {flux} jobs` shows it, {flux} cancel ID` ends it"

    def _fell_asleep(self) -> bool:
        """Return whether the lead is gone because the MiniCluster was suspended when it was idle."""
        with refusals():
            cluster = Cluster(self._kubernetes, self._name)
            lead = cluster.read_lead()
            if lead and lead.uid == self._lead.uid and lead.is_ready:
                return False
            job = cluster.read_job()
        return is_asleep(job) or was_woken(job)
