import pytest
from minicluster.hostlist import hosts


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1, "flux-sample-0"), (2, "flux-sample-[0-1]"), (10, "flux-sample-[0-9]"), (100_000, "flux-sample-[0-99999]")],
)
def test_hosts_are_compact(size: int, expected: str) -> None:
    assert hosts("flux-sample", size) == expected


def test_a_name_that_ends_in_a_digit_stays_apart_from_the_index() -> None:
    assert hosts("a1", 2) == "a1-[0-1]"
