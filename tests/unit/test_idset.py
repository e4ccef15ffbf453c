"""Idsets as Flux writes them (RFC 22)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minicluster.flux import parse_idset, to_idset


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([], ""),
        ([3], "3"),
        ([0, 1, 2, 5], "0-2,5"),
        ([5, 1, 1, 0, 2], "0-2,5"),
        ([1, 3, 5], "1,3,5"),
        (range(0), ""),
        (range(7, 8), "7"),
        (range(4, 9), "4-8"),
        (range(0, 6, 2), "0,2,4"),
        # without a list of all ids
        (range(2**62), f"0-{2**62 - 1}"),
    ],
    ids=str,
)
def test_ids_are_written_as_spans(ids: list[int] | range, text: str) -> None:
    assert to_idset(ids) == text


@pytest.mark.parametrize(
    ("text", "ids"),
    [("", []), ("3", [3]), ("0-2,5", [0, 1, 2, 5]), ("[0-2,5]\n", [0, 1, 2, 5]), ("5,0-1", [5, 0, 1])],
    ids=str,
)
def test_an_idset_is_read_in_the_order_of_its_text(text: str, ids: list[int]) -> None:
    assert parse_idset(text) == ids


@given(st.sets(st.integers(0, 100)))
def test_an_idset_reads_back_as_it_was_written(ids: set[int]) -> None:
    assert parse_idset(to_idset(ids)) == sorted(ids)
