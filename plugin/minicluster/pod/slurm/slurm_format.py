"""The columns of squeue, sacct and sinfo: formats, widths, and what stands in each column.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import re
from typing import Callable, Iterable, Mapping, NamedTuple, Sequence, TypeVar

from slurm_parse import SlurmError

Row = TypeVar("Row")
_PERCENT = re.compile(r"%(#?)(\.?)(\d*)([a-zA-Z])|\\([nt])|%%")


class Field(NamedTuple):
    """A column that there is."""

    header: str
    width: int  #: in lists of names; below 0 to the left
    text: Callable[..., str]


class Column(NamedTuple):
    """A part of a line: a column, or text between columns."""

    field: Field | None
    width: int  #: 0 for as wide as its text
    is_right: bool
    between: str = ""

    def show(self, text: str, mark: str = "") -> str:
        """Return a text in its place; a mark shows where it was cut."""
        if not self.width:
            return text
        cut = text[: self.width - 1] + mark if mark and len(text) > self.width else text[: self.width]
        return cut.rjust(self.width) if self.is_right else cut.ljust(self.width)


def by_letters(format_: str, letters: Mapping[str, str], fields: Mapping[str, Field]) -> list[Column]:
    """Return the columns of `%.18i %j`; unknown letters stand as they are, as in Slurm."""
    columns, at = [], 0
    for match in _PERCENT.finditer(format_):
        columns.append(Column(None, 0, False, format_[at : match.start()]))
        at = match.end()
        if match[5]:
            columns.append(Column(None, 0, False, {"n": "\n", "t": "\t"}[match[5]]))
        elif match[4] in letters:
            columns.append(Column(fields[letters[match[4]]], int(match[3] or 0), bool(match[2])))
        else:
            columns.append(Column(None, 0, False, match[0]))
    columns.append(Column(None, 0, False, format_[at:]))
    return [column for column in columns if column.field or column.between]


def by_names(format_: str, fields: Mapping[str, Field], option: str, apart: str) -> list[Column]:
    """Return the columns of `JobID%20,State`, or of `JobID:.20,State:|` with text behind them. Raises SlurmError."""
    columns: list[Column] = []
    # a text behind a column may be any, but a comma
    words = re.split(r"[,\s]+", format_) if apart == "%" else [word.lstrip(" ") for word in format_.split(",")]
    for word in filter(None, words):
        name, has_width, rest = word.partition(apart)
        width = re.match(r"([-.]?)(\d*)\+?", rest)
        text = rest[width.end() :] if width else ""
        if name.lower() not in fields or (apart == "%" and (text or (has_width and not (width and width[2])))):
            raise SlurmError(f"{option}: Invalid field requested: {word}")
        field = fields[name.lower()]
        if not has_width or not width:
            columns.append(Column(field, abs(field.width), field.width > 0))
            continue
        is_right = width[1] == "." or (apart == "%" and field.width > 0 and width[1] != "-")
        columns.append(Column(field, int(width[2] or 0), is_right))
        columns += [Column(None, 0, False, text)] if text else []
    return columns


def lines(columns: Sequence[Column], rows: Iterable[Row], header: bool = True, mark: str = "") -> Iterable[str]:
    """Yield the lines of a table whose columns say what stands between them."""
    if header:
        yield "".join(c.show(c.field.header) if c.field else c.between for c in columns)
    for row in rows:
        yield "".join(c.show(c.field.text(row), mark) if c.field else c.between for c in columns)


def parsable(columns: Sequence[Column], rows: Iterable[Row], header: bool, ends: bool, between: str) -> Iterable[str]:
    """Yield the lines of a table with a character between the columns, and one at the end if asked for."""
    end = between if ends else ""
    named = [column.field for column in columns if column.field]
    if header:
        yield between.join(field.header for field in named) + end
    for row in rows:
        yield between.join(field.text(row) for field in named) + end


def apart(columns: Sequence[Column], text: str = " ") -> list[Column]:
    """Return columns with a text between them."""
    parted: list[Column] = []
    for column in columns:
        parted += [Column(None, 0, False, text)] if parted else []
        parted.append(column)
    return parted


def table(fields: dict[str, Field]) -> str:
    """Return the names of fields, for --helpformat."""
    return " ".join(field.header for field in fields.values())
