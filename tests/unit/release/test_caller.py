"""What a command line of Helm says, and which process above this one is Helm."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from minicluster.release import adopt, caller
from minicluster.release.caller import Caller, parse
from minicluster.render import stream

POST = "--post-renderer=minicluster"
LINES: list[Any] = [
    ("install a ./chart", {"release": "a", "has_cluster": True}),
    ("upgrade a ./chart", {"release": "a", "has_cluster": True, "is_upgrade": True}),
    ("upgrade --install a ./chart", {"release": "a", "has_cluster": True, "is_upgrade": True}),
    ("upgrade -i a ./chart --server-side true", {"release": "a", "has_cluster": True, "is_upgrade": True}),
    ("upgrade --server-side true a ./chart", {"release": "a", "has_cluster": True, "is_upgrade": True}),
    ("install --server-side a ./chart", {"release": "a", "has_cluster": True}),
    ("install ./chart -g", {"has_cluster": True}),
    ("install --wait --timeout 5m a ./chart --dry-run", {"release": "a"}),
    ("install a ./chart --dry-run=client", {"release": "a"}),
    ("install a ./chart --dry-run=server", {"release": "a", "has_cluster": True}),
    ("install a ./chart --dry-run=none", {"release": "a", "has_cluster": True}),
    ("template a ./chart", {"release": "a"}),
    ("template ./chart", {}),
    ("template a ./chart --validate --is-upgrade", {"release": "a", "has_cluster": True, "is_upgrade": True}),
    ("template a ./chart --validate=false", {"release": "a"}),
    ("template a ./chart --dry-run=server", {"release": "a", "has_cluster": True}),
    (
        "template a ./chart --kube-version 1.36 -a batch/v1/Job --api-versions=a/v1",
        {
            "release": "a",
            "version": ["--kube-version", "1.36", "--api-versions", "batch/v1/Job", "--api-versions", "a/v1"],
        },
    ),
    ("-n team --debug template a ./chart", {"release": "a", "environment": {"HELM_NAMESPACE": "team"}}),
    ("template a ./chart -nteam", {"release": "a", "environment": {"HELM_NAMESPACE": "team"}}),
    ("template a ./chart -n=team", {"release": "a", "environment": {"HELM_NAMESPACE": "team"}}),
    ("template -f -n.yaml a ./chart", {"release": "a"}),
    ("template -- a ./chart", {"release": "a"}),
    (
        "install a ./chart --kube-context=c --kubeconfig k --kube-token t --kube-insecure-skip-tls-verify",
        {
            "release": "a",
            "has_cluster": True,
            "environment": {
                "HELM_KUBECONTEXT": "c",
                "KUBECONFIG": "k",
                "HELM_KUBETOKEN": "t",
                "HELM_KUBEINSECURE_SKIP_TLS_VERIFY": "true",
            },
        },
    ),
    (
        "install a ./chart --kube-as-group one --kube-as-user u --kube-as-group=cn=a,ou=b",
        {
            "release": "a",
            "has_cluster": True,
            "environment": {"HELM_KUBEASUSER": "u"},
            "groups": ["--kube-as-group", "one", "--kube-as-group", "cn=a,ou=b"],
        },
    ),
    ("", {}),
    ("install", {"has_cluster": True}),
]


@pytest.mark.parametrize(("line", "expected"), LINES, ids=[line or "nothing" for line, _ in LINES])
def test_a_command_line_says_release_namespace_cluster_and_version(line: str, expected: dict[str, Any]) -> None:
    assert parse([*line.split(), POST]) == Caller(**{"version": [], "groups": [], "environment": {}, **expected})


def test_a_namespace_in_the_environment_is_that_of_helm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM_NAMESPACE", "team")
    assert parse(["install"]).namespace == "team"
    assert parse(["install", "-n", "other"]).namespace == "other"


def test_helm_is_found_above_the_post_renderer(tmp_path: Path) -> None:
    script = tmp_path / "helm"
    program = "from minicluster.release import caller; print(caller.find())"
    # as a plugin of Helm 4: a shell is in between
    shell = ["sh", "-c", '"$0" -c "$1"; true', sys.executable, program]
    script.write_text(f"import subprocess\nsubprocess.run({shell!r})")
    words = [sys.executable, str(script), "template", "é \n", "./chart", "-n", "team", POST]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    # the name of the script is the first word, as it is the program of this process
    assert "'HELM_NAMESPACE': 'team'" in done.stdout
    assert f"'HELM_BIN': '{Path(sys.executable).resolve()}'" in done.stdout


def test_without_helm_above_there_is_no_caller() -> None:
    assert caller.find() == Caller()
    assert Caller().namespace == ""


def test_a_process_that_can_not_be_read_is_none() -> None:
    assert caller._process(2**30) == ([], 0)


def test_a_line_for_nobody_is_on_our_own_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    Caller(pid=2**30).say("a\nb")
    Caller().say("c")
    assert capsys.readouterr().err == "minicluster: a b\nminicluster: c\n"


def test_another_helm_acts_for_the_same_user_and_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[list[str], dict[str, str]]] = []

    def run(_: str, words: list[str], *, env: dict[str, str], **__: Any) -> subprocess.CompletedProcess[bytes]:
        calls.append((words, env))
        return subprocess.CompletedProcess(words, 0, b"", b"")

    monkeypatch.setattr("minicluster.kube.tool.run", run)
    line = "install a ./chart -n team --kube-as-user u --kube-as-group one --kube-as-group two"
    document = b"apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: b}\nspec: {size: 1}\n"
    adopt.adopt(document, parse([*line.split(), POST], 1), print)
    # it is asked for its version before
    (words, environment) = calls[-1]
    assert environment == {"HELM_KUBEASUSER": "u", "HELM_NAMESPACE": "team", stream.INNER: "1"}
    place = words.index("--kube-as-group")
    assert words[place : place + 4] == ["--kube-as-group", "one", "--kube-as-group", "two"]
    assert "--" in words[place + 4 :]
