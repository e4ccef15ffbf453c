"""`minicluster replace` on a real Kubernetes: the queue goes on with another image and a larger maxSize."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pod_jobs import QUIET, ids, submit
from real_cluster import IN_PODS, NODE_FOLDER, Install

from tools.clients import Done, until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME, bind

#: Another image that can run Flux; without it, only maxSize changes
OTHER = os.environ.get("MINICLUSTER_TEST_OTHER_IMAGE", "")
pytestmark = [IN_PODS, NODE_FOLDER, pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)]

NOTES = 'echo "$FLUX_JOB_ID" >>/shared/log'


def replace(cluster: FluxRelease, *words: str) -> Done:
    """Run `minicluster replace` to its end."""
    return cluster.cluster.run("minicluster", "replace", NAME, "-n", cluster.namespace, *words)


def results(cluster: FluxRelease) -> dict[str, str]:
    """Return state or result by job."""
    text = cluster.flux(0, "jobs", "-a", "-n", "-c", "1000", "-o", "{id};{status}").replace("ƒ", "f")
    return dict(line.split(";") for line in text.splitlines())


@pytest.fixture
def cluster(release: Install, volume: str, tmp_path: Path) -> FluxRelease:
    """A MiniCluster of two nodes with ten cores each, whose state is on a claim."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    values: dict[str, Any] = {"size": 2, **QUIET, "state": {"claimName": "state"}}
    runner = {"cores": 10, "volumes": {"shared": {"path": "/shared", "hostPath": str(tmp_path / "shared")}}}
    made = release(values, runner)
    bind(made, "state", volume, tmp_path / "state")
    made.wait_for("0-1")
    return made


def test_no_job_is_lost_and_only_the_requeued_start_again(cluster: FluxRelease, tmp_path: Path) -> None:
    ends = set(submit(cluster, "--cc=1-10", "sh", "-c", f"{NOTES}; sleep 20").split())
    holds = set(
        submit(cluster, "--cc=1-10", "sh", "-c", f"{NOTES}; until [ -e /shared/end ]; do sleep 1; done").split()
    )
    until(lambda: list(results(cluster).values()).count("RUN") == 20, STEP_SECONDS)
    waits = set(submit(cluster, "--cc=1-200", "sh", "-c", NOTES).split())
    changes = ["--set", "maxSize=4", "--set", "size=3"]
    changes += ["--set", f"containers[0].image={OTHER}"] if OTHER else []
    secret, service = (cluster.get(kind, name)["metadata"]["uid"] for kind, name in kept(cluster))
    done = replace(cluster, *changes, "--grace", "30s")
    assert done.code == 0, done.err
    copies = set(ids(" ".join(line.split()[-1] for line in done.err.splitlines() if " runs again as " in line)))
    assert len(copies) == 10, done.err
    (tmp_path / "shared" / "end").touch()
    cluster.wait_for("0-2")
    assert [cluster.get(kind, name)["metadata"]["uid"] for kind, name in kept(cluster)] == [secret, service]
    until(lambda: set(results(cluster).values()) == {"COMPLETED", "CANCELED"}, 2 * STEP_SECONDS)
    found = results(cluster)
    assert set(found) == ends | waits | holds | copies
    assert {job for job, result in found.items() if result == "CANCELED"} == holds
    starts = Counter(ids((tmp_path / "shared" / "log").read_text()))
    assert starts == dict.fromkeys(found, 1)
    pod = next(iter(cluster.live_pods().values()))
    assert not OTHER or OTHER in [container["image"] for container in pod["spec"]["containers"]]


def kept(cluster: FluxRelease) -> list[tuple[str, str]]:
    return [("secret", f"{cluster.name}-curve"), ("service", cluster.name)]


def test_an_image_that_can_not_start_is_rolled_back_with_the_queue(cluster: FluxRelease) -> None:
    cluster.flux(0, "queue", "stop")
    waits = submit(cluster, "true")
    done = replace(cluster, "--set", "containers[0].image=docker.io/local/none:1", "--timeout", "20s")
    assert done.code == 1
    last = done.err.splitlines()[-1]
    assert last.startswith(f"minicluster: {NAME} was not replaced, ")
    assert last.endswith(": it is rolled back and runs as before")
    assert results(cluster) == {waits: "SCHED"}
    cluster.flux(0, "queue", "start")
    assert until(lambda: set(results(cluster).values()) == {"COMPLETED"}, STEP_SECONDS)
