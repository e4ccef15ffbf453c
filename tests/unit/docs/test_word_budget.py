"""Each page of the documentation is short enough to be read: it has at most so many words."""

import re

import pytest
from support import ROOT

DOCS = ROOT / "docs"
#: Words of a page, by its path or its folder
WORDS = {
    "index.md": 400,
    "tutorial.md": 1800,
    "concepts.md": 1200,
    "how-to": 900,
    "reference": 2500,
    "reference/values.md": 4500,
    "reference/commands.md": 1000,
    "reference/metrics.md": 500,
    "reference/versions.md": 1500,
    "explanation": 1500,
    "explanation/comparison.md": 600,
    "explanation/evidence.md": 800,
    # a table of files, for contributors
    "explanation/files.md": 2000,
    "decisions": 600,
}
#: Words of all pages but the decisions
ALL_WORDS = 38_000
#: Not read as prose: code, tables that a program makes, links' targets
CODE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"<!-- (?!end)[^>]*-->\n.*?<!-- end -->", re.DOTALL)
TARGET = re.compile(r"\]\([^)]*\)")


def words(text: str) -> int:
    """Return the number of words of a page that a person reads."""
    for unread in (CODE, GENERATED, TARGET):
        text = unread.sub(" ", text)
    return len(re.findall(r"\w[^\s|]*", text))


COUNTS = {str(page.relative_to(DOCS)): words(page.read_text()) for page in sorted(DOCS.glob("**/*.md"))}


@pytest.mark.parametrize("page", COUNTS)
def test_a_page_is_within_its_budget(page: str) -> None:
    budget = WORDS.get(page) or WORDS[page.partition("/")[0]]
    assert COUNTS[page] <= budget, f"{page} has {COUNTS[page]} words: shorten it, or make two pages of it"


def test_all_pages_are_within_their_budget() -> None:
    assert len(COUNTS) > 80
    assert sum(count for page, count in COUNTS.items() if not page.startswith("decisions/")) <= ALL_WORDS


def test_words_are_counted_without_code_and_generated_tables() -> None:
    page = "# Two words\n\nThree more [words](of/a/link.md).\n\n```sh\nnot these\n```\n\n| a | b |\n|---|---|\n"
    made = "<!-- fields pod -->\n\n| not | these |\n|---|---|\n\n<!-- end -->\n"
    assert words(page) == words(page + made) == 7
