"""The commands for people on a real Kubernetes: `minicluster flux`, `shell`, `logs`, `scale` and `wait`."""

import os
import pty
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pod_jobs import size
from real_cluster import IN_PODS, Install

from tools.clients import Done, until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME

pytestmark = [IN_PODS, pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)]

TWO = {"size": 2, "maxSize": 4, "logging": {"quiet": True}}
FOUR_CORES = {"cores": 4}
NASTY = ['a "b"', "$HOME `id`", "line\nbreak", "é😀", ""]


def run(cluster: FluxRelease, command: str, *words: str, stdin: str | None = None) -> Done:
    """Run `minicluster COMMAND` to its end."""
    return cluster.cluster.run("minicluster", command, NAME, "-n", cluster.namespace, *words, stdin=stdin)


@contextmanager
def start(cluster: FluxRelease, command: str, *words: str, **how: Any) -> Iterator[subprocess.Popen[str]]:
    """Start `minicluster COMMAND`, and end it after a test that failed."""
    line = ["minicluster", command, NAME, "-n", cluster.namespace, *words]
    with subprocess.Popen(line, env=cluster.cluster.env, text=True, **how) as process:
        try:
            yield process
        finally:
            process.kill()


def test_flux_and_shell_run_commands_in_the_lead(release: Install) -> None:
    cluster = release(TWO, FOUR_CORES)
    # there is no quorum yet
    assert run(cluster, "wait", "--timeout", "2m").code == 0
    done = run(cluster, "flux", "--", "run", "-N2", "hostname")
    assert (done.code, sorted(done.out.split()), done.err) == (0, ["mini-0", "mini-1"], "")
    shown = run(cluster, "flux", "--", "run", "printf", "<%s>", *NASTY)
    assert shown == Done(0, "".join(f"<{word}>" for word in NASTY), "")
    failing = run(cluster, "flux", "--", "run", "sh", "-c", "echo out; echo why >&2; exit 7")
    assert (failing.code, failing.out, failing.err.splitlines()[0]) == (7, "out\n", "why")
    assert "command terminated" not in failing.err
    text = "é😀\n" * 20000
    assert run(cluster, "flux", "--", "run", "cat", stdin=text) == Done(0, text, "")
    shell = run(cluster, "shell", stdin="flux getattr size; exit 4")
    assert shell == Done(4, "4\n", "")
    kubectl = cluster.cluster.run(
        "kubectl", "minicluster", "flux", NAME, "-n", cluster.namespace, "--", "getattr", "rank"
    )
    assert kubectl == Done(0, "0\n", "")


def test_flux_passes_its_terminal_and_signals_to_the_pod(release: Install) -> None:
    cluster = release(TWO, FOUR_CORES)
    assert run(cluster, "wait").code == 0
    ours, theirs = pty.openpty()
    script = "import sys; print('got', input()); sys.exit(5 if sys.stdin.isatty() and sys.stdout.isatty() else 1)"
    words = ("--", "python", "-c", script)
    with start(cluster, "flux", *words, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        os.write(ours, b"word\n")
        shown = read_to_end(ours)
        assert process.wait(STEP_SECONDS) == 5
    assert "got word" in shown

    with start(cluster, "flux", "--", "run", "-N2", "sleep", "600", stderr=subprocess.PIPE) as job:
        until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{state}").strip() == "RUN", STEP_SECONDS)
        assert job.stderr
        job.send_signal(signal.SIGINT)
        assert "one more ctrl-C within 2s to cancel" in job.stderr.readline()
        job.send_signal(signal.SIGINT)
        assert job.wait(STEP_SECONDS) == 128 + signal.SIGTERM
    assert cluster.flux(0, "jobs", "-an", "-o", "{result}").strip() == "CANCELED"


def read_to_end(terminal: int) -> str:
    """Return all that a terminal shows until its program ends."""
    shown = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # EIO: nobody has the other side
            data = b""
        if not data:
            os.close(terminal)
            return shown.decode(errors="replace")
        shown += data


def test_scale_wait_returns_once_the_nodes_are_up(release: Install) -> None:
    cluster = release(TWO, FOUR_CORES)
    assert run(cluster, "wait").code == 0
    grown = run(cluster, "scale", "4", "--wait")
    assert (grown.code, cluster.up(), size(cluster)) == (0, "0-3", 4)
    assert grown.err.splitlines()[0] == f"minicluster: {NAME} in namespace {cluster.namespace}: size 2 -> 4"
    assert grown.err.splitlines()[-1] == f"minicluster: {NAME}: 4 nodes up"
    assert run(cluster, "scale", "2", "--wait").code == 0
    assert cluster.up() == "0-1"
    way = f"uninstall {NAME} first, which loses its queue, or install under another name"
    refused = f"minicluster: the size 5 is above the maxSize of {NAME}, 4: lower it, or {way}\n"
    assert run(cluster, "scale", "5").err == refused


def test_scale_of_an_autoscaled_cluster_asks_its_autoscaler(release: Install) -> None:
    cluster = release({**TWO, "autoscaling": {"enabled": True, "min": 1, "max": 3, "backlogSeconds": 0}}, FOUR_CORES)
    assert run(cluster, "wait").code == 0
    done = run(cluster, "scale", "3", "--wait")
    assert (done.code, cluster.up()) == (0, "0-2")
    assert "sizes itself from 1 to 3: asked it for at least 3 nodes" in done.err
    assert "mini sizes itself: 4 is over the maximum of 3" in run(cluster, "scale", "4").err
    assert run(cluster, "scale", "auto").code == 0
    assert cluster.exec(0, "/mnt/flux/bin/minicluster-scale").strip() == "auto"


def test_logs_and_wait_go_on_after_the_lead_is_killed(release: Install) -> None:
    work = "echo begun; until [ -e /tmp/end ]; do sleep 0.2; done; exit 9"
    cluster = release({**TWO, "logging": {}}, {**FOUR_CORES, "command": work})
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(cluster, "logs", "-f", **pipes) as logs, start(cluster, "wait", "--for", "end") as wait:
        until(lambda: submitted(cluster), STEP_SECONDS)
        first = cluster.pod(0)
        cluster.kill_broker(0)
        until(lambda: cluster.pod(0) not in ("", first) and submitted(cluster), STEP_SECONDS)
        second = cluster.pod(0)
        cluster.exec(0, "touch", "/tmp/end")
        assert wait.wait(STEP_SECONDS) == 9
        out, err = logs.communicate(timeout=STEP_SECONDS)
    assert logs.returncode == 0
    assert out == cluster.kubectl("logs", first) + cluster.kubectl("logs", second)
    assert "begun" in out
    assert f"minicluster: the lead was replaced: the log goes on with pod {second}\n" in err
    assert re.search(r"minicluster: mini has ended \(exit code 9\): Failed: ", err.splitlines()[-1])
    assert run(cluster, "flux", "--", "jobs").err.startswith(f"minicluster: {NAME} has ended (exit code 9): Failed")


def submitted(cluster: FluxRelease) -> bool:
    """Say whether the command runs."""
    return cluster.flux(0, "jobs", "-n", "-o", "{state}").strip() == "RUN"
