"""`make test` runs each test with one Helm and one shell, and another seed takes the others."""

from types import SimpleNamespace
from typing import Any

import pytest
from turns import chosen

#: enough for each value to come
SEEDS = range(50)


class Item:
    """What is read of a test."""

    def __init__(self, nodeid: str, **params: str) -> None:
        self.nodeid = nodeid
        self.callspec = SimpleNamespace(params=params)


def runs(*items: Any) -> set[tuple[str, ...]]:
    """Return what each seed leaves of these tests, once."""
    return {tuple(item.nodeid for item in items if item in chosen(items, seed)) for seed in SEEDS}


SHELLS = ("bash", "dash", "busybox")
HELMS = ("helm", "helm3")


def test_a_test_runs_with_one_shell_and_each_has_its_turn() -> None:
    items = [Item(f"a.py::test[{shell}-x]", shell=shell) for shell in SHELLS]
    assert runs(*items) == {(item.nodeid,) for item in items}


def test_the_tests_of_a_module_have_one_helm() -> None:
    items = [Item(f"a.py::{test}[{helm}]", helm=helm) for test in ("one", "two") for helm in HELMS]
    assert runs(*items) == {("a.py::one[helm]", "a.py::two[helm]"), ("a.py::one[helm3]", "a.py::two[helm3]")}


def test_the_modules_of_a_run_have_both_helms() -> None:
    items = [Item(f"{module}.py::test[{helm}]", helm=helm) for module in "abcdefghijklmnop" for helm in HELMS]
    assert all(len(run) == 16 and len({name.partition("[")[2] for name in run}) == 2 for run in runs(*items))


@pytest.mark.parametrize(
    "item", [Item("a.py::test[helm]", helm="helm"), Item("a.py::test"), Item("a.py::test[x]", text="x")]
)
def test_a_test_with_nothing_to_choose_always_runs(item: Item) -> None:
    assert runs(item) == {(item.nodeid,)}


def test_the_cases_of_a_test_do_not_have_the_same_shell() -> None:
    items = [Item(f"a.py::test[{case}-{shell}]", shell=shell) for case in "abcdefghijklmnop" for shell in SHELLS]
    assert all(len(run) == 16 and len({name.partition("-")[2] for name in run}) > 1 for run in runs(*items))
