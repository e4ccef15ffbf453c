"""The folder of a matrix."""

import json
from pathlib import Path
from typing import Any

import pytest
from minicluster.documents import yamlio
from minicluster.errors import OutputError, UsageError
from minicluster.experiments import results
from minicluster.experiments.results import Results

JOB = {
    "id": "f1",
    "ntasks": 4,
    "t_submit": 1.0,
    "t_run": 2.5,
    "end": 4.0,
    "exit_code": 0,
    "nodes": "mc-2-[0,2]",
    "result": "COMPLETED",
    "usage": {"nodes": {}, "total": {"memory_peak": 7, "cpu_seconds": 1.25, "threads": 2, "read": None, "written": 3}},
}
VALUES: dict[str, Any] = {"size": 2, "containers": [{"command": ["a", "b"]}]}


def made(size: int, iteration: int, **changes: Any) -> results.Record:
    return results.record(size, iteration, {**JOB, **changes}, [{"name": "submit"}])


def test_a_record_has_the_times_and_how_the_job_ended() -> None:
    expected = {
        "size": 2,
        "iteration": 1,
        "tasks": 4,
        "id": "f1",
        "submit": 1.0,
        "start": 2.5,
        "end": 4.0,
        "seconds": 1.5,
        "exit_code": 0,
        "nodes": "mc-2-[0,2]",
        "memory_peak": 7,
        "cpu_seconds": 1.25,
        "threads": 2,
        "gpus_busy": None,
        "gpu_memory_peak": None,
        "read": None,
        "written": 3,
        "result": "COMPLETED",
        "events": [{"name": "submit"}],
    }
    assert made(2, 1) == expected
    never = made(2, 1, t_run=None, end=5.0, exit_code=None, nodes=None, result="CANCELED")
    assert [never[name] for name in ("start", "end", "seconds", "exit_code")] == [None, 5.0, None, None]


def test_the_table_has_all_records_in_their_order(tmp_path: Path) -> None:
    found = Results(tmp_path)
    for size, iteration, changes in (
        (10, 1, {}),
        (2, 2, {"exit_code": 7}),
        (2, 1, {"t_run": None, "nodes": None, "usage": None}),
    ):
        found.output(size, iteration)
        found.keep(made(size, iteration, **changes))
    assert (tmp_path / "results.csv").read_text().splitlines() == [
        "size,iteration,tasks,id,submit,start,end,seconds,exit_code,nodes,memory_peak,cpu_seconds,threads,gpus_busy,"
        "gpu_memory_peak,read,written",
        "2,1,4,f1,1.0,,4.0,,0,,,,,,,,",
        '2,2,4,f1,1.0,2.5,4.0,1.5,7,"mc-2-[0,2]",7,1.25,2,,,,3',
        '10,1,4,f1,1.0,2.5,4.0,1.5,0,"mc-2-[0,2]",7,1.25,2,,,,3',
    ]
    assert not list(tmp_path.rglob("*.new"))


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"size": 2}'])
def test_a_record_that_is_not_complete_counts_as_none(tmp_path: Path, text: str | None) -> None:
    found = Results(tmp_path)
    path = found.output(2, 1).with_name("record.json")
    if text is not None:
        path.write_text(text)
    assert found.record(2, 1) is None
    assert found.records() == []
    path.write_text(json.dumps(made(2, 1)))
    assert found.record(2, 1) == made(2, 1)
    # that of an older version has no use
    path.write_text(json.dumps({key: value for key, value in made(2, 1).items() if key not in results.USED_COLUMNS}))
    found.keep_table()
    assert (tmp_path / "results.csv").read_text().endswith('"mc-2-[0,2]",,,,,,,\n')


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (VALUES, VALUES, ""),
        ({"a": 1}, {"a": 1, "b": 2}, "b"),
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, "a.b[1].c"),
        ({"a": {"b": [1]}}, {"a": {"b": [1, 2]}}, "a.b"),
        ({"a": "1"}, {"a": 1}, "a"),
    ],
)
def test_the_first_difference_of_two_values_has_a_path(old: Any, new: Any, where: str) -> None:
    assert results.difference(old, new) == where


def test_a_folder_of_other_values_is_refused(tmp_path: Path) -> None:
    found = Results(tmp_path)
    assert found.sizes() == []
    found.check({2: VALUES})
    found.keep_values({2: VALUES, 4: {**VALUES, "size": 4}}, {2: {"size": 2}, 4: {"size": 4}})
    assert found.sizes() == [2, 4]
    assert yamlio.load((tmp_path / "size-2" / "values.yaml").read_text()) == VALUES
    assert (tmp_path / "size-4" / "given.yaml").read_text() == "size: 4\n"
    found.check({2: VALUES})
    message = (
        f"^{tmp_path}/size-2/values.yaml has another containers\\[0\\].command\\[1\\]: give the values of before, "
    )
    with pytest.raises(UsageError, match=message):
        found.check({2: {"size": 2, "containers": [{"command": ["a", "c"]}]}})
    (tmp_path / "size-4" / "values.yaml").write_text("a: [")
    with pytest.raises(UsageError, match=r"size-4/values\.yaml can't be read: give another --output"):
        found.check({2: VALUES, 4: VALUES})


def test_a_folder_that_can_not_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="file/size-2 can't be made: Not a directory"):
        Results(tmp_path / "file").keep_values({2: VALUES}, {2: {}})


def test_the_plot_has_the_runs_that_ended_with_0() -> None:
    records = [made(4, 1), made(2, 1, end=3.0), made(2, 2), made(2, 3, exit_code=1), made(2, 4, t_run=None)]
    assert results.times(records) == {2: [0.5, 1.5], 4: [1.5]}
