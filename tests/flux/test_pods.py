"""Commands, users and sizes on a real Kubernetes, with both Helms and both modes of the view."""

import re
import time
from base64 import b64decode
from functools import partial
from typing import Any

import pytest
from pod_jobs import QUIET, UNTIL_TOLD
from real_cluster import IN_PODS, Install, example
from support import Helm

from tools.clients import until
from tools.releases import FluxRelease

pytestmark = IN_PODS
FOUR = {"size": 4, **QUIET}
BOTH_MODES = pytest.mark.parametrize("mode", ["image", "copy"])
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


@BOTH_MODES
def test_a_command_runs_to_completion_with_its_output_in_the_log(release: Install, helm: Helm, mode: str) -> None:
    begin = time.monotonic()
    cluster = release({**FOUR, "tasks": 4}, {"command": "echo hello world"}, helm=helm.name, mode=mode)
    assert cluster.wait_for_end() == {"SuccessCriteriaMet": "SuccessPolicy", "Complete": "SuccessPolicy"}
    print(f"{helm.name}, {mode}: {time.monotonic() - begin:.1f} s from helm install to Complete")
    assert cluster.log(0) == "hello world\n" * 4
    # Kubernetes deletes a worker that has not ended when the lead has
    assert all(cluster.log(index) == "" for index in (1, 2, 3) if cluster.pods(index))
    statuses = [pod["status"]["containerStatuses"][0] for pod in cluster.pods()]
    assert {status["restartCount"] for status in statuses} == {0}
    assert [cluster.created(index) for index in range(4)] == [1] * 4


@BOTH_MODES
@pytest.mark.parametrize(
    ("command", "code"), [("exit 3", 3), ("false", 1), ("nonexistent", 127), ("exit 85", 1), ("kill -9 $$", 1)]
)
def test_a_failing_command_fails_the_kubernetes_job_without_a_retry(
    release: Install, command: Any, code: int, mode: str
) -> None:
    begin = time.monotonic()
    cluster = release({"size": 2, **QUIET}, {"command": command}, mode=mode)
    assert cluster.wait_for_end() == {"FailureTarget": "PodFailurePolicy", "Failed": "PodFailurePolicy"}
    print(f"{command}, {mode}: Failed {time.monotonic() - begin:.1f} s after helm install")
    assert cluster.lead_codes() == [code]
    assert cluster.created(0) == 1


@pytest.mark.parametrize(("limit", "fits"), [("", True), ("32Mi", False), ("none", False)])
def test_the_size_of_shared_memory_follows_its_value(release: Install, limit: str, fits: bool) -> None:
    """MPI and NCCL need more than the 64 MiB of a container runtime."""
    command = "head -c 100M /dev/zero >/dev/shm/a"
    cluster = release({"size": 1, "pod": {"sharedMemory": limit}, **QUIET}, {"command": command})
    assert ("Complete" in cluster.wait_for_end()) == fits


def test_a_command_is_run_by_a_shell_as_written(release: Install) -> None:
    command = "echo \"a  'b' $FLUX_TASK_RANK `echo x` $(MINICLUSTER_HOME) | é\" && echo $HOME | cat"
    cluster = release(
        {"size": 2, "tasks": 4, **QUIET}, {"command": command, "cores": 2, "environment": {"HOME": "/$(A)"}}
    )
    assert "Complete" in cluster.wait_for_end()
    lines = cluster.log(0).splitlines()
    assert sorted(line for line in lines if line.startswith("a")) == [f"a  'b' {rank} x  | é" for rank in range(4)]


def test_a_command_that_is_a_list_is_run_as_an_exact_argv(release: Install) -> None:
    words = ["a  b", "'", '"', "$HOME", "$(HOME)", "$$", "`id`", "\\", "*", "", "--", "é", "x\ny"]
    cluster = release(QUIET, {"command": ["printf", "<%s>\n", *words]})
    assert "Complete" in cluster.wait_for_end()
    assert cluster.log(0) == "".join(f"<{word}>\n" for word in words)


