"""``kubectl_complete-minicluster``: kubectl asks it for completions of `kubectl minicluster`.

Source: plugin_completion.go of kubectl, and completions.go of spf13/cobra for the directives.
"""

import sys
from collections.abc import Sequence

from minicluster import streams
from minicluster.cli import COMPLETE, front_door
from minicluster.errors import one_line

#: Directive by the kind of click's candidates; for other kinds the shell offers no file names
DIRECTIVES = {"file": 0, "dir": 16}
NO_FILES_CODE = 4


def main() -> None:
    """Print candidates for the last argument, which comes after the others, and exit."""
    streams.open_closed()
    with front_door():
        streams.write(completions(sys.argv[1:]).encode())


def completions(words: Sequence[str]) -> str:
    """Return a line for each candidate, with its help after a tab, and the directive's line."""
    from click.shell_completion import ShellComplete  # noqa: PLC0415 - see cli

    from minicluster.commands import group  # noqa: PLC0415

    *before, begin = words or [""]
    found = ShellComplete(group, {}, "kubectl minicluster", COMPLETE).get_completions(before, begin)
    plain = [f"{item.value}\t{one_line(item.help or '')}".rstrip() for item in found if item.type == "plain"]
    directive = next((DIRECTIVES[item.type] for item in found if item.type in DIRECTIVES), NO_FILES_CODE)
    return "".join(f"{line}\n" for line in (*plain, f":{directive}"))
