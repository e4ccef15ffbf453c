"""Jobs that survive the loss of the lead, by where the state is kept."""

from pathlib import Path
from typing import Any

import pytest
from pod_jobs import ONE_CORE, QUIET, ended, submit, wait_for_checkpoint
from real_cluster import IN_PODS, NODE_FOLDER, Install

from tools.clients import until
from tools.releases import STEP_SECONDS
from tools.testbed import bind, offer

pytestmark = IN_PODS

#: The results of a running and a waiting job, by where the state is kept and how the lead is lost
SURVIVES = {
    # in the pod: only a lost pod needs the archive
    ("archive", "kill"): ("FAILED", "COMPLETED"),
    ("archive", "evict"): ("CANCELED", "COMPLETED"),
    ("archive", "reinstall"): ("CANCELED", "COMPLETED"),
    ("claim", "kill"): ("FAILED", "COMPLETED"),
    ("claim", "evict"): ("CANCELED", "COMPLETED"),
    ("claim", "reinstall"): ("CANCELED", "COMPLETED"),
    ("capacity", "reinstall"): ("CANCELED", "COMPLETED"),
    ("claim", "suspend"): ("CANCELED", "COMPLETED"),
}


@NODE_FOLDER
@pytest.mark.parametrize(("kept", "loss"), SURVIVES)
def test_jobs_survive_the_loss_of_the_lead_by_where_the_state_is_kept(
    release: Install, volume: str, tmp_path: Path, kept: str, loss: str
) -> None:
    values: dict[str, Any] = {"size": 1, **QUIET, "pod": {"terminationGracePeriodSeconds": 20}}
    runner: dict[str, Any] = dict(ONE_CORE)
    (tmp_path / "archive").mkdir()
    if kept == "archive":
        values["archive"] = {"path": "/archive/state.tgz"}
        runner["volumes"] = {"archive": {"path": "/archive", "hostPath": str(tmp_path / "archive")}}
    elif kept == "claim":
        values["state"] = {"claimName": "state"}
    else:
        values["state"] = {"capacity": "1Gi", "storageClass": "", "accessModes": ["ReadWriteMany"]}
    cluster = release(values, runner)
    if kept == "claim":
        bind(cluster, "state", volume, tmp_path / "state")
    elif kept == "capacity":
        offer(cluster, "mini-state", volume, tmp_path / "state")
    cluster.wait_for("0")
    runs = submit(cluster, "sleep", "600")
    until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{state}", runs).strip() == "RUN")
    waits = submit(cluster, "true")
    first, broker = cluster.pod(0), cluster.broker(0)
    if loss == "kill":
        wait_for_checkpoint(cluster)
        cluster.kill_broker(0)
    elif loss == "evict":
        cluster.evict(first)
    elif loss == "suspend":
        cluster.upgrade(suspend=True)
        until(lambda: not cluster.pods(), STEP_SECONDS, "the end of the pods")
        cluster.upgrade(suspend=False)
    else:
        cluster.uninstall()
        cluster.install()
    until(lambda: cluster.broker(0) not in ("", broker) and cluster.up() == "0", STEP_SECONDS)
    until(lambda: cluster.flux(0, "run", "echo", "up") == "up\n", STEP_SECONDS)
    assert (ended(cluster, runs), ended(cluster, waits)) == SURVIVES[kept, loss]
