"""A live MiniCluster of an older version on a real Kubernetes: it becomes one of this version, and goes back."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pod_jobs import QUIET, submit
from real_cluster import IN_PODS, Install
from test_pods_replace import results
from versions import OLDER, Version, older

from tools.clients import CHART, until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import bind

pytestmark = [
    IN_PODS,
    pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True),
    pytest.mark.without("labels", "limits", "quota", "security", why="0.1.0 knows less of them"),
]
VALUES: dict[str, Any] = {
    "size": 2,
    "maxSize": 3,
    **QUIET,
    "state": {"claimName": "state"},
    # an agent
    "metrics": {"enabled": True},
}


@pytest.fixture(params=OLDER, ids=lambda path: path.name.partition(".t")[0])
def version(request: pytest.FixtureRequest, tmp_path: Path) -> Version:
    return older(request.param, tmp_path / "older")


@pytest.mark.parametrize("by", ["helm", "helm3"])
def test_a_live_cluster_is_upgraded_and_rolled_back_and_nothing_starts_again(
    release: Install, version: Version, volume: str, tmp_path: Path, by: str
) -> None:
    cluster = release(VALUES, {"cores": 2}, helm=by, version=version)
    bind(cluster, "state", volume, tmp_path / "state")
    cluster.wait_for("0-1")
    runs, waits = submit(cluster, "-n1", "sleep", "3600"), submit(cluster, "--urgency=hold", "true")
    until(lambda: results(cluster).get(runs) == "RUN", STEP_SECONDS)
    uids, old_helm = pods(cluster), cluster.helm
    # this version's chart and post-renderer
    own = {name: text for name, text in old_helm.env.items() if name not in {"PATH", "HELM_PLUGINS"}}
    cluster.helm, cluster.chart = replace(old_helm, env=own), CHART
    cluster.upgrade()
    assert pods(cluster) == uids
    assert {job: results(cluster)[job] for job in (runs, waits)} == {runs: "RUN", waits: "SCHED"}
    # an upgrade that the older pods know nothing of, and back to the older version
    cluster.upgrade(size=3)
    more = submit(cluster, "-N3", "-n3", "true")
    until(lambda: results(cluster).get(more) == "COMPLETED", 2 * STEP_SECONDS)
    cluster.helm = old_helm
    cluster.ok("rollback", "1")
    assert {index: uid for index, uid in pods(cluster).items() if index in uids} == uids
    assert results(cluster)[runs] == "RUN"
    cluster.flux(0, "job", "urgency", waits, "16")
    until(lambda: results(cluster).get(waits) == "COMPLETED", STEP_SECONDS)


def pods(cluster: FluxRelease) -> dict[int, str]:
    return {index: pod["metadata"]["uid"] for index, pod in cluster.live_pods().items()}