@BOTH_MODES
def test_a_cluster_without_a_command_idles_until_shutdown(release: Install, mode: str) -> None:
    cluster = release(FOUR, mode=mode)
    print(f"all up after {cluster.wait_for('0-3'):.1f} s")
    assert cluster.flux(0, "resource", "list", "-n", "-s", "free", "-o", "{nnodes} {nodelist}") == "4 mini-[0-3]\n"
    assert sorted(cluster.flux(2, "run", "-N4", "cat", "/etc/hostname").split()) == [f"mini-{i}" for i in range(4)]
    until(lambda: cluster.get("job")["status"].get("ready") == 4)
    cluster.flux(0, "shutdown")
    assert "Complete" in cluster.wait_for_end()


def test_the_size_can_change_while_a_job_runs(release: Install, helm: Helm) -> None:
    values = {"size": 2, "maxSize": 4, "tasks": 0, **QUIET}
    cluster = release(values, {"command": UNTIL_TOLD}, helm=helm.name)
    cluster.wait_for("0-1")
    first = cluster.uids()
    for size, ranks in ((4, "0-3"), (3, "0-2")):
        cluster.upgrade("--set", f"size={size}")
        print(f"{helm.name}: {ranks} {cluster.wait_for(ranks):.1f} s after helm upgrade")
        until(partial(has_pods, cluster, size))
        assert cluster.uids()[:2] == first
    assert cluster.conditions() == {}
    for index in (0, 1):
        cluster.exec(index, "touch", "/tmp/end")
    assert "Complete" in cluster.wait_for_end()
    assert cluster.log(0) == "done\ndone\n"
    assert [cluster.created(index) for index in range(4)] == [1] * 4


def has_pods(cluster: FluxRelease, count: int) -> bool:
    """Say whether ``count`` pods run."""
    return len(cluster.uids()) == count


@BOTH_MODES
@pytest.mark.parametrize("user", [0, 1000, 12345])
def test_the_work_runs_as_any_user(release: Install, user: int, mode: str) -> None:
    values = {"size": 2, **QUIET, "pod": {"securityContext": {"runAsUser": user}}}
    cluster = release(values, {"command": "id -u"}, mode=mode)
    assert "Complete" in cluster.wait_for_end()
    assert cluster.log(0) == f"{user}\n"


@BOTH_MODES
def test_the_restricted_example_runs_in_a_restricted_namespace(release: Install, mode: str) -> None:
    values, runner = example("restricted")
    cluster = release({**values, **QUIET}, runner, labels=[RESTRICTED], mode=mode)
    assert "Complete" in cluster.wait_for_end()
    assert cluster.log(0) == "12345\n"


def test_helm_test_succeeds_once_the_cluster_is_up(release: Install, helm: Helm) -> None:
    cluster = release({"size": 2}, helm=helm.name)
    assert re.search(r"Phase:\s+Succeeded", cluster.ok("test"))
    assert cluster.up() == "0-1"


def test_helm_test_succeeds_in_a_restricted_namespace(release: Install) -> None:
    values, runner = example("restricted")
    cluster = release(values, {**runner, "command": ""}, labels=[RESTRICTED])
    assert re.search(r"Phase:\s+Succeeded", cluster.ok("test"))


def test_the_key_of_the_certificate_is_in_the_secret_only(release: Install) -> None:
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
def test_munge_credentials_are_valid_on_all_nodes(release: Install, user: int) -> None:
    """Credentials are valid on all nodes. Skipped where the image has no munge."""
    runner = {"securityContext": {"runAsUser": user, "runAsGroup": user}, "command": "munge -n | unmunge"}
    cluster = release({"size": 2, "tasks": 2, **QUIET, "flux": {"mungeSecret": "munge"}}, runner)
    cluster.kubectl("create", "secret", "generic", "munge", f"--from-literal=munge.key={'k' * 128}")
    cluster.wait_for_end()
    # a worker that fails first ends the Job, and Kubernetes then deletes a lead that has not yet failed
    log = cluster.kubectl("logs", f"--selector=batch.kubernetes.io/job-name={cluster.name}", "--tail=-1")
    if "this image has no munged" in log:
        pytest.skip("the image has no munged")
    assert "Complete" in cluster.conditions(), log
    assert log.count("STATUS:") == log.count("Success (0)") == 2, log
