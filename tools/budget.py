"""The budget of the project: what must not grow, or not shrink, and today's figures.

python -m tools.budget prints them. A change that needs more raises the limit and says why; one that needs less lowers
it.
"""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "plugin" / "minicluster"
TEMPLATES = ROOT / "charts" / "minicluster" / "templates"
#: How far a figure may be below its limit before the limit has to follow
SLACK_PART = 0.02
#: A comment; or a text, of one line or of several
NO_CODE = re.compile(r"""#[^\n]*|("{3}|'{3})(?:[^\\]|\\.)*?\1|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.DOTALL)


class Figure(NamedTuple):
    """What is counted, how, and the most that it may be."""

    name: str
    measure: Callable[[], int]
    limit: int
    is_least: bool = False  #: whether more is better


def sources() -> list[Path]:
    """Return the modules of the package, and the programs of the pods."""
    # a wheel has a copy of the chart there
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] != "chart"]


@cache
def tree(path: Path) -> ast.Module:
    """Return a parsed file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return all parts of a file."""
    return list(ast.walk(tree(path)))


def package_nodes() -> Iterator[ast.AST]:
    """Yield all parts of the package."""
    return chain.from_iterable(map(nodes, sources()))


def is_text(node: ast.AST) -> bool:
    """Tell whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def statements() -> int:
    """Count the statements of the package; a docstring is none."""
    return sum(isinstance(node, ast.stmt) and not is_text(node) for node in package_nodes())


def files() -> int:
    """Count the modules of the package, and the programs of the pods."""
    return len(sources())


def asserts() -> int:
    """Count what the package says must hold."""
    return sum(isinstance(node, ast.Assert) for node in package_nodes())


def arrows() -> int:
    """Count the rooms that rooms import."""
    return len({(room(one), room(other)) for one, other in between_rooms()})


def doors() -> int:
    """Count the modules that other rooms import."""
    return len({other for _, other in between_rooms() if "." in other})


def defines() -> int:
    """Count the named templates of the chart."""
    texts = (path.read_text(encoding="utf-8") for path in TEMPLATES.rglob("*.tpl"))
    return sum(len(re.findall(r"\{\{-? ?define ", text)) for text in texts)


def lines_of_tests() -> int:
    """Count the lines of the tests that have code."""
    return sum(code_lines(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("*.py"))


def code_lines(text: str) -> int:
    """Count the lines that begin a token of code. The module tokenize takes eight times as long."""
    without = NO_CODE.sub(lambda found: "" if found[0].startswith("#") else "text" + "\n" * found[0].count("\n"), text)
    return sum(bool(line.strip()) for line in without.split("\n"))


def module_name(path: Path) -> str:
    """Return the name of a module in the package, "" for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def graph() -> dict[str, set[str]]:
    """Return the modules of the package that each module imports, also inside its functions."""
    names = {module_name(path) for path in sources()}
    return {module_name(path): set(imports(path, names)) - {"", module_name(path)} for path in sources()}


def imports(path: Path, names: set[str]) -> Iterator[str]:
    """Yield the modules of the package that one imports."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("minicluster."):
            base = str(node.module).removeprefix("minicluster").lstrip(".")
            full = {f"{base}.{alias.name}".lstrip(".") for alias in node.names}
            yield from {one if one in names else base for one in full}


def room(module: str) -> str:
    """Return the room of a module, or the module itself if it is beside the rooms."""
    return module.split(".", maxsplit=1)[0]


def between_rooms() -> list[tuple[str, str]]:
    """Return the imports of modules of other rooms."""
    pairs = ((one, other) for one, others in graph().items() for other in others)
    return [(one, other) for one, other in pairs if room(one) != room(other)]


FIGURES = (
    Figure("statements of the package", statements, 24703),
    Figure("files of the package", files, 285),
    Figure("arrows between rooms", arrows, 125),
    Figure("doors of rooms", doors, 75),
    Figure("named templates of the chart", defines, 148),
    Figure("lines of tests with code", lines_of_tests, 58112),
    Figure("asserts of the package", asserts, 24, is_least=True),
)


def problem(figure: Figure) -> str:
    """Return what is wrong with a figure, or ""."""
    count, limit = figure.measure(), figure.limit
    if (count < limit) if figure.is_least else (count > limit):
        return f"{count} {figure.name} of {limit}: do without, or change the limit in tools/budget.py and say why"
    if abs(limit - count) > SLACK_PART * limit:
        return f"{count} {figure.name} of {limit}: make that the limit in tools/budget.py"
    return ""


def main() -> None:
    """Print the figures."""
    for figure in FIGURES:
        print(f"{figure.measure():7} {figure.name} ({'at least' if figure.is_least else 'at most'} {figure.limit})")


if __name__ == "__main__":
    main()
