"""A program of a user that forks, beside a stand-in for kubectl: prints what its children and it get, as JSON."""

import concurrent.futures
import json
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

from minicluster.sdk import ClosedError, MiniCluster

warnings.filterwarnings("ignore", category=DeprecationWarning)
CLUSTER = MiniCluster.connect("mini")
FORKS = multiprocessing.get_context("fork")


def output(word: str) -> str:
    """Run a job, and return what it prints."""
    return CLUSTER.submit(["echo", word]).result(20).output.strip()


def in_child(do: Callable[[], Any]) -> Any:
    """Return what a function returns in a child."""
    queue = FORKS.SimpleQueue()
    child = FORKS.Process(target=lambda: queue.put(do()))
    child.start()
    found = queue.get()
    child.join(20)
    assert child.exitcode == 0
    return found


def used_after_a_job() -> Any:
    """Use everything in a child, and then in the parent."""
    before = output("parent")

    def use() -> Any:
        with CLUSTER.executor() as executor:
            mapped = [job.output.strip() for job in executor.map("echo", ["a", "b"])]
        return output("child"), [job.name for job in CLUSTER.jobs(timeout=20)], mapped, CLUSTER.status()["name"]

    return before, in_child(use), in_child(use), output("again")


def with_an_open_job() -> Any:
    """Fork while a job runs: the child has no part in it."""
    job, called = CLUSTER.submit("wait"), []
    job.add_done_callback(called.append)
    name = job.wait_for_id(20)

    def look() -> Any:
        found = concurrent.futures.wait([job], 10).done == {job}
        return found, isinstance(job.exception(0), ClosedError), str(job.exception(0)), called, output("child")

    child = in_child(look)
    assert (job.done(), called) == (False, [])
    with open(os.environ["FREE"], "w"):  # noqa: PTH123
        pass
    return child[2].replace(name, "ID"), child, job.result(20).output


def with_a_submission_on_its_way() -> Any:
    """Fork while other threads submit."""
    threads = [threading.Thread(target=lambda: [output("x") for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    found = [in_child(lambda: output("child")) for _ in range(5)]
    for thread in threads:
        thread.join()
    return found, output("parent")


def in_a_pool() -> Any:
    """Submit in a Pool of processes."""
    output("parent")
    with FORKS.Pool(2) as pool:
        return pool.map(output, ["a", "b", "c", "d"])


def beside_a_program_that_inherits() -> Any:
    """Start a program that gets each inheritable descriptor, and close the cluster: kubectl ends all the same."""
    output("parent")
    with subprocess.Popen(["sleep", "60"], close_fds=False) as other:
        with open("/proc/self/stat") as mine:  # noqa: PTH123
            me = mine.read().split()[0]
        CLUSTER.close()
        left = subprocess.run(["pgrep", "-P", me, "-f", "exec mini-0-x"], capture_output=True, check=False).stdout
        other.kill()
    return left.decode()


def left_by_a_child() -> Any:
    """Leave the block of a cluster, and of a port, in a child: both are the parent's."""
    with MiniCluster(CLUSTER._kube, "mini", is_own=True) as own:
        with CLUSTER.port_forward(80) as port:
            if not (child := os.fork()):
                sys.exit(3)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        own._is_own = False
    return code, port.error, output("parent")


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
    CLUSTER.close()
