"""`minicluster burst follow` goes on while its root scales to zero and wakes again."""

import subprocess
import time
from pathlib import Path
from typing import Any

from pod_jobs import ONE_CORE, QUIET, ended, size
from real_cluster import IN_PODS
from test_pods_burst_follow import follower

from tools import testbed
from tools.clients import until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME, bind

pytestmark = IN_PODS

BURSTING = {"clusters": [{"name": "b0", "size": 1}, {"name": "b1", "size": 2}], "expose": {"type": "NodePort"}}
ROOT: dict[str, Any] = {
    "size": 1,
    "maxSize": 2,
    "autoscaling": {"enabled": True, "suspendAfterSeconds": 30, "idleSeconds": 5, "backlogSeconds": 0},
    "state": {"claimName": "state"},
    "flux": {"bursting": BURSTING},
    **QUIET,
}
JOBS = 20
SLEEPS = f"minicluster: what the queue needs is not known: {NAME} is Suspended: idle for 30 s: "


def run(root: FluxRelease, command: str, *words: str) -> list[str]:
    done = root.cluster.run("minicluster", command, NAME, "-n", root.namespace, *words)
    assert done.code == 0, done.err
    return done.out.splitlines()


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """Return the CPU seconds of a process and of its children that ended (proc_pid_stat(5))."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / 100


def test_burst_follow_goes_on_while_its_root_sleeps_and_wakes(scheduler: str, volume: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with testbed.new_namespace() as here, testbed.new_namespace() as there:
        root = testbed.release(here, testbed.values_of(ROOT, ONE_CORE, scheduler=scheduler), tmp_path)
        root.install()
        bind(root, "state", volume, tmp_path / "state")
        burst = testbed.release(there, {}, tmp_path, name="b0")

        def bursts() -> dict[str, int]:
            return {job["metadata"]["name"]: job["spec"]["completions"] for job in burst.items("jobs")}

        run(root, "wait")
        run(root, "flux", "--", "submit", f"--cc=1-{JOBS}", "-n1", "sleep", "3")
        with follower(log, here, f"b0:1-1@{there}", f"b1@{there}") as process:
            until(lambda: (size(root), bursts()) == (2, {"b0": 1, "b1": 2}), STEP_SECONDS, "the growth")
            until(lambda: root.get("job")["spec"].get("suspend"), 2 * STEP_SECONDS, "the suspension")
            until(lambda: SLEEPS in log.read_text(), STEP_SECONDS, "the follower's line")
            until(lambda: not root.pods(), STEP_SECONDS, "the end of the pods")
            # the burst has its least size, and its pod waits for the next lead
            assert bursts() == {"b0": 1}
            before, said = burst.uids(), log.read_text()
            begin, used = time.monotonic(), cpu_seconds(process)
            until(lambda: time.monotonic() - begin > 35, 40)
            print(f"{scheduler}: {(cpu_seconds(process) - used) / (time.monotonic() - begin):.3f} of a core in sleep")
            assert (log.read_text(), burst.uids(), process.poll()) == (said, before, None)

            begin = time.monotonic()
            # on all that the root may have, and on both bursts
            [job] = run(root, "flux", "--", "submit", "-N4", "-n4", "hostname")
            print(f"{scheduler}: submitted after {time.monotonic() - begin:.1f} s")
            until(lambda: ended(root, job) == "COMPLETED", 2 * STEP_SECONDS, "the end of the job")
            print(f"{scheduler}: ended after {time.monotonic() - begin:.1f} s")
            assert burst.uids() == before
            process.terminate()
            assert process.wait(60) == 0
        print(log.read_text())
        [last, *first] = root.flux(0, "jobs", "-an", "-o", "{result} {nodelist}").splitlines()
        assert last == f"COMPLETED {NAME}-[0-1],b0-0,b1-0"
        assert [line.split()[0] for line in first] == ["COMPLETED"] * JOBS
