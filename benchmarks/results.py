"""Measured figures, each set in a file of benchmarks/results, from which benchmarks/page.py makes tables and plots.

A file is {"date": "2026-11-21", "where": "machine and versions", "rows": [{...}, ...]}: one row for each
measurement, all with the same keys, null where nothing was measured. Numbers are not rounded before they are written
to the page. Units are in the names of the keys: seconds, bytes, ``_mib`` for MiB.
"""

import hashlib
import json
import os
import statistics
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from minicluster.console.templates import rendered

FOLDER = Path(__file__).resolve().parent / "results"
Row = dict[str, Any]


def load(name: str, folder: Path = FOLDER) -> dict[str, Any]:
    """Return a set of figures. Raises ValueError when its rows have different keys, or there are none."""
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    if len({tuple(row) for row in found["rows"]}) != 1:
        raise ValueError(f"{name}.json: the rows have no keys, or not the same ones")
    return found


def save(path: Path, where: str, rows: list[Row]) -> None:
    """Write a set of figures with today's date, one row a line."""
    date = datetime.now(UTC).date().isoformat()
    path.write_text(rendered(__file__, "results.json.j2", date=date, where=where, rows=rows), encoding="utf-8")


def medians(runs: Sequence[Row], key: str) -> Row:
    """Return the median of each figure of some runs, and least and most of one.

    >>> medians([{"a_seconds": 3, "b": 1}, {"a_seconds": 1, "b": 2}], "a_seconds")
    {'a_seconds': 2.0, 'b': 1.5, 'least_a_seconds': 1, 'most_a_seconds': 3}
    """
    known = {each: statistics.median(run[each] for run in runs) for each in runs[0]}
    times = [run[key] for run in runs]
    return {**known, f"least_{key}": min(times), f"most_{key}": max(times)}


def with_load(where: str, before: float) -> str:
    """Return a description of the machine with its load before the measurement and now."""
    return f"{where}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after"


def digest(names: Iterable[str], folder: Path = FOLDER) -> str:
    """Return a text that changes with any of some sets of figures; a plot keeps the digest of its figures."""
    return hashlib.sha256(b"".join((folder / f"{name}.json").read_bytes() for name in names)).hexdigest()
