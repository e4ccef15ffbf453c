"""The folder of a matrix: the values of each size, the output and record of each run, a table and plots of all."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from minicluster.console.streams import write_file
from minicluster.documents import yamlio
from minicluster.errors import OutputError, UsageError

Record = dict[str, Any]
VALUES_FILE, GIVEN_FILE = "values.yaml", "given.yaml"
RECORD, OUTPUT, TABLE = "record.json", "output.txt", "results.csv"
#: Pixels of each plot of the page
WIDTH_PIXELS, HEIGHT_PIXELS = 760, 300


def _seconds(job: Mapping[str, Any]) -> float | None:
    start, end = job["t_run"], job["end"]
    return round(end - start, 6) if start and end else None


def _used(key: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda job: ((job.get("usage") or {}).get("total") or {}).get(key)


#: The columns of results.csv, which each record has, too: what they have of a job
RUN_COLUMNS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "size": itemgetter("size"),
    "iteration": itemgetter("iteration"),
    "tasks": itemgetter("ntasks"),
    "id": itemgetter("id"),
    "submit": itemgetter("t_submit"),
    "start": itemgetter("t_run"),
    "end": itemgetter("end"),
    "seconds": _seconds,
    "exit_code": itemgetter("exit_code"),
    "nodes": itemgetter("nodes"),
}
#: The same of what it has used, which older records lack
USED_COLUMNS = {
    key: _used(key)
    for key in ("memory_peak", "cpu_seconds", "threads", "gpus_busy", "gpu_memory_peak", "read", "written")
}


def record(size: int, iteration: int, job: Mapping[str, Any], events: Iterable[Any]) -> Record:
    """Return the record of a run from its job, as the report has it, and from its events."""
    of_run = {**job, "size": size, "iteration": iteration}
    columns = {name: value(of_run) for name, value in {**RUN_COLUMNS, **USED_COLUMNS}.items()}
    return {**columns, "result": job["result"], "events": list(events)}


def table(records: Iterable[Record]) -> str:
    """Return records as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [*RUN_COLUMNS, *USED_COLUMNS], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def difference(old: Any, new: Any, path: str = "") -> str:
    """Return the path of the first difference of two values, "" if there is none."""
    if old == new:
        return ""
    pairs: Iterable[tuple[str, Any, Any]]
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = ((f"{path}.{key}".lstrip("."), old.get(key), new.get(key)) for key in {**old, **new})
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = ((f"{path}[{n}]", old[n], new[n]) for n in range(len(old)))
    else:
        return path
    return next(first_difference for where, one, other in pairs if (first_difference := difference(one, other, where)))


def beside(path: Path) -> Path:
    """Return where a file is until it is complete."""
    return path.with_name(f"{path.name}.new")


