"""What `helm install` prints."""

import re
import shlex
from typing import Any

import pytest
from support import CHART, Helm, values_text

LEAD = {"name": "root", "address": "a", "size": 2}
JOINS = {"leadBroker": LEAD, "clusters": [{"name": "mc", "size": 2}]}


@pytest.mark.parametrize("values", [{}, {"flux": {"bursting": JOINS}, "size": 2}], ids=["root", "burst"])
def test_the_notes_name_commands_that_work(helm4: Helm, values: dict[str, Any]) -> None:
    where = ("--namespace", "team", "--dry-run=client", "--post-renderer", "minicluster", "--values", "-")
    text = helm4.ok("install", "mc", CHART, *where, stdin=values_text(values))
    lines = [line.partition("   #")[0] for line in text.partition("\nNOTES:\n")[2].splitlines()]
    found = [re.findall(r"\b(?:helm|kubectl|minicluster) .*", line) for line in lines]
    commands = [shlex.split(command) for line in found for command in line]
    assert {words[0] for words in commands} == {"helm", "kubectl", "minicluster"}
    # without it an upgrade is refused
    changes = [words for words in commands if words[:2] in (["helm", "install"], ["helm", "upgrade"])]
    assert changes
    for words in changes:
        assert words[words.index("--post-renderer") + 1] == "minicluster"
    for words in commands:
        assert words[words.index("-n") + 1].removesuffix(")") == "team"
