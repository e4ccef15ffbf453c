"""A key that stands twice in a map is refused with both its lines, where a MiniCluster or its values are read."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from minicluster.burst.root import parse_values
from minicluster.convert import convert
from minicluster.documents import yamlio
from minicluster.errors import BurstError, ConvertError, SpecError, StreamError
from minicluster.release import helm, manifests
from minicluster.render import stream

CLUSTER = """apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata: {name: demo}
spec:
  containers: [{image: a}]
  flux:
    container: {image: b}
  size: 1
  flux:
    logLevel: 7
"""
HAND_OVER = (
    f"apiVersion: {stream.API_GROUP}/v1\nkind: MiniCluster\nmetadata: {{name: a}}\nspec: {{size: 1}}\nspec: {{}}\n"
)

TWICE: dict[str, tuple[str, str]] = {
    "block": ("a: 1\nb: 2\na: 3\n", "the key a twice, in lines 1 and 3"),
    "flow": ("x:\n  {a: 1, a: 1}\n", "the key a twice, in line 2"),
    "deep": ("x:\n- y:\n    a: 1\n    'a': 2\n", "the key a twice, in lines 3 and 4"),
    "number and text": ("x: {1: a, '1': b}\n", "the key 1 twice, in line 1"),
    "three": ("a: 1\na: 2\na: 3\n", "the key a twice, in lines 1 and 2"),
    "alias": ("x: &k a\ny:\n  a: 1\n  *k : 2\n", "the key a twice, in lines 1 and 3"),
    "beside a merge": ("x: &x {a: 1}\ny:\n  <<: *x\n  b: 1\n  b: 2\n", "the key b twice, in lines 4 and 5"),
    "json": ('{"a": 1,\n "a": 2}', "the key a twice, in lines 1 and 2"),
}
#: A merge brings keys that the map itself may have, also when another map merges that one first
MERGED = """
base: &base {a: 1, b: 1}
outer:
  inner: &inner {<<: *base, a: 2}
first: {<<: *inner, a: 3}
both: {<<: [*base, *inner], b: 4}
again: {<<: *base, <<: *inner}
"""


@pytest.mark.parametrize("case", TWICE)
def test_a_key_that_stands_twice_is_refused_with_its_lines(case: str) -> None:
    text, message = TWICE[case]
    with pytest.raises(yamlio.DuplicateKeyError) as caught:
        yamlio.load(text)
    assert yamlio.problem(caught.value) == f"has {message}: keep one of them"


def test_keys_that_a_merge_brings_are_no_duplicates() -> None:
    found = yamlio.load(MERGED)
    assert found["first"] == {"a": 3, "b": 1}
    assert found["both"]["b"] == 4
    assert found["outer"]["inner"] == {"a": 2, "b": 1}


def test_a_document_of_others_may_have_a_key_twice() -> None:
    assert yamlio.load("a: 1\na: 2\n", duplicates=True) == {"a": 2}


def test_convert_refuses_a_key_twice() -> None:
    with pytest.raises(ConvertError) as caught:
        convert(CLUSTER.encode())
    assert str(caught.value) == "the file has the key flux twice, in lines 6 and 9: keep one of them"


def test_a_hand_over_document_with_a_key_twice_is_refused() -> None:
    with pytest.raises(StreamError) as caught:
        stream.parse(HAND_OVER.encode())
    assert str(caught.value) == "a MiniCluster document has the key spec twice, in lines 4 and 5: keep one of them"


def test_the_values_of_a_root_with_a_key_twice_are_refused() -> None:
    with pytest.raises(BurstError) as caught:
        parse_values(b"size: 1\nsize: 2\n")
    assert str(caught.value) == "the root's values file has the key size twice, in lines 1 and 2: keep one of them"


def test_a_values_file_with_a_key_twice_is_refused_before_helm_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("size: 1\nsize: 2\n")
    with pytest.raises(SpecError) as caught:
        helm.template(helm.OfflineRelease("a", "ns", [f"--values={path}"]))
    assert str(caught.value) == f"{path} has the key size twice, in lines 1 and 2: keep one of them"


@pytest.mark.parametrize("words", [["--values=https://x/a.yaml"], ["--set=size=1"], ["--values=-"]])
def test_only_files_are_looked_at(words: list[str]) -> None:
    helm.check_files(words)


def test_what_helm_says_of_a_values_file_stays_its_own(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [")
    helm.check_files([f"--values={tmp_path / 'bad.yaml'}"])


def test_objects_of_others_with_a_key_twice_are_rendered() -> None:
    text = b"kind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: x\n  a: y\n"
    (found,) = manifests.parse(text)
    assert found.text == text


def test_keys_are_checked_in_a_fraction_of_the_time_to_read() -> None:
    # a quadratic check would look at them ten million times
    data: dict[str, Any] = {f"k{n}": {"a": n} for n in range(5_000)}
    assert yamlio.load(json.dumps(data)) == data
    with pytest.raises(yaml.YAMLError):
        yamlio.load(yamlio.dump(data) + b"k0: {}\n")
