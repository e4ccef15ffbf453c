"""What `minicluster replace` asks of the lead: the queue stops, and jobs end or are put back."""

import json
import signal
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from broker_clusters import Cluster, Make
from minicluster.lead.program import BOOT, first_line
from test_putting_back import listed, row, started

from tools.clients import until
from tools.releases import MOUNT

FLUX = f"{MOUNT}/bin/flux"
#: The program that makes the copies runs where nodes can leave, or the queue is kept
ALONE: dict[str, Any] = {"size": 1, "maxSize": 2, "logging": {"quiet": True}, "interactive": True}


@pytest.fixture
def cluster(make: Make) -> Cluster:
    return make(ALONE).start().wait_for_ready()


def ask(cluster: Cluster, action: str, seconds: float) -> dict[str, Any]:
    """Return what the program prints."""
    (cluster.lead.state / "program").write_text(first_line("settle"))
    words = (FLUX, "python", "-c", BOOT, action, str(seconds))
    done = cluster.lead.run("sh", "-c", f'exec "$@" <{MOUNT}/program', "sh", *words)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_queue_stops_and_running_jobs_may_end(cluster: Cluster) -> None:
    short = started(cluster, "sh", "-c", "until [ -e /tmp/end ]; do sleep 0.1; done")
    waits = ask(cluster, "wait", 0.5)
    assert waits == {"copies": {}, "lost": [], "running": 1}
    cluster.lead.run("touch", "/tmp/end")
    later = cluster.lead.flux("submit", "true").strip()
    assert ask(cluster, "wait", 30) == {"copies": {}, "lost": [], "running": 0}
    assert row(cluster, short)[0] == "COMPLETED"
    assert cluster.lead.flux("jobs", "-n", "-o", "{state}", later).strip() == "SCHED"


def test_a_running_job_is_put_back_once_unless_it_may_not_run_again(cluster: Cluster) -> None:
    again = started(cluster, "sleep", "600")
    found = ask(cluster, "end", 20)
    assert (list(found["copies"]), found["lost"], found["running"]) == ([again], [], 0)
    [copy] = found["copies"].values()
    note = f"minicluster: the MiniCluster is replaced: it runs again as {copy}"
    assert row(cluster, again) == ["CANCELED", note]
    until(lambda: row(cluster, copy)[0] == "SCHED")
    assert ask(cluster, "end", 20) == {"copies": {}, "lost": [], "running": 0}
    cluster.lead.flux("queue", "start", "--all")
    cluster.lead.flux("cancel", copy)
    never = started(cluster, "--setattr=user.minicluster.requeue=0", "sleep", "600")
    assert ask(cluster, "end", 20) == {"copies": {}, "lost": [never], "running": 0}


def test_the_queue_goes_on_in_a_larger_cluster_and_each_job_runs_once(make: Make) -> None:
    quiet: dict[str, Any] = {"logging": {"quiet": True}, "interactive": True, "state": {"claimName": "claim"}}
    small = make({"size": 2, **quiet}, {"cores": 10}).start().wait_for_ready()
    with TemporaryDirectory(dir="/var/tmp") as folder:
        notes = f'echo "$FLUX_JOB_ID" >>{folder}/log'
        Path(folder).chmod(0o777)
        short = ids(small, "--cc=1-10", "sh", "-c", f"{notes}; until [ -e {folder}/short ]; do sleep 1; done")
        holds = ids(small, "--cc=1-10", "sh", "-c", f"{notes}; until [ -e {folder}/end ]; do sleep 1; done")
        until(lambda: len(small.lead.flux("jobs", "-n", "-f", "running").splitlines()) == 20)
        waits = ids(small, "--cc=1-200", "sh", "-c", notes)
        (Path(folder) / "short").touch()
        assert ask(small, "wait", 30)["running"] == 10
        found = ask(small, "end", 20)
        assert (set(found["copies"]), found["lost"], found["running"]) == (holds, [], 0)
        for pod in small.pods.values():
            pod.signal(signal.SIGTERM)
        assert small.wait() == [85, 85]
        large = make({"size": 3, "maxSize": 4, **quiet}, {"cores": 10})
        (large.root / "claim").rmdir()
        (small.root / "claim").rename(large.root / "claim")
        (Path(folder) / "end").touch()
        large.start().wait_for_ready()
        until(lambda: not large.lead.flux("jobs", "-n"), 120)
        ended = {job: result for job, result, _ in listed(large, "-c0")}
        copies = set(found["copies"].values())
        assert ended == dict.fromkeys(short | waits | copies, "COMPLETED") | dict.fromkeys(holds, "CANCELED")
        starts = Counter((Path(folder) / "log").read_text().replace("ƒ", "f").split())
        assert starts == dict.fromkeys(ended, 1)


def ids(cluster: Cluster, *words: str) -> set[str]:
    """Submit jobs, and return their ids."""
    return set(cluster.lead.flux("submit", *words).replace("ƒ", "f").split())
