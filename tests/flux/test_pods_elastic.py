"""Growing and shrinking on a real Kubernetes: no job is lost, none runs twice."""

import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pod_jobs import ONE_CORE, QUIET, UNTIL_TOLD, ended, noted, runs_of, submit
from real_cluster import IN_PODS, Install

from tools.clients import until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME

pytestmark = IN_PODS
MAX = 5


def drained(cluster: FluxRelease) -> str:
    """Return the ranks that take no jobs."""
    return cluster.flux(0, "resource", "status", "-n", "-s", "drain", "-o", "{ranks}").strip()


def test_shrinking_waits_for_jobs_and_a_rank_that_comes_back_takes_jobs(release: Install) -> None:
    grace = {"pod": {"terminationGracePeriodSeconds": 90}}
    cluster = release({"size": 3, "maxSize": 4, **QUIET, **grace}, ONE_CORE)
    cluster.wait_for("0-2")
    pods = [cluster.pod(index) for index in range(3)]
    job = submit(cluster, "-N3", "-n3", "sh", "-c", UNTIL_TOLD)
    until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{state}", job).strip() == "RUN")
    cluster.upgrade("--set", "size=2")
    until(lambda: drained(cluster) == "2")
    other = submit(cluster, "-N1", "--requires=rank:2", "true")
    for pod in pods:
        cluster.kubectl("exec", pod, "--", "touch", "/tmp/end")
    assert until(lambda: ended(cluster, job), STEP_SECONDS) == "COMPLETED"
    cluster.wait_for("0-1")
    assert ended(cluster, other) == ""
    cluster.upgrade("--set", "size=3")
    cluster.wait_for("0-2")
    assert until(lambda: ended(cluster, other), STEP_SECONDS) == "COMPLETED"
    until(lambda: drained(cluster) == "")


def test_shrinking_cancels_a_job_with_a_reason_when_the_grace_period_is_over(release: Install) -> None:
    values = {"size": 2, **QUIET, "pod": {"terminationGracePeriodSeconds": 12}}
    cluster = release(values, ONE_CORE)
    cluster.wait_for("0-1")
    job = submit(cluster, "-N2", "sleep", "600")
    leaves, pod = submit(cluster, "-N1", "true"), cluster.pod(1)
    begin = time.monotonic()
    cluster.upgrade("--set", "size=1")
    assert until(lambda: ended(cluster, job), STEP_SECONDS) == "CANCELED"
    print(f"cancelled {time.monotonic() - begin:.1f} s after helm upgrade, grace period 12 s")
    note = cluster.flux(0, "jobs", "-n", "-o", "{exception.note}", job)
    assert note == "minicluster: the pod was told to stop and its grace period is over\n"
    assert until(lambda: ended(cluster, leaves), STEP_SECONDS) == "COMPLETED"
    until(lambda: pod not in [p["metadata"]["name"] for p in cluster.pods()], STEP_SECONDS)


def test_a_command_that_ends_in_the_grace_period_of_its_lead_completes_the_job(release: Install) -> None:
    cluster = release({"size": 2, **QUIET}, {**ONE_CORE, "command": "sleep 6; echo done"})
    cluster.wait_for("0-1")
    cluster.evict(cluster.pod(0))
    assert "Complete" in cluster.wait_for_end()
    assert cluster.created(0) == 1


@contextmanager
def watched(cluster: FluxRelease, file: Path) -> Iterator[Path]:
    """Write the names of all pods of this block to a file. Events can't be counted, because Kubernetes merges them."""
    words = ("kubectl", "-n", cluster.namespace, "get", "pods", "-w", "-o", "name")
    with file.open("w") as out, subprocess.Popen(words, stdout=out, env=cluster.cluster.env) as watch:
        try:
            yield file
        finally:
            watch.terminate()


def made(file: Path) -> list[int]:
    """Return how many pods each index has had."""
    names = set(file.read_text().split())
    return [sum(name.startswith(f"pod/{NAME}-{index}-") for name in names) for index in range(MAX)]


def test_random_sizes_lose_no_job_and_run_none_twice(release: Install, tmp_path: Path) -> None:
    """MINICLUSTER_TEST_SCALES sets the number of sizes (50), MINICLUSTER_TEST_SEED the seed of all random choices."""
    steps = int(os.environ.get("MINICLUSTER_TEST_SCALES", "50"))
    seed = int(os.environ.get("MINICLUSTER_TEST_SEED", str(random.randrange(1_000_000))))
    chance = random.Random(seed)
    print(f"MINICLUSTER_TEST_SEED={seed}")
    cluster = release({"size": 2, "maxSize": MAX, **QUIET}, ONE_CORE)
    cluster.wait_for("0-1")
    with watched(cluster, tmp_path / "pods") as pods:
        jobs, asked = scaled_at_random(cluster, chance, steps)
        until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{id}") == "", 10 * STEP_SECONDS)
        cluster.wait_for("0-2")
    results = cluster.flux(0, "jobs", "-a", "-n", "--count=0", "-o", "{result}").split()
    print(f"{steps} sizes, {len(jobs)} jobs, pods made {made(pods)}, asked for {asked}")
    assert results == ["COMPLETED"] * len(jobs)
    assert runs_of(cluster) == sorted(jobs)
    # the Job controller may skip a size that is changed again at once
    assert all(count <= wanted for count, wanted in zip(made(pods), asked, strict=True))
    assert not [c for pod in cluster.pods() for c in pod["status"]["containerStatuses"] if c["restartCount"]]
    until(lambda: drained(cluster) in ("", "3", "4", "3-4"))


def scaled_at_random(cluster: FluxRelease, chance: random.Random, steps: int) -> tuple[list[str], list[int]]:
    """Submit jobs between random sizes; the last size is 3.

    Return the jobs, and how many pods of each index these sizes asked for.
    """
    jobs: list[str] = []
    asked, now = [1, 1] + [0] * (MAX - 2), 2
    for step in range(steps + 1):
        for _ in range(chance.randint(0, 3)):
            script = f"{noted()}; sleep {chance.uniform(0.2, 4):.1f}"
            nodes = chance.choice((1, 1, 1, 2, 3))
            jobs.append(submit(cluster, f"-N{nodes}", f"-n{nodes}", "--exclusive", "sh", "-c", script))
        new = chance.randint(1, MAX) if step < steps else 3
        asked = [n + (now <= index < new) for index, n in enumerate(asked)]
        now = new
        cluster.upgrade("--set", f"size={new}")
        if chance.random() < 0.5:
            until(lambda size=new: len(cluster.uids()) == size, STEP_SECONDS)
    return jobs, asked