class Results:
    """What a folder has of a matrix."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sizes(self) -> list[int]:
        """Return the sizes that the folder has values of."""
        names = (path.parent.name.removeprefix("size-") for path in self.folder.glob(f"size-*/{VALUES_FILE}"))
        return sorted(int(text) for text in names if text.isdecimal())

    def check(self, values: Mapping[int, Mapping[str, Any]]) -> None:
        """Raise UsageError when the folder was made with other values of a size."""
        for size, wanted in values.items():
            path = self._values(size)
            if not path.exists():
                continue
            try:
                where = difference(yamlio.load(path.read_bytes()), yamlio.load(yamlio.dump(wanted)))
            except (OSError, yaml.YAMLError):
                raise UsageError(f"{path} can't be read: give another --output") from None
            if where:
                raise UsageError(f"{path} has another {where}: give the values of before, or another --output")

    def keep_values(self, values: Mapping[int, Mapping[str, Any]], given: Mapping[int, Mapping[str, Any]]) -> None:
        """Make the folders, and write the values of each size, all and the given ones. Raises OutputError."""
        for size, wanted in values.items():
            path = self._values(size)
            _make(path.parent)
            write_file(path, yamlio.dump(wanted, marker=False))
            write_file(path.with_name(GIVEN_FILE), yamlio.dump(given[size], marker=False))

    def record(self, size: int, iteration: int) -> Record | None:
        """Return the record of a run; None when it is not complete."""
        return _read(self._run(size, iteration) / RECORD)

    def output(self, size: int, iteration: int) -> Path:
        """Return where the output of a run goes, in a folder that is made. Raises OutputError."""
        _make(self._run(size, iteration))
        return self._run(size, iteration) / OUTPUT

    def keep(self, run: Record) -> None:
        """Write the record of a run, and the table of all runs. Raises OutputError."""
        path = self._run(run["size"], run["iteration"]) / RECORD
        write_file(path, f"{json.dumps(run, indent=2)}\n".encode())
        self.keep_table()

    def keep_table(self) -> None:
        """Write the table of all runs. Raises OutputError."""
        write_file(self.folder / TABLE, table(self.records()).encode())

    def records(self) -> list[Record]:
        """Return the complete records, by size and iteration."""
        paths = self.folder.glob(f"size-*/iteration-*/{RECORD}")
        return sorted(filter(None, map(_read, paths)), key=lambda record: (record["size"], record["iteration"]))

    def _run(self, size: int, iteration: int) -> Path:
        return self.folder / f"size-{size}" / f"iteration-{iteration}"

    def _values(self, size: int) -> Path:
        return self.folder / f"size-{size}" / VALUES_FILE


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} can't be made: {error.strerror}") from None


def _read(path: Path) -> Record | None:
    try:
        loaded = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return loaded if isinstance(loaded, dict) and set(RUN_COLUMNS) <= loaded.keys() else None


def times(records: Sequence[Mapping[str, Any]]) -> dict[int, list[float]]:
    """Return the seconds of the runs that ended with exit code 0, by size."""
    by_size: dict[int, list[float]] = {}
    for record in records:
        if record["exit_code"] == 0 and record["seconds"] is not None:
            by_size.setdefault(record["size"], []).append(record["seconds"])
    return dict(sorted(by_size.items()))


def _points(by_size: Mapping[int, Sequence[float]]) -> tuple[list[int], list[float]]:
    """Return the size and the seconds of each run."""
    return [size for size, each in by_size.items() for _ in each], [one for each in by_size.values() for one in each]


def draw_plot(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw each run, and a line of the medians, as PNG. Raises ImportError without matplotlib, OutputError."""
    # installed only where plots are wanted; without pyplot, which would look for a screen
    from matplotlib.figure import Figure  # noqa: PLC0415

    by_size = times(records)
    if not by_size:
        return
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(list(by_size), [median(each) for each in by_size.values()], marker="_", label="median")
    axes.scatter(*_points(by_size), color="black", s=12, label="run", zorder=3)
    axes.set(xlabel="size, nodes", ylabel="wall time, s", xticks=list(by_size), ylim=(0, None))
    axes.legend(frameon=False)
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=150)
    write_file(path, image.getvalue())


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
    """Write a page of wall time, speed-up and efficiency by size. Raises ImportError without Bokeh, OutputError."""
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
    plots = []
    for key, label in (("seconds", "wall time, s"), ("speedup", "speed-up"), ("efficiency", "efficiency")):
        plot = figure(width=WIDTH_PIXELS, height=HEIGHT_PIXELS, x_axis_label="size, nodes", y_axis_label=label)
        plot.xaxis.ticker = list(by_size)
        plot.y_range.start = 0  # type: ignore[attr-defined]
        plot.line("size", key, source=source, line_width=2, color="#0072b2", legend_label="median")
        plot.scatter("size", key, source=source, size=8, color="#0072b2")
        if key == "seconds":
            plot.scatter(*_points(by_size), size=5, color="#d55e00", marker="x", legend_label="run")
        else:
            ideal = [row["size"] / rows[0]["size"] if key == "speedup" else 1.0 for row in rows]
            plot.line(list(by_size), ideal, line_dash="dashed", color="#777777", legend_label="ideal")
        plots.append(plot)
    write_file(path, file_html(column(*plots), INLINE, "runs by size").encode())
