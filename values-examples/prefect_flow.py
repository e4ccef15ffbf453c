"""Runs the tasks of a Prefect flow as jobs of a MiniCluster: Prefect retries and shows them, Flux runs them.

  pip install 'minicluster[functions]' 'prefect>=3'
  minicluster create demo -N 2 --image docker.io/library/python:3.13
  python values-examples/prefect_flow.py demo 1000 10000 100000

The nodes need the Python of this program, here 3.13. Prefect's threads only wait, so there may be many.
"""

import random
import sys

from minicluster.sdk import MiniCluster
from prefect import flow, get_run_logger, task
from prefect.task_runners import ThreadPoolTaskRunner


def pi(points: int) -> float:
    """Guess pi from points in a square."""
    if points < 1:
        raise ValueError(f"points={points}: give at least one")
    dice = random.Random(points)
    return 4 * sum(dice.random() ** 2 + dice.random() ** 2 < 1 for _ in range(points)) / points


@task(retries=1, task_run_name="pi-{points}")
def guess(points: int) -> float:
    """Let a node call the function."""
    future = CLUSTER.submit(pi, points, name=f"pi-{points}", time_limit="10m")
    get_run_logger().info("job %s", future.wait_for_id())
    value: float = future.result()
    return value


@flow(task_runner=ThreadPoolTaskRunner(max_workers=100))
def sweep(points: list[int]) -> float:
    """Return the mean of guesses on the nodes, each with a number of points."""
    guesses = [each.result() for each in guess.map(points)]
    return sum(guesses) / len(guesses)


if __name__ == "__main__":
    with MiniCluster.connect(sys.argv[1]) as CLUSTER:
        print("mean:", sweep([int(points) for points in sys.argv[2:]]))
