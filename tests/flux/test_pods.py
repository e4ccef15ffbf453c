"""The same truths on a real Kubernetes, with both Helms and both ways of bringing the view."""

import re
import subprocess
import time
from base64 import b64decode
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import yaml
from real_cluster import IN_PODS, Install
from support import ROOT

from tools.clients import until
from tools.releases import PATIENCE, FluxRelease

pytestmark = IN_PODS

QUIET = {"logging": {"quiet": True}}
FOUR = {"size": 4, **QUIET}
UNTIL_TOLD = "until [ -e /tmp/end ]; do sleep 0.2; done; echo done"
BOTH_HELMS = pytest.mark.parametrize("helm", ["helm", "helm3"])
BOTH_MODES = pytest.mark.parametrize("mode", ["image", "copy"])
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


@BOTH_HELMS
@BOTH_MODES
def test_hello_world(release: Install, helm: str, mode: str) -> None:
    begin = time.monotonic()
    cluster = release({**FOUR, "tasks": 4}, {"command": "echo hello world"}, helm=helm, mode=mode)
    assert cluster.wait_for_end() == {"SuccessCriteriaMet": "SuccessPolicy", "Complete": "SuccessPolicy"}
    print(f"{helm}, {mode}: {time.monotonic() - begin:.1f} s from helm install to Complete")
    assert cluster.log(0) == "hello world\n" * 4
    assert [cluster.log(index) for index in (1, 2, 3)] == [""] * 3
    statuses = [pod["status"]["containerStatuses"][0] for pod in cluster.pods()]
    assert [status["restartCount"] for status in statuses] == [0] * 4
    assert [cluster.created(index) for index in range(4)] == [1] * 4


@BOTH_MODES
@pytest.mark.parametrize(
    ("command", "code"), [("exit 3", 3), ("false", 1), ("nonexistent", 127), ("exit 85", 1), ("kill -9 $$", 1)]
)
def test_a_failing_job_fails_the_job_once(release: Install, command: Any, code: int, mode: str) -> None:
    begin = time.monotonic()
    cluster = release({"size": 2, **QUIET}, {"command": command}, mode=mode)
    assert cluster.wait_for_end() == {"FailureTarget": "PodFailurePolicy", "Failed": "PodFailurePolicy"}
    print(f"{command}, {mode}: Failed {time.monotonic() - begin:.1f} s after helm install")
    assert cluster.lead_codes() == [code]
    assert cluster.created(0) == 1


def test_a_command_means_what_a_shell_says(release: Install) -> None:
    command = "echo \"a  'b' $FLUX_TASK_RANK `echo x` $(MINICLUSTER_HOME) | é\" && echo $HOME | cat"
    cluster = release(
        {"size": 2, "tasks": 4, **QUIET}, {"command": command, "cores": 2, "environment": {"HOME": "/$(A)"}}
    )
    assert "Complete" in cluster.wait_for_end()
    lines = cluster.log(0).splitlines()
    assert sorted(line for line in lines if line.startswith("a")) == [f"a  'b' {rank} x  | é" for rank in range(4)]


def test_a_list_is_an_exact_argv(release: Install) -> None:
    words = ["a  b", "'", '"', "$HOME", "$(HOME)", "$$", "`id`", "\\", "*", "", "--", "é", "x\ny"]
    cluster = release(QUIET, {"command": ["printf", "<%s>\n", *words]})
    assert "Complete" in cluster.wait_for_end()
    assert cluster.log(0) == "".join(f"<{word}>\n" for word in words)


@BOTH_MODES
def test_no_command_is_an_idle_cluster(release: Install, mode: str) -> None:
    cluster = release(FOUR, mode=mode)
    print(f"all up after {cluster.wait_for('0-3'):.1f} s")
    assert cluster.flux(0, "resource", "list", "-n", "-s", "free", "-o", "{nnodes} {nodelist}") == "4 mini-[0-3]\n"
    assert sorted(cluster.flux(2, "run", "-N4", "cat", "/etc/hostname").split()) == [f"mini-{i}" for i in range(4)]
    until(lambda: cluster.get("job")["status"].get("ready") == 4)
    cluster.flux(0, "shutdown")
    assert "Complete" in cluster.wait_for_end()


