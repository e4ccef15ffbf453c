"""Growing and shrinking on a real Kubernetes: no job is lost, none runs twice."""

import os
import random
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from real_cluster import IN_PODS, Install

from tools.clients import until
from tools.releases import MOUNT, PATIENCE, FluxRelease
from tools.testbed import NAME, bind

pytestmark = IN_PODS

QUIET = {"logging": {"quiet": True}}
ONE_CORE = {"cores": 1}
#: Where a job of a test leaves its id each time that it starts
RUNS = "minicluster-test.runs"
MAX = 5


def submit(cluster: FluxRelease, *words: str) -> str:
    """Return the id of a new job."""
    return cluster.kubectl("exec", cluster.pod(0), "--", f"{MOUNT}/bin/flux", "submit", *words).strip()


def noted() -> str:
    """Return the start of a script that notes its job's id each time that it runs."""
    note = f'{MOUNT}/bin/flux kvs put --namespace=primary --append {RUNS}="$FLUX_JOB_ID "'
    return f'[ "$FLUX_TASK_RANK" != 0 ] || {note}'


def runs_of(cluster: FluxRelease) -> list[str]:
    """Return what jobs noted, as ids are printed."""
    return sorted(f"ƒ{job[1:]}" for job in cluster.flux(0, "kvs", "get", RUNS).split())


def ended(cluster: FluxRelease, job: str) -> str:
    """Return how a job ended, once it has."""
    return cluster.flux(0, "jobs", "-n", "-o", "{result}", job).strip()


def drained(cluster: FluxRelease) -> str:
    """Return the ranks that take no jobs."""
    return cluster.flux(0, "resource", "status", "-n", "-s", "drain", "-o", "{ranks}").strip()


def size(cluster: FluxRelease) -> int:
    """Return the size of the Job."""
    return int(cluster.get("job")["spec"]["completions"])


def test_shrinking_lets_the_jobs_end_and_the_rank_works_again_when_it_is_back(release: Install) -> None:
    cluster = release({"size": 3, "maxSize": 4, **QUIET}, ONE_CORE)
    cluster.wait_for("0-2")
    job = submit(cluster, "-N3", "sleep", "8")
    until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{state}", job).strip() == "RUN")
    cluster.upgrade("--set", "size=2")
    until(lambda: drained(cluster) == "2")
    other = submit(cluster, "-N1", "--requires=rank:2", "true")
    assert until(lambda: ended(cluster, job), PATIENCE) == "COMPLETED"
    cluster.wait_for("0-1")
    assert ended(cluster, other) == ""
    cluster.upgrade("--set", "size=3")
    cluster.wait_for("0-2")
    assert until(lambda: ended(cluster, other), PATIENCE) == "COMPLETED"
    until(lambda: drained(cluster) == "")


def test_a_job_that_goes_on_is_cancelled_with_the_reason_when_the_grace_period_is_over(release: Install) -> None:
    values = {"size": 2, **QUIET, "pod": {"terminationGracePeriodSeconds": 12}}
    cluster = release(values, ONE_CORE)
    cluster.wait_for("0-1")
    job = submit(cluster, "-N2", "sleep", "600")
    leaves, pod = submit(cluster, "-N1", "true"), cluster.pod(1)
    begin = time.monotonic()
    cluster.upgrade("--set", "size=1")
    assert until(lambda: ended(cluster, job), PATIENCE) == "CANCELED"
    print(f"cancelled {time.monotonic() - begin:.1f} s after helm upgrade, grace period 12 s")
    note = cluster.flux(0, "jobs", "-n", "-o", "{exception.note}", job)
    assert note == "minicluster: the pod was told to stop and its grace period is over\n"
    assert until(lambda: ended(cluster, leaves), PATIENCE) == "COMPLETED"
    until(lambda: pod not in [p["metadata"]["name"] for p in cluster.pods()], PATIENCE)


def test_a_command_that_ends_while_the_lead_is_told_to_stop_counts(release: Install) -> None:
    cluster = release({"size": 2, **QUIET}, {**ONE_CORE, "command": "sleep 6; echo done"})
    cluster.wait_for("0-1")
    cluster.evict(cluster.pod(0))
    assert "Complete" in cluster.wait_for_end()
    assert cluster.created(0) == 1


@contextmanager
def watched(cluster: FluxRelease, file: Path) -> Iterator[Path]:
    """Write the name of each pod that is ever there to a file: events of a kind are merged, and can't be counted."""
    words = ("kubectl", "-n", cluster.namespace, "get", "pods", "-w", "-o", "name")
    with file.open("w") as out, subprocess.Popen(words, stdout=out, env=cluster.cluster.env) as watch:
        try:
            yield file
        finally:
            watch.terminate()


