"""The launcher's command as the work: its mpirun becomes what Flux starts.

A lone mpirun becomes the command, tasks and flags of the values. A shell's text with more in it stays, each mpirun in
it becomes `flux run`, and the lead runs it once.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from minicluster.console.messages import counted
from minicluster.convert.mpijob import options, run_time
from minicluster.convert.mpijob.options import MPIRUN_OPTIONS, advice
from minicluster.convert.mpijob.shell_calls import STARTERS, Call, Launch, Word, calls
from minicluster.convert.part import Map, Part
from minicluster.errors import ConvertError, SpecError
from minicluster.render import resources

SHELLS = ("sh", "bash", "dash", "ash", "zsh")


@dataclass(frozen=True)
class Slots:
    """What the nodes have."""

    size: int
    slots: int  #: of each node
    cpus: int  #: of each node; 0 if its pod asks for none
    gpus: int  #: of each node


def convert(launcher: Part, words: list[str], converted: Map, implementation: str, slots: int) -> None:
    """Write the work into the values. Raises ConvertError for a launcher whose work is not understood."""
    room = Slots(converted["size"], slots, *_devices(converted["containers"][0]))
    try:
        text = _shell_text(words)
        script = [_alone(words)] if text is None else calls(text)
        launches = [parse_mpirun(call.words, implementation) for call in script]
        for launch in launches:
            launch.flags.append(run_time.SHELL_OPTION[implementation])
            for word in (*launch.program, *launch.variables.values()):
                run_time.refuse(word.raw, "mpirun's program")
        shapes = [_shape(launch, room) for launch in launches]
    except ConvertError as error:
        raise ConvertError(f"{launcher.path}: {error}") from None
    if text is None or (script[0].is_whole and all(word.text is not None for word in script[0].words)):
        _write_work(converted, launches[0], shapes[0], room)
    else:
        places = [(call.words[0].start, launch.program[0].start) for call, launch in zip(script, launches, strict=True)]
        runs = [_flux_run(launch, shape, room) for launch, shape in zip(launches, shapes, strict=True)]
        # the lead runs the shell's text once
        converted["containers"][0] |= {"command": [*words[:-1], _replaced(text, places, runs)], "launcher": True}
        launcher.warn("command", "runs once, on the first node; its mpirun is `flux run` now")
    needed = max(room.slots, *(shape.cores for shape in shapes))
    if room.cpus < needed:
        converted["containers"][0]["cores"] = needed
    for launch, shape in zip(launches, shapes, strict=True):
        _report(launcher, launch, shape, room)


def _replaced(text: str, places: list[tuple[int, int]], runs: list[list[str]]) -> str:
    """Return a shell's text with other words at some places."""
    for (start, end), words in reversed(list(zip(places, runs, strict=True))):
        text = f"{text[:start]}{' '.join(words)} {text[end:]}"
    return text


def _devices(runner: Map) -> tuple[int, int]:
    """Return the CPUs and GPUs of a node."""
    try:
        return resources.cores(runner) or 0, resources.gpus(runner)
    except (SpecError, AttributeError, TypeError, ValueError):
        return 0, 0  # the schema says what is wrong


def _alone(words: list[str]) -> Call:
    """Return a launcher's words as a call of mpirun. Raises ConvertError if they are none."""
    name = words[0].rpartition("/")[2]
    if name not in STARTERS:
        raise ConvertError(
            f"the launcher runs {name}, which is not known here: give mpirun or mpiexec, alone or in the text of a "
            "shell"
        )
    return Call([Word(shlex.quote(word), word) for word in words], is_whole=True)


def _shell_text(words: list[str]) -> str | None:
    """Return the text that a shell of the launcher runs; None if it runs none. Raises ConvertError for arguments."""
    if words[0].rpartition("/")[2] not in SHELLS:
        return None
    for place, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-[a-z]*c[a-z]*", word):
            if len(words) != place + 2:
                raise ConvertError("the launcher's shell has not one text behind -c: write its arguments into the text")
            return words[-1]
        if not word.startswith("-") and words[place - 1] != "-o":
            break
    raise ConvertError(
        f"the launcher runs a script, {words[-1]}, which may call mpirun: start its program by mpirun here"
    )


@dataclass(frozen=True)
class _Shape:
    """The tasks of a launch, and what each has."""

    tasks: int | None  #: None if only a shell knows
    nodes: int  #: 0: as few as have room
    cores: int  #: that a node must have
    of_task: int  #: cores of a task
    flags: list[str]


