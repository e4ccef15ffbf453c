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
