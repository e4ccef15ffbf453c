"""`minicluster burst follow` on a real Kubernetes: 40 jobs, a root of two, a burst of 0 to 4, and back to 0.

And a root with a group of 0 to 1, whose room comes before that of the burst.
"""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pod_jobs import UNTIL_TOLD, ended, submit
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


GROUPED = {
    "size": 1,
    "interactive": True,
    "logging": {"quiet": True},
    "autoscaling": {"enabled": True, "idleSeconds": 4},
    "agent": {"periodSeconds": 2},
    "groups": [{"name": "gpu", "size": 0, "maxSize": 1, "cores": 1, "properties": ["a100"]}],
    "flux": {"bursting": {"clusters": [{"name": "b0", "size": 3}], "expose": {"type": "NodePort"}}},
}


def test_a_burst_comes_only_when_own_nodes_and_groups_have_no_room(scheduler: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with testbed.new_namespace() as here, testbed.new_namespace() as there:
        root = testbed.release(here, testbed.values_of(GROUPED, {"cores": 1}, scheduler=scheduler), tmp_path)
        root.install()
        root.wait_for("0")

        def sizes() -> str:
            return root.cluster.kubectl("-n", there, "get", "jobs", "-o", "jsonpath={.items[*].spec.completions}")

        def host(job: str) -> str:
            return root.flux(0, "jobs", "-n", "-o", "{nodelist}", job).strip()

        with follower(log, here, f"b0@{there}") as process:
            until(lambda: log.exists() and "b0 follows the queue" in log.read_text())
            own, group = (submit(root, "-n1", "sh", "-c", UNTIL_TOLD) for _ in range(2))
            # its pod starts for longer than the backlog
            until(lambda: host(group) != "")
            assert (host(own), host(group), sizes()) == (f"{NAME}-0", f"{NAME}-gpu-0", "")
            burst = submit(root, "-n1", "sh", "-c", UNTIL_TOLD)
            until(lambda: host(burst) != "")
            assert (host(burst), sizes()) == ("b0-0", "1")
            root.wait_for("0-2")
            chosen = submit(root, "-n1", "--requires=hosts:b0-1", "hostname")
            until(lambda: ended(root, chosen) == "COMPLETED")
            assert host(chosen) == "b0-1"
            # a job that only the group could run brings no burst
            waits = submit(root, "-n1", "--requires=a100", "hostname")
            for rank in ("0", "1", "2"):
                root.flux(0, "exec", "-r", rank, "touch", "/tmp/end")
            jobs = (own, group, waits, burst)
            until(lambda: [ended(root, job) for job in jobs] == ["COMPLETED"] * 4)
            assert host(waits) == f"{NAME}-gpu-0"
            # the burst and the group go, each by itself
            until(lambda: not root.cluster.kubectl("-n", there, "get", "jobs,pods,secrets", "-o", "name"))
            root.wait_for("0")
            process.terminate()
            assert process.wait(60) == 0
        said = log.read_text().splitlines()
        assert [line for line in said if "job waits" in line] == [
            f"minicluster: b0: {sizes} hosts: 1 job waits" for sizes in ("0 -> 1", "1 -> 2")
        ]
        assert "minicluster: b0 has joined: ranks 2" in said
        assert root.conditions() == {}
