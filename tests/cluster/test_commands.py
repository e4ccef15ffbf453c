"""The commands for people on a real API server. In its pods nothing runs, so no flux does."""

import json
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from simulated import end
from support import Helm, as_in_schema

from tools.clients import Done, KubernetesCluster, run
from tools.releases import Release

pytestmark = pytest.mark.any_helm

TWO = {"size": 2, "maxSize": 3, "interactive": True}
Command = Callable[..., Done]


@pytest.fixture
def minicluster(connected: Helm, release: Release) -> Command:
    """Runs `minicluster` in the release's namespace, with each Helm."""
    environment = connected.environment | {"HELM_BIN": connected.name}
    return lambda *words: run("minicluster", words[0], "-n", release.namespace, *words[1:], env=environment)


def test_the_commands_work_from_before_the_install_to_the_end(minicluster: Command, release: Release) -> None:
    assert minicluster("list") == Done(0, "", f"minicluster: no MiniClusters in namespace {release.namespace}\n")
    nothing = f"minicluster: there is no MiniCluster mc in namespace {release.namespace}: see `minicluster list -A` and"
    for command in ("wait", "logs", "status", "shell", "jobs"):
        assert minicluster(command, "mc") == Done(1, "", f"{nothing} give its -n\n")

    release.install(**TWO, nameOverride="other", flux={"scheduler": {"simple": True}})
    # by the release's name too; the command prints what it waits for
    assert minicluster("wait", "mc", "--timeout", "60s").code == 0
    assert minicluster("wait", "other", "--for", "end", "--timeout", "5s").err.splitlines() == [
        "minicluster: other: Running",
        f"minicluster: other in namespace {release.namespace}: gave up after 5 s",
    ]

    def listed() -> Any:
        return as_in_schema("list", json.loads(minicluster("list", "-o", "json").out)[0])

    release.cluster.wait("two ready pods", lambda: listed()["ready"] == 2)
    row = listed()
    assert row.pop("age") < 600
    assert row == {
        "name": "other",
        "namespace": release.namespace,
        "release": "mc",
        "size": 2,
        "groups": {},
        "ready": 2,
        "state": "Running",
        "scheduler": "sched-simple",
        "next": None,
    }

    said = f"minicluster: other in namespace {release.namespace}: size 2 -> 3\n"
    assert minicluster("scale", "mc", "3") == Done(0, "", said)
    assert release.get("job", "other")["spec"]["completions"] == 3
    above = (
        "the size 4 is above the maxSize of other, 3: lower it, or uninstall mc first, which loses its queue, or "
        "install under another name"
    )
    assert minicluster("scale", "mc", "4") == Done(1, "", f"minicluster: {above}\n")


def test_wait_for_the_end_exits_with_the_code_of_the_work(minicluster: Command, release: Release) -> None:
    runner = {"image": "ubuntu:noble", "volumes": {"data": {"path": "/data", "emptyDir": True}}}
    release.install(**TWO, containers=[runner], report={"path": "/data/jobs.jsonl"})
    release.running(2)
    done: list[Done] = []
    thread = threading.Thread(target=lambda: done.append(minicluster("wait", "mc", "--for", "end")))
    thread.start()
    end(release, 0, 3)
    thread.join(60)
    assert done[0].code == 3
    # the Job may say why only a moment later
    assert done[0].err.splitlines()[-1].startswith("minicluster: mc has ended (exit code 3): Failed")
    release.condition("Failed")
    for words in (("flux", "mc", "--", "jobs"), ("scale", "mc", "3")):
        assert "minicluster: mc has ended" in minicluster(*words).err
    assert minicluster("list").out.splitlines()[1].split()[5] == "Failed"
    said = minicluster("jobs", "mc").err
    assert said.startswith("minicluster: mc is Failed: the container mc ")
    assert said.endswith("; the report of its jobs is in /data/jobs.jsonl, on a volume of its pods\n")
    release.ok("uninstall")
    assert minicluster("wait", "mc").code == 1


def test_the_commands_say_that_a_cluster_is_suspended(minicluster: Command, release: Release) -> None:
    release.install(**TWO)
    release.running(2)
    release.kubectl("patch", "job", "mc", "--type=merge", "--patch", '{"spec": {"suspend": true}}')
    release.cluster.wait("no pods", lambda: not release.live_pods())
    for words in (("flux", "mc", "--", "jobs"), ("shell", "mc")):
        done = minicluster(*words)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("minicluster: mc is Suspended: the Job is suspended")
    assert "minicluster: there is no log: Suspended" in minicluster("logs", "mc").err
    assert minicluster("list").out.splitlines()[1].split()[:6] == ["mc", "mc", "2", "-", "0", "Suspended"]


def test_each_command_needs_exactly_the_rights_in_the_documentation(user: Helm, release: Release) -> None:
    release.install(**TWO)
    release.running(2)
    kubectl, namespace = release.kubectl, release.namespace
    as_user = KubernetesCluster(user.environment)

    def minicluster(*words: str) -> Done:
        return as_user.run("minicluster", words[0], "-n", namespace, *words[1:])

    def refused(*words: str) -> str:
        done = minicluster(*words)
        assert (done.code, done.out) == (1, "")
        line = done.err.splitlines()[-1]
        assert line.endswith(": ask for a Role that allows it")
        return line

    def grant(*verbs: str, of: str) -> None:
        name = f"{'-'.join(verbs)}-{of.replace('/', '-').replace(',', '-')}"
        kubectl("create", "role", name, f"--verb={','.join(verbs)}", f"--resource={of}")
        kubectl("create", "rolebinding", name, f"--role={name}", "--user=user")

    assert 'cannot list resource "jobs"' in refused("list")
    assert 'cannot list resource "pods"' in refused("flux", "mc", "--", "jobs")
    grant("get", "list", of="pods,jobs.batch")
    assert minicluster("list").code == 0
    assert "cannot list resource" in refused("list", "-A")
    for words in (("flux", "mc", "--", "jobs"), ("shell", "mc"), ("jobs", "mc"), ("copy", "mc:/a", "b")):
        # an exec is a `create`, or a `get` where it is a WebSocket
        assert re.search(r'cannot (create|get) resource "pods/exec"', refused(*words))
    assert 'resource "pods/log"' in refused("logs", "mc")
    assert "cannot watch resource" in refused("wait", "mc", "--for", "end")
    grant("watch", of="pods,jobs.batch")
    assert minicluster("wait", "mc").code == 0
