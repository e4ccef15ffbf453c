"""Draws docs/images/status.svg: what `minicluster status` shows of a cluster that grows with its queue.

python -m tools.screen
"""

from pathlib import Path
from typing import Any

from minicluster.console.templates import rendered
from minicluster.status.table import WIDTH_COLUMNS, table

IMAGE = Path(__file__).resolve().parent.parent / "docs" / "images" / "status.svg"
COMMAND = "minicluster status demo --watch"
#: A document of `minicluster status -o json`, as in a run of values-examples/autoscaling.yaml with larger nodes.
FOUND: dict[str, Any] = {
    "name": "demo",
    "namespace": "research",
    "age": 254,
    "state": "Running",
    "why": "",
    "size": 6,
    "sizeFrom": "job",
    "maxSize": 8,
    "failures": {"pods": 0, "most": 100, "groups": {}},
    "pods": [{"ranks": "0-3", "reason": "Running"}, {"ranks": "4-5", "reason": "Pending: ContainerCreating"}],
    "containers": [],
    "locations": [],
    "flux": "0.88.0",
    "scheduler": {"name": "Fluxion", "version": "0.54.0", "queuePolicy": "conservative", "matchPolicy": "lonode"},
    "autoscaling": {"min": 1, "max": 8},
    "quorum": {"needed": 1, "reached": True},
    "nodes": {"up": 4, "drained": 0, "missing": 2, "notStarted": 2},
    "drained": [],
    "missing": [{"ranks": "4-5", "reason": "Pending: ContainerCreating"}],
    "cores": {"free": 4, "allocated": 60, "total": 64},
    "gpus": {"free": 0, "allocated": 0, "total": 0},
    "jobs": {"pending": 7, "running": 15, "done": 318, "failed": 1, "canceled": 0, "timeout": 0, "purged": 0},
    "waiting": [
        {"jobs": ["ƒLyQWFkR"], "reason": "waits for nodes: it asks for 6 nodes of 4 cores, and 4 are up"},
        {
            "jobs": ["ƒM1Bgf4H", "ƒM1Bgf4J", "ƒM1Bgf4K", "ƒM1Bgf4L", "ƒM1Bgf4M", "ƒM1Bgf4N"],
            "reason": "waits for resources that other jobs have",
        },
    ],
    "longestWait": 9,
    "queues": [],
    "problems": [],
    "bursts": {"registered": 0, "up": 0},
    "groups": [],
}
#: Of a letter, its width, a line and the edge
LETTER_PIXELS, COLUMN_PIXELS, LINE_PIXELS, EDGE_PIXELS = 14, 8.5, 20, 20
FONTS = "ui-monospace, Menlo, Consolas, monospace"


def svg(command: str, shown: str) -> str:
    """Return a terminal with a command and what it shows."""
    lines = [f"$ {command}", *shown.splitlines()]
    return rendered(
        __file__,
        "screen.svg.j2",
        lines=lines,
        width=round(WIDTH_COLUMNS * COLUMN_PIXELS) + 2 * EDGE_PIXELS,
        height=len(lines) * LINE_PIXELS + 2 * EDGE_PIXELS,
        line_height=LINE_PIXELS,
        edge=EDGE_PIXELS,
        fonts=FONTS,
        size=LETTER_PIXELS,
    )


def main() -> None:
    """Draw the picture."""
    IMAGE.write_text(svg(COMMAND, table(FOUND)), encoding="utf-8")


if __name__ == "__main__":
    main()
