"""The plot of a matrix: wall time by size."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from minicluster.streams import write_file


def times(records: Sequence[Mapping[str, Any]]) -> dict[int, list[float]]:
    """Return the seconds of the runs that ended with exit code 0, by size."""
    found: dict[int, list[float]] = {}
    for record in records:
        if record["exit_code"] == 0 and record["seconds"] is not None:
            found.setdefault(record["size"], []).append(record["seconds"])
    return dict(sorted(found.items()))


def draw(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw each run, and a line of the medians, as PNG; nothing without runs.

    Raises ImportError without matplotlib, OutputError.
    """
    # installed only where plots are wanted; without pyplot, which would look for a screen
    from matplotlib.figure import Figure  # noqa: PLC0415

    by_size = times(records)
    if not by_size:
        return
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(list(by_size), [median(each) for each in by_size.values()], marker="_", label="median")
    sizes = [size for size, each in by_size.items() for _ in each]
    seconds = [one for each in by_size.values() for one in each]
    axes.scatter(sizes, seconds, color="black", s=12, label="run", zorder=3)
    axes.set(xlabel="size, nodes", ylabel="wall time, s", xticks=list(by_size), ylim=(0, None))
    axes.legend(frameon=False)
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=150)
    write_file(path, image.getvalue())
