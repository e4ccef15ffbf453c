"""What a node does when its memory is short: real brokers. The limit and what is taken of it are files of the test."""

import json
import re
import shlex

import pytest
from broker_clusters import Cluster, Make

from tools.clients import until
from tools.releases import MOUNT

QUIET = {"logging": {"quiet": True}}
GIB = 1 << 30
FILES = f"{MOUNT}/cgroup"
#: Leaves its parents and its session, takes MiB of memory and says so
TAKE = """\
import os, sys, time
if os.fork(): sys.exit()
os.setsid()
if os.fork(): sys.exit()
taken = b"x" * (int(sys.argv[1]) << 20)
open("/tmp/taken-" + sys.argv[1], "w").close()
time.sleep(600)
"""


def guarded(make: Make) -> Cluster:
    """Return a cluster of a node with a limit of 1 GiB, of which jobs are to leave 512 MiB."""
    cluster = make({**QUIET, "flux": {"memoryReserve": "512Mi"}}, {"cores": 8})
    set_limit(cluster)
    cluster.start().wait_for_ready()
    for name, text in (("take", TAKE), ("batch", f"#!/bin/sh\nflux run {away(250)}\n")):
        assert not cluster.lead.run("sh", "-c", 'echo "$0" >"$1"', text, f"/tmp/{name}").returncode
    return cluster


def set_limit(cluster: Cluster) -> None:
    """Let files of the test say what the limit of the memory is, and what is taken of it: nothing."""
    files = cluster.data["minicluster"]
    line = "  find_memory /sys/fs/cgroup\n"
    assert line in files["entrypoint.sh"]
    made = f"mkdir -p {FILES}; echo {GIB} >{FILES}/memory.max; echo 0 >{FILES}/memory.current; : >{FILES}/memory.stat"
    files["entrypoint.sh"] = files["entrypoint.sh"].replace(line, f"  {made}; find_memory {FILES}\n")


def away(mib: int) -> str:
    """Return the words of a job whose memory is taken by a process that has left it."""
    return f"sh -c '{MOUNT}/bin/flux python /tmp/take {mib}; sleep inf'"


def take(cluster: Cluster, used: int) -> None:
    """Let bytes of the limit be taken."""
    file = cluster.lead.state / "cgroup/memory.current"
    new = file.with_suffix(".new")
    new.write_text(f"{used}\n")
    new.replace(file)


def end_of(cluster: Cluster, job: str) -> dict[str, str]:
    """Return how a job has ended; {} while it runs."""
    found = json.loads(cluster.lead.flux("jobs", "--json", job))
    return dict(found.get("exception", {})) if found["state"] == "INACTIVE" else {}


def has_taken(cluster: Cluster, mib: int) -> bool:
    return not cluster.lead.run("test", "-e", f"/tmp/taken-{mib}").returncode


def test_the_job_ends_whose_processes_have_left_it_also_in_a_batch(make: Make) -> None:
    cluster = guarded(make)
    flux = cluster.lead.flux
    beside, left = (flux("submit", *shlex.split(away(mib))).strip() for mib in (150, 200))
    batch = flux("batch", "-n1", "/tmp/batch").strip()
    until(lambda: all(has_taken(cluster, mib) for mib in (150, 200, 250)))
    take(cluster, GIB - (500 << 20))
    jobs = [batch, left]
    until(lambda: all(end_of(cluster, job) for job in jobs))
    assert [end_of(cluster, job)["type"] for job in jobs] == ["memory"] * 2
    ended = re.findall(r"job (\S+) took .* where flux.memoryReserve keeps 512 MiB", cluster.lead.log)
    assert ended == [job.replace("ƒ", "f") for job in jobs]
    # now what is short is not the third one's
    until(lambda: drained(cluster))
    assert flux("jobs", "-n", "-o", "{state}", beside) == "RUN\n"


def drained(cluster: Cluster) -> dict[str, str]:
    """Return the reasons of the drained ranks."""
    done = cluster.lead.run(f"{MOUNT}/bin/flux", "python", f"{MOUNT}/minicluster/state.py")
    return dict(json.loads(done.stdout)["drained"])


