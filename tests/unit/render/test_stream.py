import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from minicluster.documents import yamlio
from minicluster.errors import MiniClusterError, StreamError
from minicluster.render import stream
from support import GROUP, load_all

EMPTY = (
    "the stream is empty: pipe the output of `helm template` in. A step before minicluster may have failed: "
    "set -o pipefail; Helm 3's --output-dir goes past a post-renderer: use `minicluster template --output-dir`"
)
MINE = f"apiVersion: {GROUP}/v1\nkind: MiniCluster\nmetadata: {{name: a, namespace: ns}}\n".encode()


def expand(documents: Sequence[dict[str, Any]]) -> Iterator[Iterable[Mapping[str, Any]]]:
    for document in documents:
        yield [{"kind": "ConfigMap", "metadata": document["metadata"]}]


MADE = b"---\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: ns\n"


def render(data: bytes) -> bytes:
    return b"".join(stream.render(data, expand))


OTHERS = {
    "service": b"apiVersion: v1\nkind: Service\nmetadata: {name: x}\n",
    "comments": b"# Source: a/b.yaml\n# more\nkind: A # here\n# there\n",
    "anchors": b"kind: A\nx: &x {a: 1}\ny: *x\nz:\n  <<: *x\n",
    "block scalar with markers": b"kind: A\ntext: |\n  one\n  ---\n  two\n   --- three\n  ...\n",
    "folded and long": b"kind: A\ntext: >-\n  " + b"word " * 2000 + b"\n  more\n",
    "long plain": b"kind: CustomResourceDefinition\ndescription: " + b"x y " * 5000 + b"\n",
    "quotes": b"kind: A\na: 'it''s'\nb: \"\\u00e9\\x41\\\n  z\"\n",
    "flow": b"{kind: A, x: [1, 2, {a: b}]}\n",
    "json": json.dumps({"kind": "A", "text": "a\n---\nb"}).encode() + b"\n",
    "json on lines": json.dumps({"kind": "A", "x": [1]}, indent=2).encode() + b"\n",
    "crlf": b"kind: A\r\nx:\r\n  - 1\r\ntext: |\r\n  a\r\n  b\r\n",
    "crlf markers": b"kind: A\r\n---\r\nkind: B\r\n---\r\n",
    "hook": b'kind: Pod\nmetadata:\n  annotations: {"helm.sh/hook": "test", "helm.sh/hook-weight": "-1"}\n',
    "tabs and blanks": b"kind: A   \n\n\n  \nx: 1\t\n\n",
    "numbers": b"kind: A\na: 012\nb: 1e3\nc: 0x1F\nd: 1_000\ne: 1:30\nf: .5\ng: 1.10\n",
    "words": b"kind: A\na: yes\nb: No\nc: ~\nd: null\ne: on\nf: =\ng: 2001-99-99\n",
    "date": b"kind: A\na: 2001-01-01\n",
    "unicode": "kind: A\nx: é 日本 🚀 \u00a0\n".encode(),
    "bom": b"\xef\xbb\xbfkind: A\n",
    "no last newline": b"kind: A\nx: 1",
    "no last newline in a block": b"kind: A\nx: |+\n  a",
    "document end": b"kind: A\n...\n",
    "directive": b"%YAML 1.1\n---\nkind: A\n",
    "marker with a comment": b"--- # here\nkind: A\n",
    "marker with content": b"--- {kind: A}\n",
    "empty documents": b"---\n---\n# only this\n---\n\n---\n",
    "a longer dash": b"kind: A\n----: 1\n---x: 2\n",
    "tags": b"kind: A\nx: !!str 1\ny: !!binary aGk=\n",
    "another kind of minicluster": b"apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: x}\n",
    "our name in a text": f"kind: A\nx: |\n  apiVersion: {GROUP}/v1\n  kind: MiniCluster\n".encode(),
    "our name in a comment": f"# {GROUP}/v1\nkind: A\n".encode(),
    "our group as a name": f"apiVersion: v1\nkind: A\nx: {GROUP}/v1\n".encode(),
    "our group with more": f"apiVersion: {GROUP}.org/v1\nkind: MiniCluster\nmetadata: {{name: x}}\n".encode(),
}
#: Documents that can't stand between two markers.
ALONE = ("directive", "bom", "no last newline", "no last newline in a block")


def test_a_stream_without_a_minicluster_passes_unchanged() -> None:
    texts = [text for name, text in OTHERS.items() if name not in ALONE]
    data = b"---\n" + b"---\n".join(texts)
    assert render(data) == data


@pytest.mark.parametrize("name", list(OTHERS))
def test_a_document_that_is_alone_passes_unchanged(name: str) -> None:
    assert render(OTHERS[name]) == OTHERS[name]


