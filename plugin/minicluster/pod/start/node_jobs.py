"""The jobs that run on a node: their processes, and the memory that these take.

minicluster.lua gives each task the id of its job in MINICLUSTER_JOB. So a process that has left its parents and its
session is still that of a job; so is one of a job in a job, which is a part of the outer one.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Container, Iterable, Mapping, NamedTuple

#: More than a file has that `read` reads
SMALL_BYTES = 8192


#: What a second has of the units of proc_pid_stat(5)
TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
#: What Flux's shell of a job is called (proc_pid_comm(5))
JOB_SHELL = "flux-shell"
JOB_MARK = b"MINICLUSTER_JOB="
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
#: Seconds for the shares of processes that share memory: the kernel needs 20 ms for each GiB
SHARES_SECONDS = 0.5
#: Processes by the id of their job
Jobs = Mapping[int, "list[int]"]


def stats() -> dict[int, bytes]:
    """Return what the kernel tells of each process, after its name; those that have ended are not there."""
    all_of = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - the guard does this each second
        with suppress(OSError):
            stat = read(f"/proc/{pid}/stat").rpartition(b") ")[2]
            if not stat.startswith(b"Z"):
                all_of[int(pid)] = stat
    return all_of


def children(of: Mapping[int, bytes] | None = None) -> dict[int, list[int]]:
    """Return the ids of the children of each process."""
    by_parent: dict[int, list[int]] = {}
    for pid, stat in (stats() if of is None else of).items():
        by_parent.setdefault(int(stat.split(None, 2)[1]), []).append(pid)
    return by_parent


def cpu_seconds(of: Iterable[bytes]) -> float:
    """Return the CPU time that processes and their ended children have had, by what `stats` has of them."""
    return sum(int(ticks) for stat in of for ticks in stat.split(None, 15)[11:15]) / TICKS


def threads(of: Iterable[bytes]) -> int:
    """Return how many threads processes have."""
    return sum(int(stat.split(None, 18)[17]) for stat in of)


def read(path: str) -> bytes:
    """Return a small file of the kernel, for a fifth of what `Path` takes. Raises OSError."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, SMALL_BYTES)
    finally:
        os.close(file)


def descendants(first: Iterable[int], of: Mapping[int, list[int]]) -> list[int]:
    """Return processes and all their descendants, each once."""
    pids = list(dict.fromkeys(first))
    for each in pids:
        pids += [child for child in of.get(each, []) if child not in pids]
    return pids


def send_to_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to processes that may have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


class Taken(NamedTuple):
    """Bytes of memory."""

    all: int
    shared: int  #: what is in shared memory of them, as far as that is known


def jobs() -> dict[int, list[int]]:
    """Return the processes of each job that runs, without Flux's own shell."""
    of, job_of = children(), _shells()
    pids_of = {shell: descendants([shell], of)[1:] for shell in job_of}
    inner = {pid for below in pids_of.values() for pid in below if pid in job_of}
    ours = {job_of[shell]: below for shell, below in pids_of.items() if shell not in inner}
    for pid, job in marked(without={pid for pids in pids_of.values() for pid in pids}).items():
        if job in ours:
            ours[job].append(pid)
    return ours


def _shells() -> dict[int, int]:
    """Return the job of each of Flux's shells."""
    job_of = {}
    for file in PROC.glob("[0-9]*/comm"):
        with suppress(OSError, ValueError, IndexError):  # it has ended
            pid = int(file.parent.name)
            # that of a job in a job has the mark of the outer one
            if file.read_text().strip() == JOB_SHELL and is_here(pid) and mark_of(pid) is None:
                job_of[pid] = int((file.parent / "cmdline").read_bytes().split(b"\0")[-2])
    return job_of


def marked(without: Container[int] = ()) -> dict[int, int]:
    """Return the processes of this container that have the mark of a job, and the job of each; some are left out."""
    job_of = {}
    for pid in (int(folder.name) for folder in PROC.glob("[0-9]*")):
        job = None if pid in without else mark_of(pid)
        if job is not None and is_here(pid):
            job_of[pid] = job
    return job_of


