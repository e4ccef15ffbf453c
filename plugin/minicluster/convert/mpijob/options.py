"""The options of mpirun, a table for each MPI: what each asks of Flux, why it is dropped, or why it is refused."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from minicluster.convert.mpijob.shell_calls import Launch, Word
from minicluster.errors import ConvertError

HOST_FILE = "/etc/mpi/hostfile"
NETWORK = "it is for mpirun's own network, Flux starts the tasks"
TELLS = "it is about mpirun's own output"
PLACED = "Flux places the tasks"
BINDS = "Flux binds tasks if their pod has CPUs of its own (flux.affinity)"
BY_ROOT = "Flux runs as any user"
FINDS = "set LD_LIBRARY_PATH if the program does not find its MPI"
#: Reasons that are warnings
TELLING = (FINDS,)
#: Parameters of Open MPI that its mpirun reads; the program reads all others, also from its environment
OF_MPIRUN = re.compile(
    r"(?:orte|plm|rmaps|ras|oob|odls|ess|routed|grpcomm|iof|state|filem|errmgr|schizo|prte|rtc|hwloc_base|pmix)(?:_|$)"
)


#: Takes the name of an option, and its values
Take = Callable[[Launch, str, list[Word]], None]


class Option(NamedTuple):
    """An option of mpirun."""

    values: int
    take: Take | str  #: or why it is dropped


def advice(name: str) -> str:
    """Return what to do about an option that is not known."""
    return f"which is not known here: drop it, or start the program by `flux run` (option {name})"


def number(word: Word) -> int | None:
    """Return the number in a word, None if a shell makes it. Raises ConvertError for another text."""
    if word.text is None:
        return None
    if not re.fullmatch(r"[1-9]\d{0,5}", word.text):
        raise ConvertError(f"mpirun has {word.text} as a number of tasks: give at least 1")
    return int(word.text)


def plain(name: str, word: Word) -> str:
    """Return the text of a word. Raises ConvertError for one that a shell expands."""
    if word.text is None:
        raise ConvertError(f"mpirun has {name} {word.raw}, which a shell makes: write its value out")
    return word.text


def _tasks(launch: Launch, _: str, values: list[Word]) -> None:
    number(values[0])
    launch.tasks = values[0]


def _per_node(launch: Launch, _: str, values: list[Word]) -> None:
    if values:
        number(values[0])
    launch.per_node = values[0] if values else Word("1", "1")


def _cyclic(launch: Launch, _: str, __: list[Word]) -> None:
    launch.is_cyclic = True


def _exceed(launch: Launch, _: str, __: list[Word]) -> None:
    launch.may_exceed = True


def _label(launch: Launch, _: str, __: list[Word]) -> None:
    launch.flags.append("--label-io")


def _time(launch: Launch, name: str, values: list[Word]) -> None:
    launch.flags.append(f"--time-limit={plain(name, values[0])}s")


def _directory(launch: Launch, name: str, values: list[Word]) -> None:
    plain(name, values[0])
    launch.directory = values[0]


def _export(launch: Launch, name: str, values: list[Word]) -> None:
    """Take ``-x NAME`` or ``-x NAME=VALUE``, also with names that have commas between them."""
    raw, text = values[0].raw, values[0].text
    key, equals, value = raw.partition("=")
    if not re.fullmatch(r"[\"']?[A-Za-z_][\w,]*", key):
        raise ConvertError(f"mpirun has {name} {raw}, which names no variable: give NAME or NAME=VALUE")
    if not equals:
        launch.exported += key.strip("\"'").split(",")
        return
    said = None if text is None else text.partition("=")[2]
    # a quote that begins before the name ends behind the value
    launch.variables[key.strip("\"'")] = Word(value if key[0].isalpha() or key[0] == "_" else key[0] + value, said)


def _variable(launch: Launch, name: str, values: list[Word]) -> None:
    key = plain(name, values[0])
    if not re.fullmatch(r"[A-Za-z_]\w*", key):
        raise ConvertError(f"mpirun has {name} {key}, which is not the name of a variable")
    launch.variables[key] = values[1]


def _parameter(launch: Launch, name: str, values: list[Word]) -> None:
    """Take a parameter of Open MPI: the program reads it from its environment."""
    key = plain(name, values[0])
    if OF_MPIRUN.match(key):
        launch.dropped.setdefault(NETWORK, []).append(f"{name} {key} {values[1].raw}")
    elif not re.fullmatch(r"\w+", key):
        raise ConvertError(f"mpirun has {name} {key}, which is not the name of a parameter")
    else:
        launch.variables[f"OMPI_MCA_{key}"] = values[1]


def _bind(launch: Launch, name: str, values: list[Word]) -> None:
    if plain(name, values[0]).partition(":")[0] in ("none", ""):
        launch.binds = False
    else:
        launch.dropped.setdefault(BINDS, []).append(f"{name} {values[0].raw}")


def _map(launch: Launch, name: str, values: list[Word]) -> None:
    """Take ``--map-by``: nodes, tasks of a node and cores of a task have a counterpart, parts of a node don't."""
    policy, *modifiers = plain(name, values[0]).lower().split(":")
    if policy == "ppr":
        count, unit, *modifiers = [*modifiers, "", ""]
        if unit != "node" or not count.isdecimal():
            raise ConvertError(f"mpirun has {name} {values[0].raw}: Flux places tasks by node; give ppr:N:node")
        launch.per_node = Word(count, count)
    elif policy == "node":
        launch.is_cyclic = True
    elif policy not in PARTS:
        raise ConvertError(f"mpirun has {name} {values[0].raw}, {advice(name)}")
    else:
        launch.dropped.setdefault(PLACED, []).append(f"{name} {values[0].raw}")
    for modifier in filter(None, ",".join(modifiers).split(",")):
        if modifier.startswith("pe=") and modifier[3:].isdecimal():
            launch.cores = int(modifier[3:])
        elif modifier == "oversubscribe":
            launch.may_exceed = True
        elif modifier not in ("nooversubscribe", "span"):
            raise ConvertError(f"mpirun has {name} {values[0].raw}, whose {modifier} is not known here: drop it")


