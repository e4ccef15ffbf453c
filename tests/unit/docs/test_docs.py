"""The documentation names what exists: files, fields, make targets."""

import re
import tomllib

import pytest
from minicluster.commands import SECTIONS
from minicluster.pod import programs
from minicluster.render.constants import GPUS
from minicluster.render.devices import CLASS
from myst_parser.slugs import github_slugify, unique_slug
from support import PACKAGE, ROOT

#: Pages of the site, and those that only GitHub shows
SITE = sorted(ROOT.glob("docs/**/*.md"))
OTHERS = [
    path
    for place in ("*", "charts/*/*", "benchmarks/*", "tools/*/*", "skills/*/*")
    for path in ROOT.glob(f"{place}.md")
]
PAGES = [*SITE, *sorted(OTHERS)]
CODE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
TOCTREE = re.compile(r"^```{toctree}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub and MyST give a page's headings."""
    found: set[str] = set()
    for title in HEADING.findall(CODE.sub("", text)):
        # a link's text, without its target
        found.add(unique_slug(github_slugify(re.sub(r"\[(.+?)\]\(.+?\)", r"\1", title)), found))
    return found


def rows(text: str) -> list[list[str]]:
    """Return the cells of all table rows except headers."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page):
    broken = []
    for target, anchor in LINK.findall(CODE.sub("", page.read_text())):
        path = page.parent / target if target else page
        if not path.exists() or (anchor and anchor not in anchors(path.read_text())):
            broken.append(f"{target}#{anchor}")
    assert not broken


@pytest.mark.parametrize("page", SITE, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_page_begins_with_a_heading_and_a_paragraph(page):
    assert re.match(r"# .+\n\n[A-Z`*\[]", page.read_text())


def test_each_page_is_in_one_table_of_contents() -> None:
    names = [
        page.parent / line
        for page in SITE
        for tree in TOCTREE.findall(page.read_text())
        for line in tree.split("\n")
        if line and not line.startswith(":")
    ]
    listed = [path for name in names for path in name.parent.glob(f"{name.name}.md")]
    assert sorted([*listed, ROOT / "docs/index.md"]) == SITE


def test_the_commands_page_has_each_command() -> None:
    text = (ROOT / "docs/reference/commands.md").read_text()
    found = [
        (title, tuple(re.findall(r"^   :prog: minicluster (\w+)$", part, re.MULTILINE)))
        for title, part in re.findall(r"^## ([^\n]+)\n\n```{eval-rst}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]
    assert found == list(SECTIONS.items())


def test_the_table_of_what_to_change_names_existing_files():
    _, _, table = (ROOT / "docs/explanation/files.md").read_text().partition("## Where do I change")
    named = [path for row in rows(table)[1:] for path in re.findall(r"`([\w./-]+)`", row[1])]
    assert len(named) > 50
    assert len(rows(table)) - 1 <= 60
    # a program of the pods is named without its folder
    known = {*programs(), *(path.name for path in (PACKAGE / "lead/sent").glob("*.py"))}
    assert [path for path in named if not (ROOT / path).exists() and path not in known] == []


def test_the_table_of_facts_that_stand_twice_names_existing_files() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Facts that stand twice\n")[2].partition("\n## ")[0]
    names = re.findall(r"`([\w/.]+\.(?:py|sh|tpl|js|json|yaml))`", section)
    files = [str(path) for folder in ("charts", "plugin", "tests") for path in (ROOT / folder).rglob("*.*")]
    assert len(names) > 20
    assert [name for name in names if not any(file.endswith(f"/{name}") for file in files)] == []


def test_the_page_on_gpus_has_the_table_that_chart_and_post_renderer_read():
    _, _, text = (ROOT / "docs/how-to/use-gpus.md").read_text().partition("<!-- gpus -->")
    found = [[re.findall(r"`([^`]+)`", cell) for cell in row] for row in rows(text.partition("<!-- end -->")[0])[1:]]
    known = [
        [
            [name for name in kind["resources"] if not name.startswith(CLASS)],
            [name.removeprefix(CLASS) for name in kind["resources"] if name.startswith(CLASS)],
            [kind["variable"]] if kind["variable"] else [],
        ]
        for kind in GPUS
    ]
    assert found == known


def test_make_targets_in_the_documentation_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "".join(page.read_text() for page in PAGES)
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE))
    assert named
    assert named <= targets


def test_each_dependency_has_its_reasons() -> None:
    _, _, text = (ROOT / "docs/explanation/dependencies.md").read_text().partition("# Dependencies\n")
    rows = re.findall(r"^\| ([\w-]+) \|", text.partition("\n## ")[0], re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [
        *project["dependencies"],
        *(each for extra in ("sdk", "dashboard", "mcp") for each in project["optional-dependencies"][extra]),
    ]
    assert rows == ["package", *(re.split("[>=<]", each)[0] for each in needed)]


def test_the_badges_of_the_readme_are_true() -> None:
    badges = re.findall(r"!\[(.+?)\]\(https://img\.shields\.io/badge/(.+?)-blue\)", (ROOT / "README.md").read_text())
    chart = (ROOT / "charts/minicluster/Chart.yaml").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    kubernetes = re.search(r'^kubeVersion: ">=(\d+\.\d+)\.0-0"$', chart, re.MULTILINE)
    assert kubernetes
    python = project["requires-python"].removeprefix(">=")
    assert badges == [
        (f"Kubernetes {kubernetes[1]} or later", f"Kubernetes-%E2%89%A5{kubernetes[1]}"),
        ("Helm 3 and 4", "Helm-3_%7C_4"),
        (f"Python {python} or later", f"Python-%E2%89%A5{python}"),
        (f"{project['license']} License", f"license-{project['license']}"),
    ]
