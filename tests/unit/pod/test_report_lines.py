"""The report of the jobs: what is said of each job, and the files that it is written to."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import job_record
import pytest
from fake_flux import FakeFlux, install, run_program
from history import History, folder
from hypothesis import given
from hypothesis import strategies as st
from support import as_in_schema

NOTHING = dict.fromkeys(
    (
        *("result", "exit_code", "exception", "nodes", "ranks", "t_submit", "t_run", "t_cleanup", "t_inactive"),
        *("ntasks", "nnodes", "ncores", "duration", "urgency", "queue", "t_estimate", "progress", "usage", "inner"),
    )
)
ENDED = {
    "t_submit": 1.5,
    "t_run": 2.25,
    "t_cleanup": 3.0,
    "t_inactive": 4.0,
    "ntasks": 4,
    "urgency": 16,
    "queue": "batch",
}


def raised(severity: int, kind: str, note: str) -> dict[str, Any]:
    """Return what Flux says of a job with an exception."""
    return dict(zip(job_record.EXCEPTION, (True, severity, kind, note), strict=True))


@pytest.fixture
def flux(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeFlux:
    monkeypatch.setenv("MINICLUSTER_HOME", str(tmp_path / "home"))
    return FakeFlux({0: (1, 0)}, {0})


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (
            {"name": "a", "state": 64, "result": 1, "waitstatus": 0, "nodelist": "mc-[0-1]", "ranks": "[0-1]", **ENDED},
            {"name": "a", "state": "INACTIVE", "result": "COMPLETED", "exit_code": 0, "nodes": "mc-[0-1]", **ENDED}
            | {"ranks": "0-1"},
        ),
        ({"state": 64, "result": 2, "waitstatus": 3 << 8}, {"state": "INACTIVE", "result": "FAILED", "exit_code": 3}),
        ({"state": 64, "result": 4, "waitstatus": 15}, {"state": "INACTIVE", "result": "CANCELED", "exit_code": 143}),
        (
            {"state": 64, "result": 8, "waitstatus": 14, **raised(0, "timeout", "it took long")},
            {"state": "INACTIVE", "result": "TIMEOUT", "exit_code": 142, "exception": "timeout: it took long"},
        ),
        (
            {"state": 64, "result": 1, "waitstatus": 0, **raised(2, "note", "x")},
            {"state": "INACTIVE", "result": "COMPLETED", "exit_code": 0},
        ),
        # cancelled before it ran
        (
            {"state": 64, "result": 4, "t_run": 0.0, **raised(0, "cancel", "")},
            {"state": "INACTIVE", "result": "CANCELED", "exception": "cancel"},
        ),
        ({"state": 8, "urgency": 0, "nodelist": "", "ranks": ""}, {"state": "SCHED", "urgency": 0}),
        ({"state": 8, "annotations": {"sched": {"t_estimate": 5.5}}}, {"state": "SCHED", "t_estimate": 5.5}),
        # behind a job without a time limit
        ({"state": 8, "annotations": {"sched": {"t_estimate": 9.2e9}}}, {"state": "SCHED"}),
        ({"state": 16, "ranks": "3", "ncores": 4}, {"state": "RUN", "ranks": "3", "ncores": 4}),
        *(
            ({"state": 16, "annotations": {"user": {"progress": told}}}, {"state": "RUN", "progress": shown})
            for told, shown in ((0, 0.0), (0.4, 0.4), (1, 1.0), (True, None), (1.1, None), ("40%", None))
        ),
        # a state of a later Flux
        ({"state": 128}, {"state": "128"}),
    ],
)
def test_a_job_is_described_by_the_answer_of_flux(job: dict[str, Any], expected: dict[str, Any]) -> None:
    found = as_in_schema("jobs", job_record.record({"id": 7, **job}, "f8", {"a": 1}))
    assert found == {"id": "f8", "number": 7, "name": "", **NOTHING, "user": {"a": 1}, **expected}


ALL = {
    "memory_peak": 5 << 20,
    "memory_limit": 1 << 30,
    "cpu_seconds": 1.26,
    "cores": 2,
    "threads": 3,
    "read": 7,
    "written": 8,
}
UNKNOWN = dict.fromkeys(ALL)


@pytest.mark.parametrize(
    ("memo", "first", "second", "total"),
    [
        ({"rank0": ALL, "rank3": ALL}, ALL, ALL, {key: 2 * value for key, value in ALL.items()}),
        # a job that was too short for a look at its memory, in a container without a limit
        (
            {"rank0": {**ALL, "memory_limit": 0}, "rank3": {"cpu_seconds": 0.01, "cores": 1}},
            {**ALL, "memory_limit": None},
            {**UNKNOWN, "cpu_seconds": 0.01, "cores": 1},
            {**UNKNOWN, "cpu_seconds": 1.27, "cores": 3},
        ),
        # a shell that was killed, and memos of others
        ({"rank3": ALL, "rank4": ALL}, UNKNOWN, ALL, UNKNOWN),
        ({"rank0": "x", "rank3": {"read": "7", "written": True}}, UNKNOWN, UNKNOWN, UNKNOWN),
    ],
)
def test_the_use_of_a_job_is_that_of_its_nodes(
    monkeypatch: pytest.MonkeyPatch, memo: object, first: object, second: object, total: object
) -> None:
    install(monkeypatch)
    job = {"ranks": "[0,3]", "nodelist": "mc-[0,3]", "annotations": {"user": {"minicluster_usage": memo}}}
    assert job_record.usage(job) == {"nodes": {"mc-0": first, "mc-3": second}, "total": total}
    as_in_schema("jobs", job_record.record({"id": 7, "state": 64, **job}, "f8", None))
    assert job_record.usage({**job, "annotations": {"user": {"minicluster_usage": 7}}}) is None


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(name=TEXTS, user=st.dictionaries(TEXTS, TEXTS))
def test_a_job_is_one_line_whatever_its_texts_have(name: str, user: dict[str, str]) -> None:
    line = json.dumps(job_record.record({"id": 1, "state": 64, "name": name}, "f1", user))
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert (json.loads(line)["name"], json.loads(line)["user"]) == (name, user)


def run(monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, *words: object) -> object:
    """Run the program, and return its exit code."""
    limits: list[float] = []
    monkeypatch.setattr(signal, "setitimer", lambda _, seconds: limits.append(seconds))
    with pytest.raises(SystemExit) as end:
        run_program(monkeypatch, flux, "job_report.py", *words)
    return (end.value.code, *limits)


def test_the_report_is_written_to_both_files(monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, tmp_path: Path) -> None:
    flux.submit(2, jobspec={"attributes": {"system": {}}})
    flux.submit(1, state="completed", jobspec={"attributes": {"system": {}, "user": {"tag": "é\n"}}})
    path = tmp_path / "reports" / "jobs.jsonl"
    assert run(monkeypatch, flux, tmp_path, "7", path) == (0, 60)
    text = path.read_text()
    assert [(job["id"], job["user"]) for job in map(json.loads, text.splitlines())] == [
        ("f1", {"tag": "é\n"}),
        ("f2", {}),
    ]
    assert (tmp_path / "report").read_text() == text
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["jobs.jsonl", "report", "report.purged", "reports"]
    # an older report is replaced as a whole
    flux.jobs.clear()
    assert run(monkeypatch, flux, tmp_path, "7", path) == (0, 60)
    assert path.read_text() == ""


@pytest.mark.parametrize(("end", "limit"), [("15", 7.5), ("3", 2)])
def test_a_lead_that_was_told_to_stop_has_less_time(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, tmp_path: Path, end: str, limit: float
) -> None:
    (tmp_path / "stopping").touch()
    assert run(monkeypatch, flux, tmp_path, end) == (0, limit)


def test_a_report_without_time_leaves_the_attributes_out(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(job_record.BATCH_JOBS + 1):
        flux.submit(number, jobspec={"attributes": {"user": {"n": number}}})
    program = run_program(monkeypatch, flux, "job_report.py", 1000)
    report = program["JobReport"](flux, 1.0)
    # the first batch takes too long
    times = iter([0.0] * 5)
    monkeypatch.setattr("time.monotonic", lambda: next(times, 2.0))
    users = [json.loads(line)["user"] for line in [*report.ended(), *report.active()]]
    assert users == [*({"n": number} for number in range(job_record.BATCH_JOBS)), None]


def test_a_file_that_can_not_be_written_is_an_error_of_one_line(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    code, _ = run(monkeypatch, flux, tmp_path, "7", tmp_path / "file" / "jobs")  # type: ignore[misc]
    assert code == f"[Errno 17] File exists: '{tmp_path}/file'"
    # the log has it
    assert (tmp_path / "report").exists()


def test_the_lead_prints_its_jobs_when_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, capsys: pytest.CaptureFixture[str]
) -> None:
    flux.submit(3, jobspec={"attributes": {}})
    flux.purged = 5
    run_program(monkeypatch, flux, "job_report.py", 1000)
    *rows, last = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert abs(last.pop("now") - time.time()) < 60
    assert ([row["id"] for row in rows], last) == (["f3"], {"purged": 5, "earlier": 0})


def test_recorded_jobs_come_first_once_and_are_not_missing(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, capsys: pytest.CaptureFixture[str]
) -> None:
    jobspec = {"attributes": {"user": {"looked": "up"}}}
    for number, state in ((2, "completed"), (3, "failed"), (4, "run")):
        flux.submit(number, state=state, jobspec=jobspec)
    recorded = [{"number": number, "id": f"f{number}", "user": {"from": "history"}} for number in (5, 1, 3)]
    History(folder()).append([json.dumps(each) + "\n" for each in recorded])
    flux.purged = 7
    run_program(monkeypatch, flux, "job_report.py", 1000)
    *rows, last = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert rows[:3] == recorded
    assert [(row["id"], row["user"]) for row in rows[3:]] == [("f2", {"looked": "up"}), ("f4", {"looked": "up"})]
    # 1 and 5 of the 7 are recorded
    assert (last["purged"], last["earlier"], flux.lookups) == (5, 0, [2, 4])


def test_a_job_stands_once_though_a_killed_lead_had_not_saved_its_end_unless_it_runs_again(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, capsys: pytest.CaptureFixture[str]
) -> None:
    jobspec = {"attributes": {}}
    flux.submit(2, state="failed", t_run=5.0, jobspec=jobspec)
    flux.submit(3, state="run", t_run=5.0, jobspec=jobspec)
    flux.submit(4, state="run", t_run=30.0, jobspec=jobspec)
    recorded = [{"number": number, "id": f"f{number}", "t_run": 5.0} for number in (2, 3, 4)]
    History(folder()).append([json.dumps(each) + "\n" for each in recorded])
    run_program(monkeypatch, flux, "job_report.py", 1000)
    *rows, _ = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert [(row["number"], row["t_run"]) for row in rows] == [(2, 5.0), (3, 5.0), (4, 5.0), (4, 30.0)]


@pytest.mark.parametrize(("most", "shown"), [(0, [4]), (1, [2, 4]), (2, [3, 2, 4]), (9, [5, 1, 3, 2, 4])])
def test_of_the_jobs_that_have_ended_the_last_ones_are_printed(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, capsys: pytest.CaptureFixture[str], most: int, shown: list[int]
) -> None:
    flux.submit(2, state="completed", jobspec={"attributes": {}})
    flux.run(4, "0", jobspec={"attributes": {}})
    History(folder()).append([json.dumps({"number": number}) + "\n" for number in (5, 1, 3)])
    run_program(monkeypatch, flux, "job_report.py", most)
    *rows, last = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert [row["number"] for row in rows] == shown
    assert (last["purged"], last["earlier"]) == (0, 4 - (len(shown) - 1))
