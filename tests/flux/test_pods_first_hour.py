"""The first hour with the commands, on a terminal and on real pods: each screen is in first_hour.txt.

`--update-golden` writes that file: read it as who has never seen a MiniCluster.
"""

import re
from pathlib import Path

from person import Person, squeezed
from real_cluster import IN_PODS, NODE_FOLDER

pytestmark = [IN_PODS, NODE_FOLDER]

HOUR = Path(__file__).with_name("first_hour.txt")
#: A command, what it shows, and its exit code if that is not 0
STEP = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*?)(?:\[exit code \d+\]\n)?$", re.MULTILINE)


def test_the_first_hour(person: Person, update_golden: bool) -> None:
    (person.home / "in.lj").write_text("input\n")
    written = []
    for line, shown in STEP.findall(HOUR.read_text()):
        text, code = person.types(line, shown, "lab")
        written += [f"$ {line}", text, *([f"[exit code {code}]"] if code else []), ""]
    text = "\n".join(written)
    if update_golden:
        HOUR.write_text(text)
    assert squeezed(text) == squeezed(HOUR.read_text())
