"""The host table of a cluster: which host has which rank, as Flux's compact hostlists (RFC 29)."""

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from minicluster.errors import SpecError
from minicluster.render.model import MiniClusterModel, NodeGroup

#: The most hosts that are written out one by one.
WRITTEN_HOSTS = 1_000_000


class Hosts(NamedTuple):
    """Hosts of consecutive ranks, with the ``cores`` and ``gpus`` of each. None: those of their pods."""

    hostlist: str
    cores: int | None = None
    gpus: int | None = None
    group: NodeGroup | None = None  #: of the root; None for its own hosts, and for those of bursts
    segment_size: int = 0  #: hosts of a segment; 0 without segments


def hosts(name: str, size: int, first: int = 0) -> str:
    """Return the hosts of the pods of an Indexed Job, ``name-0`` or ``name-[0-N]``.

    >>> hosts("flux-sample", 4)
    'flux-sample-[0-3]'
    """
    last = first + size - 1
    return f"{name}-{first}" if size == 1 else f"{name}-[{first}-{last}]"


def count(hostlist: str) -> int:
    """Return how many hosts a hostlist has.

    Raises SpecError when the text is not a hostlist.

    >>> count("proto-[0-3],burst-0-[0-1,7]")
    7
    """
    return sum(
        math.prod(sum(last - first + 1 for first, last, _ in ranges) for ranges in _brackets(part))
        for part in _parts(hostlist)
    )


def expand(hostlist: str) -> Iterator[str]:
    """Yield the hosts of a hostlist, in its order.

    Raises SpecError when the text is not a hostlist, or has too many hosts.

    >>> list(expand("proto-[0-1],vm[08-10]"))
    ['proto-0', 'proto-1', 'vm08', 'vm09', 'vm10']
    """
    if count(hostlist) > WRITTEN_HOSTS:
        raise SpecError(f"{hostlist} has {count(hostlist)} hosts: at most {WRITTEN_HOSTS} can be named")
    for part in _parts(hostlist):
        texts = _texts(part)
        for numbers in itertools.product(*(_numbers(ranges) for ranges in _brackets(part))):
            yield "".join(itertools.chain(*zip(texts, numbers, strict=False), texts[-1:]))


def split(hostlist: str) -> tuple[str, str]:
    """Return the first host of a hostlist, and the others as a hostlist, "" for none.

    Raises SpecError when the text is not a hostlist.

    >>> split("proto-[0-3],vm")
    ('proto-0', 'proto-[1-3],vm')
    """
    part, *parts = _parts(hostlist)
    texts, brackets = _texts(part), _brackets(part)
    if len(brackets) != 1:
        host, *others = expand(part)
        return host, ",".join([*others, *parts])
    (first, last, digits), *ranges = brackets[0]
    if last > first:
        ranges.insert(0, (first + 1, last, digits))
    left = ",".join(f"{one:0{width}}" + (f"-{end:0{width}}" if end > one else "") for one, end, width in ranges)
    others = [f"{texts[0]}{left if left.isdecimal() else f'[{left}]'}{texts[1]}"] if left else []
    rest = ",".join([*others, *parts])
    assert count(hostlist) == 1 + (count(rest) if rest else 0), f"{hostlist} is not one host and {rest}"
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


def table(cluster: MiniClusterModel) -> list[Hosts]:
    """Return the hosts in the order of their ranks.

    A root's own hosts come first, all maxSize of them, then those of its groups, then those of the clusters that may
    join it. A burst has the table of its root, rank for rank.
    """
    given: str = cluster.flux["bursting"]["hostlist"]
    if given and not cluster.root_groups:
        return [Hosts(given)]
    of_root = root_hosts(cluster)
    if given:
        others = given.removeprefix(hostlist_of(of_root)).removeprefix(",")
        return [*of_root, *([Hosts(others)] if others else [])]
    bursts = (Hosts(hosts(c["name"], c["size"]), c.get("cores"), c.get("gpus")) for c in cluster.bursts)
    return [*of_root, *bursts]


def root_hosts(cluster: MiniClusterModel) -> list[Hosts]:
    """Return the hosts of the root, in the order of their ranks: its own, then those of its groups."""
    lead = cluster.flux["bursting"]["leadBroker"]
    name, size = (lead["name"], lead["size"]) if cluster.joins else (cluster.name, cluster.max_size)
    groups = (
        Hosts(hosts(f"{name}-{g.name}", g.max_size), group=g, segment_size=g.cluster.segment_size)
        for g in cluster.root_groups
    )
    return [Hosts(hosts(name, size), segment_size=cluster.segment_size), *groups]


def hostlist_of(parts: Iterable[Hosts]) -> str:
    """Return the hostlist of some parts of the table."""
    return ",".join(part.hostlist for part in parts)


def ranked(cluster: MiniClusterModel) -> Iterator[tuple[range, Hosts]]:
    """Yield the parts of the table with their ranks."""
    first = 0
    for part in table(cluster):
        ranks = range(first, first + count(part.hostlist))
        yield ranks, part
        first = ranks.stop


def registered(cluster: MiniClusterModel) -> int:
    """Return how many hosts the table has, with those of bursts."""
    return sum(len(ranks) for ranks, _ in ranked(cluster))
