"""`minicluster run --in`: commands in instances of their own, inside a MiniCluster that stays."""

import signal
import subprocess
from pathlib import Path

import pytest
from minicluster.sdk import MiniCluster
from real_cluster import IN_PODS, Install
from support import Process

from tools.clients import Done, until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME

pytestmark = IN_PODS

FOUR_CORES = {"cores": 4}
TWO = {"size": 2, "maxSize": 4, "interactive": True, "logging": {"quiet": True}}
#: What stands for uv: "pip install … --target FOLDER …" makes a module
UV = """#!/bin/sh
while [ "$1" != --target ]; do shift; done
mkdir -p "$2" && echo "print('of uv', input())" >"$2/made.py"
"""
BEGINS = '[ "$FLUX_TASK_RANK" != 0 ] || echo begun; exec sleep 900'


def start(cluster: FluxRelease, *words: str) -> Process:
    """Start a command in an instance of the cluster."""
    line = ("minicluster", "run", "--namespace", cluster.namespace, "--in", NAME, *words)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return Process(line, env=cluster.cluster.env, text=True, **pipes)


def run(cluster: FluxRelease, *words: str, stdin: str = "") -> Done:
    """Run one to its end."""
    with start(cluster, *words) as process:
        out, err = process.communicate(stdin, timeout=2 * STEP_SECONDS)
    return Done(process.returncode, out, err)


def active(cluster: FluxRelease) -> str:
    """Return the names of the jobs that have not ended."""
    return cluster.flux(0, "jobs", "-n", "-o", "{name}")


def test_commands_have_instances_of_their_own_and_leave_nothing(release: Install) -> None:
    cluster = release(TWO, FOUR_CORES)
    hosts = run(cluster, "-N2", "--", "hostname")
    assert (hosts.code, sorted(hosts.out.splitlines())) == (0, [f"{NAME}-0", f"{NAME}-1"])
    text = "flux getattr size; flux resource list -no '{nnodes}' -s all; cat; exit 7"
    own = run(cluster, "-N1", "--", "sh", "-c", text, stdin="in\n")
    assert (own.code, own.out) == (7, "1\n1\nin\n")
    # it may wait for the end of the former instance, which is said after a while
    assert own.err.splitlines()[-1] == "flux-job: task(s) exited with exit code 7"
    for number in (signal.SIGINT, signal.SIGTERM):
        with start(cluster, "-N2", "--", "sh", "-c", BEGINS) as process:
            assert process.stdout
            assert process.stdout.readline() == "begun\n"
            process.send_signal(number)
            _, err = process.communicate(timeout=STEP_SECONDS)
        assert process.returncode == 128 + number, err
        assert "is cancelled\n" in err
    until(lambda: not active(cluster), STEP_SECONDS)
    assert cluster.flux(0, "jobs", "-ano", "{name} {status}") == "sh CANCELED\n" * 2 + "sh FAILED\nhostname COMPLETED\n"


def test_an_instance_whose_lead_is_killed_is_said_to_be_lost(release: Install) -> None:
    cluster = release(TWO, FOUR_CORES)
    with start(cluster, "-N2", "--", "sh", "-c", BEGINS) as process:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        cluster.kubectl("delete", "pod", cluster.pod(0), "--force", "--grace-period=0")
        _, err = process.communicate(timeout=2 * STEP_SECONDS)
    assert process.returncode == 1
    assert "what was submitted may have run: look before you run the command again" in err.splitlines()[-1]


def test_the_sdk_runs_inside_and_spreads_jobs_over_instances(release: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = release(TWO, FOUR_CORES)
    for name, value in cluster.cluster.env.items():
        monkeypatch.setenv(name, value)
    run_inside = MiniCluster.run(["flux", "getattr", "size"], cluster.namespace, inside=NAME, timeout=STEP_SECONDS)
    assert (run_inside.exit_code, run_inside.stdout) == (0, "1\n")
    with MiniCluster.connect(NAME, cluster.namespace) as connected:
        with connected.executor(tree=2) as executor:
            hosts = [job.output for job in executor.map("cat", ["/etc/hostname"] * 8)]
        own = connected.flux("jobs", "-a", "-n", "-o", "{name}").stdout
        until(lambda: not active(cluster), STEP_SECONDS)
        # with that inside of the first
        until(lambda: len(connected.jobs(ended=True)) == 3 + 1 + 8, STEP_SECONDS)
        trees = {job.id for job in connected.jobs(ended=True) if job.name == "tree"}
        inside = [job for job in connected.jobs(ended=True) if "/" in job.id and job.id.split("/")[0] in trees]
    assert sorted(hosts) == [f"{NAME}-0\n"] * 4 + [f"{NAME}-1\n"] * 4
    assert [(job.name, job.status) for job in inside] == [("cat", "completed")] * 8
    assert {job.id.split("/")[0] for job in inside} == trees
    # the MiniCluster's own queue had the instances alone
    assert own.split() == ["tree", "tree", "flux"]
    until(lambda: not active(cluster), STEP_SECONDS)
    assert cluster.flux(0, "jobs", "-ano", "{name} {status}").splitlines()[:2] == ["tree COMPLETED"] * 2


def test_an_instance_has_local_code_and_its_results_come_back(release: Install, tmp_path: Path) -> None:
    cluster, folder = release(TWO, FOUR_CORES), tmp_path / "mine"
    folder.mkdir()
    cluster.running(2)
    make = (cluster.pod(0), "--", "sh", "-c", 'cat >"$0" && chmod +x "$0"', "/usr/local/bin/uv")
    cluster.kubectl("exec", "-i", *make, stdin=UV)
    (folder / "work.sh").write_text('python3 -m made; pwd; echo "$FLUX_TASK_RANK" >"$(hostname).txt"; exit 3')
    (folder / "needs.txt").write_text("made\n")
    words = ("--upload", str(folder), "--with", "needs.txt", "--fetch", "*.txt", "-N2", "--", "sh", "work.sh")
    done = run(cluster, *words, stdin="in\nin\n")
    print(done.err)
    folders, said = sorted(done.out.splitlines())[:2], sorted(done.out.splitlines())[2:]
    assert (done.code, {Path(one).name for one in folders}, said) == (3, {"mine"}, ["of uv in"] * 2)
    texts = {path.name: path.read_text() for path in folder.glob("*.txt")}
    assert texts == {"needs.txt": "made\n", f"{NAME}-0.txt": "0\n", f"{NAME}-1.txt": "1\n"}
