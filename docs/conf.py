"""Sphinx's configuration of the site: `make docs` builds it in build/docs."""

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

from tools import codemap, site_markdown  # noqa: E402 - they are in ROOT

#: Where the repository shows its files; without it, a link to a file outside docs is its text alone
FILES = os.environ.get("DOCS_FILES", "").rstrip("/")
#: Mermaid, which `make docs` puts beside the pages: a reader's browser asks no other host
MERMAID = os.environ["DOCS_MERMAID"]
#: Words that people search, and the page that helps: tools/search_site.cjs looks whether it is found first
SEARCHED = json.loads((DOCS / "search.json").read_text())
#: What `-o json` prints: the site has it, too
SCHEMAS = ROOT / "plugin/minicluster/commands/schemas"
LINK = re.compile(r"\[([^\]]+)\]\((\.\.?/[^)#\s]*)(#[^)\s]*)?\)")

project = "minicluster"
author = "the minicluster authors"
CHART = (ROOT / "charts/minicluster/Chart.yaml").read_text()
version = release = re.findall(r"^version: (\S+)$", CHART, re.MULTILINE)[0]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click", "sphinxcontrib.mermaid"]
exclude_patterns = ["images"]
nitpicky = True
# the SDK's signatures name types of other packages, whose documentation is elsewhere
nitpick_ignore_regex = [("py:.*", r"(?!minicluster\.sdk).*")]

myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

# a name between single backticks, as the docstrings have them
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"

html_theme = "furo"
html_title = f"minicluster {release}"
html_static_path = ["_static", MERMAID]
html_css_files = ["site.css"]
html_copy_source = False
html_search_scorer = str(DOCS / "search_order.js")
html_show_copyright = False
# -- in a text is an option, not a dash
smartquotes = False

mermaid_use_local = "mermaid.esm.min.mjs"
mermaid_fullscreen = False
mermaid_height = "auto"
# room for the title of a subgraph of two lines
mermaid_init_config = {"startOnLoad": False, "flowchart": {"subGraphTitleMargin": {"top": 6, "bottom": 26}}}


def link_files(_: Sphinx, name: str, source: list[str]) -> None:
    """Let links that leave docs lead to FILES. GitHub takes them as they are."""

    def absolute(match: re.Match[str]) -> str:
        text, target, anchor = match.groups("")
        path = (DOCS / name).parent.joinpath(target).resolve()
        if path.is_relative_to(DOCS):
            return match[0]
        return f"[{text}]({FILES}/{quote(str(path.relative_to(ROOT)))}{anchor})" if FILES else text

    source[0] = LINK.sub(absolute, source[0])


def add_map(_: Sphinx, __: str, source: list[str]) -> None:
    """Give the page of files the map of the source files."""
    if codemap.MARK in source[0]:
        source[0] = codemap.written(source[0])


def add_searched_words(_: Sphinx, name: str, source: list[str]) -> None:
    """Give a page the words by which people search it, below its heading. They aren't shown."""
    words = [f"! {word}" for word, page in SEARCHED.items() if page == name]
    if words:
        heading, text = source[0].split("\n", 1)
        source[0] = f"{heading}\n\n```{{index}} {', '.join(words)}\n```\n{text}"


def show_examples(_: Sphinx, __: click.Context, lines: list[str]) -> None:
    """Show the examples of a command's help as code: sphinx-click makes lines of prose of them."""
    if "| Examples:" in lines:
        first = lines.index("| Examples:")
        examples = [f"   {line.removeprefix('| ').strip()}" for line in lines[first + 1 :]]
        lines[first:] = ["Examples:", "", ".. code-block:: sh", "", *examples]


def write_markdown(app: Sphinx, error: Exception | None) -> None:
    """Write each page as Markdown beside its HTML, llms.txt, which lists them, and the JSON Schemas."""
    if error:
        return
    sources = {name: [Path(app.env.doc2path(name)).read_text(encoding="utf-8")] for name in sorted(app.env.found_docs)}
    for name, source in sources.items():
        link_files(app, name, source)
        add_map(app, name, source)
    for path, text in site_markdown.written({name: text for name, [text] in sources.items()}).items():
        Path(app.outdir, path).write_text(text, encoding="utf-8")
    shutil.copytree(SCHEMAS, Path(app.outdir, "schemas"), dirs_exist_ok=True)


def name_markdown(_: Sphinx, name: str, __: str, context: dict[str, Any], doctree: object) -> None:
    """Name a page's Markdown in the head of its HTML."""
    if doctree:
        context["metatags"] += f'<link rel="alternate" type="text/markdown" href="{Path(name).name}.md">'


def setup(app: Sphinx) -> None:
    """Connect the hooks."""
    app.connect("source-read", link_files)
    app.connect("source-read", add_map)
    app.connect("source-read", add_searched_words)
    app.connect("sphinx-click-process-description", show_examples)
    app.connect("html-page-context", name_markdown)
    app.connect("build-finished", write_markdown)