#: Parts of a node by which Open MPI places tasks; "" if there are only modifiers
PARTS = ("", "slot", "core", "hwthread", "socket", "package", "numa", "l1cache", "l2cache", "l3cache", "board")


def _rank(launch: Launch, name: str, values: list[Word]) -> None:
    by = plain(name, values[0])
    if by not in ("slot", "core", "node", "fill"):
        raise ConvertError(f"mpirun has {name} {by}: Flux numbers tasks by node, or one node after the other; drop it")
    launch.is_cyclic = launch.is_cyclic or by == "node"


def _hosts(_: Launch, name: str, values: list[Word]) -> None:
    raise ConvertError(f"mpirun has {name} {values[0].raw}: tasks run on all nodes here; drop it")


def _host_file(launch: Launch, name: str, values: list[Word]) -> None:
    if values[0].text != HOST_FILE and "OMPI_MCA_orte_default_hostfile" not in values[0].raw:
        _hosts(launch, name, values)
    launch.dropped.setdefault("Flux knows the nodes", []).append(f"{name} {values[0].raw}")


def _many(count: int, take: Take | str, *names: str) -> Mapping[str, Option]:
    return dict.fromkeys(names, Option(count, take))


BOTH: Mapping[str, Option] = {
    **_many(1, _tasks, "n", "np"),
    **_many(1, _host_file, "hostfile", "machinefile"),
    **_many(1, _hosts, "host"),
    **_many(1, _directory, "wdir", "wd"),
    **_many(1, _bind, "bind-to"),
    **_many(0, TELLS, "v", "verbose"),
}
OPEN_MPI: Mapping[str, Option] = {
    **BOTH,
    **_many(1, _tasks, "c"),
    **_many(1, _per_node, "N", "npernode"),
    **_many(0, _per_node, "pernode"),
    **_many(1, _map, "map-by"),
    **_many(1, _rank, "rank-by"),
    **_many(0, _cyclic, "bynode"),
    **_many(0, PLACED, "byslot", "nooversubscribe", "use-hwthread-cpus"),
    **_many(0, _exceed, "oversubscribe"),
    **_many(1, _export, "x"),
    **_many(2, _parameter, "mca", "gmca", "omca"),
    **_many(2, NETWORK, "prtemca", "pmixmca"),
    **_many(1, _host_file, "default-hostfile"),
    **_many(1, _hosts, "H"),
    **_many(1, FINDS, "prefix"),
    **_many(0, _label, "tag-output"),
    **_many(1, _time, "timeout"),
    **_many(0, BY_ROOT, "allow-run-as-root"),
    **_many(0, TELLS, "q", "quiet", "display-map", "display-allocation", "report-bindings", "show-progress"),
    **_many(0, TELLS, "merge-stderr-to-stdout"),
}
HYDRA: Mapping[str, Option] = {
    **BOTH,
    **_many(1, _per_node, "ppn", "perhost", "grr"),
    **_many(0, _cyclic, "rr"),
    **_many(1, PLACED, "map-by"),
    **_many(1, _host_file, "f"),
    **_many(1, _hosts, "hosts"),
    **_many(2, _variable, "genv", "env"),
    **_many(1, _export, "genvlist", "envlist"),
    **_many(0, "tasks get all variables here too", "genvall", "envall"),
    **_many(0, _label, "l", "prepend-rank"),
    **_many(1, NETWORK, "launcher", "bootstrap", "launcher-exec", "bootstrap-exec", "rmk", "iface", "pmi-port"),
    **_many(0, TELLS, "print-rank-map", "print-all-exitcodes"),
}
MPIRUN_OPTIONS = {"OpenMPI": OPEN_MPI, "Intel": HYDRA, "MPICH": HYDRA}
