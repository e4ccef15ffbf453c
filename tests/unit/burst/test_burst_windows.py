"""When a burst grows and shrinks."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minicluster.burst.windows import BurstDecision, BurstLimits, Seen, Windows

POLICY = BurstLimits(min=0, max=4, backlog=10, idle=60)


def seen(now: float, need: int, held: int = 0, age: float = 0.0) -> Seen:
    return Seen(now, need, held, age)


@pytest.mark.parametrize(
    ("policy", "size", "looks", "expected"),
    [
        # a job must have waited for the backlog window
        (POLICY, 0, [seen(0, 3, age=4)], BurstDecision(0, 6)),
        (POLICY, 0, [seen(0, 3, age=10)], BurstDecision(3)),
        (POLICY, 1, [seen(0, 9, age=10)], BurstDecision(4)),
        # at once
        (BurstLimits(2, 4, 10, 60), 1, [seen(0, 0)], BurstDecision(2)),
        (BurstLimits(0, 4, 0, 0), 0, [seen(0, 1, age=0.001)], BurstDecision(1)),
        (BurstLimits(0, 4, 0, 0), 4, [seen(0, 0)], BurstDecision(0)),
        # the most that was needed in the idle window
        (POLICY, 4, [seen(0, 0)], BurstDecision(4)),
        (POLICY, 4, [seen(0, 0), seen(59, 0)], BurstDecision(4)),
        (POLICY, 4, [seen(0, 0), seen(60, 0)], BurstDecision(0)),
        (POLICY, 4, [seen(0, 3), seen(30, 1), seen(60, 1)], BurstDecision(3)),
        (POLICY, 4, [seen(0, 3), seen(30, 1), seen(89, 1)], BurstDecision(3)),
        (POLICY, 4, [seen(0, 3), seen(30, 1), seen(90, 1)], BurstDecision(1)),
        (POLICY, 4, [seen(0, 3), seen(30, 1), seen(80, 2), seen(90, 0)], BurstDecision(2)),
        # a need holds until the next is known, however long that takes
        (POLICY, 4, [seen(0, 3), seen(300, 0)], BurstDecision(3)),
        (POLICY, 4, [seen(0, 4), seen(300, 4), seen(359, 0)], BurstDecision(4)),
        (BurstLimits(1, 4, 10, 60), 4, [seen(0, 0), seen(60, 0)], BurstDecision(1)),
        # larger than it may be: the hosts that jobs have stay
        (BurstLimits(0, 2, 10, 60), 4, [seen(0, 4, held=4), seen(60, 4, held=4)], BurstDecision(4)),
        (BurstLimits(0, 2, 10, 60), 4, [seen(0, 4, held=3), seen(60, 4, held=3)], BurstDecision(3)),
        (BurstLimits(0, 2, 10, 60), 4, [seen(0, 4), seen(60, 4)], BurstDecision(2)),
    ],
)
def test_decide(policy: BurstLimits, size: int, looks: list[Seen], expected: BurstDecision) -> None:
    windows = Windows()
    *before, last = looks
    for look in before:
        windows.decide(policy, look, size)
    assert windows.decide(policy, last, size) == expected


def test_what_was_not_known_for_a_while_begins_anew() -> None:
    windows = Windows()
    windows.decide(POLICY, seen(0, 4), 4)
    windows.forget()
    assert windows.decide(POLICY, seen(100, 0), 4) == BurstDecision(4)
    assert windows.decide(POLICY, seen(160, 0), 4) == BurstDecision(0)


LOOKS = st.lists(
    st.tuples(st.floats(0, 50), st.integers(0, 8), st.integers(0, 8), st.floats(0, 30)), min_size=1, max_size=30
)


@given(LOOKS, st.integers(0, 4), st.integers(0, 4), st.integers(0, 8))
def test_limits_hold_whatever_is_needed(
    looks: list[tuple[float, int, int, float]], least: int, more: int, size: int
) -> None:
    """It never grows above max, never shrinks below min or the hosts that jobs have, and shrinks only after idle."""
    policy = BurstLimits(least, least + more, 10, 60)
    windows, now, sizes = Windows(), 0.0, [(0.0, size)]
    needs: list[tuple[float, int]] = []
    for pause, need, held, age in looks:
        now += pause
        held = min(held, size)  # noqa: PLW2901 - jobs have hosts that are there
        needs.append((now, max(need, held)))
        decision = windows.decide(policy, Seen(now, max(need, held), held, age), size)
        assert decision.wait == math.inf or decision.size == size
        if decision.size > size:
            assert decision.size <= policy.max
            assert size < policy.min or age >= policy.backlog
        if decision.size < size:
            assert decision.size >= max(policy.min, held)
            assert now - needs[0][0] >= policy.idle
            window = [value for (_, value), (end, _) in pairwise([*needs, (now, 0)]) if end > now - policy.idle]
            assert decision.size >= min(max([*window, needs[-1][1]]), policy.max)
        size = decision.size
        sizes.append((now, size))
    assert min(number for _, number in sizes[1:]) >= min(policy.min, sizes[0][1])
