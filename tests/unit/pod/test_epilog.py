"""What a job leaves when it has ended on a node: what is taken away, and what stays."""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import epilog
import job_notes
import node_jobs
import pytest
import shared_memory
from epilog import Epilog
from node_jobs import send_to_all
from node_state import f58

from tools.clients import until

#: Other tests run at the same time
FIRST = (1 << 50) + (os.getpid() << 8)
SECOND = FIRST + 1
NAME = f"job {f58(FIRST)}"
LIBC = ctypes.CDLL(None, use_errno=True)
KIB, MIB = 1 << 10, 1 << 20


@dataclass
class Node:
    """A node: jobs note their times there, and its shared memory is a folder of the test."""

    run: Path
    shm: Path
    alive: set[int] = field(default_factory=set)
    uptime: float = 1000.0
    epilog: Epilog = field(init=False)

    def restart(self) -> None:
        """Let the guard start, for the first time or again."""
        self.epilog = Epilog(self.run, is_own=True)

    def begin(self, job: int) -> None:
        self._note(job, "")
        self.alive.add(job)

    def end(self, job: int) -> None:
        self._note(job, f" {self.uptime}")
        self.alive.discard(job)

    def _note(self, job: int, end: str) -> None:
        self.uptime += 10
        with (self.run / "jobs").open("a") as file:
            file.write(f"{job} {job} {self.uptime - 5}{end}\n")

    def make(self, name: str, is_seen: bool = True) -> Path:
        """Make a file now, which the guard sees before something else happens."""
        path = self.shm / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 64 * KIB)
        if is_seen:
            self.epilog.look()
        return path

    def left(self) -> list[str]:
        """Return the names in shared memory after a look."""
        self.epilog.next_use = 0
        self.epilog.look()
        return sorted(path.name for path in self.shm.iterdir())


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    run, shm = tmp_path / "run", tmp_path / "shm"
    for folder in (run, shm):
        folder.mkdir()
    node = Node(run, shm)
    monkeypatch.setattr(shared_memory, "SHM_FOLDER", str(shm))
    monkeypatch.setattr(shared_memory, "_segments", lambda: iter(()))
    monkeypatch.setattr(job_notes, "_is_shell", node.alive.__contains__)
    for module in (epilog, job_notes):
        monkeypatch.setattr(module, "uptime", lambda: node.uptime)
    by_marks = lambda: {job: [p for p, its in node_jobs.marked().items() if its == job] for job in node.alive}  # noqa: E731
    monkeypatch.setattr(node_jobs, "jobs", by_marks)
    # what is new was made now
    monkeypatch.setattr(epilog, "since_start", lambda _, now: now)
    node.restart()
    return node


@pytest.fixture
def process() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Run a program of Python that prints a line; it ends with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(text: str, *words: object, job: int | None = None) -> "subprocess.Popen[str]":
        mark = {"MINICLUSTER_JOB": str(job)} if job else {}
        program = f"import mmap, os, sys, time\n{text}\nprint(flush=True)\ntime.sleep(600)"
        argv = [sys.executable, "-c", program, *map(str, words)]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={**os.environ, **mark})
        started.append(process)
        assert process.stdout
        assert process.stdout.readline() == "\n"
        return process

    yield start
    send_to_all([pid for pid, number in node_jobs.marked().items() if number in (FIRST, SECOND)], 9)
    for process in started:
        process.kill()
        process.communicate()


OPEN = "file = open(sys.argv[1])"
MAP = f"{OPEN}; memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ); file.close()"
ENTER = "os.chdir(sys.argv[1])"


