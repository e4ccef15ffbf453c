"""The use of GPUs, by a stand-in for nvidia-smi that answers as its manual says."""

import time
from pathlib import Path

import job_gpus
import pytest
from job_gpus import GpuUse, JobGpus, read_answer

from tools.clients import until

GIB = 1 << 30


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> JobGpus:
    """A node with the tool, which answers with the file `answer`, and a job 7 with two GPUs."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f'#!/bin/sh\necho "$*" >{tmp_path}/words\nsleep 0.2\ncat {tmp_path}/answer\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"/none:{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(job_gpus, "GPU_SECONDS", 0.0)
    monkeypatch.setattr(job_gpus, "GPU_PAUSE_FACTOR", 0)
    (tmp_path / "7.gpus").write_text("0 2\n")
    return JobGpus(tmp_path)


def ask(node: JobGpus, answer: str, *jobs: int) -> dict[int, GpuUse]:
    """Let the node take an answer."""
    (node.folder / "answer").write_text(answer)
    node.look(jobs)
    begin = time.monotonic()
    node.look(jobs)
    assert time.monotonic() < begin + 0.2, "it is waited for"
    until(lambda: node.look(jobs) or not node.child)
    return node.most


def test_a_job_has_the_use_of_its_gpus(node: JobGpus) -> None:
    first = "0, 1024, 8192, 50\n1, 4096, 8192, 100\n2, 3072, 8192, 10\n"
    assert ask(node, first, 7, 8) == {7: GpuUse(4 * GIB, 16 * GIB, 0.6)}
    assert (node.folder / "words").read_text() == (
        "--query-gpu=index,memory.used,memory.total,utilization.gpu --format=csv,noheader,nounits\n"
    )
    # the most memory, and the mean of what was busy
    assert ask(node, "0, 0, 8192, 0\n2, 0, 8192, 0\n", 7) == {7: GpuUse(4 * GIB, 16 * GIB, 0.3)}
    # of a part of its GPUs nothing is known
    assert ask(node, "0, 8000, 8192, 90\n2, [N/A], [N/A], [N/A]\n", 7)[7].memory == 4 * GIB
    node.forget(7)
    assert (node.most, [*node.folder.glob("*.gpus")]) == ({}, [])


def test_the_tool_is_asked_for_jobs_with_gpus_alone(node: JobGpus, monkeypatch: pytest.MonkeyPatch) -> None:
    node.look([8])
    assert node.child is None
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    without = JobGpus(node.folder)
    without.look([7])
    assert (without.tool, without.child) == (None, None)


def test_a_tool_that_hangs_is_killed(node: JobGpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_gpus, "TOOL_SECONDS", 0.0)
    (node.folder / "nvidia-smi").write_text("#!/bin/sh\nexec sleep 60\n")
    node.look([7])
    until(lambda: node.look([7]) or not node.child)
    assert node.most == {}


@pytest.mark.parametrize("answer", ["", "No devices were found\n", "0, 1, 2\n", "0, 1, 2, 3, 4\n", "\x00\n"])
def test_what_is_no_answer_says_nothing(answer: str) -> None:
    assert read_answer(answer) == {}
