"""kubectl and Helm as commands: their arguments, and the messages of their failures."""

import json
import os
import signal
import stat
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from minicluster.errors import AwayError, RefusedError, ToolError
from minicluster.kube import tool as kubectl
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.tool import CommandError
from minicluster.lead.ask import read

Tool = Callable[..., None]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """Make a program of a shell script, which has its arguments in `$*`."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("HELM_BIN", raising=False)

    def make(name: str, script: str) -> None:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return make


@pytest.mark.parametrize(
    ("place", "options"),
    [
        (Kubernetes(), ("", "")),
        (Kubernetes("c d", "n"), ("--context=c d --namespace=n ", "--kube-context=c d --namespace=n ")),
        (Kubernetes(namespace="n"), ("--namespace=n ", "--namespace=n ")),
    ],
    ids=["default", "context and namespace", "namespace"],
)
def test_kubectl_and_helm_get_the_same_context_and_namespace(
    tool: Tool, place: Kubernetes, options: tuple[str, str]
) -> None:
    for name in ("kubectl", "helm"):
        tool(name, 'echo "$*"; cat')
    assert place.kubectl("get", "pods", stdin="in") == f"{options[0]}get pods\nin"
    assert place.helm("status", "a") == f"{options[1]}status a\n"


@pytest.mark.parametrize("is_apart", [False, True])
def test_kubectl_and_helm_can_run_in_a_session_of_their_own(tool: Tool, is_apart: bool) -> None:
    for name in ("kubectl", "helm"):
        tool(name, "cut -d' ' -f6 /proc/$$/stat")
    place = Kubernetes(is_apart=is_apart)
    for ask in (place.kubectl, place.helm):
        assert (int(ask("get", "pods")) != os.getsid(0)) == is_apart


def test_a_place_is_named_by_its_namespace_and_context(tool: Tool) -> None:
    places = (Kubernetes(), Kubernetes("c"), Kubernetes(namespace="n"), Kubernetes("c", "n"))
    # the kubeconfig's current one
    tool(
        "kubectl",
        """[ "$*" != "--context=c config view --minify --output=jsonpath={.contexts[0].context.namespace}" ] ||
        printf lab""",
    )
    assert [str(place) for place in places] == [
        "namespace default",
        "namespace lab of context c",
        "namespace n",
        "namespace n of context c",
    ]
    tool("kubectl", "echo 'error: current-context must exist in order to minify' >&2; exit 1")
    assert str(Kubernetes()) == "the current namespace"


def test_a_settled_place_stays_when_another_context_becomes_the_current_one(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kubeconfig").touch()
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    named = '{"contexts": [{"name": "a", "context": {"namespace": "lab"}}]}'
    tool("kubectl", f"""case $* in *config*) echo '{named}' ;; *) echo "$*" ;; esac""")
    place = Kubernetes().settled()
    assert place.kubectl("get", "pods") == "--context=a --namespace=lab get pods\n"
    assert Kubernetes(namespace="n").settled() == Kubernetes("a", "n", was_current=True)
    # a context without a namespace
    tool("kubectl", """echo '{"contexts": [{"name": "a", "context": {}}]}'""")
    assert Kubernetes().settled() == Kubernetes("a", "default", was_current=True)
    assert Kubernetes("a").settled() == Kubernetes("a", "default")
    tool("kubectl", "echo 'error: current-context must exist in order to minify' >&2; exit 1")
    with pytest.raises(RefusedError, match=r"no current context: check KUBECONFIG and the context$"):
        Kubernetes().settled()
    # in a pod none is needed
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert Kubernetes().settled() == Kubernetes()


NO_FILE = [
    "The connection to the server localhost:8080 was refused - did you specify the right host or port?",
    'Error: kubernetes cluster unreachable: Get "http://localhost:8080/version": dial tcp 127.0.0.1:8080: refused',
    "Error in configuration: context was not found for specified context: a",
    'Error: Kubernetes cluster unreachable: context "a" does not exist',
]


@pytest.mark.parametrize("said", NO_FILE)
def test_a_missing_kubeconfig_is_named(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    tool("kubectl", f"echo '{said}' >&2; exit 1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)

    def why() -> str:
        with pytest.raises(CommandError) as caught:
            Kubernetes().kubectl("get", "pods")
        return caught.value.reason

    default = tmp_path / ".kube" / "config"
    assert why() == f"there is no kubeconfig: KUBECONFIG is not set, and {default} doesn't exist"
    monkeypatch.setenv("KUBECONFIG", "/no/a:/no/b")
    assert why() == "KUBECONFIG is /no/a:/no/b: there is no such file"
    # one of them is enough
    (tmp_path / "b").write_text("")
    monkeypatch.setenv("KUBECONFIG", f"/no/a:{tmp_path}/b")
    assert why() == said.removeprefix("Error: ")


def test_a_failure_for_another_reason_is_not_that_of_a_missing_kubeconfig(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # in a pod there is none
    monkeypatch.setenv("KUBECONFIG", "/no/a")
    tool("kubectl", "echo 'Error from server (NotFound): pods \"a\" not found' >&2; exit 1")
    with pytest.raises(CommandError, match=r"^kubectl get pods: Error from server \(NotFound\)"):
        Kubernetes().kubectl("get", "pods")


def test_get_returns_an_object_or_nothing_and_refuses_other_answers(tool: Tool) -> None:
    tool("kubectl", """printf '{"asked": "%s"}' "$*" """)
    assert Kubernetes().get("job", "a") == {"asked": "get job a --ignore-not-found --output=json --request-timeout=10s"}
    tool("kubectl", "exit 0")
    assert Kubernetes().get("job", "a") == {}
    tool("kubectl", "echo x")
    with pytest.raises(AwayError, match=r"^kubectl get job: the answer is not JSON: Expecting value"):
        Kubernetes().get("job", "a")


def test_pods_leaves_out_pods_that_are_being_deleted(tool: Tool) -> None:
    pods = [{"metadata": {"name": "a"}}, {"metadata": {"name": "b", "deletionTimestamp": "now"}}]
    tool("kubectl", f"case $* in *selector=*job-name=j,*index=0*) echo '{json.dumps({'items': pods})}' ;; esac")
    assert Kubernetes().pods("j", 0) == pods[:1]
    assert Kubernetes().pods("j") == []


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", "exit code 3"),
        (
            "E0101 memcache.go: no\\nThe connection to the server was refused",
            "The connection to the server was refused",
        ),
        ("error: no context", "no context"),
        ("Warning: old\\nError from server (Forbidden): no", "Error from server (Forbidden): no"),
        ("flux: no socket\\ncommand terminated with exit code 1", "flux: no socket"),
        ("command terminated with exit code 1", "exit code 3"),
        ('level=ERROR msg="no"\\nError: a\\nb', "a b"),
    ],
)
def test_a_kubectl_failure_is_an_error_of_one_line(tool: Tool, said: str, reason: str) -> None:
    tool("kubectl", f"printf '{said}' >&2; exit 3")
    with pytest.raises(CommandError) as caught:
        Kubernetes("c").kubectl("get", "pods", "-o", "name")
    assert str(caught.value) == f"kubectl get pods: {reason}"
    assert caught.value.is_forbidden == ("Forbidden" in said)


def test_a_helm_that_hangs_is_killed_after_its_time_limit(tool: Tool, tmp_path: Path) -> None:
    # the child process that it leaves behind keeps the pipes open
    tool("helm", f"echo $$ > {tmp_path}/pid; sleep 5")
    begin = time.monotonic()
    with pytest.raises(CommandError) as caught:
        Kubernetes().helm("status", "a", seconds=0.5)
    assert str(caught.value) == "helm status a: no answer within 0.5 s"
    assert time.monotonic() - begin < 4
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_a_stream_is_not_blocked_by_errors_that_nobody_reads(tool: Tool) -> None:
    tool(
        "kubectl",
        "head -c 300000 /dev/zero >&2; echo out; head -c 300000 /dev/zero >&2; printf '\nerror: no\n' >&2; exit 3",
    )
    with closing(Kubernetes("c").stream("logs", "a")) as stream:
        begin = time.monotonic()
        assert stream.wait(None, None)
        assert stream.read() == b"out\n"
        with pytest.raises(AwayError, match=r"^kubectl logs a: no$"):
            read(stream, 30)
        assert len(stream.stderr) == 1 << 16
    assert time.monotonic() - begin < 30


def test_a_closed_stream_does_not_wait_for_what_its_kubectl_left_behind(tool: Tool, tmp_path: Path) -> None:
    tool("kubectl", f"sleep 300 & echo $! >{tmp_path}/left; echo out; wait")
    stream = Kubernetes().stream("logs", "a")
    assert stream.read() == b"out\n"
    begin = time.monotonic()
    stream.close()
    assert time.monotonic() - begin < 30
    os.kill(int((tmp_path / "left").read_text()), signal.SIGTERM)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kubectl", "there is no kubectl in PATH: install it, https://kubernetes.io/docs/tasks/tools"),
        (
            "helm",
            "there is no helm in PATH: install Helm 3.14 or later, or Helm 4, or set HELM_BIN to its path",
        ),
    ],
)
def test_a_missing_kubectl_or_helm_is_named(monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolError) as caught:
        kubectl.run(name, ["version"], seconds=1)
    assert str(caught.value) == message


def test_a_kubectl_that_can_not_be_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "kubectl").write_bytes(b"\x7fELF no program")
    (tmp_path / "kubectl").chmod(0o755)
    with pytest.raises(ToolError, match=r"^kubectl can't be run: Exec format error: install it, https:"):
        kubectl.run("kubectl", ["version"], seconds=1)


def test_helm_bin_names_another_helm(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("helm3", "echo three")
    monkeypatch.setenv("HELM_BIN", "helm3")
    assert Kubernetes().helm("version") == "three\n"
