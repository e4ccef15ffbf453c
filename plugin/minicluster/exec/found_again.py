"""A flux command on the lead whose jobs are found again after a cut: the key of its client, its streams, its job.

The lead itself is found again as long as an outage may take. A command of `flux job` only follows a job: it runs again.
"""

import json
import signal
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from minicluster.cluster.lead import Lead
from minicluster.console.streams import Say
from minicluster.errors import AccessError, AwayError, KubernetesError, RefusedError, StateError
from minicluster.exec.input import Input
from minicluster.exec.piped import CutError, Ours, SignalHandler
from minicluster.exec.run import is_on_terminal, run
from minicluster.exec.written import HeldBack, Written
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.outage import RETRY_SECONDS, Age, Outage
from minicluster.kube.port import KubePort
from minicluster.lead.ask import LateError, SilentError, ask, program_words
from minicluster.waiting.ready import find_ready_lead

#: The user attribute by which a job is found again
CLIENT_ATTRIBUTE = "user.minicluster-client"
LOST_WITH_LEAD = (
    "the lead was lost with its queue, and what was submitted may have run: look before you run the command again; "
    "state.capacity keeps the queue"
)
#: The exit code of what was killed, also with its container
KILLED_CODE = 128 + signal.SIGKILL
#: That of a flux command whose broker died, and of many others
FAILED_CODE = 1

Answer = TypeVar("Answer")


class FoundAgain:
    """A flux command of ours."""

    on_terminal = True  #: whether it has our terminal, if there is one

    def __init__(self, kubernetes: Kubernetes, lead: Lead, say: Say, stdin: Input | None = None) -> None:
        # apart: Ctrl-C on a terminal must not end our questions to the lead
        self._kubernetes = Kubernetes(kubernetes.context, kubernetes.namespace, is_apart=True)
        self._lead, self._stdin, self._written, self._say = lead, stdin or Input(), Written(), say
        self._name, self._again = lead.cluster, Reconnection(self._kubernetes, lead.cluster, say, self._goes_on)
        self._key, self._age = f"key-{uuid.uuid4().hex}", Age()
        self._job = ""  # its id, once it is known

    def _run(self, line: Sequence[str], place: int = 0, told: SignalHandler = lambda _: False) -> int:
        """Run a command line on the lead, which gets our input from a place on; return its exit code.

        Raises CutError, StateError.
        """
        self._stdin.place, begin = place, Age()
        ours = Ours(self._stdin, told, self._written, self.on_terminal)
        code = run(self._kubernetes, self._lead, line, ours)
        if code == KILLED_CODE and self._is_on_terminal():  # there nothing tells an end with the container
            raise CutError("", code_of_pod=code)
        if code in (FAILED_CODE, KILLED_CODE) and self._has_new_broker(begin):
            self._written.forget_errors()  # that of the command is its own
            raise CutError("the lead's broker died", process=line[0])
        return code

    def _run_held(self, line: Sequence[str]) -> int:
        """Do the same, and show the output only when the command has ended."""
        shown, self._written = self._written, (held := HeldBack())
        try:
            code = self._run(line)
        finally:
            self._written = shown
        held.pass_on()
        return code

    def _is_on_terminal(self) -> bool:
        return self.on_terminal and is_on_terminal()

    def _has_new_broker(self, since: Age) -> bool:
        """Return whether the lead's broker has died meanwhile; one that does not answer has."""
        try:
            return bool(self._ask("broker", age=since).get("is_new"))
        except LateError:  # we were told to end, and have ended the command
            return False
        except (SilentError, KubernetesError):
            return True

    def _marked(self, words: Sequence[str]) -> Sequence[str]:
        """Return a command whose jobs have our key."""
        return (words[0], f"--setattr={CLIENT_ATTRIBUTE}={self._key}", *words[1:])

    def _find(self, cut: CutError, action: str, *ids: str, may_run_twice: bool = False) -> dict[str, Any]:
        """Return the job, which may be on another lead now. Raises StateError, also for one that is lost."""
        self._lead, job = self._again.ask(cut, lambda lead: self._ask(action, *ids, lead=lead))
        if job.pop("lost", False) and not may_run_twice:
            raise StateError(LOST_WITH_LEAD)
        self._job = job.get("id", "")
        if "input" in job and self._is_on_terminal():
            self._say(f"the connection broke: what job {self._job} prints follows from its begin")
        return job

    def _ask(self, action: str, *ids: str, lead: Lead | None = None, age: Age | None = None) -> dict[str, Any]:
        """Ask the lead for the job. Raises what `ask` raises."""
        lead, age = lead or self._lead, age or self._age
        words = program_words(lead, self._key, f"{age.seconds:.1f}", action, *ids)
        answer: dict[str, Any] = json.loads(ask(self._kubernetes, lead.pod, "job of a client", words))
        return answer

    def _place(self, job: dict[str, Any]) -> int:
        """Return the place from which our input goes on. Raises StateError if a part of it is lost."""
        place, is_over = job.get("input", (0, False))
        if is_over and place < self._stdin.count:
            why = f"the connection broke when job {job['id']} had got {place} bytes of its input, which is cut there"
            raise StateError(f"{why}: {self._goes_on()}; run the command again")
        if not self._stdin.has(place):
            raise StateError(f"its input is lost{': ' + self._goes_on() if job else '; run the command again'}")
        return int(place)

    def _goes_on(self) -> str:
        """Return what the user can do about a job that goes on."""
        return job_goes_on(self._name, self._job, f"flux {self._name} -- job attach {self._job}")

    def _ended(self, job: dict[str, Any]) -> int:
        """Return the exit code of a job that Flux has forgotten."""
        self._say(f"job {job['id']} has ended, and Flux no longer has its output")
        return 1 if job["exit_code"] is None else int(job["exit_code"])


