"""What a person sees on a terminal: the line of a wait, colours, and texts from outside, which are never markup."""

import os
import sys
from pathlib import Path

import pytest
from minicluster.console import streams
from minicluster.console.terminal import Progress, Share, StyledText, clock
from screens import Seen, look

HOSTILE = "a [bold red]b[/] :smile: \x1b[31mc\x07\r\nd [/nothing"
SHOWN = r"a [bold red]b[/] :smile: \x1b[31mc\x07 d [/nothing"
IMPORTS = "from minicluster.console import streams\nfrom minicluster.console.terminal import *\nsay = streams.say\n"


def script(tmp_path: Path, text: str, columns: int = 80, **env: str) -> Seen:
    """Run lines of Python on a terminal."""
    path = tmp_path / "script.py"
    begin = (
        "import time\nfrom minicluster.console import streams\n"
        "from minicluster.console.terminal import Progress, Share, failure, ok\n"
        "say = streams.say\n"
    )
    path.write_text(begin + text)
    return look([sys.executable, str(path)], {**os.environ, **env}, columns)


def test_a_wait_has_one_line_which_is_gone_at_its_end(tmp_path: Path) -> None:
    seen = script(
        tmp_path,
        """
say("installed mini")
with streams.waiting():
    for n in (1, 2, 4):
        say(Progress(f"mini: Starting: {n} of 4", "Starting"))
        time.sleep(0.1)
    say("a line above")
    say(Progress("mini: Running", "Running", is_quiet=True))
    time.sleep(1.5)
say(ok("mini has ended"))
""",
    )
    assert seen.last == ["minicluster: installed mini", "minicluster: a line above", "minicluster: mini has ended"]
    # the first line alone, then one line below it, never two
    assert {len(shown) for shown in seen.screens} <= {0, 1, 2, 3}
    below = seen.below("minicluster: installed mini")
    assert [line.split("  ")[0].rpartition(" ")[0] for line in below][:3] == [
        "mini: Starting: 1 of 4",
        "mini: Starting: 2 of 4",
        "mini: Starting: 4 of 4",
    ]
    # its clock begins anew with each state, and goes on without a word
    clocks = seen.below("minicluster: a line above")
    assert [line for line in clocks if "Running" in line] == ["mini: Running 0:00", "mini: Running 0:01"]
    assert seen.colours["green"] == "mini has ended"


def test_a_share_has_a_bar_and_the_time_that_is_left(tmp_path: Path) -> None:
    seen = script(
        tmp_path,
        """
with streams.waiting():
    say(Progress("copying", "", Share(1, 4)))
    say(Progress("copying", "", Share(2, 4, time.monotonic() + 61.5)))
""",
    )
    assert seen.last == []
    lines = [shown[0] for shown in seen.screens if shown]
    assert lines[-1] == f"copying {'━' * 10}╺{'━' * 9} 1:01 left"
    assert any(line.endswith("━ 0:00") for line in lines)


def test_output_comes_where_the_line_of_the_wait_was(tmp_path: Path) -> None:
    seen = script(
        tmp_path,
        """
with streams.waiting():
    say(Progress("mini: Starting", "Starting"))
    streams.write(b"one\\ntwo")
    say(Progress("mini: Starting again", "Starting"))
    streams.write(b"three\\n")
    streams.write(b"")
say(failure("no"))
""",
    )
    assert seen.last == ["one", "two", "three", "minicluster: no"]
    assert ["one", "two", "mini: Starting again 0:00"] in seen.screens
    assert seen.colours["red"] == "no"


def test_a_long_reason_is_shown_whole_and_goes_away_whole(tmp_path: Path) -> None:
    why = "a reason of many words " * 8
    seen = script(tmp_path, f"with streams.waiting():\n    say(Progress({why!r}))\nsay('end')", columns=60)
    assert seen.last == ["minicluster: end"]
    widest = max(seen.screens, key=len)
    # the clock is beside the first of its lines
    assert " ".join(" ".join(widest).replace("0:00", "").split()) == why.strip()


def test_a_long_command_is_on_the_line_after_the_name_of_the_program(tmp_path: Path) -> None:
    seen = script(tmp_path, 'say("`minicluster dashboard demo` shows it")', columns=30)
    assert seen.last == ["minicluster:", "`minicluster dashboard demo`", "shows it"]


def test_a_program_that_reads_the_output_has_the_terminal_for_itself(tmp_path: Path) -> None:
    waits = "with streams.waiting():\n    say(Progress('x'))\n    say(Progress('y', is_quiet=True))\n"
    text = f"{waits}    streams.write(b'z')"
    path = tmp_path / "script.py"
    path.write_text(f"{IMPORTS}{text}")
    seen = look(["sh", "-c", f"{sys.executable} {path} | cat"], os.environ)
    assert seen.last == ["minicluster: x", "z"]
    # a file is no such program
    seen = look(["sh", "-c", f"{sys.executable} {path} >{tmp_path}/out"], os.environ)
    assert (seen.last, (tmp_path / "out").read_text()) == ([], "z")
    assert [line for shown in seen.screens for line in shown][-1].startswith("y 0:0")


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"NO_COLOR": "1"}], ids=str)
def test_a_terminal_that_wants_no_colours_has_none(tmp_path: Path, env: dict[str, str]) -> None:
    text = "with streams.waiting():\n    say(Progress('x'))\n    say(Progress('y', is_quiet=True))\nsay(failure('no'))"
    path = tmp_path / "script.py"
    path.write_text(f"{IMPORTS}{text}")
    words = ["env", *(f"{key}={value}" for key, value in env.items()), sys.executable, str(path)]
    seen = look(words, os.environ)
    assert set(seen.colours) == {"default"}
    if "TERM" in env:
        assert seen.raw == b"minicluster: x\r\nminicluster: no\r\n"
    else:
        assert seen.last == ["minicluster: no"]


def test_texts_from_outside_are_neither_markup_nor_control_characters(tmp_path: Path) -> None:
    text = f"with streams.waiting():\n    say(Progress({HOSTILE!r}))\nsay({HOSTILE!r})\nsay(failure({HOSTILE!r}))"
    seen = script(tmp_path, text)
    assert seen.last == [f"minicluster: {SHOWN}"] * 2
    assert next(shown for shown in seen.screens if shown) == [f"{SHOWN} 0:00"]
    assert seen.colours["red"] == SHOWN
    assert b"\x07" not in seen.raw


def test_without_a_terminal_each_step_is_a_line_and_a_quiet_one_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with streams.waiting():
        streams.say(Progress(HOSTILE, "x", Share(1, 2)))
        streams.say(Progress("quiet", is_quiet=True))
        streams.say(StyledText("wrong", "wrong"))
    name = streams.program()
    assert capsys.readouterr().err == f"{name}: {SHOWN}\n{name}: wrong\n"


def test_a_program_hears_no_quiet_steps() -> None:
    heard: list[str] = []
    for say in (streams.aloud(heard.append), streams.aloud(None)):
        say(Progress("one"))
        say(Progress("two", is_quiet=True))
        say("three")
    assert heard == ["one", "three"]


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.9, "0:59"), (61, "1:01"), (3723, "1:02:03")])
def test_a_clock_has_hours_only_if_there_are_some(seconds: float, text: str) -> None:
    assert clock(seconds) == text
