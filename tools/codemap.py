"""The map that the site's page of files has: each source file by its first sentence, and the scripts' variables."""

import ast
import re
from collections.abc import Iterator
from itertools import groupby, takewhile
from pathlib import Path

from minicluster.console.templates import rendered

from tools import budget, variables

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("charts/minicluster/templates", "plugin", "tools", "benchmarks")
#: Suffixes of files that can have a comment; some programs of the pods have no suffix.
SUFFIXES = {".go", ".j2", ".lua", ".py", ".sh", ".tpl", ".txt", ".yaml", ""}
#: Where a page has the map
MARK = "<!-- made -->\n"
HEADS = """\
## The variables of the scripts

Those that cross files of `pod`. `settings.sh` has the values of the cluster; `render/settings.py` makes it.

{variables}

## The files

{files}
"""
#: May come before the first comment: actions of a template, and lines for other programs.
BEFORE = re.compile(r"(?:\s*(?:\{\{-? ?[^/\s-].*?\}\}|#!.*|# shellcheck .*))*\s*")
TEMPLATE_COMMENT = re.compile(r"\{(?:\{-? ?/\*|#)(.*?)(?:\*/|#\})", re.DOTALL)
LINE_COMMENT = re.compile(r"(?:#|//|--) ?")


def first_comment(text: str) -> str:
    """Return the comment that a file begins with, without its marks."""
    text = BEFORE.sub("", text, count=1)
    if match := TEMPLATE_COMMENT.match(text):
        return match[1]
    return "\n".join(LINE_COMMENT.sub("", line, count=1) for line in takewhile(LINE_COMMENT.match, text.splitlines()))


def purpose(path: Path) -> str:
    """Return the first sentence of a file. Raises ValueError where there is none."""
    text = path.read_text(encoding="utf-8")
    comment = ast.get_docstring(budget.tree(path)) if path.suffix == ".py" else first_comment(text)
    paragraph = " ".join((comment or "").strip().partition("\n\n")[0].split())
    if not paragraph:
        raise ValueError(f"{path} does not say what it is for: begin it with a comment")
    return re.split(r"\.(?:\s|$)", paragraph)[0]


def files(root: Path) -> list[Path]:
    """Return the files of the map, those of a folder before those of its subfolders."""
    sorted_paths = [sorted((root / folder).rglob("*"), key=lambda path: (path.parent, path.name)) for folder in FOLDERS]
    return [path for paths in sorted_paths for path in paths if path.suffix in SUFFIXES and path.is_file()]


def tables(root: Path) -> Iterator[str]:
    """Yield a section for each folder; a package's ``__init__.py`` says what the folder is for."""
    for folder, paths in groupby(files(root), key=lambda path: path.parent):
        purposes = {path.name: purpose(path) for path in paths}
        about = purposes.pop("__init__.py", "")
        yield rendered(__file__, "files.md.j2", folder=folder.relative_to(root), about=about, purposes=purposes)


def written(text: str, root: Path = ROOT) -> str:
    """Return a page with the map in the place of its mark."""
    table = variables.table(root / "plugin" / "minicluster")
    return text.replace(MARK, HEADS.format(variables=table, files="\n".join(tables(root))))
