"""The SDK without its sessions: errors, logs, port forwarding, and its import."""

import copy
import pickle
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from fake_kube import FakeKube, Then
from minicluster import sdk
from minicluster.cluster.find import lead_of
from minicluster.errors import MiniClusterError, RefusedError
from minicluster.sdk import (
    ApiError,
    ArgumentError,
    FinishedJob,
    JobFailed,
    PortForward,
    exceptions,
)
from minicluster.sdk import forward as forward_module
from minicluster.sdk.lead import lines_of
from minicluster.status.lookup import Cluster
from minicluster.waiting import logs
from status_samples import RUNNING, job, pod

from tools.clients import until


def test_each_sdk_error_is_a_documented_minicluster_error():
    found = [one for one in vars(exceptions).values() if isinstance(one, type) and issubclass(one, exceptions.SdkError)]
    assert len(found) > 10
    assert all(issubclass(one, MiniClusterError) and one.__name__ in exceptions.__doc__ for one in found)


#: What makes each error that takes more than a message
MAKES = {ApiError: ("no", 403), JobFailed: (FinishedJob("f1", 3, (("stdout", "x"),), "failed with exit code 3"),)}
ERRORS = [one for name in sdk.__all__ if isinstance(one := getattr(sdk, name), type) and issubclass(one, Exception)]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_of_the_sdk_reaches_another_process_whole(kind: Any, copied: Any):
    error = kind(*MAKES.get(kind, ("why",)))
    error.add_note("of a user")
    found = copied(error)
    assert found is not error
    assert (type(found), str(found), vars(found)) == (kind, str(error), vars(error))


CONTAINERS = [{"name": "mini", "env": [{"name": "MINICLUSTER_HOME", "value": "/mnt/flux"}]}]


def leads(*names: str) -> list[Any]:
    """Return pods of index 0."""
    return [{**pod(0, RUNNING, uid=name, name=name), "spec": {"containers": CONTAINERS}} for name in names]


def log_of(kube: FakeKube, *, follow: bool, container: str = "") -> list[str]:
    """Return the lines of the lead's log."""
    where = (Cluster(kube, "mini"), lead_of("mini"), container)
    return list(lines_of(logs.follow(*where, lambda _: None) if follow else logs.show(*where)))


def test_the_sdk_returns_each_line_of_a_log_once(caplog):
    first = b"2026-01-01T00:00:00.9Z a\n2026-01-01T00:00:00.91Z b c\nfailed to try\n"
    second = "2026-01-01T00:00:00.999999999+01:00 é\n2026-01-01T00:00:01Z \n2026-01-01T00:00:02Z 50%\rno".encode()
    looks = Then([job(), job(), job(end=("Complete", "x"))])
    kube = FakeKube(
        has={"job": looks, "pods": leads("mini-0-x")}, logs={"mini-0-x": Then([first, first, first + second])}
    )
    assert log_of(kube, follow=True) == ["a", "b c", "é", "", "50%\rno"]
    # the kubelet's own words are no lines of the log
    assert caplog.messages == ["the kubelet says of a log: failed to try"]


def test_the_log_of_a_lead_that_is_replaced_begins_on_a_line_of_its_own():
    pods = Then([leads("mini-0-x"), leads("mini-0-y")])
    log = {"mini-0-x": b"2026-01-01T00:00:00Z cut", "mini-0-y": b"2026-01-01T00:00:01Z new\n"}
    kube = FakeKube(has={"job": Then([job(), job(), job(end=("Complete", "x"))]), "pods": pods}, logs=log)
    assert log_of(kube, follow=True) == ["cut", "new"]


def test_a_log_that_can_not_be_read_is_an_error_of_the_sdk():
    kube = FakeKube(has={"job": job(), "pods": leads("mini-0-x")}, logs={"mini-0-x": RefusedError("no", status=403)})
    with pytest.raises(ApiError, match=r"^no$"), exceptions.translated():
        log_of(kube, follow=True)
    said = "container nope is not valid for pod mini-0-x out of: agent"
    kube.logs["mini-0-x"] = RefusedError(said, status=400)
    with pytest.raises(ArgumentError, match=f"^there is no log: {said}$"), exceptions.translated():
        log_of(kube, follow=True, container="nope")


class PodSide(socket.socket):
    """A connection to a pod."""

    error = ""

    @classmethod
    def to(cls, address: tuple[str, int]) -> "PodSide":
        found = cls(socket.AF_INET)
        found.connect(address)
        return found


def test_port_forward_copies_both_ways():
    server = socket.create_server(("127.0.0.1", 0))

    def echo() -> None:
        connection, _ = server.accept()
        with connection:
            data = b""
            while len(data) < 11:
                data += connection.recv(5)
            connection.sendall(data.upper())

    thread = threading.Thread(target=echo)
    thread.start()
    with server, PortForward(lambda: PodSide.to(server.getsockname())) as forward:
        assert forward.address == f"127.0.0.1:{forward.port}"
        with socket.create_connection(("127.0.0.1", forward.port), 10) as client:
            client.sendall(b"hello hello")
            assert client.recv(100) == b"HELLO HELLO"
            assert client.recv(100) == b""
        assert forward.error is None
        thread.join(10)
        with pytest.raises(ArgumentError, match="can't be used: Address already in use: leave it out"):
            PortForward(lambda: None, forward.port)


def test_the_error_of_a_port_forward_that_nobody_uses_is_there_at_once(monkeypatch):
    monkeypatch.setattr(forward_module, "BEGIN_SECONDS", 60.0)
    begin = time.monotonic()
    with PortForward(lambda: None) as forward:
        assert forward.error is None
    # and when it is closed
    assert forward.error is None
    assert time.monotonic() - begin < 30


def test_port_forward_without_a_lead_closes_and_says_why():
    def refuse() -> Any:
        raise ApiError("no lead")

    with PortForward(refuse) as forward, socket.create_connection(("127.0.0.1", forward.port), 10) as client:
        assert client.recv(100) == b""
        assert str(forward.error) == "no lead"


def test_port_forward_to_a_port_where_nothing_listens_says_so_at_once():
    class Refused:
        error = "dial tcp4 127.0.0.1:9: connect: connection refused"

        def recv(self, _size: int) -> bytes:
            time.sleep(0.2)
            return b""

        def sendall(self, _data: bytes) -> None:
            pass

        close = sendall

    def refuse() -> Any:
        time.sleep(0.2)
        found = Refused()
        found.close = lambda: None
        return found

    with PortForward(refuse) as forward:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", forward.port), 10):
                until(lambda: forward.error)
                assert str(forward.error) == f"the pod refuses the connection: {Refused.error}"
            forward._server.error = None
    assert forward.error is None


def test_importing_the_sdk_brings_nothing_large():
    """The renderer is for those who make a release."""
    program = (
        "import sys, concurrent.futures\nbefore = set(sys.modules)\nimport minicluster.sdk\n"
        "print(*(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    brought = done.stdout.split()
    assert {name.partition(".")[0] for name in brought} - sys.stdlib_module_names == {"minicluster"}
    rooms = {name.split(".")[1] for name in brought if name.startswith("minicluster.")}
    assert not rooms & {"release", "convert", "commands", "burst"}
    assert [name for name in brought if name.startswith("minicluster.render.")] == ["minicluster.render.constants"]
