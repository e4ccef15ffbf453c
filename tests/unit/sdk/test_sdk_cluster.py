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
from kubernetes.client.exceptions import ApiException
from minicluster.cluster.pods import read_pod
from minicluster.errors import MiniClusterError
from minicluster.lead.question import SilentError
from minicluster.sdk import (
    ApiError,
    ArgumentError,
    FinishedJob,
    JobFailed,
    PortForward,
    Result,
    exceptions,
    lead_log,
)
from minicluster.sdk.channel import LostError, PodChannel, finish
from minicluster.sdk.client import errors as translated
from minicluster.sdk.client import read_error
from minicluster.sdk.sdk_evidence import SdkEvidence
from status_samples import pod
from support import PACKAGE
from websocket import ABNF, WebSocketConnectionClosedException


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
    assert finish(channel) == Result(3, "aé", "problem\n")
    assert fake.sent == [b"\x00in"]
    assert fake.is_closed
    assert finish(PodChannel(FakeSocket(end(0), CLOSE))) == Result(0, "", "")


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
def test_a_command_whose_connection_breaks_raises_lost_error(frames, message):
    fake = FakeSocket(*frames)
    with pytest.raises(LostError) as caught:
        finish(PodChannel(fake))
    assert str(caught.value) == message
    assert caught.value.is_passing
    assert fake.is_closed


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


def test_errors_of_the_kubernetes_client_are_translated_to_api_error():
    with pytest.raises(ApiError, match="get job a: no") as caught, translated("get job a"):
        raise http(403, '{"message": "no"}')
    assert (caught.value.status, caught.value.is_passing) == (403, False)
    with pytest.raises(ApiError) as caught, translated("get job a"):
        raise ConnectionRefusedError(111, "refused")
    assert str(caught.value) == "get job a: Kubernetes can't be reached: [Errno 111] refused"
    assert caught.value.is_passing
    with pytest.raises(LostError) as caught, translated("exec", passing=LostError):
        raise http(0, None, "Handshake status 404 Not Found -+-+-")
    assert caught.value.is_passing


def test_each_sdk_error_is_a_documented_minicluster_error():
    found = [one for one in vars(exceptions).values() if isinstance(one, type) and issubclass(one, exceptions.SdkError)]
    assert len(found) > 10
    assert all(issubclass(one, MiniClusterError) and one.__name__ in exceptions.__doc__ for one in found)
    error = pickle.loads(pickle.dumps(JobFailed(FinishedJob("f1", 3, (("stdout", "x"),), "exit code 3"))))
    assert (str(error), error.exit_code, error.output) == ("job f1 failed: exit code 3", 3, "x")


class Logs:
    """A `KubeClient` whose pods have logs."""

    def __init__(self, *answers: bytes | ApiError) -> None:
        self.answers = list(answers)

    def log(self, pod: str, container: str, *, follow: bool) -> Any:
        assert (pod, container, type(follow)) == ("mini-0-x", "mini", bool)
        answer = self.answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        pieces = [answer[place : place + 7] for place in range(0, len(answer), 7)]
        return SimpleNamespace(stream=lambda **_: iter(pieces), close=lambda: None)


def test_the_sdk_returns_each_line_of_a_log_once(caplog):
    first = b"2026-01-01T00:00:00.9Z a\n2026-01-01T00:00:00.91Z b c\nfailed to try\n"
    second = (
        first + "2026-01-01T00:00:00.999999999+01:00 é\n2026-01-01T00:00:01Z \n2026-01-01T00:00:02Z 50%\rno".encode()
    )
    kube = Logs(first, ApiError("gone", 404), second)
    lead = SimpleNamespace(uid="1", pod=SimpleNamespace(name="mini-0-x", runner="mini"))
    log = lead_log._PodLog(kube, lead, "")
    # the kubelet's own words are no lines of the log
    assert list(log.lines(follow=True)) == ["a", "b c"]
    assert caplog.messages == ["log of pod mini-0-x: failed to try"]
    assert list(log.lines(follow=True)) == []
    assert list(log.lines(follow=True)) == ["é", ""]
    kube.answers = [second + b" end", second + b" end"]
    assert list(log.lines(follow=True)) == []
    assert list(log.lines(follow=False)) == ["50%\rno end"]
    kube.answers = [ApiError("forbidden", 403)]
    with pytest.raises(ApiError):
        list(log.lines(follow=True))
    said = "container mini is not valid for pod mini-0-x out of: agent"
    kube.answers = [ApiError(said, 400)]
    with pytest.raises(ArgumentError, match=f"^container='mini': {said}$"):
        list(log.lines(follow=True))


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
                assert str(forward.error) == f"the pod gives no connection: {Refused.error}"
            forward._server.error = None
    assert forward.error is None


#: The commands that run in the lead's pod


def test_only_the_sdk_imports_the_kubernetes_client():
    files = [path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py")]
    outside = [
        file
        for file in files
        if file.parts[0] not in ("sdk", "pod", "chart", "__main__") and file.parts[:2] != ("lead", "sent")
    ]
    names = [".".join(("minicluster", *file.parts)).removesuffix(".__init__") for file in outside]
    assert len(names) > 30
    program = "import importlib, sys\nsys.modules['kubernetes'] = None\n" + "".join(
        f"importlib.import_module({name!r})\n" for name in names
    )
    assert "minicluster.cli" in names
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_importing_the_sdk_without_the_kubernetes_client_says_what_to_install():
    program = "import sys\nsys.modules['kubernetes'] = None\nimport minicluster.sdk\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    last = done.stderr.splitlines()[-1]
    assert last == "ImportError: minicluster.sdk needs the package kubernetes: pip install 'minicluster[sdk]'"


@pytest.mark.parametrize(("code", "raised"), [(500, SilentError), (403, ApiError)])
def test_a_lead_whose_container_does_not_run_yet_is_silent_to_status(code: int, raised: type[Exception]) -> None:
    class Refusing:
        def run(self, *_: object, **__: object) -> None:
            raise ApiError("exec in pod mini-0-x", code)

    with pytest.raises(raised) as caught:
        SdkEvidence(Refusing()).ask(read_pod(pod(0)))
    assert type(caught.value) is raised
