"""What mpirun and mpi-operator give programs at run time, and what becomes of each here.

From the sources of mpi-operator (caa3c47f), Open MPI (v4.1.x orte/mca/schizo/ompi, PMIx' pmdl/ompi) and MPICH
(src/pm/hydra/proxy). The table of docs/how-to/migrate-from-mpi-operator.md is made of it (`make golden`).
Programs of an image can't be seen, so what many of them read is given by minicluster.lua (`-o mpi=`); the rest
is refused where a text names it. So it is with names of pods: the operator's are JOB-launcher and JOB-worker-N in the
domain of a Service JOB, and become those of the hosts here, JOB-N in the domain of the headless Service.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from minicluster.convert.part import Map, Report
from minicluster.errors import ConvertError

#: The option of Flux's shell by which tasks get the variables of their MPI
SHELL_OPTION = {"OpenMPI": "-o mpi=openmpi", "MPICH": "-o mpi=mpich", "Intel": "-o mpi=intel"}
BY_OPERATOR, BY_OPEN_MPI, BY_HYDRA = "mpi-operator", "Open MPI", "MPICH, Intel MPI"
BY_HOSTLIST = "drop it, since the work starts when all nodes are up; `flux hostlist -e instance` prints their names"

#: Variables by which mpi-operator hides GPUs from its launcher
OF_GPUS = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "CUDA_VISIBLE_DEVICES")


class Item(NamedTuple):
    """What a program can read at run time."""

    names: tuple[str, ...]
    by: str  #: who gives it
    here: str = ""  #: what gives it here, or what becomes of it; "" if a text with it is refused
    way: str = ""  #: what to do about a text that is refused


def _given(option: str) -> str:
    return f"given, by `{option}`"


ITEMS = (
    Item(
        tuple(f"OMPI_COMM_WORLD_{part}" for part in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "NODE_RANK")),
        BY_OPEN_MPI,
        _given(SHELL_OPTION["OpenMPI"]),
    ),
    Item(("PMI_RANK", "PMI_SIZE"), BY_HYDRA, "given, by Flux's PMI-1"),
    Item(("MPI_LOCALRANKID", "MPI_LOCALNRANKS"), BY_HYDRA, f"given, by `{SHELL_OPTION['MPICH']}` or `=intel`"),
    Item(
        tuple(f"MV2_COMM_WORLD_{part}" for part in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")),
        "MVAPICH",
        _given(SHELL_OPTION["MPICH"]),
    ),
    Item(("OMPI_UNIVERSE_SIZE", "OMPI_WORLD_SIZE"), BY_OPEN_MPI, way="use FLUX_JOB_SIZE"),
    Item(("OMPI_WORLD_LOCAL_SIZE",), BY_OPEN_MPI, way="use OMPI_COMM_WORLD_LOCAL_SIZE"),
    Item(
        ("OMPI_APP_CTX_NUM_PROCS", "OMPI_FIRST_RANKS", "OMPI_NUM_APP_CTX", "OMPI_COMMAND", "OMPI_ARGV"),
        BY_OPEN_MPI,
        way="drop it, mpirun has one program here",
    ),
    Item(("OMPI_FILE_LOCATION",), BY_OPEN_MPI, way="use FLUX_JOB_TMPDIR"),
    Item(("OMPI_MCA_orte_ess_vpid", "OMPI_MCA_ess_base_vpid", "PMIX_RANK"), BY_OPEN_MPI, way="use FLUX_TASK_RANK"),
    Item(("OMPI_MCA_orte_ess_num_procs", "OMPI_MCA_num_procs"), BY_OPEN_MPI, way="use FLUX_JOB_SIZE"),
    Item(("OMPI_MCA_orte_num_nodes",), BY_OPEN_MPI, way="use FLUX_JOB_NNODES"),
    Item(("OMPI_MCA_orte_ess_jobid", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"), BY_OPEN_MPI, way="use FLUX_JOB_ID"),
    Item(("PMI_ID", "PMI_PORT"), BY_HYDRA, way="use PMI_RANK"),
    Item(("PMI_HOSTNAME",), BY_HYDRA, way="use the command hostname"),
    Item(("MPIRUN_RANK", "MPISPAWN_ID", "MVP_COMM_WORLD_RANK"), "MVAPICH", way="use FLUX_TASK_RANK"),
    Item(("MVP_COMM_WORLD_LOCAL_RANK",), "MVAPICH", way="use FLUX_TASK_LOCAL_ID"),
    Item(
        ("OMPI_MCA_orte_set_default_slots", "I_MPI_PERHOST"),
        BY_OPERATOR,
        way="write the number out, or use FLUX_JOB_SIZE and FLUX_JOB_NNODES",
    ),
    Item(
        (
            *("/etc/mpi/hostfile", "/etc/mpi/discover_hosts.sh"),
            *("OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"),
        ),
        BY_OPERATOR,
        way=BY_HOSTLIST,
    ),
    Item(
        (
            *("OMPI_MCA_plm_rsh_args", "OMPI_MCA_orte_keep_fqdn_hostnames"),
            *("HYDRA_LAUNCH_EXTRA_ARGS", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"),
        ),
        BY_OPERATOR,
        way="drop it, there is no SSH here",
    ),
    Item(("K_MPI_JOB_ROLE",), BY_OPERATOR, way="drop it, the launcher's text runs once, on the first node"),
)
#: Which item a name is of, where a text with it is refused
NOT_HERE = {name: item for item in ITEMS if not item.here for name in item.names}
#: Variables that mpi-operator gives its launcher alone
OF_OPERATOR = {name for name, item in NOT_HERE.items() if item.by == BY_OPERATOR and not name.startswith("/")}
UNSET = re.compile(r"(?:^|(?<=[\s;&|(]))unset\s[^;&|\n]*")
#: A name that is read: it is neither set, nor what another variable falls back to
READS = re.compile(
    rf"(?<!:-\$)(?<!:-\$\{{)(?<![\w/.])({'|'.join(map(re.escape, NOT_HERE))}|/etc/mpi\b[\w./]*)(?![\w=])"
)
#: Fields of a container that have texts of the user
FIELDS = ("command", "args", "env", "environment", "lifecycle")
#: No other name and no path is before a name, but `tcp://` may be
BEFORE_NAMES = r"(?:(?<![a-z0-9./-])|(?<=//))"
#: Names that a shell builds, or patterns to compare with
BUILT = r"\$(?:\w+|\{[^}]*\}|\([^)]*\))-(?:worker-|launcher\b)[^\s'\";,]*|\*-?(?:worker|launcher)\b[-*]*"


def refuse(text: str, where: str) -> None:
    """Raise ConvertError for a text that needs what is not given here; ``where`` begins the message."""
    match = READS.search(UNSET.sub(" ", text))
    if match:
        item = NOT_HERE.get(match[1], NOT_HERE["/etc/mpi/hostfile"])
        raise ConvertError(f"{where} uses {match[1]}, which {item.by} gives, and nothing here: {item.way}")


class PodNames:
    """The names of an MPIJob's pods."""

    def __init__(self, name: str, leads: int) -> None:
        """Begin with the job's name; ``leads`` is 1 if the launcher is a worker too, and has the first index."""
        self._name, self._leads = name, leads
        pods = rf"{BEFORE_NAMES}{re.escape(name)}-(?:launcher|worker(?:-(?P<index>\d+))?)"
        self._pod = re.compile(rf"{pods}(?![\w$-])(?:\.{re.escape(name)}(?![\w-]))?")
        self._rest = re.compile(rf"{pods}[^\s'\";,]*|{BUILT}")
        self.changed: dict[str, str] = {}  #: each name that was found, and that of the host here

    def changed_text(self, text: str, where: str) -> str:
        """Return a text with the names of hosts here. Raises ConvertError for a name that is not whole."""

        def host(match: re.Match[str]) -> str:
            if match[0].endswith("-worker"):
                return match[0]
            index = int(match["index"]) + self._leads if match["index"] else 0
            return self.changed.setdefault(match[0], f"{self._name}-{index}.{self._name}")

        text = self._pod.sub(host, text)
        rest = self._rest.search(text)
        if rest:
            here = f"{self._name}-0.{self._name}"
            raise ConvertError(
                f"{where} names mpi-operator's pods by {rest[0]}: here the hosts are {here} and so on, write names out"
            )
        return text


