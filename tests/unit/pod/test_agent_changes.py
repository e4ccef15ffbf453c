"""What wakes the agent, and when. A fake reactor moves the clock."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest
from fake_flux import imported

JOBS, RESOURCES, SCALE = "job-manager.events-journal", "resource.journal", "kvs-watch.lookup"


@dataclass
class Stream:
    """A streaming RPC: each item of ``answers`` is one answer, or the error that ends it."""

    answers: list[OSError | None] = field(default_factory=list)
    callback: Callable[[], None] = lambda: None

    def then(self, callback: Callable[[Any, str], None], topic: str) -> "Stream":
        self.callback = lambda: callback(self, topic)
        return self

    def get(self) -> None:
        if error := self.answers[0]:
            raise error

    def reset(self) -> None:
        self.answers.pop(0)


@dataclass
class Timer:
    """A timer, which is started by `with`."""

    handle: "Reactor"
    at: float
    callback: Callable[[], None]

    def __enter__(self) -> None:
        self.handle.timers.append(self)

    def __exit__(self, *_: object) -> None:
        self.handle.timers.remove(self)


class Reactor:
    """A handle with streams, whose answers come at times of the clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.early = 0.0  #: by how much timers are early
        self.tick = 0.0  #: the time that a look at the clock takes
        self.open: list[tuple[str, Any]] = []
        self.streams: dict[str, Stream] = {}
        self.timers: list[Timer] = []
        self.comes: list[tuple[float, str, OSError | None]] = []
        self.taken: list[float] = []
        self.stopped = self.gone = False

    def clock(self) -> float:
        self.now += self.tick
        return self.now

    def rpc(self, topic: str, payload: Any, nodeid: int, flags: int) -> Stream:
        assert (nodeid, flags) == (0, 2)
        self.open.append((topic, payload))
        self.streams[topic] = Stream()
        return self.streams[topic]

    def timer_watcher_create(self, after: float, callback: Callable[[], None]) -> Timer:
        assert after > 0
        return Timer(self, self.now + max(after - self.early, after / 2), callback)

    def reactor_stop(self) -> None:
        self.stopped = True

    def reactor_run(self) -> int:
        if self.gone:
            return -1
        self.stopped = False
        while not self.stopped:
            timer = min(self.timers, key=lambda timer: timer.at)
            if self.comes and self.comes[0][0] <= timer.at:
                at, topic, error = self.comes.pop(0)
                self.now = max(self.now, at)
                self.taken.append(self.now)
                assert not self.streams[topic].answers, "without a reset there is no next answer"
                self.streams[topic].answers.append(error)
                self.streams[topic].callback()
            else:
                self.now = timer.at
                timer.callback()
        return 0


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    yield from imported(monkeypatch, None, "changes")


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Reactor:
    reactor = Reactor()
    monkeypatch.setattr(time, "monotonic", reactor.clock)
    return reactor


@pytest.fixture
def waited(program: ModuleType, handle: Reactor) -> Callable[..., list[float]]:
    """Return the times at which consecutive waits end."""
    changes = program.Changes(handle)

    def waited(*waits: tuple[float, float]) -> list[float]:
        found = []
        for least, most in waits:
            changes.wait(least, most)
            found.append(round(handle.now, 3))
        return found

    return waited


Waited = Callable[..., list[float]]


def test_the_agent_watches_jobs_nodes_and_the_requested_size(handle: Reactor, waited: Waited) -> None:
    waited((0, 1))
    watch = {"namespace": "primary", "key": "minicluster.size", "flags": 12}
    assert dict(handle.open) == {JOBS: {"allow": {"priority": 1}}, RESOURCES: {}, SCALE: watch}
    waited((0, 1))
    assert len(handle.open) == 3, "each is opened once"


def test_the_agent_watches_starts_of_jobs_if_asked(handle: Reactor, program: ModuleType) -> None:
    handle.comes = [(3, JOBS, None)]
    program.Changes(handle, program.START_STREAMS).wait(0, 10)
    assert (handle.open, round(handle.now, 3)) == ([(JOBS, {"allow": {"alloc": 1}})], 3.05)


def test_the_agent_watches_the_group_of_online_brokers_in_an_older_flux(
    handle: Reactor, program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "flux.resource.journal")
    monkeypatch.setitem(program.STREAMS, "nodes", program.watch_nodes())
    program.Changes(handle, ["nodes"]).wait(0, 1)
    assert handle.open == [("groups.get", {"name": "broker.online"})]


@pytest.mark.parametrize("early", [0.0, 0.4])
def test_a_wait_without_a_change_ends_after_its_longest_time(handle: Reactor, waited: Waited, early: float) -> None:
    handle.early = early
    assert waited((0, 10), (0.25, 10), (7, 5)) == [10, 20, 25]
    assert handle.now >= 25


def test_no_timer_is_set_to_the_past_on_a_busy_machine(handle: Reactor, waited: Waited) -> None:
    handle.early, handle.tick = 1, 0.6
    [end] = waited((0, 10))
    assert 10 <= end < 13


@pytest.mark.parametrize("topic", [JOBS, RESOURCES, SCALE])
def test_a_wait_ends_soon_after_a_change(handle: Reactor, waited: Waited, topic: str) -> None:
    handle.comes = [(3, topic, None), (14, topic, None)]
    assert waited((0, 10), (0, 10), (0, 10)) == [3.05, 13.05, 14.05]


def test_changes_that_come_together_end_one_wait(handle: Reactor, waited: Waited) -> None:
    handle.comes = [(3 + 0.001 * number, JOBS, None) for number in range(40)]
    assert waited((0, 10), (0, 10)) == [3.05, 13.05]


def test_a_wait_does_not_end_before_its_shortest_time(handle: Reactor, waited: Waited) -> None:
    handle.comes = [(0.1 * number, JOBS, None) for number in range(1, 10)]
    assert waited((0.5, 10), (0.5, 10), (0, 10)) == [0.5, 1, 11]
    assert handle.taken == [pytest.approx(0.1 * number) for number in range(1, 10)], "they don't pile up in the broker"


def test_a_wait_for_more_changes_does_not_exceed_its_longest_time(handle: Reactor, waited: Waited) -> None:
    handle.comes = [(9.99, JOBS, None)]
    assert waited((0, 10)) == [10]


def test_a_wait_of_a_fixed_time_opens_no_streams(handle: Reactor, waited: Waited) -> None:
    assert waited((10, 10)) == [10]
    assert handle.open == []


def test_a_stream_that_ends_is_opened_again_by_the_next_wait(handle: Reactor, waited: Waited) -> None:
    """A module was reloaded, or is missing."""
    handle.comes = [(1, JOBS, OSError(61, "No data available")), (2, RESOURCES, None), (4, JOBS, None)]
    assert waited((0, 10)) == [2.05]
    assert [topic for topic, _ in handle.open].count(JOBS) == 1
    assert waited((0, 10)) == [4.05]
    assert [topic for topic, _ in handle.open].count(JOBS) == 2
    assert len(handle.open) == 4


def test_a_wait_fails_when_the_broker_is_gone(handle: Reactor, waited: Waited) -> None:
    handle.gone = True
    with pytest.raises(OSError, match="the broker is gone"):
        waited((0, 10))
