"""Which jobs count as lost, and which as run twice."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

#: Seconds of work that a kill of the lead can undo: `state.syncSeconds`, and 2 for clock differences.
WINDOW_SECONDS = 3.0


@dataclass(frozen=True)
class Span:
    """A begin and an end, in seconds of the clock."""

    begin: float
    end: float


@dataclass(frozen=True)
class Ended:
    """How a job ended, as Flux says."""

    result: str
    ran: bool


def verdict(
    submitted: Mapping[str, float],
    starts: Mapping[str, Sequence[float]],
    known: Mapping[str, Ended],
    kills: Sequence[Span],
) -> tuple[dict[str, int], list[str]]:
    """Return counts and faults.

    ``submitted`` has the time at which each job was accepted, ``starts`` the times at which it started, ``known`` how
    it ended as Flux says, and ``kills`` the times in which leads were killed without grace.
    """
    faults: list[str] = []
    counts: Counter[str] = Counter(jobs=len(submitted))
    for name, accepted in submitted.items():
        end, begun = known.get(name), starts.get(name, ())
        if end is None:
            inside = _in_window(accepted, kills)
            counts["lost, in the window" if inside else "lost"] += 1
            if not inside:
                faults.append(f"{name}: Flux does not know it, and it was accepted {_last(accepted, kills)}")
        else:
            counts[end.result.lower()] += 1
            if end.result != "COMPLETED" and not (end.ran or begun):
                faults.append(f"{name}: {end.result} without a start")
        again = [start for start in sorted(begun)[:-1] if not _in_window(start, kills)]
        counts["ran twice, in the window"] += len(begun) > 1 and not again
        counts["ran twice"] += bool(again)
        faults += [f"{name}: started again, first {_last(start, kills)}" for start in again]
    return dict(counts), faults


def _in_window(moment: float, kills: Iterable[Span]) -> bool:
    """Return whether a kill of the lead may have undone an event at this moment."""
    return any(kill.begin - WINDOW_SECONDS <= moment <= kill.end for kill in kills)


def _last(moment: float, kills: Iterable[Span]) -> str:
    after = [kill.begin - moment for kill in kills if kill.end >= moment]
    return f"{min(after):.1f} s before a kill of the lead" if after else "with no kill of the lead after it"
