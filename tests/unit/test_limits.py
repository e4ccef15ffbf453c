"""YAML that is too deep or too large is refused at once, by each reader."""

import subprocess
import sys

import pytest
import yaml
from minicluster.documents import limits, yamlio


def chain(length: int, width: int, merge: bool = False) -> bytes:
    """Return anchors; each contains several aliases of the one before."""
    form = "a{0}: &a{0} {{<<: [{1}]}}" if merge else "a{0}: &a{0} [{1}]"
    lines = [form.format(n, ",".join([f"*a{n - 1}"] * width)) for n in range(1, length)]
    return "\n".join(["a0: &a0 {x: 1}", *lines]).encode()


#: A refusal comes before as many characters are read.
EARLY = 10_000


def read(error: yaml.MarkedYAMLError) -> int:
    assert error.problem_mark
    return error.problem_mark.index


DEEP = "it is nested more than 100 levels deep"
COPIES = "its aliases expand to more than 100000 values"
LONG = "mount a file in place of the text of 3145729 characters, Kubernetes takes at most 3145728,"
REFUSED: dict[str, tuple[bytes, str]] = {
    "lists": (b"[" * 120_000, DEEP),
    "maps": (b"{a," * 40_000, DEEP),
    "maps in values": (b"{a: " * 40_000, DEEP),
    "lists of lines": (b"- " * 120_000, DEEP),
    "keys of keys": (b"? " * 120_000, DEEP),
    "indented": (b"\n".join(b" " * n + b"a:" for n in range(200)), DEEP),
    "one too many": (b"[" * 101 + b"]" * 101, DEEP),
    "by aliases": (chain(120, 1), DEEP),
    "a bomb": (chain(30, 9), COPIES),
    "a bomb of merges": (chain(30, 9, merge=True), COPIES),
    "a long text": (b"a: &a '" + b"x" * 6_400 + b"'\nb: [" + b"*a," * 1_001 + b"]", COPIES),
    "a text": (b"a: '" + b"x" * 3_145_729 + b"'", LONG),
    "a block": (b"a: |\n " + b"x" * 3_145_729, LONG),
    "itself": (b"a: &a [*a]", "the alias a is inside the value that it stands for"),
    "itself as a value": (b"&a {x: *a}", "the alias a is inside the value that it stands for"),
    "in the second document": (b"a: 1\n---\n" + b"[" * 120_000, DEEP),
}


@pytest.mark.parametrize("case", REFUSED)
def test_yaml_that_is_too_deep_or_too_large_is_refused_at_once(case: str) -> None:
    data, message = REFUSED[case]
    with pytest.raises(yaml.MarkedYAMLError) as error:
        list(yamlio.load_all(data))
    assert yamlio.problem(error.value).startswith(f"is not YAML: {message} at line ")
    assert read(error.value) < EARLY


ALLOWED: dict[str, bytes] = {
    "100 levels": b"[" * 100 + b"]" * 100,
    "many values": b"a: b\n" * 50_000,
    "wide": b"{" + b"a," * 60_000 + b"}",
    "aliases": b"a: &a {x: 1}\n" + b"b: [" + b"*a," * 10_000 + b"]",
    "an anchor of an earlier document": b"a: &a [1]\n---\na: &a [2]\nb: *a\n",
}


@pytest.mark.parametrize("case", ALLOWED)
def test_yaml_within_the_limits_is_read(case: str) -> None:
    assert list(yamlio.load_all(ALLOWED[case], duplicates=True))


def test_the_pure_python_parser_has_the_same_limits() -> None:
    with pytest.raises(yaml.MarkedYAMLError) as error:
        limits.check(b"{a," * 40_000, yaml.SafeLoader)
    assert read(error.value) < EARLY


@pytest.mark.parametrize("words", [["render"], ["convert", "-"], []], ids=["render", "convert", "post-renderer"])
def test_commands_refuse_yaml_that_is_too_deep_in_one_line(words: list[str]) -> None:
    group = b"# post-renderer-required.add--post-renderer-minicluster\n"
    done = subprocess.run(
        [sys.executable, "-m", "minicluster", *words],
        input=group + b"[" * 1_000_000,
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.endswith(f"is not YAML: {DEEP} at line 2\n".encode())
    assert done.stderr.count(b"\n") == 1