def test_a_node_whose_memory_is_no_job_s_takes_no_jobs_until_it_is_free(make: Make) -> None:
    cluster = guarded(make)
    lead = cluster.lead
    assert not lead.run("sh", "-c", "head -c 400M /dev/zero >/dev/shm/mine").returncode
    job = lead.flux("submit", "sleep", "inf").strip()
    take(cluster, 560 << 20)
    why = "400 MiB of /dev/shm belong to no job"
    until(lambda: drained(cluster) == {"0": f"its memory is short: {why}"})
    assert lead.flux("jobs", "-n", "-o", "{state}", job) == "RUN\n"
    waits = lead.flux("submit", "true").strip()
    assert not lead.run("rm", "/dev/shm/mine").returncode
    take(cluster, 160 << 20)
    assert lead.run(f"{MOUNT}/bin/flux", "job", "attach", waits).returncode == 0
    assert drained(cluster) == {}
    assert lead.flux("jobs", "-n", "-o", "{state}", job) == "RUN\n"
    told = [line for line in lead.log.splitlines() if "memory" in line]
    assert told == [
        f"minicluster: memory is short, {why}: no job is ended, and the node takes no more until that is free",
        "minicluster: memory is free again: the node takes jobs",
    ]


#: Leaves a file, a segment, and a process without a parent. Words: a name, and what ends the task
LEAVE = """\
import ctypes, os, signal, sys, time
with open("/dev/shm/" + sys.argv[1], "wb") as file: file.write(b"x" * (8 << 20))
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
libc.memset(ctypes.c_void_p(libc.shmat(libc.shmget(0, 4 << 20, 0o1600), None, 0)), 1, 4 << 20)
if os.fork() == 0:
    os.setsid()
    os.closerange(0, 64)
    if os.fork(): os._exit(0)
    time.sleep(600)
while sys.argv[2] and not os.path.exists(sys.argv[2]): time.sleep(0.05)
os.kill(os.getpid(), signal.SIGKILL)
"""
#: Prints what is in shared memory, and the jobs whose marks processes have
SHOW = """\
ls /dev/shm
sed 1d /proc/sysvipc/shm | while read -r _ id _ _ creator _; do [ "$creator" = 0 ] || echo segment; done
for file in /proc/[0-9]*/environ; do tr '\\0' '\\n' <"$file" 2>/dev/null | sed -n '/^MINICLUSTER_JOB=/p'; done
"""


@pytest.mark.parametrize("reserve", ["", "100Mi"], ids=["plain", "reserve"])
def test_what_an_ended_job_leaves_is_taken_away_and_nothing_else(make: Make, reserve: str) -> None:
    cluster = make({**QUIET, "flux": {"memoryReserve": reserve}}, {"cores": 8})
    if reserve:
        set_limit(cluster)
    cluster.start().wait_for_ready()
    lead = cluster.lead

    def shown() -> list[str]:
        return lead.run("sh", "-c", SHOW).stdout.split()

    assert not lead.run("sh", "-c", 'echo "$0" >/tmp/leave; touch /dev/shm/before', LEAVE).returncode
    leave = [f"{MOUNT}/bin/flux", "python", "/tmp/leave"]
    # a task, a batch, and the next job, which finds its node as it was
    assert lead.run(f"{MOUNT}/bin/flux", "run", *leave, "first", "").returncode == 137
    batch = f"#!/bin/sh\nflux run {' '.join(leave)} second ''\nflux run {' '.join(leave)} third ''\n"
    assert not lead.run("sh", "-c", 'echo "$0" >/tmp/batch', batch).returncode
    lead.run("sh", "-c", f"{MOUNT}/bin/flux job attach $({MOUNT}/bin/flux batch -n1 /tmp/batch)")
    until(lambda: shown() == ["before"])
    beside = lead.flux("submit", *leave, "beside", "/tmp/go").strip()
    mark = "MINICLUSTER_JOB=" + lead.flux("job", "id", "--to=dec", beside).strip()
    until(lambda: {*shown()} == {"before", "beside", "segment", mark})
    assert lead.run(f"{MOUNT}/bin/flux", "run", *leave, "fourth", "").returncode == 137
    until(lambda: {*shown()} == {"before", "beside", "fourth", "segment", mark}, what="the end of its process")
    assert not lead.run("touch", "/tmp/go").returncode
    until(lambda: shown() == ["before"])
    assert lead.flux("run", "echo", "on") == "on\n"
    left = re.findall(r"minicluster: (?:job|one of the jobs) .* left (.*)", lead.log)
    freed = [re.fullmatch(r"(\d+) MiB of shared memory: it is freed", what) for what in left]
    # five times a file and a segment, by what is known of who has made each
    assert sum(int(found[1]) for found in freed if found) == 5 * (8 + 4)
    killed = {what for what, found in zip(left, freed, strict=True) if not found}
    assert killed <= {"a process, which is killed", "2 processes, which are killed"}
