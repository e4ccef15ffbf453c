"""The files with the records of jobs that have ended."""

import json
import resource
import signal
from pathlib import Path

import history
import pytest
from history import History, HistoryError


def line(number: int, ended: float = 1.0) -> str:
    return json.dumps({"number": number, "t_inactive": ended}) + "\n"


def numbers(found: History) -> list[int]:
    return [number for number, _ in found]


def test_records_come_back_in_their_order(tmp_path: Path) -> None:
    kept = History(tmp_path / "history")
    assert (list(kept), kept.last()) == ([], {})
    kept.append([line(3, 1.5), line(1, 2.5)])
    kept.append([line(2, 3.5)])
    assert list(kept) == [(3, line(3, 1.5)), (1, line(1, 2.5)), (2, line(2, 3.5))]
    ends = {number: record["t_inactive"] for number, record in kept.last().items()}
    assert ends == {3: 1.5, 1: 2.5, 2: 3.5}


def test_the_oldest_records_go_when_two_files_are_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "FILE_BYTES", 3 * len(line(0)))
    kept = History(tmp_path)
    for number in range(10):
        kept.append([line(number)])
    assert numbers(kept) == [4, 5, 6, 7, 8, 9]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["jobs.jsonl", "jobs.old.jsonl"]
    kept.newer.unlink()
    assert list(kept.last()) == [4, 5, 6, 7]


@pytest.mark.parametrize("cut", ['{"number": 7, "t_ina', '{"number"', "\x00\x00\x00", "7\n", "[]\n", "{}\n"])
def test_half_a_line_of_a_killed_writer_is_no_record(tmp_path: Path, cut: str) -> None:
    kept = History(tmp_path)
    kept.append([line(1)])
    with kept.newer.open("a") as file:
        file.write(cut)
    assert numbers(kept) == [1]
    History(tmp_path).append([line(2)])
    assert numbers(kept) == list(kept.last()) == [1, 2]


def test_only_the_end_of_a_long_file_is_searched_for_the_last_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "TAIL_BYTES", 2 * len(line(0)) + 5)
    kept = History(tmp_path)
    kept.append([line(number) for number in range(5)])
    assert list(kept.last()) == [3, 4]


def test_a_full_disk_keeps_what_was_written_and_loses_nothing_else(tmp_path: Path) -> None:
    kept = History(tmp_path)
    kept.append([line(1)])
    before = kept.newer.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, hard))
    try:
        with pytest.raises(HistoryError, match=r"^jobs that have ended can't be recorded: .*jobs.jsonl"):
            kept.append([line(2)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert kept.newer.read_bytes() == before
    kept.append([line(2)])
    assert numbers(kept) == [1, 2]


def test_a_folder_that_can_not_be_made_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HistoryError, match=r"^jobs that have ended can't be recorded: .Errno 17. File exists"):
        History(tmp_path / "file").append([line(1)])