@pytest.mark.parametrize("text", [b"kind: A\nenum: [=]\n", b"kind: A\nx: 2001-99-99\n"])
def test_a_document_that_pyyaml_can_not_load_passes_unchanged(text: bytes) -> None:
    assert render(text) == text


@pytest.mark.parametrize("other", list(OTHERS.values()), ids=list(OTHERS))
@pytest.mark.parametrize("order", ["before", "after", "both"])
def test_a_document_beside_a_minicluster_passes_unchanged(other: bytes, order: str) -> None:
    before = other if order in ("before", "both") else b""
    after = b"---\n" + other if order in ("after", "both") else b""
    newline = b"" if before.endswith(b"\n") or not before else b"\n"
    assert render(before + newline + b"---\n" + MINE + after) == before + newline + MADE + after


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (b"a\n---\nb\n", 2),
        (b"a\n--- # c\nb\n", 2),
        (b"a\n---\tb\n", 2),
        (b"a\r\n---\r\nb", 2),
        (b"a\n---", 2),
        (b"a\n----\nb\n", 1),
        (b"a\n---b: 1\n", 1),
        (b"a\n ---\nb\n", 1),
        (b"a: |\n  x\n  ---\n  y\n", 1),
    ],
)
def test_a_stream_is_split_at_document_markers_only(data: bytes, parts: int) -> None:
    assert len(list(stream.split(data))) == parts


def test_a_rendered_minicluster_starts_on_a_line_of_its_own() -> None:
    assert render(b"kind: A\n---\n" + MINE) == b"kind: A\n" + MADE
    assert list(stream.split(b"a: 1\n---\nb: 2")) == [b"a: 1\n", b"---\nb: 2"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(MINE, id="plain"),
        pytest.param(b"---\n" + MINE, id="marker"),
        pytest.param(b"---\r\n" + MINE.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(b"--- # comment\n" + MINE, id="marker with a comment"),
        pytest.param(b"---\n# Source: x\n" + MINE + b"# end\n", id="comments around"),
        pytest.param(b"\xef\xbb\xbf" + MINE, id="byte order mark"),
        pytest.param(MINE.rstrip(b"\n"), id="no last newline"),
        pytest.param(b"---\n" + MINE + b"...\n", id="end marker"),
        pytest.param(json.dumps(yaml.safe_load(MINE)).encode(), id="JSON on one line"),
        pytest.param(json.dumps(yaml.safe_load(MINE), indent=1).encode(), id="JSON on several lines"),
        pytest.param(b"--- " + json.dumps(yaml.safe_load(MINE)).encode(), id="JSON behind a marker"),
    ],
)
def test_a_minicluster_is_found_in_any_yaml_or_json_notation(text: bytes) -> None:
    assert render(text) == MADE


@pytest.mark.parametrize("kind", [b"kind: Job\n", b"kind:  'Job' # here\n", b'kind: "Job"\r\n'])
def test_what_pods_mount_comes_before_the_first_job(kind: bytes) -> None:
    """Helm 3 creates the objects in the order of the stream."""
    service, job, other = b"---\nkind: Service\n", b"---\n" + kind, b"---\nkind: JobSet\n"
    mine = b"---\n" + MINE
    assert render(service + other + job + job + mine + other) == service + other + MADE + job + job + other
    assert render(kind + mine) == MADE + job
    assert render(mine + job) == MADE + job


def test_two_miniclusters_are_both_rendered() -> None:
    other = MINE.replace(b"name: a", b"name: b")
    elsewhere = MINE.replace(b"namespace: ns", b"namespace: other")
    names = [d["metadata"]["name"] for d in load_all(render(b"---\n".join([MINE, other, elsewhere])))]
    assert names == ["a", "b", "a"]


def test_a_rendered_stream_passes_through_again_unchanged() -> None:
    once = render(OTHERS["service"] + b"---\n" + MINE)
    assert render(once) == once


@given(
    st.lists(
        st.sampled_from(
            [b"---\n", b"--- \n", b"---", b"----\n", b" ---\n", b"a: 1\n", b"\n", b"\r\n", b"x", b"# c\n", b"...\n"]
        ),
        max_size=12,
    )
)
def test_the_parts_of_any_stream_join_to_the_stream(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    parts = list(stream.split(data))
    assert b"".join(parts) == data
    assert all(parts)


DOCUMENTS = st.dictionaries(
    st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=8),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=30),
        lambda item: st.lists(item, max_size=3) | st.dictionaries(st.text(max_size=5), item, max_size=3),
        max_leaves=5,
    ),
    min_size=1,
)


