"""Draws the boxes and arrows of docs/images/*.toml as an SVG of the same name.

python -m tools.picture
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
COLORS = {"white": "#ffffff", "grey": "#f3f4f6", "blue": "#dbeafe", "green": "#dcfce7"}
LINE = 18  # pixels from one line of text to the next
HEAD = 6  # pixels of an arrow's head


@dataclass(frozen=True)
class Box:
    """A rectangle, in pixels from the left upper corner of the picture."""

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """Its right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """Its lower edge."""
        return self.top + self.height


def middle(start: int, length: int) -> int:
    """Return the middle of an edge."""
    return start + length // 2


def ends(one: Box, other: Box) -> tuple[int, int, int, int]:
    """Return x and y of both ends of the arrow from one box to another.

    Raises ValueError when the other box is neither below nor beside it.
    """
    narrow = min(one, other, key=lambda box: box.width)
    low = min(one, other, key=lambda box: box.height)
    x, y = middle(narrow.left, narrow.width), middle(low.top, low.height)
    if other.top >= one.bottom:
        return x, one.bottom, x, other.top
    if other.left >= one.right:
        return one.right, y, other.left, y
    if one.left >= other.right:
        return one.left, y, other.right, y
    raise ValueError(f"{other} is neither below nor beside {one}: move it")


def label(x: int, y: int, text: str, style: str = "") -> str:
    """Return a line of text."""
    return f'<text x="{x}" y="{y}"{style}>{escape(text)}</text>'


def draw_box(box: Box, text: list[str], color: str) -> list[str]:
    """Return a box with its title in bold."""
    title, *lines = text
    x, y = middle(box.left, box.width), box.top + LINE + 4
    return [
        f'<rect x="{box.left}" y="{box.top}" width="{box.width}" height="{box.height}" rx="6" '
        f'fill="{COLORS[color]}" stroke="#374151"/>',
        label(x, y, title, ' text-anchor="middle" font-weight="bold"'),
        *(label(x, y + LINE * n, line, ' text-anchor="middle"') for n, line in enumerate(lines, 1)),
    ]


def draw_arrow(one: Box, other: Box, text: list[str]) -> list[str]:
    """Return an arrow with its text beside or above it."""
    x1, y1, x2, y2 = ends(one, other)
    line = f'<path d="M{x1} {y1}L{x2} {y2}" stroke="#374151" fill="none" marker-end="url(#head)"/>'
    if x1 == x2:
        return [line, *(label(x1 + 8, (y1 + y2) // 2 + 4 + LINE * n, part) for n, part in enumerate(text))]
    x, y = (x1 + x2) // 2, y1 - 8 - LINE * (len(text) - 1)
    return [line, *(label(x, y + LINE * n, part, ' text-anchor="middle"') for n, part in enumerate(text))]


def svg(picture: Mapping[str, Any]) -> str:
    """Return the SVG of a picture. Raises KeyError for an arrow between boxes that are not there."""
    width, height = picture["size"]
    boxes = {entry["name"]: Box(*entry["at"], *entry["size"]) for entry in picture["box"]}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="12">',
        f'<marker id="head" markerWidth="{HEAD}" markerHeight="{HEAD}" refX="{HEAD}" refY="{HEAD // 2}" orient="auto">'
        f'<path d="M0 0L{HEAD} {HEAD // 2}L0 {HEAD}Z" fill="#374151"/></marker>',
        f'<rect width="{width}" height="{height}" fill="{COLORS["white"]}"/>',
    ]
    for entry in picture["box"]:
        parts += draw_box(boxes[entry["name"]], entry["text"], entry.get("color", "white"))
    for arrow in picture["arrow"]:
        parts += draw_arrow(boxes[arrow["from"]], boxes[arrow["to"]], arrow.get("text", []))
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    """Draw all pictures."""
    for file in sorted(IMAGES.glob("*.toml")):
        picture = tomllib.loads(file.read_text(encoding="utf-8"))
        file.with_suffix(".svg").write_text(svg(picture), encoding="utf-8")


if __name__ == "__main__":
    main()
