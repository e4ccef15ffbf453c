"""What becomes of a job that holds its cores and does nothing, by what each of its nodes sees."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import idle_jobs
import pytest
from fake_flux import FakeFlux, install, resource_set
from idle_jobs import IdleJobs, IdleLimits
from job_notes import Run
from node_jobs import children, cpu_seconds, stats, threads
from node_state import FluxNode

JOB = 71462551552
WHY = "kept less than 0.05 of its 4 cores busy for 30 min (flux.idleJobs)"


class Lead(FakeFlux):
    """The instance: a job that has two cores on each of its nodes."""

    had: dict[int, tuple[int, int]]
    memo: dict[str, Any]

    def job_info_lookup(self, payload: Any, _: object) -> dict[str, str]:
        assert payload == {"id": JOB, "keys": ["R"], "flags": 0}
        return {"R": json.dumps(resource_set(self.had))}

    def job_manager_memo(self, payload: Any, _: object) -> None:
        for key, since in payload["memo"]["minicluster_idle"].items():
            self.memo.pop(key, None)
            self.memo |= {key: since} if since else {}

    def job_list_list_id(self, payload: Any, _: object) -> dict[str, Any]:
        assert payload == {"id": JOB, "attrs": ["annotations"]}
        return {"job": {"annotations": {"user": {"minicluster_idle": self.memo}}} if self.memo else {}}

    def job_manager_raise(self, payload: Any, _: object) -> None:
        self.done.append(payload)


class Node:
    """What the guard of a node sees, whose clock the test moves."""

    def __init__(self, rank: int, clock: list[float], folder: Path, action: str) -> None:
        self.rank, self.clock, self.used = rank, clock, 0.0
        self.jobs = IdleJobs(IdleLimits(0.05, 1800.0, action), FluxNode(folder))


Make = Callable[..., "Cluster"]


class Cluster:
    """Both nodes of the job."""

    def __init__(self, lead: Lead, monkeypatch: pytest.MonkeyPatch, folder: Path, action: str = "cancel") -> None:
        self.lead, self.clock, self.patch = lead, [0.0], monkeypatch
        self.nodes = [Node(rank, self.clock, folder, action) for rank in lead.had]
        clock = SimpleNamespace(monotonic=lambda: self.clock[0], time=lambda: 7e8)
        monkeypatch.setattr(idle_jobs, "time", clock)

    def work(self, minutes: int, *cores: float) -> list[Any]:
        """Let the job keep cores of its nodes busy; return what was done then."""
        for _ in range(minutes // 3):
            self.clock[0] += 180.0
            for node, busy in zip(self.nodes, cores, strict=True):
                node.used += 180.0 * busy
                self.lead.rank = node.rank
                self.patch.setattr(idle_jobs, "cpu_seconds", lambda _, node=node: node.used)
                node.jobs.look({7: Run(JOB, 0.0)})
        done, self.lead.done = self.lead.done, []
        return done


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    def make(had: dict[int, tuple[int, int]] | None = None, **more: Any) -> Cluster:
        lead = Lead({1: (2, 0), 3: (2, 0)}, {1, 3})
        lead.had, lead.memo = had or {1: (2, 0), 3: (2, 0)}, {}
        install(monkeypatch, lead)
        monkeypatch.setenv("FLUX_URI", "")
        monkeypatch.setattr(idle_jobs, "children", lambda _: {})
        (tmp_path / "local-0").touch()
        return Cluster(lead, monkeypatch, tmp_path, **more)

    return make


@pytest.mark.parametrize(("action", "severity"), [("cancel", 0), ("warn", 1)])
def test_a_job_that_does_nothing_on_any_node_is_told_of_once(
    make: Make, capsys: pytest.CaptureFixture[str], action: str, severity: int
) -> None:
    cluster = make(action=action)
    assert cluster.work(30, 0.01, 0.01) == []
    # 0.1 of two cores
    assert cluster.work(60, 0.01, 0.09) == [{"id": JOB, "type": "idle", "severity": severity, "note": WHY}]
    assert capsys.readouterr().err == f"minicluster: job f2ssuFro {WHY}\n"
    assert cluster.lead.memo == {"rank3": 7e8, "why": WHY}
    cluster.work(30, 0.2, 0.2)
    assert cluster.lead.memo == {}


def test_a_job_that_works_on_one_node_is_busy(make: Make) -> None:
    cluster = make()
    assert cluster.work(90, 0.01, 0.2) == []
    assert cluster.work(90, 0.2, 0.01) == []
    assert [*cluster.lead.memo] == ["rank3"]
    # busy again
    assert cluster.work(30, 0.01, 1.0) == []
    assert cluster.lead.memo == {}
    assert cluster.work(90, 0.0, 0.0) != []


def test_a_job_with_gpus_is_busy(make: Make) -> None:
    assert make({1: (2, 1), 3: (2, 0)}).work(90, 0.0, 0.0) == []


def test_a_job_is_busy_while_flux_does_not_answer_and_when_processes_have_left_it(make: Make) -> None:
    cluster = make()
    cluster.lead.errors["job-info.lookup"] = OSError(110, "timed out")
    assert cluster.work(60, 0.0, 0.0) == []
    del cluster.lead.errors["job-info.lookup"]
    cluster.nodes[0].used -= 1
    assert cluster.work(27, 0.0, 0.0) == []
    assert len(cluster.work(6, 0.0, 0.0)) == 1


def test_the_time_of_processes_is_that_of_their_ended_children_too() -> None:
    spin = "import time\nwhile time.process_time() < 0.2: pass"
    process = subprocess.Popen(
        ["/bin/sh", "-c", '"$0" -c "$1"; echo; sleep 600', sys.executable, spin],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout
    assert process.stdout.readline() == b"\n"
    before = time.process_time()
    try:
        of = stats()
        assert 0.15 < cpu_seconds([of[process.pid]]) < 2.0
        assert cpu_seconds([of[os.getpid()]]) >= before - 0.1
        assert (threads([of[process.pid]]), process.pid in children(of)[os.getpid()]) == (1, True)
    finally:
        os.killpg(process.pid, 9)
        process.communicate()
