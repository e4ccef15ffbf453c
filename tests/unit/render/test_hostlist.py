import pytest
from minicluster.errors import SpecError
from minicluster.flux import count_hosts, expand_hosts, indexed_hosts, split_hosts


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1, "flux-sample-0"), (2, "flux-sample-[0-1]"), (10, "flux-sample-[0-9]"), (100_000, "flux-sample-[0-99999]")],
)
def test_hosts_are_written_as_a_compact_hostlist(size: int, expected: str) -> None:
    assert indexed_hosts("flux-sample", size) == expected


def test_a_hostlist_separates_a_name_that_ends_in_a_digit_from_the_index() -> None:
    assert indexed_hosts("a1", 2) == "a1-[0-1]"


@pytest.mark.parametrize(
    ("hostlist", "expected"),
    [
        ("a", ["a"]),
        ("a-[0-1],b", ["a-0", "a-1", "b"]),
        ("a[08-10,3]", ["a08", "a09", "a10", "a3"]),
        ("r[0-1]n[1-2].x,y", ["r0n1.x", "r0n2.x", "r1n1.x", "r1n2.x", "y"]),
    ],
)
def test_a_hostlist_is_expanded_in_the_order_of_its_text(hostlist: str, expected: list[str]) -> None:
    assert list(expand_hosts(hostlist)) == expected
    assert count_hosts(hostlist) == len(expected)


@pytest.mark.parametrize("brackets", ["-[0-3],vm", "[08-10,7],b[1,3]", "", "-[5]", "[0-1]x[2-3],y", "[99-100]", ",b,c"])
def test_a_hostlist_is_split_into_its_first_host_and_the_rest(brackets: str) -> None:
    first, rest = split_hosts(f"a{brackets}")
    assert [first, *(expand_hosts(rest) if rest else [])] == list(expand_hosts(f"a{brackets}"))


@pytest.mark.parametrize("hostlist", ["", "a,", "a[", "a[]", "a[1-0]", "a[x]", ",a"])
def test_an_invalid_hostlist_is_refused(hostlist: str) -> None:
    with pytest.raises(SpecError):
        list(expand_hosts(hostlist))
    with pytest.raises(SpecError):
        count_hosts(hostlist)
