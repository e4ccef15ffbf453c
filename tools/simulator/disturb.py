"""What happens to a MiniCluster by chance, from a seed: jobs, kills, evictions, lost machines, failing requests."""

from collections.abc import Callable, Mapping
from functools import partial
from random import Random

from tools.simulator.world import Setting, World

#: Virtual seconds of an episode, before it settles
EPISODE_SECONDS = 1800.0
#: Virtual seconds between two happenings, in the mean, while they come fast; and while they come slowly
FAST_SECONDS, SLOW_SECONDS = 8.0, 90.0
#: How long jobs work; of what they want to be warned
WORK_SECONDS, WARNINGS = (0.5, 5.0, 30.0, 120.0), ("", "", "USR1", "USR1@10s")


def setting_of(random: Random) -> Setting:
    """Return a MiniCluster."""
    return Setting(
        least=random.choice([1, 1, 2, 3]),
        suspend=random.choice([0.0, 30.0]),
        idle=random.choice([10.0, 30.0, 120.0]),
        backlog=random.choice([0.0, 5.0, 20.0]),
        step_down=random.choice([0, 0, 1]),
        has_budget=random.random() < 0.7,
    )


def episode(seed: int, changes: Mapping[str, tuple[str, str]] | None = None) -> World:
    """Run one MiniCluster, let it settle, and return it. Raises AssertionError."""
    random = Random(seed)  # noqa: S311 - no secret
    setting = setting_of(random)
    world = World(seed, setting, changes or {})
    try:
        world.run(60.0)
        is_fast, end = True, world.loop.now + EPISODE_SECONDS
        while world.loop.now < end:
            is_fast ^= random.random() < 0.1
            world.run(random.expovariate(1 / (FAST_SECONDS if is_fast else SLOW_SECONDS)))
            happen(world, random)
        world.settle()
    finally:
        world.close()
    return world


def happen(world: World, random: Random) -> None:
    """Let one thing happen."""
    most, kubernetes = world.setting.most, world.kubernetes
    index = random.choice([0, *range(most), *range(most)])
    nodes = random.choice([1, 1, 1, 2, 3, most])
    kinds: list[tuple[int, Callable[[], object]]] = [
        (40, lambda: world.submit(nodes, random.choice([1, 2]), random.choice(WORK_SECONDS), random.choice(WARNINGS))),
        (8, lambda: kubernetes.kill(index)),
        (2, lambda: kill_lead_twice(world, random.uniform(0.3, 6.0))),
        (6, lambda: world.evict(index)),
        (4, lambda: world.delete(index)),
        (3, lambda: kubernetes.lose(index)),
        (4, lambda: reclaim(world, index, random.uniform(0.0, 30.0))),
        (6, lambda: world.submit_at_suspend(random.uniform(0.0, 4.0))),
        (6, lambda: world.submit_at_drain(nodes)),
        (4, lambda: world.request(random.choice([0, 0, *range(1, most + 1)]))),
        (4, lambda: world.drain(index)),
        (3, world.lead.start_agent),
        (3, world.lead.start_undrainer),
        (3, lambda: setattr(kubernetes, "down_until", world.loop.now + random.uniform(1.0, 60.0))),
        (3, lambda: setattr(kubernetes, "error_part", random.choice([0.0, 0.0, 0.3]))),
        (3, lambda: setattr(kubernetes, "lost_answer_part", random.choice([0.0, 0.0, 0.3]))),
        (1, kubernetes.lose_workers),
    ]
    weights = [weight for weight, _ in kinds]
    random.choices(kinds, weights)[0][1]()


def reclaim(world: World, index: int, seconds: float) -> None:
    """Take a machine back: its pod is told to stop, and is lost some seconds later."""
    if pod := world.kubernetes.pods.get(index):
        world.kubernetes.stop(pod)
        world.loop.at(seconds, partial(world.kubernetes.lose, index, pod))


def kill_lead_twice(world: World, seconds: float) -> None:
    """Kill the lead's broker, and that of its next life."""
    world.kubernetes.kill(0)
    world.loop.at(seconds, partial(world.kubernetes.kill, 0))
