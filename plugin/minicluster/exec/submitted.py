"""Runs a flux command on the lead; a job that it follows is cancelled with it, or followed again after a cut."""

import signal
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from minicluster.cluster.job import is_asleep, was_woken
from minicluster.cluster.lead import Lead
from minicluster.console import lines
from minicluster.console.messages import counted
from minicluster.console.signals import handle_signals
from minicluster.console.streams import Say
from minicluster.errors import KubernetesError, StateError
from minicluster.exec.found_again import (
    Attached,
    FoundAgain,
    Reconnection,
    attach_options,
    attaches,
    job_goes_on,
    read_only,
)
from minicluster.exec.piped import CutError
from minicluster.exec.run import run, run_program
from minicluster.exec.written import Written
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.names import REQUEUE_ATTRIBUTE
from minicluster.kube.port import KubePort
from minicluster.lead.ask import QUESTIONS, LateError, SilentError, program_words, take
from minicluster.lead.program import first_line
from minicluster.status.lookup import Cluster, refusals
from minicluster.waiting.ready import find_ready_lead

#: The flux commands that submit a job and follow it; those that submit jobs and print their ids
FOLLOWING, SUBMITTING = ("run", "alloc"), ("submit", "bulksubmit", "batch")
#: Options of these by which they submit several jobs
SEVERAL_OPTIONS = ("--cc", "--bcc")
#: The commands of `flux job` that go on where such an option would
FOLLOWED_BY = {"--watch": ("attach", "--read-only"), "--wait": ("status",)}
#: Options with which a command shows something before its end
SHOWING_OPTIONS = (*FOLLOWED_BY, "--wait-event", "--progress")
#: Runs a command that submits jobs, and saves them: no kill of the lead loses an id that is shown then
SAVED = '"$@" || exit; "$1" kvs put --sync minicluster.saved=1 >/dev/null 2>&1; exit 0'
#: Seconds in which the lead has to take our end
CANCEL_SECONDS = 8.0


def run_flux(kubernetes: Kubernetes, name: str, words: Sequence[str], say: Say, *, waits: bool) -> int:
    """Run a flux command on the lead, and return its exit code. Raises StateError, StatusError.

    With ``waits`` it waits for a MiniCluster that starts or sleeps.
    """
    lead = find_ready_lead(kubernetes, name, say, waits=waits)
    code = _run(kubernetes, lead, words, say)
    is_unread = code and words[0] == "batch" and not _option_names(words).intersection(SHOWING_OPTIONS)
    for script in [word for word in words[1:] if Path(word).is_file()] if is_unread else []:
        way = f"`minicluster flux {name} -- batch OPTIONS <FILE` sends a file from here"
        say(f"{script} was looked for on the lead: {way}")
    return code


def _run(kubernetes: Kubernetes, lead: Lead, words: Sequence[str], say: Say) -> int:
    if words[0] in FOLLOWING:
        return Following(kubernetes, lead, say).run(words)
    if words[0] in SUBMITTING:
        return _Submitting(kubernetes, lead, say).run(words)
    if attaches(words):
        return Attached(kubernetes, lead, say).attach(words)
    return run(kubernetes, lead, lead.flux_words(*words))


