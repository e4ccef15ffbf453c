"""Scale to zero on a real Kubernetes: an idle cluster is suspended, and a command wakes it."""

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pod_jobs import ONE_CORE, QUIET, ended, size, submit
from real_cluster import IN_PODS, Install

from tools.clients import Done, until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME, bind

pytestmark = IN_PODS

SECONDS = 12
SLEEPS: dict[str, Any] = {
    "size": 1,
    "maxSize": 3,
    "autoscaling": {"enabled": True, "suspendAfterSeconds": SECONDS, "idleSeconds": 60, "backlogSeconds": 0},
    "state": {"claimName": "state"},
    **QUIET,
}
WHY = f"idle for {SECONDS} s"


@pytest.fixture
def cluster(release: Install, volume: str, tmp_path: Path) -> FluxRelease:
    found = release(SLEEPS, ONE_CORE)
    bind(found, "state", volume, tmp_path / "state")
    assert run(found, "wait").code == 0
    return found


def words(cluster: FluxRelease, command: str, *rest: str) -> list[str]:
    return ["minicluster", command, NAME, "-n", cluster.namespace, *rest]


def run(cluster: FluxRelease, command: str, *rest: str) -> Done:
    return cluster.cluster.run(*words(cluster, command, *rest))


def is_suspended(cluster: FluxRelease) -> bool:
    return bool(cluster.get("job")["spec"].get("suspend"))


def falls_asleep(cluster: FluxRelease) -> None:
    until(lambda: is_suspended(cluster), SECONDS + STEP_SECONDS, "the suspension")


def sleeps(cluster: FluxRelease) -> None:
    falls_asleep(cluster)
    until(lambda: not cluster.pods(), STEP_SECONDS, "the end of the pods")


def test_an_idle_cluster_is_suspended_and_a_command_wakes_it(cluster: FluxRelease) -> None:
    first = submit(cluster, "echo", "first")
    # a cluster that is larger than its smallest size is suspended too, and wakes with its smallest size
    grown = run(cluster, "scale", "2", "--wait")
    assert (grown.code, cluster.up()) == (0, "0-1"), grown.err
    assert run(cluster, "scale", "auto").code == 0
    sleeps(cluster)
    assert size(cluster) == 1
    # on a busy machine it may have slept before it grew
    told = {event["message"] for event in cluster.items("events", "--field-selector=reason=Idle")}
    assert told == {f"suspended: {WHY}"}
    shown = json.loads(run(cluster, "status", "-o", "json").out)
    where = f"-n {cluster.namespace}"
    way = f"`minicluster flux {NAME} {where} -- COMMAND` or `minicluster scale {NAME} SIZE {where}` wakes it"
    assert (shown["state"], shown["why"]) == ("Suspended", f"{WHY}: {way}")
    # neither status nor list nor an upgrade wakes it
    assert "Suspended" in cluster.cluster.run("minicluster", "list", "-n", cluster.namespace).out
    cluster.upgrade(deadlineSeconds=100000)
    assert (is_suspended(cluster), cluster.pods()) == (True, [])

    woken = run(cluster, "flux", "--", "run", "echo", "second")
    assert (woken.code, woken.out) == (0, "second\n"), woken.err
    assert f"minicluster: {NAME} is suspended, {WHY}: waking it" in woken.err.splitlines()
    assert ended(cluster, first) == "COMPLETED"
    job = cluster.get("job")
    assert "minicluster/suspended" not in job["metadata"]["annotations"]
    assert cluster.flux(0, "jobs", "-an", "-o", "{result}").split() == ["COMPLETED"] * 2

    sleeps(cluster)
    asked = run(cluster, "scale", "2", "--wait")
    assert (asked.code, cluster.up(), size(cluster)) == (0, "0-1", 2), asked.err


def test_an_instance_wakes_a_cluster_that_sleeps_which_grows_for_it(cluster: FluxRelease) -> None:
    sleeps(cluster)
    line = ("minicluster", "run", "--namespace", cluster.namespace, "--in", NAME, "-N2", "--", "hostname")
    done = cluster.cluster.run(*line)
    assert (done.code, sorted(done.out.splitlines())) == (0, [f"{NAME}-0", f"{NAME}-1"])
    assert f"minicluster: {NAME} is suspended, {WHY}: waking it" in done.err.splitlines()


def test_a_job_that_waits_in_a_suspended_cluster_runs_when_it_wakes(cluster: FluxRelease) -> None:
    held = submit(cluster, "--urgency=hold", "true")
    # by hand, because a cluster with a held job is not idle
    patch(cluster, {"spec": {"suspend": True}})
    until(lambda: not cluster.pods(), STEP_SECONDS, "the end of the pods")
    patch(cluster, {"metadata": {"annotations": {"minicluster/suspended": WHY}}})
    assert run(cluster, "flux", "--", "job", "urgency", held, "16").code == 0
    until(lambda: ended(cluster, held) == "COMPLETED", STEP_SECONDS, "the end of the job")


def patch(cluster: FluxRelease, change: Any) -> None:
    cluster.kubectl("patch", "job", NAME, "--type=merge", f"--patch={json.dumps(change)}")


def test_two_commands_wake_a_cluster_while_its_pods_end(cluster: FluxRelease) -> None:
    falls_asleep(cluster)
    assert cluster.pods()
    command = words(cluster, "flux", "--", "run", "hostname")
    with ExitStack() as stack:
        both = [stack.enter_context(start(cluster, command)) for _ in range(2)]
        assert [process.communicate(timeout=2 * STEP_SECONDS)[0] for process in both] == [f"{NAME}-0\n"] * 2
    assert [process.returncode for process in both] == [0, 0]


def start(cluster: FluxRelease, command: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=cluster.cluster.env, text=True, stdout=pipe, stderr=pipe)


def test_a_job_submitted_while_the_pods_end_wakes_the_cluster(cluster: FluxRelease) -> None:
    lead = cluster.pod(0)
    falls_asleep(cluster)
    done = cluster.run_in(lead, "/mnt/flux/bin/flux", "submit", "true")
    if done.code:
        pytest.skip("the lead had ended before a job could be submitted")
    until(lambda: ended(cluster, done.out.strip()) == "COMPLETED", STEP_SECONDS, "the end of the job")
