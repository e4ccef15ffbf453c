"""The program of `upgrade.replace`, against a server that has Jobs and pods as Kubernetes has them."""

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support import hook_program

RECORD = {"minicluster/immutable": '{"maxSize": "2"}', "minicluster/version": "1"}
OTHER = {**RECORD, "minicluster/immutable": '{"maxSize": "4"}'}
JOBS = "/apis/batch/v1/namespaces/ns/jobs/"


def job(uid: str, annotations: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    metadata = {"uid": uid, "annotations": RECORD if annotations is None else annotations}
    return {"metadata": metadata, "spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}, **fields}


@dataclass
class Api:
    """Jobs by name; a deleted one is gone after some looks at it. Answers that come first; the calls."""

    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    pods: list[dict[str, Any]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    looks: int = 2
    asked: list[Any] = field(default_factory=list)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.asked.append((method, path.rpartition("/")[2], *([body] if body else [])))
        if self.codes:
            return self.codes.pop(0), {"message": "not\nnow"}
        if path.startswith("/api/v1/namespaces/ns/pods?"):
            return 200, {"items": self.pods}
        found = self.jobs.get(path.removeprefix(JOBS))
        if not found:
            return 404, {"message": "not found"}
        if method == "DELETE":
            found["metadata"]["deletionTimestamp"] = "now"
        elif "deletionTimestamp" in found["metadata"]:
            self.looks -= 1
            if self.looks < 0:
                del self.jobs[path.removeprefix(JOBS)]
        return 200, found

    @property
    def deleted(self) -> list[str]:
        return [asked[1] for asked in self.asked if asked[0] == "DELETE"]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = hook_program()
    monkeypatch.setattr(made, "PAUSE", 0.01)
    return made


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def jobs(program: ModuleType, api: Api, tmp_path: Path) -> Iterator[Any]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            assert self.headers["Authorization"] == "Bearer a-token"
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            code, found = api.answer(self.command, self.path, json.loads(body) if body else None)
            text = json.dumps(found).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_DELETE = answer  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    (tmp_path / "token").write_text("a-token\n")
    (tmp_path / "namespace").write_text("ns")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made = program.Jobs(f"http://127.0.0.1:{server.server_address[1]}", tmp_path)
        made.program = program
        yield made
        server.shutdown()


def test_jobs_that_take_the_values_stay(program: ModuleType, jobs: Any, api: Api) -> None:
    # the same values in another order, and a Job of the first version, which did not note its version
    old = {"minicluster/immutable": '{"a":"1","b":"2"}'}
    api.jobs = {"mc": job("u"), "mc-gpu": job("v", old)}
    new = {"minicluster/immutable": '{"b":"2","a":"1"}', "minicluster/version": "1"}
    said = program.remove(jobs, {"mc": RECORD, "mc-gpu": new})
    assert said == "the live Jobs take these values, so their pods stay"
    assert api.asked == [("GET", "mc"), ("GET", "mc-gpu")]


@pytest.mark.parametrize(
    ("live", "wanted", "gone"),
    [
        ({"mc": job("u")}, {"mc": OTHER}, ["mc"]),
        ({"mc": job("u")}, {"mc": {**RECORD, "minicluster/version": "2"}}, ["mc"]),
        # a group that is new, one whose values change, one that goes
        ({"mc": job("u")}, {"mc": RECORD, "mc-a": RECORD}, ["mc"]),
        ({"mc": job("u"), "mc-a": job("v")}, {"mc": RECORD, "mc-a": OTHER}, ["mc", "mc-a"]),
        ({"mc": job("u"), "mc-a": job("v")}, {"mc": RECORD, "mc-a": None}, ["mc", "mc-a"]),
        # an interrupted replacement has removed one of two
        ({"mc-a": job("v")}, {"mc": RECORD, "mc-a": RECORD}, ["mc-a"]),
        ({}, {"mc": RECORD}, []),
        # not of a MiniCluster
        ({"mc": job("u", {})}, {"mc": RECORD}, []),
    ],
    ids=str,
)
def test_all_jobs_are_removed_when_one_can_not_take_its_values(
    jobs: Any, api: Api, live: dict[str, Any], wanted: dict[str, Any], gone: list[str]
) -> None:
    api.jobs = json.loads(json.dumps(live))
    said = jobs.program.remove(jobs, wanted)
    assert said == (f"the Jobs {', '.join(gone)} and their pods are gone" if gone else "no Job is there")
    assert api.deleted == gone
    assert set(api.jobs) == {name for name in live if name not in gone}
    bodies = [asked[2] for asked in api.asked if asked[0] == "DELETE"]
    uids = [live[name]["metadata"]["uid"] for name in gone]
    assert bodies == [{"propagationPolicy": "Foreground", "preconditions": {"uid": uid}} for uid in uids]


def test_a_job_that_is_being_deleted_is_waited_for(program: ModuleType, jobs: Any, api: Api) -> None:
    api.jobs = {"mc": job("u")}
    api.jobs["mc"]["metadata"]["deletionTimestamp"] = "now"
    assert program.remove(jobs, {"mc": RECORD}).endswith(" are gone")


def test_pods_that_stay_are_an_error_after_a_bound(
    program: ModuleType, jobs: Any, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "REMOVAL", -0.5)
    api.jobs, api.looks = {"mc": job("u")}, 10**6
    with pytest.raises(
        program.ReplaceError, match=r"^the pods of mc are not gone after 0\.5 s: upgrade again when they"
    ):
        program.remove(jobs, {"mc": OTHER})


@pytest.mark.parametrize("code", [403, 429, 503])
def test_a_call_that_fails_is_tried_again_for_a_while(
    program: ModuleType, jobs: Any, api: Api, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    api.jobs, api.codes = {"mc": job("u")}, [code, code]
    assert program.remove(jobs, {"mc": RECORD}).startswith("the live Jobs take")
    monkeypatch.setattr(program, "ROLE" if code == 403 else "PATIENCE", 0.05)
    api.codes = [code] * 100
    with pytest.raises(program.ReplaceError, match=rf"^GET {JOBS}mc: not now; upgrade again, or use `minicluster repl"):
        program.remove(jobs, {"mc": RECORD})


def test_a_proxy_of_the_environment_is_not_asked(jobs: Any, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nobody listens there
    api.jobs = {"mc": job("u")}
    assert jobs.get("mc") == job("u")


def lead(*conditions: dict[str, str], index: str = "0", waiting: dict[str, str] | None = None) -> dict[str, Any]:
    state = {"waiting": waiting} if waiting else {"running": {}}
    metadata = {"annotations": {"batch.kubernetes.io/job-completion-index": index}}
    return {"metadata": metadata, "status": {"conditions": list(conditions), "containerStatuses": [{"state": state}]}}


READY = {"type": "Ready", "status": "True"}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (job("u"), "mc has its quorum"),
        (job("u", spec={"suspend": True}), "mc is suspended: its pods start when it is resumed"),
        (job("u", status={"conditions": [{"type": "Complete", "status": "True"}]}), "the work of mc has ended"),
    ],
)
def test_it_waits_for_the_quorum_or_an_end(
    program: ModuleType, jobs: Any, api: Api, found: dict[str, Any], said: str
) -> None:
    api.jobs = {"mc": found}
    api.pods = [lead(READY, index="1"), lead({"type": "Ready", "status": "False"}), lead(READY)]
    assert program.wait(jobs, "mc") == said


PULL = {"reason": "ImagePullBackOff", "message": "no\nsuch image"}
FAILED = {"type": "Failed", "status": "True", "message": "exit code 127"}


@pytest.mark.parametrize(
    ("found", "pods", "message"),
    [
        (job("u"), [lead(waiting=PULL)], "the new pods of mc can't start: ImagePullBackOff: no such image"),
        (job("u"), [lead(waiting={"reason": "ContainerCreating"})], "mc has no quorum after 0.3 s"),
        (job("u"), [lead(READY, index="1")], "mc has no quorum after 0.3 s"),
        (job("u", status={"conditions": [FAILED]}), [lead()], "the new pods of mc failed: exit code 127"),
        (None, [], "somebody has removed the Job mc: upgrade again"),
    ],
    ids=str,
)
def test_new_pods_that_can_not_start_are_an_error(jobs: Any, api: Api, found: Any, pods: Any, message: str) -> None:
    jobs.program.START, jobs.program.STUCK = 0.3, 0.1
    api.jobs, api.pods = ({"mc": found} if found else {}), pods
    with pytest.raises(jobs.program.ReplaceError) as error:
        jobs.program.wait(jobs, "mc")
    assert str(error.value) == message


def test_the_program_reads_its_file_and_ends_with_a_line(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "jobs.json").write_text(json.dumps({"name": "mc", "jobs": {"mc": RECORD}}))
    servers: list[str] = []
    monkeypatch.setattr(program, "Jobs", servers.append)
    monkeypatch.setattr(program, "remove", lambda _, wanted: f"removed {list(wanted)}")
    monkeypatch.setattr(program, "wait", lambda _, name: f"waited for {name}")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    for action in ("remove", "wait"):
        monkeypatch.setattr(sys, "argv", ["replace_jobs.py", action, str(tmp_path / "jobs.json")])
        program.main()
    assert servers == ["https://[fd00::1]:443"] * 2
    assert capsys.readouterr().out == "minicluster: removed ['mc']\nminicluster: waited for mc\n"
    monkeypatch.setattr(sys, "argv", ["replace_jobs.py", "remove", str(tmp_path / "none")])
    with pytest.raises(SystemExit, match=r"^minicluster: .*No such file"):
        program.main()
