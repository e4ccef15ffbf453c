"""The check of public files: outcomes, their table, and the differences of two commits."""

import hashlib
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tools import ecosystem
from tools.clients import ClusterError
from tools.ecosystem import Outcome, PublicFile, differences, fetch, found_in, index, listed, outcome, reason, summary

MINICLUSTER = b"""kind: MiniCluster
apiVersion: flux-framework.org/v1alpha2
metadata: {name: a}
spec: {size: 2, containers: [{image: ubuntu, command: hostname}]}
"""


def file(name: str, kind: str = "MiniCluster") -> PublicFile:
    return PublicFile(kind, "org/repo", "c0ffee", f"{name}.yaml", name)


def test_each_file_of_the_list_is_there_once() -> None:
    files = listed()
    assert len({one.sha256 for one in files}) == len(files) > 600
    assert {one.kind for one in files} == {"MiniCluster", "MPIJob"}
    assert all(len(one.sha256) == 64 and len(one.commit) == 40 for one in files)


@pytest.mark.any_helm
def test_a_file_is_converted_refused_or_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def rendered(program: str, release: str, namespace: str, values: str) -> list[str]:
        assert (release, namespace, "size:" in values) == ("a", "default", True)
        if broken == program:
            raise ClusterError("two\nlines")
        return ["an object"]

    monkeypatch.setattr(ecosystem, "rendered", rendered)
    broken = ""
    one = outcome(MINICLUSTER)
    assert (one.what, one.why, outcome(MINICLUSTER)) == ("converted", "", one)
    assert outcome(MINICLUSTER.replace(b"size: 2", b"size: 3")).digest != one.digest
    assert outcome(b"kind: MiniCluster\nmetadata: {{ x }}") == Outcome(
        "refused", "the file is not YAML: found unhashable key at line 2; it is a template: render it first"
    )
    broken = "helm"
    assert outcome(MINICLUSTER) == Outcome("broken", "helm: two lines")


def test_a_summary_counts_reasons_without_what_is_a_files_own() -> None:
    found = {
        "a": Outcome("converted"),
        "b": Outcome("refused", "MiniCluster x: containers[0].image is 'a|b': must"),
        "c": Outcome("refused", "MiniCluster yy: containers[12].image is 'c': must"),
    }
    assert list(summary([file(name) for name in "abcd"], found))[2:] == [
        "| MiniCluster | converted | 1 |  |",
        "| MiniCluster | refused | 2 | containers[N].image is '…' |",
    ]
    assert reason("the file is not YAML: found unhashable key at line 5") == "the file is not YAML"
    assert reason("MPIJob a has the apiVersion b/v1: give b/v2") == "has the apiVersion b/vN"
    assert reason("MPIJob a: Worker.containers[0] has 'x': drop it") == "Worker.containers[N] has '…'"


def test_what_a_change_does_to_public_files_is_a_table() -> None:
    refused, converted, other = Outcome("refused", "why"), Outcome("converted", "", "1"), Outcome("converted", "", "2")
    base = {"a": refused, "b": converted, "c": converted}
    head = {"a": converted, "b": other, "c": converted, "d": refused}
    assert list(differences([file(name) for name in "abcd"], base, head))[2:] == [
        "| org/repo | a.yaml | refused: why | converted |",
        "| org/repo | b.yaml | converted | converted to other values or objects |",
    ]
    assert list(differences([file("c")], base, head)) == []


def test_the_list_is_made_of_clones(tmp_path: Path) -> None:
    clone, folder = tmp_path / "org+repo", tmp_path / "index"
    (clone / "deep").mkdir(parents=True)
    folder.mkdir()
    (clone / "deep" / "a.yaml").write_bytes(MINICLUSTER)
    (clone / "other.yaml").write_text("names:\n  kind: MiniCluster\n")
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], check=True)
    [found] = found_in(clone, folder)
    assert found[:2] + found[3:] == ("MiniCluster", "org/repo", "deep/a.yaml", hashlib.sha256(MINICLUSTER).hexdigest())
    assert (folder / found.sha256).read_bytes() == MINICLUSTER


class _Raw(BaseHTTPRequestHandler):
    """Serves one file, at the path that raw.githubusercontent.com has for it."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path.startswith("/org/repo/c0ffee/") else 404)
        self.end_headers()
        self.wfile.write(MINICLUSTER if self.path == "/org/repo/c0ffee/a%20b.yaml" else b"other")

    def log_message(self, *args: object) -> None:
        pass


def test_files_are_fetched_by_commit_and_hash(tmp_path: Path) -> None:
    known = hashlib.sha256(MINICLUSTER).hexdigest()
    wanted = [
        PublicFile("MiniCluster", "org/repo", "c0ffee", "a b.yaml", known),
        PublicFile("MiniCluster", "org/repo", "c0ffee", "changed.yaml", "1" * 64),
        PublicFile("MiniCluster", "org/gone", "c0ffee", "a.yaml", "2" * 64),
    ]
    with ThreadingHTTPServer(("127.0.0.1", 0), _Raw) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        source = f"http://127.0.0.1:{server.server_port}"
        assert fetch(wanted, tmp_path, source) == [
            "org/repo/c0ffee/changed.yaml: other content",
            "org/gone/c0ffee/a.yaml: HTTP 404",
        ]
        server.shutdown()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(known, MINICLUSTER)]
    # what is there is not asked for again, and an address without an answer is no traceback
    [why] = fetch(wanted[:2], tmp_path, source)
    assert why == "org/repo/c0ffee/changed.yaml: MaxRetryError"


def test_without_an_index_it_says_so(tmp_path: Path) -> None:
    for environment in ({}, {"MINICLUSTER_ECOSYSTEM": str(tmp_path / "no")}):
        with pytest.raises(
            ClusterError, match=r"MINICLUSTER_ECOSYSTEM names no folder with the files of ecosystem\.csv"
        ):
            index(environment)


@pytest.mark.any_helm
@pytest.mark.timeout(3600)
def test_no_public_file_shows_a_fault() -> None:
    try:
        folder = index()
    except ClusterError as error:
        pytest.skip(str(error))
    found = ecosystem.outcomes(listed(), folder)
    assert found
    assert {name: one for name, one in found.items() if one.what == "broken"} == {}
