"""Each image of the list of views works with the default values, for any versions of Flux in it."""

import json
from pathlib import Path
from typing import Any

import pytest
from pod_jobs import ended, submit, wait_for_checkpoint
from real_cluster import IN_PODS, Install

from tools.clients import until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME, bind, views

pytestmark = [IN_PODS, pytest.mark.parametrize("view", views() or [""])]


def of_view(view: str) -> dict[str, Any]:
    """Return the values that choose a view, the chart's for ""."""
    return {"flux": {"container": {"image": view}}} if view else {}


def runs(cluster: FluxRelease, ranks: str, nodes: int) -> None:
    """Wait for these ranks, and run a job on all nodes."""
    cluster.wait_for(ranks)
    # a node that came back is drained until the lead has noticed
    hosts = until(lambda: cluster.flux(0, "run", f"-N{nodes}", "--requires=rank:0-99", "hostname").split())
    assert sorted(hosts) == [f"{NAME}-{index}" for index in range(nodes)]


@pytest.mark.parametrize(("mode", "medium"), [("auto", ""), ("copy", ""), ("copy", "Memory")])
def test_a_command_runs_with_each_view_and_view_mode(release: Install, view: str, mode: str, medium: str) -> None:
    container = {**of_view(view).get("flux", {}).get("container", {}), "copyMedium": medium}
    values = {"size": 2, "tasks": 2, "flux": {"container": container}}
    cluster = release(values, {"command": "echo hello world"}, mode=mode)
    assert cluster.wait_for_end()["Complete"]
    log = cluster.log(0)
    print(log)
    assert log.splitlines().count("hello world") == 2
    assert "drained" not in log


def test_the_status_names_the_versions(release: Install, view: str, scheduler: str) -> None:
    cluster = release({"size": 2, **of_view(view)}, mode="auto")
    cluster.wait_for("0-1")
    printed = cluster.cluster.run("minicluster", "status", NAME, "-n", cluster.namespace, "-o", "json")
    found = json.loads(printed.out)
    print(found["flux"], found["scheduler"])
    version = cluster.flux(0, "getattr", "version").strip()
    assert (found["state"], found["flux"], found["problems"]) == ("Running", version, [])
    assert found["nodes"]["up"] == 2
    name = found["scheduler"]["name"]
    assert name == scheduler
    assert name == "sched-simple" or found["scheduler"]["version"] in cluster.log(0)


def test_nodes_take_jobs_again_after_a_shrink_and_a_growth(release: Install, view: str) -> None:
    cluster = release({"size": 2, "maxSize": 4, **of_view(view)}, mode="auto")
    runs(cluster, "0-1", 2)
    for size, ranks in ((4, "0-3"), (2, "0-1"), (4, "0-3")):
        cluster.upgrade("--set", f"size={size}")
        runs(cluster, ranks, size)


def test_a_kept_queue_survives_its_lead(release: Install, view: str, volume: str, tmp_path: Path) -> None:
    cluster = release({"size": 2, "state": {"claimName": "state"}, **of_view(view)}, mode="auto")
    bind(cluster, "state", volume, tmp_path / "state")
    cluster.wait_for("0-1")
    held = submit(cluster, "--urgency=hold", "-N2", "true")
    before = cluster.broker(0)
    wait_for_checkpoint(cluster)
    cluster.kill_broker(0)
    until(lambda: cluster.broker(0) not in ("", before) and cluster.up() == "0-1", STEP_SECONDS)
    cluster.flux(0, "job", "urgency", held, "16")
    assert until(lambda: ended(cluster, held), STEP_SECONDS) == "COMPLETED"
