"""The plots of a matrix: wall time, speed-up and efficiency by size, as a picture, and as a page by Bokeh."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from minicluster.console.streams import write_file


def times(records: Sequence[Mapping[str, Any]]) -> dict[int, list[float]]:
    """Return the seconds of the runs that ended with exit code 0, by size."""
    by_size: dict[int, list[float]] = {}
    for record in records:
        if record["exit_code"] == 0 and record["seconds"] is not None:
            by_size.setdefault(record["size"], []).append(record["seconds"])
    return dict(sorted(by_size.items()))


def draw_plot(records: Sequence[Mapping[str, Any]], path: Path) -> None:
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


#: Pixels of each plot
WIDTH_PIXELS, HEIGHT_PIXELS = 760, 300


def compared(by_size: Mapping[int, Sequence[float]]) -> list[dict[str, float]]:
    """Return the median seconds of each size, and its speed-up and efficiency against the smallest size.

    >>> compared({2: [8.0], 4: [5.0, 4.0, 3.0]})[1]
    {'size': 4, 'seconds': 4.0, 'speedup': 2.0, 'efficiency': 1.0}
    """
    medians = {size: median(each) for size, each in by_size.items()}
    first = next(iter(medians), 0)
    return [
        {
            "size": size,
            "seconds": seconds,
            "speedup": medians[first] / seconds if seconds else 0.0,
            "efficiency": medians[first] * first / (seconds * size) if seconds else 0.0,
        }
        for size, seconds in medians.items()
    ]


def draw_page(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the page; nothing without runs that ended with exit code 0.

    Raises ImportError without Bokeh, OutputError.
    """
    # installed only where pictures are wanted
    from bokeh.embed import file_html  # noqa: PLC0415
    from bokeh.layouts import column  # noqa: PLC0415
    from bokeh.models import ColumnDataSource  # noqa: PLC0415
    from bokeh.plotting import figure  # noqa: PLC0415
    from bokeh.resources import INLINE  # noqa: PLC0415

    by_size = times(records)
    if not by_size:
        return
    rows = compared(by_size)
    source = ColumnDataSource({key: [row[key] for row in rows] for key in rows[0]})
    runs = [(size, seconds) for size, each in by_size.items() for seconds in each]
    plots = []
    for key, label in (("seconds", "wall time, s"), ("speedup", "speed-up"), ("efficiency", "efficiency")):
        plot = figure(width=WIDTH_PIXELS, height=HEIGHT_PIXELS, x_axis_label="size, nodes", y_axis_label=label)
        plot.xaxis.ticker = list(by_size)
        plot.y_range.start = 0  # type: ignore[attr-defined]
        plot.line("size", key, source=source, line_width=2, color="#0072b2", legend_label="median")
        plot.scatter("size", key, source=source, size=8, color="#0072b2")
        if key == "seconds":
            x, y = [size for size, _ in runs], [seconds for _, seconds in runs]
            plot.scatter(x, y, size=5, color="#d55e00", marker="x", legend_label="run")
        else:
            ideal = [row["size"] / rows[0]["size"] if key == "speedup" else 1.0 for row in rows]
            plot.line(list(by_size), ideal, line_dash="dashed", color="#777777", legend_label="ideal")
        plots.append(plot)
    page = file_html(column(*plots), INLINE, "runs by size")
    write_file(path, page.encode())
