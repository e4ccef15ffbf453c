"""The autoscaler, `minicluster-scale` and the metrics on a real Kubernetes."""

import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from pod_jobs import ONE_CORE, QUIET, ids, noted, runs_of, size
from real_cluster import IN_PODS, Install

from tools.clients import until
from tools.releases import MOUNT, STEP_SECONDS, FluxRelease
from tools.testbed import bind

pytestmark = IN_PODS

SCALING: dict[str, Any] = {
    "size": 1,
    "maxSize": 8,
    "autoscaling": {"enabled": True, "backlogSeconds": 3, "idleSeconds": 9},
    "agent": {"periodSeconds": 3},
    **QUIET,
}


def decisions(cluster: FluxRelease) -> list[str]:
    """Return the changes of size in the autoscaler's events, in their order."""
    events = cluster.items("events", "--field-selector=reason=Scaled")
    events.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
    return [re.match(r"size (\d+ -> \d+):", event["message"])[1] for event in events]  # type: ignore[index]


def cut_off(cluster: FluxRelease, seconds: float) -> None:
    """Cut the lead's pod off the API server for a while; skip where the pod is not on this host."""
    [uid] = [pod["metadata"]["uid"] for pod in cluster.pods(0)]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_agent = b"/minicluster/agent.json" in (process / "cmdline").read_bytes()
            # one of the cgroup drivers writes the UID with underscores
            is_lead = is_agent and uid in (process / "cgroup").read_text().replace("_", "-")
        except OSError:
            continue
        if is_lead:
            server = cluster.cluster.get("service", "kubernetes", "-n", "default")["spec"]["clusterIP"]
            route = ["nsenter", "-t", process.name, "-n", "ip", "route"]
            subprocess.run([*route, "add", "blackhole", f"{server}/32"], check=True)
            time.sleep(seconds)  # what is tested: an outage of this length
            subprocess.run([*route, "del", "blackhole", f"{server}/32"], check=True)
            return
    pytest.skip("the pods' processes are not on this host: their network can't be cut here")


@pytest.mark.parametrize("trouble", ["none", "api", "lead"])
def test_the_autoscaler_follows_the_queue_and_never_flaps(
    release: Install, volume: str, tmp_path: Path, trouble: str
) -> None:
    values = {**SCALING, "state": {"claimName": "state"}} if trouble == "lead" else SCALING
    cluster = release(values, ONE_CORE)
    if trouble == "lead":
        bind(cluster, "state", volume, tmp_path / "state")
    cluster.wait_for("0")
    script = f"{noted()}; sleep 4"
    jobs = cluster.flux(0, "submit", "--cc=1-40", "-N1", "-n1", "--exclusive", "sh", "-c", script)
    assert len(ids(jobs)) == 40
    begin = time.monotonic()
    until(lambda: size(cluster) == 8, STEP_SECONDS)
    print(f"size 8 was asked for {time.monotonic() - begin:.1f} s after the jobs, period 3 s")
    if trouble == "api":
        cut_off(cluster, 30)
    if trouble == "lead":
        cluster.wait_for("0-7")
        cluster.kill_broker(0)
    until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{id}") == "" and cluster.up() != "", 2 * STEP_SECONDS)
    until(lambda: size(cluster) == 1, 2 * STEP_SECONDS)
    cluster.wait_for("0")
    print(f"size 1 again after {time.monotonic() - begin:.1f} s")
    results = cluster.flux(0, "jobs", "-a", "-n", "--count=0", "-o", "{result}").split()
    runs = runs_of(cluster)
    if trouble == "lead":
        # jobs that ran when the lead was killed have failed after one start; the others have completed
        assert len(results) == 40
        assert len(set(runs)) == len(runs)
        assert results.count("FAILED") <= 8
    else:
        assert results == ["COMPLETED"] * 40
        assert runs == ids(jobs)
    sizes = [int(change.split()[-1]) for change in decisions(cluster)]
    top = sizes.index(8)
    assert sizes[: top + 1] == sorted(sizes[: top + 1])
    assert sizes[top:] == sorted(sizes[top:], reverse=True)
    assert sizes[-1] == 1


def test_a_job_can_request_a_size_by_minicluster_scale(release: Install) -> None:
    cluster = release(SCALING, ONE_CORE)
    cluster.wait_for("0")
    scale = f"{MOUNT}/bin/minicluster-scale"
    assert cluster.exec(0, scale) == "auto\n"
    cluster.flux(0, "run", "sh", "-c", "minicluster-scale 3")
    assert cluster.exec(0, scale) == "3\n"
    cluster.wait_for("0-2")
    said = cluster.run_in(cluster.pod(0), scale, "9")
    assert (said.code != 0, said.err.splitlines()[0]) == (
        True,
        "minicluster-scale: the size is '9': give a number from 1 to 8, or auto",
    )
    cluster.exec(2, scale, "auto")
    cluster.wait_for("0")


def test_metrics_are_served_beside_the_lead(release: Install) -> None:
    cluster = release({"size": 2, **QUIET, "metrics": {"enabled": True}, "agent": {"periodSeconds": 1}}, ONE_CORE)
    cluster.wait_for("0-1")
    ask = "import urllib.request as u; print(u.urlopen('http://localhost:8051/metrics').read().decode())"
    text = until(lambda: cluster.flux(0, "python", "-c", ask), STEP_SECONDS)
    until(lambda: 'minicluster_nodes{state="online"} 2\n' in cluster.flux(0, "python", "-c", ask), STEP_SECONDS)
    assert "minicluster_size 2\n" in text
