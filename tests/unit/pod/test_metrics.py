import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import metrics
import pytest
from metrics import GroupFigures, MetricsServer, text
from state import Nodes

from tools.clients import until

NODES = Nodes(
    {0: (4, 1), 1: (4, 1), 2: (4, 1), 3: (4, 1)}, {0: (4, 1), 1: (2, 0)}, frozenset({0, 1, 9}), {1: "broken", 3: "gone"}
)
JOBS = {"sched": 5, "run": 2, "inactive": 9, "successful": 1234567, "failed": 1}
OWN = GroupFigures("", size=3, max_size=4, nodes=NODES, wishes={})
TEXT = """\
# HELP minicluster_size Pods that the Job has.
# TYPE minicluster_size gauge
minicluster_size 3
# HELP minicluster_max_size Hosts that are registered.
# TYPE minicluster_max_size gauge
minicluster_max_size 4
# HELP minicluster_nodes Nodes by state; a node can be in several.
# TYPE minicluster_nodes gauge
minicluster_nodes{state="allocated"} 2
minicluster_nodes{state="drained"} 1
minicluster_nodes{state="missing"} 1
minicluster_nodes{state="online"} 3
minicluster_nodes{state="registered"} 4
# HELP minicluster_cores cores of the nodes that are online.
# TYPE minicluster_cores gauge
minicluster_cores{state="allocated"} 6
minicluster_cores{state="online"} 8
# HELP minicluster_gpus gpus of the nodes that are online.
# TYPE minicluster_gpus gauge
minicluster_gpus{state="allocated"} 1
minicluster_gpus{state="online"} 2
# HELP minicluster_jobs Active jobs by state.
# TYPE minicluster_jobs gauge
minicluster_jobs{state="depend"} 0
minicluster_jobs{state="priority"} 0
minicluster_jobs{state="sched"} 5
minicluster_jobs{state="run"} 2
minicluster_jobs{state="cleanup"} 0
# HELP minicluster_jobs_done_total Jobs that ended, by how.
# TYPE minicluster_jobs_done_total counter
minicluster_jobs_done_total{result="successful"} 1234567
minicluster_jobs_done_total{result="failed"} 1
minicluster_jobs_done_total{result="canceled"} 0
minicluster_jobs_done_total{result="timeout"} 0
# HELP minicluster_queue_wait_seconds Wait of the job that has waited longest.
# TYPE minicluster_queue_wait_seconds gauge
minicluster_queue_wait_seconds 12.5
"""
WISHES = """\
# HELP minicluster_autoscaler_wish Size that each reason wishes.
# TYPE minicluster_autoscaler_wish gauge
minicluster_autoscaler_wish{reason="queue"} 8
minicluster_autoscaler_wish{reason="min"} 1
"""


def test_the_text_of_the_metrics_has_each_metric_and_its_help() -> None:
    assert text([OWN], JOBS, 12.5) == TEXT
    assert text([replace(OWN, wishes={"queue": 8, "min": 1})], JOBS, 12.5) == TEXT + WISHES


QUEUES = r"""# HELP minicluster_queue_jobs Active jobs of each queue with a name, by state.
# TYPE minicluster_queue_jobs gauge
minicluster_queue_jobs{queue="a\"\\b",state="depend"} 0
minicluster_queue_jobs{queue="a\"\\b",state="priority"} 0
minicluster_queue_jobs{queue="a\"\\b",state="sched"} 0
minicluster_queue_jobs{queue="a\"\\b",state="run"} 0
minicluster_queue_jobs{queue="a\"\\b",state="cleanup"} 0
minicluster_queue_jobs{queue="debug",state="depend"} 0
minicluster_queue_jobs{queue="debug",state="priority"} 0
minicluster_queue_jobs{queue="debug",state="sched"} 3
minicluster_queue_jobs{queue="debug",state="run"} 1
minicluster_queue_jobs{queue="debug",state="cleanup"} 0
"""


def test_queues_with_names_have_their_own_counts() -> None:
    queues = [
        {"name": "debug", "job_states": {"sched": 3, "run": 1, "inactive": 5}},
        {"name": 'a"\\b', "job_states": {}},
    ]
    assert text([OWN], JOBS, 12.5, queues) == TEXT + QUEUES


