"""Times, memory, arrays, file names and ids in Slurm's words, and the columns of its tables."""

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_fields import SACCT_FIELDS, SQUEUE_FIELDS, SQUEUE_LETTERS
from slurm_format import apart, by_letters, by_names, lines, parsable
from slurm_jobs import Job, job_of, wanted_of, with_reasons
from slurm_parse import SlurmError
from slurm_words import array_of, bytes_of, clock, file_of, gpus_of, long_clock, moment_of, nodes_of, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10", 600), ("10:30", 630), ("1:00:00", 3600), ("1-0", 86400), ("2-12:30", 217800), ("1-02:03:04", 93784),
        ("0:01", 1), ("UNLIMITED", 0), ("infinite", 0), ("-1", 0), ("48:00:00", 172800), ("0", 0),
    ],
)  # fmt: skip
def test_a_time_limit_has_all_of_slurms_forms(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@given(st.integers(0, 10**7))
def test_a_time_that_is_shown_is_read_again(seconds: int) -> None:
    assert seconds_of(clock(seconds)) == seconds
    assert seconds_of(long_clock(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("10", 10 << 20), ("4G", 4 << 30), ("4gb", 4 << 30), ("100K", 102400), ("1T", 1 << 40), ("0", 0)]
)
def test_memory_has_units(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize(
    ("text", "indices", "limit"),
    [("3", [3], 0), ("0-3", [0, 1, 2, 3], 0), ("1-7:3%2", [1, 4, 7], 2), ("5,1,1-2", [1, 2, 5], 0),
     ("0-1000", list(range(1001)), 0)],
)  # fmt: skip
def test_an_array_has_indices_and_a_limit(text: str, indices: list[int], limit: int) -> None:
    assert array_of(text) == (indices, limit)


NOW = datetime.datetime(2026, 11, 27, 12, 0, 0)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("now", NOW),
        ("now+90", NOW + datetime.timedelta(seconds=90)),
        ("now+2hours", NOW + datetime.timedelta(hours=2)),
        ("16:00", NOW.replace(hour=16)),
        ("08:30:15", NOW.replace(day=28, hour=8, minute=30, second=15)),
        ("2026-12-01", datetime.datetime(2026, 12, 1)),
        ("2026-12-01T10:20:30", datetime.datetime(2026, 12, 1, 10, 20, 30)),
        ("noon", NOW.replace(day=28)),
        ("tomorrow", NOW.replace(day=28, hour=0)),
    ],
)
def test_a_job_may_begin_at_any_of_slurms_moments(text: str, at: datetime.datetime) -> None:
    assert moment_of(text, NOW.timestamp()) == at.timestamp()


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: seconds_of("1h"), "--time=1h: Invalid time: give minutes, or days-hours:minutes:seconds"),
        (lambda: seconds_of("1-2-3"), "--time=1-2-3: Invalid time: give minutes, or days-hours:minutes:seconds"),
        (lambda: bytes_of("4 GB"), "--mem=4 GB: Invalid memory: give a number with K, M, G or T"),
        (lambda: bytes_of("1.5G"), "--mem=1.5G: Invalid memory: give a number with K, M, G or T"),
        (lambda: array_of("1-"), "--array=1-: Invalid job array specification: give such as 0-15:4%2 or 1,3,5"),
        (lambda: array_of("1%x"), "--array=1%x: Invalid job array specification: give such as 0-15:4%2 or 1,3,5"),
        (lambda: array_of("3-1"), "--array=3-1: Invalid job array specification: 3-1 ends before it begins"),
        (lambda: array_of("0-1001"), "--array=0-1001: an array has 1001 tasks at most: submit several"),
        (lambda: nodes_of("two"), "--nodes=two: Invalid node count: give a number"),
        (lambda: nodes_of("0"), "--nodes=0: Invalid node count: give a number above 0"),
        (lambda: gpus_of("gpu:a:b:1"), "gpu:a:b:1: Invalid generic resource (gres) specification: give gpu:N"),
        (lambda: moment_of("soon", 0.0), "--begin=soon: Invalid time: give YYYY-MM-DDTHH:MM[:SS], HH:MM or now+N"),
    ],
    ids=lambda value: "call" if callable(value) else value,
)  # fmt: skip
def test_a_wrong_word_is_refused_in_one_line(call: object, problem: str) -> None:
    with pytest.raises(SlurmError) as refused:
        call()  # type: ignore[operator]
    assert str(refused.value) == problem


