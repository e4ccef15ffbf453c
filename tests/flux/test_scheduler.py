"""Which scheduler runs, how it treats nodes that are not up, and what a killed lead leaves in it."""

import json
import os
import random
import re
import signal
from collections import Counter
from typing import Any

import pytest
from broker_clusters import Cluster, Make
from broker_pods import NAME, Flux
from minicluster.lead.ask import QUESTION
from minicluster.lead.program import BOOT, first_line

from tools.clients import until
from tools.releases import MOUNT

QUIET = {"logging": {"quiet": True}}
#: How often the lead is killed
KILLS = int(os.environ.get("MINICLUSTER_TEST_KILLS", "3"))


def summary(cluster: Cluster) -> dict[str, Any]:
    """Return what the lead answers to `minicluster status`."""
    found: dict[str, Any] = json.loads(cluster.lead.flux("python", f"{MOUNT}/minicluster/state.py"))
    return found


def ranks(cluster: Cluster, job: str) -> str:
    """Return the ranks of a job."""
    return cluster.lead.flux("jobs", "-n", "-o", "{ranks}", job).strip()


def state(cluster: Cluster, job: str) -> str:
    """Return the result of a job, or its state while it has none."""
    return cluster.lead.flux("jobs", "-n", "-o", "{status}", job).strip()


def test_the_chosen_scheduler_runs(make: Make, flux: Flux) -> None:
    cluster = make({"size": 1}).start().wait_for_ready()
    found = summary(cluster)["scheduler"]
    version = found.pop("version", "")
    expected = {"name": "sched-simple"}
    if flux.scheduler == "Fluxion":
        expected = {"name": "Fluxion", "queuePolicy": "conservative", "matchPolicy": "lonode"}
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert (found, bool(version)) == (expected, flux.scheduler == "Fluxion")
    assert f"minicluster: scheduler: {flux.scheduler} {version}".rstrip() + "\n" in cluster.lead.log
    # also in an instance that is a job
    words = ("run", "flux", "start", "flux", "python", f"{MOUNT}/minicluster/state.py")
    assert json.loads(cluster.lead.flux(*words))["scheduler"]["name"] == flux.scheduler


def test_fluxion_gets_the_policies_of_the_values(make: Make, flux: Flux) -> None:
    if flux.scheduler != "Fluxion":
        pytest.skip("sched-simple has no policies")
    policies = {"queuePolicy": "hybrid", "matchPolicy": "policy=high node_centric=true"}
    cluster = make({"size": 1, **QUIET, "flux": {"scheduler": policies}}).start().wait_for_ready()
    found = summary(cluster)["scheduler"]
    minor = int(found["version"].split(".")[1])
    # before, it has only policies with names
    taken = policies if minor >= 42 else {**policies, "matchPolicy": "first"}
    assert found.items() >= {"name": "Fluxion", **taken}.items()
    # Fluxion's own command is found, where it has one
    if minor < 34:
        return
    assert taken["matchPolicy"] in cluster.lead.flux("ion-resource", "params")


def test_a_policy_of_fluxion_without_fluxion_is_an_error(make: Make, flux: Flux) -> None:
    if flux.has_fluxion:
        pytest.skip("this Flux has Fluxion")
    cluster = make({**QUIET, "flux": {"scheduler": {"queuePolicy": "easy"}}}, {"command": "echo never"})
    assert cluster.run() == [1]
    missing = (
        "flux.scheduler.queuePolicy easy is set and this Flux has no Fluxion: drop it, or use a view with flux-sched"
    )
    assert cluster.lead.log == f"minicluster: {missing}\nminicluster: the job failed with exit code 1\n"


def test_a_job_that_can_never_run_is_refused_at_submission(make: Make) -> None:
    cluster = make({"size": 1, "maxSize": 3, **QUIET}, {"cores": 2}).start([0]).wait_for_ready()
    never = {
        ("-N4",): "it asks for 4 nodes of 1 core, and all nodes have room for 3",
        ("-n1", "-c3"): "it asks for 1 slot of 3 cores, and no node has more than 2 cores",
        ("-n7",): "it asks for 7 slots of 1 core, and all nodes have room for 6",
        ("-n1", "-g1"): "it asks for 1 slot of 1 core and 1 GPU, and no node has a GPU",
        ("-n1", "--requires=nosuch"): "it asks for 1 slot of 1 core with nosuch, and no node has that: no node has a "
        "property",
        ("-N2", f"--requires=host:{NAME}-1"): f"it asks for 2 nodes of 1 core with host {NAME}-1, and all nodes of "
        "those have room for 1",
    }
    for words, why in never.items():
        done = cluster.lead.run(f"{MOUNT}/bin/flux", "submit", *words, "true")
        if "type 'gpu'" in done.stderr:  # sched-simple of an older Flux knows no GPUs
            continue
        assert (done.returncode, done.stderr.rstrip().endswith(f": {why}")) == (1, True), (words, done)
        assert "nsatisfiable" in done.stderr or "--requires" in words[-1]
    assert cluster.lead.flux("jobs", "-n", "-a") == ""
    jobs = [cluster.lead.flux("submit", *words, "true").strip() for words in (["-N3"], ["-n6"])]
    cluster.start([1, 2])
    until(lambda: [state(cluster, job) for job in jobs] == ["COMPLETED"] * 2)


