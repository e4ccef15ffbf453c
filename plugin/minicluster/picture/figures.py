"""The plots of a picture, drawn by Bokeh: the jobs on the nodes, below them what they use, and the queue, over time.

page.js fills their sources, which it finds by name. Bokeh is imported here alone: who imports this checks before that
it is there.
"""

from functools import cache
from pathlib import Path
from typing import Any

import bokeh
from bokeh.embed import json_item
from bokeh.layouts import column
from bokeh.models import BasicTicker, ColumnDataSource, DatetimeTickFormatter, HoverTool, LinearAxis, Range1d
from bokeh.plotting import figure

#: Colours that people with any kind of colour blindness tell apart (Okabe and Ito); those that are wrong have a pattern
COLOURS = {
    "PENDING": "#999999",
    "RUNNING": "#56b4e9",
    "COMPLETED": "#009e73",
    "FAILED": "#d55e00",
    "CANCELED": "#e69f00",
    "TIMEOUT": "#cc79a7",
    "LOST": "#000000",
}
#: Patterns of Bokeh, by state
HATCHES = {"FAILED": "x", "TIMEOUT": "/", "CANCELED": "-", "LOST": "x"}
#: Colours of the marks, by kind
MARKS = {"size": "#0072b2", "drain": "#d55e00", "undrain": "#009e73", "lead": "#cc79a7"}
#: The least pixels of the plots
NODES_PIXELS, USE_PIXELS, QUEUE_PIXELS = 200, 130, 220
#: What is used over time, with what is there for it: the names of both, by columns of the source `use`
USES = {
    "cores": {"cores": "cores kept busy", "reserved": "cores of its jobs"},
    "memory": {"memory": "memory, GiB", "limit": "limit, GiB"},
}
#: The edges of a bar, each in a column of its name
EDGES = {name: name for name in ("left", "right", "bottom", "top")}
BAR_FIELDS = (*EDGES, "color", "id", "name", "status", "cores", "code", "node", "user")
_HOVER = [
    ("job", "@id"),
    ("name", "@name"),
    ("state", "@status, exit code @code"),
    ("nodes", "@node, @cores cores"),
    ("attributes", "@user"),
]


def script() -> Path:
    """Return the file with Bokeh's JavaScript, which is part of its package."""
    return Path(bokeh.__file__).parent / "server/static/js/bokeh.min.js"


@cache
def plots() -> dict[str, Any]:
    """Return the empty plots, as `Bokeh.embed.embed_item` takes them."""
    nodes = _nodes()
    uses = [_use(name, nodes.x_range) for name in USES]
    return dict(json_item(column(nodes, *uses, _queue(nodes.x_range), sizing_mode="stretch_width")))


def _source(name: str, *columns: str) -> Any:
    return ColumnDataSource({each: [] for each in columns}, name=name)


def _figure(name: str, height: int, **options: Any) -> Any:
    plot = figure(
        name=name,
        height=height,
        sizing_mode="stretch_width",
        x_axis_type="datetime",
        tools="xpan,xwheel_zoom,xbox_zoom,reset",
        active_drag="xpan",
        output_backend="canvas",
        min_border_left=110,
        lod_threshold=None,
        **options,
    )
    plot.xaxis.formatter = DatetimeTickFormatter(
        seconds="%H:%M:%S", minsec="%H:%M:%S", minutes="%H:%M", hourmin="%H:%M", hours="%H:%M", days="%m-%d"
    )
    plot.toolbar.logo = None
    return plot


def _nodes() -> Any:
    plot = _figure("nodes", NODES_PIXELS, x_range=Range1d(start=0, end=1), y_range=Range1d(start=1, end=0))
    plot.yaxis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0)
    plot.ygrid.visible = False
    source = _source("bars", *BAR_FIELDS)
    bars = plot.quad(
        source=source,
        **EDGES,
        fill_color="color",
        line_color="white",
        line_alpha=0.5,
        line_width=0.5,
    )
    # apart from the bars: a pattern takes long to draw
    plot.quad(
        source=_source("hatches", *EDGES, "hatch"),
        **EDGES,
        fill_color=None,
        line_color=None,
        hatch_pattern="hatch",
        hatch_color="white",
        hatch_alpha=0.6,
    )
    marks = plot.scatter(
        source=_source("marks", "x", "y", "color", "marker", "kind", "text"),
        x="x",
        y="y",
        size=13,
        marker="marker",
        fill_color="color",
        line_color="white",
    )
    plot.add_tools(HoverTool(renderers=[bars], tooltips=_HOVER))
    plot.add_tools(HoverTool(renderers=[marks], tooltips=[("", "@text")]))
    plot.segment(
        source=_source("lines", "x", "y", "color"), x0="x", x1="x", y0=-0.5, y1="y", color="color", line_dash="dotted"
    )
    return plot


def _use(name: str, x_range: Any) -> Any:
    plot = _figure(f"use of {name}", USE_PIXELS, x_range=x_range, y_range=Range1d(start=0, end=1))
    source = _source(f"{name} used", "t", *USES[name])
    (used, what), (there, of) = USES[name].items()
    line = plot.step(source=source, x="t", y=used, mode="before", legend_label=what, color=MARKS["size"], line_width=2)
    plot.step(
        source=source, x="t", y=there, mode="before", legend_label=of, color=COLOURS["FAILED"], line_dash="dashed"
    )
    tips = [(text, f"@{column}{{0.[00]}}") for column, text in USES[name].items()]
    plot.add_tools(HoverTool(renderers=[line], tooltips=tips, mode="vline"))
    plot.visible, plot.toolbar_location = False, None
    return _with_legend(plot)


def _with_legend(plot: Any) -> Any:
    """Return a plot with its legend above it."""
    plot.legend.orientation = "horizontal"
    plot.add_layout(plot.legend[0], "above")
    plot.legend.padding, plot.legend.label_text_font_size = 2, "12px"
    return plot


def _queue(x_range: Any) -> Any:
    plot = _figure("queue", QUEUE_PIXELS, x_range=x_range, y_range=Range1d(start=0, end=1))
    plot.xaxis.axis_label = "time (UTC)"
    plot.yaxis.axis_label = "jobs, cores"
    plot.extra_y_ranges = {"nodes": Range1d(start=0, end=1)}
    plot.add_layout(LinearAxis(y_range_name="nodes", axis_label="nodes"), "right")
    samples = _source("samples", "t", "waiting", "running", "cores", "up")
    sizes = _source("sizes", "t", "size")
    styles: dict[str, dict[str, Any]] = {
        "waiting": {"legend_label": "jobs that wait", "color": COLOURS["CANCELED"], "line_width": 2},
        "running": {"legend_label": "jobs that run", "color": COLOURS["RUNNING"], "line_width": 2},
        "cores": {"legend_label": "cores in use", "color": COLOURS["COMPLETED"], "line_dash": "dashed"},
        "up": {"legend_label": "nodes up", "color": COLOURS["TIMEOUT"], "line_width": 2, "y_range_name": "nodes"},
    }
    for key, style in styles.items():
        line = plot.step(source=samples, x="t", y=key, mode="after", **style)
        if key == "waiting":
            tips = [("waiting", "@waiting"), ("running", "@running"), ("cores", "@cores"), ("nodes up", "@up")]
            plot.add_tools(HoverTool(renderers=[line], tooltips=tips, mode="vline"))
    plot.step(
        source=sizes,
        x="t",
        y="size",
        mode="after",
        legend_label="size",
        color=MARKS["size"],
        line_width=2,
        line_dash="dotdash",
        y_range_name="nodes",
    )
    return _with_legend(plot)
