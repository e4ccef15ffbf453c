"""Lists and doubled keys in the stream of any chart, and a program that has Helm in it, with both Helms."""

from pathlib import Path
from typing import Any

import pytest
from forks import forked
from support import Helm, by_name, chart_of_others, load_all

POST = ("--post-renderer", "minicluster")
LIST = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: beside}
- apiVersion: flux-framework.org/v1alpha2
  kind: MiniCluster
  metadata: {name: one, namespace: ns}
  spec: {size: 2, flux: {curveCertSecret: mine}, containers: [{image: "ubuntu:noble", command: hostname}]}
- apiVersion: flux-framework.org/v1alpha2
  kind: MiniCluster
  metadata: {name: two, namespace: ns}
  spec: {size: 2, flux: {curveCertSecret: mine}, containers: [{image: "ubuntu:noble", command: hostname}]}
"""
#: Odd spaces and a comment, which no reader and writer keeps
OTHER = """apiVersion: v1
kind:   List   # of flux-framework.org
items:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: plain,   namespace: ns}, data: {a: "x", a: "y"}}
"""
TWICE = """apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata:
  name: demo
spec:
  flux: {container: {image: "localhost:5000/view:9"}}
  containers: [{image: "rockylinux:9", command: sleep 10}]
  flux: {logLevel: 7}
"""


def separate() -> str:
    """Return the objects of LIST as documents."""
    head, *items = LIST.partition("items:\n")[2].split("\n- ")
    texts = [head.removeprefix("- "), *items]
    return "\n---\n".join(text.replace("\n  ", "\n") for text in texts)


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    return chart_of_others(tmp_path / "list", LIST)


def test_miniclusters_in_a_list_are_as_two_documents(helm: Helm, chart: Path, tmp_path: Path) -> None:
    apart = chart_of_others(tmp_path / "apart", separate())
    expected = by_name(helm.template(*POST, release="mine", chart=apart))
    assert {name for kind, name in expected if kind == "Job"} == {"one", "two"}
    assert by_name(helm.template(*POST, release="mine", chart=chart)) == expected


def test_render_and_template_take_lists(helm: Helm, chart: Path, tmp_path: Path) -> None:
    done = forked("render", stdin=helm.template(release="mine", chart=chart))
    assert {("Job", "one"), ("Job", "two"), ("ConfigMap", "beside")} <= set(by_name(done.out))
    files = forked("template", "mine", "-n", "ns", "--chart", str(chart), "--output-dir", str(tmp_path / "out"))
    assert files.code == 0, files.err
    assert {"job-one.yaml", "job-two.yaml", "configmap-beside.yaml"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }


def test_a_list_of_others_passes_byte_for_byte(tmp_path: Path) -> None:
    other = chart_of_others(tmp_path / "other", OTHER)
    assert forked("render", stdin=f"---\n{OTHER}").out == f"---\n{OTHER}"
    assert forked(stdin=f"---\n{OTHER}").out == f"---\n{OTHER}"
    done = forked("template", "mine", "-n", "ns", "--chart", str(other))
    assert OTHER in done.out
    # in a folder each object is a file, so that no Secret is hidden in a list
    forked("template", "mine", "-n", "ns", "--chart", str(other), "--output-dir", str(tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["configmap-plain.yaml"]


def test_a_secret_in_a_list_is_not_written_to_a_folder(tmp_path: Path) -> None:
    other = chart_of_others(tmp_path / "other", OTHER.replace("ConfigMap", "Secret"))
    done = forked("template", "mine", "-n", "ns", "--chart", str(other), "--output-dir", str(tmp_path / "out"))
    assert (done.code, (tmp_path / "out").exists()) == (1, False)
    assert "the Secret plain would be in" in done.err


def test_a_key_that_stands_twice_is_refused_with_the_lines_of_the_chart(helm: Helm, tmp_path: Path) -> None:
    chart = chart_of_others(tmp_path / "twice", TWICE)
    message = "the document of MiniCluster demo has the key flux twice, in lines 6 and 8: keep one of them"
    assert message in helm.fails("template", "mine", chart, *POST)
    kept = TWICE.replace("  name: demo", "  name: demo\n  annotations: {minicluster/keep: 'true'}")
    (chart / "templates" / "all.yaml").unlink(missing_ok=True)
    found = load_all(helm.template(*POST, release="mine", chart=chart_of_others(tmp_path / "kept", kept)))
    assert [one["kind"] for one in found] == ["MiniCluster"]


def test_a_program_that_has_helm_in_it_gets_no_new_certificate(helm: Helm, tmp_path: Path, seed_file: Path) -> None:
    text = LIST.replace("flux: {curveCertSecret: mine}, ", "")
    stream = helm.template(release="mine", chart=chart_of_others(tmp_path / "list", text))
    done = forked(stdin=stream)
    assert (done.code, done.out) == (1, "")
    assert "MiniCluster one has no certificate, and no Helm command is above this one" in done.err
    assert "set flux.curveCertSecret to a Secret that `minicluster keygen` makes once" in done.err
    named = forked(stdin=helm.template(release="mine", chart=chart_of_others(tmp_path / "named", LIST)))
    assert (named.code, {kind for kind, _ in by_name(named.out)}) == (0, {"ConfigMap", "Service", "Job"})
    seeded: list[Any] = [forked("render", "--curve-seed-file", str(seed_file), stdin=stream) for _ in range(2)]
    assert seeded[0].code == 0
    assert seeded[0].out == seeded[1].out
