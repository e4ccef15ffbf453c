"""Each verb in each state of a MiniCluster."""

import json
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from live_kubectl import Kubectl, lead
from minicluster.cluster.find import lead_of
from minicluster.console.streams import aloud
from minicluster.errors import MiniClusterError
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.port import KubePort
from minicluster.lead import ask
from minicluster.lifecycle.scaling import scale
from minicluster.status.document import document
from minicluster.status.lookup import Cluster
from minicluster.status.reported import find_jobs
from minicluster.status.snapshot import take_snapshot
from minicluster.waiting import logs
from minicluster.waiting.ready import find_ready_lead
from minicluster.waiting.wait import wait
from status_samples import CREATED, SETTINGS, ended, flux, job, suspended, workload

TEXT = b"no input\nminicluster: the job failed with exit code 7\n"
END = "PodFailurePolicy"
#: What the lead's flux does: it answers `status` and `jobs`, and the conversation about nodes
FLUX = """\
case $* in
*python*)
  read -r program
  case $program in
  '[["history"'*) echo '{"purged": 0, "earlier": 0}' ;;
  *'["requeue"'*) echo '{"running": [], "more": 0, "waiting": 0}' ;;
  *'["followed"'*) echo '{"ready": "0.88.0"}'; read -r question; echo '{"key": "", "online": true}' ;;
  *) cat "${0%/*}/answer" ;;
  esac ;;
*) echo "$*" ;;
esac"""


class World(Kubectl):
    """What kubectl knows of a MiniCluster."""

    def is_in(self, state: str) -> None:
        """Bring it into a state."""
        getattr(self, f"_{state}")()

    def _healthy(self) -> None:
        self.has(job=job())

    def _held(self) -> None:
        held = workload(("QuotaReserved", "False", "no quota"))
        self.has(job=suspended(queue="q"), pods={"items": []}, workloads={"items": [held]})

    def _failed(self) -> None:
        found = job(end=("Failed", END))
        found["status"]["conditions"][-1]["message"] = (
            "Container mini for pod lab/mini-0-x failed with exit code 7 matching FailJob rule at index 1"
        )
        self.has(job=found, pods={"items": [lead(self.folder, ended(7))]}, pod=lead(self.folder, ended(7)))

    def _ended(self) -> None:
        self.has(job=job(end=("Complete", END)), pods={"items": [lead(self.folder, ended(0))]})

    def _suspended(self) -> None:
        self.has(job=suspended(), pods={"items": []})

    def _silent(self) -> None:
        # only the command in the pod is silent
        self.flux("exec sleep 5")

    def _burst(self) -> None:
        self.has(job=job(**{"flux.bursting.leadBroker.address": "root:30093"}))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    home = tmp_path / "home"
    (home / "minicluster").mkdir()
    (home / "minicluster" / "agent.json").write_text(json.dumps(SETTINGS))
    (home / "bin" / "answer").write_text(json.dumps(flux()))
    (tmp_path / "logs").write_bytes(TEXT)
    world.flux(FLUX)
    for name, value in {**world.environment, "MINICLUSTER_HOME": str(home)}.items():
        monkeypatch.setenv(name, value)
    for what in ("status", "jobs"):
        monkeypatch.setitem(ask.QUESTIONS, what, ask.QUESTIONS[what]._replace(seconds=1))
    answers = {"metadata": '{"chart": "minicluster"}'}
    monkeypatch.setattr(KubePort, "helm", lambda _, *words, **__: answers.get(words[1], ""))
    return world


def status(kube: KubePort) -> Any:
    shown = document(take_snapshot(kube, "mini", datetime.fromisoformat(CREATED)))
    return shown["state"], shown["why"], shown["nodes"] and shown["nodes"]["up"]


def waited(until: Any) -> Callable[[KubePort], Any]:
    def of(kube: KubePort) -> Any:
        said: list[str] = []
        end = wait(Cluster(kube.within(0.5), "mini"), until, said.append)
        return end, said

    return of


def sized(kube: KubePort) -> Any:
    said: list[str] = []
    scale(kube, "mini", 3, "", 10, aloud(said.append))
    return said


def log(kube: KubePort) -> Any:
    return b"".join(part.text for part in logs.show(Cluster(kube, "mini"), lead_of("mini"), ""))


def ran(kube: KubePort) -> Any:
    found = find_ready_lead(kube, "mini", print, waits=False)
    with closing(kube.run(found.pod.name, found.pod.runner, found.flux_words("getattr", "size"))) as channel:
        return ask.read(channel, 30 if channel.wait(None, 1) else 0), channel.exit_code


def jobs(kube: KubePort) -> Any:
    return find_jobs(kube, "mini", print).rows


