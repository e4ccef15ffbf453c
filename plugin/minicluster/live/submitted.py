"""Runs a flux command on the lead; a job that it follows is cancelled with it, or followed again after a cut."""

import json
import signal
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from minicluster.cluster.lead import Lead
from minicluster.cluster.wake import is_asleep, was_woken
from minicluster.errors import AccessError, KubernetesError, StateError
from minicluster.kube.kubectl import Kubernetes
from minicluster.lead.ask import LateError, SilentError, ask, program_words
from minicluster.live.attached import attach_options
from minicluster.live.input import Input
from minicluster.live.lookup import Cluster, refusals
from minicluster.live.piped import CutError, Ours, Written
from minicluster.live.ready import find_ready_lead
from minicluster.live.reconnection import Reconnection
from minicluster.live.run import run
from minicluster.outage import Age
from minicluster.plurals import counted
from minicluster.signals import handle_signals
from minicluster.streams import Say

#: The flux commands that submit a job and follow it; those that submit jobs and print their ids
FOLLOWING, SUBMITTING = ("run", "alloc"), ("submit", "bulksubmit", "batch")
#: Options of these by which they submit several jobs, or follow them after all
SEVERAL_OPTIONS, WAIT_OPTIONS = ("--cc", "--bcc"), ("--wait", "--watch")
#: The user attribute by which the job is found again
CLIENT_ATTRIBUTE = "user.minicluster-client"
#: The user attribute, and its value, by which a job may run twice
RUNS_AGAIN = "user.minicluster.requeue=1"
LOST_WITH_LEAD = (
    "the lead was lost with its queue, and what was submitted may have run: look before you run the command again; "
    "state.capacity keeps the queue"
)
#: Seconds in which the lead has to take our end
CANCEL_SECONDS = 8.0
#: The exit code of what was killed, also with its container
KILLED_CODE = 128 + signal.SIGKILL


def run_flux(kubernetes: Kubernetes, name: str, words: Sequence[str], say: Say, *, waits: bool) -> int:
    """Run a flux command on the lead, and return its exit code. Raises StateError, StatusError.

    With ``waits`` it waits for a MiniCluster that starts or sleeps.
    """
    lead = find_ready_lead(kubernetes, name, say, waits=waits)
    if words[0] in FOLLOWING:
        return _Following(kubernetes, lead, say).run(words)
    if words[0] in SUBMITTING:
        return _Submitting(kubernetes, lead, say).run(words)
    return run(kubernetes, lead, lead.flux_words(*words))


