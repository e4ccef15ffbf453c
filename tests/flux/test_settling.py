"""What `minicluster replace` asks of the lead: the queue stops, jobs end or are put back, and it may go on again."""

import json
import os
import select
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
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
SECONDS = 60
#: The program that makes the copies runs where nodes can leave, or the queue is kept
ALONE: dict[str, Any] = {"size": 1, "maxSize": 2, "logging": {"quiet": True}, "interactive": True}


@pytest.fixture
def cluster(make: Make) -> Cluster:
    return make(ALONE).start().wait_for_ready()


class Held:
    """The program, as a client talks to it."""

    def __init__(self, cluster: Cluster) -> None:
        words = cluster.lead.entered(FLUX, "python", "-c", BOOT)
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=cluster.lead.environment
        )
        self._rest = b""
        self._write(first_line("settle"))

    def _write(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()

    def say(self, **message: bool) -> None:
        self._write(json.dumps(message) + "\n")

    def until(self, **wanted: Any) -> dict[str, Any]:
        """Return the next reply that has what is wanted."""
        assert self.process.stdout
        while True:
            while b"\n" not in self._rest:
                assert select.select([self.process.stdout], [], [], SECONDS)[0], "no reply"
                data = os.read(self.process.stdout.fileno(), 1 << 16)
                assert data, "the program ended"
                self._rest += data
            line, _, self._rest = self._rest.partition(b"\n")
            found: dict[str, Any] = json.loads(line)
            if all(found.get(key) == value for key, value in wanted.items()) and wanted.keys() <= found.keys():
                return found

    def end(self) -> dict[str, Any]:
        """End the jobs; return what became of them, once none runs."""
        self.say(end=True)
        while "copies" not in (found := self.until()):
            pass
        self.until(running=0, settled=True)
        return found

    def leave(self) -> None:
        """Go without a word; where the pod goes, so does the program."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(SECONDS)


@contextmanager
def held(cluster: Cluster) -> Iterator[Held]:
    """Hold the queue, and go without a word at the end."""
    found = Held(cluster)
    try:
        found.until(running=found.until()["running"])
        yield found
        found.leave()
    finally:
        with found.process:
            found.process.kill()


def queue(cluster: Cluster) -> str:
    """Return what Flux says of its queue."""
    return cluster.lead.flux("queue", "status")


def test_the_queue_stops_and_running_jobs_may_end(cluster: Cluster) -> None:
    short = started(cluster, "sh", "-c", "until [ -e /tmp/end ]; do sleep 0.1; done")
    with held(cluster) as client:
        client.until(running=1, settled=False)
        cluster.lead.run("touch", "/tmp/end")
        later = cluster.lead.flux("submit", "true").strip()
        client.until(running=0, settled=True)
        assert row(cluster, short)[0] == "COMPLETED"
        assert cluster.lead.flux("jobs", "-n", "-o", "{state}", later).strip() == "SCHED"


def test_the_queue_goes_on_when_the_client_says_so_or_is_gone(cluster: Cluster) -> None:
    before = queue(cluster)
    with held(cluster):
        [waits] = ids(cluster, "true")
        assert "minicluster: the MiniCluster is replaced" in queue(cluster)
    assert queue(cluster) == before
    until(lambda: row(cluster, waits)[0] == "COMPLETED")
    with held(cluster) as client:
        # a client that is killed closes its input, too
        client.say(start=True)
        client.until(started=True)
        assert queue(cluster) == before
    # before flux-core 0.73 a reason has no option
    option = ["-m"] if "REASON" in cluster.lead.flux("queue", "stop", "--help") else []
    cluster.lead.flux("queue", "stop", *option, "for the night")
    stopped = queue(cluster)
    with held(cluster):
        assert queue(cluster) == stopped
    assert queue(cluster) == stopped


def test_a_running_job_is_put_back_once_unless_it_may_not_run_again(cluster: Cluster) -> None:
    again = started(cluster, "sleep", "600")
    with held(cluster) as client:
        found = client.end()
        assert (list(found["copies"]), found["lost"]) == ([again], [])
        [copy] = found["copies"].values()
        note = f"minicluster: the MiniCluster is replaced: it runs again as {copy}"
        assert row(cluster, again) == ["CANCELED", note]
        until(lambda: row(cluster, copy)[0] == "SCHED")
        assert client.end() == {"copies": {}, "lost": []}
    cluster.lead.flux("cancel", copy)
    never = started(cluster, "--setattr=user.minicluster.requeue=0", "sleep", "600")
    with held(cluster) as client:
        assert client.end() == {"copies": {}, "lost": [never]}


def test_the_queue_goes_on_in_a_larger_cluster_and_each_job_runs_once(make: Make) -> None:
    quiet: dict[str, Any] = {"logging": {"quiet": True}, "interactive": True, "state": {"claimName": "claim"}}
    small = make({"size": 2, **quiet}, {"cores": 10}).start().wait_for_ready()
    with TemporaryDirectory(dir="/var/tmp") as folder:
        notes = f'echo "$FLUX_JOB_ID" >>{folder}/log'
        Path(folder).chmod(0o777)
        short = ids(small, "--cc=1-10", "sh", "-c", f"{notes}; until [ -e {folder}/short ]; do sleep 1; done")
        holds = ids(small, "--cc=1-10", "sh", "-c", f"{notes}; until [ -e {folder}/end ]; do sleep 1; done")
        until(lambda: len(small.lead.flux("jobs", "-n", "-f", "running").splitlines()) == 20)
        with held(small) as client:
            # now that none of them can get nodes in the last moment
            waits = ids(small, "--cc=1-200", "sh", "-c", notes)
            (Path(folder) / "short").touch()
            client.until(running=10)
            found = client.end()
            assert (set(found["copies"]), found["lost"]) == (holds, [])
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
