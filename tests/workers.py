"""What a worker gets at once: a group of tests, or a file of them. By itself xdist gives out single tests, too.

With those a run needs a tenth more: each is a message, and each worker makes what the tests of a file share.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling


class WholeFiles(LoadGroupScheduling):
    """Gives out groups, and files."""

    def _split_scope(self, nodeid: str) -> str:
        """Replace the method that names what a test is given out with."""
        return unit(super()._split_scope(nodeid))


def unit(group: str) -> str:
    """Return a group, or the file of a test that has none."""
    return group.partition("::")[0]


def ordered(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return tests in the order of their units: groups, which take long, come first, and large ones before small ones.

    So the workers end at about the same time.
    """
    marks = {item: item.get_closest_marker("xdist_group") for item in items}
    units = {item: mark.args[0] if mark else unit(item.nodeid) for item, mark in marks.items()}
    sizes = Counter(units.values())
    return sorted(items, key=lambda item: (not marks[item], -sizes[units[item]]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WholeFiles | None:
    if config.getoption("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False  # it is the order of `ordered`
    return WholeFiles(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items[:] = ordered(items)
