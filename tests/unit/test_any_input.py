"""For any input, a command gives its output or an error of its own in one line, and no other exception."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from minicluster import flux
from minicluster.burst import plan, root
from minicluster.burst.address import Address
from minicluster.commands import argocd
from minicluster.convert import convert
from minicluster.errors import MESSAGE_CHARACTERS, MiniClusterError
from minicluster.release import manifests
from minicluster.render import constants, curve, postrender, schema
from minicluster.render.load import load
from support import CERTIFICATE, GROUP, SEED

#: Plain scalars that break some reader, or the code after it.
SCALARS = (
    *("1e400", "-1e400", "1.0e+400", "0b_", "0x_", "0o8", "-", ".inf", "-.inf", ".nan", "1" * 5000, "0." + "1" * 5000),
    *(
        "~",
        "true",
        "y",
        "2024-01-01",
        "2024-99-99",
        "1:30:00",
        "<<",
        "=",
        "!!binary x",
        "!!binary aQ==",
        "!!binary /w==",
    ),
    *("!!bool x", "!!int x", "!!float x", "!!timestamp x", "!!null x", "!!set {a}", "!!omap [a: 1]", "!!pairs [a: 1]"),
    *(
        "!!python/object:os.system x",
        "!x y",
        "!number [1]",
        "[]",
        "{}",
        "''",
        '"\\ud800"',
        '"\\0"',
        '"\\u2028"',
        "&a [*a]",
    ),
    *("*b", "? [a]", "{[a]: b}", "{1: 2}", "{~: 1}", "{true: 1}", "18446744073709551616", "-9223372036854775809", "0"),
)
SCALAR = st.sampled_from(SCALARS)
FIELDS = sorted(
    set(json.loads(schema.SCHEMA.read_text())["properties"])
    | set(json.dumps(constants.default_values()).split('"')[1::2])
)
NAMES = st.sampled_from([*FIELDS, "name", "command", "image", "runFlux", "v", "path", "cpu", "limits", "resources"])
TEXT = st.recursive(
    SCALAR,
    lambda inner: (
        st.lists(inner, max_size=2).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(NAMES | SCALAR, inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}"
        )
    ),
    max_leaves=8,
)
SPECS = st.dictionaries(NAMES, TEXT, max_size=4).map(
    lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}"
)
METADATA = (
    st.sampled_from(["{name: a}", "{name: a, namespace: b}"])
    | TEXT
    | st.dictionaries(st.sampled_from(["name", "namespace", "labels", "annotations"]), TEXT, max_size=4).map(
        lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in ({"name": "a"} | items).items()) + "}"
    )
)

any_speed = settings(suppress_health_check=list(HealthCheck))


def one_line(call: Callable[[], object]) -> None:
    try:
        call()
    except MiniClusterError as error:
        assert len(str(error).splitlines()) == 1
        assert str(error).isprintable()
        assert len(str(error)) <= MESSAGE_CHARACTERS


@any_speed
@given(METADATA, SPECS | TEXT, TEXT)
@example("{name: a, labels: [x]}", "{}", "~")
@example("{name: a}", "[]", "~")
@example("{name: a}", "{}", "{a: b}")
def test_any_minicluster_document_is_rendered_or_refused_in_one_line(
    metadata: str, values: str, certificate: str
) -> None:
    text = (
        f"apiVersion: {GROUP}/v1\nkind: MiniCluster\nmetadata: {metadata}\nspec: {values}\ncertificate: {certificate}\n"
    )
    one_line(lambda: postrender.render(text.encode(errors="surrogatepass"), SEED, allow_random=False))


@any_speed
@given(METADATA, SPECS | TEXT, st.sampled_from(["v1alpha1", "v1alpha2"]))
def test_any_minicluster_of_flux_operator_is_converted_or_refused_in_one_line(
    metadata: str, values: str, version: str
) -> None:
    text = f"apiVersion: flux-framework.org/{version}\nkind: MiniCluster\nmetadata: {metadata}\nspec: {values}\n"
    one_line(lambda: convert(text.encode(errors="surrogatepass")))


@any_speed
@given(st.sampled_from(["{}", "{name: a}"]) | TEXT, TEXT, SPECS | TEXT)
def test_any_manifest_is_read_or_refused_in_one_line(metadata: str, kind: str, values: str) -> None:
    text = f"apiVersion: v1\nkind: {kind}\nmetadata: {metadata}\nspec: {values}\n"

    def all_of_it() -> None:
        objects = list(manifests.parse(text.encode(errors="surrogatepass")))
        manifests.join(objects)
        manifests.self_removing_job(objects)

    one_line(all_of_it)


@any_speed
@given(metadata=TEXT, frozen=TEXT)
@example("{annotations: {minicluster/immutable: '['}}", "1")
@example("~", "{}")
def test_any_manifest_in_the_output_folder_is_compared_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, metadata: str, frozen: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    job = b"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, annotations: {minicluster/immutable: '{\"a\": 1}'}}\n"
    new = list(manifests.parse(job))
    text = f"kind: Job\nmetadata: {metadata}\n{frozen}: 1\n"
    (folder / "job-a.yaml").write_bytes(text.encode(errors="surrogatepass"))
    one_line(lambda: list(manifests.immutable_changes(new, folder)))


@any_speed
@given(st.binary(max_size=80) | TEXT.map(lambda text: text.encode(errors="surrogatepass")))
def test_any_bytes_are_read_or_refused_in_one_line(data: bytes) -> None:
    for call in (
        lambda: postrender.render(data, SEED, allow_random=False),
        lambda: postrender.render(b"# " + GROUP.encode() + b"\n" + data, SEED, allow_random=False),
        lambda: convert(data),
        lambda: list(manifests.parse(data)),
        lambda: root.parse_values(data),
    ):
        one_line(call)


@any_speed
@given(SPECS)
def test_any_values_of_a_root_are_read_or_refused_in_one_line(values: str) -> None:
    def made() -> None:
        cluster = load({"metadata": {"name": "root"}, "spec": root.parse_values(values.encode(errors="surrogatepass"))})
        plan.find(cluster, "burst-0")

    one_line(made)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "string", "array", "map", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)
PARAMETER = st.fixed_dictionaries(
    {"name": st.sampled_from([*argocd.PARAMETERS]) | JSON},
    optional={"string": JSON, "array": JSON, "map": JSON | st.dictionaries(st.text(max_size=5), SCALAR, max_size=2)},
)


@any_speed
@given(st.lists(PARAMETER, max_size=3).map(json.dumps) | JSON.map(json.dumps) | st.text(max_size=10))
@example('[{"name": "set", "map": {"a": "[[["}}]')
@example('[{"name": "set", "map": {"a": "\\ud800"}}]')
@example('[{"name": "values-files", "array": ["\\u0000"]}]')
@example('[{"name": "values-files", "array": ["\\ud800"]}]')
@example("[" * 100_000)
def test_any_argo_cd_parameters_are_read_or_refused_in_one_line(parameters: str) -> None:
    environment = {
        "ARGOCD_APP_PARAMETERS": parameters,
        "ARGOCD_APP_NAME": "a",
        "ARGOCD_APP_NAMESPACE": "b",
        "ARGOCD_APP_SOURCE_PATH": ".",
    }
    one_line(lambda: argocd.release(environment, Path("/")))


@any_speed
@given(st.text(max_size=30) | st.sampled_from(["a[0-", "a[0-999999999999]", "a[5-1]", "[", "a[00-1]", "a[1-2"]))
def test_any_text_as_a_hostlist_is_read_or_refused_in_one_line(text: str) -> None:
    one_line(lambda: list(flux.expand_hosts(text)))
    one_line(lambda: Address.parse(text, 1))


@any_speed
@given(st.text(max_size=30) | st.sampled_from([CERTIFICATE, CERTIFICATE * 2, CERTIFICATE[:-60]]))
def test_any_text_as_a_certificate_is_read_or_refused_in_one_line(text: str) -> None:
    one_line(lambda: curve.keys(text))


def test_a_yaml_text_is_never_evaluated_as_python() -> Any:
    with pytest.raises(MiniClusterError):
        text = f"# {GROUP}\na: !!python/object/apply:os.system [exit 1]\n"
        postrender.render(text.encode(), SEED, allow_random=False)
