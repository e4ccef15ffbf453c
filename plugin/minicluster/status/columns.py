"""Rows in columns: as kubectl prints them, and fitted for a terminal, where a narrow one shows fewer columns."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from minicluster.console.terminal import STYLES, Tone, drawn
from minicluster.errors import one_line

#: Columns between two of a fitted table, and the least that a cell which may break has
GAP_COLUMNS, BROKEN_COLUMNS = 2, 8


class Column(NamedTuple):
    """A column of a table, and what it shows of a row."""

    head: str
    cell: Callable[[Any], str]
    tone: Callable[[Any], Tone] = lambda _: ""
    may_break: bool = False  #: whether a narrow terminal may break its cells
    brief: Callable[[Any], str] | None = None  #: what a terminal shows instead
    is_name: bool = False  #: whether a person copies it: it is whole on any terminal
    goes: int = 0  #: which columns a narrow terminal leaves out first: those of the highest, from the right


def in_columns(columns: Sequence[Column], rows: Sequence[Any], width: int = 0) -> str:
    """Return rows as kubectl would print them; in colours, and fitted, for a terminal of a ``width``."""
    if width:
        return _fitted(columns, rows, width)
    cells = [[column.head for column in columns], *([column.cell(row) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _fitted(columns: Sequence[Column], rows: Sequence[Any], width: int) -> str:
    from rich.table import Table  # noqa: PLC0415 - see terminal.py
    from rich.text import Text  # noqa: PLC0415

    texts = [[one_line((column.brief or column.cell)(row)) for row in rows] for column in columns]
    least = [_least(column, cells) for column, cells in zip(columns, texts, strict=True)]
    shown = _shown(columns, least, width)
    table = Table(box=None, pad_edge=False, padding=(0, GAP_COLUMNS, 0, 0), header_style="bold")
    for place in shown:
        head = Text(_head(columns[place]))
        table.add_column(head, no_wrap=not columns[place].may_break, overflow="fold", min_width=least[place])
    for number, row in enumerate(rows):
        table.add_row(*(Text(texts[place][number], STYLES[columns[place].tone(row)]) for place in shown))
    # where the names alone are wider, the terminal wraps the lines
    return drawn(table, max(width, _sum(least[place] for place in shown)))


def _head(column: Column) -> str:
    """Return the first word of a column's head, which says enough."""
    return column.head.split()[0]


def _least(column: Column, cells: Iterable[str]) -> int:
    """Return the least columns that a column needs."""
    from rich.cells import cell_len  # noqa: PLC0415 - see terminal.py

    most = max(map(cell_len, cells), default=0)
    return max(len(_head(column)), min(most, BROKEN_COLUMNS) if column.may_break else most)


def _shown(columns: Sequence[Column], least: Sequence[int], width: int) -> list[int]:
    """Return the places of the columns that a terminal has room for."""
    left = dict(enumerate(least))
    others = [place for place in left if not columns[place].is_name]
    for place in sorted(others, key=lambda place: (-columns[place].goes, -place)):
        if _sum(left.values()) > width:
            del left[place]
    return list(left)


def _sum(widths: Iterable[int]) -> int:
    """Return the columns of a table."""
    total = list(widths)
    return sum(total) + GAP_COLUMNS * (len(total) - 1)