class Reconnection:
    """What is known of the broken connections of one command; ``goes_on`` says what the user can do without it."""

    def __init__(self, kubernetes: KubePort, name: str, say: Say, goes_on: Callable[[], str]) -> None:
        self._kubernetes, self._name, self._say, self._goes_on = kubernetes, name, say, goes_on
        self._outage = Outage(say)

    def ask(self, cut: CutError, question: Callable[[Lead], Answer]) -> tuple[Lead, Answer]:
        """Return the lead, and its answer to a question. It tells of an outage.

        Raises StateError when that takes too long, is refused, or the MiniCluster has ended.
        """
        if cut.process:
            self._outage.end()
        else:
            self._pause(cut.reason)
        try:
            while True:
                try:
                    lead = find_ready_lead(self._kubernetes, self._name, self._say)
                    return lead, question(lead)
                except AccessError as error:
                    if isinstance(error.cause, RefusedError):
                        raise StateError(f"{error}: {self._goes_on()}") from None
                    self._pause(error.cause.reason)
                except (AwayError, SilentError) as error:
                    self._pause(error.reason)
        except KeyboardInterrupt:
            self._say(self._goes_on())
            raise

    def _pause(self, why: str) -> None:
        if not self._outage.bears(why):
            raise StateError(f"{why}: {self._goes_on()}")
        time.sleep(RETRY_SECONDS)


def job_goes_on(name: str, job: str, shows: str) -> str:
    """Return what the user can do about a job of a MiniCluster, "" for one whose id isn't known.

    ``shows`` are the words of the command that shows its output.
    """
    flux = f"`minicluster flux {name} --"
    if job:
        return f"job {job} goes on: `minicluster {shows}` shows its output, {flux} cancel {job}` ends it"
    return f"what was submitted goes on: {flux} jobs` shows it, {flux} cancel ID` ends it"


#: These commands, which print the same each time
COMMANDS = ("attach", "eventlog", "status", "wait-event")

#: Options of `flux run` that have no value: those of `flux job attach`, and the others
ATTACH_FLAGS = {"l": "--label-io", "u": "--unbuffered"}
RUN_FLAGS = {**ATTACH_FLAGS, "x": "--exclusive", "v": "--verbose", "h": "--help"}
OTHER_RUN_FLAGS = {"--dry-run", "--quiet", "--list-plugins", "--debug-emulate"}


def attaches(words: Sequence[str]) -> bool:
    """Return whether a flux command is one of COMMANDS."""
    # what `--tail` prints is another part of the output each time
    is_part = any(word.startswith("--tail") for word in words)
    return len(words) > 2 and words[0] == "job" and words[1] in COMMANDS and not is_part


def read_only(job: Mapping[str, Any]) -> Sequence[str]:
    """Return the option to attach to a job that has got all of its input: its end can't be sent twice."""
    return ("--read-only",) if job["input"][1] else ()


class Attached(FoundAgain):
    """A command of `flux job`."""

    def attach(self, words: Sequence[str], place: int = 0) -> int:
        """Run it, which may follow another command, with our input from a place on; return its exit code.

        Raises CutError, StateError.
        """
        is_attach, line = words[1] == "attach", words
        if is_attach:
            self._job = words[-1]
        while True:
            # the words have our key, by which the lead ends a command that would read on
            key = ("env", f"{CLIENT_ATTRIBUTE}={self._key}") if is_attach else ()
            try:
                return self._run((*key, *self._lead.flux_words(*line)), place)
            except CutError as cut:
                former = self._lead.uid
                job = self._find(cut, "find", *(line[-1:] if is_attach else ()), may_run_twice=True)
                if cut.code_of_pod is not None and former == self._lead.uid:
                    return cut.code_of_pod
            if "exit_code" in job:
                return self._ended(job)
            if job:
                place = self._place(job)
                line = (*words[:-1], *read_only(job), job["id"])
            elif is_attach:
                raise StateError(f"job {words[-1]} is lost: the lead was replaced, and its queue was not kept")
            self._written.again()


def attach_options(words: Sequence[str]) -> list[str]:
    """Return the options of `flux job attach`, by the words of a `flux run`."""
    options: list[str] = []
    rest = [*words[1:]]
    while rest and rest[0].startswith("-") and rest[0] != "--":
        word = rest.pop(0)
        given = [word] if word.startswith("--") else []
        for place, letter in enumerate(word[1:], 1) if not given else ():
            given.append(RUN_FLAGS.get(letter, f"-{letter}"))
            if letter not in RUN_FLAGS:
                # the rest of the word is its value, or the next word
                if place + 1 == len(word):
                    rest[:1] = []
                break
        options += [option for option in given if option in ATTACH_FLAGS.values()]
        if word.startswith("--") and "=" not in word and word not in (*RUN_FLAGS.values(), *OTHER_RUN_FLAGS):
            rest[:1] = []
    return options
