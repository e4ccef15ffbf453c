"""A table of figures in Markdown."""

from collections.abc import Callable, Sequence

from minicluster.console.templates import rendered

from benchmarks.results import Row

Cells = Sequence[object]


def number(value: object) -> str:
    """Return a cell: three digits of a number, a dash for None.

    >>> [number(value) for value in (1234.5, 38.94, 2.0, 0.0512, 7, None, "kary")]
    ['1,234', '38.9', '2.00', '0.05', '7', '-', 'kary']
    """
    match value:
        case None:
            return "-"
        case float():
            digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
            return f"{value:,.{digits}f}"
        case int():
            return f"{value:,}"
    return str(value)


def table(head: Sequence[str], rows: Sequence[Cells]) -> str:
    """Return a table in Markdown."""
    return rendered(__file__, "table.md.j2", head=head, rows=[[number(cell) for cell in row] for row in rows])


def columns(**keys: str) -> Callable[[Sequence[Row]], str]:
    """Return a function that makes a table with these headers; `cell` says what a key may be."""

    def make(rows: Sequence[Row]) -> str:
        heads = [head.replace("_", " ") for head in keys]
        return table(heads, [[cell(row, key) for key in keys.values()] for row in rows])

    return make


def cell(row: Row, key: str) -> object:
    """Return a value of a row, its quotient by another of the row, or its product with a number.

    >>> [cell({"a": 3, "b": 2}, key) for key in ("a", "a / b", "a * 10")]
    [3, 1.5, 30.0]
    """
    if " / " in key:
        one, _, other = key.partition(" / ")
        return row[one] / row[other]
    one, _, times = key.partition(" * ")
    return row[one] * float(times) if times else row[one]
