"""`minicluster burst follow` on a real Kubernetes: 40 jobs, a root of two, a burst of 0 to 4, and back to 0."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from real_cluster import IN_PODS

from tools import testbed
from tools.clients import until
from tools.testbed import NAME

pytestmark = IN_PODS
BURSTING = {"clusters": [{"name": "b0", "size": 4}], "expose": {"type": "NodePort"}}
VALUES = {"size": 2, "logging": {"quiet": True}, "flux": {"bursting": BURSTING}}
JOBS = 40


@contextmanager
def follower(log: Path, here: str, *bursts: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command with short windows and its output in a file; at the end it is killed."""
    windows = ["--backlog=1s", "--idle=10s", "--timeout=3m"]
    words = ["minicluster", "burst", "follow", NAME, *bursts, "--root-namespace", here, *windows]
    with log.open("wb") as file, subprocess.Popen(words, env=testbed.kubernetes().env, stderr=file) as process:
        try:
            yield process
        finally:
            process.kill()


def test_burst_follow_grows_a_burst_for_forty_jobs_and_removes_it(scheduler: str, tmp_path: Path) -> None:
    logs = [tmp_path / "first", tmp_path / "second"]
    with testbed.new_namespace() as here, testbed.new_namespace() as there:
        root = testbed.release(here, testbed.values_of(VALUES, {"cores": 1}, scheduler=scheduler), tmp_path)
        root.install()
        root.wait_for("0-1")

        def size() -> int:
            found = root.cluster.kubectl("-n", there, "get", "jobs", "-o", "jsonpath={.items[*].spec.completions}")
            return int(found or 0)

        begin = time.monotonic()
        with follower(logs[0], here, f"b0@{there}"):
            root.flux(0, "submit", f"--cc=1-{JOBS}", "-N1", "-n1", "sleep", "3")
            until(lambda: size() == 4)
            # killed without a signal to stop, in the middle
        with follower(logs[1], here, f"b0@{there}") as process:
            root.flux(0, "queue", "drain")
            print(f"{scheduler}: {JOBS} jobs in {time.monotonic() - begin:.1f} s")
            begin = time.monotonic()
            until(lambda: not root.cluster.kubectl("-n", there, "get", "jobs,pods,secrets", "-o", "name"))
            print(f"{scheduler}: the burst was gone after {time.monotonic() - begin:.1f} s")
            process.terminate()
            assert process.wait(60) == 0
        jobs = [line.split() for line in root.flux(0, "jobs", "-an", "-o", "{result} {nodelist}").splitlines()]
        assert [result for result, _ in jobs] == ["COMPLETED"] * JOBS
        hosts = {host for _, host in jobs}
        assert hosts > {f"{NAME}-0", f"{NAME}-1"}
        assert hosts - {f"{NAME}-0", f"{NAME}-1"} <= {f"b0-{index}" for index in range(4)}
        assert "minicluster: b0: 0 -> 4 hosts: " in logs[0].read_text()
        said = logs[1].read_text().splitlines()
        assert said[-1] == "minicluster: ended: the bursts stay as they are"
        assert said[-3].endswith(" -> 0 hosts: no job needed more for 10 s")
        assert root.conditions() == {}
