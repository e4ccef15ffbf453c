"""Runs commands of `flux job` that follow a job, again after a cut; they neither submit it nor end it."""

from collections.abc import Mapping, Sequence
from typing import Any

from minicluster.errors import StateError
from minicluster.exec.found_again import CLIENT_ATTRIBUTE, FoundAgain
from minicluster.exec.piped import CutError

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

    def run(self, words: Sequence[str]) -> int:
        """Return its exit code. Raises CutError, StateError."""
        return self.attach(words)

    def attach(self, words: Sequence[str], place: int = 0) -> int:
        """Do the same for a command that may follow another one, and go on with our input from a place on."""
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
