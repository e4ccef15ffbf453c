"""How many jobs a second a MiniCluster runs, beside bare pods that start the same Flux and keep its queue, or not.

    python -m benchmarks.throughput FILE.json [--jobs 1000] [--rounds 3] [--sdk 10000]

Jobs have Flux's simulated execution, so what counts is the lead: taking jobs, placing them and keeping their records.
Each cluster has two nodes. In each round each of them gets the jobs once, in turns: by `flux submit --cc`
into its own queue, and into that of a `flux batch` job (batch). Jobs a second are from the first submission to the end
of the last job, as Flux recorded them. In two batch jobs at once (tree) each has half of the jobs. `--sdk` submits a
number of jobs by the SDK once, to the cluster with all features, and reports the memory of the client. Needs kubectl,
helm and minicluster in PATH, and the SDK's packages.
"""

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.clusters import NAME, BareCluster, MeasuredCluster, wait
from benchmarks.idle import Container
from benchmarks.results import Row, save
from tools import testbed
from tools.clients import run_program

#: Nodes of each cluster.
NODES = 2
SIMULATED = "--setattr=exec.test.run_duration=1ms"
#: Runs in a batch job, whose instance is then asked for the times of its jobs.
BATCH = """
flux submit --quiet --cc=1-$1 -n1 {simulated} true && flux queue drain
flux jobs -a -n --count=0 -o '{{t_submit}} {{t_inactive}}' >"$2"
"""
AGENT = {"autoscaling": {"enabled": True, "min": NODES, "max": NODES}}
#: Features, each with those before it.
FEATURES: Mapping[str, Mapping[str, Any]] = {
    "chart": {},
    "chart, agent": AGENT,
    "chart, agent, metrics, requeue, state": {
        **AGENT,
        "metrics": {"enabled": True},
        "pod": {"onStop": "requeue"},
        "state": {"claimName": "bench-state"},
    },
}
KEPT = "bare, queue kept"
#: Bare pods, and the figure that compares a cluster with them.
BARE = {"bare": "times_bare", KEPT: "times_kept"}


class ChartCluster(MeasuredCluster):
    """A MiniCluster whose nodes have all cores of the Kubernetes node, as those of bare pods."""

    runner: Mapping[str, Any] = {}


def rate(lines: str) -> float:
    r"""Return the jobs a second of lines with the times at which each job was submitted and ended.

    >>> rate("10.0 11.0\n10.5 12.0\n")
    1.0
    """
    times = [tuple(map(float, line.split())) for line in lines.splitlines()]
    return len(times) / (max(end for _, end in times) - min(begin for begin, _ in times))


def rotated(names: Sequence[str], turn: int) -> list[str]:
    """Return the names; in each turn another one is the first.

    >>> rotated("abc", 4)
    ['b', 'c', 'a']
    """
    first = turn % len(names)
    return [*names[first:], *names[:first]]


def submit(cluster: MeasuredCluster, jobs: int) -> float:
    """Submit jobs by `flux submit --cc`, and return how many a second ran."""
    name = f"bench-{time.monotonic_ns()}"
    words = ("submit", "--quiet", f"--job-name={name}", f"--cc=1-{jobs}", "-n1", SIMULATED, "true")
    cluster.flux(*words)
    cluster.flux("queue", "drain")
    return rate(cluster.flux("jobs", "-a", "-n", "--count=0", f"--name={name}", "-o", "{t_submit} {t_inactive}"))


def batch(cluster: MeasuredCluster, jobs: int) -> float:
    """Submit jobs in a batch job, and return how many a second ran there."""
    script, found = BATCH.format(simulated=SIMULATED), f"/tmp/bench-{time.monotonic_ns()}"  # noqa: S108 - in a pod
    words = ("submit", "--wait", "-N1", "--exclusive", "flux", "broker", "sh", "-c", script, "sh", str(jobs), found)
    cluster.flux(*words)
    return rate(cluster.exec("cat", found))


