"""The program of a schedule's pod, against a server that has a Job and pods, and runs commands as Kubernetes does."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from api_server import ApiHandler, serving
from support import chart_programs

JOBS = "/apis/batch/v1/namespaces/ns/jobs/"
RUN = {"schedule": "night", "key": "k", "due": 1.0, "options": [], "command": ["echo", "ä b", ""]}
SUSPENDED = "minicluster/suspended"
DONE = {"status": "Success"}


def code(number: int) -> dict[str, Any]:
    return {"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": str(number)}]}}


def job(suspended: str = "", **fields: Any) -> dict[str, Any]:
    notes = {"minicluster/immutable": "{}", **({SUSPENDED: suspended} if suspended else {})}
    return {"metadata": {"resourceVersion": "7", "annotations": notes}, "spec": {"suspend": bool(suspended)}, **fields}


def lead(ready: str) -> dict[str, Any]:
    notes = {"batch.kubernetes.io/job-completion-index": "0", "kubectl.kubernetes.io/default-container": "main"}
    env = [{"name": "MINICLUSTER_HOME", "value": "/mnt/flux"}]
    return {
        "metadata": {"name": "mc-0-x", "annotations": notes},
        "spec": {"containers": [{"name": "main", "env": env}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


@dataclass
class Api:
    """What a MiniCluster is like: the ready conditions of its lead, one a look; how commands end; what was asked."""

    job: Any = None
    ready: list[str] = field(default_factory=lambda: ["True"])
    ends: list[Any] = field(default_factory=lambda: [DONE])
    ran: list[list[str]] = field(default_factory=list)
    patches: list[Any] = field(default_factory=list)
    conflicts: int = 0

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "PATCH":
            assert path == f"{JOBS}mc?fieldManager=minicluster-agent"
            if self.conflicts:
                self.conflicts -= 1
                return 409, {"message": "changed"}
            self.patches.append(body)
            if "spec" in body:
                self.job = {**job(), "metadata": {**job()["metadata"], "resourceVersion": "8"}}
                managers = [{"manager": "helm"}, {"manager": "minicluster-agent"}]
                return 200, {**self.job, "metadata": {"resourceVersion": "8", "managedFields": managers}}
            return 200, {"metadata": {"resourceVersion": "9", "managedFields": [{"manager": "helm"}]}}
        if path.startswith(JOBS):
            return (200, self.job) if self.job else (404, {"message": "not found"})
        return 200, {"items": [lead(self.ready.pop(0) if len(self.ready) > 1 else self.ready[0])]}


def frame(channel: int, data: bytes, part: int = 10**9) -> bytes:
    """Return a message of a WebSocket, in parts, with a ping between."""
    whole, out = bytes([channel]) + data, b""
    pieces = [whole[i : i + part] for i in range(0, len(whole), part)]
    for place, piece in enumerate(pieces):
        size = bytes([len(piece)]) if len(piece) < 126 else b"\x7e" + len(piece).to_bytes(2, "big")
        out += bytes([(128 if piece is pieces[-1] else 0) | (0 if place else 2)]) + size + piece + b"\x89\0"
    return out


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = chart_programs("replace_server", "scheduled_run")
    for module in (made, made.server):
        monkeypatch.setattr(module, "PAUSE", 0.01)
    return made


@pytest.fixture
def api() -> Api:
    return Api(job())


@pytest.fixture
def cluster(program: ModuleType, api: Api, tmp_path: Path) -> Iterator[Any]:
    class Handler(ApiHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:  # noqa: N802
            if "/exec?" not in self.path:
                self.answer()
                return
            self.check_token()
            self.run()

        def run(self) -> None:
            asked = parse_qsl(urlsplit(self.path).query, keep_blank_values=True)
            assert self.path.startswith("/api/v1/namespaces/ns/pods/mc-0-x/exec?")
            assert asked[:3] == [("container", "main"), ("stdout", "1"), ("stderr", "1")]
            assert self.headers["Sec-WebSocket-Protocol"] == "v4.channel.k8s.io"
            api.ran.append([word for name, word in asked if name == "command"])
            end = api.ends.pop(0)
            self.close_connection = True
            if isinstance(end, int):
                self.send_error(end)
                return
            self.send_response(101)
            self.end_headers()
            self.wfile.write(frame(1, b"job f1 " + b"x" * 200 + b"\n", 50) + frame(2, b"said\n"))
            if end:
                self.wfile.write(frame(3, json.dumps(end).encode()))

    with serving(Handler, api, tmp_path) as address:
        yield program.Cluster(address, tmp_path)


def test_a_run_is_submitted_by_words_that_nobody_reads(
    program: ModuleType, cluster: Any, api: Api, capfd: pytest.CaptureFixture[str]
) -> None:
    program.submit(cluster, "mc", RUN)
    [[*words, text, run]] = api.ran
    assert (words, json.loads(run)) == (["/mnt/flux/bin/flux", "python", "-c"], RUN)
    assert text == program.SUBMIT.read_text()
    assert (api.patches, capfd.readouterr()) == ([], (f"job f1 {'x' * 200}\n", "said\n"))


def test_a_cluster_that_sleeps_is_woken_and_its_lead_waited_for(
    program: ModuleType, cluster: Any, api: Api, capfd: pytest.CaptureFixture[str]
) -> None:
    api.job, api.ready, api.conflicts = job("idle for 60 s"), ["False", "False", "True"], 1
    program.submit(cluster, "mc", RUN)
    known, rest = {"resourceVersion": "7", "annotations": {SUSPENDED: None}}, [{"manager": "helm"}]
    assert api.patches == [
        {"metadata": known, "spec": {"suspend": False}},
        # no client owns what was changed
        {"metadata": {"resourceVersion": "8", "managedFields": rest}},
    ]
    assert len(api.ran) == 1
    assert capfd.readouterr().out.splitlines()[0] == "minicluster: mc is suspended, idle for 60 s: waking it"


@pytest.mark.parametrize(
    "ends",
    [
        # the connection breaks; the pod ends; the container is not there; the broker ends
        [None, DONE],
        [502, DONE],
        [{"status": "Failure", "message": "container not found"}, DONE],
        [code(1), code(1), DONE],
    ],
)
def test_what_may_pass_is_tried_again(program: ModuleType, cluster: Any, api: Api, ends: list[Any]) -> None:
    api.ends, count = ends, len(ends)
    program.submit(cluster, "mc", RUN)
    assert (len(api.ran), {words[-1] for words in api.ran}) == (count, {json.dumps(RUN)})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"job": None}, "there is no Job mc"),
        ({"job": job(status={"conditions": [{"type": "Failed", "status": "True"}]})}, "mc has ended"),
        ({"job": job("the value suspend")}, "mc is suspended by the value suspend, and not woken"),
        ({"ends": [code(2)]}, "flux refused the job of night"),
    ],
    ids=str,
)
def test_what_does_not_pass_ends_the_try(
    program: ModuleType, cluster: Any, api: Api, change: dict[str, Any], why: str
) -> None:
    vars(api).update(change)
    with pytest.raises(program.FinalError) as error:
        program.submit(cluster, "mc", RUN)
    assert (str(error.value), api.patches) == (why, [])


def test_a_lead_that_does_not_come_is_an_error_after_a_bound(
    program: ModuleType, cluster: Any, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "START", 0.2)
    api.ready = ["False"]
    with pytest.raises(program.FinalError, match=r"^mc: its lead is not ready, after 0\.2 s$"):
        program.submit(cluster, "mc", RUN)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("mc-night-29407800", {"key": "2025-11-30T02:00Z", "due": 1764468000.0}),
        # made by hand
        ("now", {"key": "u-1", "due": 5.0}),
    ],
)
def test_a_run_is_known_by_its_time(program: ModuleType, name: str, known: dict[str, Any]) -> None:
    wanted = {"options": ["-N2"], "command": ["true"]}
    assert program.run_of("night", wanted, name, "u-1", 5.0) == {"schedule": "night", **known, **wanted}
