"""The plots of benchmarks/README.md."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from benchmarks.results import Row

Rows = dict[str, list[Row]]
#: The ways that are compared with bare pods.
COLOURS = {"image": "#1b7837", "helm": "#7fbf7b", "copy": "#e08214", "operator": "#999999"}

#: The nodes of small jobs
NODES = {"simulated": "#1b7837", "real": "#7fbf7b"}


def start(results: Rows) -> Any:
    """Return bars: the time of each way, as a multiple of that of bare pods with Flux."""
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    rows = results["start"]
    groups = list(dict.fromkeys((row["pods"], row["view_mb"]) for row in rows))
    for number, (way, colour) in enumerate(COLOURS.items()):
        for place, group in enumerate(groups):
            found = {row["way"]: row["median_seconds"] for row in rows if (row["pods"], row["view_mb"]) == group}
            if way in found:
                ratio = found[way] / found["bare"]
                bar = axes.bar(place + 0.2 * number - 0.3, ratio, 0.18, color=colour)
                axes.bar_label(bar, [f"{ratio:.2f}"], fontsize=8)
        axes.bar(0, 0, color=colour, label=way)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_xticks(range(len(groups)), [f"{pods} pods, view {view} MB" for pods, view in groups])
    axes.set_ylabel("times bare pods with Flux")
    axes.legend(frameon=False)
    return figure


def size(results: Rows) -> Any:
    """Return the cost of a number of hosts: memory of the lead, and the time until Kubernetes has created the pods."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    lines(left, results["hosts"], "hosts", "lead_mib", "{scheduler}, {cores} cores a host")
    left.set(xscale="log", yscale="log", xlabel="hosts that may join (maxSize)", ylabel="memory of rank 0, MiB")
    lines(right, results["jobs"], "pods", "created_seconds", "{qps} requests a second")
    right.set(xscale="log", yscale="log", xlabel="pods", ylabel="seconds until all are created")
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8)
    return figure


def beside(results: Rows) -> Any:
    """Return bars: small jobs a second, and what a job that waits costs, by Flux and by Kubernetes' own."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained", sharey=True)
    rows = results["small_jobs"]
    ways = list(dict.fromkeys(row["way"] for row in rows))
    for number, nodes in enumerate(NODES):
        found = {row["way"]: row["jobs_per_second"] for row in rows if row["nodes"] == nodes}
        places = [ways.index(way) + 0.36 * number - 0.18 for way in found]
        bars(left, places, list(found.values()), NODES[nodes], f"{nodes} nodes")
    pending = {row["way"]: row["ms_per_job"] for row in results["pending"]}
    bars(right, [ways.index(way) for way in pending], list(pending.values()), COLOURS["image"], "")
    left.set(xscale="log", xlabel="small jobs a second", yticks=range(len(ways)), yticklabels=ways)
    left.invert_yaxis()
    left.legend(frameon=False, fontsize=8)
    right.set(xlabel="ms of CPU time to take a job that waits")
    return figure


def bars(axes: Any, places: list[float], values: list[float], colour: str, label: str) -> None:
    """Draw bars to the right, with their values."""
    drawn = axes.barh(places, values, 0.34, color=colour, label=label)
    axes.bar_label(drawn, [f"{value:.3g}" for value in values], fontsize=8, padding=2)
    axes.margins(x=0.15)


def lines(axes: Any, rows: Iterable[Row], x: str, y: str, label: str) -> None:
    """Draw a line for each label; a row's values make its label."""
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        series.setdefault(label.format(**row), []).append((row[x], row[y]))
    for name, points in series.items():
        axes.plot(*zip(*sorted(points), strict=True), marker="o", label=name)


#: The function that draws each plot, by the file's name.
DRAWERS: dict[str, Callable[[Rows], Any]] = {"start": start, "size": size, "beside": beside}


def draw(file: Path, rows: Rows, digest: str) -> None:
    """Draw a plot of rows by the names of their results; the file keeps the digest of the results."""
    mpl.rcParams["svg.fonttype"] = "none"  # text stays text
    mpl.rcParams["svg.hashsalt"] = "minicluster"  # the same file each time
    figure = DRAWERS[file.stem](rows)
    figure.savefig(file, metadata={"Date": None, "Description": digest})
    plt.close(figure)
    file.write_text("".join(f"{line.rstrip()}\n" for line in file.read_text(encoding="utf-8").splitlines()))