@given(st.text())
def test_any_word_is_read_or_refused(text: str) -> None:
    for read in (
        seconds_of,
        bytes_of,
        array_of,
        nodes_of,
        gpus_of,
        lambda word: moment_of(word, 1e9),
        lambda word: file_of(word, {}),
    ):
        try:
            read(text)  # type: ignore[operator]
        except SlurmError as error:
            assert text in str(error) or "ends before" in str(error)


def test_patterns_of_file_names_become_those_of_flux() -> None:
    known = {"x": "name", "u": "me", "A": "7", "a": "3"}
    assert file_of("%x-%j.%%.out", known) == "name-{{id.dec}}.%.out"
    assert file_of("%A_%a/%4a_%t_%N_%n_%u", known) == "7_3/0003_{{taskid}}_{{node.name}}_{{node.id}}_me"
    assert file_of(r"\%j", known) == "%j"
    assert file_of("%q", known) == "%q"


def entry(**fields: object) -> dict[str, object]:
    return {"id": 17, "name": "a name", "userid": 0, "urgency": 16, "state": 16, "t_submit": 1.0, "t_run": 2.0,
            "nnodes": 2, "ntasks": 4, "ncores": 8, "nodelist": "a-[0-1]", "duration": 60.0, **fields}  # fmt: skip


MEMORY = {"exception_occurred": True, "exception_type": "memory"}


def job(**fields: object) -> Job:
    return job_of(entry(**fields), "me", "all")


@pytest.mark.parametrize(
    ("fields", "state", "reason"),
    [
        ({"state": 2}, "PENDING", "Dependency"),
        ({"state": 2, "dependencies": ["begin-time=5"]}, "PENDING", "BeginTime"),
        ({"state": 4, "urgency": 0}, "PENDING", "JobHeldUser"),
        ({"state": 8}, "PENDING", "Resources"),
        ({"state": 16}, "RUNNING", "None"),
        ({"state": 32}, "COMPLETING", "None"),
        ({"state": 64, "result": 1}, "COMPLETED", "None"),
        ({"state": 64, "result": 2}, "FAILED", "NonZeroExitCode"),
        ({"state": 64, "result": 4}, "CANCELLED", "None"),
        ({"state": 64, "result": 8}, "TIMEOUT", "TimeLimit"),
        ({"state": 64, "result": 2, **MEMORY}, "OUT_OF_MEMORY", "OutOfMemory"),
    ],
)  # fmt: skip
def test_a_job_has_slurms_states_and_reasons(fields: dict[str, object], state: str, reason: str) -> None:
    assert (job(**fields).state, job(**fields).reason) == (state, reason)


def test_only_the_first_of_the_waiting_jobs_lacks_resources() -> None:
    waiting = [job(id=number, state=8, priority=16 + (number == 2)) for number in (1, 2, 3)]
    assert [each.reason for each in with_reasons(waiting)] == ["Priority", "Resources", "Priority"]


@pytest.mark.parametrize(
    ("text", "number", "indices"),
    [("17", 17, None), ("5_3", 5, {3}), ("5_[1-2,7]", 5, {1, 2, 7}), ("17.batch", 17, None), ("17.0", 17, None),
     ("fx", 99, None)],
)  # fmt: skip
def test_an_id_has_all_forms(text: str, number: int, indices: set[int] | None) -> None:
    assert wanted_of(text, lambda _: 99) == (number, indices)


def test_a_task_is_found_by_its_array_and_by_its_own_number() -> None:
    task = job(annotations={"user": {"slurm": {"array": 5, "index": 3}}})
    assert task.id == "5_3"
    found = [text for text in ("5", "5_3", "5_[0-9]", "17", "5_4", "3") if wanted_of(text, int).has(task)]
    assert found == ["5", "5_3", "5_[0-9]", "17"]
    again = job(annotations={"user": {"slurm": {"id": "4"}}})
    assert (again.id, [text for text in ("4", "17", "5") if wanted_of(text, int).has(again)]) == ("4", ["4", "17"])


