"""Which job ends before the kernel ends its container, and what is said of it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import guard
import pytest
from fake_flux import FakeFlux, modules

RESERVE, LIMIT = 512 << 20, 2 << 30
#: Fields of memory.stat whose bytes the kernel can take back, by the version of cgroups
FILES = {
    "v1": ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_{}_file {}\n"),
    "v2": ("memory.max", "memory.current", "memory.stat", "{}_file {}\n"),
}


def write(folder: Path, version: str, limit: object, used: int, cached: int = 0) -> None:
    """Write the files of a container's memory."""
    *names, line = FILES[version]
    parts = "anon 7\n" + line.format("active", cached // 2) + line.format("inactive", cached - cached // 2)
    for name, text in zip(names, (f"{limit}\n", f"{used}\n", parts), strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize("version", FILES)
@pytest.mark.parametrize(
    ("used", "cached", "is_short"),
    [
        (LIMIT - RESERVE, 0, False),
        (LIMIT - RESERVE + 1, 0, True),
        # the cache of files is no need
        (LIMIT, RESERVE, False),
        (LIMIT, RESERVE - 2, True),
    ],
)
def test_memory_is_short_when_less_than_the_reserve_is_left(
    tmp_path: Path, version: str, used: int, cached: int, is_short: bool
) -> None:
    write(tmp_path, version, LIMIT, used, cached)
    assert guard.memory_of(tmp_path).is_short_of(RESERVE) == is_short


@pytest.mark.parametrize(("version", "limit"), [("v1", 9223372036854771712), ("v2", "max")])
def test_a_container_without_a_limit_has_no_guard(tmp_path: Path, version: str, limit: object) -> None:
    write(tmp_path, version, limit, 1)
    with pytest.raises(
        SystemExit, match=r"^minicluster: flux.memoryReserve: this container has no limit of memory; set"
    ):
        guard.main(tmp_path, RESERVE, "demo-3", tmp_path)


Start = Callable[[int, int], "subprocess.Popen[str]"]
#: A shell of Flux, whose task has a child that takes bytes
TASK = "import sys, time; a = b'x' * int(sys.argv[1]); print(flush=True); time.sleep(600)"
SHELL = """\
import ctypes, subprocess, sys
ctypes.CDLL(None).prctl(15, b'flux-shell', 0, 0, 0)
subprocess.run(['/bin/sh', '-c', '"$@"; exit $?', 'sh', sys.executable, '-c', sys.argv[1], sys.argv[2]])
"""


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start the shell of a job, whose task takes bytes; only these are jobs to the guard."""
    started: list[subprocess.Popen[str]] = []

    def start(number: int, taken: int) -> "subprocess.Popen[str]":
        words = [sys.executable, "-c", SHELL, TASK, str(taken), str(number)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
        started.append(process)
        assert process.stdout
        assert process.stdout.readline() == "\n"
        return process

    real = guard.jobs
    monkeypatch.setattr(guard, "jobs", lambda: {key: found for key, found in real().items() if key >= 1 << 50})
    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, 9)
        process.communicate()


FIRST, SECOND = (1 << 50) + 1, (1 << 50) + 2


def test_the_processes_of_a_job_are_those_below_its_shell(job: Start) -> None:
    shells = [job(number, 1 << 20).pid for number in (FIRST, SECOND)]
    found = guard.jobs()
    assert {number: len(pids) for number, pids in found.items()} == {FIRST: 2, SECOND: 2}
    assert not {*shells} & {pid for pids in found.values() for pid in pids}


class Lead(FakeFlux):
    """The instance, which records the exceptions of jobs."""

    def job_manager_raise(self, payload: object, _: object) -> None:
        self.done.append(payload)


def test_the_job_with_most_of_the_memory_ends_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], job: Start
) -> None:
    write(tmp_path, "v2", LIMIT, LIMIT - RESERVE + 1)
    (tmp_path / "local-0").touch()
    lead = Lead({}, set())
    for name, module in modules(lead).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delenv("FLUX_URI", raising=False)
    small, large = job(FIRST, 1 << 20), job(SECOND, 300 << 20)
    assert guard.end_largest(guard.memory_of(tmp_path), RESERVE, "demo-3", tmp_path)
    assert large.wait(30) == 0
    assert small.poll() is None
    assert os.environ.pop("FLUX_URI") == f"local://{tmp_path}/local-0"
    [told] = lead.done
    why = (
        r"took 3\d\d(\.\d)? MiB of 2 GiB on demo-3, where flux\.memoryReserve keeps 512 MiB: "
        r"it ended before the kernel would end all of the container"
    )
    assert re.fullmatch(why, told.pop("note"))
    assert told == {"id": SECOND, "type": "memory", "severity": 0}
    assert re.fullmatch(rf"minicluster: job \S+ {why}\n", capsys.readouterr().err)
