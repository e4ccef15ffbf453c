"""Tests that share something run one after the other: a worker gets a group at once, or a file."""

from typing import Any

import pytest
from workers import WholeFiles, ordered


@pytest.mark.xdist_group("probe")
def test_xdist_sees_the_groups_of_tests(request: pytest.FixtureRequest) -> None:
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("this is no worker of --dist loadgroup")
    # the scheduler reads the group's name from the id
    assert request.node.nodeid.endswith("@probe")


@pytest.mark.parametrize(
    ("nodeid", "unit"), [("a.py::test_b", "a.py"), ("a.py::test_b[::c@d]", "a.py"), ("a.py::test_b[c]@group", "group")]
)
def test_a_worker_gets_a_group_or_a_file(nodeid: str, unit: str) -> None:
    assert WholeFiles.__new__(WholeFiles)._split_scope(nodeid) == unit


class Item:
    """What is read of a test."""

    def __init__(self, nodeid: str, group: str = "") -> None:
        self.nodeid = nodeid
        self.group = pytest.mark.xdist_group(group).mark if group else None

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.group if name == "xdist_group" else None


def test_groups_come_before_files_and_large_ones_before_small_ones() -> None:
    files = [Item("a.py::b"), Item("c.py::d"), Item("c.py::e"), Item("f.py::g"), Item("f.py::h"), Item("f.py::i")]
    groups = [Item("j.py::k", "one"), Item("l.py::m", "two"), Item("n.py::o", "two")]
    items: list[Any] = files + groups
    assert [each.nodeid for each in ordered(items)] == [
        *("l.py::m", "n.py::o", "j.py::k"),
        *("f.py::g", "f.py::h", "f.py::i", "c.py::d", "c.py::e", "a.py::b"),
    ]
