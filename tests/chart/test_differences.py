"""The text of differences is readable, and differs for different renderings."""

import json
from typing import Any

import pytest
from differences import differences
from hypothesis import given
from hypothesis import strategies as st

JOB = ("Job", "a")
NAMED = [{"name": "a", "v": 1}, {"name": "b", "v": 2}]
LONG = "x" * 60
CASES: list[Any] = [
    (
        {"a": {"b.c": 1, "d": 2}},
        {"a": {"b.c": 3, "e": [4, "5"]}},
        "! a[\"b.c\"]: 3\n- a.d\n+ a.e:\n+   - 4\n+   - '5'\n",
    ),
    ({"a": 1}, {"a": True}, "! a: true\n"),
    ({"a": "x"}, {"a": "y\nz\n"}, "! a: |\n!   y\n!   z\n"),
    ({"a": f"x\n{LONG}\ny\n"}, {"a": f"x\n{LONG}\nnew\nz"}, "! a:\n-   y\n+   new\n+   z (no line break)\n"),
    ({"a": f"x\n{LONG}\n"}, {"a": f"x\n{LONG}\ny\n"}, f"! a:\n    {LONG[:40]}...\n+   y\n"),
    ({"a": "x=1\ny\n"}, {"a": "x=2\nz\ny\n"}, "! a:\n!   x=2\n+   z\n"),
    ({"a": "x=1\ny=1\nz\n"}, {"a": "x=2\ny=1\nx=3\n"}, "! a:\n-   x=1\n+   x=2\n-   z\n+   x=3\n"),
    (
        {"a": '{\n "b": 1,\n "c": 2\n}\n'},
        {"a": '{\n "b": {\n  "d": 3\n },\n "c": 4\n}\n'},
        '! a:\n!    "b": {\n+     "d": 3\n+    },\n!    "c": 4\n',
    ),
    ({"a": NAMED}, {"a": [{"name": "c"}, *NAMED]}, "+ a[name=c] (first):\n+   name: c\n"),
    ({"a": NAMED}, {"a": [*NAMED, {"name": "c"}]}, "+ a[name=c]:\n+   name: c\n"),
    ({"a": NAMED}, {"a": NAMED[::-1]}, "! a: in the order b, a\n"),
    ({"a": NAMED}, {"a": NAMED[1:]}, "- a[name=a]\n"),
    ({"a": NAMED[:1]}, {"a": NAMED[1:]}, '! a[0].name: "b"\n! a[0].v: 2\n'),
    ({"a": '{"b":1}'}, {"a": '{"b":2,"c":"\\u003c"}'}, '! a.b: 2\n+ a.c: "<"\n'),
    ({"a": '{"b":1}'}, {"a": '{"b": 2}'}, '! a: "{\\"b\\": 2}"\n'),
]


@pytest.mark.parametrize(("base", "other", "lines"), CASES)
def test_differences_shows_what_changed_in_an_object(base: Any, other: Any, lines: str) -> None:
    assert differences({JOB: base}, {JOB: other}) == f"@@ Job a\n{lines}"
    assert differences({JOB: base}, {JOB: base}) == ""


def test_differences_shows_objects_that_are_new_or_gone() -> None:
    assert differences({JOB: {"a": 1}}, {("Pod", "b"): {"c": 2}}) == "@@ Job a (gone)\n@@ Pod b (new)\n+ c: 2\n"


def test_differences_shows_a_new_object_by_what_it_is_like() -> None:
    one = {"name": "a", "list": [1, 2, 3, 4]}
    base, other = {JOB: one}, {JOB: one, ("Job", "a-b"): {**one, "name": "a-b"}}
    assert differences(base, other) == '@@ Job a-b (new, like Job a)\n! name: "a-b"\n'


texts = st.text(st.sampled_from("ab\n"), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | texts,
    lambda some: (
        st.lists(some, max_size=3)
        | st.lists(st.fixed_dictionaries({"name": st.sampled_from("abcd"), "v": some}), max_size=4)
        | st.dictionaries(st.sampled_from("abc"), some, max_size=3)
    ),
    max_leaves=6,
)


lines = st.lists(
    st.sampled_from(["a\n", "b\n", "c\n", "c", "d=1\n", "d=2\n", "e=1\n", "e=2"]), min_size=2, max_size=5
).map("".join)


@given(st.tuples(values, values, values) | st.tuples(lines, lines, lines))
def test_differences_of_different_renderings_are_different(some: tuple[Any, Any, Any]) -> None:
    base, one, other = some
    found = [differences({JOB: {"a": base}}, {JOB: {"a": value}}) for value in (one, other)]
    assert (found[0] == found[1]) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))
    jobs = {JOB: {"a": base}}
    found = [differences(jobs, {**jobs, ("Job", "a-b"): {"a": value}}) for value in (one, other)]
    assert (found[0] == found[1]) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))
