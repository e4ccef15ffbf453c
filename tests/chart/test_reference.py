"""The references match values.yaml: the chart's README, by helm-docs, and the tables of docs/reference/values.md.

`pytest tests/chart/test_reference.py --update-golden` writes them again.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from descriptions import Comment, comments
from reference import written
from support import CHART, ROOT, tool

README = CHART / "README.md"
PAGE = ROOT / "docs" / "reference" / "values.md"
FILES = ("Chart.yaml", "values.yaml", "README.md.gotmpl")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Run helm-docs on a copy of the files that it reads."""
    program = tool("helm-docs")
    if not program:
        pytest.skip("helm-docs is missing: run `make tools`")
    root: Path = tmp_path_factory.mktemp("charts")
    copy = root / CHART.name
    copy.mkdir()
    for name in FILES:
        shutil.copy(CHART / name, copy)
    subprocess.run([program, "--chart-search-root", root, "--sort-values-order", "file"], check=True, timeout=60)
    return (copy / README.name).read_text(encoding="utf-8")


def test_the_readme_of_the_chart_is_up_to_date(generated: str, update_golden: bool) -> None:
    if update_golden:
        README.write_text(generated, encoding="utf-8")
    assert README.read_text(encoding="utf-8") == generated, f"{README} differs: see --update-golden"


def test_each_value_has_a_description_in_the_readme_of_the_chart(generated: str) -> None:
    rows = re.findall(r"^\| (\S+) \|.*\| (.*) \|$", generated.partition("## Values")[2], re.MULTILINE)
    assert len(rows) > 60
    assert [key for key, description in rows if not re.search(r"\w{3}", description)] == []


def test_the_tables_of_fields_in_the_reference_are_up_to_date(update_golden: bool) -> None:
    values = (CHART / "values.yaml").read_text(encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    expected = written(text, comments(values), yaml.safe_load(values))
    if update_golden:
        PAGE.write_text(expected, encoding="utf-8")
        text = expected
    assert text == expected, f"{PAGE} differs: see --update-golden"


def test_a_field_is_in_the_table_with_the_longest_prefix() -> None:
    found = {
        "size": Comment("How many", "Job", is_field=True),
        "flux": Comment("A section", "", is_field=False),
        "flux.arch": Comment("An arch. Empty: any", "", is_field=True),
        "flux.wrap[].NAME": Comment("A name", "", is_field=True),
    }
    page = "".join(f"<!-- fields{prefix} -->\nold\n<!-- end -->\n" for prefix in ("", " flux", " flux.wrap[]"))
    head = "\n| field | default | what it does | where it lands |\n|---|---|---|---|\n"
    made = written(page, found, {"size": 0, "flux": {"arch": ""}})
    assert made == (
        f"<!-- fields -->\n{head}| `size` | `0` | How many | Job |\n\n<!-- end -->\n"
        f"<!-- fields flux -->\n{head}| `flux.arch` | any | An arch | - |\n\n<!-- end -->\n"
        f"<!-- fields flux.wrap[] -->\n{head}| `flux.wrap[].NAME` | - | A name | - |\n\n<!-- end -->\n"
    )
    assert written(made, found, {"size": 0}) == made


def test_a_field_without_a_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="empty"):
        written("<!-- fields flux -->\n<!-- end -->\n", {"size": Comment("", "", is_field=True)}, {})
