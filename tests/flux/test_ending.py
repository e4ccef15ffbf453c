"""What a client asks of the lead before nodes go: which jobs run on them, and whether they run again."""

import json
import time
from typing import Any

import pytest
from broker_clusters import Cluster, Make
from minicluster.lead.program import BOOT, first_line
from test_putting_back import started

from tools.clients import until
from tools.releases import MOUNT

FLUX = f"{MOUNT}/bin/flux"
PAIR: dict[str, Any] = {"size": 2, "logging": {"quiet": True}, "interactive": True}


@pytest.fixture
def cluster(make: Make) -> Cluster:
    return make(PAIR, {"cores": 2}).start().wait_for_ready()


def ask(cluster: Cluster, on_stop: str, ranks: str) -> dict[str, Any]:
    """Return what the program prints."""
    (cluster.lead.state / "program").write_text(first_line("ending"))
    words = (FLUX, "python", "-c", BOOT, on_stop, ranks)
    done = cluster.lead.run("sh", "-c", f'exec "$@" <{MOUNT}/program', "sh", *words)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_jobs_on_nodes_that_go_are_named_with_what_happens_to_them(cluster: Cluster) -> None:
    assert ask(cluster, "cancel", "") == {"running": [], "more": 0, "waiting": 0}
    both = started(cluster, "-N2", "-n2", "sleep", "600")
    lead = started(cluster, "--requires=rank:0", "--job-name=on lead", "sleep", "600")
    marked = started(cluster, "--requires=rank:1", "--setattr=user.minicluster.requeue=1", "sleep", "600")
    for _ in range(3):
        cluster.lead.flux("submit", "-n4", "true")
    until(lambda: cluster.lead.flux("jobs", "-n", "-o", "{state}", "-f", "pending").split() == ["SCHED"] * 3)
    found = ask(cluster, "cancel", "1")
    assert (found["more"], found["waiting"]) == (0, 3)
    assert found["running"] == [
        {"id": both, "name": "sleep", "nodes": "flux-sample-[0-1]", "again": False, "is_work": False},
        {"id": marked, "name": "sleep", "nodes": "flux-sample-1", "again": True, "is_work": False},
    ]
    every = ask(cluster, "requeue", "")["running"]
    assert [(job["id"], job["name"], job["again"]) for job in every] == [
        (both, "sleep", True),
        (lead, "on lead", True),
        (marked, "sleep", True),
    ]


def test_an_idle_cluster_ends_once_nobody_is_connected(make: Make) -> None:
    cluster = make({**PAIR, "endAfterSeconds": 6}).start().wait_for_ready()
    cluster.lead.flux("run", "-N2", "true")
    begin = time.monotonic()
    # a shell
    cluster.lead.run("sleep", "12")
    assert cluster.wait() == [0, 0]
    assert time.monotonic() - begin > 12
    why = "minicluster: for 6 s there was no job, and nobody connected: it ends (endAfterSeconds)\n"
    assert cluster.lead.log == why
