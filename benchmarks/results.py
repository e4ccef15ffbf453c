"""Measured figures, each set in a file of benchmarks/results, from which benchmarks/page.py makes tables and plots.

A file is {"date": "2026-11-21", "where": "machine and versions", "rows": [{...}, ...]}: one row for each
measurement, all with the same keys, null where nothing was measured. Numbers are not rounded before they are written
to the page. Units are in the names of the keys: seconds, bytes, ``_mib`` for MiB.
"""

import hashlib
import json
import os
from collections.abc import Iterable
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


def with_load(where: str, before: float) -> str:
    """Return a description of the machine with its load before the measurement and now."""
    return f"{where}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after"


def digest(names: Iterable[str], folder: Path = FOLDER) -> str:
    """Return a text that changes with any of some sets of figures; a plot keeps the digest of its figures."""
    return hashlib.sha256(b"".join((folder / f"{name}.json").read_bytes() for name in names)).hexdigest()
