"""``minicluster flux`` and ``shell``: words, streams, signals, a terminal and exit codes; and the states of a lead."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live_kubectl import FORBIDDEN, WAITS, Kubectl, lead
from status_samples import SETTINGS, SUSPENDED, ended, flux, job, suspended, waiting

from tools.clients import until

NASTY = ["-N2", "--", 'a "b"', "$HOME `id`", "line\nbreak", "é😀", "", "x" * 63]


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    return Kubectl(tmp_path)


def test_the_flux_command_passes_its_words_to_the_pod_unchanged(kubectl: Kubectl) -> None:
    done = kubectl.run("flux", "mini", "-n", "lab", "--", "jobs", *NASTY)
    assert (done.code, done.out, done.err) == (0, "<jobs>" + "".join(f"<{word}>" for word in NASTY), "")
    # one request, then the command
    assert [line.split()[1] for line in kubectl.asked() if line.startswith("--namespace")] == ["get", "exec"]


def test_the_flux_command_passes_streams_and_exit_code_through(kubectl: Kubectl) -> None:
    # a line that looks like kubectl's own last line, and is not the last
    kubectl.flux("echo command terminated with exit code 4 >&2; sleep 0.3; cat; echo why >&2; exit 7")
    done = kubectl.run("flux", "mini", "--", "submit", "cat", stdin="in\x01é\n")
    assert (done.code, done.out, done.err) == (7, "in\x01é\n", "command terminated with exit code 4\nwhy\n")


def test_the_shell_command_has_flux_in_its_path(kubectl: Kubectl) -> None:
    (kubectl.folder / "home" / "flux-view.sh").write_text('PATH="${0%/*}/home/bin:$PATH"; MINE=1; export MINE\n')
    done = kubectl.run("shell", "mini", stdin='echo "$MINE"; exit 3')
    assert (done.code, done.out, done.err) == (3, "1\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_flux_command_passes_a_signal_to_the_command_in_the_pod(kubectl: Kubectl, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    kubectl.flux(f"trap 'echo got {name}; exit 9' {name}; echo ready; while :; do sleep 0.1; done")
    with kubectl.start("flux", "mini", "--", "queue", "drain") as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (9, f"got {name}\n", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_that_a_command_has_started(kubectl: Kubectl, number: signal.Signals) -> None:
    # a session of its own, which holds the output, as that of a program with a terminal inside
    kubectl.flux(f"""setsid sh -c 'trap "" {number.name[3:]}; echo $$; exec sleep 100' & wait""")
    with kubectl.start("flux", "mini", "--", "queue", "drain") as process:
        assert process.stdout
        child = Path("/proc", process.stdout.readline().strip())
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    until(lambda: not child.exists() or "(sleep) Z" in (child / "stat").read_text())


def test_a_third_ctrl_c_leaves_a_command_that_ignores_signals(kubectl: Kubectl) -> None:
    kubectl.flux("trap '' INT; echo ready; sleep 5 & wait; wait")
    with kubectl.start("flux", "mini", "--", "queue", "drain") as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        for count in range(3):
            until(lambda count=count: sum("pairs= root" in line for line in kubectl.asked()) == count)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_the_flux_command_passes_its_terminal_to_the_pod(kubectl: Kubectl) -> None:
    kubectl.flux("test -t 0 && test -t 1 && read line && echo got $line; exit 6")
    ours, theirs = pty.openpty()
    with kubectl.start("flux", "mini", "--", "submit", stdin=theirs, stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        os.write(ours, b"word\n")
        assert process.stderr
        assert process.stderr.read() == ""
        assert process.wait(60) == 6
        said = b""
        while b"got word" not in said:
            said += os.read(ours, 1000)  # an error once all is read
    os.close(ours)
    assert "exec mini-0-x --container=mini --stdin --tty -- " in kubectl.asked()[-1]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            FORBIDDEN.format("pods/exec", "create"),
            FORBIDDEN.format("pods/exec", "create") + ": ask for a Role that allows it",
        ),
        ('error: container not found ("mini")', 'container not found ("mini"): see the status of the MiniCluster'),
    ],
    ids=["forbidden", "no container"],
)
def test_an_exec_that_fails_is_an_error_of_one_line(kubectl: Kubectl, said: str, message: str) -> None:
    (kubectl.folder / "refused").write_text(f"{said}\n")
    done = kubectl.run("flux", "mini", "--", "jobs")
    assert (done.code, done.out, done.err) == (1, "", f"minicluster: {message}\n")


LEAVING = {"deletionTimestamp": "2030-01-01T12:00:00Z"}
READY = "`minicluster wait mini` returns when it is ready"
#: The objects of the cluster, and the message of `minicluster flux`
STATES: dict[str, tuple[Callable[[Path], dict[str, Any]], str]] = {
    "no cluster": (
        lambda _: {"job": None, "pods": None, "jobs": None},
        "there is no MiniCluster mini in namespace default: see `minicluster list -A` and give its -n",
    ),
    "suspended": (
        lambda _: {"job": suspended(), "pods": None},
        f"mini is Suspended: {SUSPENDED}; " + READY,
    ),
    "no quorum": (
        lambda folder: {"pods": {"items": [lead(folder, WAITS)]}},
        "mini is Starting: waits for the quorum, 2 of 4 nodes are up; " + READY,
    ),
    "failed": (
        lambda folder: {"job": job(end=("Failed", "Why")), "pods": {"items": [lead(folder, ended(3))]}},
        "mini has ended (exit code 3): Failed: Why: said why",
    ),
    "complete": (
        lambda _: {"job": job(end=("Complete", "Why")), "pods": None},
        "mini has ended (exit code 0): Complete: Why: said why",
    ),
    "leaving": (
        lambda folder: {"pods": {"items": [lead(folder, **LEAVING)]}},
        "mini is Starting: the lead's pod mini-0-x was told to stop; Kubernetes replaces it when it has ended; "
        + READY,
    ),
    "being suspended": (
        lambda folder: {"job": suspended(), "pods": {"items": [lead(folder, **LEAVING)]}},
        f"mini is Suspended: {SUSPENDED}; " + READY,
    ),
    "replaced": (
        lambda folder: {"pods": {"items": [lead(folder, ended(85))]}},
        "mini is Starting: the lead's pod mini-0-x is Failed: exit code 85; Kubernetes replaces it, or ends the Job; "
        + READY,
    ),
    "may not read pods": (
        lambda _: {"pods": FORBIDDEN.format("pods", "list")},
        FORBIDDEN.format("pods", "list") + ": ask for a Role that allows it",
    ),
}


@pytest.mark.parametrize("case", STATES)
def test_the_flux_command_with_no_wait_says_why_the_lead_can_not_be_used(kubectl: Kubectl, case: str) -> None:
    objects, message = STATES[case]
    kubectl.has(**objects(kubectl.folder))
    # the lead's answer to `minicluster status`
    kubectl.tool("sh", f"echo '{json.dumps([SETTINGS, flux(online='0-1')])}'")
    done = kubectl.run("flux", "mini", "--no-wait", "--", "jobs")
    assert (done.code, done.out, done.err) == (1, "", f"minicluster: {message}\n")


def test_the_flux_command_waits_for_a_lead_that_starts(kubectl: Kubectl) -> None:
    starts = {"items": [lead(kubectl.folder, WAITS)]}
    # asked for: the lead, the name of the MiniCluster, the lead again and again, and all pods once it runs
    kubectl.has(**{f"pods_{number}": {"items": []} for number in (1, 2, 3, 4)}, pods_5=starts, pods_6=starts)
    kubectl.tool(
        "sh",
        f"""case $2 in *minicluster-process*) exec /bin/sh "$@" ;; esac