class Following(FoundAgain):
    """A flux command that follows a job of its own."""

    _was_told = False  # to end
    _is_cancelled = False

    def run(self, words: Sequence[str]) -> int:
        """Run it, and attach to its job again whenever the connection breaks, or the lead is replaced."""
        line = marked = self._marked(words)
        place = 0
        while True:
            try:
                code = self._follow(line, place)
                if not code or self._was_told or not self._fell_asleep():
                    return code
                cut, is_own = CutError("the lead fell asleep", process=line[0], code_of_pod=code), True
            except CutError as broken:
                if self._was_told:
                    raise
                cut, is_own = broken, False
            # what falls asleep is idle: no job of it runs
            former, job = self._lead.uid, self._find(cut, "find", may_run_twice=is_own or _may_run_twice(words))
            if cut.code_of_pod is not None and former == self._lead.uid:
                return cut.code_of_pod
            if "exit_code" in job:
                return self._ended(job)
            if not job and not cut.process and former == self._lead.uid:
                raise StateError(f"{cut.reason}: no job was submitted so far: {self._goes_on()}")
            place = self._place(job)
            if former != self._lead.uid:
                self._say(f"job {job['id']} goes on" if job else "the job was not submitted: running the command again")
            # the last errors of a flux that ended are its own
            self._written.again(errors=not is_own)
            line = self._attach(words, job) if job else marked

    def _follow(self, words: Sequence[str], place: int) -> int:
        """Return the exit code. Cancels a job that the command leaves behind. Raises CutError, StateError."""
        code = None
        # a second Ctrl-C must not end us before the job is cancelled
        with handle_signals(lambda *_: None):
            try:
                code = self._run(self._lead.flux_words(*words), place, self._told)
                return code
            finally:
                if self._was_told or code == 128 + signal.SIGINT:
                    self._was_told = True
                    self._cancel(self._say)

    def _attach(self, words: Sequence[str], job: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the flux command that shows a job as the `flux run` of some words."""
        return ("job", "attach", *attach_options(words), *read_only(job), job["id"])

    def _told(self, number: int) -> bool:
        """Return whether a signal needs no more: a job that waits gets no signals, so it is cancelled."""
        self._begin_to_end()
        # after Ctrl-C flux asks for a second one, and then cancels the job itself. What fails here, `_cancel` says
        return number != signal.SIGINT and bool(self._try("stop", lambda _: None).get("cancelled"))

    def _begin_to_end(self) -> None:
        """Give the lead a limit of time from now on."""
        if not self._was_told:
            self._was_told = True
            self._kubernetes = self._kubernetes.within(CANCEL_SECONDS)

    def _cancel(self, say: Say) -> None:
        if not self._is_cancelled and (job := self._try("cancel", say)):
            self._is_cancelled = True
            self._say(f"job {job['id']} is cancelled")

    def _try(self, action: str, say: Say) -> dict[str, Any]:
        try:
            return self._ask(action)
        except (KubernetesError, SilentError, LateError) as error:
            say(f"{getattr(error, 'reason', error)}: {self._goes_on()}")
            return {}

    def _fell_asleep(self) -> bool:
        """Return whether the lead is gone because the MiniCluster was suspended when it was idle: no job of it ran."""
        with refusals():
            cluster = Cluster(self._kubernetes, self._name)
            lead = cluster.read_lead()
            if lead and lead.uid == self._lead.uid and lead.is_ready:
                return False
            job = cluster.read_job()
        return is_asleep(job) or was_woken(job)


class _Submitting(Attached):
    """A flux command that submits jobs and prints their ids: after a cut, Flux is asked whether it has them."""

    def run(self, words: Sequence[str]) -> int:
        """Return the exit code. Raises CutError, StateError."""
        options = _option_names(words)
        is_held = not options.intersection(SHOWING_OPTIONS)
        while True:
            try:
                # no id is shown before it is saved
                line = ("/bin/sh", "-c", SAVED, "sh", *self._lead.flux_words(*self._marked(words)))
                return self._run_held(line) if is_held else self._run(line)
            except CutError as cut:
                former = self._lead.uid
                ids = self._find(cut, "taken", may_run_twice=_may_run_twice(words)).get("ids", [])
                if ids:
                    return self._taken(words[0], options, ids, cut)
                if not self._stdin.has(0) or (not cut.process and former == self._lead.uid):
                    raise StateError(f"{cut.reason}: no job was submitted so far: {self._goes_on()}") from None

    def _taken(self, command: str, options: set[str], ids: Sequence[str], cut: CutError) -> int:
        """Print the ids of jobs that Flux has, and go on as the options say. Raises StateError for several jobs."""
        if command == "bulksubmit" or options.intersection(SEVERAL_OPTIONS):
            self._print(ids)
            taken = counted(len(ids), "job")
            raise StateError(f"{cut.reason}: Flux has taken {taken}, and perhaps not all: look at them") from None
        self._print(ids[:1])  # the others run it again
        follow = next((words for option, words in FOLLOWED_BY.items() if option in options), None)
        return self.attach(("job", *follow, ids[0])) if follow else 0

    def _print(self, ids: Sequence[str]) -> None:
        """Print ids that were not printed."""
        self._written.complete("".join(f"{name}\n" for name in ids))


def _option_names(words: Sequence[str]) -> set[str]:
    return {word.partition("=")[0] for word in words}


def _may_run_twice(words: Sequence[str]) -> bool:
    """Return whether the options of a flux command mark its jobs so."""
    return any(word.endswith(f"{REQUEUE_ATTRIBUTE}=1") for word in words)


def show_output(kubernetes: Kubernetes, name: str, job: str, say: Say, *, follows: bool, waits: bool) -> int:  # noqa: PLR0913 - one has a name each
    """Print the output of a job, with ``follows`` until its end; return 1 if there is none. Raises StatusError.

    When the connection breaks, it goes on where it was.
    """
    lead = find_ready_lead(kubernetes, name, say, waits=waits)
    written, name = Written(), lead.cluster
    again = Reconnection(kubernetes, name, say, lambda: job_goes_on(name, job, f"output {name} {job} -f"))
    while True:
        words = program_words(lead, name, job, *(["follow"] if follows else []))
        try:
            return run_program(kubernetes, lead, words, first_line("printed"), written)
        except CutError as cut:
            former = lead.uid
            lead, _ = again.ask(cut, lambda _: None)
            if cut.code_of_pod and lead.uid == former:
                raise
        written.again()


def read_output(kubernetes: KubePort, name: str, job: str, most: int) -> tuple[str, int]:
    """Return the last bytes of what a job has printed so far on both streams, and how many came before.

    Wakes nothing. Raises StateError, also if there is no such job or no output; StatusError.
    """
    lead = find_ready_lead(kubernetes, name, lambda _: None, waits=False)
    limit, tail = QUESTIONS["output of a job"], lines.Tail(most)
    words = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh", *program_words(lead, lead.cluster, job))
    with refusals(), closing(kubernetes.run(lead.pod.name, lead.pod.runner, words, has_input=True)) as channel:
        channel.write(first_line(limit.program).encode())
        has_ended = take(channel, limit.seconds, tail.take)
    text, before = tail.end()
    if not has_ended:
        raise StateError(f"the output of job {job} did not come within {limit.seconds:g} s")
    if channel.exit_code:
        raise StateError(lines.split(text or "no answer")[-1].removeprefix("minicluster: "))
    return text, before