def test_a_job_that_waits_says_for_which_nodes(make: Make) -> None:
    cluster = make({"size": 1, "maxSize": 3, **QUIET}, {"cores": 1}).start([0]).wait_for_ready()
    for words in (["--requires=rank:1"], ["-N2"], [f"--requires=host:{NAME}-[0-1]", "-N2"]):
        cluster.lead.flux("submit", *words, "sleep", "600")
    done = cluster.lead.run("sh", "-c", f'printf %s "$1" | sh -c \'{QUESTION}\' "$0"', BOOT, first_line("waiting"))
    assert done.returncode == 0, done
    _, found = json.loads(done.stdout)
    reasons = [reason["reason"].partition(" (")[0] for reason in found["waiting"]]
    assert sorted(reasons) == [
        "waits for nodes: it asks for 1 slot of 1 core with rank 1, and 0 are up",
        f"waits for nodes: it asks for 2 nodes of 1 core with host {NAME}-[0-1], and 1 is up",
        "waits for nodes: it asks for 2 nodes of 1 core, and 1 is up",
    ]


@pytest.mark.parametrize("policy", ["", "hybrid"])
def test_a_job_waits_for_nodes_that_are_not_up(make: Make, flux: Flux, policy: str) -> None:
    if policy and flux.scheduler != "Fluxion":
        pytest.skip("sched-simple has no policies")
    values: dict[str, Any] = {"size": 2, "maxSize": 3, "minSize": 1, **QUIET}
    if policy:
        values["flux"] = {"scheduler": {"queuePolicy": policy}}
    cluster = make(values, {"cores": 1}).start([0])
    cluster.lead.wait_for_ready()
    waiting = [cluster.lead.flux("submit", f"-N{nodes}", "true").strip() for nodes in (2, 3)]
    if flux.scheduler == "Fluxion":
        # the small job overtakes the waiting ones; with sched-simple it would wait behind them
        cluster.lead.flux("run", "-N1", "true")
    assert [state(cluster, job) for job in waiting] == ["SCHED", "SCHED"]
    cluster.start([1])
    until(lambda: state(cluster, waiting[0]) == "COMPLETED")
    cluster.lead.flux("resource", "drain", "1", "by hand")
    cluster.start([2])
    until(lambda: cluster.up() == "0,2")
    assert state(cluster, waiting[1]) == "SCHED"
    cluster.lead.flux("resource", "undrain", "1")
    until(lambda: state(cluster, waiting[1]) == "COMPLETED")


@pytest.mark.parametrize("policy", ["", "hybrid"])
def test_a_job_behind_a_reservation_waits_for_nodes_that_are_not_up(make: Make, flux: Flux, policy: str) -> None:
    if policy and flux.scheduler != "Fluxion":
        pytest.skip("sched-simple has no policies")
    values: dict[str, Any] = {"size": 2, "maxSize": 3, "minSize": 1, **QUIET}
    if policy:
        values["flux"] = {"scheduler": {"queuePolicy": policy}}
    cluster = make(values, {"cores": 1}).start([0, 1]).wait_for_ready()
    # the limit gives Fluxion a time at which the second job could start
    running = cluster.lead.flux("submit", "-N2", "-t", "1h", "sleep", "inf").strip()
    cluster.lead.flux("job", "wait-event", running, "start")
    waiting = [cluster.lead.flux("submit", f"-N{nodes}", "-t", "1h", "true").strip() for nodes in (2, 3)]
    # the scheduler has looked at both once this one waits too
    last = cluster.lead.flux("submit", "-N1", "true").strip()
    until(lambda: state(cluster, last) == "SCHED")
    cluster.lead.flux("resource", "drain", "1", "by hand")
    cluster.lead.flux("resource", "undrain", "1")
    assert [state(cluster, job) for job in waiting] == ["SCHED", "SCHED"]
    cluster.start([2])
    cluster.lead.flux("cancel", running)
    until(lambda: [state(cluster, job) for job in waiting] == ["COMPLETED", "COMPLETED"])


