"""What status and log say when Flux can't save its state, and when brokers don't join: real brokers."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from broker_clusters import Cluster, Make
from broker_pods import Flux
from failures import FAILURES, matches
from minicluster.cluster.find import LiveCluster
from minicluster.cluster.job import read_job
from minicluster.cluster.pods import read_pods
from minicluster.status.document import document
from minicluster.status.snapshot import snapshot
from status_samples import NOW, SETTINGS, STARTS, job, pod

from tools.clients import until
from tools.releases import MOUNT

FLUX = f"{MOUNT}/bin/flux"
FILL = f"{MOUNT}/state/fill"


@pytest.fixture
def cluster(make: Make) -> Iterator[Cluster]:
    """A cluster whose state is on a small volume."""
    if os.geteuid():
        pytest.skip("only root can mount a small volume")
    cluster = make({"state": {"claimName": "shared"}})
    claim = cluster.root / "claim"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", claim], check=True)
    yield cluster.start().wait_for_ready()
    cluster.end()
    subprocess.run(["umount", "--lazy", claim], check=True)


def run(cluster: Cluster, *words: str) -> str:
    """Return what a command prints in the lead's pod; it must end within a minute."""
    done = cluster.lead.run("timeout", "60", *words)
    assert not done.returncode, done.stderr
    return done.stdout


def expect(cluster: Cluster, which: str) -> None:
    """Wait until the status has the line of the table as a problem, and so has the log."""
    problem = FAILURES[which].status.removeprefix("Problem: ")

    def found() -> bool:
        seen = json.loads(run(cluster, FLUX, "python", f"{MOUNT}/minicluster/state.py"))["problems"]
        return any(matches(problem, text) for text in seen)

    until(found, what=problem)
    logged = f"minicluster: {problem}"
    assert FAILURES[which].log.removeprefix("`").startswith(logged.partition(" full")[0])
    # the undrainer looks after each change, and at least once a minute
    until(lambda: any(matches(logged, line) for line in cluster.lead.log.splitlines()), 90, f"in the log: {logged}")


def test_status_and_log_name_a_claim_that_is_full_and_jobs_run_on(cluster: Cluster, flux: Flux) -> None:
    flux.since(62, "new jobs hang")
    run(cluster, "sh", "-c", f"dd if=/dev/zero of={FILL} bs=4k 2>/dev/null || true")
    assert run(cluster, FLUX, "run", "echo", "on") == "on\n"
    expect(cluster, "claim full")
    run(cluster, "rm", FILL)
    expect(cluster, "claim was full")
    # the way out; with some SQLite a job would hang here
    run(cluster, FLUX, "dump", "/tmp/dump.tar")


def test_status_names_the_nodes_that_do_not_join(make: Make) -> None:
    cluster = make({"size": 2}).start([0])

    def answer() -> dict[str, Any]:
        done = cluster.lead.run(FLUX, "python", f"{MOUNT}/minicluster/state.py")
        found: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
        return found if found.get("online") == "0" else {}

    flux = until(answer, what="the lead's broker")
    # Kubernetes says that both pods run, since four minutes
    found = LiveCluster("demo", read_pods({"items": [pod(0, STARTS), pod(1)]}), read_job(job(size=2)))
    shown = document(snapshot(found, NOW, lambda _: json.dumps([SETTINGS, flux])))
    assert f"{shown['state']}: {shown['why']}" == FAILURES["quorum never"].status
    # Flux says it after a minute
    log = FAILURES["quorum never"].log.strip("`").removeprefix("<3>")
    # an older one logs no level
    until(lambda: any(matches(log, line.removeprefix("<3>")) for line in cluster.lead.log.splitlines()), 90, log)


def test_a_claim_with_space_is_no_problem(cluster: Cluster) -> None:
    assert run(cluster, FLUX, "run", "echo", "on") == "on\n"
    assert json.loads(run(cluster, FLUX, "python", f"{MOUNT}/minicluster/state.py"))["problems"] == []
    assert "volume" not in cluster.lead.log