@given(st.lists(DOCUMENTS, max_size=5), st.integers(0, 5), st.sampled_from([None, "|", ">", '"']), st.booleans())
def test_any_documents_around_a_minicluster_are_kept(
    documents: list[dict[str, Any]], place: int, style: str | None, unicode: bool
) -> None:
    texts = [
        yaml.dump(d, default_style=style, explicit_start=True, allow_unicode=unicode, encoding="utf-8")
        for d in documents
    ]
    place = min(place, len(texts))
    data = b"".join([*texts[:place], b"---\n", MINE, *texts[place:]])
    assert render(data) == b"".join([*texts[:place], MADE, *texts[place:]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", EMPTY),
        (b" \n\t\n", EMPTY),
        (b"a: [1\n", "the stream is not YAML: did not find expected ',' or ']' at line 2"),
        (
            b"kind: A\n---\na: b: c\n",
            "the stream is not YAML: mapping values are not allowed in this context at line 3",
        ),
        (b"a: \x01\n", "the stream is not YAML: it cannot be read"),
        (b"\xff\xfe\xff", "the stream is not YAML: it cannot be read"),
        (b"Error: chart not found\nUsage\n", "the stream is not YAML: "),
        (b"not found\n", "the stream is not Kubernetes manifests: pipe the output of `helm template` in"),
        (b"- a\n- b\n", "the stream is not Kubernetes manifests: pipe the output of `helm template` in"),
        (MINE + b"---\n" + MINE, "two MiniCluster documents are named a in namespace ns: give one a nameOverride"),
        (MINE + b"spec: [\n", "a MiniCluster document is not YAML: "),
        (
            MINE.replace(b"/v1", b"/v2"),
            f"{GROUP}/v2 MiniCluster: this post-renderer knows {GROUP}/v1 MiniCluster only; "
            "use the minicluster package of the chart's version",
        ),
        (
            MINE.replace(b"/v1", b""),
            f"{GROUP} MiniCluster: this post-renderer knows {GROUP}/v1 MiniCluster only; "
            "use the minicluster package of the chart's version",
        ),
        (
            f"apiVersion: {GROUP}/v1\nkind: MiniCluster\n".encode(),
            "a MiniCluster document has no metadata: give it a name and a namespace",
        ),
        (
            f"apiVersion: {GROUP}/v1\nkind: MiniCluster\nmetadata: x\n".encode(),
            "a MiniCluster document has no metadata: give it a name and a namespace",
        ),
    ],
)
def test_each_kind_of_bad_stream_has_an_error_of_its_own(data: bytes, message: str) -> None:
    with pytest.raises(StreamError) as caught:
        render(data)
    if message.endswith(": "):
        assert str(caught.value).startswith(message)
    else:
        assert str(caught.value) == message


NOT_MANIFESTS = "the stream is not Kubernetes manifests: pipe the output of `helm template` in"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"one two three\n", NOT_MANIFESTS),
        (b"- a\n", NOT_MANIFESTS),
        (b'["', NOT_MANIFESTS),
        ("é".encode() * 31, NOT_MANIFESTS),
        (b"12:00: x: y\n", "the stream is not YAML: mapping values are not allowed in this context at line 1"),
        # cut off in the middle, that may be anything
        (b'{"a": "', ""),
        (b"kind: A\n", ""),
    ],
)
def test_a_long_stream_is_scanned_in_less_than_a_second(line: bytes, message: str) -> None:
    data = line * (6_000_000 // len(line))
    begin = time.process_time()
    if message:
        with pytest.raises(StreamError, match=re.escape(message)):
            render(data)
    else:
        assert render(data) == data
    assert time.process_time() - begin < 1


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_pass_unchanged_or_are_refused_in_one_line(data: bytes) -> None:
    try:
        assert render(data) == data
    except MiniClusterError as error:
        assert len(str(error).splitlines()) == 1


def test_documents_other_than_miniclusters_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    def load(chunk: bytes) -> Any:
        parsed.append(chunk)
        return original(chunk)

    original = yamlio.load
    monkeypatch.setattr(yamlio, "load", load)
    # loading them takes a hundred times as long as a scan
    render(b"---\n".join([OTHERS["long plain"], OTHERS["block scalar with markers"], MINE]))
    assert parsed == [b"---\n" + MINE]


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.text(max_size=40), max_size=4))
def test_written_yaml_reads_back_as_the_same_document(data: dict[str, str]) -> None:
    document = {"kind": "ConfigMap", "data": data}
    assert load_all(yamlio.dump(document)) == [document]


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=9) | st.text(min_size=201, max_size=220), max_size=6))
def test_dump_manifest_writes_the_same_text_as_dump(data: dict[str, str]) -> None:
    manifest = {"kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}
    # the second time, the long texts are those of the first
    assert [yamlio.dump_manifest(manifest) for _ in range(2)] == [yamlio.dump(manifest)] * 2


def test_texts_of_several_lines_are_written_as_block_scalars() -> None:
    assert yamlio.dump({"a": "x\ny\n", "b": "z"}) == b"---\na: |\n  x\n  y\nb: z\n"
