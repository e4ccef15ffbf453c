"""The counter of jobs that have ended, although Flux purges records."""

from typing import Any

from metrics import EndedJobs


def counts(successful: int, failed: int = 0, purged: int = 0) -> dict[str, int]:
    return {"run": 1, "successful": successful, "failed": failed, "canceled": 0, "timeout": 0, "purged": purged}


def totals(*looks: dict[str, int]) -> list[tuple[Any, ...]]:
    ended = EndedJobs()
    return [tuple(ended.counts(each)[key] for key in ("successful", "failed")) for each in looks]


def test_nothing_changes_while_nothing_is_purged() -> None:
    assert totals(counts(1), counts(5, 2)) == [(1, 0), (5, 2)]
    assert EndedJobs().counts(counts(1))["run"] == 1


def test_a_count_does_not_go_back_when_records_are_purged() -> None:
    assert totals(counts(500), counts(500, purged=300), counts(500, purged=301)) == [(500, 0), (800, 0), (801, 0)]


def test_a_purged_failure_stays_one() -> None:
    assert totals(counts(490, 10), counts(500, purged=10), counts(500, purged=15)) == [(490, 10), (500, 10), (505, 10)]


def test_an_agent_that_starts_later_begins_with_the_records_that_there_are() -> None:
    assert totals(counts(500, purged=900), counts(500, purged=901)) == [(500, 0), (501, 0)]


def test_a_list_of_jobs_that_begins_anew_takes_nothing_back() -> None:
    assert totals(counts(500, purged=5), counts(500, purged=9), counts(0), counts(3)) == [
        (500, 0),
        (504, 0),
        (4, 0),
        (7, 0),
    ]
