"""Copies a Flux view without what running Flux does not need: ``view.py DESTINATION FOLDER…``.

Most files of a Spack view are for those who build software with it. Runs with the Python of the view, 3.8 or later.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

#: Paths that are not copied: headers, documentation, translations, static libraries, Spack's records, the parts of
#: Python that no program of Flux imports, its byte code for -O and -OO, and terminals that `flux top` rarely meets
LEFT_OUT = re.compile(
    r"""/(
      include | \.spack
    | share/(aclocal|doc|gtk-doc|info|locale|man)
    | share/terminfo/[^lstvx]
    | (lib|lib64|share)/(cmake|pkgconfig)
    | lib/python3\.\d+/(config-[^/]+|ensurepip|idlelib|lib2to3|test|tkinter|turtledemo|site-packages/pip)
    )$
    | \.(a|la|opt-[12]\.pyc)$""",
    re.VERBOSE,
)


def left_out(folder: str, names: list[str]) -> set[str]:
    """Return the names of a folder that are not copied."""
    return {name for name in names if LEFT_OUT.search(f"{folder}/{name}")}


def main(destination: str, *folders: str) -> None:
    """Copy folders, links as links. Ends the program with a line that says what failed."""
    try:
        for folder in folders:
            shutil.copytree(folder, Path(destination, Path(folder).name), symlinks=True, ignore=left_out)
    except shutil.Error as error:
        source, _, reason = error.args[0][0]
        sys.exit(f"minicluster: {source} of the view was not copied: {reason}")
    except OSError as error:
        sys.exit(f"minicluster: the view was not copied: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
