"""The times of a CronJob: its schedule has five fields, or a name such as @daily."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple


class CronError(ValueError):
    """A text is no schedule, or no time zone; the message follows the text."""


class CronField(NamedTuple):
    """One of the five fields."""

    name: str
    least: int
    most: int
    words: Sequence[str] = ()  #: for the numbers from ``least`` on


_MONTH_WORDS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAY_WORDS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
CRON_FIELDS = (
    CronField("minute", 0, 59),
    CronField("hour", 0, 23),
    CronField("day of the month", 1, 31),
    CronField("month", 1, 12, _MONTH_WORDS),
    CronField("day of the week", 0, 6, _WEEKDAY_WORDS),
)
_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
#: A schedule without a time in so many days, such as one for February 30, has none
DUE_WITHIN_DAYS = 5 * 366


class Cron(NamedTuple):
    """A schedule: the numbers that each field allows."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_any_day: bool  #: whether one of the two fields of days is `*`: then the other one decides

    def has(self, day: date) -> bool:
        """Tell whether a day has times."""
        if day.month not in self.months:
            return False
        both = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return all(both) if self.is_any_day else any(both)


def parse_cron(text: str) -> Cron:
    """Return a schedule. Raises CronError."""
    words = _NAMED.get(text, text).split()
    if text.startswith("@") and text not in _NAMED:
        raise CronError(f"is none of {', '.join(_NAMED)}")
    if len(words) != len(CRON_FIELDS):
        raise CronError(f"has {len(words)} fields: a schedule has 5, minute hour day month weekday, as in 0 2 * * *")
    minutes, hours, days, months, weekdays = (_numbers(*each) for each in zip(words, CRON_FIELDS, strict=True))
    # as `*/1`
    stars = [part.removesuffix("/1") in ("*", "?") for word in words[2::2] for part in word.split(",")]
    return Cron(minutes, hours, days, months, weekdays, any(stars))


def _numbers(text: str, field: CronField) -> frozenset[int]:
    """Return the numbers of a field. Raises CronError."""
    return frozenset(number for part in text.split(",") for number in _range(part, field))


def _range(part: str, field: CronField) -> range:
    """Return the numbers of a part: `*`, `N`, `N-M`, each with a `/STEP`. Raises CronError."""
    span, slash, step = part.partition("/")
    first, dash, last = span.partition("-")
    if span in ("*", "?"):
        low, high = field.least, field.most
    else:
        low = _number(first, part, field)
        high = _number(last, part, field) if dash else field.most if slash else low
    if slash and not (step.isdecimal() and int(step)):
        raise CronError(f"has {part} as its {field.name}: the step must be 1 or more")
    if low > high:
        raise CronError(f"has {part} as its {field.name}: the range ends before it begins")
    return range(low, high + 1, int(step or 1))


def _number(text: str, part: str, field: CronField) -> int:
    if text.lower() in field.words:
        return field.words.index(text.lower()) + field.least
    if not (text.isdecimal() and text.isascii() and field.least <= int(text) <= field.most):
        words = f", or {field.words[0]} to {field.words[-1]}" if field.words else ""
        raise CronError(f"has {part} as its {field.name}: must be {field.least} to {field.most}{words}")
    return int(text)


def parse_zone(name: str) -> tzinfo:
    """Return a time zone of the IANA; UTC where this machine has no list of them. Raises CronError."""
    import zoneinfo  # noqa: PLC0415 - few need it

    known = zoneinfo.available_timezones()
    if known and name not in known:
        near = next((each for each in sorted(known) if each.lower() == name.lower()), "Europe/Berlin or Etc/UTC")
        raise CronError(f"is no time zone of the IANA: use one such as {near}")
    return zoneinfo.ZoneInfo(name) if known else UTC


def next_time(cron: Cron, zone: tzinfo, now: datetime) -> datetime | None:
    """Return the next time after ``now``, in UTC; None if there is none within some years."""
    first = now.astimezone(zone).date()
    for day in (first + timedelta(days=days) for days in range(DUE_WITHIN_DAYS)):
        if cron.has(day) and (left := [each for each in _times(cron, zone, day) if each > now]):
            return min(left)
    return None


def _times(cron: Cron, zone: tzinfo, day: date) -> Iterator[datetime]:
    """Yield the times of a day: one that a clock skips is none, one that comes twice is two."""
    for hour in cron.hours:
        for minute in cron.minutes:
            for fold in (0, 1):
                local = datetime.combine(day, time(hour, minute, fold=fold), zone)
                at = local.astimezone(UTC)
                if at.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
                    yield at


def soonest(schedules: Sequence[Mapping[str, str]], now: datetime) -> tuple[str, datetime] | None:
    """Return the name and the time of what comes first of some schedules {name, cron, timeZone}; None for none."""
    times = []
    for each in schedules:
        try:
            at = next_time(parse_cron(each["cron"]), parse_zone(each["timeZone"]), now)
        except CronError:
            continue  # of another version
        times += [(at, each["name"])] if at else []
    return min(times)[::-1] if times else None
