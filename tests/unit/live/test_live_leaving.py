"""The jobs that end with nodes: what `scale` says first, and how it asks; with stand-ins of kubectl and Helm."""

import json
import os
import pty
import time
from pathlib import Path
from typing import Any

import pyte
import pytest
from live_kubectl import Kubectl, say
from minicluster.kube.kubectl import Kubernetes
from minicluster.lead import ask
from minicluster.lifecycle import leaving
from minicluster.lifecycle.leaving import AffectedJobs, JobImpact
from status_samples import job

from tools.clients import Done

HELM = r"""
printf '%s\n' "$*" >>"${0%/*}/helm.asked"
case "$*" in *metadata*) echo '{"chart": "minicluster"}' ;; esac
"""
JOBS = [
    {"id": "fA", "name": "lmp", "nodes": "mini-[2-3]", "again": False, "is_work": False},
    {"id": "fB", "name": "plot", "nodes": "mini-3", "again": True, "is_work": False},
    {"id": "fC", "name": "sh", "nodes": "mini-[0-3]", "again": False, "is_work": True},
]
TOLD = (
    "mini: 5 jobs run on the nodes that go, with 25 s to end",
    "mini: job fA (lmp) on mini-[2-3] is then cancelled",
    "mini: job fB (plot) on mini-3 is then put back into the queue",
    "mini: job fC (the command of the MiniCluster) on mini-[0-3] is then cancelled",
    "mini: and 2 more jobs",
)
SCALED = "mini in namespace lab: size 4 -> 2"


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    kubectl = Kubectl(tmp_path)
    kubectl.tool("helm", HELM)
    kubectl.has(job=job(size=4, **{"pod.terminationGracePeriodSeconds": "40", "pod.onStop": "cancel"}), configmap=None)
    answer = json.dumps({"running": JOBS, "more": 2, "waiting": 1})
    kubectl.flux(f"""read -r program; printf '%s ' "$@" >"$0.asked"; echo '{answer}'""")
    return kubectl


def helm(kubectl: Kubectl) -> list[str]:
    """Return what Helm was asked."""
    path = kubectl.folder / "helm.asked"
    return path.read_text().splitlines() if path.exists() else []


def test_a_script_that_shrinks_is_told_which_jobs_end_and_goes_on(kubectl: Kubectl) -> None:
    assert kubectl.run("scale", "mini", "2") == Done(0, "", say(*TOLD, SCALED))
    # the ranks of the nodes that go
    assert (kubectl.folder / "home/bin/flux.asked").read_text().endswith(" cancel 2-3 ")
    assert kubectl.run("scale", "mini", "8") == Done(0, "", say("mini in namespace lab: size 4 -> 8"))


@pytest.mark.parametrize(
    ("words", "answer", "code", "last"),
    [
        ((), "y\n", 0, SCALED),
        ((), "n\n", 1, "nothing has changed"),
        ((), "\x04", 130, "nothing has changed"),
        (("--yes",), "", 0, SCALED),
    ],
)
def test_a_person_on_a_terminal_is_asked(
    kubectl: Kubectl, words: tuple[str, ...], answer: str, code: int, last: str
) -> None:
    ours, terminal = pty.openpty()
    with kubectl.start("scale", "mini", "2", *words, stdin=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        while part := _read(ours):
            shown += part
            if part.endswith(b"[y/N]: "):
                os.write(ours, answer.encode())
        assert process.wait(60) == code
    os.close(ours)
    screen = pyte.Screen(200, 60)
    pyte.ByteStream(screen).feed(shown)
    lines = [line.rstrip() for line in screen.display if line.strip()]
    asks = [line for line in lines if line.strip().startswith("Scale mini to 2? [y/N]")]
    assert bool(asks) == (not words)
    assert lines[-1] == f"minicluster: {last}"
    assert any("upgrade " in line for line in helm(kubectl)) == (code == 0)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other side is closed
        return b""


def test_a_lead_that_is_silent_stops_nothing(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = ask.QUESTIONS["jobs that would end"]
    assert limit.seconds <= 10
    monkeypatch.setitem(ask.QUESTIONS, "jobs that would end", limit._replace(seconds=0.5))
    kubectl.flux("exec sleep 40")
    begin = time.monotonic()
    unknown = (
        "mini: its jobs are not known: no answer within 0.5 s; those that run on the nodes that go have 25 s to end"
    )
    assert kubectl.run("scale", "mini", "2") == Done(0, "", say(unknown, SCALED))
    assert time.monotonic() - begin < 30
    kubectl.flux("echo 'what is that'")
    assert "its jobs are not known: " in kubectl.run("scale", "mini", "2").err
    # no lead, no jobs
    kubectl.has(pods={"items": []})
    assert kubectl.run("scale", "mini", "2") == Done(0, "", say(SCALED))


@pytest.mark.parametrize(
    ("going", "fate", "lines"),
    [
        (AffectedJobs([]), JobImpact("no time"), []),
        (AffectedJobs([], waiting=2), JobImpact("no time"), []),
        (AffectedJobs([], waiting=2), JobImpact("no time", waiting="lost"), ["a: 2 jobs wait, and are lost"]),
        (
            AffectedJobs([JOBS[2]], waiting=1),
            JobImpact("no time", "goes back", "is cancelled", "begins again", "lost"),
            [
                "a: 1 job runs on its nodes, with no time to end",
                "a: job fC (the command of the MiniCluster) on mini-[0-3] begins again",
                "a: 1 job waits, and is lost",
            ],
        ),
    ],
)
def test_jobs_are_told_by_what_happens_to_them(going: AffectedJobs, fate: JobImpact, lines: list[str]) -> None:
    said: list[str] = []
    assert leaving.tell("a", going, "its nodes", fate, said.append) == bool(lines)
    assert said == lines


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        ({}, 15),
        ({"pod.terminationGracePeriodSeconds": "600"}, 585),
        ({"pod.terminationGracePeriodSeconds": "10"}, 5),
        ({"pod.terminationGracePeriodSeconds": "60", "archive.path": "/a", "archive.dumpSeconds": "20"}, 32),
    ],
)
def test_the_time_of_jobs_is_that_of_the_pods(values: dict[str, str], seconds: int) -> None:
    assert leaving.of_pods(job(**values)).time == f"{seconds} s"
    assert leaving.keeps_queue(job(**values)) == ("archive.path" in values)


def test_the_lead_of_no_broker_is_not_asked() -> None:
    assert leaving.find_affected(Kubernetes(), None, "cancel") == AffectedJobs([])
    waits: Any = type("Lead", (), {"is_running": True, "is_ready": False})()
    assert leaving.find_affected(Kubernetes(), waits, "cancel") == AffectedJobs([], why_unknown="the lead is not ready")
