"""The SDK without its sessions: streams of Kubernetes, errors, logs, port forwarding, and its import."""

import json
import pickle
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from fake_kube import FakeKube, Then
from kubernetes.client.exceptions import ApiException
from minicluster.cluster.hosts import lead_of
from minicluster.errors import AwayError, MiniClusterError, RefusedError
from minicluster.kube.channel import PodChannel
from minicluster.kube.client import errors as translated
from minicluster.kube.client import read_error
from minicluster.lead.ask import read
from minicluster.live import logs
from minicluster.live.lookup import Cluster
from minicluster.sdk import (
    ApiError,
    ArgumentError,
    FinishedJob,
    JobFailed,
    PortForward,
    exceptions,
)
from minicluster.sdk import forward as forward_module
from minicluster.sdk.log_lines import lines_of
from status_samples import RUNNING, job, pod
from support import PACKAGE
from websocket import ABNF, WebSocketConnectionClosedException

from tools.clients import until


class FakeSocket:
    """The frames that a WebSocket brings."""

    def __init__(self, *frames: Any) -> None:
        self.frames = list(frames)
        self.sent: list[bytes] = []
        self.sock = None
        self.is_closed = False

    def recv_data_frame(self, control_frame: bool) -> tuple[int, Any]:
        assert control_frame
        kind, data = self.frames.pop(0)
        if kind is None:
            raise WebSocketConnectionClosedException("gone")
        return kind, SimpleNamespace(data=data)

    def settimeout(self, seconds: float) -> None:
        assert seconds

    def send(self, data: bytes, opcode: int) -> None:
        assert opcode == ABNF.OPCODE_BINARY
        self.sent.append(data)

    def close(self, timeout: float) -> None:
        assert timeout

    def shutdown(self) -> None:
        self.is_closed = True


def end(code: int) -> tuple[int, bytes]:
    """Return the frame that tells an exit code."""
    cause = {"reason": "ExitCode", "message": str(code)}
    status = {"status": "Failure", "details": {"causes": [cause]}} if code else {"status": "Success"}
    return ABNF.OPCODE_BINARY, b"\x03" + json.dumps(status).encode()


CLOSE = (ABNF.OPCODE_CLOSE, b"")


def test_a_command_in_a_pod_returns_its_output_and_exit_code():
    text = "é".encode()
    fake = FakeSocket(
        (ABNF.OPCODE_BINARY, b"\x01a" + text[:1]),
        (ABNF.OPCODE_PING, b"\x01no"),
        (ABNF.OPCODE_BINARY, b"\x01"),
        (ABNF.OPCODE_TEXT, b"\x02problem\n"),
        (ABNF.OPCODE_BINARY, b"\x01" + text[1:]),
        end(3),
        CLOSE,
    )
    channel = PodChannel(fake)
    channel.write(b"in")
    assert read(channel, None) == "aé".encode()
    assert (channel.exit_code, channel.stderr) == (3, b"problem\n")
    assert fake.sent == [b"\x00in"]
    channel.close()
    assert fake.is_closed
    channel = PodChannel(FakeSocket(end(0), CLOSE))
    assert (read(channel, None), channel.exit_code) == (b"", 0)


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([(None, b"")], "the connection to the pod broke: gone"),
        ([CLOSE], "the connection to the pod was closed"),
        (
            [(ABNF.OPCODE_BINARY, b'\x03{"status": "Failure", "message": "container not found"}')],
            "the pod can't run the command: container not found",
        ),
    ],
)
def test_a_command_whose_connection_breaks_raises_away_error(frames, message):
    with pytest.raises(AwayError) as caught:
        read(PodChannel(FakeSocket(*frames)), None)
    assert str(caught.value) == message


def http(status: int, body: str | None = None, reason: str = "") -> ApiException:
    """Return an exception as the client makes it."""
    error = ApiException(status=status, reason=reason)
    error.body = body
    return error


