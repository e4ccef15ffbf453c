"""What becomes of a shortage of memory: a job ends, or the node takes no more while what is short is no job's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import guard
import node_jobs
import pytest
from epilog import Epilog
from fake_flux import FakeFlux, install
from node_state import Held

MIB = 1 << 20
#: The example of the page: 512 MiB, of which 100 are kept
LIMIT, RESERVE = 512 * MIB, 100 * MIB
DRAINED = "its memory is short: "


class Shared:
    """The shared memory of jobs, and of none."""

    def __init__(self, of_jobs: dict[int, int], rest: int) -> None:
        self.both = of_jobs, rest

    def shared(self, _: object) -> tuple[dict[int, int], int]:
        return self.both


class Lead(FakeFlux):
    """The instance, which records the exceptions of jobs."""

    def job_manager_raise(self, payload: Any, _: object) -> None:
        self.done.append(("end", payload["id"]))

    def attr_get(self, name: str) -> str:
        return "1" if name == "rank" else super().attr_get(name)


@pytest.fixture
def lead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeFlux:
    lead = Lead({0: (1, 0), 1: (1, 0)}, {0, 1})
    install(monkeypatch, lead)
    monkeypatch.setenv("FLUX_URI", "")
    (tmp_path / "local-0").touch()
    return lead


Make = Callable[..., guard.Guard]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    """Make the guard of a node with jobs of one process each, by their MiB, and with MiB that are no job's."""

    def make(used: int, jobs: dict[int, int], shared: int = 0, outside: int = 30, made: int = 0) -> guard.Guard:
        monkeypatch.setattr(guard, "jobs", lambda: {job: [job] for job in jobs})
        monkeypatch.setattr(node_jobs, "resident", lambda pid: jobs[pid] * MIB)
        monkeypatch.setattr(guard, "resident", lambda _: 0)
        monkeypatch.setattr(node_jobs, "share", lambda pid: node_jobs.Taken(jobs[pid] * MIB, 0))
        monkeypatch.setattr(guard, "outside", lambda _: outside * MIB)
        monkeypatch.setattr(guard, "send_to_all", lambda *_: None)
        epilog = cast("Epilog", Shared({max(jobs): made * MIB} if made else {}, shared * MIB))
        found = guard.Guard(guard.memory_of(tmp_path), RESERVE, "demo-1", tmp_path, epilog)
        take(tmp_path, used)
        return found

    for name, text in (("max", LIMIT), ("current", 0), ("stat", "")):
        (tmp_path / f"memory.{name}").write_text(f"{text}\n")
    return make


def take(folder: Path, used: int) -> None:
    (folder / "memory.current").write_text(f"{used * MIB}\n")


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        # a file of no job: even without all jobs there would not be enough
        ({"used": 470, "jobs": {7: 2, 8: 2}, "shared": 436}, "436 MiB of /dev/shm belong to no job"),
        # the file of a job that runs is the job's
        ({"used": 470, "jobs": {7: 2, 8: 2}, "made": 436}, 8),
        # an honest job beside what has more
        ({"used": 425, "jobs": {7: 65}, "outside": 360}, "360 MiB belong to what runs outside of jobs"),
        ({"used": 425, "jobs": {7: 65}, "shared": 300}, "300 MiB of /dev/shm belong to no job"),
        (
            {"used": 425, "jobs": {7: 65}},
            "330 MiB belong to no job: files of volumes in memory count, too",
        ),
        # it ends when half of the reserve is gone, so that the container lives
        ({"used": 470, "jobs": {7: 110}, "shared": 330}, 7),
        ({"used": 425, "jobs": {7: 200, 8: 195}}, 7),
        ({"used": 425, "jobs": {}, "outside": 420}, "420 MiB belong to what runs outside of jobs"),
    ],
)
def test_a_job_ends_only_for_what_jobs_hold(
    make: Make, lead: FakeFlux, node: dict[str, Any], expected: int | str, capsys: pytest.CaptureFixture[str]
) -> None:
    make(**node).look()
    said = capsys.readouterr().err
    if isinstance(expected, int):
        assert (lead.done, lead.drained) == ([("end", expected)], {})
        assert said.startswith(f"minicluster: job f{expected + 1} took ")
    else:
        assert (lead.done, lead.drained) == ([("drain", "1")], {1: DRAINED + expected})
        way = "no job is ended, and the node takes no more until that is free"
        assert said == f"minicluster: memory is short, {expected}: {way}\n"


def test_a_drained_node_takes_jobs_again_when_as_much_is_free_as_was_short(
    make: Make, lead: FakeFlux, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = make(422, {7: 2}, shared=380)
    for used in (422, 430, 412, 403):
        take(tmp_path, used)
        node.next_judgement = 0
        node.look()
    assert [*lead.drained] == [1]
    capsys.readouterr()
    take(tmp_path, 402)
    node.next_judgement = 0
    node.look()
    assert (lead.drained, lead.done) == ({}, [("drain", "1"), ("undrain", "1")])
    assert capsys.readouterr().err == "minicluster: memory is free again: the node takes jobs\n"
    take(tmp_path, 422)
    node.look()
    assert [*lead.drained] == [1]


def test_a_node_that_a_person_has_drained_stays_drained(make: Make, lead: FakeFlux, tmp_path: Path) -> None:
    lead.drained = {1: "bad DIMM"}
    node = make(470, {7: 2}, shared=436)
    node.look()
    take(tmp_path, 100)
    node.next_judgement = 0
    node.look()
    assert (lead.drained, lead.done, node.drained) == ({1: "bad DIMM"}, [], 0)


def test_a_node_without_a_broker_is_judged_again(make: Make, lead: FakeFlux, tmp_path: Path) -> None:
    node = make(470, {7: 2}, shared=436)
    (tmp_path / "local-0").unlink()
    node.look()
    assert (lead.done, node.drained) == ([], 0)
    (tmp_path / "local-0").touch()
    node.look()
    assert [*lead.drained] == [1]


def test_what_is_no_job_s_has_a_name() -> None:
    assert Held(0, 0, 0).all == 0
    assert Held(3 * MIB, 2 * MIB, MIB).why == "3 MiB of /dev/shm belong to no job"
