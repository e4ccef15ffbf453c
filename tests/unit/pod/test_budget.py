"""Which pods the agent holds, and when it changes the PodDisruptionBudget; with a fake Kubernetes."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from budget import DisruptionBudget, pods_to_hold, selector
from fake_flux import FakeFlux
from hypothesis import given
from hypothesis import strategies as st
from kube import KubeError
from state import Nodes

LABELS = {"batch.kubernetes.io/job-name": "mc"}
PERIOD = 10


def pods(*indexes: int) -> frozenset[int]:
    return frozenset(indexes)


def expected(*indexes: int) -> dict[str, Any]:
    key = "batch.kubernetes.io/job-completion-index"
    values = [str(index) for index in indexes]
    return {"matchLabels": LABELS, "matchExpressions": [{"key": key, "operator": "In", "values": values}]}


@dataclass
class FakeKube:
    """The budget as a new one is, and how often it was read and changed."""

    selector: dict[str, Any] | None = None
    read: int = 0
    written: list[Any] = field(default_factory=list)
    error: str = ""
    name: str = "mc"

    def get_budget(self) -> dict[str, Any]:
        self.read += 1
        return {"spec": {"minAvailable": 9, **({"selector": self.selector} if self.selector else {})}}

    def select(self, _: dict[str, Any], selector: dict[str, Any] | None) -> None:
        if self.error:
            raise KubeError(self.error)
        self.selector = selector
        self.written.append(selector)


@dataclass
class Setup:
    """The agent's part, and its Kubernetes."""

    kube: FakeKube = field(default_factory=FakeKube)
    budget: DisruptionBudget = field(default_factory=DisruptionBudget)

    def at(self, now: float, *indexes: int) -> tuple[float, float]:
        return self.budget.hold(self.kube, pods(*indexes), now, PERIOD)  # type: ignore[arg-type]


@pytest.fixture
def mc() -> Setup:
    return Setup()


@pytest.mark.parametrize(
    ("used", "own", "always_lead", "jobs", "held"),
    [
        ({}, 4, True, 0, pods(0)),
        ({}, 4, False, 0, pods()),
        # a job waits
        ({}, 4, False, 1, pods(0)),
        ({2: (1, 0)}, 4, False, 1, pods(0, 2)),
        ({0: (1, 0), 3: (4, 1)}, 4, True, 2, pods(0, 3)),
        # hosts of bursts have the ranks from 4 on
        ({3: (1, 0), 4: (1, 0)}, 4, True, 1, pods(0, 3)),
    ],
)
def test_the_lead_and_pods_with_jobs_are_held(
    used: dict[int, tuple[int, int]], own: int, always_lead: bool, jobs: int, held: frozenset[int]
) -> None:
    flux = FakeFlux({}, set())
    for number in range(jobs):
        flux.submit(number)
    nodes = Nodes({}, used, frozenset(), {})
    assert pods_to_hold(flux, nodes, range(own), always_lead) == held


def test_a_group_has_no_lead() -> None:
    nodes = Nodes({}, {0: (1, 0), 5: (1, 0)}, frozenset(), {})
    assert pods_to_hold(FakeFlux({}, set()), nodes, range(4, 8), True) == {1}


def test_the_selector_has_the_indexes_in_order() -> None:
    assert selector("mc", [10, 9, 0]) == expected(0, 9, 10)
    # Kubernetes refuses an empty list, and an empty selector would select all pods
    assert selector("mc", []) is None


def test_the_selector_is_written_at_the_first_look_and_when_it_changes(mc: Setup) -> None:
    assert mc.at(0, 0) == (0, 10)
    assert mc.at(1, 0) == (0, 9)
    assert mc.at(2, 0, 3) == (0, 8)
    assert (mc.kube.read, mc.kube.written) == (2, [expected(0), expected(0, 3)])


def test_pods_that_may_go_leave_the_selector_once_a_period(mc: Setup) -> None:
    mc.at(0, 0, 1)
    mc.at(1, 0)
    mc.at(2, 0, 2)
    assert mc.kube.selector == expected(0, 1, 2)
    mc.at(9.9, 0, 2)
    assert mc.kube.selector == expected(0, 1, 2)
    assert mc.at(10, 0, 2) == (0, 10)
    assert mc.kube.selector == expected(0, 2)


def test_many_short_jobs_change_the_selector_a_few_times_in_a_period(mc: Setup) -> None:
    for look in range(40):
        mc.at(look / 4, 0, look % 5)
    assert len(mc.kube.written) == mc.kube.read == 5


def test_a_selector_that_somebody_changed_is_corrected_once_a_period(mc: Setup) -> None:
    mc.at(0, 0, 1)
    mc.kube.selector = None
    mc.at(9, 0, 1)
    assert mc.kube.selector is None
    mc.at(10, 0, 1)
    assert mc.kube.selector == expected(0, 1)
    mc.at(20, 0, 1)
    assert mc.kube.written == [expected(0, 1)] * 2


def test_an_agent_that_starts_again_continues_from_the_live_selector(mc: Setup) -> None:
    mc.at(0, 0, 1, 2)
    mc.budget = DisruptionBudget()
    mc.at(5, 0, 1, 2)
    assert mc.kube.written == [expected(0, 1, 2)]
    mc.budget = DisruptionBudget()
    mc.at(6, 0, 3)
    assert mc.kube.selector == expected(0, 3)


def test_a_change_that_failed_is_made_at_the_next_look(mc: Setup) -> None:
    mc.at(0, 0)
    mc.kube.error = "PATCH: 409 the object has been modified"
    for now in (1, 10):
        with pytest.raises(KubeError):
            mc.at(now, 0, 1)
        assert mc.kube.selector == expected(0)
    mc.kube.error = ""
    assert mc.at(11, 0, 1) == (0, 10)
    assert mc.kube.selector == expected(0, 1)


@given(st.lists(st.tuples(st.floats(0, 5), st.frozensets(st.integers(0, 9))), max_size=30))
def test_a_pod_to_hold_is_always_in_the_selector(looks: list[tuple[float, frozenset[int]]]) -> None:
    mc, now = Setup(), 0.0
    for pause, busy in looks:
        now += pause
        least, most = mc.at(now, *busy)
        values = set(mc.kube.selector["matchExpressions"][0]["values"]) if mc.kube.selector else set()
        assert {str(index) for index in busy} <= values
        assert least == 0
        assert 0 < most <= PERIOD + 1e-9
