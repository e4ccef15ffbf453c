"""What a node does when its memory is short: real brokers. The limit and what is taken of it are files of the test."""

import json
import re
import shlex

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


def guarded(make: Make, **values: object) -> Cluster:
    """Return a cluster of a node with a limit of 1 GiB, of which jobs are to leave 512 MiB."""
    cluster = make({**QUIET, "flux": {"memoryReserve": "512Mi"}, **values}, {"cores": 8})
    files = cluster.data["minicluster"]
    line = "  find_memory /sys/fs/cgroup\n"
    assert line in files["entrypoint.sh"]
    made = f"mkdir -p {FILES}; echo {GIB} >{FILES}/memory.max; echo 0 >{FILES}/memory.current; : >{FILES}/memory.stat"
    files["entrypoint.sh"] = files["entrypoint.sh"].replace(line, f"  {made}; find_memory {FILES}\n")
    cluster.start().wait_for_ready()
    for name, text in (("take", TAKE), ("batch", f"#!/bin/sh\nflux run {away(130)}\n")):
        assert not cluster.lead.run("sh", "-c", 'echo "$0" >"$1"', text, f"/tmp/{name}").returncode
    return cluster


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
    beside, left = (flux("submit", *shlex.split(away(mib))).strip() for mib in (50, 90))
    batch = flux("batch", "-n1", "/tmp/batch").strip()
    until(lambda: all(has_taken(cluster, mib) for mib in (50, 90, 130)))
    take(cluster, GIB - (500 << 20))
    jobs = [batch, left, beside]
    until(lambda: all(end_of(cluster, job) for job in jobs))
    assert [end_of(cluster, job)["type"] for job in jobs] == ["memory"] * 3
    ended = re.findall(r"job (\S+) took .* where flux.memoryReserve keeps 512 MiB", cluster.lead.log)
    assert ended == [job.replace("ƒ", "f") for job in jobs]