@BOTH_HELMS
def test_the_size_changes_under_a_running_job(release: Install, helm: str) -> None:
    values = {"size": 2, "maxSize": 4, "tasks": 0, **QUIET}
    cluster = release(values, {"command": UNTIL_TOLD}, helm=helm)
    cluster.wait_for("0-1")
    first = cluster.uids()
    for size, ranks in ((4, "0-3"), (3, "0-2")):
        cluster.upgrade("--set", f"size={size}")
        print(f"{helm}: {ranks} {cluster.wait_for(ranks):.1f} s after helm upgrade")
        until(partial(has_pods, cluster, size))
        assert cluster.uids()[:2] == first
    assert cluster.conditions() == {}
    for index in (0, 1):
        cluster.exec(index, "touch", "/tmp/end")
    assert "Complete" in cluster.wait_for_end()
    assert cluster.log(0) == "done\ndone\n"
    assert [cluster.created(index) for index in range(4)] == [1] * 4


def has_pods(cluster: FluxRelease, count: int) -> bool:
    """Say whether so many pods run."""
    return len(cluster.uids()) == count


LOSSES: dict[str, Callable[[FluxRelease, int], object]] = {
    "deleted": lambda cluster, index: cluster.kubectl("delete", "pod", cluster.pod(index), "--wait=false"),
    "force-deleted": lambda cluster, index: cluster.kubectl(
        "delete", "pod", cluster.pod(index), "--grace-period=0", "--force"
    ),
    "evicted": lambda cluster, index: cluster.evict(cluster.pod(index)),
    "broker killed": lambda cluster, index: cluster.kill_broker(index),
}


def broker(cluster: FluxRelease, index: int) -> str:
    """Return what tells one broker of a rank from the next: its pod and when it started."""
    pod = cluster.pod(index)
    started = cluster.flux(index, "getattr", "broker.starttime").strip()
    return f"{pod} {started}" if pod and started else ""


@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_worker_comes_back_and_the_job_goes_on(release: Install, loss: str) -> None:
    values = {"size": 3, **QUIET, "flux": {"optionFlags": "--requires=rank:0"}}
    cluster = release(values, {"command": UNTIL_TOLD})
    cluster.wait_for("0-2")
    first, uids = broker(cluster, 2), cluster.uids()[:2]
    begin = time.monotonic()
    LOSSES[loss](cluster, 2)
    until(lambda: broker(cluster, 2) not in ("", first) and cluster.up() == "0-2", PATIENCE)
    print(f"worker {loss}: back after {time.monotonic() - begin:.1f} s")
    assert cluster.flux(0, "run", "--requires=rank:2", "-N1", "echo", "again") == "again\n"
    assert cluster.uids()[:2] == uids
    cluster.exec(0, "touch", "/tmp/end")
    assert "Complete" in cluster.wait_for_end()
    assert cluster.log(0) == "done\n"


@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_lead_never_completes_the_job_and_comes_back(release: Install, loss: str) -> None:
    cluster = release({"size": 3, **QUIET}, {"command": UNTIL_TOLD})
    cluster.wait_for("0-2")
    first, workers = broker(cluster, 0), cluster.uids()[1:]
    begin = time.monotonic()
    LOSSES[loss](cluster, 0)
    until(partial(came_back, cluster, first), PATIENCE)
    print(f"lead {loss}: all ranks back after {time.monotonic() - begin:.1f} s")
    assert cluster.uids()[1:] == workers
    cluster.exec(0, "touch", "/tmp/end")
    assert "Complete" in cluster.wait_for_end()
    print(f"Complete {time.monotonic() - begin:.1f} s after the loss")
    assert cluster.log(0) == "done\n"


def came_back(cluster: FluxRelease, first: str) -> bool:
    """Say whether another lead has all ranks; meanwhile the Job is neither Complete nor Failed."""
    assert cluster.conditions() == {}
    return broker(cluster, 0) not in ("", first) and cluster.up() == "0-2"


@pytest.mark.xfail(
    strict=True, reason="backoffLimitPerIndex keeps a failed pod's finalizer until it is replaced: never"
)
def test_the_namespace_can_be_deleted_with_the_cluster(release: Install) -> None:
    cluster = release({"size": 2, **QUIET})
    cluster.wait_for("0-1")
    cluster.cluster.kubectl("delete", "namespace", cluster.namespace, "--wait=false")
    words = ("get", "namespace", cluster.namespace, "--ignore-not-found", "-o", "name")
    until(lambda: not cluster.cluster.kubectl(*words), 25)


