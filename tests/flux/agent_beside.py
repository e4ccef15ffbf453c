"""The agent beside a real Flux, with a fake API server. Its period is an hour: events wake it."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from broker_clusters import Cluster
from broker_pods import NAME

from tools.clients import until
from tools.releases import MOUNT

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
    """The API server, as far as the agent uses it: a Job that starts pods, and a PodDisruptionBudget."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(("127.0.0.1", 0), self.handler())
        self.cluster, self.sizes, self.events, self.asked = cluster, [cluster.size], list[str](), 0
        self.selectors: list[Any] = [None]
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

    def budget(self) -> dict[str, Any]:
        selector = self.selectors[-1]
        spec = {"minAvailable": 2**31 - 1, **({"selector": selector} if selector else {})}
        return {"metadata": {"resourceVersion": str(len(self.selectors))}, "spec": spec}

    def select(self, change: dict[str, Any]) -> None:
        assert change["metadata"]["resourceVersion"] == str(len(self.selectors))
        self.selectors.append(change["spec"]["selector"])

    def held(self) -> list[str]:
        """Return the indexes that the budget selects."""
        selector = self.selectors[-1]
        found: list[str] = selector["matchExpressions"][0]["values"] if selector else []
        return found

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
                change, found = OBJECTS.get(self.path.partition("?")[0], (Api.resize, Api.job))
                if self.command == "PATCH":
                    change(api, body)
                elif self.command == "POST":
                    api.events.append(body["message"])
                else:
                    assert self.path in OBJECTS
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(found(api)).encode())

            def do_GET(self) -> None:
                self.answer()

            def do_PATCH(self) -> None:
                self.answer()

            def do_POST(self) -> None:
                self.answer()

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        return Handler


OBJECTS: dict[str, tuple[Callable[[Api, Any], None], Callable[[Api], Any]]] = {
    f"/apis/batch/v1/namespaces/default/jobs/{NAME}": (Api.resize, Api.job),
    f"/apis/policy/v1/namespaces/default/poddisruptionbudgets/{NAME}": (Api.select, Api.budget),
}


class Setup:
    """A cluster, the agent and the API server."""

    def __init__(self, cluster: Cluster, log: Path, listeners: int) -> None:
        """Start the cluster and the agent, which follows the jobs with so many streams."""
        self.cluster, self.api, self.log_file = cluster.start().wait_for_ready(), Api(cluster), log
        lead = cluster.lead
        lead.run("sh", "-c", f"echo secret >{MOUNT}/token")
        enter = ["nsenter", "--target", str(lead.first), "--mount", "--pid"]
        driver = DRIVER.replace("PORT", str(self.api.server_port))
        with log.open("wb") as out:
            words = [*enter, f"{MOUNT}/bin/flux", "python", "-c", driver]
            self.agent = subprocess.Popen(words, env=lead.environment, stdout=out, stderr=out)
        until(lambda: self.api.asked > 0)
        # the first events describe the state before
        until(lambda: self.listeners() == listeners)

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def listeners(self) -> int:
        """Return how many streams the agent follows the jobs with; job-list has one, the undrainer two."""
        stats = json.loads(self.cluster.lead.flux("module", "stats", "job-manager"))
        return int(stats["journal"]["listeners"]) - 3

    def submit(self, *words: str) -> str:
        return self.cluster.lead.flux("submit", *words).strip()

    def ends(self, job: str) -> str:
        return until(lambda: self.cluster.lead.flux("jobs", "-n", "-o", "{result}", job).strip())

    def end(self) -> None:
        """End the agent and the API server."""
        self.agent.kill()
        self.agent.wait()
        self.api.shutdown()
        self.api.server_close()


@contextmanager
def agent_beside(cluster: Cluster, log: Path, listeners: int = 1) -> Iterator[Setup]:
    """Run the agent."""
    setup = Setup(cluster, log, listeners)
    try:
        yield setup
    finally:
        setup.end()
