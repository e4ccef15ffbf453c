"""Slurm's words for times, memory, arrays, files and ids, to numbers and Flux's own words.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import datetime
import re
import signal
from typing import Mapping, NamedTuple, Sequence

from slurm_parse import SlurmError

_DAYS = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")
_AMOUNT = re.compile(r"(\d+)([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"k": 1 << 10, "m": 1 << 20, "": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_FROM_NOW = re.compile(r"now(?:\+(\d+)(seconds?|minutes?|hours?|days?|weeks?)?)?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_MOMENTS = (
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d",
    "%m/%d/%y-%H:%M:%S",
    "%m/%d/%y-%H:%M",
    "%m/%d/%y",
    "%m%d%y",
)
_PATTERN = re.compile(r"%(\d*)([%AaJjNnstuxb])")
#: Indices of an array that Slurm takes by default
MOST_ARRAY_JOBS = 1001
#: UNLIMITED and INFINITE of Slurm
NO_LIMIT_SECONDS = 0.0


def seconds_of(text: str, option: str = "--time") -> float:
    """Return a time limit in seconds: MIN, MIN:SEC, H:MIN:SEC, D-H, D-H:MIN, D-H:MIN:SEC. Raises SlurmError."""
    if text.lower() in ("unlimited", "infinite", "-1"):
        return NO_LIMIT_SECONDS
    match = _DAYS.fullmatch(text.strip())
    if not match:
        raise SlurmError(f"{option}={text}: Invalid time: give minutes, or days-hours:minutes:seconds")
    days, first, second, third = match.groups()
    parts = [int(first), int(second or 0), int(third or 0)]
    if days is None and third is None:
        # without days, the first is minutes
        parts = [0, *parts[:2]]
    hours, minutes, seconds = parts
    return float(((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds)


def bytes_of(text: str, option: str = "--mem") -> int:
    """Return an amount of memory in bytes; MiB without a unit. Raises SlurmError."""
    match = _AMOUNT.fullmatch(text.strip())
    if not match:
        raise SlurmError(f"{option}={text}: Invalid memory: give a number with K, M, G or T")
    return int(match[1]) * _UNITS[match[2].lower()]


def moment_of(text: str, now: float, option: str = "--begin") -> float:
    """Return a point in time in seconds since the epoch. Raises SlurmError."""
    word, today = text.strip(), datetime.datetime.fromtimestamp(now)
    match = _FROM_NOW.fullmatch(word)
    if match:
        return now + int(match[1] or 0) * _SECONDS[(match[2] or "s")[0]]
    midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
    named = {"today": 0, "midnight": 24, "noon": 12, "tomorrow": 24, "teatime": 16, "fika": 15, "elevenses": 11}
    if word.lower() in named:
        at = midnight + datetime.timedelta(hours=named[word.lower()])
        return (at if at.timestamp() > now or word == "today" else at + datetime.timedelta(days=1)).timestamp()
    for form in _MOMENTS:
        found_at = _parsed(word, form)
        if found_at:
            return found_at.timestamp()
    at_clock = _parsed(word, "%H:%M:%S") or _parsed(word, "%H:%M")
    if at_clock:
        at = midnight.replace(hour=at_clock.hour, minute=at_clock.minute, second=at_clock.second)
        return (at if at.timestamp() > now else at + datetime.timedelta(days=1)).timestamp()
    raise SlurmError(f"{option}={text}: Invalid time: give YYYY-MM-DDTHH:MM[:SS], HH:MM or now+N")


def _parsed(text: str, form: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.strptime(text, form)
    except ValueError:
        return None


class Array(NamedTuple):
    """The tasks of an array."""

    indices: Sequence[int]
    limit: int  #: how many may run at a time; 0 for all


def array_of(text: str) -> Array:
    """Return the tasks that --array names. Raises SlurmError."""
    spec, has_limit, limit = re.sub(r"[\[\]]", "", text.strip()).partition("%")
    indices: list[int] = []
    for part in spec.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if not match or (has_limit and not limit.isdigit()) or int(match[3] or 1) < 1:
            raise SlurmError(f"--array={text}: Invalid job array specification: give such as 0-15:4%2 or 1,3,5")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise SlurmError(f"--array={text}: Invalid job array specification: {part} ends before it begins")
        if last - first >= MOST_ARRAY_JOBS * int(match[3] or 1) or len(indices) >= MOST_ARRAY_JOBS:
            raise SlurmError(f"--array={text}: an array has {MOST_ARRAY_JOBS} tasks at most: submit several")
        indices += range(first, last + 1, int(match[3] or 1))
    return Array(sorted(set(indices)), int(limit or 0))


def file_of(text: str, job: Mapping[str, str]) -> str:
    """Return a file name in Flux's words for one in Slurm's.

    ``job`` has what is known before the job starts: x, u, and for a task of an array A and a. Raises SlurmError.
    """
    if "\\" in text:
        # Slurm: a backslash turns patterns off
        return text.replace("\\", "")
    known = {
        "j": "{{id.dec}}", "J": "{{id.dec}}", "A": "{{id.dec}}", "a": "4294967294", "t": "{{taskid}}",
        "n": "{{node.id}}", "N": "{{node.name}}", "s": "batch", "b": "4294967294", "%": "%", **job,
    }  # fmt: skip

    def replaced(match: re.Match[str]) -> str:
        new = known[match[2]]
        return new.zfill(min(int(match[1]), 10)) if match[1] and new.isdigit() else new

    return _PATTERN.sub(replaced, text)


def gpus_of(text: str) -> tuple[str, int]:
    """Return type and number of GPUs, such as `gpu:v100:2`, `v100:2` or `2`. Raises SlurmError."""
    words = text.replace("=", ":").split(":")
    if words[0] in ("gpu", "gres/gpu"):
        words = words[1:]
    kind, number = "", words[-1] if words else "1"
    if not number.isdigit():
        kind, number = number, "1"
    elif len(words) > 1:
        kind = words[-2]
    if len(words) > 2:
        raise SlurmError(f"{text}: Invalid generic resource (gres) specification: give gpu:N")
    return kind, int(number)


def nodes_of(text: str) -> tuple[int, int]:
    """Return the least and the most nodes that --nodes names. Raises SlurmError."""
    match = re.fullmatch(r"(\d+)([km]?)(?:-(\d+)([km]?))?", text.strip())
    if not match:
        raise SlurmError(f"--nodes={text}: Invalid node count: give a number")
    factors = {"": 1, "k": 1024, "m": 1024 * 1024}
    least = int(match[1]) * factors[match[2]]
    most = int(match[3]) * factors[match[4]] if match[3] else least
    if not 1 <= least <= most:
        raise SlurmError(f"--nodes={text}: Invalid node count: give a number above 0")
    return least, most


def number_of(text: str, option: str) -> int:
    """Return a number above 0. Raises SlurmError."""
    if not re.fullmatch(r"0*[1-9]\d{0,8}", text.strip()):
        raise SlurmError(f"{option}={text}: Invalid numeric value: give a number above 0")
    return int(text)


def signal_number(text: str) -> int:
    """Return the number of a signal, such as `USR1`, `SIGUSR1` or `10`; 0 for none."""
    names = {each.name[3:]: int(each) for each in signal.Signals}
    return int(text) if text.isdigit() else names.get(text.upper().replace("SIG", "", 1), 0)


def clock(seconds: float) -> str:
    """Return a time as Slurm shows it: [D-][HH:]MM:SS.

    >>> clock(59), clock(3661), clock(90061)
    ('0:59', '1:01:01', '1-01:01:01')
    """
    whole = max(0, int(seconds))
    days, hours, minutes, rest = whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{rest:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def long_clock(seconds: float) -> str:
    """Return a time as sacct shows it: [D-]HH:MM:SS."""
    whole = max(0, int(seconds))
    days = f"{whole // 86400}-" if whole >= 86400 else ""
    return f"{days}{whole // 3600 % 24:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def stamp(at: float) -> str:
    """Return a point in time as Slurm shows it."""
    return datetime.datetime.fromtimestamp(at).strftime("%Y-%m-%dT%H:%M:%S") if at else "Unknown"
