"""On the lead: which jobs are recorded, and what Flux may forget then."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fake_flux import FakeFlux, imported
from history import History, HistoryError

NO_USER: dict[str, Any] = {"attributes": {"user": {}}}


@pytest.fixture
def flux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeFlux:
    monkeypatch.setenv("MINICLUSTER_HOME", str(tmp_path))
    (tmp_path / "config" / "run").mkdir(parents=True)
    return FakeFlux({0: (1, 0)}, {0})


@pytest.fixture
def program(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    yield from imported(monkeypatch, flux, "recorder", "changes", "kvs_cleanup")


class Stream:
    """A stream with one event."""

    def __init__(self, event: Any) -> None:
        self.event = event

    def get(self) -> Any:
        return self.event


def end(flux: FakeFlux, number: int, ended: float, **user: Any) -> None:
    """Let a job end, of which Flux still knows."""
    flux.submit(number, state="completed", t_inactive=ended, jobspec={"attributes": {"user": user}})


def recorded(history: History) -> list[tuple[int, Any]]:
    return [(number, json.loads(text)["user"]) for number, text in history]


def test_a_job_is_recorded_once_in_the_order_of_the_ends(program: ModuleType, flux: FakeFlux, tmp_path: Path) -> None:
    history = History(tmp_path)
    recorder = program.Recorder(flux, history, {}, program.Copies())
    end(flux, 2, 10.0, a=2)
    end(flux, 3, 9.5)
    flux.run(4, "0")
    assert recorder.look() is False
    # Flux lists a job late
    end(flux, 5, 7.0)
    assert recorder.look() is False
    assert recorder.look() is False
    assert recorded(history) == [(3, {}), (2, {"a": 2}), (5, {})]


def test_a_new_recorder_goes_on_where_the_last_one_ended(program: ModuleType, flux: FakeFlux, tmp_path: Path) -> None:
    end(flux, 1, 10.0)
    program.Recorder(flux, History(tmp_path), {}, program.Copies()).look()
    end(flux, 2, 10.5)
    program.Recorder(flux, History(tmp_path), {}, program.Copies()).look()
    assert [number for number, _ in History(tmp_path)] == [1, 2]


def test_a_job_whose_end_a_killed_lead_had_not_saved_is_recorded_again_only_if_it_ran_again(
    program: ModuleType, flux: FakeFlux, tmp_path: Path
) -> None:
    history = History(tmp_path)
    for number in (1, 2):
        flux.submit(number, state="completed", t_run=5.0, t_inactive=10.0 + number, jobspec=NO_USER)
    program.Recorder(flux, history, {}, program.Copies()).look()
    recorder = program.Recorder(flux, history, {}, program.Copies())
    # the next lead has all of them as running, and lets them end; 3 ends first
    flux.jobs.clear()
    flux.submit(3, state="failed", t_run=6.0, t_inactive=20.0, jobspec=NO_USER)
    recorder.look()
    flux.submit(1, state="failed", t_run=5.0, t_inactive=23.0, jobspec=NO_USER)
    flux.submit(2, state="completed", t_run=22.0, t_inactive=24.0, jobspec=NO_USER)
    for _ in range(2):
        recorder.look()
    ends = [(number, json.loads(text)["t_inactive"]) for number, text in history]
    assert ends == [(1, 11.0), (2, 12.0), (3, 20.0), (2, 24.0)]


def test_attributes_that_an_event_told_are_not_looked_up(program: ModuleType, flux: FakeFlux, tmp_path: Path) -> None:
    users = {1: {"told": "yes"}, 9: {"runs": "still"}}
    end(flux, 1, 10.0, looked="up")
    end(flux, 2, 11.0, looked="up")
    history = History(tmp_path)
    program.Recorder(flux, history, users, program.Copies()).look()
    assert (recorded(history), flux.lookups) == ([(1, {"told": "yes"}), (2, {"looked": "up"})], [2])
    assert users == {9: {"runs": "still"}}


def test_flux_keeps_as_many_records_as_its_limit_says(program: ModuleType, flux: FakeFlux, tmp_path: Path) -> None:
    flux.limit = 10
    for number in range(350):
        end(flux, number, 10.0 + number)
    history = History(tmp_path)
    program.Recorder(flux, history, {}, program.Copies()).look()
    assert [job["id"] for job in flux.jobs] == [*range(340, 350)]
    assert [number for number, _ in history] == [*range(350)]


def test_what_forgotten_jobs_leave_behind_is_removed_after_many_jobs(
    program: ModuleType, flux: FakeFlux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []
    monkeypatch.setattr(program, "remove_empty_directories", lambda _: found.append(recorder.count))
    monkeypatch.setattr(program, "LEFTOVER_JOBS", 3)
    recorder = program.Recorder(flux, History(tmp_path), {}, program.Copies())
    for number in range(8):
        end(flux, number, 10.0 * number)
        recorder.look()
        recorder.look()
    assert found == [1, 4, 7]


def test_many_jobs_are_recorded_in_parts_and_none_is_forgotten_before(
    program: ModuleType, flux: FakeFlux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "LOOK_JOBS", 2)
    flux.limit = 1
    for number in range(5):
        end(flux, number, 10.0 + 10 * number)
    recorder = program.Recorder(flux, History(tmp_path), {}, program.Copies())
    assert ([recorder.look(), recorder.look()], len(flux.jobs)) == ([True, True], 5)
    assert (recorder.look(), len(flux.jobs)) == (False, 1)
    assert [number for number, _ in History(tmp_path)] == [*range(5)]


def test_what_can_not_be_written_is_tried_again_and_not_forgotten(
    program: ModuleType, flux: FakeFlux, tmp_path: Path
) -> None:
    flux.limit = 0
    end(flux, 1, 10.0)
    (tmp_path / "file").touch()
    recorder = program.Recorder(flux, History(tmp_path / "file"), {}, program.Copies())
    with pytest.raises(HistoryError):
        recorder.look()
    assert len(flux.jobs) == 1
    (tmp_path / "file").unlink()
    recorder.look()
    assert ([number for number, _ in History(tmp_path / "file")], flux.jobs) == ([1], [])


def submitted(number: int, command: str, user: Any) -> dict[str, Any]:
    """Return the event of a job that was submitted."""
    jobspec = {"tasks": [{"command": [command, "broker"]}], "attributes": user}
    return {"id": number, "events": [{"name": "submit"}], "jobspec": jobspec}


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (submitted(7, "true", {"user": {"a": 1}}), (False, {7: {"a": 1}}, set())),
        (submitted(7, "true", {"system": {}}), (False, {7: {}}, set())),
        (submitted(7, "/usr/bin/flux", {}), (True, {7: {}}, {7})),
        ({"id": 7, "events": [{"name": "clean"}]}, (True, {}, set())),
        # before flux-core 0.63 it may be an instance
        ({"id": 7, "events": [{"name": "submit"}], "jobspec": None}, (True, {}, {7})),
        # before flux-core 0.61
        ({"events": [{"id": 7, "eventlog_seq": 1, "entry": {"name": "submit"}}]}, (True, {}, {7})),
        ({"events": [{"id": 7, "eventlog_seq": 9, "entry": {"name": "clean"}}]}, (True, {}, set())),
    ],
)
def test_an_event_tells_of_an_end_of_attributes_and_of_an_instance(
    program: ModuleType, flux: FakeFlux, event: Any, told: Any
) -> None:
    ends = program.Ends(flux)
    assert (ends.read(Stream(event)), ends.users, ends.instances) == told


def test_an_instance_wakes_only_where_there_was_none_until_its_end(program: ModuleType, flux: FakeFlux) -> None:
    ends = program.Ends(flux)
    told = [submitted(1, "flux", {}), submitted(2, "flux", {}), {"id": 1, "events": [{"name": "clean"}]}]
    assert ([ends.read(Stream(event)) for event in told], ends.instances) == ([True, False, True], {2})


def test_a_problem_is_told_once_and_shown_while_it_lasts(
    program: ModuleType,
    flux: FakeFlux,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    problems, notes = iter(["no room", "no room", "no folder", ""]), []

    def look(_: object) -> bool:
        if problem := next(problems):
            raise HistoryError(problem)
        return False

    class Ends:
        def __init__(self) -> None:
            self.users: dict[int, Any] = {}
            self.instances: set[int] = set()

        def wait(self, *_: float) -> None:
            notes.append((tmp_path / "config" / "run" / program.PROBLEM_FILE).read_text())
            if len(notes) == 4:
                raise OSError("the broker is gone")

    monkeypatch.setattr(program.Recorder, "look", look)
    with pytest.raises(OSError, match="the broker is gone"):
        program.keep_records(flux, Ends(), program.Copies())
    assert notes == ["no room\n", "no room\n", "no folder\n", ""]
    assert capsys.readouterr().out == "minicluster: no room\nminicluster: no folder\n"


def test_it_looks_again_after_an_end_and_soon_where_more_wait(
    program: ModuleType, flux: FakeFlux, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, waits = iter([True, HistoryError("no room"), False]), []

    def look(_: object) -> bool:
        found = next(looks)
        if isinstance(found, HistoryError):
            raise found
        return found

    class Ends:
        def __init__(self) -> None:
            self.users: dict[int, Any] = {}
            self.instances: set[int] = set()

        def wait(self, least: float, most: float) -> None:
            waits.append((least, most))
            if len(waits) == 3:
                raise OSError("the broker is gone")

    monkeypatch.setattr(program.Recorder, "look", look)
    monkeypatch.setattr("time.thread_time", lambda: 0.0)
    # nothing tells of a change
    monkeypatch.setattr("time.monotonic", lambda: sum(most for _, most in waits))
    with pytest.raises(OSError, match="the broker is gone"):
        program.keep_records(flux, Ends(), program.Copies())
    assert waits == [(0.25, 0.25), (1.0, 1.0), (1.0, 2.0)]


def test_a_long_log_of_the_broker_is_moved_and_goes_on_at_its_new_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import log  # noqa: PLC0415

    monkeypatch.setattr(log, "LOG_BYTES", 5)
    file, old = tmp_path / "broker.log", tmp_path / "broker.log.old"
    log.shorten(file)
    assert not file.exists()
    with file.open("a") as broker:
        for text, here, there in (("12345", "12345", None), ("6\n", "", "123456\n"), ("7", "7", "123456\n")):
            broker.write(text)
            broker.flush()
            log.shorten(file)
            assert (file.read_text(), old.read_text() if old.exists() else None) == (here, there)
        # no room for a copy
        old.unlink()
        old.mkdir()
        broker.write("8901234")
        broker.flush()
        log.shorten(file)
    assert file.read_text() == ""
