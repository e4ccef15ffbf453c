"""A live MiniCluster of an older version on a real Kubernetes: it becomes one of this version, and goes back.

Clients of both versions work with it all the time, and with one that this version made.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pod_jobs import QUIET, submit
from real_cluster import IN_PODS, Install
from support import ROOT
from test_pods_replace import results
from versions import OLDER, Version, older

from tools.clients import BIN, CHART, output, run, until
from tools.releases import STEP_SECONDS, FluxRelease, is_live
from tools.testbed import NAME, bind, new_namespace

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
TWO_CORES = {"cores": 2}
#: A commit between 0.1.0 and 0.2.0
MIDWAY = "f6fb83b4"
JOINED: dict[str, Any] = {
    **VALUES,
    "groups": [{"name": "more", "size": 1, "cores": 2}],
    "autoscaling": {"enabled": True, "min": 2, "idleSeconds": 3600},
    "flux": {"bursting": {"clusters": [{"name": "b0", "size": 1}], "expose": {"type": "NodePort"}}},
}


@pytest.fixture(params=OLDER, ids=lambda path: path.name.partition(".t")[0])
def version(request: pytest.FixtureRequest, tmp_path: Path) -> Version:
    return older(request.param, tmp_path / "older")


@pytest.mark.parametrize("by", ["helm", "helm3"])
def test_a_live_cluster_is_upgraded_and_rolled_back_and_nothing_starts_again(
    release: Install, version: Version, volume: str, tmp_path: Path, by: str
) -> None:
    cluster = release(VALUES, TWO_CORES, helm=by, version=version)
    bind(cluster, "state", volume, tmp_path / "state")
    cluster.wait_for("0-1")
    both = ("minicluster", version.root / "bin" / "minicluster")
    serve(cluster, both)
    runs, waits = submit(cluster, "-n1", "sleep", "3600"), submit(cluster, "--urgency=hold", "true")
    until(lambda: results(cluster).get(runs) == "RUN", STEP_SECONDS)
    uids, old_helm = pods(cluster), cluster.helm
    become_new(cluster)
    cluster.upgrade()
    assert pods(cluster) == uids
    assert {job: results(cluster)[job] for job in (runs, waits)} == {runs: "RUN", waits: "SCHED"}
    # an upgrade that the older pods know nothing of, and back to the older version
    cluster.upgrade(size=3)
    more = submit(cluster, "-N3", "-n3", "true")
    until(lambda: results(cluster).get(more) == "COMPLETED", 2 * STEP_SECONDS)
    serve(cluster, both)
    cluster.helm = old_helm
    cluster.ok("rollback", "1")
    assert pods(cluster).items() >= uids.items()
    assert results(cluster)[runs] == "RUN"
    cluster.flux(0, "job", "urgency", waits, "16")
    until(lambda: results(cluster).get(waits) == "COMPLETED", STEP_SECONDS)


def test_a_sleeping_cluster_is_upgraded_and_wakes_with_its_queue(
    release: Install, version: Version, volume: str, tmp_path: Path
) -> None:
    cluster = release(VALUES, TWO_CORES, version=version)
    bind(cluster, "state", volume, tmp_path / "state")
    cluster.wait_for("0-1")
    waits = submit(cluster, "--urgency=hold", "true")
    cluster.upgrade(suspend=True)
    until(lambda: not pods(cluster), 2 * STEP_SECONDS, "the end of the pods")
    become_new(cluster)
    cluster.upgrade(suspend=True)
    assert not pods(cluster)
    cluster.upgrade(suspend=False)
    cluster.wait_for("0-1", 2 * STEP_SECONDS)
    cluster.flux(0, "job", "urgency", waits, "16")
    until(lambda: results(cluster).get(waits) == "COMPLETED", STEP_SECONDS)


def test_an_older_client_serves_a_cluster_of_this_version(release: Install, version: Version) -> None:
    old = version.root / "bin" / "minicluster"
    groups = [{"name": "more", "size": 1, "cores": 1}]  # of which it knows nothing
    cluster = release({**QUIET, "size": 2, "maxSize": 3, "groups": groups}, TWO_CORES)
    cluster.wait_for("0-1,3")
    serve(cluster, ["minicluster", old])
    # what renders needs the version of the chart: it names the values that it doesn't know, and nothing changes
    refused = cluster.cluster.run(old, "scale", NAME, "3", "-n", cluster.namespace)
    assert (refused.code, "additional properties" in refused.err, cluster.up()) == (1, True, "0-1,3")


@pytest.fixture
def midway(tmp_path: Path) -> Version:
    """Return an unreleased version with groups, which 0.1.0 has not."""
    archive = tmp_path / "midway.tar"
    words = ("git", "-C", ROOT, "archive", f"--output={archive}", MIDWAY, "charts/minicluster", "plugin")
    if why := run(*words).err:
        pytest.skip(f"a clone without its history: {why.strip()}")
    return older(archive, tmp_path / "midway")


@pytest.mark.parametrize("by", ["helm", "helm3"])
def test_a_cluster_with_a_group_an_agent_and_a_burst_is_upgraded_and_rolled_back(
    release: Install, midway: Version, volume: str, tmp_path: Path, by: str
) -> None:
    cluster = release(JOINED, TWO_CORES, helm=by, version=midway)
    bind(cluster, "state", volume, tmp_path / "state")
    cluster.wait_for("0-1,3")
    with new_namespace(world=cluster.world) as namespace:
        burst = replace(cluster, namespace=namespace, name="b0", values={})

        def client(*words: str) -> None:
            (tmp_path / "clients").mkdir(exist_ok=True)
            (tmp_path / "clients" / "helm").unlink(missing_ok=True)
            (tmp_path / "clients" / "helm").symlink_to(BIN / by)
            env = cluster.helm.environment
            env = {**env, "PATH": f"{tmp_path / 'clients'}:{env['PATH']}"}
            where = (NAME, "b0", "--root-namespace", cluster.namespace, "-n", namespace, "--timeout", "2m")
            output("minicluster", "burst", *words, *where, env=env, seconds=2 * STEP_SECONDS)

        client("install")
        cluster.wait_for("0-1,3-4")
        jobs = {rank: submit(cluster, f"--requires=rank:{rank}", "-n1", "sleep", "3600") for rank in "0134"}
        until(lambda: set(results(cluster).values()) == {"RUN"}, STEP_SECONDS)
        before = {one.namespace: pods(one) for one in (cluster, burst)}
        old_helm, brokers = cluster.helm, [cluster.broker(index) for index in (0, 1)]

        def nothing_began_anew() -> None:
            assert {one.namespace: pods(one) for one in (cluster, burst)} == before
            assert [cluster.broker(index) for index in (0, 1)] == brokers
            assert {job: state for job, state in results(cluster).items() if state == "RUN"} == dict.fromkeys(
                jobs.values(), "RUN"
            )
            job = submit(cluster, "-N4", "-n4", "true")
            until(lambda: results(cluster).get(job) == "COMPLETED", 2 * STEP_SECONDS)

        nothing_began_anew()
        become_new(cluster)
        cluster.upgrade()
        client("install")
        nothing_began_anew()
        cluster.helm = burst.helm = old_helm
        burst.ok("rollback", "1")
        cluster.ok("rollback", "1")
        nothing_began_anew()
        burst.uninstall()


def become_new(cluster: FluxRelease) -> None:
    """Take this version's chart and post-renderer."""
    own = {name: text for name, text in cluster.helm.env.items() if name not in {"PATH", "HELM_PLUGINS"}}
    cluster.helm, cluster.chart = replace(cluster.helm, env=own), CHART


def serve(cluster: FluxRelease, clients: Iterable[str | Path]) -> None:
    """Check that the commands of these clients work."""
    for client in clients:
        where = (NAME, "-n", cluster.namespace)
        assert json.loads(cluster.cluster.output(client, "status", *where, "-o", "json"))["state"] == "Running"
        assert cluster.cluster.output(client, "flux", *where, "--", "run", "-N2", "echo", "it runs") == "it runs\n" * 2


def pods(cluster: FluxRelease) -> dict[str, str]:
    """Return the pods that don't end, by host name."""
    every = [pod for pod in cluster.items("pods") if is_live(pod) and "hostname" in pod["spec"]]
    return {pod["spec"]["hostname"]: pod["metadata"]["uid"] for pod in every}
