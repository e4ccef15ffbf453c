"""Writes the lists of skills/minicluster/SKILL.md, which agents read, from the commands and the page about them.

python -m tools.skill
"""

import re
from collections.abc import Iterator
from pathlib import Path

import click
from minicluster.commands import SECTIONS, group

ROOT = Path(__file__).resolve().parent.parent
#: An agent finds a skill by the name of its folder (agentskills.io)
SKILL = ROOT / "skills" / "minicluster" / "SKILL.md"
PAGE = ROOT / "docs" / "reference" / "commands.md"
MARKED = re.compile(r"(<!-- (commands|codes|json) -->\n).*?(<!-- end -->)", re.DOTALL)
CODES = re.compile(r"^## Exit codes\n\n(.*?)\n\n", re.MULTILINE | re.DOTALL)


def written(text: str) -> str:
    """Return the skill with its lists."""
    made = {"commands": "\n".join(_commands()), "codes": _codes(), "json": _json()}
    return MARKED.sub(lambda match: f"{match[1]}\n{made[match[2]]}\n\n{match[3]}", text)


def all_commands() -> dict[str, click.Command]:
    """Return the commands by their names, in the order of the help."""
    context = click.Context(group)
    commands = {name: group.get_command(context, name) for names in SECTIONS.values() for name in names}
    return {name: command for name, command in commands.items() if command}


def _commands() -> Iterator[str]:
    commands = all_commands()
    for title, names in SECTIONS.items():
        lines = (f"- `minicluster {name}`: {commands[name].get_short_help_str(200)}" for name in names)
        yield "\n".join([f"{title}:\n", *lines]) + ("" if title == [*SECTIONS][-1] else "\n")


def with_json() -> list[str]:
    """Return the commands that have `-o json`."""
    return [name for name, command in all_commands().items() if any(map(_has_json, command.params))]


def _json() -> str:
    return ", ".join(f"`{name}`" for name in with_json())


def _has_json(option: click.Parameter) -> bool:
    return isinstance(option.type, click.Choice) and "json" in option.type.choices


def _codes() -> str:
    match = CODES.search(PAGE.read_text(encoding="utf-8"))
    if not match:
        raise ValueError(f"{PAGE.name} has no table of exit codes")
    return match[1]


def main() -> None:
    """Write the skill."""
    SKILL.write_text(written(SKILL.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
