"""Reads command lines, variables and the `#SBATCH` lines of scripts by a table of options, as Slurm reads them.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple, Sequence

from slurm_options import DENIED, OTHER_NAMES, PASSED, PREFIXES, Option, options_of

#: Slurm has a limit too
SCRIPT_BYTES = 4 << 20
#: Lines of a script that Slurm reads otherwise than as its options
HETEROGENEOUS = ("#SBATCH hetjob", "#SBATCH packjob", "#HETJOB", "#PACKJOB")


class SlurmError(Exception):
    """What was asked can't be done; the text says why, in one line."""


class Submission(NamedTuple):
    """What was given: the values by the options' names, and the words after the options."""

    values: Mapping[str, str]  #: "" for an option without a value
    words: Sequence[str]
    passed: Sequence[str]  #: a line for each option that is passed over


class Reader:
    """Reads words by a table, in the way of getopt_long."""

    def __init__(self, options: Iterable[Option]) -> None:
        self.options = list(options)
        self.by_name = {option.name: option for option in self.options}
        self.by_short = {option.short: option for option in self.options if option.short}

    def read(self, words: Sequence[str], permute: bool = False) -> tuple[list[tuple[Option, str]], list[str]]:
        """Return the options with their values, and the other words. Raises SlurmError."""
        options: list[tuple[Option, str]] = []
        rest: list[str] = []
        left = list(words)
        while left:
            word = left.pop(0)
            if word == "--":
                return options, rest + left
            if word.startswith("--"):
                options.append(self._long(word[2:], left))
            elif word.startswith("-") and word != "-":
                options += self._letters(word[1:], left)
            elif permute:
                rest.append(word)
            else:
                return options, [word, *left]
        return options, rest

    def _long(self, text: str, left: list[str]) -> tuple[Option, str]:
        name, has_value, value = text.partition("=")
        option = self._named(name)
        if option.value == "=" and not has_value:
            if not left:
                raise SlurmError(f"option '--{name}' requires an argument")
            value = left.pop(0)
        elif has_value and not option.value:
            raise SlurmError(f"option '--{name}' doesn't allow an argument")
        return option, value

    def _named(self, name: str) -> Option:
        name = OTHER_NAMES.get(name, name)
        if name in self.by_name:
            return self.by_name[name]
        similar = [option for option in self.options if name and option.name.startswith(name)]
        if len(similar) == 1:
            return similar[0]
        if similar:
            names = " ".join(f"'--{option.name}'" for option in similar)
            raise SlurmError(f"option '--{name}' is ambiguous; possibilities: {names}")
        raise SlurmError(f"unrecognized option '--{name}'")

    def _letters(self, text: str, left: list[str]) -> list[tuple[Option, str]]:
        options = []
        while text:
            letter, text = text[0], text[1:]
            if letter not in self.by_short:
                raise SlurmError(f"invalid option -- '{letter}'")
            option = self.by_short[letter]
            if option.value == "=":
                if not text and not left:
                    raise SlurmError(f"option requires an argument -- '{letter}'")
                options.append((option, text or left.pop(0)))
                return options
            if option.value == "?":
                options.append((option, text))
                return options
            options.append((option, ""))
        return options


