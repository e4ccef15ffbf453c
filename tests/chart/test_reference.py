"""The chart's README is what helm-docs makes of values.yaml.

`pytest tests/chart/test_reference.py --update-golden` writes it anew.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support import CHART, tool

README = CHART / "README.md"
FILES = ("Chart.yaml", "values.yaml", "README.md.gotmpl")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Run helm-docs on a copy of what it reads."""
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


def test_the_readme_is_up_to_date(generated: str, update_golden: bool) -> None:
    if update_golden:
        README.write_text(generated, encoding="utf-8")
    assert README.read_text(encoding="utf-8") == generated, f"{README} differs: see --update-golden"


def test_each_value_is_described(generated: str) -> None:
    rows = re.findall(r"^\| (\S+) \|.*\| (.*) \|$", generated.partition("## Values")[2], re.MULTILINE)
    assert len(rows) > 60
    assert [key for key, description in rows if not re.search(r"\w{3}", description)] == []
