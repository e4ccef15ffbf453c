"""Sphinx's configuration of the site: `make docs` builds it in build/docs."""

import os
import re
from pathlib import Path
from urllib.parse import quote

from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
#: Where files outside docs are: a page of the repository for each, or this clone
FILES = os.environ.get("DOCS_FILES", ROOT.as_uri()).rstrip("/")
#: Mermaid, as `make docs` puts it beside the pages: a reader's browser asks no other host
MERMAID = os.environ["DOCS_MERMAID"]
LINK = re.compile(r"\]\((\.\.?/[^)#\s]*)(#[^)\s]*)?\)")

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
mermaid_use_local = "mermaid.esm.min.mjs"
mermaid_fullscreen = False


def link_files(_: Sphinx, name: str, source: list[str]) -> None:
    """Let links that leave docs lead to FILES: GitHub reads them as they are."""

    def absolute(match: re.Match[str]) -> str:
        path = (DOCS / name).parent.joinpath(match[1]).resolve()
        if path.is_relative_to(DOCS) or not path.is_relative_to(ROOT):
            return match[0]
        return f"]({FILES}/{quote(str(path.relative_to(ROOT)))}{match[2] or ''})"

    source[0] = LINK.sub(absolute, source[0])


def setup(app: Sphinx) -> None:
    """Connect the hook."""
    app.connect("source-read", link_files)