def tree(cluster: MeasuredCluster, jobs: int) -> float:
    """Submit jobs in a batch job on each node, all at once, and return how many a second ran there."""
    script = BATCH.format(simulated=SIMULATED) + 'cat "$2"'
    words = ("submit", "-N1", "--exclusive", "flux", "broker", "sh", "-c", script, "sh")
    share = (str(jobs // NODES), f"/tmp/bench-{time.monotonic_ns()}")  # noqa: S108 - in a pod
    names = [cluster.flux(*words, *share).strip() for _ in range(NODES)]
    return rate("".join(cluster.flux("job", "attach", name) for name in names))


def memory(cluster: MeasuredCluster) -> float:
    """Return the MiB of the largest process on the lead, its broker."""
    return max(Container(cluster, 0, cluster.name).processes())


@contextmanager
def clusters(kubectl: list[str], namespace: str, folder: Path) -> Iterator[dict[str, MeasuredCluster]]:
    """Install the clusters, and remove them."""
    made: dict[str, MeasuredCluster] = {}
    with ExitStack() as stack:
        cluster = testbed.release(namespace, {}, folder)
        testbed.bind(cluster, "bench-state", stack.enter_context(testbed.new_volume()), folder / "state")
        for number, (what, values) in enumerate(FEATURES.items()):
            made[what] = ChartCluster({"size": NODES, **values}, kubectl, namespace, f"{NAME}-{number}")
            stack.callback(made[what].remove)
        for what in BARE:
            made[what] = BareCluster(NODES, kubectl, namespace, keeps=what == KEPT)
            stack.callback(made[what].remove)
            made[what].resize(NODES)
        wait(lambda: all(each.up() == NODES for each in made.values()))
        yield made


def by_sdk(cluster: MeasuredCluster, jobs: int) -> Row:
    """Submit jobs by the SDK; return the figures."""
    from minicluster.sdk import MiniCluster  # noqa: PLC0415 # the other measurements don't need its packages

    before = memory(cluster)
    begin = time.monotonic()
    with MiniCluster.connect(cluster.name, cluster.namespace) as connected:
        attributes = {"system.exec.test.run_duration": "1ms"}
        futures = [connected.submit("true", attributes=attributes) for _ in range(jobs)]
        ended = sum(future.result(3600).exit_code == 0 for future in futures)
    seconds = time.monotonic() - begin
    used = {"lead_before_mib": before, "lead_mib": memory(cluster)}
    client = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"way": "SDK", "jobs": jobs, "a_second": jobs / seconds, "lost": jobs - ended, **used, "client_mib": client}


def main() -> None:
    """Measure, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sdk", type=int, default=0)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    # the only one that bare pods find
    MeasuredCluster.scheduler = "sched-simple"
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    ways = {"flux submit --cc": submit, "batch": batch, "tree": tree}
    with tempfile.TemporaryDirectory() as folder, testbed.new_namespace() as namespace:
        kubectl = ["kubectl", "-n", namespace]
        with clusters(kubectl, namespace, Path(folder)) as made:
            for turn in range(options.rounds):
                for way, run in ways.items():
                    # each is first as often as the others: a batch job before it may still end
                    for what in rotated(list(made), turn):
                        rates[way, what].append(run(made[what], options.jobs))
                        print(f"{way}, {what}: {rates[way, what][-1]:.0f} jobs a second", flush=True)
                rows = [row(way, what, rates, options.jobs) for way, what in rates]
                save(options.file, options.where, rows)
            for what, cluster in made.items():
                print(f"{what}: the lead's broker has {memory(cluster):.0f} MiB", flush=True)
            if options.sdk:
                print(json.dumps(by_sdk(made[list(FEATURES)[-1]], options.sdk)), flush=True)


def row(way: str, what: str, rates: Mapping[tuple[str, str], list[float]], jobs: int) -> Row:
    """Return the figures of a way to submit and a cluster; a ratio is the median of those of the rounds."""
    own = rates[way, what]
    ratios = {
        key: statistics.median(one / other for one, other in zip(own, rates[way, bare], strict=True))
        for bare, key in BARE.items()
    }
    return {"way": way, "cluster": what, "jobs": jobs, "a_second": statistics.median(own), **ratios}


if __name__ == "__main__":
    run_program(main)
