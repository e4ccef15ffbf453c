"""The project stays within its budget, whose limits follow the figures."""

import pytest

from tools.budget import FIGURES, Figure, problem

# one worker parses the sources
pytestmark = pytest.mark.xdist_group("sources")


@pytest.mark.parametrize("figure", FIGURES, ids=[figure.name for figure in FIGURES])
def test_a_figure_is_within_its_budget(figure: Figure) -> None:
    assert problem(figure) == ""


@pytest.mark.parametrize(
    ("count", "is_least", "end"),
    [
        (100, False, ""),
        (98, False, ""),
        (101, False, "do without, or change the limit in tools/budget.py and say why"),
        (97, False, "make that the limit in tools/budget.py"),
        (100, True, ""),
        (99, True, "do without, or change the limit in tools/budget.py and say why"),
        (103, True, "make that the limit in tools/budget.py"),
    ],
)
def test_a_limit_holds_and_follows_the_figure(count: int, is_least: bool, end: str) -> None:
    said = problem(Figure("arrows", lambda: count, 100, is_least))
    assert said == (f"{count} arrows of 100: {end}" if end else "")
