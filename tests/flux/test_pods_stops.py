"""Pods that are told to stop at any instant of their first seconds: no Job fails, no work is lost."""

import json
import os
import time

import pytest
from real_cluster import IN_PODS, Install

from tools.clients import until
from tools.releases import STEP_SECONDS, FluxRelease, is_live

pytestmark = [IN_PODS, pytest.mark.parametrize("mode", ["image", "copy"])]
#: How many pods, or groups of pods, each test stops
STOPS = int(os.environ.get("MINICLUSTER_TEST_STOPS", "6"))
#: Seconds between the instants; 41 of them are two seconds
STEP = 0.05 if STOPS > 20 else 0.25


def resize(cluster: FluxRelease, size: int) -> None:
    """Change the size as the Job's controller sees it, without Helm's time."""
    patch = json.dumps({"spec": {"completions": size, "parallelism": size}})
    cluster.kubectl("patch", "job", cluster.name, "--type=merge", f"--patch={patch}")


def test_workers_can_be_told_to_stop_at_any_instant(release: Install, mode: str) -> None:
    cluster = release({"size": 1, "maxSize": 5}, mode=mode)
    cluster.wait_for("0")
    for step in range(STOPS):
        cluster.flux(0, "submit", "--quiet", "--cc=1-8", "sleep", "0.2")
        resize(cluster, 5)
        until(lambda: len(cluster.pods()) == 5, what="the pods")
        time.sleep(step % 41 * STEP)  # no synchronisation: the instant is what varies
        resize(cluster, 1)
        until(lambda: len(cluster.pods()) == 1, STEP_SECONDS, "the end of the pods")
        assert "Failed" not in cluster.conditions(), f"step {step}: {cluster.conditions()}"
    until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{id}") == "", STEP_SECONDS, "the end of the jobs")
    results = cluster.flux(0, "jobs", "-a", "-n", "-c0", "-o", "{result}").split()
    assert results == ["COMPLETED"] * STOPS * 8


def test_a_lead_can_be_told_to_stop_at_any_instant(release: Install, mode: str) -> None:
    for step in range(STOPS):
        cluster = release({"size": 1}, {"command": "sleep 600"}, mode=mode)
        until(cluster.pods, what="the pod")
        time.sleep(step % 41 * STEP)
        [pod] = cluster.pods()
        cluster.kubectl("delete", "pod", pod["metadata"]["name"])
        assert "Failed" not in cluster.conditions(), f"step {step}: {cluster.conditions()}"
        assert not any(is_live(each) for each in cluster.pods(0) if each["metadata"]["uid"] == pod["metadata"]["uid"])
        cluster.ok("uninstall")