HANDSHAKE = (
    "Handshake status 403 Forbidden -+-+- {'content-type': 'application/json'} -+-+- "
    'b\'{"kind":"Status","message":"pods \\"x\\" is forbidden: no","reason":"Forbidden"}\''
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(
            http(404, '{"message": "jobs.batch \\"a\\" not found"}'), (404, 'jobs.batch "a" not found'), id="JSON"
        ),
        pytest.param(http(503, "no JSON", "Service Unavailable"), (503, "Service Unavailable"), id="no JSON"),
        pytest.param(http(0, None, HANDSHAKE), (403, 'pods "x" is forbidden: no'), id="refused handshake"),
        pytest.param(
            http(0, None, "Handshake status 502 Bad Gateway -+-+- {} -+-+- None"),
            (502, "Bad Gateway"),
            id="failed handshake",
        ),
        pytest.param(
            http(0, None, "[Errno 111] Connection refused"), (0, "[Errno 111] Connection refused"), id="no server"
        ),
    ],
)
def test_read_error_finds_status_and_message_of_a_kubernetes_error(error, expected):
    assert read_error(error) == expected


def test_errors_of_the_kubernetes_client_are_those_of_the_port():
    with pytest.raises(RefusedError, match=r"^get job a: no$") as caught, translated("get job a"):
        raise http(403, '{"message": "no"}')
    assert (caught.value.status, caught.value.reason) == (403, "no")
    with pytest.raises(AwayError) as caught, translated("get job a"):
        raise ConnectionRefusedError(111, "refused")
    assert str(caught.value) == "get job a: Kubernetes can't be reached: [Errno 111] refused"
    for status in (410, 429, 503):
        with pytest.raises(AwayError), translated("watch"):
            raise http(status)
    with pytest.raises(AwayError), translated("exec", passing=(404,)):
        raise http(0, None, "Handshake status 404 Not Found -+-+-")


def test_each_sdk_error_is_a_documented_minicluster_error():
    found = [one for one in vars(exceptions).values() if isinstance(one, type) and issubclass(one, exceptions.SdkError)]
    assert len(found) > 10
    assert all(issubclass(one, MiniClusterError) and one.__name__ in exceptions.__doc__ for one in found)
    error = pickle.loads(pickle.dumps(JobFailed(FinishedJob("f1", 3, (("stdout", "x"),), "failed with exit code 3"))))
    assert (str(error), error.exit_code, error.output) == ("job f1 failed with exit code 3", 3, "x")


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


#: Modules that no command imports
APART = (("lead", "sent"), ("kube", "client"), ("kube", "channel"), ("kube", "configuration"))


def test_only_the_sdk_imports_the_kubernetes_client():
    files = [path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py")]
    outside = [
        file
        for file in files
        if file.parts[0] not in ("sdk", "pod", "chart", "__main__") and file.parts[:2] not in APART
    ]
    names = [".".join(("minicluster", *file.parts)).removesuffix(".__init__") for file in outside]
    assert len(names) > 30
    program = "import importlib, sys\nsys.modules['kubernetes'] = None\n" + "".join(
        f"importlib.import_module({name!r})\n" for name in names
    )
    assert "minicluster.cli" in names
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_importing_the_sdk_brings_nothing_large_beside_the_kubernetes_client():
    """The models of the client alone would cost a second, and the renderer is for those who make a release."""
    program = (
        "import sys, kubernetes.client, concurrent.futures\nbefore = set(sys.modules)\nimport minicluster.sdk\n"
        "print(*(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    brought = done.stdout.split()
    assert {name.partition(".")[0] for name in brought} - sys.stdlib_module_names == {"minicluster"}
    rooms = {name.split(".")[1] for name in brought if name.startswith("minicluster.")}
    assert not rooms & {"release", "convert", "commands", "burst"}
    assert [name for name in brought if name.startswith("minicluster.render.")] == ["minicluster.render.constants"]


def test_importing_the_sdk_without_the_kubernetes_client_says_what_to_install():
    program = "import sys\nsys.modules['kubernetes'] = None\nimport minicluster.sdk\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    last = done.stderr.splitlines()[-1]
    assert last == "ImportError: minicluster.sdk needs the package kubernetes: pip install 'minicluster[sdk]'"
