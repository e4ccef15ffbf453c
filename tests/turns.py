"""One Helm and one shell by turns, for `make test`: the next run, with another seed, takes the others."""

import random
import re
from collections import defaultdict
from collections.abc import Sequence

import pytest

#: Parameters that a run may take one of, and whether all tests of a module get the same: they share a release
PARAMETERS = {"helm": True, "shell": False}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--turns",
        action="store_true",
        help="run each test with the one Helm and shell that the seed of the run chooses",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave of each test the one whose parameters it is the turn of."""
    if config.getoption("--turns"):
        seed = getattr(config.option, "randomly_seed", 0)
        kept = chosen(items, seed if isinstance(seed, int) else 0)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]


def chosen(items: Sequence[pytest.Item], seed: int) -> set[pytest.Item]:
    """Return the tests to run: of those that differ in PARAMETERS alone, one.

    A test that has only some of the values (`any_helm`) keeps what it has.
    """
    kept = set(items)
    for name, by_module in PARAMETERS.items():
        alike: dict[str, dict[str, pytest.Item]] = defaultdict(dict)
        for item in items:
            value = getattr(getattr(item, "callspec", None), "params", {}).get(name)
            if value and item in kept:
                alike[re.sub(rf"(?<=[-[]){value}(?=[]-])", "", item.nodeid, count=1)][value] = item
        for test, values in alike.items():
            turn = random.Random(f"{seed} {test.partition('::')[0] if by_module else test}").choice(sorted(values))
            kept.difference_update(item for value, item in values.items() if value != turn)
    return kept
