"""The agent holds the pods that a real Flux gives jobs; a fake API server has its PodDisruptionBudget."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_beside import Setup, agent_beside
from broker_clusters import Make

from tools.clients import until

VALUES: dict[str, Any] = {
    "size": 3,
    "logging": {"quiet": True},
    "pod": {"disruptionBudget": True},
    "agent": {"periodSeconds": 3600},
}
#: One stream for jobs that wait, one for jobs that start
STREAMS = 2


@pytest.fixture
def mc(make: Make, tmp_path: Path) -> Iterator[Setup]:
    with agent_beside(make(VALUES), tmp_path / "agent.log", STREAMS) as setup:
        until(lambda: setup.api.held() == ["0"])
        yield setup


def test_a_pod_is_held_as_soon_as_a_job_starts_on_its_node(mc: Setup) -> None:
    begin = time.monotonic()
    job = mc.submit("-N1", "--requires=rank:2", "sleep", "inf")
    until(lambda: mc.api.held() == ["0", "2"], pause=0.002)
    print(f"held {time.monotonic() - begin:.3f} s after flux submit began")
    # a job that waited starts without another submission
    waits = mc.submit("-N3", "--exclusive", "sleep", "inf")
    until(lambda: mc.cluster.lead.flux("jobs", "-n", "-o", "{state}", waits).strip() == "SCHED")
    assert mc.api.held() == ["0", "2"]
    mc.cluster.lead.flux("cancel", job)
    until(lambda: mc.api.held() == ["0", "1", "2"])
    mc.cluster.lead.flux("cancel", waits)
    assert "Traceback" not in mc.log


def test_pods_with_new_jobs_are_held_once_the_api_server_is_back(mc: Setup) -> None:
    mc.api.away = True
    mc.submit("-N1", "--requires=rank:1", "sleep", "inf")
    until(lambda: "503 Service Unavailable" in mc.log)
    mc.api.away = False
    until(lambda: mc.api.held() == ["0", "1"])
    assert mc.log.count("503") == 1


def test_a_pod_is_let_go_within_a_period_after_its_last_job(make: Make, tmp_path: Path) -> None:
    cluster = make({**VALUES, "agent": {"periodSeconds": 1}})
    with agent_beside(cluster, tmp_path / "agent.log", STREAMS) as mc:
        job = mc.submit("-N1", "--requires=rank:2", "sleep", "inf")
        until(lambda: mc.api.held() == ["0", "2"])
        written = len(mc.api.selectors)
        asked = mc.api.asked
        # a few periods
        until(lambda: mc.api.asked > asked + 3)
        assert len(mc.api.selectors) == written, json.dumps(mc.api.selectors)
        mc.cluster.lead.flux("cancel", job)
        until(lambda: mc.api.held() == ["0"])
