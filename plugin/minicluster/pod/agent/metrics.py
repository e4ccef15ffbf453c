"""The cluster's metrics: Prometheus' text format (version 0.0.4), and a server for them.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Iterator, Mapping

from state import RESULTS, Nodes, totals

STATES = ("depend", "priority", "sched", "run", "cleanup")


@dataclass(frozen=True)
class Scrape:
    """The figures of a scrape; the queue's wait is in seconds."""

    size: int
    max_size: int
    nodes: Nodes
    jobs: Mapping[str, int]
    queue_wait: float


def text(values: Scrape, wishes: Mapping[str, int]) -> str:
    """Return the metrics; ``wishes`` has the size that each of the autoscaler's reasons asks for; {}: none scales."""
    return "".join(_lines(values, wishes))


def _lines(values: Scrape, wishes: Mapping[str, int]) -> Iterator[str]:
    nodes = values.nodes
    used, online = totals(nodes.used.values()), totals(nodes.all[r] for r in nodes.online if r in nodes.all)
    own = range(values.size)
    by_state = {
        "allocated": len(nodes.used),
        "drained": sum(rank in nodes.online for rank in nodes.drained),
        "missing": sum(rank not in nodes.online for rank in own),
        "online": len(nodes.online),
        "registered": len(nodes.all),
    }
    yield _metric("size", "Pods that the Job has", {"": values.size})
    yield _metric("max_size", "Hosts of this cluster that are registered", {"": values.max_size})
    yield _metric("nodes", "Nodes by state; a node can be in several", _label("state", by_state))
    for kind in ("cores", "gpus"):
        amounts = {"allocated": used[kind], "online": online[kind]}
        yield _metric(kind, f"{kind} of the nodes that are online", _label("state", amounts))
    active = {state: values.jobs.get(state, 0) for state in STATES}
    yield _metric("jobs", "Active jobs by state", _label("state", active))
    results = {result: values.jobs.get(result, 0) for result in RESULTS}
    yield _metric("jobs_done_total", "Jobs that ended, by how", _label("result", results), "counter")
    yield _metric("queue_wait_seconds", "Wait of the job that has waited longest", {"": values.queue_wait})
    if wishes:
        yield _metric("autoscaler_wish", "Size that each reason wishes", _label("reason", wishes))


def _label(name: str, values: Mapping[str, float]) -> dict[str, float]:
    return {f'{{{name}="{value}"}}': number for value, number in values.items()}


def _metric(name: str, about: str, values: Mapping[str, float], kind: str = "gauge") -> str:
    full = f"minicluster_{name}"
    lines = [f"# HELP {full} {about}.", f"# TYPE {full} {kind}"]
    return "\n".join(lines + [f"{full}{labels} {value:.15g}" for labels, value in values.items()]) + "\n"


class DualStackServer(ThreadingHTTPServer):
    """Listens on all addresses of the pod, of one IP family or both."""

    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def server_bind(self) -> None:
        """Accept IPv4 connections too (ipv6(7))."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


class MetricsServer:
    """Serves the last text that it was given, on /metrics."""

    def __init__(self) -> None:
        """Serve nothing yet."""
        self._text = b""
        self._server: ThreadingHTTPServer | None = None

    def clear(self) -> None:
        """Serve nothing from now on."""
        self._text = b""

    def serve(self, port: int, body: str) -> None:
        """Serve this text from now on. Raises OSError when the port is taken."""
        self._text = body.encode()
        if self._server is None:
            self._server = DualStackServer(("", port), self._handler())
            threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        metrics = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path.split("?")[0] == "/metrics" and bool(metrics._text)
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(metrics._text if found else b"see /metrics, where metrics.enabled is true\n")

            def log_message(self, *args: object) -> None:
                """Log no scrapes."""

        return Handler
