"""When a CronJob is due."""

from datetime import UTC, datetime

import pytest
from minicluster.kube.cron import CronError, next_time, parse_cron, parse_zone, soonest


@pytest.mark.parametrize(
    ("text", "zone", "now", "due"),
    [
        ("30 2 * * *", "Etc/UTC", "2026-11-28T02:29", "2026-11-28T02:30"),
        ("30 2 * * *", "Etc/UTC", "2026-11-28T02:30", "2026-11-29T02:30"),
        ("30 2 * * *", "Europe/Berlin", "2026-11-28T00:00", "2026-11-28T01:30"),
        ("*/20 9-10 * * MON-Fri", "Etc/UTC", "2026-11-27T10:40", "2026-11-30T09:00"),
        ("5/25 * * * *", "Etc/UTC", "2026-11-27T10:06", "2026-11-27T10:30"),
        # both days are named: one of them is enough; with a star both must be right
        ("0 0 13 * fri", "Etc/UTC", "2026-11-28T00:00", "2026-12-04T00:00"),
        ("0 0 */2 * fri", "Etc/UTC", "2026-11-28T00:00", "2026-11-29T00:00"),
        ("0 0 ? * fri", "Etc/UTC", "2026-11-28T00:00", "2026-12-04T00:00"),
        ("0 0 29 feb *", "Etc/UTC", "2026-11-28T00:00", "2028-02-29T00:00"),
        ("0 0 30 2 *", "Etc/UTC", "2026-11-28T00:00", None),
        # the clock skips this hour on March 28, and has it twice on October 31
        ("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00", "2027-03-29T00:30"),
        ("30 2 * * *", "Europe/Berlin", "2027-10-31T00:30", "2027-10-31T01:30"),
        ("@weekly", "Etc/UTC", "2026-11-28T00:00", "2026-11-29T00:00"),
    ],
)
def test_the_next_time_is_that_of_kubernetes(text: str, zone: str, now: str, due: str | None) -> None:
    found = next_time(parse_cron(text), parse_zone(zone), datetime.fromisoformat(f"{now}Z"))
    assert found == (datetime.fromisoformat(f"{due}Z") if due else None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "has 0 fields: a schedule has 5, minute hour day month weekday, as in 0 2 * * *"),
        ("TZ=UTC 0 2 * * *", "has 6 fields: a schedule has 5, minute hour day month weekday, as in 0 2 * * *"),
        ("@every 1h", "is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly"),
        ("60 * * * *", "has 60 as its minute: must be 0 to 59"),
        ("0 0 * * 7", "has 7 as its day of the week: must be 0 to 6, or sun to sat"),
        ("0 0 0 * *", "has 0 as its day of the month: must be 1 to 31"),
        ("0 5-3 * * *", "has 5-3 as its hour: the range ends before it begins"),
        ("*/0 * * * *", "has */0 as its minute: the step must be 1 or more"),
        ("0 0 ?/x * *", "has ?/x as its day of the month: the step must be 1 or more"),
        ("0 0 * juni *", "has juni as its month: must be 1 to 12, or jan to dec"),
    ],
)
def test_a_text_that_is_no_schedule_is_refused(text: str, why: str) -> None:
    with pytest.raises(CronError) as error:
        parse_cron(text)
    assert str(error.value) == why


@pytest.mark.parametrize(("name", "near"), [("europe/berlin", "Europe/Berlin"), ("CEST", "Europe/Berlin or Etc/UTC")])
def test_a_time_zone_that_there_is_not_is_refused(name: str, near: str) -> None:
    with pytest.raises(CronError, match=f"^is no time zone of the IANA: use one such as {near}$"):
        parse_zone(name)


def test_the_schedule_that_is_due_first_is_named() -> None:
    times = [("b", "0 3 * * *"), ("a", "0 2 * * *"), ("never", "0 0 30 2 *"), ("wrong", "x")]
    schedules = [{"name": name, "cron": cron, "timeZone": "Etc/UTC"} for name, cron in times]
    now = datetime(2026, 11, 28, tzinfo=UTC)
    assert soonest(schedules, now) == ("a", datetime(2026, 11, 28, 2, tzinfo=UTC))
    assert soonest(schedules[2:], now) is None