def test_what_a_job_has_made_goes_with_it_and_the_rest_stays(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.make("before")
    assert node.left() == ["before"]
    node.begin(FIRST)
    node.make("psm_1")
    node.make("folder/file")
    assert node.left() == ["before", "folder", "psm_1"]
    node.make("before").write_bytes(b"changed")
    node.end(FIRST)
    assert node.left() == ["before"]
    node.make("after")
    node.begin(SECOND)
    node.end(SECOND)
    assert node.left() == ["after", "before"]
    [said] = capsys.readouterr().err.splitlines()
    assert said == f"minicluster: {NAME} left 0.1 MiB of shared memory: it is freed"


def test_what_one_of_two_jobs_has_made_stays_until_both_have_ended(node: Node) -> None:
    node.begin(FIRST)
    node.begin(SECOND)
    node.make("which")
    node.end(FIRST)
    assert node.left() == ["which"]
    node.make("second")
    node.end(SECOND)
    assert node.left() == []


def test_what_one_of_two_jobs_uses_goes_with_that_one(
    node: Node, process: Callable[..., "subprocess.Popen[str]"]
) -> None:
    node.begin(FIRST)
    node.begin(SECOND)
    user = process(MAP, node.make("mapped", is_seen=False), job=FIRST)
    assert node.left() == ["mapped"]
    user.kill()
    user.wait()
    node.end(FIRST)
    assert node.left() == []


def test_what_only_one_of_two_jobs_can_have_written_is_its_own(
    node: Node, process: Callable[..., "subprocess.Popen[str]"]
) -> None:
    node.begin(FIRST)
    node.begin(SECOND)
    write = "open(sys.argv[1], 'wb').write(b'x' * int(sys.argv[2]))"
    pids = [process(write, node.shm / name, size, job=FIRST).pid for name, size in (("large", MIB), ("small", 9))]
    beside = process(write, node.shm.parent / "elsewhere", 99 * KIB, job=SECOND).pid
    node.epilog.look()
    # the small one may be of both
    found = {FIRST: pids, SECOND: [beside]}
    assert node.epilog.shared(found) == ({FIRST: MIB}, 4 * KIB)


def test_what_came_and_went_with_a_job_between_two_looks_is_taken_away(node: Node) -> None:
    node.begin(FIRST)
    node.make("psm_1", is_seen=False)
    node.end(FIRST)
    node.uptime -= 11
    assert node.left() == []


@pytest.mark.parametrize("use", [OPEN, MAP, ENTER], ids=["open", "mapped", "entered"])
def test_what_a_process_outside_uses_stays_as_long(
    node: Node, process: Callable[..., "subprocess.Popen[str]"], use: str
) -> None:
    node.begin(FIRST)
    path = node.make("used/file" if use == ENTER else "used")
    node.make("other")
    user = process(use, path.parent if use == ENTER else path)
    node.end(FIRST)
    assert node.left() == ["used"]
    user.kill()
    user.wait()
    assert node.left() == []


def test_what_the_next_job_uses_is_that_job_s(node: Node, process: Callable[..., "subprocess.Popen[str]"]) -> None:
    node.begin(FIRST)
    path = node.make("used")
    node.begin(SECOND)
    user = process(MAP, path, job=SECOND)
    node.end(FIRST)
    assert node.left() == ["used"]
    user.kill()
    user.wait()
    assert node.left() == ["used"]
    node.end(SECOND)
    assert node.left() == []


def test_nothing_is_removed_while_a_process_of_the_container_can_t_be_looked_at(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def used_by(_: int) -> Iterator[str]:
        raise PermissionError

    node.begin(FIRST)
    node.make("psm_1")
    node.end(FIRST)
    with monkeypatch.context() as patch:
        patch.setattr(shared_memory, "used_by", used_by)
        assert node.left() == ["psm_1"]
        # those of other containers are not in its way
        patch.setattr(shared_memory, "is_here", lambda _: False)
        assert node.left() == []


def test_the_next_guard_leaves_alone_what_no_job_has_made(node: Node) -> None:
    # memory.sh notes what is there at the container's start
    (node.run / "shm").write_bytes(f"{node.shm}/first\0{node.shm}/.hidden\0".encode())
    for name in ("first", ".hidden"):
        node.make(name, is_seen=False)
    node.begin(FIRST)
    node.restart()
    node.left()
    node.end(FIRST)
    node.make("between")
    node.begin(SECOND)
    node.make("psm_1")
    node.restart()
    assert node.left() == [".hidden", "between", "first", "psm_1"]
    node.end(SECOND)
    assert node.left() == [".hidden", "between", "first"]


def test_shared_memory_of_others_too_is_left_alone(node: Node) -> None:
    node.epilog = Epilog(node.run, is_own=False)
    node.begin(FIRST)
    node.make("psm_1")
    node.end(FIRST)
    assert node.left() == ["psm_1"]


def test_a_segment_is_found_and_removed() -> None:
    number = LIBC.shmget(0, 64 * KIB, 0o1600)
    LIBC.shmat.restype = ctypes.c_void_p
    address = LIBC.shmat(number, None, 0)
    try:
        piece = shared_memory.Piece("", number)
        first, last = piece.made()
        assert time.time() - 2 < first == last - 1
        assert piece in shared_memory.pieces()
        used = shared_memory.users()
        assert used
        assert os.getpid() in used[str(number)]
    finally:
        LIBC.shmdt(ctypes.c_void_p(address))
    used = shared_memory.users()
    assert used is not None
    assert str(number) not in used
    piece.remove()
    assert piece not in shared_memory.pieces()
    assert piece.size() == 0


def test_segments_of_other_containers_are_none_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sysvipc").mkdir()
    head = "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap"
    lines = [f"0 {number} 1600 8 {creator} 0 0 0 0 0 0 0 0 1 4096 0" for number, creator in ((3, 0), (4, 77))]
    (tmp_path / "sysvipc/shm").write_text("\n".join([head, *lines, ""]))
    (tmp_path / "shm").mkdir()
    monkeypatch.setattr(shared_memory, "PROC", tmp_path)
    monkeypatch.setattr(shared_memory, "SHM_FOLDER", str(tmp_path / "shm"))
    assert shared_memory.pieces() == {shared_memory.Piece("", 4)}
    assert shared_memory.Piece("", 4).size() == 4096


def marks() -> list[int]:
    """Return the jobs of this test that have a process."""
    return sorted(job for job in node_jobs.marked().values() if job in (FIRST, SECOND))


AWAY = "if os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)"


def test_processes_that_have_left_a_job_are_killed_when_it_has_ended(
    node: Node, process: Callable[..., "subprocess.Popen[str]"], capsys: pytest.CaptureFixture[str]
) -> None:
    node.begin(FIRST)
    node.begin(SECOND)
    beside = process(AWAY, job=SECOND)
    process(AWAY, job=FIRST)
    until(lambda: marks() == [FIRST, SECOND])  # the two that have forked may still end
    node.end(FIRST)
    node.left()
    assert marks() == [SECOND]
    assert capsys.readouterr().err == f"minicluster: {NAME} left a process, which is killed\n"
    node.end(SECOND)
    node.left()
    assert marks() == []
    beside.wait()


def test_shared_memory_counts_for_the_job_that_made_it_or_uses_it(
    node: Node, process: Callable[..., "subprocess.Popen[str]"]
) -> None:
    node.make("people")
    node.begin(FIRST)
    node.make("mine")
    node.begin(SECOND)
    used = node.make("used")
    node.make("whose")
    pid = process(MAP, used, job=SECOND).pid
    assert node.epilog.shared({FIRST: [], SECOND: [pid]}) == ({FIRST: 64 * KIB, SECOND: 64 * KIB}, 128 * KIB)
