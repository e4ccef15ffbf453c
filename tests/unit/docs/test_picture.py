"""The pictures of the documentation are those that their texts describe."""

import tomllib
from xml.etree import ElementTree

import pytest

from tools import picture
from tools.picture import Box

FILES = sorted(picture.IMAGES.glob("*.toml"))
ONE = Box(100, 100, 80, 40)


def test_there_is_one():
    assert "architecture" in [file.stem for file in FILES]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_svg_is_current(file):
    drawn = picture.svg(tomllib.loads(file.read_text(encoding="utf-8")))
    assert file.with_suffix(".svg").read_text(encoding="utf-8") == drawn, "run python -m tools.picture"
    assert ElementTree.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (Box(0, 200, 400, 10), (140, 140, 140, 200)),
        (Box(300, 110, 50, 20), (180, 120, 300, 120)),
        (Box(0, 100, 50, 80), (100, 120, 50, 120)),
    ],
    ids=["below", "to the right", "to the left"],
)
def test_an_arrow_meets_the_narrower_box_in_its_middle(other, expected):
    assert picture.ends(ONE, other) == expected


def test_an_arrow_between_overlapping_boxes_is_an_error():
    with pytest.raises(ValueError, match="neither below nor beside"):
        picture.ends(ONE, Box(110, 110, 10, 10))


def test_text_is_escaped():
    drawn = picture.svg(
        {"size": [9, 9], "box": [{"name": "a", "at": [0, 0], "size": [9, 9], "text": ["<b>&"]}], "arrow": []}
    )
    assert "&lt;b&gt;&amp;" in drawn
