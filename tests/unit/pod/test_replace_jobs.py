"""The program of `upgrade.replace`, against a server that has Jobs and pods as Kubernetes has them."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from api_server import ApiHandler, serving
from support import hook_program

RECORD = {"minicluster/immutable": '{"maxSize": "2"}', "minicluster/version": "1"}
MADE = [
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "mc", "labels": {"a": "b"}},
        "spec": {"template": {"metadata": {"labels": {"c": "d"}}, "spec": {"priorityClassName": "p"}}},
    }
]
OPEN = "exceeded quota|error looking up service account|does not support dry run"
OTHER = {**RECORD, "minicluster/immutable": '{"maxSize": "4"}'}
JOBS = "/apis/batch/v1/namespaces/ns/jobs/"


def job(uid: str, annotations: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    metadata = {"uid": uid, "resourceVersion": "7", "annotations": RECORD if annotations is None else annotations}
    return {"metadata": metadata, "spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}, **fields}


@dataclass
class Api:
    """Jobs by name; a deleted one is gone after some looks at it. Answers that come first; the calls."""

    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    pods: list[dict[str, Any]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    looks: int = 2
    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)  #: of new objects, by their kind
    asked: list[Any] = field(default_factory=list)
    changes: list[tuple[str, Any]] = field(default_factory=list)  #: of Jobs, just before they are deleted
    hook: Any = None  #: the pod in which the program runs

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.asked.append((method, path.rpartition("/")[2], *([body] if body else [])))
        if self.codes:
            return self.codes.pop(0), {"message": "not\nnow"}
        if method == "POST":
            assert path.endswith("?dryRun=All")
            code, message = self.refusals.get(body["kind"], (201, ""))
            return code, {"message": message}
        if path.startswith("/api/v1/namespaces/ns/pods"):
            return 200, {"items": self.pods} if "?" in path else self.hook
        found = self.jobs.get(path.removeprefix(JOBS))
        if not found:
            return 404, {"message": "not found"}
        if method == "DELETE" and self.changes:
            name, change = self.changes.pop()
            self.jobs[name] |= change
            return 409, {"message": "Precondition failed"}
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
    for module in (made, made.server):
        monkeypatch.setattr(module, "PAUSE", 0.01)
    return made


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def jobs(program: ModuleType, api: Api, tmp_path: Path) -> Iterator[Any]:
    with serving(ApiHandler, api, tmp_path) as address:
        made = program.Jobs(address, tmp_path)
        made.program = program
        yield made


def test_jobs_that_take_the_values_stay(program: ModuleType, jobs: Any, api: Api) -> None:
    # the same values in another order, and a Job of the first version, which did not note its version
    old = {"minicluster/immutable": '{"a":"1","b":"2"}'}
    api.jobs = {"mc": job("u"), "mc-gpu": job("v", old)}
    new = {"minicluster/immutable": '{"b":"2","a":"1"}', "minicluster/version": "1"}
    said = program.remove(jobs, {"mc": RECORD, "mc-gpu": new}, "mc")
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
    said = jobs.program.remove(jobs, wanted, "mc")
    assert said == (f"the Jobs {', '.join(gone)} and their pods are gone" if gone else "no Job is there")
    assert api.deleted == gone
    assert set(api.jobs) == {name for name in live if name not in gone}
    bodies = [asked[2] for asked in api.asked if asked[0] == "DELETE"]
    uids = [live[name]["metadata"]["uid"] for name in gone]
    known = [{"uid": uid, "resourceVersion": "7"} for uid in uids]
    assert bodies == [{"propagationPolicy": "Foreground", "preconditions": one} for one in known]


@pytest.mark.parametrize(
    ("on_stop", "end"), [("cancel", "cancelled, unless marked to run again"), ("requeue", "put back into the queue")]
)
def test_the_removal_says_what_became_of_running_jobs(
    program: ModuleType, jobs: Any, api: Api, on_stop: str, end: str
) -> None:
    record = {**RECORD, "minicluster/immutable": json.dumps({"pod.onStop": on_stop})}
    api.jobs = {"mc": job("u", record), "mc-a": job("v")}
    fate = f"their jobs had the pods' 1 s to end, what still ran was {end}; jobs that wait stay in the queue"
    said = program.remove(jobs, {"mc": OTHER, "mc-a": OTHER}, "mc")
    assert said == f"the Jobs mc, mc-a and their pods are gone: {fate}"


@pytest.mark.parametrize("condition", ["SuccessCriteriaMet", "Complete"])
def test_a_job_whose_work_ended_before_the_removal_stays(
    program: ModuleType, jobs: Any, api: Api, condition: str
) -> None:
    ended = {"conditions": [{"type": condition, "status": "True"}]}
    # it ends between the first look and the deletion, which the API server then refuses
    api.jobs, api.changes = {"mc": job("u"), "mc-gpu": job("v")}, [("mc", {"status": ended})]
    with pytest.raises(
        program.ReplaceError, match=r"^the work of mc has ended, and a new Job would run it again: noth"
    ):
        program.remove(jobs, {"mc": OTHER, "mc-gpu": OTHER}, "mc")
    assert api.deleted == ["mc"]
    assert set(api.jobs) == {"mc", "mc-gpu"}


def test_a_job_that_changed_otherwise_is_removed_all_the_same(program: ModuleType, jobs: Any, api: Api) -> None:
    api.jobs, api.changes = {"mc": job("u")}, [("mc", {"status": {"ready": 1}})]
    assert program.remove(jobs, {"mc": OTHER}, "mc").endswith(" are gone")
    assert api.deleted == ["mc", "mc"]


@pytest.mark.parametrize(("code", "runs_again"), [(0, True), (85, False)])
def test_work_that_ends_well_while_the_pods_stop_is_not_run_again(
    program: ModuleType, jobs: Any, api: Api, code: int, runs_again: bool
) -> None:
    api.jobs = {"mc": job("u")}
    pod = lead()
    pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] = "mc"
    pod["status"]["containerStatuses"] = [{"name": "mc", "state": {"terminated": {"exitCode": code}}}]
    api.pods = [pod]
    if runs_again:
        with pytest.raises(program.ReplaceError, match=r"^the work of mc ended well while its pods were told to stop"):
            program.remove(jobs, {"mc": OTHER}, "mc")
    else:
        assert program.remove(jobs, {"mc": OTHER}, "mc").endswith(" are gone")


def test_a_job_that_is_being_deleted_is_waited_for(program: ModuleType, jobs: Any, api: Api) -> None:
    api.jobs = {"mc": job("u")}
    api.jobs["mc"]["metadata"]["deletionTimestamp"] = "now"
    assert program.remove(jobs, {"mc": RECORD}, "mc").endswith(" are gone")


def test_pods_that_stay_are_an_error_after_a_bound(
    program: ModuleType, jobs: Any, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "REMOVAL", -0.5)
    api.jobs, api.looks = {"mc": job("u")}, 10**6
    with pytest.raises(
        program.ReplaceError, match=r"^the pods of mc are not gone after 0\.5 s: upgrade again when they"
    ):
        program.remove(jobs, {"mc": OTHER}, "mc")


@pytest.mark.parametrize("code", [403, 429, 503])
def test_a_call_that_fails_is_tried_again_for_a_while(
    program: ModuleType, jobs: Any, api: Api, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    api.jobs, api.codes = {"mc": job("u")}, [code, code]
    assert program.remove(jobs, {"mc": RECORD}, "mc").startswith("the live Jobs take")
    monkeypatch.setattr(program.server, "ROLE" if code == 403 else "PATIENCE", 0.05)
    api.codes = [code] * 100
    with pytest.raises(program.ReplaceError, match=rf"^GET {JOBS}mc: not now; upgrade again, or use `minicluster repl"):
        program.remove(jobs, {"mc": RECORD}, "mc")


def test_a_check_asks_for_the_new_jobs_and_a_pod_of_each_and_makes_nothing(
    program: ModuleType, jobs: Any, api: Api
) -> None:
    api.jobs = {"mc": job("u")}
    assert program.check(jobs, {"mc": OTHER}, MADE, OPEN) == "the new Jobs mc can be made"
    assert api.deleted == []
    bodies = [asked[2] for asked in api.asked if asked[0] == "POST"]
    names = {"name": None, "generateName": "mc-"}
    assert bodies == [
        {**MADE[0], "metadata": {**names, "labels": {"a": "b"}}},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**names, "labels": {"c": "d"}},
            "spec": {"priorityClassName": "p"},
        },
    ]
    api.asked.clear()
    assert program.check(jobs, {"mc": RECORD}, MADE, OPEN) == "the live Jobs take these values"
    assert [asked[0] for asked in api.asked] == ["GET"]


@pytest.mark.parametrize(
    ("kind", "refused", "counts"),
    [
        ("Pod", (403, "pods need the label team"), True),
        ("Job", (422, "ValidatingAdmissionPolicy denied"), True),
        ("Pod", (403, "failed quota: q: must specify limits.cpu"), True),
        ("Job", (400, "denied the request"), True),
        # the old pods hold it; the upgrade makes it; nobody knows
        ("Pod", (403, "exceeded quota: few"), False),
        ("Pod", (403, "error looking up service account ns/mc-agent"), False),
        ("Job", (400, 'admission webhook "w" does not support dry run'), False),
    ],
)
def test_a_check_fails_where_a_new_object_would_be_refused(
    jobs: Any, api: Api, kind: str, refused: tuple[int, str], counts: bool
) -> None:
    api.jobs, api.refusals, program = {"mc": job("u")}, {kind: refused}, jobs.program
    if counts:
        with pytest.raises(program.ReplaceError) as error:
            program.check(jobs, {"mc": OTHER}, MADE, OPEN)
        assert str(error.value) == f"nothing is removed, as the new {kind} of mc would be refused: {refused[1]}"
    else:
        assert program.check(jobs, {"mc": OTHER}, MADE, OPEN) == "the new Jobs mc can be made"


def test_a_check_waits_for_its_right(program: ModuleType, jobs: Any, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program.server, "ROLE", 0.5)
    api.refusals = {"Job": (403, 'User "x" cannot create resource "jobs"')}
    with pytest.raises(
        program.ReplaceError, match=r'POST .*jobs\?dryRun=All: User "x" cannot create resource "jobs"; upg'
    ):
        program.check(jobs, {"mc": OTHER}, MADE, OPEN)
    assert [asked[0] for asked in api.asked].count("POST") > 1


def test_a_check_names_the_containers_that_were_added_to_its_pod(program: ModuleType, jobs: Any, api: Api) -> None:
    plan = {"name": "mc", "jobs": {"mc": RECORD}, "made": MADE, "open": OPEN}
    api.jobs = {"mc": job("u")}
    own = {"name": "replace"}
    said = {}
    for names in ((), ("istio-proxy", "logs")):
        api.hook = {"spec": {"containers": [own, *({"name": name} for name in names)]}}
        said[names] = program.run(jobs, "check", plan, "mc-replace-check")
    assert said[()] == "the live Jobs take these values"
    assert said["istio-proxy", "logs"] == (
        "the live Jobs take these values; this pod ends when istio-proxy, logs ends, too, which the cluster added to "
        "it, and until then nothing is removed: leave pods out of that by pod.labels or pod.annotations, or use "
        "`minicluster replace`"
    )


def test_new_pods_that_are_refused_are_an_error_with_the_reason(
    program: ModuleType, jobs: Any, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "STUCK", 0.1)
    api.jobs, api.refusals = {"mc": job("u")}, {"Pod": (403, "exceeded quota: few, requested: pods=1")}
    with pytest.raises(program.ReplaceError, match=r"^the new pods of mc can't start: exceeded quota: few, req"):
        program.wait(jobs, "mc", MADE)


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
    assert program.wait(jobs, "mc", MADE) == said


PULL = {"reason": "ImagePullBackOff", "message": "no\nsuch image"}
FAILED = {"type": "Failed", "status": "True", "message": "exit code 127"}


@pytest.mark.parametrize(
    ("found", "pods", "message"),
    [
        (job("u"), [lead(waiting=PULL)], "the new pods of mc can't start: ImagePullBackOff: no such image"),
        (job("u"), [lead(waiting={"reason": "ContainerCreating"})], "mc has no quorum after 0.3 s"),
        (job("u"), [lead(READY, index="1")], "the new pods of mc can't start: the lead has no pod"),
        (job("u", status={"conditions": [FAILED]}), [lead()], "the new pods of mc failed: exit code 127"),
        (None, [], "somebody has removed the Job mc: upgrade again"),
    ],
    ids=str,
)
def test_new_pods_that_can_not_start_are_an_error(jobs: Any, api: Api, found: Any, pods: Any, message: str) -> None:
    jobs.program.START, jobs.program.STUCK = 0.3, 0.1
    api.jobs, api.pods = ({"mc": found} if found else {}), pods
    with pytest.raises(jobs.program.ReplaceError) as error:
        jobs.program.wait(jobs, "mc", MADE)
    assert str(error.value) == message


def test_the_program_reads_its_file_and_ends_with_a_line(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "jobs.json").write_text(json.dumps({"name": "mc", "jobs": {"mc": RECORD}, "made": MADE, "open": OPEN}))
    servers: list[str] = []
    monkeypatch.setattr(program, "Jobs", servers.append)
    monkeypatch.setattr(program, "remove", lambda _, wanted, name: f"removed {list(wanted)} of {name}")
    monkeypatch.setattr(program, "wait", lambda _, name, made: f"waited for {name}, of {len(made)}")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    for action in ("remove", "wait"):
        monkeypatch.setattr(sys, "argv", ["replace_jobs.py", action, str(tmp_path / "jobs.json")])
        program.main()
    assert servers == ["https://[fd00::1]:443"] * 2
    assert capsys.readouterr().out == "minicluster: removed ['mc'] of mc\nminicluster: waited for mc, of 1\n"
    monkeypatch.setattr(sys, "argv", ["replace_jobs.py", "remove", str(tmp_path / "none")])
    with pytest.raises(SystemExit, match=r"^minicluster: .*No such file"):
        program.main()