def _shape(launch: Launch, room: Slots) -> _Shape:
    """Return the tasks of a launch. Raises ConvertError for more than mpirun would start."""
    each = options.number(launch.per_node) if launch.per_node else None
    tasks = options.number(launch.tasks) if launch.tasks else (each or room.slots) * room.size
    if launch.per_node and each is None and not launch.tasks:
        tasks = None
    if launch.per_node and launch.tasks and (tasks is None or each is None):
        raise ConvertError("mpirun has tasks and tasks of a node, one of which a shell makes: write both numbers out")
    is_wide = each is not None or launch.is_cyclic
    if tasks is None:
        nodes, most = (room.size if launch.is_cyclic else 0), room.slots
    elif tasks >= room.size:
        nodes, most = room.size, -(-tasks // room.size)
    elif is_wide:
        nodes, most = tasks, 1
    else:
        nodes, most = 0, min(tasks, room.slots)
    if most > room.slots and not launch.may_exceed and not launch.cores:
        asked = f"{tasks} tasks on {counted(room.size, 'worker')}"
        raise ConvertError(f"mpirun has {asked} with {room.slots} slots each, and refuses that: raise slotsPerWorker")
    of_task = launch.cores or max(1, room.cpus // max(most, room.slots if not nodes else most))
    flags = [f"-c{of_task}"] if of_task > 1 else []
    if room.gpus:
        share = most if nodes else room.slots
        flags += ["-ogpu-affinity=off"] if room.gpus % share else [f"-g{room.gpus // share}"]
    flags += ["--taskmap=cyclic"] if launch.is_cyclic else []
    return _Shape(tasks, nodes, most * of_task, of_task, [*flags, *launch.flags])


def _write_work(converted: Map, launch: Launch, shape: _Shape, room: Slots) -> None:
    """Write a lone mpirun as values."""
    runner: Map = converted["containers"][0]
    variables = {key: str(word.text) for key, word in launch.variables.items()}
    if variables:
        runner["environment"] = runner.get("environment", {}) | variables
    if launch.directory:
        runner["workingDir"] = launch.directory.text
    runner["command"] = [str(word.text) for word in launch.program]
    converted["tasks"] = shape.tasks
    nodes = [f"-N{shape.nodes}"] if 0 < shape.nodes < room.size else []
    flux = {"optionFlags": " ".join([*nodes, *shape.flags]), "affinity": "" if launch.binds else "off"}
    converted["flux"] = {key: value for key, value in flux.items() if value}


def _flux_run(launch: Launch, shape: _Shape, room: Slots) -> list[str]:
    """Return the words that start the tasks in place of mpirun, as a shell takes them."""
    if shape.tasks is not None:
        counts = [*([f"-N{shape.nodes}"] if shape.nodes else []), f"-n{shape.tasks}"]
    elif launch.tasks:
        counts = [*([f"-N{shape.nodes}"] if shape.nodes else []), "-n", launch.tasks.raw]
    else:
        counts = [f"-N{room.size}", f"--tasks-per-node={launch.per_node.raw if launch.per_node else room.slots}"]
    return [
        *("flux", "run", *counts, *shape.flags),
        *([] if launch.binds else ["-ocpu-affinity=off"]),
        *([f"--cwd={launch.directory.raw}"] if launch.directory else []),
        *(f"--env={key}={word.raw}" for key, word in launch.variables.items()),
    ]


def _report(launcher: Part, launch: Launch, shape: _Shape, room: Slots) -> None:
    """Report what is dropped, and what runs otherwise."""
    call = Part("mpirun", {}, launcher.report)
    for why, words in launch.dropped.items():
        (call.warn if why in options.TELLING else call.note)("", f"{', '.join(words)} is dropped: {why}")
    if launch.exported:
        names = ", ".join(dict.fromkeys(launch.exported))
        call.note("", f"{names} need not be exported: tasks have the variables of their image and their pod")
    if shape.nodes == room.size and shape.tasks and shape.tasks < room.size * room.slots and not launch.is_cyclic:
        call.warn("", f"starts {shape.tasks} tasks evenly over {room.size} nodes here: it filled the first workers")
    if room.gpus and "-ogpu-affinity=off" in shape.flags:
        call.warn("", f"gives each task all {room.gpus} GPUs of its node: they can't be shared out evenly")
    if shape.cores > room.slots and launch.may_exceed and not launch.cores and shape.of_task == 1:
        call.warn("", f"has more tasks than slots: a node has {shape.cores} cores for Flux")


def parse_mpirun(words: Sequence[Word], implementation: str) -> Launch:
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
