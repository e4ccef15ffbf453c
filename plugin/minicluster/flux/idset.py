"""Idsets: sets of ranks or of cores as Flux writes them (RFC 22). The pods' own are in ``pod/queue/state.py``."""

from collections.abc import Iterable


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
