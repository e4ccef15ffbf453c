"""What stands in the columns of squeue and sacct.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import time
from typing import Callable, Mapping

from slurm_format import Field
from slurm_jobs import ACTIVE, Job
from slurm_words import clock, long_clock, stamp

NOW = time.time()
#: Exit codes of jobs that did not end by themselves
_CODES = {"CANCELLED": "0:15", "TIMEOUT": "0:0"}


def _always(text: str) -> Callable[[Job], str]:
    """Return a column that has the same text for every job."""
    return lambda _: text


def _left(job: Job) -> str:
    if not job.limit:
        return "UNLIMITED"
    return clock(job.limit - job.elapsed(NOW)) if job.limit > job.elapsed(NOW) else "INVALID"


def _where(job: Job) -> str:
    return job.hosts if job.state != "PENDING" else f"({job.reason})"


def _array(job: Job) -> str:
    return str(job.array[0]) if job.array else str(job.number)


def _task(job: Job) -> str:
    return str(job.array[1]) if job.array else "N/A"


def _command(job: Job) -> str:
    return job.name


def _first_host(job: Job) -> str:
    from flux.hostlist import Hostlist

    return str(Hostlist(job.hosts)[0]) if job.hosts else "n/a"


def _cpu_time(job: Job) -> str:
    """Return the CPU time of all tasks, "" if it is unknown; below an hour with milliseconds, as Slurm does."""
    seconds = job.usage["total"]["cpu_seconds"] if job.usage else None
    if seconds is None or seconds >= 3600:
        return "" if seconds is None else long_clock(seconds)
    return f"{int(seconds) // 60:02}:{seconds % 60:06.3f}"


def _most(job: Job, key: str) -> tuple[str, str]:
    """Return the most that a task has used, and its node; "" where nobody knows that of each task."""
    known = {host: node[key] for host, node in (job.usage or {"nodes": {}})["nodes"].items() if node[key] is not None}
    if not known or job.tasks > len(known):
        return "", ""
    host = max(known, key=lambda one: float(known[one]))
    return f"{known[host] >> 10}K", host


def _exit(job: Job) -> str:
    return _CODES.get(job.state) or f"{job.code}:0"


def _limit(job: Job) -> str:
    return clock(job.limit) if job.limit else "UNLIMITED"


def _at(at: float) -> str:
    return stamp(at) if at else "N/A"


def _uid(job: Job) -> str:
    import pwd

    try:
        return str(pwd.getpwnam(job.user).pw_uid)
    except KeyError:
        return "0"


def _cluster(_: Job) -> str:
    from slurm_flux import cluster_name

    return cluster_name()


def _tres(job: Job) -> str:
    return f"billing={job.cpus},cpu={job.cpus},node={job.nodes}"


#: squeue's columns by the names of --Format, with the letter of --format
_SQUEUE = (
    ("jobarrayid", "i", "JOBID", lambda job: job.id),
    ("jobid", "A", "JOBID", lambda job: str(job.number)),
    ("arrayjobid", "F", "ARRAY_JOB_ID", _array),
    ("arraytaskid", "K", "ARRAY_TASK_ID", _task),
    ("name", "j", "NAME", lambda job: job.name),
    ("username", "u", "USER", lambda job: job.user),
    ("userid", "U", "UID", _uid),
    ("account", "a", "ACCOUNT", _always("(null)")),
    ("qos", "q", "QOS", _always("(null)")),
    ("wckey", "w", "WCKEY", _always("(null)")),
    ("partition", "P", "PARTITION", lambda job: job.partition),
    ("statecompact", "t", "ST", lambda job: job.short),
    ("state", "T", "STATE", lambda job: job.state),
    ("reason", "r", "REASON", lambda job: job.reason),
    ("reasonlist", "R", "NODELIST(REASON)", _where),
    ("nodelist", "N", "NODELIST", lambda job: job.hosts),
    ("batchhost", "B", "EXEC_HOST", _first_host),
    ("timeused", "M", "TIME", lambda job: clock(job.elapsed(NOW))),
    ("timelimit", "l", "TIME_LIMIT", _limit),
    ("timeleft", "L", "TIME_LEFT", _left),
    ("starttime", "S", "START_TIME", lambda job: _at(job.start)),
    (
        "endtime",
        "e",
        "END_TIME",
        lambda job: _at(job.ended or (job.start + job.limit if job.limit and job.start else 0)),
    ),
    ("submittime", "V", "SUBMIT_TIME", lambda job: _at(job.submitted)),
    ("numnodes", "D", "NODES", lambda job: str(job.nodes)),
    ("numcpus", "C", "CPUS", lambda job: str(job.cpus)),
    ("numtasks", "", "TASKS", lambda job: str(job.tasks)),
    ("priority", "p", "PRIORITY", lambda job: f"{job.priority / 2**32:.14f}"),
    ("prioritylong", "Q", "PRIORITY", lambda job: str(job.priority)),
    ("workdir", "Z", "WORK_DIR", lambda job: job.directory),
    ("command", "o", "COMMAND", _command),
    ("comment", "k", "COMMENT", lambda job: job.comment or "(null)"),
    ("dependency", "E", "DEPENDENCY", lambda job: job.dependency or "(null)"),
    ("exit_code", "", "EXIT_CODE", _exit),
    ("groupname", "g", "GROUP", lambda job: job.user),
    ("groupid", "G", "GROUP", lambda job: job.user),
    ("feature", "f", "FEATURES", _always("(null)")),
    ("gres", "b", "TRES_PER_NODE", _always("N/A")),
    ("tres-alloc", "", "TRES_ALLOC", _tres),
    ("tres-per-node", "", "TRES_PER_NODE", _always("N/A")),
    ("licenses", "W", "LICENSES", _always("(null)")),
    ("minmemory", "m", "MIN_MEMORY", _always("0")),
    ("mintmpdisk", "d", "MIN_TMP_DISK", _always("0")),
    ("mincpus", "c", "MIN_CPUS", _always("1")),
    ("nice", "y", "NICE", _always("0")),
    ("oversubscribe", "h", "OVER_SUBSCRIBE", _always("NO")),
    ("reservation", "v", "RESERVATION", _always("(null)")),
    ("schednodes", "Y", "SCHEDNODES", _always("(null)")),
    ("reqnodes", "n", "REQ_NODES", _always("")),
    ("excnodes", "x", "EXC_NODES", _always("")),
    ("sct", "z", "S:C:T", _always("*:*:*")),
    ("corespec", "X", "CORE_SPEC", _always("N/A")),
    ("sockets", "H", "SOCKETS_PER_NODE", _always("*")),
    ("cores", "I", "CORES_PER_SOCKET", _always("*")),
    ("threads", "J", "THREADS_PER_CORE", _always("*")),
    ("contiguous", "O", "CONTIGUOUS", _always("0")),
)
SQUEUE_FIELDS: dict[str, Field] = {name: Field(header, -20, text) for name, _, header, text in _SQUEUE}
SQUEUE_LETTERS: Mapping[str, str] = {letter: name for name, letter, _, _ in _SQUEUE if letter}


def _state(job: Job) -> str:
    return f"CANCELLED by {_uid(job)}" if job.state == "CANCELLED" else job.state


def _ends(job: Job) -> str:
    return stamp(0 if job.state in ACTIVE else job.ended)


#: sacct's columns: name, width, text
_SACCT = (
    ("JobID", 20, lambda job: job.id),
    ("JobIDRaw", 20, lambda job: str(job.number)),
    ("JobName", 10, lambda job: job.name),
    ("Partition", 10, lambda job: job.partition),
    ("Account", 10, _always("")),
    ("AllocCPUS", 10, lambda job: str(job.cpus if job.started else 0)),
    ("NCPUS", 10, lambda job: str(job.cpus)),
    ("ReqCPUS", 8, lambda job: str(job.cpus)),
    ("AllocNodes", 10, lambda job: str(job.nodes if job.started else 0)),
    ("NNodes", 8, lambda job: str(job.nodes)),
    ("ReqNodes", 8, lambda job: str(job.nodes)),
    ("NTasks", 8, lambda job: str(job.tasks)),
    ("State", 10, _state),
    ("ExitCode", 8, _exit),
    ("DerivedExitCode", 15, _exit),
    ("Reason", 22, lambda job: job.reason),
    ("User", 9, lambda job: job.user),
    ("UID", 6, _uid),
    ("Group", 9, lambda job: job.user),
    ("Cluster", 10, _cluster),
    ("QOS", 10, _always("")),
    ("Comment", 14, lambda job: job.comment),
    ("NodeList", 15, lambda job: job.hosts or "None assigned"),
    ("Submit", 19, lambda job: stamp(job.submitted)),
    ("Eligible", 19, lambda job: stamp(job.submitted)),
    ("Start", 19, lambda job: stamp(job.started)),
    ("End", 19, _ends),
    ("Elapsed", 10, lambda job: long_clock(job.elapsed(NOW))),
    ("ElapsedRaw", 10, lambda job: str(int(job.elapsed(NOW)))),
    ("CPUTime", 10, lambda job: long_clock(job.elapsed(NOW) * job.cpus)),
    ("CPUTimeRAW", 10, lambda job: str(int(job.elapsed(NOW) * job.cpus))),
    ("Timelimit", 10, lambda job: long_clock(job.limit) if job.limit else "UNLIMITED"),
    ("TimelimitRaw", 12, lambda job: str(int(job.limit // 60)) if job.limit else "UNLIMITED"),
    ("Planned", 10, lambda job: long_clock(max(0.0, (job.started or NOW) - job.submitted))),
    ("Priority", 10, lambda job: str(job.priority)),
    ("WorkDir", 20, lambda job: job.directory),
    ("AllocTRES", 10, _tres),
    ("ReqTRES", 10, _tres),
    ("WCKey", 10, _always("")),
    ("TotalCPU", 10, _cpu_time),
    ("MaxRSS", 10, lambda job: _most(job, "memory_peak")[0]),
    ("MaxRSSNode", 10, lambda job: _most(job, "memory_peak")[1]),
    ("MaxDiskRead", 12, lambda job: _most(job, "read")[0]),
    ("MaxDiskWrite", 12, lambda job: _most(job, "written")[0]),
)
#: Columns that Slurm measures, and nobody here does: they are empty, as where Slurm has no accounting of them
_EMPTY = (
    "AveCPU", "AveDiskRead", "AveDiskWrite", "AvePages", "AveRSS", "AveVMSize", "ConsumedEnergy", "MaxPages",
    "MaxRSSTask", "MaxVMSize", "MinCPU", "ReqMem", "SystemCPU", "UserCPU",
    "TRESUsageInAve", "TRESUsageInMax", "TRESUsageInTot", "Layout", "SubmitLine", "Constraints",
)  # fmt: skip
SACCT_FIELDS: dict[str, Field] = {
    **{name.lower(): Field(name, width, text) for name, width, text in _SACCT},
    **{name.lower(): Field(name, 10, _always("")) for name in _EMPTY},
}