@BOTH_MODES
@pytest.mark.parametrize("user", [0, 1000, 12345])
def test_any_user(release: Install, user: int, mode: str) -> None:
    values = {"size": 2, **QUIET, "pod": {"securityContext": {"runAsUser": user}}}
    cluster = release(values, {"command": "id -u"}, mode=mode)
    assert "Complete" in cluster.wait_for_end()
    assert cluster.log(0) == f"{user}\n"


@BOTH_MODES
def test_the_restricted_example_in_a_restricted_namespace(release: Install, mode: str) -> None:
    values = yaml.safe_load((ROOT / "values-examples/restricted.yaml").read_text())
    [runner] = values.pop("containers")
    cluster = release({**values, **QUIET}, runner, labels=[RESTRICTED], mode=mode)
    assert "Complete" in cluster.wait_for_end()
    assert cluster.log(0) == "12345\n"


@BOTH_HELMS
def test_helm_test_says_that_the_cluster_is_up(release: Install, helm: str) -> None:
    cluster = release({"size": 2}, helm=helm)
    assert re.search(r"Phase:\s+Succeeded", cluster.ok("test"))
    assert cluster.up() == "0-1"


def test_helm_test_in_a_restricted_namespace(release: Install) -> None:
    values = yaml.safe_load((ROOT / "values-examples/restricted.yaml").read_text())
    [runner] = values.pop("containers")
    cluster = release(values, {**runner, "command": ""}, labels=[RESTRICTED])
    assert re.search(r"Phase:\s+Succeeded", cluster.ok("test"))


def test_the_secret_key_is_in_the_secret_only(release: Install) -> None:
    logging = {"debug": True, "strict": True, "zeromq": True, "timed": True}
    cluster = release({"size": 2, "logging": logging}, {"command": "echo hello", "commands": {"init": "set -x"}})
    assert "Complete" in cluster.wait_for_end()
    certificate = b64decode(cluster.certificate()).decode()
    keys = re.findall(r'-key = "(.{40})"', certificate)
    assert len(keys) == 2
    seen = [
        cluster.log(0),
        cluster.log(1),
        cluster.kubectl("get", "configmaps,jobs,pods,services,events", "-o", "yaml"),
    ]
    assert "hello" in seen[0]
    assert not [key for key in keys for text in seen if key in text]


@pytest.mark.parametrize("user", [0, 12345])
def test_munge(release: Install, user: int) -> None:
    """Its credentials hold on all nodes; the image has munge, or this is skipped."""
    runner = {"securityContext": {"runAsUser": user, "runAsGroup": user}, "command": "munge -n | unmunge"}
    cluster = release({"size": 2, "tasks": 2, **QUIET, "flux": {"mungeSecret": "munge"}}, runner)
    cluster.kubectl("create", "secret", "generic", "munge", f"--from-literal=munge.key={'k' * 128}")
    cluster.wait_for_end()
    log = cluster.log(0)
    if "this image has no munged" in log:
        pytest.skip("the image has no munged")
    assert "Complete" in cluster.conditions(), log
    assert log.count("STATUS:") == log.count("Success (0)") == 2, log


@pytest.mark.parametrize("in_time", [True, False], ids=["in time", "late"])
def test_a_launcher_that_is_evicted_has_the_grace_of_a_job(release: Install, in_time: bool) -> None:
    command = f"trap 'echo told; exit 4' TERM; touch /tmp/runs; {UNTIL_TOLD}"
    values = {"size": 2, **QUIET, "pod": {"terminationGracePeriodSeconds": 12}}
    cluster = release(values, {"command": command, "launcher": True})
    until(lambda: "runs" in cluster.exec(0, "ls", "/tmp"), PATIENCE)
    pod = cluster.pod(0)
    log = subprocess.Popen(
        ["kubectl", "-n", cluster.namespace, "logs", "-f", pod],
        env=cluster.cluster.env,
        stdout=subprocess.PIPE,
        text=True,
    )
    cluster.evict(pod)
    if in_time:
        cluster.kubectl("exec", pod, "--", "touch", "/tmp/end")
    said, _ = log.communicate(timeout=PATIENCE)
    if in_time:
        assert said == "done\n"
        assert "Complete" in cluster.wait_for_end()
    else:
        assert "told" in said.splitlines()
        assert "minicluster: the launcher is told to stop: the pod's grace period is over" in said.splitlines()
        # and is run anew
        until(lambda: cluster.pod(0) not in ("", pod), PATIENCE)
