"""What a terminal shows beside plain lines: colours, tables that fit, and the line of a wait, which lives.

rich draws all of it. It is imported only where a person looks: not for a pipe, and not for Helm.
"""

import os
import re
import time
from typing import IO, TYPE_CHECKING, Literal, NamedTuple, Self

from minicluster.errors import one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

#: Whether something is well, waits, or is wrong
Tone = Literal["", "well", "waits", "wrong"]
STYLES = {"": "", "well": "green", "waits": "yellow", "wrong": "red"}
#: Seconds until something is looked at again
LOOK_AGAIN_SECONDS = 0.1
#: Stands for a space at which no line breaks
UNBROKEN = "\0"
#: Columns of the bar of a wait
BAR_COLUMNS = 20


class StyledText(str):
    """A line for a person, and its tone, which a terminal shows as a colour."""

    tone: Tone

    def __new__(cls, text: str, tone: Tone = "") -> Self:
        """Return a text with a tone."""
        told = super().__new__(cls, text)
        told.tone = tone
        return told


class Share(NamedTuple):
    """How far a wait is that counts something."""

    done: float
    total: float
    end: float | None = None  #: when all will be done, as time.monotonic() has it


class Progress(StyledText):
    """Where a wait is. A terminal shows the last step on the line that lives; elsewhere each is a line."""

    phase: str
    share: Share | None
    is_quiet: bool

    def __new__(
        cls, text: str, phase: str = "", share: Share | None = None, *, is_quiet: bool = False, tone: Tone = "waits"
    ) -> Self:
        """Return a step. The clock of the line begins anew with each ``phase``, and a ``share`` has a bar.

        A quiet step changes too often for lines, or is no news: only a terminal shows it.
        """
        step = super().__new__(cls, text, tone)
        step.phase, step.share, step.is_quiet = phase, share, is_quiet
        return step


def reworded(told: str, text: str) -> str:
    """Return other words for a line, of the same kind and tone."""
    if not isinstance(told, StyledText):
        return text
    other = str.__new__(type(told), text)
    vars(other).update(vars(told))
    return other


def ok(text: str) -> StyledText:
    """Return a text about something that is well."""
    return StyledText(text, "well")


def failure(text: str) -> StyledText:
    """Return a text about something that is wrong."""
    return StyledText(text, "wrong")


def wrapped(line: str, width: int) -> str:
    r"""Return a line as lines of a width that break between words, and not in a command that may be pasted.

    >>> wrapped("an option: `run -N 2` says so", 12)
    'an option:\n`run -N 2`\nsays so'
    """
    import textwrap  # noqa: PLC0415 - only a terminal needs it

    lines = textwrap.wrap(unbroken(line), width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace(UNBROKEN, " ")


def unbroken(text: str) -> str:
    """Return a text in which no line breaks within a command, which a person pastes."""
    return re.sub("`[^`]*`", lambda command: command[0].replace(" ", UNBROKEN), text)


def is_terminal(stream: IO[str] | None) -> bool:
    """Return whether a person looks at a stream, on a terminal that knows more than lines."""
    try:
        return bool(stream and stream.isatty()) and os.environ.get("TERM") != "dumb"
    except ValueError:  # it is closed
        return False


def columns(stream: IO[str]) -> int:
    """Return the columns of the terminal on a stream; 0 if it is none."""
    return _console(stream).width if is_terminal(stream) else 0


def drawn(what: "RenderableType", width: int) -> str:
    """Return what rich draws for a terminal of this width; lines may be longer."""
    from io import StringIO  # noqa: PLC0415 - see the top

    text = StringIO()
    console = _console(text, width)
    console.print(what, crop=False)
    return text.getvalue()


def _console(file: IO[str], width: int | None = None) -> "Console":
    """Return rich's console, for which no text is markup."""
    from rich.console import Console  # noqa: PLC0415 - see the top

    from minicluster import settings  # noqa: PLC0415

    return Console(
        file=file,
        width=width,
        force_terminal=True,
        force_interactive=True,
        force_jupyter=False,
        no_color=not settings.has_colors(),
        markup=False,
        emoji=False,
        highlight=False,
    )


def full_screen(file: IO[str]) -> "Live":
    """Return what shows pictures on a whole terminal, which is as before at the end of its block."""
    from rich.live import Live  # noqa: PLC0415 - see the top

    return Live(console=_console(file), screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)


class Screen:
    """Standard error on a terminal: lines, and below them the line of a wait."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self._console = _console(file)
        self._live: Live | None = None
        self._step, self._begin = Progress(""), 0.0

    def say(self, prefix: str, text: str) -> None:
        """Print a line, above that of a wait."""
        from rich.text import Text  # noqa: PLC0415 - see the top

        style = STYLES[text.tone] if isinstance(text, StyledText) else ""
        # a long command that comes first is on the next line
        told = wrapped(prefix + one_line(text), self._console.width).removeprefix(prefix.rstrip()).removeprefix(" ")
        self._console.print(Text.assemble((prefix, "dim"), (told, style)), soft_wrap=True)

    def show(self, step: Progress) -> None:
        """Show a step on the line of a wait."""
        from rich.live import Live  # noqa: PLC0415 - see the top

        if self._live is None or step.phase != self._step.phase:
            self._begin = time.monotonic()
        self._step = step
        if self._live:
            self._live.refresh()
            return
        self._live = Live(
            get_renderable=self._line,
            console=self._console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start(refresh=True)
        # a signal that ends us would leave it hidden
        self._console.show_cursor(True)

    def clear(self) -> None:
        """Remove the line of a wait."""
        live, self._live = self._live, None
        if live:
            live.stop()

    def _line(self) -> "RenderableType":
        from rich.progress_bar import ProgressBar  # noqa: PLC0415 - see the top
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        step, now = self._step, time.monotonic()
        line = Table.grid(padding=(0, 1))
        line.add_column(overflow="fold")
        cells: list[RenderableType] = [Text(one_line(step), STYLES[step.tone])]
        said = clock(now - self._begin)
        if step.share:
            done, total, end = step.share
            cells.append(ProgressBar(total, min(done, total), BAR_COLUMNS))
            said = said if end is None else f"{clock(max(0.0, end - now))} left"
        cells.append(Text(said, "dim"))
        for _ in cells[1:]:
            line.add_column(no_wrap=True)
        line.add_row(*cells)
        return line


def clock(seconds: float) -> str:
    """Return seconds as a clock has them.

    >>> clock(12.9), clock(3723)
    ('0:12', '1:02:03')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