def test_columns_by_letter_have_widths_and_text_between_them() -> None:
    columns = by_letters(r"%.6i|%3t|%j %Q_%%\n", SQUEUE_LETTERS, SQUEUE_FIELDS)
    assert list(lines(columns, [job()])) == [" JOBID|ST |NAME PRIORITY_%%\n", "    17|R  |a name 0_%%\n"]
    ood = by_letters("\x1e%A\x1f%T", SQUEUE_LETTERS, SQUEUE_FIELDS)
    assert list(lines(ood, [job()], header=False)) == ["\x1e17\x1fRUNNING"]


def test_columns_by_name_are_cut_or_parted() -> None:
    columns = by_names("JobID%-6,JobName%4,state", SACCT_FIELDS, "--format", "%")
    assert list(lines(apart(columns), [job()], True, "+")) == ["JobID  JobN      State", "17     a n+    RUNNING"]
    assert list(parsable(columns, [job()], True, False, "|")) == ["JobID|JobName|State", "17|a name|RUNNING"]
    assert list(parsable(columns, [job()], False, True, ";")) == ["17;a name;RUNNING;"]
    # Open OnDemand's way to part them, with a character that is space to Python
    ood = by_names("JobID:\x1f,ExcNodes:\x1f,Name:.8 |,tres-alloc:\x1f,", SQUEUE_FIELDS, "--Format", ":")
    assert list(lines(ood, [job()], header=False)) == ["17\x1f\x1f  a name |billing=8,cpu=8,node=2\x1f"]
    for names, apart_by in (("JobID,Foo", "%"), ("Foo", ":"), ("JobID%x", "%"), ("JobID%", "%")):
        with pytest.raises(SlurmError, match=r"^--format: Invalid field requested: (Foo|JobID%x?)$"):
            by_names(names, SACCT_FIELDS, "--format", apart_by)


USED = {"memory_peak": 3 << 20, "cpu_seconds": 61.5, "read": 2048, "written": 0}


@pytest.mark.parametrize(
    ("nodes", "tasks", "expected"),
    [
        ({"n-0": USED}, 1, ["01:01.500", "3072K", "n-0", "2K", "0K"]),
        ({"n-0": USED, "n-1": {**USED, "memory_peak": 4 << 20}}, 2, ["02:03.000", "4096K", "n-1", "2K", "0K"]),
        # of tasks that share a node nobody knows what each has used
        ({"n-0": USED}, 2, ["01:01.500", "", "", "", ""]),
        ({"n-0": {**dict.fromkeys(USED), "cpu_seconds": 7200.0}}, 1, ["02:00:00", "", "", "", ""]),
        (None, 1, [""] * 5),
    ],
)
def test_sacct_shows_what_a_job_has_used(
    nodes: dict[str, dict[str, Any]] | None, tasks: int, expected: list[str]
) -> None:
    total = {"cpu_seconds": sum(node["cpu_seconds"] for node in (nodes or {}).values())}
    one = job(ntasks=tasks, usage={"nodes": nodes, "total": total} if nodes else None)
    names = ("totalcpu", "maxrss", "maxrssnode", "maxdiskread", "maxdiskwrite")
    assert [SACCT_FIELDS[name].text(one) for name in names] == expected


@given(st.text())
def test_any_format_is_read(text: str) -> None:
    assert list(lines(by_letters(text, SQUEUE_LETTERS, SQUEUE_FIELDS), [job()], header=False))


@pytest.mark.parametrize("fields", [{}, {"state": 2}, {"state": 64, "result": 2, "waitstatus": 256, "t_cleanup": 5.0}])
def test_each_column_has_a_text(fields: dict[str, object]) -> None:
    columns = [*SQUEUE_FIELDS.values(), *SACCT_FIELDS.values()]
    names = {"BatchHost", "EXEC_HOST"}
    assert all(isinstance(column.text(job(**fields)), str) for column in columns if column.header not in names)
