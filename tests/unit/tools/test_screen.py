"""The picture of `minicluster status` shows what the command prints."""

from xml.etree import ElementTree

from minicluster.live.table import table
from status_samples import BUSY, show

from tools import screen


def test_the_picture_is_current():
    drawn = screen.IMAGE.read_text(encoding="utf-8")
    assert drawn == screen.svg(screen.COMMAND, table(screen.FOUND)), "run python -m tools.screen"


def test_its_text_is_what_the_command_prints():
    texts = [line.text for line in ElementTree.fromstring(screen.svg("a & b", table(screen.FOUND))) if line.text]
    assert texts == ["$ a & b", *table(screen.FOUND).splitlines()]


def test_its_document_could_be_one():
    assert screen.FOUND.keys() == show(*BUSY).keys()
    assert sum(screen.FOUND["nodes"].values()) == screen.FOUND["maxSize"]
