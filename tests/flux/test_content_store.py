"""A lead's content store does not grow with all the jobs that it has ever run."""

import json
import signal
from itertools import pairwise

from broker_clusters import Cluster, Make

from tools.clients import until
from tools.releases import MOUNT

KEPT, RETRY = 8, 85
#: Objects that a lead stores when it starts, at most
OF_A_LEAD = 100
QUIET = {"logging": {"quiet": True}, "state": {"claimName": "shared"}}


def stored(cluster: Cluster) -> int:
    """Return how many objects are in the content store."""
    return int(json.loads(cluster.lead.flux("module", "stats", "content-sqlite"))["object_count"])


def run(cluster: Cluster, jobs: int) -> None:
    """Run some jobs. Flux may forget one before a client could have waited for it."""
    idset = f"1-{jobs}" if jobs > 1 else "1"
    simulated = "--setattr=system.exec.test.run_duration=0.001s"
    cluster.lead.flux("submit", "--quiet", f"--cc={idset}", simulated, "true")
    # not the job that is held
    until(lambda: len(cluster.lead.flux("jobs", "-n", "-o", "{id}").split()) <= 1)


def compacts(cluster: Cluster) -> bool:
    """Say whether this Flux compacts its store while jobs run."""
    return cluster.lead.run(f"{MOUNT}/bin/flux", "help", "gc").returncode == 0


def is_small(cluster: Cluster, most: int) -> bool:
    """Say whether the store has fewer objects, with all jobs forgotten that may be; else give it reason to compact."""
    until(lambda: len(ended(cluster)) == KEPT)
    if stored(cluster) < most:
        return True
    # the last compaction may have begun before Flux forgot the last jobs, which adds objects
    run(cluster, 20)
    return False


def edit(cluster: Cluster, file: str, old: str, new: str) -> None:
    """Change a program of the pods."""
    files = cluster.data["minicluster"]
    assert old in files[file]
    files[file] = files[file].replace(old, new)


def stop(cluster: Cluster) -> None:
    """Tell the lead to stop, and start another one."""
    cluster.lead.signal(signal.SIGTERM)
    assert cluster.lead.wait() == RETRY
    cluster.start([0]).wait_for_ready()


def ended(cluster: Cluster) -> list[str]:
    """Return the jobs that have ended and Flux still knows."""
    return cluster.lead.flux("jobs", "-an", "--filter=inactive", "-o", "{id} {name}").splitlines()


def steps(cluster: Cluster) -> int:
    """Return how many directories there are for the times at which jobs were submitted."""
    return len(cluster.lead.flux("kvs", "ls", "-1", "job.0000").split())


def test_flux_has_no_directories_of_jobs_that_it_has_forgotten(make: Make) -> None:
    cluster = make(QUIET)
    edit(cluster, "recorder.py", "PURGE_JOBS, LEFTOVER_JOBS = 100, 500", "PURGE_JOBS, LEFTOVER_JOBS = 100, 1")
    edit(cluster, "kvs_cleanup.py", "NEW_SECONDS = 60.0", "NEW_SECONDS = 1.0")
    cluster.keep_jobs(KEPT).start().wait_for_ready()
    held = cluster.lead.flux("submit", "--urgency=hold", "echo", "held").strip()
    # each job has a time of its own
    for _ in range(3 * KEPT):
        run(cluster, 1)
    until(lambda: len(ended(cluster)) == KEPT)

    def is_short() -> bool:
        # Flux may list a job a little longer: the next one is the occasion to look again
        run(cluster, 1)
        return steps(cluster) < 2 * KEPT

    until(is_short)
    until(lambda: len(ended(cluster)) == KEPT)
    before = ended(cluster)
    cluster.lead.kill()
    cluster.start([0]).wait_for_ready()
    assert ended(cluster) == before
    cluster.lead.flux("job", "urgency", held, "16")
    assert cluster.lead.flux("job", "attach", held) == "held\n"


def written(cluster: Cluster) -> int:
    """Run jobs; return how many objects they added to the content store, at least."""
    counts = [stored(cluster)]
    for _ in range(10):
        run(cluster, 20)
        counts.append(stored(cluster))
    return sum(max(0, after - before) for before, after in pairwise(counts))


def test_the_store_keeps_what_the_queue_needs_and_not_what_all_jobs_left(make: Make) -> None:
    cluster = make(QUIET)
    edit(cluster, "kvs_cleanup.py", "LEAST_JOBS = 5000", "LEAST_JOBS = 20")
    edit(cluster, "archive.sh", "LARGE_STORE_BYTES=268435456", "LARGE_STORE_BYTES=1")
    cluster.keep_jobs(KEPT).start().wait_for_ready()
    held = cluster.lead.flux("submit", "--urgency=hold", "echo", "held").strip()
    if compacts(cluster):
        most = written(cluster) // 2
        until(lambda: is_small(cluster, most - OF_A_LEAD))
        before = ended(cluster)
        cluster.lead.kill()
        cluster.start([0]).wait_for_ready()
    else:
        # a lead that begins with no store has nothing to dump
        stop(cluster)
        most = written(cluster) // 2
        until(lambda: len(ended(cluster)) == KEPT)
        before = ended(cluster)
        stop(cluster)
    assert stored(cluster) < most
    assert ended(cluster) == before
    # all that is kept can be read
    for job in before:
        assert "clean" in cluster.lead.flux("job", "eventlog", job.split()[0])
    cluster.lead.flux("job", "urgency", held, "16")
    assert cluster.lead.flux("job", "attach", held) == "held\n"
