"""docs/reference/slurm.md has each option of Slurm's commands, and what it becomes."""

from tools import slurm_page


def test_the_tables_of_the_page_are_those_of_the_programs() -> None:
    text = slurm_page.PAGE.read_text(encoding="utf-8")
    assert slurm_page.written(text) == text, "run python -m tools.slurm_page"
    assert text.count("\n| `--") > 150
