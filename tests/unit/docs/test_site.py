"""What the site's configuration changes of pages and of commands' help."""

import runpy
from typing import Any

import pytest
from support import ROOT


def site(monkeypatch: pytest.MonkeyPatch, files: str) -> dict[str, Any]:
    monkeypatch.setenv("DOCS_MERMAID", "/there")
    monkeypatch.setenv("DOCS_FILES", files)
    return runpy.run_path(str(ROOT / "docs" / "conf.py"))


PAGE = "[a](../index.md) [`b` c](../../values-examples/e.yaml#x) [d](https://e.org) [f](#g) ![h](../images/i.svg)"


@pytest.mark.parametrize(
    ("files", "link"),
    [("", "`b` c"), ("https://x.org/r/blob/v1/", "[`b` c](https://x.org/r/blob/v1/values-examples/e.yaml#x)")],
)
def test_links_that_leave_the_documentation_lead_to_the_repository(
    monkeypatch: pytest.MonkeyPatch, files: str, link: str
) -> None:
    source = [PAGE]
    site(monkeypatch, files)["link_files"](None, "how-to/run", source)
    assert source == [f"[a](../index.md) {link} [d](https://e.org) [f](#g) ![h](../images/i.svg)"]


def test_the_examples_of_a_command_are_code(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["Run it.", "", "| Examples:", "|   one -N 2", "|   two | three", ""]
    site(monkeypatch, "")["show_examples"](None, None, lines)
    assert lines == ["Run it.", "", "Examples:", "", ".. code-block:: sh", "", "   one -N 2", "   two | three", "   "]


def test_the_site_has_the_version_of_the_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = (ROOT / "charts/minicluster/Chart.yaml").read_text()
    assert f"\nversion: {site(monkeypatch, '')['release']}\n" in chart