def made(file: Path) -> list[int]:
    """Return how many pods of each index there were."""
    names = set(file.read_text().split())
    return [sum(name.startswith(f"pod/{NAME}-{index}-") for name in names) for index in range(MAX)]


def test_random_sizes_lose_no_job_and_run_none_twice(release: Install, tmp_path: Path) -> None:
    """MINICLUSTER_TEST_SCALES sets how many sizes (50), MINICLUSTER_TEST_SEED which."""
    steps = int(os.environ.get("MINICLUSTER_TEST_SCALES", "50"))
    seed = int(os.environ.get("MINICLUSTER_TEST_SEED", str(random.randrange(1_000_000))))
    chance = random.Random(seed)
    print(f"MINICLUSTER_TEST_SEED={seed}")
    cluster = release({"size": 2, "maxSize": MAX, **QUIET}, ONE_CORE)
    cluster.wait_for("0-1")
    with watched(cluster, tmp_path / "pods") as pods:
        jobs, asked = scaled_at_random(cluster, chance, steps)
        until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{id}") == "", 10 * PATIENCE)
        cluster.wait_for("0-2")
    results = cluster.flux(0, "jobs", "-a", "-n", "--count=0", "-o", "{result}").split()
    print(f"{steps} sizes, {len(jobs)} jobs, pods made {made(pods)}, asked for {asked}")
    assert results == ["COMPLETED"] * len(jobs)
    assert runs_of(cluster) == sorted(jobs)
    # the Job may see a size only after the next one was set
    assert all(count <= wanted for count, wanted in zip(made(pods), asked, strict=True))
    assert not [c for pod in cluster.pods() for c in pod["status"]["containerStatuses"] if c["restartCount"]]
    until(lambda: drained(cluster) in ("", "3", "4", "3-4"))


def scaled_at_random(cluster: FluxRelease, chance: random.Random, steps: int) -> tuple[list[str], list[int]]:
    """Submit jobs between changes of the size, the last to 3; return them, and the pods of each index asked for."""
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
            until(lambda size=new: len(cluster.uids()) == size, PATIENCE)
    return jobs, asked


SCALING: dict[str, Any] = {
    "size": 1,
    "maxSize": 8,
    "autoscaling": {"enabled": True, "backlogSeconds": 3, "idleSeconds": 9},
    "agent": {"periodSeconds": 3},
    **QUIET,
}


def decisions(cluster: FluxRelease) -> list[str]:
    """Return the sizes that the autoscaler's events tell, in their order."""
    events = cluster.items("events", "--field-selector=reason=Scaled")
    events.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
    return [re.match(r"size (\d+ -> \d+):", event["message"])[1] for event in events]  # type: ignore[index]


def cut_off(cluster: FluxRelease, seconds: float) -> None:
    """Keep the lead's pod from the API server for a while; skip where the pod is not on this host."""
    [uid] = [pod["metadata"]["uid"] for pod in cluster.pods(0)]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_agent = b"/minicluster/agent.json" in (process / "cmdline").read_bytes()
            # of the cgroup drivers one writes it with underscores
            is_lead = is_agent and uid in (process / "cgroup").read_text().replace("_", "-")
        except OSError:
            continue
        if is_lead:
            server = cluster.cluster.get("service", "kubernetes", "-n", "default")["spec"]["clusterIP"]
            route = ["nsenter", "-t", process.name, "-n", "ip", "route"]
            subprocess.run([*route, "add", "blackhole", f"{server}/32"], check=True)
            time.sleep(seconds)  # what is tested: so long an outage
            subprocess.run([*route, "del", "blackhole", f"{server}/32"], check=True)
            return
    pytest.skip("the pods' processes are not on this host: their network can't be cut here")


@pytest.mark.parametrize("trouble", ["none", "api", "lead"])
def test_the_autoscaler_follows_the_queue_and_never_flaps(
    release: Install, volume: str, tmp_path: Path, trouble: str
) -> None:
    values = {**SCALING, "state": {"claimName": "state"}} if trouble == "lead" else SCALING
    cluster = release(values, ONE_CORE)
    if trouble == "lead":
        bind(cluster, "state", volume, tmp_path / "state")
    cluster.wait_for("0")
    script = f"{noted()}; sleep 4"
    jobs = cluster.flux(0, "submit", "--cc=1-40", "-N1", "-n1", "--exclusive", "sh", "-c", script).split()
    assert len(jobs) == 40
    begin = time.monotonic()
    until(lambda: size(cluster) == 8, PATIENCE)
    print(f"size 8 was asked for {time.monotonic() - begin:.1f} s after the jobs, period 3 s")
    if trouble == "api":
        cut_off(cluster, 30)
    if trouble == "lead":
        cluster.wait_for("0-7")
        cluster.kill_broker(0)
    until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{id}") == "" and cluster.up() != "", 2 * PATIENCE)
    until(lambda: size(cluster) == 1, 2 * PATIENCE)
    cluster.wait_for("0")
    print(f"size 1 again after {time.monotonic() - begin:.1f} s")
    results = cluster.flux(0, "jobs", "-a", "-n", "--count=0", "-o", "{result}").split()
    runs = runs_of(cluster)
    if trouble == "lead":
        # what ran when the lead was killed has failed, once each; the rest was done
        assert len(results) == 40
        assert len(set(runs)) == len(runs)
        assert results.count("FAILED") <= 8
    else:
        assert results == ["COMPLETED"] * 40
        assert runs == sorted(jobs)
    sizes = [int(change.split()[-1]) for change in decisions(cluster)]
    top = sizes.index(8)
    assert sizes[: top + 1] == sorted(sizes[: top + 1])
    assert sizes[top:] == sorted(sizes[top:], reverse=True)
    assert sizes[-1] == 1


