"""The table of docs/reference/failures.md is that of tests/failures.py, and each row of it has a test.

`pytest tests/chart/test_failure_table.py --update-golden` writes it again.
"""

import re

import pytest
from failures import FAILURES, Failure, matches, written
from support import ROOT

PAGE = ROOT / "docs" / "reference" / "failures.md"
#: The tests that produce the failures, and name each
PRODUCERS = sorted((ROOT / "tests").rglob("test_*failures.py"))


def test_the_table_of_failures_of_the_page_is_up_to_date(update_golden: bool) -> None:
    text = PAGE.read_text(encoding="utf-8")
    expected = written(text)
    if update_golden:
        PAGE.write_text(expected, encoding="utf-8")
        text = expected
    assert text == expected, f"{PAGE} differs: see --update-golden"


@pytest.mark.parametrize("which", FAILURES)
def test_each_failure_of_the_table_has_a_test_that_names_it(which: str) -> None:
    assert re.search(rf'"{which}"[:,)\]]', "".join(path.read_text(encoding="utf-8") for path in PRODUCERS))


def test_a_line_is_compared_as_a_whole() -> None:
    assert matches("a … (c)", "a b (c)")
    assert not matches("a … (c)", "a b (c).")
    assert not matches("a … (c)", "a  (c)")


def test_the_table_is_written_between_its_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failures.FAILURES", {"it": Failure("It fails", "Failed: a|b", log="`x`")})
    table = (
        "\n| what happens | `minicluster status` says | the log says | more |\n|---|---|---|---|\n"
        '| It fails | "Failed: a\\|b" | `x` | - |\n\n'
    )
    page = written("above\n<!-- failures -->\nold\n<!-- end -->\nbelow\n")
    assert page == f"above\n<!-- failures -->\n{table}<!-- end -->\nbelow\n"
    assert written(page) == page
