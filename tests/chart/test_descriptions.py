"""The descriptions in values.schema.json are the comments of values.yaml.

`pytest tests/chart/test_descriptions.py --update-golden` writes them.
"""

import json
from typing import Any

import pytest
from descriptions import Comment, comments, described, undescribed
from support import CHART

SCHEMA = CHART / "values.schema.json"
COMMENTS = {
    path: comment.text for path, comment in comments((CHART / "values.yaml").read_text(encoding="utf-8")).items()
}


def test_the_schema_has_the_comments_of_values_yaml_as_descriptions(update_golden: bool) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    expected = described(schema, COMMENTS)
    if update_golden:
        SCHEMA.write_text(json.dumps(expected, indent=2) + "\n", encoding="utf-8")
        schema = expected
    assert schema == expected, f"{SCHEMA} differs: see --update-golden"


def test_every_field_of_the_schema_has_a_description() -> None:
    assert undescribed(json.loads(SCHEMA.read_text(encoding="utf-8"))) == []


def test_each_description_begins_with_a_capital_letter() -> None:
    assert [path for path, text in COMMENTS.items() if not text[0].isupper() and text[0] != "`"] == []


def test_each_comment_describes_the_field_or_section_that_it_precedes() -> None:
    text = """# The head of the file.

# -- A number,
# in two lines
size: 1  # → all, names

# some[].name -- A name,
#   of any length
#   → a pod
# some[].other -- Another → pods

# A section
flux:
  # -- A value of it
  arch: ""  # a remark
  # Below
  deep:
    # -- Deep
    er: {}
  bare: 1
"""
    assert comments(text) == {
        "size": Comment("A number, in two lines", "all, names", is_field=True),
        "some[].name": Comment("A name, of any length", "a pod", is_field=True),
        "some[].other": Comment("Another", "pods", is_field=True),
        "flux": Comment("A section", "", is_field=False),
        "flux.arch": Comment("A value of it", "", is_field=True),
        "flux.deep": Comment("Below", "", is_field=False),
        "flux.deep.er": Comment("Deep", "", is_field=True),
    }


PART: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "integer"}}}
PLACES: list[Any] = [
    ({"properties": {"a": PART}}, "a.x", ["a", "x"]),
    ({"properties": {"a": {"items": PART}}}, "a[].x", ["a", "items", "x"]),
    ({"properties": {"a": {"patternProperties": {"^": PART}}}}, "a.NAME.x", ["a", "patternProperties", "^", "x"]),
    ({"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": PART}}, "a.x", ["$defs", "b", "x"]),
]


@pytest.mark.parametrize(("schema", "path", "place"), PLACES)
def test_a_description_is_the_first_key_of_its_field(schema: dict[str, Any], path: str, place: list[str]) -> None:
    after = described(schema, {"a": "An A", path: "An X"})
    assert undescribed(schema) != []
    assert undescribed(after) == []
    part: Any = after
    for key in place:
        part = part["properties"][key] if key in part.get("properties", {}) else part[key]
    assert list(part.items()) == [("description", "An X"), ("type", "integer")]
    # a new description replaces the old one
    assert described(after, {"a": "An A", path: "An X"}) == after


def test_a_comment_on_a_field_that_the_schema_lacks_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"values.yaml describes a\.y, which the schema has not"):
        described({"properties": {"a": PART}}, {"a.x": "x", "a.y": "y"})
