"""The simulator: a seed repeats a run, Hypothesis shrinks what breaks a cluster, and faults of the past are seen."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tools.simulator import clock
from tools.simulator.disturb import episode, reclaim
from tools.simulator.faults import FAULTS, Fault, is_detected
from tools.simulator.indexed_job import merge
from tools.simulator.jobs import Load
from tools.simulator.setting import Setting
from tools.simulator.trace import compared, replay
from tools.simulator.world import World

RANKS = st.integers(0, 5)


@pytest.mark.parametrize("seed", [1, 2, 9, 18])
def test_nothing_breaks(seed: int) -> None:
    world = episode(seed)
    assert world.jobs or world.client.submissions
    assert all(world.flux.fates.is_known(job) for job in world.jobs)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_model_agrees_with_real_pods(seed: int) -> None:
    facts = json.loads(Path(__file__).with_name("trace.json").read_text(encoding="utf-8"))
    assert compared(replay(facts, seed)) == compared(facts)


def test_a_seed_repeats_a_run() -> None:
    one, other = episode(11), episode(11)
    assert one.said == other.said
    assert (one.loop.now, one.flux.fates) == (other.loop.now, other.flux.fates)


@pytest.mark.parametrize("fault", FAULTS[::7], ids=lambda fault: fault.what)
def test_a_fault_of_the_past_is_seen(fault: Fault) -> None:
    assert is_detected(fault)


def test_a_program_that_computes_without_an_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "LOOP_SECONDS", 0.05)
    loop = clock.Loop()
    clock.Process(loop, lambda: [None for _ in itertools.count()], lambda: None)
    with pytest.raises(AssertionError, match="a program computes without an end"):
        loop.run(1)


def test_a_wait_that_is_lost_in_rounding_takes_time() -> None:
    loop = clock.Loop()
    loop.now = 100.0
    waits: list[float] = []

    def wait() -> None:
        while loop.now < 100.0 + 1e-7:
            waits.append(loop.now)
            clock.Condition(loop).wait(1e-14)

    clock.Process(loop, wait, lambda: None)
    loop.run(1)
    assert len(waits) == len(set(waits)) > 1


def test_a_merge_patch_removes_what_is_null() -> None:
    thing = {"a": {"b": 1, "c": 2}, "d": [1]}
    merge(thing, {"a": {"b": None, "e": {"f": 3}}, "d": [2]})
    assert thing == {"a": {"c": 2, "e": {"f": 3}}, "d": [2]}


class Disturbed(RuleBasedStateMachine):
    """A cluster, and all that may happen to it."""

    world: World

    @initialize(
        seed=st.integers(0, 1000), least=st.integers(1, 3), suspend=st.sampled_from([0.0, 60.0]), budget=st.booleans()
    )
    def begin(self, seed: int, least: int, suspend: float, budget: bool) -> None:
        self.world = World(seed, Setting(least=least, suspend=suspend, has_budget=budget))

    @rule(seconds=st.sampled_from([1.0, 5.0, 30.0, 300.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.run(seconds)

    @rule(
        nodes=st.integers(1, 6),
        cores=st.integers(1, 2),
        work=st.sampled_from([0.5, 20.0, 90.0]),
        warning=st.sampled_from(["", "USR1"]),
    )
    def somebody_submits(self, nodes: int, cores: int, work: float, warning: str) -> None:
        self.world.submit(Load(nodes, cores, work, {"signal": warning} if warning else {}))

    @rule(rank=RANKS)
    def a_broker_is_killed(self, rank: int) -> None:
        self.world.kubernetes.kill(rank)

    @rule(rank=RANKS)
    def a_pod_is_evicted(self, rank: int) -> None:
        self.world.evict(rank)

    @rule(rank=RANKS)
    def a_machine_is_lost(self, rank: int) -> None:
        self.world.kubernetes.lose(rank)

    @rule(rank=RANKS, seconds=st.sampled_from([0.0, 2.0, 15.0]))
    def a_machine_is_reclaimed(self, rank: int, seconds: float) -> None:
        reclaim(self.world, rank, seconds)

    @rule(seconds=st.sampled_from([5.0, 60.0]))
    def the_api_server_is_away(self, seconds: float) -> None:
        self.world.kubernetes.down_until = self.world.loop.now + seconds

    @rule(part=st.sampled_from([0.0, 0.3]))
    def answers_are_lost(self, part: float) -> None:
        self.world.kubernetes.lost_answer_part = part

    @rule()
    def the_programs_start_again(self) -> None:
        self.world.lead.start_agent()
        self.world.lead.start_undrainer()

    @rule(size=st.integers(0, 6))
    def somebody_asks_for_a_size(self, size: int) -> None:
        self.world.request(size)

    @rule(rank=RANKS)
    def somebody_drains_a_node(self, rank: int) -> None:
        self.world.drain(rank)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            try:
                self.world.settle()
            finally:
                self.world.close()


TestDisturbed = Disturbed.TestCase
TestDisturbed.settings = settings(stateful_step_count=30, deadline=None)