def read_words(
    options: Iterable[Option], words: Sequence[str], lists: Sequence[str] = ()
) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the options of a command that shows or changes jobs, and its other words. Raises SlurmError.

    Of an option that is given again the last value counts, but for ``lists``, whose values add up.
    """
    options_given, rest = Reader(options).read(words, permute=True)
    for option, _ in options_given:
        if option.kind == DENIED:
            raise SlurmError(f"{option.shown}: not in a MiniCluster: {option.text}")
    given: dict[str, str] = {}
    for option, value in options_given:
        given[option.name] = f"{given[option.name]},{value}" if option.name in lists and option.name in given else value
    return given, rest


#: The one QOS: that of jobs that may be stopped for others (preemption.py)
STANDBY = ("qos", "standby")


def read_submission(
    command: str, words: Sequence[str], environment: Mapping[str, str], script: str = "", name: str = "script"
) -> Submission:
    """Return what is asked of a job: words before variables before the script's own lines. Raises SlurmError.

    The script's text is "" where there is none, or where it isn't read yet.
    """
    reader = Reader(options_of(command))
    of_words, rest = reader.read(words)
    options_given = [*_of_lines(reader, script, name), *_of_variables(command, environment), *of_words]
    given: dict[str, str] = {}
    passed = {}
    for option, value in options_given:
        if option.kind == DENIED:
            raise SlurmError(f"{option.shown}: not in a MiniCluster: {option.text}")
        if option.kind == PASSED and (option.name, value) != STANDBY:
            passed[option.name] = f"{option.shown} is passed over: {option.text}"
            continue
        for other in _INSTEAD.get(option.name, ()):
            given.pop(other, None)
        given[option.name] = value
    return Submission(given, rest, list(passed.values()))


#: Options of which the last one given counts
_INSTEAD: Mapping[str, Sequence[str]] = {
    "requeue": ("no-requeue",),
    "no-requeue": ("requeue",),
    "mem": ("mem-per-cpu", "mem-per-gpu"),
    "mem-per-cpu": ("mem", "mem-per-gpu"),
    "mem-per-gpu": ("mem", "mem-per-cpu"),
}


def _of_variables(command: str, environment: Mapping[str, str]) -> Iterable[tuple[Option, str]]:
    """Yield the options that variables stand for. In a job, SLURM_* are what sbatch set: only some are for srun."""
    for option in options_of(command):
        text = environment.get(PREFIXES[command] + option.variable) if option.variable else None
        if text is None or (command == "srun" and option.kind in (PASSED, DENIED)):
            continue
        if option.value:
            yield option, text
        elif text.lower() not in ("0", "no", "false"):
            yield option, ""


def _of_lines(reader: Reader, script: str, name: str) -> Iterable[tuple[Option, str]]:
    """Yield the options of a script's `#SBATCH` lines, up to its first command."""
    for number, line in enumerate(script.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            return
        if line.startswith(HETEROGENEOUS):
            raise SlurmError(f"{name}, line {number}: a job has nodes of one kind: submit a job for each part")
        if not line.startswith("#SBATCH"):
            continue
        try:
            options, rest = reader.read(split_line(line[len("#SBATCH") :]))
        except SlurmError as error:
            raise SlurmError(f"{name}, line {number}: {error}") from None
        if rest:
            raise SlurmError(f"{name}, line {number}: Invalid argument: {rest[0]}")
        yield from options


def split_line(text: str) -> list[str]:
    """Return the words of a `#SBATCH` line: with quotes and backslashes, up to a # outside of quotes."""
    words, word, quote, is_word = [], "", "", False
    letters = iter(text)
    for letter in letters:
        if letter == "\\" and quote != "'":
            word, is_word = word + next(letters, ""), True
        elif quote:
            if letter == quote:
                quote = ""
            else:
                word += letter
        elif letter in "\"'":
            quote, is_word = letter, True
        elif letter == "#":
            break
        elif letter.isspace():
            if is_word:
                words.append(word)
            word, is_word = "", False
        else:
            word, is_word = word + letter, True
    if quote:
        raise SlurmError(f"a quote {quote} has no end")
    return [*words, word] if is_word else words


def check_script(text: bytes) -> str:
    """Return a script as text. Raises SlurmError for what Slurm refuses too."""
    if not text.strip():
        raise SlurmError("Batch script is empty!")
    if len(text) > SCRIPT_BYTES:
        raise SlurmError(f"the script has {len(text)} bytes, {SCRIPT_BYTES} at most: let it read a file")
    if not text.startswith(b"#!"):
        raise SlurmError(
            "This does not look like a batch script.  The first line must start with #! followed by the path to an"
            " interpreter, for instance: #!/bin/sh"
        )
    if b"\0" in text:
        raise SlurmError("The SLURM batch script contains a NULL character")
    if b"\r\n" in text:
        raise SlurmError("Batch script contains DOS line breaks (\\r\\n) instead of expected UNIX line breaks (\\n).")
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise SlurmError(f"the script is no UTF-8 text at byte {error.start}") from None