def mark_of(pid: int) -> int | None:
    """Return the job whose mark a process has (proc_pid_environ(5)); None for none, or once it has ended."""
    with suppress(OSError, ValueError):
        for entry in (PROC / f"{pid}/environ").read_bytes().split(b"\0"):
            if entry.startswith(JOB_MARK):
                return int(entry[len(JOB_MARK) :])
    return None


def is_here(pid: int) -> bool:
    """Return whether a process is one of this container: with pod.hostPID there are those of others."""
    with suppress(OSError):
        return (PROC / f"{pid}/cgroup").read_bytes() == (PROC / "self/cgroup").read_bytes()
    return False


def resident(pid: int) -> int:
    """Return the bytes of memory that a process uses (proc_pid_statm(5)), alone or with others; 0 once it has ended."""
    with suppress(OSError):
        return int((PROC / f"{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    return 0


def written(pids: Iterable[int]) -> int:
    """Return the bytes that processes and their ended children have written, to anything (proc_pid_io(5))."""
    written_bytes = 0
    for pid in pids:
        with suppress(OSError, IndexError, ValueError):
            written_bytes += int((PROC / f"{pid}/io").read_text().partition("wchar: ")[2].split()[0])
    return written_bytes


def share(pid: int) -> Taken:
    """Return the memory of a process; of what others use too, its share (smaps_rollup in proc_pid_smaps(5))."""
    try:
        lines = (PROC / f"{pid}/smaps_rollup").read_text().split("\n")[1:]
        kib = {line.split(":")[0]: int(line.split()[1]) for line in lines if line}
        return Taken(kib["Pss"] << 10, kib.get("Pss_Shmem", 0) << 10)
    except (OSError, KeyError, ValueError):  # it has ended, may not be traced, or the kernel is older
        return Taken(resident(pid), 0)


def taken(pids: Iterable[int], shared: int = 0) -> int:
    """Return the memory that processes take together, with the bytes of shared memory that are theirs."""
    end, used = time.monotonic() + SHARES_SECONDS, {pid: resident(pid) for pid in pids}
    order = sorted(used, key=lambda each: -used[each])
    memory = [share(pid) if time.monotonic() < end else Taken(used[pid], 0) for pid in order]
    mapped = sum(each.shared for each in memory)
    # what they have mapped is a part of it
    return sum(each.all for each in memory) - mapped + max(mapped, shared)


def most(of_jobs: Jobs, shared: Mapping[int, int]) -> int:
    """Return the most that all jobs can take together: what processes share counts for each of them."""
    return sum(resident(pid) for pids in of_jobs.values() for pid in pids) + sum(shared.values())


def outside(of_jobs: Container[int]) -> int:
    """Return the memory of the container's other processes, without what they share with any."""
    total = 0
    for pid in (int(folder.name) for folder in PROC.glob("[0-9]*")):
        with suppress(OSError):
            _, used, shared, *_ = map(int, (PROC / f"{pid}/statm").read_text().split())
            if pid not in of_jobs and used and is_here(pid):
                total += (used - shared) * PAGE_BYTES
    return total


def largest(of_jobs: Jobs, shared: Mapping[int, int]) -> int:
    """Return the job that takes most of the memory, with the bytes of shared memory of each job.

    Shares are measured only where they decide: a job takes as much as one of its processes at least, and as all of them
    at most.
    """
    used = {job: [resident(pid) for pid in pids] for job, pids in of_jobs.items()}
    least = max(max([shared.get(job, 0), *each]) for job, each in used.items())
    close = [job for job, each in used.items() if sum(each) + shared.get(job, 0) >= least]
    return close[0] if len(close) == 1 else max(close, key=lambda job: taken(of_jobs[job], shared.get(job, 0)))