def test_a_job_asks_for_a_size(release: Install) -> None:
    cluster = release(SCALING, ONE_CORE)
    cluster.wait_for("0")
    scale = f"{MOUNT}/bin/minicluster-scale"
    assert cluster.exec(0, scale) == "auto\n"
    cluster.flux(0, "run", "sh", "-c", "minicluster-scale 3")
    assert cluster.exec(0, scale) == "3\n"
    cluster.wait_for("0-2")
    said = cluster.run_in(cluster.pod(0), scale, "9")
    assert (said.code != 0, said.err.splitlines()[0]) == (
        True,
        "minicluster-scale: the size is '9': give a number from 1 to 8, or auto",
    )
    cluster.exec(2, scale, "auto")
    cluster.wait_for("0")


def test_metrics_are_served_beside_the_lead(release: Install) -> None:
    cluster = release({"size": 2, **QUIET, "metrics": {"enabled": True}, "agent": {"periodSeconds": 1}}, ONE_CORE)
    cluster.wait_for("0-1")
    ask = "import urllib.request as u; print(u.urlopen('http://localhost:8051/metrics').read().decode())"
    text = until(lambda: cluster.flux(0, "python", "-c", ask), PATIENCE)
    until(lambda: 'minicluster_nodes{state="online"} 2\n' in cluster.flux(0, "python", "-c", ask), PATIENCE)
    assert "minicluster_size 2\n" in text


#: What becomes of a job that runs and of one that waits: by what keeps the state and by how the lead is lost
SURVIVES = {
    ("archive", "kill"): ("", ""),
    ("archive", "evict"): ("CANCELED", "COMPLETED"),
    ("archive", "reinstall"): ("CANCELED", "COMPLETED"),
    ("claim", "kill"): ("FAILED", "COMPLETED"),
    ("claim", "evict"): ("CANCELED", "COMPLETED"),
    ("claim", "reinstall"): ("CANCELED", "COMPLETED"),
}


@pytest.mark.parametrize(("kept", "loss"), SURVIVES)
def test_what_survives_the_lead(release: Install, volume: str, tmp_path: Path, kept: str, loss: str) -> None:
    values: dict[str, Any] = {"size": 1, **QUIET, "pod": {"terminationGracePeriodSeconds": 20}}
    runner: dict[str, Any] = dict(ONE_CORE)
    (tmp_path / "archive").mkdir()
    if kept == "archive":
        values["archive"] = {"path": "/archive/state.tgz"}
        runner["volumes"] = {"archive": {"path": "/archive", "hostPath": str(tmp_path / "archive")}}
    else:
        values["state"] = {"claimName": "state"}
    cluster = release(values, runner)
    if kept == "claim":
        bind(cluster, "state", volume, tmp_path / "state")
    cluster.wait_for("0")
    runs = submit(cluster, "sleep", "600")
    until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{state}", runs).strip() == "RUN")
    waits = submit(cluster, "true")
    first = cluster.pod(0)
    if loss == "kill":
        checkpointed(cluster, kept)
        cluster.kill_broker(0)
    elif loss == "evict":
        cluster.evict(first)
    else:
        cluster.uninstall()
        cluster.install()
    until(lambda: cluster.pod(0) not in ("", first) and cluster.up() == "0", PATIENCE)
    until(lambda: cluster.flux(0, "run", "echo", "up") == "up\n", PATIENCE)
    assert (ended(cluster, runs), ended(cluster, waits)) == SURVIVES[kept, loss]


def checkpointed(cluster: FluxRelease, kept: str) -> None:
    """Wait until what is there is on the volume: a kill loses what came after the last checkpoint."""
    begin = time.time()
    ask = "import flux,flux.kvs; print(flux.kvs.kvs_checkpoint_lookup(flux.Flux())[0]['timestamp'])"
    if kept == "claim":
        until(lambda: float(cluster.flux(0, "python", "-c", ask) or 0) > begin, PATIENCE)
