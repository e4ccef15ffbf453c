"""Search for the best value in rounds of short tasks that run in parallel in a MiniCluster (evaluations.yaml).

Each round draws values around the best ones of the round before, and scores each by a task. A task that fails or takes
too long has no score, and ends no round. Words: the name of the MiniCluster, and its namespace.
"""

import random
import statistics
import sys

from minicluster.sdk import JobFailed, MiniCluster

ROUNDS, TASKS, BEST = 5, 32, 8
#: Stands for what costs time: the run of an agent, or the test of an answer. It fails below 0
SCORE = "BEGIN { if (x < 0) exit 1; print -(x - 3) ^ 2 }"


def scores(cluster: MiniCluster, values: list[float]) -> dict[float, float]:
    """Return the score of each value whose task succeeded."""
    # all tasks are in the queue at once: as many run as there are cores
    futures = {x: cluster.submit(["awk", "-v", f"x={x}", SCORE], time_limit=60) for x in values}
    found = {}
    for x, future in futures.items():
        try:
            found[x] = float(future.result().stdout)
        except JobFailed as error:
            print(f"{x:.3f} has no score: {error}", file=sys.stderr)
    return found


def main(name: str = "evaluations", namespace: str = "") -> None:
    """Print the best value of each round."""
    chance, middle, spread = random.Random(1), 1.0, 3.0
    with MiniCluster.connect(name, namespace) as cluster:
        for number in range(1, ROUNDS + 1):
            found = scores(cluster, [chance.gauss(middle, spread) for _ in range(TASKS)])
            best = sorted(found, key=lambda x: found[x])[-BEST:]
            middle, spread = statistics.mean(best), statistics.stdev(best)
            print(f"round {number}: {len(found)} of {TASKS} tasks have a score, the best value is {best[-1]:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
