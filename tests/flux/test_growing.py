"""The agent adds nodes for the jobs of a real Flux; a fake API server has its Job, which starts pods."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_beside import Setup, agent_beside
from broker_clusters import Make

from tools.clients import until
from tools.releases import MOUNT

VALUES: dict[str, Any] = {
    "size": 1,
    "maxSize": 3,
    "logging": {"quiet": True},
    "autoscaling": {"enabled": True},
    "agent": {"periodSeconds": 3600},
}


@pytest.fixture
def mc(make: Make, tmp_path: Path) -> Iterator[Setup]:
    with agent_beside(make(VALUES), tmp_path / "agent.log") as setup:
        until(lambda: "nothing to do" in setup.log)
        yield setup


def test_the_agent_adds_nodes_for_a_job_that_needs_them(mc: Setup) -> None:
    asked = mc.api.asked
    assert mc.ends(mc.submit("-N1", "true")) == "COMPLETED"
    # a look without a request to Kubernetes
    assert mc.api.asked == asked
    assert mc.ends(mc.submit("-N3", "true")) == "COMPLETED"
    assert mc.api.sizes == [1, 3]
    assert mc.api.events == ["size 1 -> 3: 1 job waits for nodes"]
    # read again, changed, reported
    assert mc.api.asked == asked + 3
    assert "Traceback" not in mc.log


def test_the_agent_sets_a_size_requested_by_minicluster_scale(mc: Setup) -> None:
    mc.cluster.lead.run(f"{MOUNT}/bin/minicluster-scale", "2")
    until(lambda: mc.cluster.up() == "0-1")
    assert mc.api.events == ["size 1 -> 2: 2 nodes were requested"]


def test_the_agent_goes_on_after_the_scheduler_is_reloaded(mc: Setup) -> None:
    loaded = mc.cluster.lead.flux("module", "list")
    scheduler = next(name for name in ("sched-simple", "sched-fluxion-qmanager") if name in loaded)
    mc.cluster.lead.flux("module", "reload", scheduler)
    assert mc.ends(mc.submit("-N2", "true")) == "COMPLETED"
    assert mc.agent.poll() is None


def test_the_agent_adds_nodes_once_the_api_server_is_back(mc: Setup) -> None:
    mc.api.away = True
    job = mc.submit("-N2", "true")
    until(lambda: "503 Service Unavailable" in mc.log)
    mc.api.away = False
    assert mc.ends(job) == "COMPLETED"
    assert mc.log.count("503") == 1