VERBS: dict[str, Callable[[KubePort], Any]] = {
    "status": status,
    "wait": waited("quorum"),
    "wait for the end": waited("end"),
    "scale": sized,
    "logs": log,
    "flux": ran,
    "jobs": jobs,
}
GAVE_UP = "mini in namespace lab: gave up after 0.5 s"
OVER = f"Complete: {END}: said why"
FAILED = "the container mini of pod mini-0-x failed with exit code 7"
LOST = "Failed: the work failed with exit code 7: no input"
HELD = "Suspended: Kueue's queue q: no quota (R)"
SUSPENDED = """Suspended: the Job is suspended: `kubectl patch job mini --type=merge -p '{"spec":{"suspend":false}}'` \
resumes it"""
READY = "`minicluster wait mini` returns when it is ready"
UNKNOWN = "its jobs are known while its lead runs, and later with report.log or report.path"
SILENT = "the lead's broker does not answer (no answer within 1 s): `minicluster logs mini -n lab` says more"
JOINS = "its nodes join the cluster of root:30093: see the status of that cluster"
RESIZED = ["mini in namespace lab: size 4 -> 3"]
#: What each verb tells in each state; a text is an error
EXPECTED: dict[str, dict[str, Any]] = {
    "healthy": {
        "status": ("Running", "", 4),
        "wait": (None, []),
        "wait for the end": GAVE_UP,
        "scale": RESIZED,
        "logs": TEXT,
        "flux": (b"getattr size\n", 0),
        "jobs": [],
    },
    "held": {
        "status": ("Suspended", "Kueue's queue q: no quota (R)", None),
        "wait": f"{GAVE_UP}: {HELD}",
        "wait for the end": f"{GAVE_UP}: {HELD}",
        "logs": f"there is no log: {HELD}",
        "flux": f"mini is {HELD}; {READY}",
        # its events are not asked for
        "jobs": f"mini is Suspended: Kueue's queue q holds it: `kubectl get workloads` says why; {UNKNOWN}",
    },
    "failed": {
        "status": ("Failed", "the work failed with exit code 7: no input", None),
        "wait": ((7, f"mini has ended (exit code 7): {LOST}"), []),
        "wait for the end": ((7, f"mini has ended (exit code 7): {LOST}"), []),
        "scale": f"mini has ended, so it has no size: Failed: {FAILED}",
        "logs": TEXT,
        "flux": f"mini has ended (exit code 7): {LOST}",
    },
    "ended": {
        "status": ("Complete", f"{END}: said why", None),
        "wait": ((0, f"mini has ended (exit code 0): {OVER}"), []),
        "wait for the end": ((0, f"mini has ended (exit code 0): {OVER}"), []),
        "scale": f"mini has ended, so it has no size: {OVER}",
        "logs": TEXT,
        "flux": f"mini has ended (exit code 0): {OVER}",
        "jobs": f"mini is {OVER}; {UNKNOWN}",
    },
    "suspended": {
        "status": ("Suspended", SUSPENDED.removeprefix("Suspended: "), None),
        "wait": f"{GAVE_UP}: {SUSPENDED}",
        "wait for the end": f"{GAVE_UP}: {SUSPENDED}",
        "logs": f"there is no log: {SUSPENDED}",
        "flux": f"mini is {SUSPENDED}; {READY}",
        "jobs": f"mini is {SUSPENDED}; {UNKNOWN}",
    },
    "silent": {
        "status": ("Unknown", SILENT, None),
        "wait": (None, []),
        "logs": TEXT,
        "flux": (None, None),
        "jobs": f"mini is Unknown: {SILENT}; {UNKNOWN}",
    },
    "burst": {
        "status": ("Running", JOINS, None),
        "wait": (None, []),
        "scale": "mini is a burst, and the Flux of its root has its nodes: leave out the wait",
        "logs": TEXT,
        "flux": (b"getattr size\n", 0),
        "jobs": f"mini is Running: {JOINS}; {UNKNOWN}",
    },
}
CASES = [(state, verb) for state, verbs in EXPECTED.items() for verb in verbs]


def outcome(verb: str, kube: KubePort) -> Any:
    """Return what a verb tells; an error's message."""
    try:
        return VERBS[verb](kube)
    except MiniClusterError as error:
        return str(error)


@pytest.mark.parametrize(("state", "verb"), CASES, ids=[f"{verb}, {state}" for state, verb in CASES])
def test_a_verb_tells_what_holds_in_a_state(world: World, state: str, verb: str) -> None:
    world.is_in(state)
    assert outcome(verb, Kubernetes(namespace="lab")) == EXPECTED[state][verb]