class _Following:
    """A flux command that follows a job of its own."""

    def __init__(self, kubernetes: Kubernetes, lead: Lead, say: Say) -> None:
        # apart: Ctrl-C on a terminal must not end our questions to the lead
        self._kubernetes = Kubernetes(kubernetes.context, kubernetes.namespace, is_apart=True)
        self._lead, self._stdin, self._written, self._say = lead, Input(), Written(), say
        self._name, self._again = lead.cluster, Reconnection(self._kubernetes, lead.cluster, say)
        self._key, self._age, self._was_told = f"key-{uuid.uuid4().hex}", Age(), False

    def run(self, words: Sequence[str]) -> int:
        """Run it, and attach to its job again whenever the connection breaks, or the lead is replaced."""
        line = marked = self._marked(words)
        place = 0
        while True:
            try:
                code = self._run(line, place)
                if not code or self._was_told or not self._fell_asleep():
                    return code
                cut, is_own = CutError("the lead fell asleep", process=line[0], code_of_pod=code), True
            except CutError as broken:
                if self._was_told:
                    raise
                cut, is_own = broken, False
            # what falls asleep is idle: no job of it runs
            former, job = self._lead.uid, self._find(cut, "find", is_own or _may_run_twice(words))
            if cut.code_of_pod is not None and former == self._lead.uid:
                return cut.code_of_pod
            if "exit_code" in job:
                self._say(f"job {job['id']} has ended, and Flux no longer has its output")
                return 1 if job["exit_code"] is None else int(job["exit_code"])
            if not job and not cut.process and former == self._lead.uid:
                raise StateError(f"{cut.reason}: no job was submitted so far: {self._goes_on(job)}")
            place = self._place(job)
            if former != self._lead.uid:
                self._say(f"job {job['id']} goes on" if job else "the job was not submitted: running the command again")
            # the last errors of a flux that ended are its own
            self._written.again(errors=not is_own)
            line = _attach(words, job) if job else marked

    def _marked(self, words: Sequence[str]) -> Sequence[str]:
        """Return a command whose jobs have our key."""
        return (words[0], f"--setattr={CLIENT_ATTRIBUTE}={self._key}", *words[1:])

    def _find(self, cut: CutError, action: str, may_run_twice: bool) -> dict[str, Any]:
        """Return the job, which may be on another lead now. Raises StateError, also for one that is lost."""
        try:
            self._lead, job = self._again.ask(cut, lambda lead: self._ask(action, lead))
        except AccessError as error:
            raise StateError(f"{error}: {self._goes_on({})}") from None
        if job.pop("lost", False) and not may_run_twice:
            raise StateError(LOST_WITH_LEAD)
        return job

    def _place(self, job: dict[str, Any]) -> int:
        """Return the place from which our input goes on. Raises StateError if a part of it is lost."""
        place, is_over = job.get("input", (0, False))
        if is_over and place < self._stdin.count:
            why = f"the connection broke when job {job['id']} had got {place} bytes of its input, which is cut there"
            raise StateError(f"{why}: {self._goes_on(job)}; run the command again")
        if not self._stdin.has(place):
            raise StateError(f"its input is lost{': ' + self._goes_on(job) if job else '; run the command again'}")
        return int(place)

    def _run(self, words: Sequence[str], place: int) -> int:
        """Return the exit code. Cancels a job that the command leaves behind. Raises CutError, StateError."""
        code = None
        # a second Ctrl-C must not end us before the job is cancelled
        with handle_signals(lambda *_: None):
            try:
                self._stdin.place = place
                line = self._lead.flux_words(*words)
                code = run(self._kubernetes, self._lead, line, Ours(self._stdin, self._told, self._written))
                if code == KILLED_CODE and sys.stdout.isatty():  # on a terminal nothing tells an end with the container
                    raise CutError("", code_of_pod=code)
                return code
            finally:
                if self._was_told or code == 128 + signal.SIGINT:
                    self._was_told = True
                    self._cancel()

    def _told(self, number: int) -> bool:
        """Return whether a signal needs no more: a job that waits gets no signals, so it is cancelled."""
        if not self._was_told:
            self._was_told = True
            self._kubernetes = self._kubernetes.within(CANCEL_SECONDS)
        # after Ctrl-C flux asks for a second one, and then cancels the job itself
        return number != signal.SIGINT and bool(self._try("stop").get("cancelled"))

    def _cancel(self) -> None:
        job = self._try("cancel")
        if job:
            self._say(f"job {job['id']} is cancelled")

    def _try(self, action: str) -> dict[str, Any]:
        try:
            return self._ask(action)
        except (KubernetesError, SilentError, LateError) as error:
            self._say(f"{getattr(error, 'reason', error)}: {self._goes_on({})}")
            return {}

    def _ask(self, action: str, lead: Lead | None = None) -> dict[str, Any]:
        """Ask the lead for the job. Raises what `ask` raises."""
        lead = lead or self._lead
        words = program_words(lead, self._key, f"{self._age.seconds:.1f}", action)
        found: dict[str, Any] = json.loads(ask(self._kubernetes, lead.pod, "job of a client", words))
        return found

    def _fell_asleep(self) -> bool:
        """Return whether the lead is gone because the MiniCluster was suspended when it was idle: no job of it ran."""
        with refusals():
            cluster = Cluster(self._kubernetes, self._name)
            lead = cluster.read_lead()
            if lead and lead.uid == self._lead.uid and lead.is_ready:
                return False
            job = cluster.read_job()
        return is_asleep(job) or was_woken(job)

    def _goes_on(self, job: dict[str, Any]) -> str:
        """Return what the user can do about a job that goes on."""
        flux = f"`minicluster flux {self._name} --"
        if job:
            name = job["id"]
            return f"job {name} goes on: {flux} job attach {name}` shows its output, {flux} cancel {name}` ends it"
        return f"what was submitted goes on: {flux} jobs` shows it, {flux} cancel ID` ends it"


class _Submitting(_Following):
    """A flux command that submits jobs and prints their ids: after a cut, Flux is asked whether it has them."""

    def run(self, words: Sequence[str]) -> int:
        """Return the exit code. Raises CutError, StateError."""
        while True:
            line = self._lead.flux_words(*self._marked(words))
            try:
                return run(self._kubernetes, self._lead, line, Ours(self._stdin, written=self._written))
            except CutError as cut:
                former, ids = self._lead.uid, self._find(cut, "taken", _may_run_twice(words)).get("ids", [])
                if ids:
                    return self._taken(words, ids, cut)
                if not self._stdin.has(0) or (not cut.process and former == self._lead.uid):
                    raise StateError(f"{cut.reason}: no job was submitted so far: {self._goes_on({})}") from None
                self._stdin.place = 0

    def _taken(self, words: Sequence[str], ids: Sequence[str], cut: CutError) -> int:
        """Print the ids that were not printed. Raises StateError where the command had more to do."""
        self._written.again()
        sys.stdout.buffer.write(self._written.new(0, "".join(f"{name}\n" for name in ids).encode()))
        sys.stdout.buffer.flush()
        options = {word.partition("=")[0] for word in words}
        if words[0] == "bulksubmit" or options.intersection(SEVERAL_OPTIONS):
            taken = counted(len(ids), "job")
            raise StateError(f"{cut.reason}: Flux has taken {taken}, and perhaps not all: look at them")
        if options.intersection(WAIT_OPTIONS):
            raise StateError(f"{cut.reason}: {self._goes_on({'id': ids[0]})}")
        return 0


def _may_run_twice(words: Sequence[str]) -> bool:
    """Return whether the options of a flux command mark its jobs so."""
    return any(word.endswith(RUNS_AGAIN) for word in words)


def _attach(words: Sequence[str], job: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the flux command that shows a job as the `flux run` of some words."""
    # the end of the input can't be sent twice
    read_only = ("--read-only",) if job["input"][1] else ()
    return ("job", "attach", *attach_options(words), *read_only, job["id"])
