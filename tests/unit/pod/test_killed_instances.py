"""On the lead: what is known of the jobs inside of a job that was killed before it told of them."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from fake_flux import FakeFlux, imported
from history import History

#: What Flux lists of an instance: its address
URI = {"user": {"uri": "ssh://node-0/run/local"}}
#: Flux's counts of jobs
STATS = {"job_states": {"total": 3}, "successful": 2, "failed": 1, "canceled": 0, "timeout": 0}
COUNTS = {"total": 3, "completed": 2, "failed": 1, "canceled": 0, "timeout": 0}
UNKNOWN = dict.fromkeys(COUNTS)


@pytest.fixture
def flux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeFlux:
    monkeypatch.setenv("MINICLUSTER_HOME", str(tmp_path))
    return FakeFlux({0: (1, 0)}, {0})


@pytest.fixture
def program(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    yield from imported(monkeypatch, flux, "recorder", "changes", "kvs_cleanup")


def inside(number: int, state: int, **fields: Any) -> dict[str, Any]:
    """Return a job as an instance lists it."""
    return {"id": number, "name": f"job-{number}", "state": state, **fields}


def says(*told: Any, of: str = "f7") -> str:
    return "".join(f"{of} {json.dumps(each)}\n" for each in told)


def answer(monkeypatch: pytest.MonkeyPatch, *told: Any) -> None:
    """Let the instance that is job 7 answer."""
    done = SimpleNamespace(stdout=says(*told, of="7").encode())
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)


def kept(home: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in home.glob("config/run/history/inside/*")}


# a killed lead forgets the address
@pytest.mark.parametrize("annotations", [URI, {}])
def test_what_it_said_last_is_recorded_and_what_had_not_ended_then_is_lost(
    program: ModuleType, flux: FakeFlux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, annotations: Any
) -> None:
    flux.run(7, "0", annotations=URI)
    flux.submit(8, state="run")
    answer(monkeypatch, STATS, inside(1, 16))
    program.keep_answers(flux)
    ended = inside(1, 64, result=2, waitstatus=3 << 8, t_inactive=20.0)
    answer(monkeypatch, STATS, ended, inside(2, 64, result=1, t_inactive=21.0, annotations=URI), inside(3, 16))
    program.keep_answers(flux)
    flux.job_info_lookup = lambda *_: {"guest.minicluster_jobs": ""}
    flux.jobs[0]["annotations"] = annotations
    flux.jobs = [{**job, "state": "failed", "t_inactive": 30.0, "jobspec": {"attributes": {}}} for job in flux.jobs]
    program.Recorder(flux, History(tmp_path), {}, program.Copies()).look()
    rows = [json.loads(text) for _, text in History(tmp_path)]
    ends = [(row["id"], row["result"], row["exit_code"], row["t_inactive"], row["inner"]) for row in rows]
    assert ends == [
        ("f7/f1", "FAILED", 3, 20.0, None),
        ("f7/f2", "COMPLETED", None, 21.0, UNKNOWN),
        ("f7/f3", "LOST", None, 30.0, None),
        ("f7", None, None, 30.0, {**UNKNOWN, "kept": 3}),
        ("f8", None, None, 30.0, None),
    ]
    assert kept(tmp_path) == {}


@pytest.mark.parametrize("is_told", [True, False])
def test_an_instance_that_tells_of_its_end_has_the_last_word(
    program: ModuleType, flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, is_told: bool
) -> None:
    flux.run(7, "0", annotations=URI)
    answer(monkeypatch, STATS, inside(3, 16))
    program.keep_answers(flux)
    # one that is in it always tells before
    text = says({**STATS, "failed": 0}, of="f7/f2") + (says(STATS, inside(3, 64, result=1)) if is_told else "")
    flux.job_info_lookup = lambda *_: {"guest.minicluster_jobs": text}
    job = {**flux.jobs[0], "t_inactive": 30.0}
    lines = program.lines_with_inner(job, '{"id": "f7"}\n', program.told_inside(flux, [job]))
    *_, row, outer = map(json.loads, lines)
    both = {**COUNTS, "total": 6, "completed": 4}
    expected = ("COMPLETED", {**both, "kept": 1}) if is_told else ("LOST", {**UNKNOWN, "kept": 1})
    assert (row["result"], outer["inner"]) == expected


def test_instances_are_asked_again_and_again_only_while_there_are_any(
    program: ModuleType, flux: FakeFlux, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    asked: list[float] = []

    class Ends:
        def __init__(self) -> None:
            self.users: dict[int, Any] = {}
            self.instances: set[int] = set()

        def wait(self, _: float, most: float) -> None:
            waits.append(most)
            self.instances = {7} if len(waits) in range(5, 9) else set()
            if len(waits) == 11:
                raise OSError("the broker is gone")

    monkeypatch.setattr(program.Recorder, "look", lambda _: False)
    monkeypatch.setattr(program, "keep_answers", lambda _: asked.append(sum(waits)))
    monkeypatch.setattr("time.thread_time", lambda: 0.0)
    monkeypatch.setattr("time.monotonic", lambda: sum(waits))
    with pytest.raises(OSError, match="the broker is gone"):
        program.keep_records(flux, Ends(), program.Copies())
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 10.0, 10.0, 10.0, 10.0, 60.0, 60.0]
    assert asked == [31.0, 41.0, 51.0, 61.0]
