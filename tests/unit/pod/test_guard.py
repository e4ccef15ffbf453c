"""Which job ends before the kernel ends its container, and what is said of it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import guard
import node_jobs
import pytest
from epilog import Epilog
from fake_flux import FakeFlux, install
from node_jobs import children, descendants, send_to_all

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
        guard.main(tmp_path, RESERVE, "demo-3", tmp_path / "flux", ["1"])


#: Other tests run at the same time
FIRST = (1 << 50) + (os.getpid() << 8)
SECOND = FIRST + 1
Start = Callable[..., "subprocess.Popen[str]"]
#: A shell of Flux, whose task has a child that takes bytes
TASK = "import sys, time; a = b'x' * int(sys.argv[1]); print(flush=True); time.sleep(600)"
#: Leaves its parents, its group and its session
AWAY = f"import os\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n{TASK}"
#: Four processes with one memory
FORKS = TASK.replace("print", "[None for _ in range(2) if os.fork() and 0]; print").replace("import ", "import os, ")
NAMED = "ctypes.CDLL(None).prctl(15, b'flux-shell', 0, 0, 0)"
SHELL = """\
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(15, b'flux-shell', 0, 0, 0)
task = ['/bin/sh', '-c', '"$@"; sleep 600', 'sh', sys.executable, '-c', sys.argv[1], sys.argv[2]]
subprocess.run(task, env={**os.environ, 'MINICLUSTER_JOB': sys.argv[-1]})
"""


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start the shell of a job, whose task takes bytes; only these are jobs to the guard."""
    started: list[subprocess.Popen[str]] = []

    def start(number: int, taken: int, task: str = TASK) -> "subprocess.Popen[str]":
        words = [sys.executable, "-c", SHELL, task, str(taken), str(number)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
        started.append(process)
        assert process.stdout
        assert process.stdout.readline() == "\n"
        return process

    real = node_jobs.jobs
    monkeypatch.setattr(guard, "jobs", lambda: {key: found for key, found in real().items() if key in (FIRST, SECOND)})
    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, 9)
    send_to_all([pid for pid, number in node_jobs.marked().items() if number in (FIRST, SECOND)], 9)
    for process in started:
        process.communicate()


def test_the_processes_of_a_job_are_those_below_its_shell(job: Start) -> None:
    shells = [job(number, 1 << 20).pid for number in (FIRST, SECOND)]
    found = guard.jobs()
    assert {number: len(pids) for number, pids in found.items()} == {FIRST: 2, SECOND: 2}
    assert not {*shells} & {pid for pids in found.values() for pid in pids}


def test_a_process_that_has_left_its_parents_and_its_session_is_still_that_of_its_job(job: Start) -> None:
    job(FIRST, 100 << 20, AWAY)
    job(SECOND, 50 << 20)
    found = guard.jobs()
    away = max(found[FIRST], key=node_jobs.resident)
    assert away not in descendants([os.getpid()], children())
    assert guard.largest(found, {}) == FIRST


def test_the_shell_of_a_job_in_a_job_is_a_part_of_the_outer_one(job: Start) -> None:
    job(FIRST, 1 << 20, AWAY.replace("a = b", f"import ctypes; {NAMED}; a = b"))
    found = guard.jobs()
    assert found.keys() == {FIRST}
    assert "flux-shell\n" in [Path(f"/proc/{pid}/comm").read_text() for pid in found[FIRST]]


def test_what_processes_share_counts_once(job: Start) -> None:
    job(FIRST, 200 << 20, FORKS)
    job(SECOND, 300 << 20)
    found = guard.jobs()
    assert sum(map(node_jobs.resident, found[FIRST])) > 800 << 20
    assert 200 << 20 < guard.taken(found[FIRST]) < 260 << 20
    assert guard.largest(found, {}) == SECOND


def test_shares_are_measured_only_where_they_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    used, measured = {1: 10, 2: 10, 3: 50, 4: 15, 5: 15}, []
    monkeypatch.setattr(node_jobs, "resident", used.__getitem__)
    monkeypatch.setattr(node_jobs, "share", lambda pid: measured.append(pid) or node_jobs.Taken(5, 0))
    assert node_jobs.largest({7: [1, 2], 8: [3], 9: [4, 5]}, {}) == 8
    assert measured == []
    # of the shared memory that is a job's, 5 of 45 bytes may be what it has mapped
    assert node_jobs.largest({7: [1, 2], 8: [3], 9: [4, 5]}, {7: 45}) == 7
    assert sorted(measured) == [1, 2, 3]


def test_a_kernel_that_does_not_tell_shares_has_the_memory_that_processes_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/statm").write_text("9 3 1 1 0 1 0\n")
    monkeypatch.setattr(node_jobs, "PROC", tmp_path)
    assert node_jobs.taken([7, 8]) == 3 * node_jobs.PAGE_BYTES


def test_processes_of_other_containers_are_none_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, group in (("self", "0::/"), ("7", "0::/"), ("8", "0::/../other")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup").write_text(f"{group}\n")
        (tmp_path / name / "environ").write_bytes(b"A=1\0MINICLUSTER_JOB=42\0B=2\0")
    monkeypatch.setattr(node_jobs, "PROC", tmp_path)
    assert node_jobs.marked() == {7: 42}


class Lead(FakeFlux):
    """The instance, which records the exceptions of jobs."""

    def job_manager_raise(self, payload: object, _: object) -> None:
        self.done.append(payload)


def test_the_job_with_most_of_the_memory_ends_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], job: Start
) -> None:
    write(tmp_path, "v2", LIMIT, 400 << 20)
    monkeypatch.setattr(guard, "outside", lambda _: 0)
    (tmp_path / "local-0").touch()
    lead = Lead({}, set())
    install(monkeypatch, lead)
    monkeypatch.delenv("FLUX_URI", raising=False)
    small, large = job(FIRST, 1 << 20), job(SECOND, 300 << 20)
    memory, epilog = guard.memory_of(tmp_path), Epilog(tmp_path, is_own=True)
    guard.Guard(memory, 1700 << 20, "demo-3", tmp_path, epilog).look()
    assert large.wait(30) == 0
    assert small.poll() is None
    assert os.environ.pop("FLUX_URI") == f"local://{tmp_path}/local-0"
    [told] = lead.done
    why = (
        r"took 3\d\d(\.\d)? MiB of 2 GiB on demo-3, where flux\.memoryReserve keeps 1.7 GiB: "
        r"it ended before the kernel would end all of the container"
    )
    assert re.fullmatch(why, told.pop("note"))
    assert told == {"id": SECOND, "type": "memory", "severity": 0}
    assert re.fullmatch(rf"minicluster: job \S+ {why}\n", capsys.readouterr().err)
