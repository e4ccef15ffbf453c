"""The cluster's metrics: Prometheus' text format (version 0.0.4), and a server for them.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Iterable, Iterator, Mapping, Sequence, Tuple

from state import RESULTS, Nodes, totals

JOB_STATES = ("depend", "priority", "sched", "run", "cleanup")
#: Connections at once, each with a thread; a scrape takes milliseconds
MOST_CONNECTIONS = 16
#: Seconds after which a connection is closed on which nothing comes or goes
SILENT_SECONDS = 10.0
#: Labels and a value
Sample = Tuple[Mapping[str, str], float]


@dataclass
class EndedJobs:
    """Counts jobs that have ended, never back: Flux tells only how many records of old jobs it has purged."""

    last: Mapping[str, int] = field(default_factory=dict)  #: the counts at the last look; {}: none yet
    purged: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESULTS, 0))

    def counts(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Return the counts of jobs with all that have ended since the first look."""
        new = counts["purged"] - self.last.get("purged", counts["purged"])
        if self.last and new >= 0:
            # as many of each kind are gone as its count has sunk, at least
            for result in RESULTS:
                sunk = min(new, max(0, self.last[result] - counts[result]))
                self.purged[result] += sunk
                new -= sunk
            # the others came and went; most often all jobs end alike
            self.purged[max(RESULTS, key=lambda result: counts[result])] += new
        self.last = dict(counts)
        return {**counts, **{result: counts[result] + self.purged[result] for result in RESULTS}}


@dataclass(frozen=True)
class GroupFigures:
    """The figures of the nodes of one Job."""

    name: str  #: "" for the cluster's own, whose samples have no label for it
    size: int
    max_size: int
    nodes: Nodes  #: those of its ranks; for the cluster's own those of bursts too
    wishes: Mapping[str, int]  #: the size that each of the autoscaler's reasons asks for; {}: none scales

    def states(self) -> dict[str, int]:
        """Return the number of nodes by state."""
        nodes = self.nodes
        return {
            "allocated": len(nodes.used),
            "drained": sum(rank in nodes.online for rank in nodes.drained),
            "missing": sum(rank not in nodes.online for rank in range(self.size)),
            "online": len(nodes.online),
            "registered": len(nodes.all),
        }

    def amounts(self, kind: str) -> dict[str, int]:
        """Return the cores or the GPUs by state."""
        nodes = self.nodes
        online = totals(nodes.all[rank] for rank in nodes.online if rank in nodes.all)
        return {"allocated": totals(nodes.used.values())[kind], "online": online[kind]}

    def samples(self, name: str, values: Mapping[str, float]) -> list[Sample]:
        """Return values with the label ``name``, and the group's."""
        return [({name: key, **self.label}, value) for key, value in values.items()]

    @property
    def label(self) -> dict[str, str]:
        """The label of the group."""
        return {"group": self.name} if self.name else {}


def text(
    groups: Sequence[GroupFigures], jobs: Mapping[str, int], queue_wait: float, queues: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Return the metrics; the queue's wait is in seconds, ``queues`` are what Flux counts of those with names."""
    return "".join([*_lines(groups, jobs, queue_wait), *_of_queues(queues)])


def _of_queues(queues: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    active = [
        ({"queue": queue["name"], "state": state}, queue["job_states"].get(state, 0))
        for queue in sorted(queues, key=lambda queue: str(queue["name"]))
        for state in JOB_STATES
    ]
    if active:
        yield _metric("queue_jobs", "Active jobs of each queue with a name, by state", active)


def _lines(groups: Sequence[GroupFigures], jobs: Mapping[str, int], queue_wait: float) -> Iterator[str]:
    yield _metric("size", "Pods that the Job has", [(group.label, group.size) for group in groups])
    yield _metric("max_size", "Hosts that are registered", [(group.label, group.max_size) for group in groups])
    nodes = [sample for group in groups for sample in group.samples("state", group.states())]
    yield _metric("nodes", "Nodes by state; a node can be in several", nodes)
    for kind in ("cores", "gpus"):
        amounts = [sample for group in groups for sample in group.samples("state", group.amounts(kind))]
        yield _metric(kind, f"{kind} of the nodes that are online", amounts)
    active = [({"state": state}, jobs.get(state, 0)) for state in JOB_STATES]
    yield _metric("jobs", "Active jobs by state", active)
    results = [({"result": result}, jobs.get(result, 0)) for result in RESULTS]
    yield _metric("jobs_done_total", "Jobs that ended, by how", results, "counter")
    yield _metric("queue_wait_seconds", "Wait of the job that has waited longest", [({}, queue_wait)])
    wishes = [sample for group in groups for sample in group.samples("reason", group.wishes)]
    if wishes:
        yield _metric("autoscaler_wish", "Size that each reason wishes", wishes)


def _metric(name: str, about: str, samples: Iterable[Sample], kind: str = "gauge") -> str:
    full = f"minicluster_{name}"
    lines = [f"# HELP {full} {about}.", f"# TYPE {full} {kind}"]
    for labels, value in samples:
        pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{full}{{{pairs}}} {value:.15g}" if pairs else f"{full} {value:.15g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Return the value of a label: the name of a queue may have any character."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class DualStackServer(ThreadingHTTPServer):
    """Listens on all addresses of the pod, of one IP family or both. The oldest connection makes way for a new one."""

    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    # a connection that waits for its turn must not be lost, which costs its client a second
    request_queue_size = 128

    def __init__(self, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        """Listen. Raises OSError when the port is taken."""
        self._connections: list[Any] = []
        self._lock = threading.Lock()
        super().__init__(("", port), handler)

    def server_bind(self) -> None:
        """Accept IPv4 connections too (ipv6(7))."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread."""
        with self._lock:
            self._connections.append(request)
            if len(self._connections) > MOST_CONNECTIONS:
                # its thread reads the end, or can't write
                with suppress(OSError):
                    self._connections.pop(0).shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that was served, or made way."""
        with self._lock, suppress(ValueError):
            self._connections.remove(request)
        super().shutdown_request(request)

    def handle_error(self, *_: object) -> None:
        """Log no client that has gone away."""


class MetricsServer:
    """Serves the last text that it was given, on /metrics."""

    def __init__(self) -> None:
        self._text = b""
        self._server: ThreadingHTTPServer | None = None

    def clear(self) -> None:
        """Serve nothing from now on."""
        self._text = b""

    def serve(self, port: int, body: str) -> None:
        """Serve this text from now on. Raises OSError when the port is taken."""
        self._text = body.encode()
        if self._server is None:
            self._server = DualStackServer(port, self._handler())
            threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        metrics = self

        class Handler(BaseHTTPRequestHandler):
            timeout = SILENT_SECONDS

            def do_GET(self) -> None:
                is_served = self.path.split("?")[0] == "/metrics" and bool(metrics._text)
                self.send_response(200 if is_served else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(metrics._text if is_served else b"see /metrics, where metrics.enabled is true\n")

            def log_message(self, *args: object) -> None:
                """Log no scrapes."""

        return Handler
