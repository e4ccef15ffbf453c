"""The types of `-f`, `--values`, which is what Helm takes, and of other words: an amount, or what a function reads."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from minicluster.console import streams
from minicluster.errors import SpecError
from minicluster.kube.names import WANTED, is_quantity, unmeant

#: Where the context of click has the copies, each with the word that was given for it
COPIES_KEY = "minicluster.copies"


class GivenValues(click.Path):
    """What Helm reads values from; several may stand in one word, with commas.

    A command calls Helm more than once, and Helm's standard input has values of our own. So what can be read only once,
    such as standard input or a pipe, becomes a file that is there until the command ends.
    """

    def __init__(self) -> None:
        super().__init__(exists=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return what Helm is given. Fails for what doesn't exist, or has no values."""
        if ctx is None or ctx.resilient_parsing:
            return str(value)
        return ",".join(self._one(word.strip(), param, ctx) for word in str(value).split(","))

    def _one(self, word: str, param: click.Parameter | None, ctx: click.Context) -> str:
        if "://" in word:
            return word  # Helm knows which it can read
        path = Path(word)
        if word != "-":
            super().convert(word, param, ctx)
            if path.is_file() or path.is_dir() or word == os.devnull:
                return word
        called, copies = "standard input" if word == "-" else word, ctx.meta.setdefault(COPIES_KEY, {})
        if word in copies.values():
            self.fail(f"{called} can be read only once: give it once.", param, ctx)
        with click.open_file(word, "rb") as source:
            data = streams.read(source)
        if not data.strip():
            self.fail(f"{called} is empty: see why nothing has written values there, or drop it.", param, ctx)
        # that of the command is not closed after a wrong option
        folder = ctx.find_root().with_resource(tempfile.TemporaryDirectory(prefix="minicluster-"))
        # Helm's errors name it
        copy = Path(folder, "standard-input" if word == "-" else path.name)
        streams.write_file(copy, data, 0o600)
        copies[str(copy)] = word
        return str(copy)


def as_given(line: str) -> str:
    """Return a command line with the words that were given for copies."""
    for copy, word in click.get_current_context().meta.get(COPIES_KEY, {}).items():
        line = line.replace(copy, word)
    return line


class Parsed(click.ParamType):  # type: ignore[type-arg]  # older versions have no argument
    """What a function makes of a word; it raises SpecError for a wrong one."""

    def __init__(self, parse: Callable[[str], Any], name: str = "text") -> None:
        self._parse, self.name = parse, name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return that."""
        try:
            return self._parse(str(value))
        except SpecError as error:
            self.fail(f"{error}.", param, ctx)


def amount_of(resource: str) -> Parsed:
    """Return the type of a quantity of a resource, as Kubernetes takes it."""

    def check(text: str) -> str:
        """Return it as it is. Raises SpecError for one that nobody means: most often the unit is forgotten."""
        if text and not is_quantity(text):
            raise SpecError(f"{text!r} is not {WANTED}")
        if why := unmeant(resource, text) if text else "":
            raise SpecError(f"{text} is {why}")
        return text

    return Parsed(check)