def rename(converted: Map, name: str, leads: int, report: Report) -> None:
    """Change the names in the texts of the containers. Raises ConvertError for what can't be changed."""
    names = PodNames(name, leads)
    runner = converted["containers"][0]
    template = converted.get("pod", {}).get("template", {}).get("spec", {})
    for container in (*converted["containers"], *template.get("containers", []), *template.get("initContainers", [])):
        for field in [field for field in FIELDS if field in container]:
            where = f"{field} of the container {container.get('name', '')}".rstrip()
            if not (container is runner and field == "command"):  # the launcher's words, which are checked
                _mapped(container[field], partial(refuse, where=where))
            container[field] = _mapped(container[field], partial(names.changed_text, where=where))
    if names.changed:
        pairs = ", ".join(f"{old} is {new}" for old, new in names.changed.items())
        report.notes.append(f"names of mpi-operator's pods are those of the hosts here: {pairs}")
    unread = ", ".join(dict.fromkeys(_config_maps(converted)))
    if unread:
        report.warnings.append(f"the text of ConfigMap {unread} is not seen: change names like {name}-worker-0 in it")


def _config_maps(value: Any) -> Iterator[str]:
    """Yield the names of the ConfigMaps that volumes and variables have."""
    for key, item in value.items() if isinstance(value, dict) else ():
        if key == "configMapName":
            yield str(item)
        elif key in ("configMap", "configMapRef", "configMapKeyRef") and isinstance(item, dict):
            yield str(item.get("name"))
        else:
            yield from _config_maps(item)
    for item in value if isinstance(value, list) else ():
        yield from _config_maps(item)


def _mapped(value: Any, change: Callable[[str], Any]) -> Any:
    """Return a value with all of its texts changed, but for names and sources of variables."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    if isinstance(value, dict):
        kept = ("name", "valueFrom")
        return {key: item if key in kept else _mapped(item, change) for key, item in value.items()}
    return value
