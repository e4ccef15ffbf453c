"""Golden files: whole renderings of base cases, and the differences of other renderings from that of the defaults.

`pytest tests/chart --update-golden` writes them: read the difference before you commit it.
"""

import textwrap
from pathlib import Path

from differences import differences
from minicluster.pod import shipped
from support import CHART, by_name

GOLDEN = Path(__file__).parent / "golden"
#: The programs in ConfigMaps: those of the pods, and the chart's own
PROGRAMS = shipped() | {path.name: path.read_text(encoding="utf-8") for path in CHART.glob("files/*.py")}


def without_programs(text: str) -> str:
    """Replace the text of each program, which is in its own file, by a short note."""
    for name, program in PROGRAMS.items():
        block = f"  {name}: |\n" + textwrap.indent(program, "    ")
        text = text.replace(block, f"  {name}: (the file)\n")
        assert f"  {name}: |" not in text, f"{name} is not in the ConfigMap as it is"
    return text


def differing(base: str, other: str) -> str:
    """Return the differences of a rendering from a base."""
    return differences(by_name(without_programs(base)), by_name(without_programs(other)))


def check(golden: Path, text: str, update: bool) -> None:
    """Compare a text with a golden file, or write it."""
    if update:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == text, f"{golden} differs: see --update-golden"
