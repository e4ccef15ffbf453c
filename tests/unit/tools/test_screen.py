"""The picture of `minicluster status` shows what the command prints."""

from xml.etree import ElementTree

from minicluster.status.table import table
from status_samples import BUSY, show

from tools import screen


def test_the_picture_of_status_is_current():
    drawn = screen.IMAGE.read_text(encoding="utf-8")
    assert drawn == screen.svg(screen.COMMAND, table(screen.FOUND)), "run python -m tools.screen"


def test_the_picture_of_status_has_the_text_of_the_command():
    texts = [line.text for line in ElementTree.fromstring(screen.svg("a & b", table(screen.FOUND))) if line.text]
    assert texts == ["$ a & b", *table(screen.FOUND).splitlines()]


def test_the_picture_of_status_shows_a_possible_document():
    assert screen.FOUND.keys() == show(*BUSY).keys()
    assert sum(screen.FOUND["nodes"].values()) == screen.FOUND["maxSize"]
