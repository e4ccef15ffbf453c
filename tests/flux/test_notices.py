"""What is told to a web address: by the lead about its jobs and its end, by a worker about the loss of the lead."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from broker_clusters import Cluster, Make

from tools.clients import until
from tools.releases import MOUNT

PAIR: dict[str, Any] = {"size": 2, "interactive": True, "logging": {"quiet": True}}
EVENTS = ["jobFailed", "queueEmpty", "clusterEnded", "leadLost"]
NOTIFY = {"secret": {"name": "chat"}, "events": EVENTS}


class Server(ThreadingHTTPServer):
    """Keeps what comes; the first answers are 500."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.failures, self.came = failures, list[dict[str, Any]]()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/key-of-mine"

    def events(self) -> list[str]:
        return [each["event"] for each in self.came]


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"]))
        fails, self.server.failures = self.server.failures > 0, self.server.failures - 1
        if not fails:
            self.server.came.append(json.loads(text))
        self.send_response(500 if fails else 200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(failures=1) as server:
        yield server
        server.shutdown()


@pytest.fixture
def cluster(make: Make, server: Server) -> Cluster:
    cluster = make({**PAIR, "notify": NOTIFY}, {"cores": 1}).start().wait_for_ready()
    for pod in cluster.pods.values():
        assert (
            pod.run("sh", "-c", 'mkdir /mnt/flux/notify; echo "$0" >/mnt/flux/notify/url', server.address).returncode
            == 0
        )
    return cluster


def test_failed_jobs_an_empty_queue_and_the_end_are_told(cluster: Cluster, server: Server) -> None:
    cluster.lead.flux("run", "true")
    until(lambda: server.events() == ["queueEmpty"])
    name = cluster.lead.flux("submit", "--job-name=<a&b>", "sh", "-c", "exit 7").strip()
    until(lambda: server.events() == ["queueEmpty", "jobFailed", "queueEmpty"])
    cluster.lead.run(f"{MOUNT}/bin/flux", "shutdown", "--background")
    cluster.wait()
    assert server.events() == ["queueEmpty", "jobFailed", "queueEmpty", "clusterEnded"]
    failed = server.came[1]
    job = {"id": name.replace("\u0192", "f"), "name": "<a&b>", "exitCode": 7, "reason": ""}
    assert failed["job"] == {**job, "nodes": failed["job"]["nodes"]}
    assert failed["text"] == f"default/flux-sample: job {job['id']} (<a&b>) has failed: exit code 7"
    assert server.came[0]["jobs"] == {"ended": 1, "failed": 0}
    assert server.came[3]["exitCode"] == 0
    logs = "".join(pod.log for pod in cluster.pods.values())
    assert "key-of-mine" not in logs
    assert "could not be told" not in logs


def test_a_worker_tells_that_the_lead_is_lost(cluster: Cluster, server: Server) -> None:
    cluster.lead.kill()
    until(lambda: server.events() == ["leadLost"], seconds=40)
    assert "key-of-mine" not in cluster.pods[1].log
