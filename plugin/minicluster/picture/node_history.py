"""The nodes of a picture: their names, which are up and drained, and the marks of what happened to them."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from minicluster.errors import SpecError
from minicluster.flux import expand_hosts, parse_idset, to_idset
from minicluster.picture.job_history import Step

#: Marks, and steps of the number of nodes, that are kept; ranks that are named at most
MARK_RECORDS, STEP_RECORDS, NAMED_NODES = 500, 4000, 10_000
#: Two events of a start of the lead, in Flux's journal and in what is kept, are at most so far from each other
SAME_START_SECONDS = 5.0


class Mark(NamedTuple):
    """What happened at a time."""

    t: float  #: seconds since the epoch
    kind: str  #: size, drain, undrain, down or lead
    text: str
    ranks: tuple[int, ...] = ()  #: empty for the whole cluster


class NodeHistory:
    """What is known of nodes, by rank."""

    def __init__(self, name: str) -> None:
        """Know no node of the MiniCluster NAME."""
        self.name = name
        self.names: dict[int, str] = {}
        self.cores: dict[int, int] = {}
        self.seen: set[int] = set()  #: ranks that were up, or had jobs
        self.up: set[int] = set()
        self.marks: deque[Mark] = deque(maxlen=MARK_RECORDS)
        self.steps: deque[Step] = deque(maxlen=STEP_RECORDS)
        self._told: dict[tuple[float, str, str], None] = {}
        self._starts: deque[float] = deque(maxlen=MARK_RECORDS)

    def use(self, ranks: str, hosts: str) -> None:
        """Note the nodes of a job."""
        numbers = parse_idset(ranks)
        if not self.seen.issuperset(numbers):
            self.seen.update(numbers)
            self._name(numbers, hosts)

    def take_hosts(self, hosts: Iterable[str], cores: Mapping[str, int]) -> None:
        """Take the names of all nodes, as hostlists in the order of their ranks, and their cores, by idsets."""
        self._name(range(NAMED_NODES), ",".join(hosts))
        self.cores.update((rank, count) for ranks, count in cores.items() for rank in parse_idset(ranks))

    def _name(self, ranks: Iterable[int], hosts: str) -> None:
        # without a hostlist they are named by their ranks
        with suppress(SpecError):
            self.names.update(zip(ranks, islice(expand_hosts(hosts), NAMED_NODES), strict=False))

    def called(self, rank: int) -> str:
        """Return the name of a node."""
        return self.names.get(rank, f"{self.name}-{rank}")

    def take(self, events: Iterable[Mapping[str, Any]]) -> bool:
        """Take events of nodes, which may come twice; return whether there was a new one."""
        is_new = False
        for event in events:
            key = (event["t"], event["event"], event["ranks"])
            if key not in self._told:
                self._told[key], is_new = None, True
                self._take(event["t"], event["event"], parse_idset(event["ranks"]), event.get("reason", ""))
        for key in [*self._told][: -2 * STEP_RECORDS]:
            del self._told[key]
        return is_new

    def _take(self, when: float, what: str, ranks: Sequence[int], reason: str) -> None:
        before = len(self.up)
        if what == "online":
            self.up.update(ranks)
            self.seen.update(ranks)
        elif what == "offline":
            # those that left as they should were drained before
            self.up.difference_update(ranks)
        elif what == "restart" and all(abs(when - known) > SAME_START_SECONDS for known in self._starts):
            self.up.clear()
            self._starts.append(when)
            again = "the lead started again" if len(self._starts) > 1 else "Flux started"
            self.marks.append(Mark(when, "lead", again))
        elif what == "drain" or (what == "undrain" and (ranks := [rank for rank in ranks if rank in self.up])):
            # the drain of a pod that left is taken back once it is gone: that is no news
            text = f"{self._some(ranks)} {what}ed" + (f": {reason}" if reason else "")
            self.marks.append(Mark(when, what, text, tuple(ranks)))
        if len(self.up) != before:
            self.steps.append((when, {"up": len(self.up) - before}))

    def _some(self, ranks: Sequence[int]) -> str:
        """Return the names of nodes, briefly."""
        return self.called(ranks[0]) if len(ranks) == 1 else f"{self.name}-[{to_idset(ranks)}]"


def rows(book: NodeHistory, status: Mapping[str, Any], size: int | None) -> list[dict[str, Any]]:
    """Return the nodes to show, by rank: each with its name, its state, and the reason of that.

    ``status`` is the document of `minicluster status`; {} while there is none.
    """
    reasons = {
        rank: (kind, each["reason"])
        for kind in ("missing", "drained")
        for each in status.get(kind) or ()
        for rank in parse_idset(each["ranks"])
    }
    ranks = sorted({*book.seen, *reasons, *range(min(size or 0, NAMED_NODES))})
    states = {rank: reasons.get(rank, ("up" if rank in book.up else "not up", "")) for rank in ranks}
    return [
        {"rank": rank, "name": book.called(rank), "state": state, "reason": why, "cores": book.cores.get(rank)}
        for rank, (state, why) in states.items()
    ]
