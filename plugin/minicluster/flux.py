"""Formats of Flux: idsets, sets of ranks or of cores (RFC 22), and hostlists (RFC 29).

The pods' own idsets are in ``pod/queue/state.py``.
"""

import itertools
import math
import re
from collections.abc import Iterable, Iterator

from minicluster.errors import SpecError

#: The most hosts that are written out one by one.
WRITTEN_HOSTS = 1_000_000


def to_idset(ids: Iterable[int]) -> str:
    """Return ids as an idset, "" for none. A range is not walked through.

    >>> to_idset([5, 2, 1, 0]), to_idset(range(4))
    ('0-2,5', '0-3')
    """
    spans: list[tuple[int, int]] = []
    if isinstance(ids, range) and ids.step == 1:
        spans = [(ids[0], ids[-1])] if ids else []
    else:
        for number in sorted(set(ids)):
            if spans and spans[-1][1] == number - 1:
                spans[-1] = spans[-1][0], number
            else:
                spans.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def parse_idset(text: str) -> list[int]:
    """Return the ids of an idset, in its order.

    >>> parse_idset("[0-2,5]")
    [0, 1, 2, 5]
    """
    ids: list[int] = []
    for part in filter(None, text.strip().strip("[]").split(",")):
        first, _, last = part.partition("-")
        ids += range(int(first), int(last or first) + 1)
    return ids


def indexed_hosts(name: str, size: int, first: int = 0) -> str:
    """Return the hosts of the pods of an Indexed Job, ``name-0`` or ``name-[0-N]``.

    >>> indexed_hosts("flux-sample", 4)
    'flux-sample-[0-3]'
    """
    last = first + size - 1
    return f"{name}-{first}" if size == 1 else f"{name}-[{first}-{last}]"


def count_hosts(hostlist: str) -> int:
    """Return how many hosts a hostlist has.

    Raises SpecError when the text is not a hostlist.

    >>> count_hosts("proto-[0-3],burst-0-[0-1,7]")
    7
    """
    return sum(
        math.prod(sum(last - first + 1 for first, last, _ in ranges) for ranges in _brackets(part))
        for part in _parts(hostlist)
    )


def expand_hosts(hostlist: str) -> Iterator[str]:
    """Yield the hosts of a hostlist, in its order.

    Raises SpecError when the text is not a hostlist, or has too many hosts.

    >>> list(expand_hosts("proto-[0-1],vm[08-10]"))
    ['proto-0', 'proto-1', 'vm08', 'vm09', 'vm10']
    """
    if count_hosts(hostlist) > WRITTEN_HOSTS:
        raise SpecError(f"{hostlist} has {count_hosts(hostlist)} hosts: at most {WRITTEN_HOSTS} can be named")
    for part in _parts(hostlist):
        texts = _texts(part)
        for numbers in itertools.product(*(_numbers(ranges) for ranges in _brackets(part))):
            yield "".join(itertools.chain(*zip(texts, numbers, strict=False), texts[-1:]))


def split_hosts(hostlist: str) -> tuple[str, str]:
    """Return the first host of a hostlist, and the others as a hostlist, "" for none.

    Raises SpecError when the text is not a hostlist.

    >>> split_hosts("proto-[0-3],vm")
    ('proto-0', 'proto-[1-3],vm')
    """
    part, *parts = _parts(hostlist)
    texts, brackets = _texts(part), _brackets(part)
    if len(brackets) != 1:
        host, *others = expand_hosts(part)
        return host, ",".join([*others, *parts])
    (first, last, digits), *ranges = brackets[0]
    if last > first:
        ranges.insert(0, (first + 1, last, digits))
    left = ",".join(f"{one:0{width}}" + (f"-{end:0{width}}" if end > one else "") for one, end, width in ranges)
    others = [f"{texts[0]}{left if left.isdecimal() else f'[{left}]'}{texts[1]}"] if left else []
    rest = ",".join([*others, *parts])
    assert count_hosts(hostlist) == 1 + (count_hosts(rest) if rest else 0), f"{hostlist} is not one host and {rest}"
    return f"{texts[0]}{first:0{digits}}{texts[1]}", rest


def _parts(hostlist: str) -> list[str]:
    """Return the parts of a hostlist between its commas."""
    parts = re.findall(r"((?:[^,\[\]]|\[[^\[\]]*\])+)(?:,|$)", hostlist)
    if not parts or ",".join(parts) != hostlist:
        raise SpecError(f"{hostlist} is not a hostlist: write it as proto-[0-3],other-0")
    return parts


def _texts(part: str) -> list[str]:
    """Return the texts before, between and after the brackets."""
    return re.split(r"\[[^\]]*\]", part)


def _brackets(part: str) -> list[list[tuple[int, int, int]]]:
    """Return the ranges of each bracket, as first, last and the digits of the first."""
    return [[_range(ranges, part) for part in ranges.split(",")] for ranges in re.findall(r"\[([^\]]*)\]", part)]


def _range(ranges: str, part: str) -> tuple[int, int, int]:
    match = re.fullmatch(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", part)
    if not match or int(match[2] or match[1]) < int(match[1]):
        raise SpecError(f"a hostlist has [{ranges}]: {part or 'nothing'} is not a range; write it as 0-3")
    return int(match[1]), int(match[2] or match[1]), len(match[1])


def _numbers(ranges: list[tuple[int, int, int]]) -> list[str]:
    return [f"{number:0{digits}}" for first, last, digits in ranges for number in range(first, last + 1)]