def test_the_samples_of_a_group_have_its_name() -> None:
    nodes = Nodes({0: (8, 2), 1: (8, 2)}, {0: (8, 1)}, frozenset({0}), {})
    lines = text([OWN, GroupFigures("gpu", 2, 2, nodes, {"queue": 2})], JOBS, 12.5).splitlines()
    assert [line for line in lines if 'gpu"' in line] == [
        'minicluster_size{group="gpu"} 2',
        'minicluster_max_size{group="gpu"} 2',
        'minicluster_nodes{state="allocated",group="gpu"} 1',
        'minicluster_nodes{state="drained",group="gpu"} 0',
        'minicluster_nodes{state="missing",group="gpu"} 1',
        'minicluster_nodes{state="online",group="gpu"} 1',
        'minicluster_nodes{state="registered",group="gpu"} 2',
        'minicluster_cores{state="allocated",group="gpu"} 8',
        'minicluster_cores{state="online",group="gpu"} 8',
        'minicluster_gpus{state="allocated",group="gpu"} 1',
        'minicluster_gpus{state="online",group="gpu"} 2',
        'minicluster_autoscaler_wish{reason="queue",group="gpu"} 2',
    ]
    assert set(TEXT.splitlines()) <= set(lines)


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    server = MetricsServer()
    yield server
    if server._server:
        server._server.shutdown()
        server._server.server_close()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_the_metrics_are_served_over_ipv4_and_ipv6(server: MetricsServer) -> None:
    server.serve(0, "minicluster_size 4\n")
    http = server._server
    assert http
    for host in ("127.0.0.1", "[::1]"):
        with urllib.request.urlopen(f"http://{host}:{http.server_address[1]}/metrics", timeout=10) as answer:
            assert answer.read() == b"minicluster_size 4\n"


def test_the_metrics_server_serves_the_last_text_and_nothing_else(server: MetricsServer) -> None:
    server.serve(0, "first\n")
    http = server._server
    assert http
    url = f"http://127.0.0.1:{http.server_address[1]}"
    for shown in ("first\n", "second é\n"):
        server.serve(0, shown)
        for path in ("/metrics", "/metrics?name=x"):
            with urllib.request.urlopen(url + path, timeout=10) as answer:
                assert answer.read().decode() == shown
                assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert server._server is http
    for path in ("/", "/metrics/x", "/../metrics"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(url + path, timeout=10)
        assert (caught.value.code, caught.value.read()) == (404, b"see /metrics, where metrics.enabled is true\n")
        caught.value.close()


def connected(server: MetricsServer, stack: ExitStack, sent: bytes = b"") -> socket.socket:
    """Return a connection that sends no request, or no whole one."""
    http = server._server
    assert http
    one = stack.enter_context(socket.create_connection(("127.0.0.1", http.server_address[1]), timeout=60))
    one.sendall(sent)
    return one


def scraped(server: MetricsServer) -> bytes:
    http = server._server
    assert http
    with urllib.request.urlopen(f"http://127.0.0.1:{http.server_address[1]}/metrics", timeout=60) as answer:
        return bytes(answer.read())


def test_silent_connections_take_few_threads_and_hold_up_no_scrape(
    server: MetricsServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.serve(0, "minicluster_size 4\n")
    before = threading.active_count()
    with ExitStack() as stack:
        silent = []
        for number in range(300):
            silent.append(connected(server, stack, b"" if number % 2 else b"GET /metrics HTTP/1.0\r\nA: b\r\n"))
            if number % 50 == 49:
                assert scraped(server) == b"minicluster_size 4\n"
        until(lambda: threading.active_count() <= before + metrics.MOST_CONNECTIONS, 60)
        assert scraped(server) == b"minicluster_size 4\n"
    until(lambda: threading.active_count() <= before, 60)
    assert capfd.readouterr() == ("", ""), "who went away is no error of ours"


def test_a_silent_connection_is_closed_after_a_while(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "SILENT_SECONDS", 0.1)
    server.serve(0, "minicluster_size 4\n")
    with ExitStack() as stack:
        assert connected(server, stack).recv(1) == b""
        assert connected(server, stack, b"GET /metrics HTTP/1.0\r\n").recv(1) == b""