def test_jobs_are_placed_on_the_lowest_nodes_first(make: Make) -> None:
    cluster = make({"size": 3, **QUIET}, {"cores": 2}).start().wait_for_ready()
    jobs = [cluster.lead.flux("submit", "-n1", "sleep", "inf").strip() for _ in range(6)]
    for job in jobs:
        cluster.lead.flux("job", "wait-event", job, "start")
    assert sorted(ranks(cluster, job) for job in jobs[:2]) in (["0", "0"], ["0", "1"])
    assert Counter(ranks(cluster, job) for job in jobs) == {"0": 2, "1": 2, "2": 2}
    cluster.lead.flux("cancel", *jobs)
    # one after the other, as jobs arrive
    for _ in range(3):
        job = cluster.lead.flux("submit", "-n1", "true").strip()
        cluster.lead.flux("job", "wait-event", job, "clean")
        assert ranks(cluster, job) == "0"


@pytest.mark.parametrize("policy", ["", "hybrid"])
def test_a_killed_lead_loses_no_core_and_no_waiting_job(make: Make, flux: Flux, policy: str) -> None:
    if policy and flux.scheduler != "Fluxion":
        pytest.skip("sched-simple has no policies")
    chosen = {"flux": {"scheduler": {"queuePolicy": policy}}} if policy else {}
    cluster = make({"size": 3, **QUIET, "state": {"claimName": "claim"}, **chosen}, {"cores": 2})
    files = cluster.data["minicluster"]
    # state that Flux saves less often may be lost
    files["broker.toml"] = files["broker.toml"].replace('"5s"', '"0.3s"')
    cluster.start().wait_for_ready()
    chance = random.Random(f"{flux.scheduler}{policy}")
    for _ in range(KILLS):
        for _ in range(chance.randrange(4, 9)):
            words = chance.choice([["-n1", "sleep", "5"], ["-N2", "-n2", "sleep", "4"], ["-n2", "sleep", "3"]])
            cluster.lead.flux("submit", *words)
        # a random moment
        cluster.lead.run("sleep", str(chance.choice([0.8, 1.2, 1.6, 2, 3])))
        known = cluster.lead.flux("jobs", "-n", "-a", "-c0", "-o", "{id}").split()
        cluster.lead.kill()
        cluster.start([0])
        cluster.lead.wait_for_ready()
        until(lambda: not cluster.lead.flux("jobs", "-n"))
        all_cores = cluster.lead.flux("submit", "-n6", "true").strip()
        until(lambda job=all_cores: state(cluster, job) == "COMPLETED")  # type: ignore[misc]
        states = dict(
            line.split() for line in cluster.lead.flux("jobs", "-n", "-a", "-c0", "-o", "{id} {status}").splitlines()
        )
        # jobs of the last moments may be lost; jobs in a checkpoint must not be
        assert len(set(known) - states.keys()) <= 8
        assert set(states.values()) <= {"COMPLETED", "FAILED"}


def test_queues_have_their_limits_and_are_as_they_were_left(make: Make, flux: Flux) -> None:
    queues = {"short": {"default": True, "limits": {"duration": "1m", "nodes": 1}}, "all": {}}
    cluster = make({"size": 2, **QUIET, "state": {"claimName": "c"}, "flux": {"queues": queues}}).start()
    cluster.wait_for_ready()
    cluster.lead.flux("run", "true")
    cluster.lead.flux("run", "-q", "all", "-N2", "true")
    assert cluster.lead.flux("jobs", "-a", "-n", "-o", "{queue} {duration} {status}").splitlines() == [
        "all 0.0 COMPLETED",
        "short 60.0 COMPLETED",
    ]
    refused = cluster.lead.run(f"{MOUNT}/bin/flux", "submit", "-N2", "true")
    assert (refused.returncode, "exceeds policy limit of 1" in refused.stderr) == (1, True)

    told = cluster.lead.run(f"{MOUNT}/slurm/sbatch", "--test-only", "--wrap", "true")
    assert told.stderr.endswith(" using 1 processors in partition short\n")

    def started() -> dict[str, bool]:
        text = cluster.lead.flux("queue", "status")
        return {name: f"{name}: Scheduling is started" in text for name in queues}

    assert started() == {"short": True, "all": True}
    # a killed broker has saved nothing
    cluster.lead.kill_broker()
    until(lambda: cluster.lead.run(f"{MOUNT}/bin/flux", "run", "-q", "all", "true").returncode == 0)
    cluster.lead.flux("queue", "stop", *(["all"] if flux.minor >= 73 else ["--queue=all"]))
    cluster.lead.signal(signal.SIGTERM)
    cluster.lead.wait()
    cluster.start([0]).wait_for_ready()
    until(lambda: started()["short"])
    assert started() == {"short": True, "all": False}
