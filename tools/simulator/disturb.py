"""What happens to a MiniCluster by chance, from a seed: jobs, kills, evictions, lost machines, failing requests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from tools.simulator.clock import EPOCH_SECONDS
from tools.simulator.indexed_job import NO_IMAGE
from tools.simulator.jobs import Job, Load
from tools.simulator.setting import GROUP, Setting
from tools.simulator.world import World

#: Virtual seconds of an episode, before it settles
EPISODE_SECONDS = 1800.0
#: Virtual seconds between two happenings, in the mean, while they come fast; and while they come slowly
FAST_SECONDS, SLOW_SECONDS = 8.0, 90.0
#: How long jobs work; of what they want to be warned
WORK_SECONDS, WARNINGS = (0.5, 5.0, 30.0, 120.0), ("", "", "USR1", "USR1@10s")
#: The last digits of the seeds with Kueue
KUEUE_DIGITS = (8,)
#: What is left of the seeds by 20 of those that are replaced, and of those with bursts
REPLACED_SEEDS, BURST_SEEDS = (3,), (9,)
GRACES, BURSTS = (None, 0.0, 5.0, 30.0), (("near", 2), ("far", 3))
#: How often the quota of Kueue changes, of all that happens
QUOTA_PART = 0.1
#: `flux.preemption` of some MiniClusters: when jobs are stopped for another one, in seconds
PREEMPTION = ("20", "10", "15")


def setting_of(random: Random) -> Setting:
    """Return a MiniCluster."""
    return Setting(
        least=random.choice([1, 1, 2, 3]),
        suspend=random.choice([0.0, 30.0]),
        idle=random.choice([10.0, 30.0, 120.0]),
        backlog=random.choice([0.0, 5.0, 20.0]),
        step_down=random.choice([0, 0, 1]),
        has_budget=random.random() < 0.7,
        group=random.choice([0, 0, 3]),
        preemption=random.choice([(), PREEMPTION]),
    )


def episode(seed: int, changes: Mapping[str, tuple[str, str]] | None = None) -> World:
    """Run one MiniCluster, let it settle, and return it. Raises AssertionError."""
    random = Random(seed)  # noqa: S311 - no secret
    setting = setting_of(random)
    if seed % 10 in KUEUE_DIGITS:
        setting = replace(setting, suspend=0.0, quota=random.randint(setting.least, setting.all))
    setting = replace(setting, is_replaced=seed % 20 in REPLACED_SEEDS)
    if seed % 20 in BURST_SEEDS:
        setting = replace(setting, most=4, suspend=0.0, group=0, bursts=BURSTS)
    world = World(seed, setting, changes or {})
    try:
        world.run(60.0)
        happens = random.choice([happen, happen, happen_at_ends, happen_to_client])
        happens = happen_to_bursts if setting.bursts else happens
        happens = happen_to_replaced if setting.is_replaced else happens
        is_fast, end = True, world.loop.now + EPISODE_SECONDS
        while world.loop.now < end:
            is_fast ^= random.random() < 0.1
            world.run(random.expovariate(1 / (FAST_SECONDS if is_fast else SLOW_SECONDS)))
            happens(world, random)
            if world.kubernetes.kueue and random.random() < QUOTA_PART:
                change_quota(world, random)
        world.settle()
    finally:
        world.close()
    return world


def change_quota(world: World, random: Random) -> None:
    """Let others take quota of Kueue, or all of it; the cluster may start again some minutes later."""
    kueue, setting = world.kubernetes.kueue, world.setting
    assert kueue
    kueue.change(random.randint(0, setting.all))
    again = random.randint(setting.least, setting.all)
    world.loop.at(random.uniform(1.0, 600.0), lambda: kueue.change(max(kueue.quota, again)))


def happen(world: World, random: Random) -> None:
    """Let one thing happen."""
    most, kubernetes = world.setting.most, world.kubernetes
    index = random.choice([0, *range(world.setting.all), *range(world.setting.all)])
    nodes = random.choice([1, 1, 1, 2, 3, most])
    kinds: list[tuple[int, Callable[[], object]]] = [
        (40, lambda: submit(world, random, nodes)),
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
        (4, lambda: stop_at_end(world, random)),
        (3, world.lead.start_agent),
        (3, world.lead.start_undrainer),
        (3, lambda: setattr(kubernetes, "down_until", world.loop.now + random.uniform(1.0, 60.0))),
        (3, lambda: setattr(kubernetes, "error_part", random.choice([0.0, 0.0, 0.3]))),
        (3, lambda: setattr(kubernetes, "lost_answer_part", random.choice([0.0, 0.0, 0.3]))),
        (1, kubernetes.lose_workers),
    ]
    choose(kinds, random)


def happen_at_ends(world: World, random: Random) -> None:
    """Let one thing happen about the end of a job that wants retries."""

    def submit_own(nodes: int, seconds: float, fails: int) -> None:
        world.submit(Load(nodes, 1, seconds, {"signal": "USR1", "retries": 3}, fails))

    kinds: list[tuple[int, Callable[[], object]]] = [
        (50, lambda: submit_own(random.choice([1, 1, 2]), random.choice([1.0, 30.0]), random.choice([1, 2, 3]))),
        (40, lambda: stop_at_end(world, random)),
        (5, world.lead.start_undrainer),
        (5, lambda: world.kubernetes.kill(random.choice([0, 0, 1, 2]))),
    ]
    choose(kinds, random)


def happen_to_client(world: World, random: Random) -> None:
    """Let one thing happen to a client of the SDK."""
    own = random.choice([{}, {}, {"user.minicluster.requeue": 1}])
    kinds: list[tuple[int, Callable[[], object]]] = [
        (50, lambda: world.client.submit(own)),
        (15, lambda: world.client.cut(random)),
        (10, lambda: cut_at_submission(world, random)),
        (10, lambda: cut_at_end(world, random)),
        (6, lambda: world.kubernetes.kill(random.choice([0, 0, 1]))),
        (2, lambda: world.evict(0)),
        (2, lambda: setattr(world.kubernetes, "down_until", world.loop.now + random.uniform(1.0, 60.0))),
    ]
    choose(kinds, random)


def happen_to_replaced(world: World, random: Random) -> None:
    """Let one thing happen to a MiniCluster that somebody replaces."""
    most, replacing = world.setting.most, world.replacing
    assert replacing
    nodes = random.choice([1, 1, 2, most])
    kinds: list[tuple[int, Callable[[], object]]] = [
        (40, lambda: submit(world, random, nodes)),
        (10, lambda: world.client.submit({})),
        (3, lambda: world.client.cut(random)),
        (8, lambda: replacing.begin(random.choice(["v1", "v2", "v3", NO_IMAGE]), random.choice(GRACES))),
        (4, lambda: replacing.begin(replacing.asked, random.choice(GRACES))),
        (5, lambda: replacing.kill(random)),
        (3, lambda: replacing.interrupt(random)),
        (3, lambda: world.kubernetes.kill(random.choice([0, 0, 1, 2]))),
        (2, lambda: world.evict(random.choice([0, 1, 2]))),
        (2, lambda: world.request(random.choice([0, 1, most]))),
        (1, lambda: world.kubernetes.lose(random.choice([0, 1, 2]))),
        (1, lambda: setattr(world.kubernetes, "down_until", world.loop.now + random.uniform(1.0, 60.0))),
        (1, lambda: setattr(world.kubernetes, "lost_answer_part", random.choice([0.0, 0.0, 0.2]))),
    ]
    choose(kinds, random)


def happen_to_bursts(world: World, random: Random) -> None:
    """Let one thing happen to a MiniCluster whose bursts follow the queue."""
    most, following, kubernetes = world.setting.most, world.following, world.kubernetes
    assert following
    hosts = sum(size for _, size in BURSTS)
    nodes, index = random.choice([1, 1, 2, most, most + 1, most + 2, most + hosts]), random.randrange(most + hosts)
    kinds: list[tuple[int, Callable[[], object]]] = [
        (40, lambda: submit(world, random, nodes)),
        (6, lambda: following.kill(random)),
        (3, lambda: following.stop(random)),
        (3, lambda: following.kill_at_removal(random)),
        (6, lambda: kubernetes.kill(random.choice([0, index, index]))),
        (4, lambda: world.evict(index)),
        (4, lambda: world.delete(index)),
        (2, lambda: kubernetes.lose(index)),
        (2, lambda: world.request(random.choice([0, 0, 1, most]))),
        (2, world.lead.start_undrainer),
        (2, lambda: setattr(kubernetes, "down_until", world.loop.now + random.uniform(1.0, 60.0))),
        (2, lambda: setattr(kubernetes, "lost_answer_part", random.choice([0.0, 0.0, 0.2]))),
    ]
    choose(kinds, random)


def cut_at_submission(world: World, random: Random) -> None:
    """Submit jobs, and cut the connection, or kill the lead, while they are on their way."""
    for _ in range(random.choice([1, 5])):
        world.client.submit({})
    end = partial(world.client.cut, random) if random.random() < 0.6 else partial(world.kubernetes.kill, 0)
    world.loop.at(random.uniform(0.0, 0.3), end)
    if random.random() < 0.3:
        world.loop.at(random.uniform(1.0, 4.0), partial(world.client.cut, random))


def cut_at_end(world: World, random: Random) -> None:
    """Cut the connection so that it is there again at about the end of a job."""
    running = [job for job in world.flux.active.values() if job.state == "run"]
    if running:
        left = time_left(world, random.choice(running))
        world.loop.at(left - random.uniform(1.0, 3.0), partial(world.client.cut, random))


def time_left(world: World, job: Job) -> float:
    """Return how long a job still runs."""
    return float(job.fields["t_run"]) + job.work - EPOCH_SECONDS - world.loop.now


def choose(kinds: Sequence[tuple[int, Callable[[], object]]], random: Random) -> None:
    """Let one of some things happen, by their weights."""
    random.choices(kinds, [weight for weight, _ in kinds])[0][1]()


def submit(world: World, random: Random, nodes: int) -> None:
    """Submit some job."""
    own: dict[str, object] = {}
    if warning := random.choice(WARNINGS):
        own["signal"] = warning
    if is_marked := random.random() < 0.3:
        own["preemptible"] = 1
    fails, retries = random.choice([(0, 0), (0, 0), (1, 3), (2, 3), (3, 1), (1, 0)])
    if retries:
        own["retries"] = retries
    group = GROUP if world.setting.group and random.random() < 0.2 else ""
    urgency = 16 if is_marked else random.choice([16, 16, 20])
    nodes = min(nodes, world.setting.group) if group else nodes
    seconds = random.choice(WORK_SECONDS)
    world.submit(Load(nodes, random.choice([1, 2]), seconds, own, fails, group, urgency))


def stop_at_end(world: World, random: Random) -> None:
    """Tell the pod of a job to stop a moment before the job ends."""
    running = [job for job in world.flux.active.values() if job.state == "run"]
    if running:
        job = random.choice(running)
        left = time_left(world, job)
        world.loop.at(left - random.choice([0.0, 20.0]) - random.uniform(0.0, 2.0), partial(world.delete, job.ranks[0]))


def reclaim(world: World, index: int, seconds: float) -> None:
    """Take a machine back: its pod is told to stop, and is lost some seconds later."""
    if pod := world.kubernetes.pods.get(index):
        world.kubernetes.stop(pod)
        world.loop.at(seconds, partial(world.kubernetes.lose, index, pod))


def kill_lead_twice(world: World, seconds: float) -> None:
    """Kill the lead's broker, and that of its next life."""
    world.kubernetes.kill(0)
    world.loop.at(seconds, partial(world.kubernetes.kill, 0))
