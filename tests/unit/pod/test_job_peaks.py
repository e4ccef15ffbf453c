"""The most memory that jobs have taken on a node, by looks at processes of which each takes what is known."""

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import job_peaks
import pytest
from job_notes import Run
from job_peaks import Peaks, Process

JOB = 1 << 50
MIB = 1 << 20


class Node:
    """The jobs of a node as the epilog knows them, each with a shell of its id."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.processes: dict[int, dict[int, Process]] = {}  #: by the shell
        self.together: list[int] = []  #: what is told of processes that share memory
        self.begun = 0.0
        tree = lambda _: {shell: [*below] for shell, below in self.processes.items()}  # noqa: E731
        monkeypatch.setattr(job_peaks, "children", tree)
        monkeypatch.setattr(job_peaks, "stats", self.stats)
        monkeypatch.setattr(job_peaks, "memory_of_process", lambda pid: self.all().get(pid))
        monkeypatch.setattr(job_peaks, "taken", lambda *_: self.together.pop(0))
        monkeypatch.setattr(job_peaks, "FIRST_LOOK_SECONDS", 0.0)
        self.peaks = Peaks(folder / "usage", 8 << 30)
        self.folder = folder / "usage"

    def stats(self) -> dict[int, bytes]:
        """Return what the kernel tells of all: 1.5 s of a CPU for each, and one thread, or three."""
        line = "S 1 {0} {0} 0 0 0 0 0 0 0 100 50 0 0 20 0 {1} 0 0"
        return {pid: line.format(pid, 3 if pid == 12 else 1).encode() for pid in (*self.processes, *self.all())}

    def all(self) -> dict[int, Process]:
        return {pid: process for below in self.processes.values() for pid, process in below.items()}

    def look(self) -> dict[int, int]:
        """Let the guard look; return what the files say."""
        running = {shell: Run(JOB + shell, self.begun) for shell in self.processes}
        jobs = {run.job for run in running.values()}
        notes = SimpleNamespace(running=running, jobs=lambda: jobs, age=time.monotonic)
        self.peaks.next_look = 0.0
        self.peaks.look(SimpleNamespace(notes=notes, shared=lambda _: ({}, 0)))  # type: ignore[arg-type]
        texts = {file.name: file.read_text() for file in self.folder.iterdir() if file.is_file()}
        texts.pop("now", None)
        return {int(name) - JOB: int(text.partition(f" {8 << 30} ")[0]) for name, text in texts.items()}

    def now(self, shell: int) -> dict[str, float]:
        """Return what the guard says that a job uses now."""
        told: dict[str, float] = json.loads((self.folder / "now").read_text())["jobs"][str(JOB + shell)]
        return told


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Node:
    return Node(monkeypatch, tmp_path)


def test_the_peak_of_a_process_counts_also_from_between_two_looks(node: Node) -> None:
    node.processes = {1: {10: Process(90 * MIB, 20 * MIB)}}
    assert node.look() == {1: 90 * MIB}
    # little more is not noted
    node.processes[1] = {10: Process(90 * MIB + 1000, 20 * MIB)}
    assert node.look() == {1: 90 * MIB}
    node.processes[2] = {20: Process(5 * MIB, 5 * MIB)}
    node.processes[1] = {11: Process(30 * MIB, 30 * MIB)}
    assert node.look() == {1: 90 * MIB, 2: 5 * MIB}
    # a shell that was killed has left its job's file
    del node.processes[1]
    assert node.look() == {2: 5 * MIB}


def test_what_a_job_uses_now_is_in_a_file_and_its_most_threads_are_beside_its_peak(node: Node) -> None:
    node.processes = {1: {10: Process(90 * MIB, 20 * MIB), 12: Process(10 * MIB, 5 * MIB)}}
    node.look()
    always = {"memory_peak": 90 * MIB, "memory_limit": 8 << 30, "threads": 4}
    assert node.now(1) == {"memory": 25 * MIB, "cpu_seconds": 4.5, **always}
    node.processes[1] = {10: Process(90 * MIB, 30 * MIB)}
    node.look()
    assert node.now(1) == {"memory": 30 * MIB, "cpu_seconds": 3.0, **always}
    assert (node.folder / str(JOB + 1)).read_text() == f"{90 * MIB} {8 << 30} 4\n"


def test_what_processes_take_together_is_measured_only_when_it_may_be_more(node: Node) -> None:
    node.processes = {1: {10: Process(50 * MIB, 50 * MIB), 11: Process(50 * MIB, 50 * MIB)}}
    node.together = [60 * MIB]
    assert node.look() == {1: 60 * MIB}
    # they share as much as before
    assert node.look() == {1: 60 * MIB}
    node.processes[1][12] = Process(50 * MIB, 50 * MIB)
    node.together = [150 * MIB]
    assert node.look() == {1: 150 * MIB}


def test_a_job_that_begins_wakes_the_guard(node: Node) -> None:
    assert not node.peaks.wait(0.0)
    with (node.folder / "begun").open("r+b", buffering=0) as fifo:
        fifo.write(b"\n")
    node.peaks.next_look, node.peaks.next_young = 7.0, 3.0
    assert node.peaks.wait(60.0)
    assert node.peaks.next_look == 3.0
    # what is known is gone with the FIFO's text
    assert not node.peaks.wait(0.0)
    # a guard that starts again has the same
    assert Peaks(node.folder, 0).begun


@pytest.mark.parametrize(
    ("cost", "age", "pauses"),
    [(0.001, 0.2, [0.1, 0.05]), (0.001, 60, [1, 0.05]), (0.01, 0.2, [0.5, 0.5]), (0.01, 60, [10, 0.5])],
)
def test_looks_cost_a_part_of_a_core(
    node: Node, monkeypatch: pytest.MonkeyPatch, cost: float, age: float, pauses: list[float]
) -> None:
    monkeypatch.setattr(job_peaks.time, "monotonic", lambda: 100.0)
    node.peaks._pause(cost, age)
    assert [node.peaks.next_look - 100, node.peaks.next_young - 100] == pytest.approx(pauses)


def test_the_kernel_tells_the_memory_of_a_process() -> None:
    process = job_peaks.memory_of_process(os.getpid())
    assert process
    assert process.peak >= process.now > MIB
    assert job_peaks.memory_of_process(1 << 30) is None


def test_flux_s_own_shell_is_no_process_of_a_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "8").mkdir()
    (tmp_path / "7/status").write_text("Name:\tflux-shell\nVmHWM:\t 9000 kB\nVmRSS:\t 8000 kB\n")
    (tmp_path / "8/status").write_text("Name:\tlmp\nVmHWM:\t 9000 kB\nVmRSS:\t 8000 kB\n")
    monkeypatch.setattr(job_peaks, "PROC", tmp_path)
    assert [job_peaks.memory_of_process(pid) for pid in (7, 8)] == [None, Process(9000 << 10, 8000 << 10)]
