"""docs/tutorial.md, word by word: each command is typed on a terminal with real pods, and shows what the page says.

A block of ``sh`` has commands, and the block of ``text`` after it what they show; … stands for what differs each time.
"""

import re
from typing import NamedTuple

from failures import matches
from person import Person, squeezed, without_varying
from real_cluster import IN_PODS, NODE_FOLDER
from support import ROOT

#: A block of the page, and why the test does not run it, or ""
BLOCK = re.compile(r"^(?:<!-- not run: (.+?) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Step(NamedTuple):
    """Commands, what they show, and why they are not run, or ""."""

    commands: list[str]
    shown: str
    why: str


def steps() -> list[Step]:
    """Return the steps of the page."""
    found: list[Step] = []
    for why, language, text in BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text()):
        if language == "sh":
            found.append(Step(text.splitlines(), "", why))
        else:
            assert (language, found[-1].shown) == ("text", ""), text
            found[-1] = found[-1]._replace(shown=text.rstrip("\n"))
    return found


def test_each_command_of_the_tutorial_is_run_or_says_why_not() -> None:
    found = steps()
    assert [step.commands for step in found if not step.why and not step.shown] == []
    assert sum(len(step.commands) for step in found if not step.why) > 15


@IN_PODS
@NODE_FOLDER
def test_the_tutorial(person: Person) -> None:
    for step in steps():
        if step.why:
            continue
        done = [person.types(line, step.shown, "default") for line in step.commands]
        seen = squeezed("\n".join(text for text, _code in done if text))
        said = squeezed(without_varying(step.shown))
        # of a line that is as the page says, what differs each time is the page's
        alike = [line if matches(line, each) else each for line, each in zip(said, seen, strict=False)]
        assert [*alike, *seen[len(alike) :]] == said, step.commands
        assert [code for _text, code in done] == [0] * len(done), step.commands
