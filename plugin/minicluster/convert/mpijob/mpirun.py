"""The words of mpirun up to its program, by the table of its options; an option that is not there is refused."""

import re
from collections.abc import Sequence

from minicluster.convert.mpijob.launch import Launch
from minicluster.convert.mpijob.options import MPIRUN_OPTIONS, advice
from minicluster.convert.mpijob.shell_calls import Word
from minicluster.errors import ConvertError


def parse(words: Sequence[Word], implementation: str) -> Launch:
    """Return what mpirun's words ask for; the first one is its name. Raises ConvertError for one that is unknown."""
    table = MPIRUN_OPTIONS[implementation]
    launch = Launch(may_exceed=implementation != "OpenMPI")
    rest = list(words[1:])
    while rest and _is_option(rest[0]):
        word = rest.pop(0)
        name, equals, value = (word.text or "").partition("=")
        option = table.get(name.lstrip("-"))
        if option is None:
            raise ConvertError(f"mpirun has {word.raw}, {advice(name)}")
        values = [Word(value, value)] if equals else rest[: option.values]
        if len(values) != option.values:
            raise ConvertError(f"mpirun has {word.raw} without its {'values' if option.values > 1 else 'value'}")
        rest = rest if equals else rest[option.values :]
        if isinstance(option.take, str):
            launch.dropped.setdefault(option.take, []).append(" ".join([name, *(one.raw for one in values)]))
        else:
            option.take(launch, name, values)
    if not rest:
        raise ConvertError("mpirun has no program: give the whole command")
    if any(word.text == ":" for word in rest):
        raise ConvertError("mpirun has a `:`, so it starts several programs: make a MiniCluster for each, or a batch")
    launch.program = rest
    return launch


def _is_option(word: Word) -> bool:
    """Tell an option from the program. Raises ConvertError where only a shell knows."""
    if word.text is None and not re.search(r"/[\w.+-]+[\"']?$", word.raw):
        raise ConvertError(f"mpirun is followed by {word.raw}, which may be options: write them out")
    return word.text is not None and word.text.startswith("-")
