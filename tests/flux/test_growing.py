"""The agent beside a real Flux, with a fake API server whose Job starts pods. Its period is an hour: events wake it."""

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from broker_clusters import Cluster, Make
from broker_pods import NAME

from tools.clients import until
from tools.releases import MOUNT

VALUES: dict[str, Any] = {
    "size": 1,
    "maxSize": 3,
    "logging": {"quiet": True},
    "autoscaling": {"enabled": True},
    "agent": {"periodSeconds": 3600},
}
#: Runs agent.py against a server without TLS
DRIVER = f"""
import functools, pathlib, sys
sys.path.insert(0, "{MOUNT}/minicluster")
sys.argv[1:] = ["{MOUNT}/minicluster/agent.json"]
import agent, kube
agent.server = lambda: "http://127.0.0.1:PORT"
agent.Kube = functools.partial(kube.Kube, token=pathlib.Path("{MOUNT}"))
agent.main()
"""


class Api(ThreadingHTTPServer):
    """The API server, as far as the agent uses it."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(("127.0.0.1", 0), self.handler())
        self.cluster, self.sizes, self.events, self.asked = cluster, [1], list[str](), 0
        self.away = False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def job(self) -> dict[str, Any]:
        spec = {"completions": self.sizes[-1], "parallelism": self.sizes[-1]}
        return {"metadata": {"resourceVersion": str(len(self.sizes)), "uid": "u", "managedFields": []}, "spec": spec}

    def resize(self, change: dict[str, Any]) -> None:
        assert change["metadata"]["resourceVersion"] == str(len(self.sizes))
        size = change["spec"]["completions"]
        self.cluster.start(range(self.sizes[-1], size))
        self.sizes.append(size)

    @staticmethod
    def handler() -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            server: Api

            def answer(self) -> None:
                api = self.server
                api.asked += 1
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
                if api.away:
                    self.send_error(503)
                    return
                if self.command == "PATCH":
                    api.resize(body)
                elif self.command == "POST":
                    api.events.append(body["message"])
                else:
                    assert self.path == f"/apis/batch/v1/namespaces/default/jobs/{NAME}"
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(api.job()).encode())

            def do_GET(self) -> None:
                self.answer()

            def do_PATCH(self) -> None:
                self.answer()

            def do_POST(self) -> None:
                self.answer()

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        return Handler


class Setup:
    """A cluster of one pod, the agent and the API server."""

    def __init__(self, cluster: Cluster, log: Path) -> None:
        self.cluster, self.api, self.log_file = cluster.start().wait_for_ready(), Api(cluster), log
        lead = cluster.lead
        lead.run("sh", "-c", f"echo secret >{MOUNT}/token")
        enter = ["nsenter", "--target", str(lead.first), "--mount", "--pid"]
        driver = DRIVER.replace("PORT", str(self.api.server_port))
        with log.open("wb") as out:
            words = [*enter, f"{MOUNT}/bin/flux", "python", "-c", driver]
            self.agent = subprocess.Popen(words, env=lead.environment, stdout=out, stderr=out)
        until(lambda: "nothing to do" in self.log)
        # the first events describe the state before
        until(lambda: self.listeners() == 1)

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def listeners(self) -> int:
        """Return how many programs follow the jobs; job-list is one of them."""
        stats = json.loads(self.cluster.lead.flux("module", "stats", "job-manager"))
        return int(stats["journal"]["listeners"]) - 1

    def submit(self, *words: str) -> str:
        return self.cluster.lead.flux("submit", *words).strip()

    def ends(self, job: str) -> str:
        return until(lambda: self.cluster.lead.flux("jobs", "-n", "-o", "{result}", job).strip())


@pytest.fixture
def mc(make: Make, tmp_path: Path) -> Iterator[Setup]:
    setup = Setup(make(VALUES), tmp_path / "agent.log")
    yield setup
    setup.agent.kill()
    setup.agent.wait()
    setup.api.shutdown()
    setup.api.server_close()


def test_the_agent_adds_nodes_for_a_job_that_needs_them(mc: Setup) -> None:
    asked = mc.api.asked
    assert mc.ends(mc.submit("-N1", "true")) == "COMPLETED"
    # a look without a request to Kubernetes
    assert mc.api.asked == asked
    assert mc.ends(mc.submit("-N3", "true")) == "COMPLETED"
    assert mc.api.sizes == [1, 3]
    assert mc.api.events == ["size 1 -> 3: 1 job waits for nodes"]
    # read again, changed, reported
    assert mc.api.asked == asked + 3
    assert "Traceback" not in mc.log


def test_the_agent_sets_a_size_requested_by_minicluster_scale(mc: Setup) -> None:
    mc.cluster.lead.run(f"{MOUNT}/bin/minicluster-scale", "2")
    until(lambda: mc.cluster.up() == "0-1")
    assert mc.api.events == ["size 1 -> 2: 2 nodes were requested"]


def test_the_agent_goes_on_after_the_scheduler_is_reloaded(mc: Setup) -> None:
    loaded = mc.cluster.lead.flux("module", "list")
    scheduler = next(name for name in ("sched-simple", "sched-fluxion-qmanager") if name in loaded)
    mc.cluster.lead.flux("module", "reload", scheduler)
    assert mc.ends(mc.submit("-N2", "true")) == "COMPLETED"
    assert mc.agent.poll() is None


def test_the_agent_adds_nodes_once_the_api_server_is_back(mc: Setup) -> None:
    mc.api.away = True
    job = mc.submit("-N2", "true")
    until(lambda: "503 Service Unavailable" in mc.log)
    mc.api.away = False
    assert mc.ends(job) == "COMPLETED"
    assert mc.log.count("503") == 1
