"""Writes the tables of docs/explanation/files.md: of the files, each by its first sentence, and of the variables.

python -m tools.codemap
"""

import ast
import re
from collections.abc import Iterator
from itertools import groupby, takewhile
from pathlib import Path

from minicluster.console.templates import rendered

from tools import variables

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "files.md"
FOLDERS = ("charts/minicluster/templates", "plugin", "tools", "benchmarks")
#: Suffixes of files that can have a comment; some programs of the pods have no suffix.
SUFFIXES = {".go", ".j2", ".lua", ".py", ".sh", ".tpl", ".txt", ".yaml", ""}
MARKED = re.compile(r"(<!-- (files|variables) -->\n).*?(<!-- end -->)", re.DOTALL)
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
    comment = ast.get_docstring(ast.parse(text)) if path.suffix == ".py" else first_comment(text)
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
    """Return the page with the tables as the files are now."""
    made = {"files": "\n".join(tables(root)), "variables": variables.table(root / "plugin" / "minicluster")}
    return MARKED.sub(lambda match: f"{match[1]}\n{made[match[2]]}\n{match[3]}", text)


def main() -> None:
    """Write the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