echo '{json.dumps([SETTINGS, flux(online="0-2")])}'""",
    )
    kubectl.flux("exit 4")
    done = kubectl.run("flux", "mini", "--", "jobs")
    assert (done.code, done.err.splitlines()) == (
        4,
        [
            "minicluster: mini: Starting: the lead has no pod: `kubectl describe job mini` says why",
            "minicluster: mini: Starting: waits for the quorum, 3 of 4 nodes are up",
        ],
    )


def test_the_flux_command_reports_a_quorum_that_kubernetes_has_not_seen_yet(kubectl: Kubectl) -> None:
    kubectl.has(pods={"items": [lead(kubectl.folder, WAITS)]})
    kubectl.tool("sh", f"echo '{json.dumps([SETTINGS, flux(online='0-3')])}'")
    done = kubectl.run("flux", "mini", "--no-wait", "--", "jobs")
    why = "the quorum is there, and Kubernetes has yet to see that the pod mini-0-x is ready"
    assert (done.code, done.err) == (1, f"minicluster: mini is Starting: {why}; {READY}\n")


def test_the_shell_command_needs_no_quorum(kubectl: Kubectl) -> None:
    kubectl.has(pods={"items": [lead(kubectl.folder, WAITS)]})
    (kubectl.folder / "home" / "flux-view.sh").write_text("")
    assert kubectl.run("shell", "mini", stdin="echo in").out == "in\n"


@pytest.mark.parametrize("program", ["minicluster", "kubectl-minicluster"])
def test_the_flux_command_without_words_for_flux_is_refused(program: str) -> None:
    called = program.replace("-", " ")
    for words in (["mini"], ["mini", "jobs"], ["mini", "--"], []):
        script = f"import sys; sys.argv[0] = '/a/{program}'; from minicluster.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", script, "flux", *words], capture_output=True, text=True, check=False, timeout=60
        )
        message = f"put -- before the flux command: {called} flux NAME -- jobs; see `{called} flux --help`"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{called}: {message}\n")


@pytest.mark.parametrize(
    "words",
    [("flux", "mini", "--", "jobs"), ("shell", "mini"), ("output", "mini", "f1", "-f"), ("logs", "mini", "-f")],
    ids=str,
)
def test_a_lead_that_can_not_start_ends_the_wait_for_it(kubectl: Kubectl, words: tuple[str, ...]) -> None:
    kubectl.has(pods={"items": [lead(kubectl.folder, waiting("InvalidImageName", "no image"))]})
    done = kubectl.run(*words)
    way = "correct the image's name, or set pod.imagePullSecrets for its registry"
    why = f"mini can't start: the lead is Pending: InvalidImageName: no image: {way}"
    assert (done.code, done.out, done.err.splitlines()[-1]) == (1, "", f"minicluster: {why}")
