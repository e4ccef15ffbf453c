"""The options of sbatch, salloc and srun: the one table of what each becomes here.

The rule: what changes which results a job gives, or where or whether it runs, is done or refused by name. What has only
to do with accounts, mail or speed is passed over with one line on standard error.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence

#: The release of Slurm whose options these are
VERSION = "24.11.0"
#: How far an option does what it does in Slurm
EXACT, NEAR, PASSED, DENIED = "exact", "near", "passed over", "refused"
#: The commands by their letters in the table, and the prefix of the variables that stand for their options
SUBMITTERS = {"sbatch": "b", "salloc": "a", "srun": "r"}
PREFIXES = {"sbatch": "SBATCH_", "salloc": "SALLOC_", "srun": "SLURM_"}


class Option(NamedTuple):
    """One option."""

    name: str
    short: str  #: its letter
    value: str  #: `=` if it takes a value, `?` if it may have one behind `=`, else ""
    commands: str  #: the letters of the commands that have it
    kind: str
    text: str  #: what it becomes, or why it can't be done
    variable: str = ""  #: that stands for it, without the command's prefix

    @property
    def shown(self) -> str:
        """The option as messages name it."""
        return f"--{self.name}"


_ALLOCATED = "a MiniCluster has one user, no accounts"
_HINT = "a hint about speed"
_PLACE = "Flux does not know it: name nodes by -w, or a group by -p"
_STEPS = "a step takes any free part of its job's nodes"

SUBMIT_OPTIONS: Sequence[Option] = tuple(
    Option(*row)
    for row in (
        ("account", "A", "=", "bar", PASSED, _ALLOCATED, "ACCOUNT"),
        ("acctg-freq", "", "=", "bar", PASSED, "nothing is sampled", "ACCTG_FREQ"),
        ("array", "a", "=", "b", EXACT, "a job for each index; of `%LIMIT` never more at once", "ARRAY_INX"),
        ("batch", "", "=", "b", DENIED, _PLACE),
        ("bb", "", "=", "bar", DENIED, "there is no burst buffer"),
        ("bbf", "", "=", "bar", DENIED, "there is no burst buffer"),
        ("bcast", "", "?", "r", DENIED, "copy files by `minicluster copy --all`"),
        ("begin", "b", "=", "ba", EXACT, "the dependency begin-time"),
        ("bell", "", "", "a", PASSED, "no bell rings"),
        ("chdir", "D", "=", "bar", EXACT, "the working directory"),
        ("cluster-constraint", "", "=", "b", DENIED, "there is one cluster"),
        ("clusters", "M", "=", "ba", DENIED, "there is one cluster", "CLUSTERS"),
        ("comment", "", "=", "bar", EXACT, "kept with the job"),
        ("compress", "", "?", "r", PASSED, _HINT),
        ("constraint", "C", "=", "bar", NEAR, "properties of nodes, joined by `&` alone", "CONSTRAINT"),
        ("container", "", "=", "bar", DENIED, "a pod has one image, that of the MiniCluster"),
        ("container-id", "", "=", "bar", DENIED, "a pod has one image"),
        ("contiguous", "", "", "bar", PASSED, _HINT),
        ("core-spec", "S", "=", "bar", PASSED, "the pod's requests keep cores for the system", "CORE_SPEC"),
        ("cores-per-socket", "", "=", "bar", PASSED, _HINT),
        ("cpu-bind", "", "=", "r", NEAR, "`none` is none; else Flux binds", "CPU_BIND"),
        ("cpu-freq", "", "=", "bar", PASSED, _HINT),
        ("cpus-per-gpu", "", "=", "bar", NEAR, "times the GPUs of a task", "CPUS_PER_GPU"),
        ("cpus-per-task", "c", "=", "bar", EXACT, "cores for each task"),
        ("deadline", "", "=", "bar", DENIED, "Flux has no deadlines: use --time"),
        ("delay-boot", "", "=", "bar", PASSED, "no node boots", "DELAY_BOOT"),
        ("dependency", "d", "=", "bar", NEAR, "after, afterany, afterok, afternotok, singleton; all of them"),
        ("disable-status", "X", "", "r", PASSED, "Ctrl-C is Flux's"),
        ("distribution", "m", "=", "bar", NEAR, "block or cyclic over the nodes; the rest is a hint", "DISTRIBUTION"),
        ("epilog", "", "=", "r", DENIED, "run it in the script"),
        ("error", "e", "=", "bar", EXACT, "a file, with Slurm's patterns", "ERROR"),
        ("exact", "", "", "r", EXACT, "steps have only what they ask for"),
        ("exclude", "x", "=", "bar", EXACT, "not on these hosts"),
        ("exclusive", "", "?", "bar", EXACT, "whole nodes; in srun of a step: as --exact", "EXCLUSIVE"),
        ("export", "", "=", "bar", EXACT, "which variables the job gets", "EXPORT"),
        ("export-file", "", "=", "b", DENIED, "use --export"),
        ("extra", "", "=", "bar", PASSED, "nothing reads it"),
        ("extra-node-info", "B", "=", "bar", PASSED, _HINT),
        ("get-user-env", "", "?", "ba", PASSED, "a job has the environment of sbatch", "GET_USER_ENV"),
        ("gid", "", "=", "ba", DENIED, "jobs have the pod's user"),
        ("gpu-bind", "", "=", "bar", PASSED, "each task sees its own GPUs, or all of its node", "GPU_BIND"),
        ("gpu-freq", "", "=", "bar", PASSED, _HINT),
        ("gpus", "G", "=", "bar", NEAR, "a multiple of the nodes, or of the tasks", "GPUS"),
        ("gpus-per-node", "", "=", "bar", EXACT, "GPUs for each node", "GPUS_PER_NODE"),
        ("gpus-per-socket", "", "=", "bar", DENIED, "use --gpus-per-node", "GPUS_PER_SOCKET"),
        ("gpus-per-task", "", "=", "bar", EXACT, "GPUs for each task", "GPUS_PER_TASK"),
        ("gres", "", "=", "bar", NEAR, "`gpu:N`, and `gpu:GROUP:N`", "GRES"),
        ("gres-flags", "", "=", "bar", PASSED, _HINT, "GRES_FLAGS"),
        ("het-group", "", "=", "r", DENIED, "a job has nodes of one kind: submit two"),
        ("hint", "", "=", "bar", PASSED, _HINT, "HINT"),
        ("hold", "H", "", "ba", EXACT, "urgency 0"),
        ("ignore-pbs", "", "", "b", EXACT, "#PBS lines are never read", "IGNORE_PBS"),
        ("immediate", "I", "?", "ar", DENIED, "a job waits for its nodes", "IMMEDIATE"),
        ("input", "i", "=", "br", EXACT, "a file", "STDINMODE"),
        ("interactive", "", "", "r", PASSED, "any step may be"),
        ("jobid", "", "=", "r", DENIED, "run srun in the job's script; `flux proxy JOB` gives a shell there"),
        ("job-name", "J", "=", "bar", EXACT, "the name", "JOB_NAME"),
        ("kill-command", "K", "?", "a", PASSED, "the command ends with its job"),
        ("kill-on-bad-exit", "K", "?", "r", EXACT, "one failed task ends the others", "KILL_BAD_EXIT"),
        ("kill-on-invalid-dep", "", "=", "ba", NEAR, "always `yes`", "KILL_INVALID_DEP"),
        ("label", "l", "", "r", EXACT, "lines begin with the task's number", "LABELIO"),
        ("licenses", "L", "=", "bar", DENIED, "nobody counts licenses here"),
        ("mail-type", "", "=", "bar", PASSED, "nobody sends mail here"),
        ("mail-user", "", "=", "bar", PASSED, "nobody sends mail here"),
        ("mcs-label", "", "=", "bar", PASSED, _ALLOCATED),
        ("mem", "", "=", "bar", NEAR, "refused above what a node has; Flux shares out no memory", "MEM_PER_NODE"),
        ("mem-bind", "", "=", "bar", PASSED, _HINT, "MEM_BIND"),
        ("mem-per-cpu", "", "=", "bar", NEAR, "as --mem, times the CPUs of a node", "MEM_PER_CPU"),
        ("mem-per-gpu", "", "=", "bar", NEAR, "as --mem, times the GPUs of a node", "MEM_PER_GPU"),
        ("mincpus", "", "=", "bar", DENIED, "use --cpus-per-task"),
        ("mpi", "", "=", "r", NEAR, "`pmix` by flux-pmix, else Flux's PMI", "MPI_TYPE"),
        ("msg-timeout", "", "=", "r", PASSED, "messages are Flux's"),
        ("multi-prog", "", "", "r", DENIED, "use a script with `case $SLURM_PROCID`"),
        ("network", "", "=", "bar", PASSED, _HINT, "NETWORK"),
        ("nice", "", "?", "bar", NEAR, "an urgency below or above 16"),
        ("no-bell", "", "", "a", PASSED, "no bell rings"),
        ("no-kill", "k", "?", "ba", PASSED, "a job ends with its node: see --requeue", "NO_KILL"),
        ("no-requeue", "", "", "b", EXACT, "the job never runs again", "NO_REQUEUE"),
        ("no-shell", "", "", "a", DENIED, "use sbatch, or `flux alloc --bg`"),
        ("nodefile", "F", "=", "ba", EXACT, "the hosts that a file names"),
        ("nodelist", "w", "=", "bar", EXACT, "on these hosts"),
        ("nodes", "N", "=", "bar", NEAR, "of `MIN-MAX` the least"),
        ("ntasks", "n", "=", "bar", EXACT, "tasks"),
        ("ntasks-per-core", "", "=", "bar", PASSED, _HINT),
        ("ntasks-per-gpu", "", "=", "bar", DENIED, "use --gpus-per-task"),
        ("ntasks-per-node", "", "=", "bar", EXACT, "tasks on each node"),
        ("ntasks-per-socket", "", "=", "bar", PASSED, _HINT),
        ("oom-kill-step", "", "?", "bar", PASSED, "the guard of the node's memory chooses", "OOMKILLSTEP"),
        ("open-mode", "", "=", "br", EXACT, "append or truncate", "OPEN_MODE"),
        ("output", "o", "=", "bar", EXACT, "a file, with Slurm's patterns", "OUTPUT"),
        ("overcommit", "O", "", "bar", DENIED, "Flux gives each task a core of its own", "OVERCOMMIT"),
        ("overlap", "", "", "r", DENIED, _STEPS, "OVERLAP"),
        ("oversubscribe", "s", "", "bar", PASSED, "jobs never share a core"),
        ("parsable", "", "", "b", EXACT, "the id alone"),
        ("partition", "p", "=", "bar", EXACT, "a queue of Flux, or a group", "PARTITION"),
        ("power", "", "=", "bar", PASSED, _HINT, "POWER"),
        ("prefer", "", "=", "bar", PASSED, _HINT),
        ("preserve-env", "E", "", "r", PASSED, "tasks get all variables"),
        ("priority", "", "=", "bar", DENIED, "use --nice, or `flux job urgency`"),
        ("profile", "", "=", "bar", PASSED, "nothing is sampled", "PROFILE"),
        ("prolog", "", "=", "r", DENIED, "run it in the script"),
        ("propagate", "", "?", "br", PASSED, "limits are those of the pod"),
        ("pty", "", "?", "r", EXACT, "a terminal for task 0"),
        ("qos", "q", "=", "bar", PASSED, "but standby: the job may be stopped for others", "QOS"),
        ("quiet", "Q", "", "bar", EXACT, "no messages but errors"),
        ("reboot", "", "", "bar", DENIED, "pods don't reboot"),
        ("relative", "r", "=", "r", DENIED, "name hosts by -w"),
        ("requeue", "", "", "b", NEAR, "the job runs again when its pod leaves", "REQUEUE"),
        ("reservation", "", "=", "bar", DENIED, "Flux has no reservations: name nodes by -w", "RESERVATION"),
        ("resv-ports", "", "?", "r", DENIED, "MPI finds its ports by PMI"),
        ("segment", "", "=", "bar", PASSED, _HINT),
        ("send-libs", "", "?", "r", DENIED, "copy files by `minicluster copy --all`"),
        ("signal", "", "=", "bar", NEAR, "before the end by --time: to the script, or to all tasks", "SIGNAL"),
        ("slurmd-debug", "", "=", "r", PASSED, "there is no slurmd"),
        ("sockets-per-node", "", "=", "bar", PASSED, _HINT),
        ("spread-job", "", "", "bar", PASSED, _HINT, "SPREAD_JOB"),
        ("stepmgr", "", "", "bar", PASSED, "a job of several tasks has a Flux of its own"),
        ("switches", "", "=", "bar", PASSED, _HINT, "REQ_SWITCH"),
        ("task-epilog", "", "=", "r", DENIED, "run it in the script"),
        ("task-prolog", "", "=", "r", DENIED, "run it in the script"),
        ("test-only", "", "", "br", NEAR, "nothing is submitted; when it would start, by time limits"),
        ("thread-spec", "", "=", "bar", PASSED, _HINT),
        ("threads", "T", "=", "r", PASSED, "messages are Flux's"),
        ("threads-per-core", "", "=", "bar", PASSED, _HINT, "THREADS_PER_CORE"),
        ("time", "t", "=", "bar", EXACT, "the time limit", "TIMELIMIT"),
        ("time-min", "", "=", "bar", PASSED, "the limit is --time"),
        ("tmp", "", "=", "bar", DENIED, "the size of a pod's disk is its volume's"),
        ("tres-bind", "", "=", "bar", PASSED, _HINT),
        ("tres-per-job", "", "=", "bar", DENIED, "use --gpus"),
        ("tres-per-task", "", "=", "bar", DENIED, "use --gpus-per-task and --cpus-per-task"),
        ("uid", "", "=", "ba", DENIED, "jobs have the pod's user"),
        ("unbuffered", "u", "", "r", EXACT, "output comes at once", "UNBUFFEREDIO"),
        ("use-min-nodes", "", "", "bar", PASSED, "of `MIN-MAX` always the least", "USE_MIN_NODES"),
        ("verbose", "v", "", "bar", PASSED, "`flux job eventlog JOB` tells all"),
        ("wait", "W", "", "b", EXACT, "ends with the job, and with its exit code", "WAIT"),
        ("wait", "W", "=", "ar", EXACT, "seconds from the first task's end to the others'"),
        ("wait-all-nodes", "", "=", "ba", EXACT, "a job starts on all nodes at once", "WAIT_ALL_NODES"),
        ("wckey", "", "=", "bar", PASSED, _ALLOCATED, "WCKEY"),
        ("wrap", "", "=", "b", EXACT, "the command line is the script"),
        ("x11", "", "?", "ar", DENIED, "a pod has no display"),
    )
)
#: Names by which Slurm knows options too
OTHER_NAMES: Mapping[str, str] = {
    "cluster": "clusters",
    "cpu_bind": "cpu-bind",
    "mem_bind": "mem-bind",
    "no-quiet": "quiet",
    "share": "oversubscribe",
    "tasks": "ntasks",
    "tasks-per-node": "ntasks-per-node",
    "workdir": "chdir",
    "gpu": "gpus",
}


def options_of(command: str) -> Sequence[Option]:
    """Return the options of a command that submits."""
    return [option for option in SUBMIT_OPTIONS if SUBMITTERS[command] in option.commands]
