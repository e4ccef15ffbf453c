"""Upgrades on a real Kubernetes that make the Job anew (`upgrade.replace`), or change a suspended one in place."""

from pathlib import Path
from typing import Any

import pytest
from pod_jobs import QUIET, submit
from real_cluster import Install, need_image
from test_pods_replace import results

from tools.clients import until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import bind

OTHER, MARKS = need_image("MINICLUSTER_TEST_OTHER_IMAGE", "what runs Flux as well")
pytestmark = [*MARKS, pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)]
VALUES: dict[str, Any] = {
    "size": 2,
    **QUIET,
    "state": {"claimName": "state"},
    "upgrade": {"replace": True},
    "pod": {"onStop": "requeue"},
}


@pytest.fixture(params=["helm", "helm3"])
def cluster(release: Install, volume: str, tmp_path: Path, request: pytest.FixtureRequest) -> FluxRelease:
    """A MiniCluster of two nodes whose state is on a claim."""
    made = release(VALUES, {"cores": 2}, helm=request.param)
    bind(made, "state", volume, tmp_path / "state")
    made.wait_for("0-1")
    return made


def images(cluster: FluxRelease) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in cluster.live_pods().values()}


def test_queued_jobs_survive_an_upgrade_to_another_image_and_one_that_is_rolled_back(cluster: FluxRelease) -> None:
    uid = cluster.get("job")["metadata"]["uid"]
    runs = submit(cluster, "-n1", "sleep", "3600")
    waits = submit(cluster, "-n4", "true")
    until(lambda: results(cluster).get(runs) == "RUN", STEP_SECONDS)
    runner = cluster.values["containers"][0]
    cluster.upgrade("--timeout", "4m", containers=[{**runner, "image": OTHER}])
    # the hook has waited for the quorum
    assert (cluster.get("job")["metadata"]["uid"] != uid, images(cluster)) == (True, {OTHER})
    found = results(cluster)
    assert (found.pop(runs), found.pop(waits) in {"SCHED", "DEPEND"}) == ("CANCELED", True)
    assert len(found) == 1  # the copy of the job that ran
    rolls = "--atomic" if cluster.helm.name == "helm3" else "--rollback-on-failure"
    bad = [{**runner, "image": "docker.io/local/none:1"}]
    said = cluster.refuse(rolls, "--timeout", "4m", containers=bad)
    assert "post-upgrade" in said
    cluster.wait_for("0-1")
    assert images(cluster) == {OTHER}
    assert waits in results(cluster)
    for job in [job for job, state in results(cluster).items() if state == "RUN"]:
        cluster.flux(0, "cancel", job)
    assert until(lambda: results(cluster).get(waits) == "COMPLETED", STEP_SECONDS)


def test_a_suspended_minicluster_gets_other_resources_and_keeps_its_queue(cluster: FluxRelease) -> None:
    uid = cluster.get("job")["metadata"]["uid"]
    waits = submit(cluster, "--urgency=hold", "true")
    cluster.upgrade(suspend=True)
    until(lambda: not cluster.pods(), STEP_SECONDS)
    runner = {**cluster.values["containers"][0], "resources": {"requests": {"memory": "65Mi"}}}
    cluster.upgrade(containers=[runner], pod={**cluster.values["pod"], "annotations": {"example.com/a": "b"}})
    cluster.upgrade(suspend=False)
    cluster.wait_for("0-1")
    assert cluster.get("job")["metadata"]["uid"] == uid
    for pod in cluster.live_pods().values():
        assert pod["spec"]["containers"][0]["resources"]["requests"]["memory"] == "65Mi"
        assert pod["metadata"]["annotations"]["example.com/a"] == "b"
    assert results(cluster)[waits] == "SCHED"
