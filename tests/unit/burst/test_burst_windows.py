"""When a burst grows and shrinks."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minicluster.burst.follower import BurstDecision, BurstLimits, Seen, Windows

POLICY = BurstLimits(min=0, max=4, backlog=10, idle=60)


def seen(now: float, need: int, held: int = 0, age: float = 0.0) -> Seen:
    return Seen(now, need, held, age)


@pytest.mark.parametrize(
    ("policy", "size", "looks", "expected"),
    [
        # a job must have waited for the backlog window
        pytest.param(POLICY, 0, [seen(0, 3, age=4)], BurstDecision(0, 6), id="before the backlog window"),
        pytest.param(POLICY, 0, [seen(0, 3, age=10)], BurstDecision(3), id="after the backlog window"),
        pytest.param(POLICY, 1, [seen(0, 9, age=10)], BurstDecision(4), id="no larger than max"),
        # at once
        pytest.param(BurstLimits(2, 4, 10, 60), 1, [seen(0, 0)], BurstDecision(2), id="min at once"),
        pytest.param(BurstLimits(0, 4, 0, 0), 0, [seen(0, 1, age=0.001)], BurstDecision(1), id="no backlog window"),
        pytest.param(BurstLimits(0, 4, 0, 0), 4, [seen(0, 0)], BurstDecision(0), id="no idle window"),
        # the most that was needed in the idle window
        pytest.param(POLICY, 4, [seen(0, 0)], BurstDecision(4), id="first look"),
        pytest.param(POLICY, 4, [seen(0, 0), seen(59, 0)], BurstDecision(4), id="before the idle window"),
        pytest.param(POLICY, 4, [seen(0, 0), seen(60, 0)], BurstDecision(0), id="after the idle window"),
        pytest.param(POLICY, 4, [seen(0, 3), seen(30, 1), seen(60, 1)], BurstDecision(3), id="largest need"),
        pytest.param(
            POLICY,
            4,
            [seen(0, 3), seen(30, 1), seen(89, 1)],
            BurstDecision(3),
            id="largest need before its window ends",
        ),
        pytest.param(
            POLICY, 4, [seen(0, 3), seen(30, 1), seen(90, 1)], BurstDecision(1), id="largest need after its window"
        ),
        pytest.param(
            POLICY,
            4,
            [seen(0, 3), seen(30, 1), seen(80, 2), seen(90, 0)],
            BurstDecision(2),
            id="largest of the later needs",
        ),
        # a need counts until the next one is known, for any length of time
        pytest.param(POLICY, 4, [seen(0, 3), seen(300, 0)], BurstDecision(3), id="need until the next look"),
        pytest.param(
            POLICY, 4, [seen(0, 4), seen(300, 4), seen(359, 0)], BurstDecision(4), id="need before its window ends"
        ),
        pytest.param(
            BurstLimits(1, 4, 10, 60), 4, [seen(0, 0), seen(60, 0)], BurstDecision(1), id="no smaller than min"
        ),
        # larger than it may be: the hosts that jobs have stay
        pytest.param(
            BurstLimits(0, 2, 10, 60),
            4,
            [seen(0, 4, held=4), seen(60, 4, held=4)],
            BurstDecision(4),
            id="all hosts have jobs",
        ),
        pytest.param(
            BurstLimits(0, 2, 10, 60),
            4,
            [seen(0, 4, held=3), seen(60, 4, held=3)],
            BurstDecision(3),
            id="three hosts have jobs",
        ),
        pytest.param(BurstLimits(0, 2, 10, 60), 4, [seen(0, 4), seen(60, 4)], BurstDecision(2), id="no host has a job"),
    ],
)
def test_a_burst_grows_and_shrinks_after_its_backlog_and_idle_windows(
    policy: BurstLimits, size: int, looks: list[Seen], expected: BurstDecision
) -> None:
    windows = Windows()
    *before, last = looks
    for look in before:
        windows.decide(policy, look, size)
    assert windows.decide(policy, last, size) == expected


def test_the_idle_window_of_a_burst_starts_again_after_forget() -> None:
    windows = Windows()
    windows.decide(POLICY, seen(0, 4), 4)
    windows.forget()
    assert windows.decide(POLICY, seen(100, 0), 4) == BurstDecision(4)
    assert windows.decide(POLICY, seen(160, 0), 4) == BurstDecision(0)


LOOKS = st.lists(
    st.tuples(st.floats(0, 50), st.integers(0, 8), st.integers(0, 8), st.floats(0, 30)), min_size=1, max_size=30
)


@given(LOOKS, st.integers(0, 4), st.integers(0, 4), st.integers(0, 8))
def test_a_burst_stays_within_its_limits_whatever_is_needed(
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
