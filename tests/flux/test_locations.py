"""Jobs choose nodes by where their pods run, as real brokers tell it."""

import json
from typing import Any

import pytest
from broker_clusters import Cluster, Make
from broker_pods import NAME

from tools.clients import until

VALUES: dict[str, Any] = {"size": 3, "maxSize": 4, "flux": {"locations": True}, "logging": {"quiet": True}}
ZONES = ("eu-1a", "eu-1b", "eu-1a", "eu-1b")


def place(zones: tuple[str, ...]) -> str:
    """Return a snippet that sets what Kubernetes tells a pod: two pods on a Kubernetes node, each in its zone."""
    cases = [
        f"{index}) MINICLUSTER_NODE=node-{index // 2}.example MINICLUSTER_ZONE={zone} ;;"
        for index, zone in enumerate(zones)
    ]
    return f"case $JOB_COMPLETION_INDEX in {' '.join(cases)} esac; MINICLUSTER_REGION=${{MINICLUSTER_ZONE%-*}}\n"


@pytest.fixture
def cluster(make: Make) -> Cluster:
    found = make(VALUES, {"cores": 2, "commands": {"init": place(ZONES)}})
    return found.start().wait_for_ready()


def ran_on(cluster: Cluster, requires: str, *words: str) -> list[str]:
    """Return the hosts on which a job runs."""
    names = cluster.lead.flux("run", f"--requires={requires}", *words, "sh", "-c", "flux getattr hostname")
    return sorted(name.removeprefix(f"{NAME}-") for name in names.split())


def refusal(cluster: Cluster, *words: str) -> str:
    """Return why Flux refuses a job."""
    done = cluster.lead.run("/mnt/flux/bin/flux", "submit", *words, "true")
    assert done.returncode
    return done.stderr.strip()


def test_a_job_runs_where_it_wants(cluster: Cluster) -> None:
    assert ran_on(cluster, "zone=eu-1a", "-N2") == ["0", "2"]
    assert ran_on(cluster, "zone=eu-1b", "-N1") == ["1"]
    assert ran_on(cluster, "^zone=eu-1a", "-N1") == ["1"]
    assert ran_on(cluster, "-zone=eu-1a", "-N1") == ["1"]
    assert ran_on(cluster, "node=node-0.example", "-N2") == ["0", "1"]
    assert ran_on(cluster, "node=node-0.example zone=eu-1a", "-N1") == ["0"]
    assert ran_on(cluster, "region=eu", "-N3") == ["0", "1", "2"]
    assert ran_on(cluster, "zone=eu-1b|node=node-1.example", "-N2") == ["1", "2"]


def test_a_job_that_can_not_run_there_is_refused(cluster: Cluster) -> None:
    known = "no node is there now: give one of"
    assert f"zone=eu-1c: {known} eu-1a (2), eu-1b (1)" in refusal(cluster, "--requires=zone=eu-1c")
    assert f"node=x: {known} node-0.example (2), node-1.example (1)" in refusal(cluster, "--requires=node=x")
    assert "atisfiable" in refusal(cluster, "-N2", "--requires=zone=eu-1b")


def test_a_node_that_joins_later_is_for_later_jobs(cluster: Cluster) -> None:
    flux = cluster.lead.flux
    held = flux("submit", "--urgency=hold", "-N1", "--requires=zone=eu-1b", "true").strip()
    cluster.start([3])
    until(lambda: cluster.up() == "0-3")
    assert ran_on(cluster, "zone=eu-1b", "-N2") == ["1", "3"]
    jobspec = json.loads(flux("job", "info", held, "jobspec"))
    assert jobspec["attributes"]["system"]["constraints"] == {"ranks": ["1"]}
    flux("job", "urgency", held, "default")
    flux("job", "wait-event", held, "clean")
    assert flux("jobs", "-no", "{status_abbrev} {nodelist}", held).split() == ["CD", f"{NAME}-1"]


def test_a_job_does_not_run_where_its_node_has_moved(cluster: Cluster) -> None:
    flux = cluster.lead.flux
    words = ("-N2", "--requires=zone=eu-1a")
    here, there, anywhere = (
        flux("submit", "--urgency=hold", "-N1", f"--requires={each}", "true").strip()
        for each in ("zone=eu-1a rank:2", "^zone=eu-1b rank:2", "rank:2")
    )
    cluster.data["minicluster"]["init.sh"] = place(("eu-1a", "eu-1b", "eu-1b"))
    cluster.pods[2].kill()
    until(lambda: cluster.up() == "0-1")
    cluster.start([2])
    until(lambda: cluster.up() == "0-2")
    for job in (here, there, anywhere):
        flux("job", "urgency", job, "default")
        flux("job", "wait-event", job, "clean")
    now = "node=node-1.example zone=eu-1b region=eu"
    for job in (here, there):
        moved = f"since the job was submitted, this node has moved ({now}): submit the job again"
        assert moved in flux("job", "eventlog", job)
    assert flux("jobs", "-ano", "{status_abbrev}").split() == ["CD", "F", "F"]
    assert "atisfiable" in refusal(cluster, *words)
    assert ran_on(cluster, "zone=eu-1b", "-N2") == ["1", "2"]
