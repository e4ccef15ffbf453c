"""The agent's client of Kubernetes, against a server that records the calls."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import kube
import pytest
from kube import Kube, KubeError, is_emptying

TOKEN = "ey-the-token-of-the-pod"
JOB = "/apis/batch/v1/namespaces/ns/jobs/mc"
PATCH = f"PATCH {JOB}?fieldManager=minicluster-agent"
MERGE = "application/merge-patch+json"


def job(version: str, *managers: str) -> dict[str, Any]:
    entries = [{"manager": manager, "operation": "Update"} for manager in managers]
    return {"metadata": {"uid": "u-1", "resourceVersion": version, "managedFields": entries}}


@dataclass
class Api:
    """The answers to give, in order, and the calls: method and path, type, token, body."""

    answers: list[tuple[int, bytes]] = field(default_factory=list)
    asked: list[tuple[str, str, str, Any]] = field(default_factory=list)

    def answer(self, *bodies: Any) -> None:
        self.answers += [(200, json.dumps(body).encode()) for body in bodies]

    def refuse(self, code: int, body: str) -> None:
        self.answers.append((code, body.encode()))


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def url(api: Api) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            what = (f"{self.command} {self.path}", self.headers["Content-Type"], self.headers["Authorization"])
            api.asked.append((*what, json.loads(body) if body else None))
            code, text = api.answers.pop(0)
            self.send_response(code)
            self.send_header("Content-Length", str(len(text) or 1000))  # without a body the answer breaks off
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PATCH = do_POST = answer  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def pod(url: str, tmp_path: Path) -> Kube:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    return Kube(url, "ns", "mc", tmp_path)


@pytest.mark.parametrize(
    ("queue", "gates", "is_fixed"),
    [
        ("", [], False),
        ("q", None, True),
        ("q", ["other"], True),
        ("q", ["other", "kueue.x-k8s.io/elastic-job"], False),
    ],
)
def test_a_job_that_kueue_would_restart_is_not_resized(
    pod: Kube, api: Api, queue: str, gates: list[str] | None, is_fixed: bool
) -> None:
    found = job("7")
    found["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    template = {} if gates is None else {"schedulingGates": [{"name": name} for name in gates]}
    found["spec"] = {"template": {"spec": template}}
    api.answer(job("8"))
    if is_fixed:
        with pytest.raises(KubeError, match=r"^Kueue would restart all pods: its feature gate Elastic.* is off$"):
            pod.resize(found, 3)
    else:
        pod.resize(found, 3)
    assert len(api.asked) == (not is_fixed)


def test_get_job_sends_an_authorized_request(pod: Kube, api: Api) -> None:
    api.answer(job("7"))
    assert pod.get_job() == job("7")
    assert api.asked == [(f"GET {JOB}", "application/json", f"Bearer {TOKEN}", None)]


def test_the_token_of_the_service_account_is_read_for_each_call(pod: Kube, api: Api) -> None:
    api.answer(job("1"), job("2"))
    pod.get_job()
    (pod.token / "token").write_text("renewed")
    pod.get_job()
    assert [asked[2] for asked in api.asked] == [f"Bearer {TOKEN}", "Bearer renewed"]


def test_a_resize_is_a_merge_patch_that_leaves_no_managed_fields(pod: Kube, api: Api) -> None:
    api.answer(job("8", "helm", "minicluster-agent", "kube-controller-manager"), job("9"))
    pod.resize(job("7"), 3)
    change = {"metadata": {"resourceVersion": "7"}, "spec": {"completions": 3, "parallelism": 3}}
    dropped = {"metadata": {**job("8", "helm", "kube-controller-manager")["metadata"]}}
    del dropped["metadata"]["uid"]
    assert api.asked == [
        (PATCH, MERGE, f"Bearer {TOKEN}", change),
        (PATCH, MERGE, f"Bearer {TOKEN}", dropped),
    ]


def test_suspend_and_resume_are_merge_patches_that_leave_no_managed_fields(pod: Kube, api: Api) -> None:
    api.answer(job("8", "helm", "minicluster-agent"), job("9", "helm"))
    pod.suspend(job("7"), 2, {"a": "b"})
    api.answer(job("10", "helm", "minicluster-agent"), job("11", "helm"))
    pod.resume(job("9"), {"a": None})
    suspended = {"suspend": True, "completions": 2, "parallelism": 2}
    bodies = [body for *_, body in api.asked]
    assert bodies[::2] == [
        {"metadata": {"resourceVersion": "7", "annotations": {"a": "b"}}, "spec": suspended},
        {"metadata": {"resourceVersion": "9", "annotations": {"a": None}}, "spec": {"suspend": False}},
    ]
    managed = job("", "helm")["metadata"]["managedFields"]
    assert bodies[1::2] == [
        {"metadata": {"resourceVersion": version, "managedFields": managed}} for version in ("8", "10")
    ]
    assert {(what, kind) for what, kind, *_ in api.asked} == {(PATCH, MERGE)}


def of_group(version: str, **changes: Any) -> dict[str, Any]:
    """Return the Job of a group in a queue that Kueue started, or one with other fields of its spec."""
    labels = {"kueue.x-k8s.io/podset": "main"}
    found = job(version)
    found["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    found["spec"] = {"completions": 2, "parallelism": 2, "suspend": False, "template": {"metadata": {"labels": labels}}}
    found["spec"] |= changes
    return found


HELD: dict[str, Any] = {"suspend": True, "template": {}}


@pytest.mark.parametrize(
    ("fields", "suspend"), [({}, False), (HELD, True), (HELD | {"completions": 4, "parallelism": 4}, True)], ids=str
)
def test_a_group_that_becomes_empty_stays_with_kueue_if_kueue_has_not_started_it(
    pod: Kube, api: Api, fields: dict[str, Any], suspend: bool
) -> None:
    before = of_group("7", **fields)
    begun = of_group("8", **fields | {"suspend": True, "completions": 4, "parallelism": 4})
    is_begun = before["spec"]["completions"] == 4
    answers = [] if is_begun else [begun]
    api.answer(*answers, of_group("9", **fields | {"suspend": suspend, "completions": 4, "parallelism": 0}))
    pod.empty(before, 3)
    assert [asked[3]["spec"] for asked in api.asked] == [
        *([] if is_begun else [{"suspend": True, "completions": 4, "parallelism": 4}]),
        {"suspend": suspend, "parallelism": 0},
    ]
    # Kueue starts it, and the agent does not finish it once more
    assert not is_emptying(of_group("9", **fields | {"suspend": True, "completions": 4, "parallelism": 0}), 3)


def test_replicas_are_changed_with_the_version_that_was_read(pod: Kube, api: Api) -> None:
    path = "/apis/apps/v1/namespaces/ns/deployments/mc"
    api.answer(job("7"), job("8"))
    pod.set_replicas(pod.get_deployment(), 4, {"a": "b"})
    change = {"metadata": {"resourceVersion": "7", "annotations": {"a": "b"}}, "spec": {"replicas": 4}}
    assert api.asked == [
        (f"GET {path}", "application/json", f"Bearer {TOKEN}", None),
        (f"PATCH {path}?fieldManager=minicluster-agent", MERGE, f"Bearer {TOKEN}", change),
    ]


@pytest.mark.parametrize("selector", [{"matchLabels": {"a": "b"}}, None], ids=str)
def test_the_selector_of_the_budget_is_changed_with_the_version_that_was_read(
    pod: Kube, api: Api, selector: dict[str, Any] | None
) -> None:
    path = "/apis/policy/v1/namespaces/ns/poddisruptionbudgets/mc"
    api.answer(job("7"), job("8"))
    pod.select(pod.get_budget(), selector)
    change = {"metadata": {"resourceVersion": "7"}, "spec": {"selector": selector}}
    assert api.asked == [
        (f"GET {path}", "application/json", f"Bearer {TOKEN}", None),
        (f"PATCH {path}?fieldManager=minicluster-agent", MERGE, f"Bearer {TOKEN}", change),
    ]


MODIFIED = '{"message": "the object has been modified"}'


def test_dropping_field_ownership_is_retried_when_the_controller_changes_the_job(pod: Kube, api: Api) -> None:
    api.answer(job("8", "minicluster-agent"))
    api.refuse(409, MODIFIED)
    api.answer(job("9", "helm", "minicluster-agent"), job("10", "helm"))
    pod.resize(job("7"), 3)
    assert [what for what, *_ in api.asked] == [PATCH, PATCH, f"GET {JOB}", PATCH]
    assert api.asked[-1][3] == {
        "metadata": {"resourceVersion": "9", "managedFields": job("9", "helm")["metadata"]["managedFields"]}
    }


def test_a_resize_succeeds_when_field_ownership_can_not_be_dropped_yet(pod: Kube, api: Api) -> None:
    for version in range(8, 12):
        api.answer(job(str(version), "minicluster-agent"))
        api.refuse(409, MODIFIED)
    pod.resize(job("7"), 3)
    assert len(api.asked) == 8
    # the next period drops it
    api.answer(job("12"))
    assert pod.drop_field_ownership(job("11", "minicluster-agent")) == job("12")
    assert pod.drop_field_ownership(job("12", "helm")) == job("12", "helm")
    assert len(api.asked) == 9


def test_a_resize_of_a_job_that_was_changed_meanwhile_fails(pod: Kube, api: Api) -> None:
    api.refuse(409, '{"message": "the object has been modified"}')
    with pytest.raises(KubeError) as caught:
        pod.resize(job("7"), 3)
    assert str(caught.value) == f"{PATCH}: 409 the object has been modified"
    assert len(api.asked) == 1


def test_a_refused_resize_of_a_gang_says_what_to_do(pod: Kube, api: Api) -> None:
    message = 'forbidden: cannot change parallelism for a Job referencing gang-scheduled PodGroup "g"'
    api.refuse(403, json.dumps({"message": message}))
    with pytest.raises(KubeError) as caught:
        pod.resize(job("7"), 4)
    assert (
        str(caught.value)
        == "Kubernetes made a gang of the Job, which fixes its size: see docs/how-to/start-as-a-gang.md"
    )


def test_event_creates_a_kubernetes_event_about_the_job(pod: Kube, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube, "strftime", lambda *_: "2026-01-02T03:04:05Z")
    api.answer({})
    pod.event(job("7"), "Scaled", "size 1 -> 3: 2 jobs wait for nodes")
    body = {
        "metadata": {"generateName": "mc-", "namespace": "ns"},
        "involvedObject": {"kind": "Job", "apiVersion": "batch/v1", "name": "mc", "namespace": "ns", "uid": "u-1"},
        "reason": "Scaled",
        "message": "size 1 -> 3: 2 jobs wait for nodes",
        "type": "Normal",
        "source": {"component": "minicluster-agent"},
        "firstTimestamp": "2026-01-02T03:04:05Z",
        "lastTimestamp": "2026-01-02T03:04:05Z",
        "count": 1,
    }
    assert api.asked == [("POST /api/v1/namespaces/ns/events", "application/json", f"Bearer {TOKEN}", body)]


def test_cpu_sums_the_use_of_the_broker_containers(pod: Kube, api: Api) -> None:
    def containers(**use: str) -> dict[str, Any]:
        return {"containers": [{"name": name, "usage": {"cpu": cpu}} for name, cpu in use.items()]}

    api.answer({"items": [containers(app="1500m", side="9"), containers(app="2"), containers(side="9")]})
    assert pod.cpu("app", 2) == 3.5
    path = "/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods?labelSelector=batch.kubernetes.io%2Fjob-name%3Dmc"
    assert [asked[0] for asked in api.asked] == [f"GET {path}"]


@pytest.mark.parametrize(("measured", "ready", "said"), [(0, 0, "0 of 1"), (1, 2, "1 of 2")])
def test_cpu_is_unknown_while_a_pod_is_not_measured(pod: Kube, api: Api, measured: int, ready: int, said: str) -> None:
    api.answer({"items": [{"containers": [{"name": "app", "usage": {"cpu": "1"}}]}] * measured})
    with pytest.raises(KubeError, match=f": {said} pods are measured"):
        pod.cpu("app", ready)


def test_the_pods_of_the_job_are_listed(pod: Kube, api: Api) -> None:
    api.answer({"items": [{"spec": {}}, {"spec": {"nodeName": "n"}}]})
    assert pod.pods() == [{"spec": {}}, {"spec": {"nodeName": "n"}}]
    path = "/api/v1/namespaces/ns/pods?labelSelector=batch.kubernetes.io%2Fjob-name%3Dmc"
    assert [asked[0] for asked in api.asked] == [f"GET {path}"]


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [("0", 0), ("2", 2), ("250m", 0.25), ("1500000u", 1.5), ("123456789n", 0.123456789), ("1k", 1000), ("0.5", 0.5)],
)
def test_parse_cpu_reads_kubernetes_quantities(quantity: str, expected: float) -> None:
    assert kube.parse_cpu(quantity) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        (403, '{"message": "jobs.batch \\"mc\\" is forbidden"}', '403 jobs.batch "mc" is forbidden'),
        (500, '{"message": "several\\nlines of\\r\\n a webhook\\n"}', "500 several lines of a webhook"),
        (401, '{"message": 5}', "401 5"),
        (502, "<html>\nBad gateway", "502 Bad Gateway"),
        (503, "[]", "503 Service Unavailable"),
        (500, '{"kind": "Status"}', "500 Internal Server Error"),
        (500, "", "500 Internal Server Error"),
        (200, "{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (200, "", "IncompleteRead(0 bytes read, 1000 more expected)"),
    ],
)
def test_a_kubernetes_error_is_one_line_with_the_message_of_the_server(
    pod: Kube, api: Api, code: int, body: str, expected: str
) -> None:
    api.refuse(code, body)
    with pytest.raises(KubeError) as caught:
        pod.get_job()
    assert str(caught.value) == f"GET {JOB}: {expected}"


def no_server(pod: Kube) -> None:
    pod.server = "http://127.0.0.1:1"


def no_tls(pod: Kube) -> None:
    (pod.token / "ca.crt").write_text("no certificate")
    pod.server = pod.server.replace("http:", "https:")


def no_token(pod: Kube) -> None:
    (pod.token / "token").unlink()


@pytest.mark.parametrize(
    ("breaks", "expected"),
    [(no_server, "Connection refused"), (no_tls, "certificate"), (no_token, "No such file or directory")],
)
def test_a_failed_call_to_kubernetes_is_an_error_of_one_line(
    pod: Kube, breaks: Callable[[Kube], None], expected: str
) -> None:
    breaks(pod)
    with pytest.raises(KubeError) as caught:
        pod.get_job()
    text = str(caught.value)
    assert text.startswith(f"GET {JOB}: ")
    assert expected in text
    assert "\n" not in text
    assert TOKEN not in text
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("host", "expected"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_the_address_of_the_api_server_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, host: str, expected: str
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert kube.server() == expected


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "ALL_PROXY"])
def test_the_agent_asks_the_api_server_itself_whatever_proxy_its_environment_names(
    pod: Kube, api: Api, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    api.answer({"kind": "Job"})
    assert pod.get_job() == {"kind": "Job"}


def test_a_proxy_is_never_asked_for_a_tunnel_to_the_api_server(
    tmp_path: Path, api: Api, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not over TLS either: there the stand-in for a proxy would get a CONNECT."""
    monkeypatch.setenv("HTTPS_PROXY", url)
    monkeypatch.setattr("ssl.create_default_context", lambda **_: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    (tmp_path / "token").write_text(TOKEN)
    with pytest.raises(KubeError, match="Connection refused"):
        Kube("https://127.0.0.1:9", "ns", "mc", tmp_path).get_job()
    assert api.asked == []
