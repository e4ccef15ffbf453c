"""A job that takes the memory of its container, which has a reserve."""

import re

from pod_jobs import QUIET, ended, submit
from real_cluster import IN_PODS, Install

from tools.clients import until
from tools.releases import MOUNT, STEP_SECONDS

pytestmark = IN_PODS

#: Takes 0.2 GB in each second, in pieces
GROW = "import time; a = []\nwhile True: a.append(b'x' * 10_000_000); time.sleep(0.05)"


def test_a_job_that_takes_the_reserve_of_memory_ends_by_name_alone(release: Install) -> None:
    values = {"size": 2, **QUIET, "flux": {"memoryReserve": "300Mi"}}
    cluster = release(values, {"cores": 2, "resources": {"limits": {"memory": "700Mi"}}})
    cluster.wait_for("0-1")
    broker, uids = cluster.broker(1), cluster.uids()
    beside = submit(cluster, "--requires=rank:1", "sleep", "inf")
    greedy = submit(cluster, "--requires=rank:1", f"{MOUNT}/bin/flux", "python", "-c", GROW)
    until(lambda: ended(cluster, greedy), STEP_SECONDS, "the end of the greedy job")
    found = cluster.flux(0, "jobs", "-n", "-o", "{result} {exception.type} {exception.note}", greedy)
    host = cluster.exec(1, "hostname").strip()
    why = rf"took \d+(\.\d)? MiB of 700 MiB on {host}, where flux.memoryReserve keeps 300 MiB: it ended before the "
    assert re.fullmatch(rf"FAILED memory {why}kernel would end all of the container\n", found)
    assert f"minicluster: job {greedy} took " in cluster.log(1)
    assert cluster.flux(0, "jobs", "-n", "-o", "{state}", beside) == "RUN\n"
    assert (cluster.broker(1), cluster.uids()) == (broker, uids)


#: Fills shared memory, without a process that has it, until it is killed
FILL = "i=0; while :; do head -c 10M /dev/zero >/dev/shm/part-$i; i=$((i + 1)); sleep 0.05; done"


def test_what_a_killed_job_has_left_in_shared_memory_kills_no_other(release: Install) -> None:
    values = {"size": 1, **QUIET, "flux": {"memoryReserve": "100Mi"}}
    cluster = release(values, {"cores": 2, "resources": {"limits": {"memory": "512Mi"}}})
    cluster.wait_for("0")
    cluster.exec(0, "sh", "-c", "echo mine >/dev/shm/before")
    beside = submit(cluster, "sleep", "inf")
    greedy = submit(cluster, "sh", "-c", FILL)
    until(lambda: ended(cluster, greedy), STEP_SECONDS, "the end of the greedy job")
    assert cluster.flux(0, "jobs", "-n", "-o", "{exception.type}", greedy) == "memory\n"
    for _ in range(3):
        assert cluster.flux(0, "run", "echo", "on") == "on\n"
    assert cluster.flux(0, "jobs", "-n", "-o", "{state}", beside) == "RUN\n"
    cluster.flux(0, "cancel", beside)
    until(lambda: cluster.exec(0, "ls", "/dev/shm") == "before\n", STEP_SECONDS, "the end of what it left")
    assert re.search(r"minicluster: .* left \d+(\.\d)? MiB of shared memory: it is freed\n", cluster.log(0))
