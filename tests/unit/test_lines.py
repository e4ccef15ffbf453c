"""Text that is cut into lines, and the logs that are read more than once."""

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minicluster.console import lines
from minicluster.waiting.logs import NewLines

ROOT = Path(__file__).parents[2]
#: What `splitlines` cuts at, halves of UTF-8, and what is like a time
PIECES = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b"\x0b",
        b"\x0c",
        b"\x1c",
        b"\x85",
        b"\xe2\x80",
        b"\xa8",
        b"\0",
        b"a",
        b"2030-01-01T1",
        b" ",
    ]
)
TEXTS = st.lists(PIECES).map(b"".join)


def parts(data: bytes, cuts: list[int]) -> list[bytes]:
    """Return data in parts, some of which are empty."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[begin:end] for begin, end in pairwise(places)] + [b""]


@given(st.text(alphabet="ab\n\r\f\v\x1c\x85\u2028\u2029"))
def test_text_is_cut_at_line_feeds_alone(text: str) -> None:
    found = lines.split(text)
    assert "\n".join(found) == text.removesuffix("\n")
    assert not any("\n" in line for line in found)


@given(TEXTS, st.lists(st.integers(0, 999)))
def test_bytes_are_cut_alike_however_they_come(data: bytes, cuts: list[int]) -> None:
    cutter = lines.Cutter()
    found = [line for part in parts(data, cuts) for line in cutter.take(part)]
    assert all(line.endswith(b"\n") for line in found)
    found += cutter.end()
    assert b"".join(found) == data
    assert [line.removesuffix(b"\n") for line in found] == data.removesuffix(b"\n").split(b"\n")[: len(found)]
    assert all(line.count(b"\n") == 1 for line in found[:-1])
    assert cutter.end() == []


def test_a_long_line_in_small_parts_costs_no_more_than_its_length() -> None:
    begin = time.process_time()
    cutter = lines.Cutter()
    for _ in range(100_000):
        cutter.take(b"x" * 300)
    assert [len(line) for line in cutter.take(b"\n")] == [30_000_001]
    # joined anew with each part, it would be 1.5 TB
    assert time.process_time() - begin < 5


def test_nothing_in_the_package_or_the_chart_cuts_at_other_line_ends() -> None:
    files = [*ROOT.glob("plugin/minicluster/**/*.py"), *ROOT.glob("charts/**/*.py")]
    assert len(files) > 200
    assert [str(file) for file in files if ".splitlines(" in file.read_text(encoding="utf-8")] == []


# A log ------------------------------------------------------------------------------------------------------------


def stamp(number: int) -> bytes:
    return b"2030-01-01T12:00:00.%09dZ " % number


def new(log: NewLines, *data: bytes) -> bytes:
    """Return what is new in a reading, notes in brackets."""
    return b"".join(b"<%s>" % text if is_note else text for text, is_note in log.of(data))


@given(st.lists(st.tuples(TEXTS, st.integers(-1, 2))), st.lists(st.integers(0, 999)), st.lists(st.integers(0, 999)))
def test_each_byte_of_a_log_is_passed_once(texts: list[tuple[bytes, int]], ends: list[int], cuts: list[int]) -> None:
    """Each reading begins anew and ends somewhere; times may be equal, or go back."""
    data, expected, now = b"", b"", 1000
    for text, later in texts:
        now += later
        line = text.replace(b"\n", b"") + b"\n"
        data, expected = data + stamp(now) + line, expected + line
    log = NewLines()
    found = b"".join(new(log, *parts(data[: end % (len(data) + 1)], cuts)) for end in sorted(ends))
    assert expected.startswith(found)
    assert found + new(log, *parts(data, cuts)) == expected
    assert new(log, data) == b""


def test_a_progress_bar_is_passed_whole() -> None:
    log, bar = NewLines(), b"".join(b"%d%%\r" % number for number in range(100)) + b"x\r" * 20
    data = stamp(1) + bar + b"\n" + stamp(2) + b"end\n"
    assert new(log, data[:50], data[50:]) == bar + b"\nend\n"
    assert new(log, data) == b""


def test_lines_of_one_time_and_lines_out_of_order_are_all_passed() -> None:
    # CRI-O gives one time to all that it reads at once; standard error may come after standard output
    lines_of_one_read = [stamp(5) + b"%d\n" % number for number in range(4)]
    log = NewLines()
    assert new(log, *lines_of_one_read[:3]) == b"0\n1\n2\n"
    assert new(log, *lines_of_one_read, stamp(4) + b"err\n") == b"3\nerr\n"
    assert new(log, *lines_of_one_read, stamp(4) + b"err\n", stamp(3) + b"more\n", stamp(9)) == b"more\n"


def test_a_line_that_a_reading_cut_goes_on_in_the_next() -> None:
    log = NewLines()
    assert new(log, stamp(1) + b"one\n" + stamp(2)[:10]) == b"one\n"
    assert new(log, stamp(1) + b"one\n" + stamp(2) + b"tw") == b"tw"
    assert new(log, stamp(1) + b"one\n" + stamp(2) + b"two", b"\n") == b"o\n"


def test_a_log_that_has_lost_its_begin_goes_on_with_later_times() -> None:
    log = NewLines()
    assert new(log, stamp(1) + b"a\n", stamp(2) + b"b\n") == b"a\nb\n"
    assert new(log, stamp(3) + b"c\n", stamp(3) + b"d\n") == b"c\nd\n"


def test_a_time_may_have_any_zone_and_fraction() -> None:
    log = NewLines()
    assert (
        new(log, b"2030-01-01T12:00:00Z a\n2030-01-01T12:00:00.1Z b\n2030-01-01T12:00:00.12+01:00 c\n") == b"a\nb\nc\n"
    )
    assert new(log, b"2030-01-01T12:00:00.12+01:00 c\n2030-01-01T12:00:00.120000001+01:00 d\n") == b"d\n"


@pytest.mark.parametrize("end", [b"\n", b""], ids=["a line", "without an end"])
def test_a_note_of_the_kubelet_is_passed_once_and_hides_no_text(end: bytes) -> None:
    log, one, note = NewLines(), stamp(1) + b"one\n", b"failed to create fsnotify watcher: too many open files" + end
    assert new(log, one, note[:9], note[9:]) == b"one\n<%s>" % note
    assert new(log, one, note) == b""
    assert new(log, one) == b""
    assert new(log, one, b"other\n", note) == b"<other\n>"
    # the same text of a program has a time
    assert new(log, one, stamp(2) + note) == note
    if end:
        assert new(log, one, stamp(2) + note, note) == b"<%s>" % note
