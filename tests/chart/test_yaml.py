"""Go's YAML reader in Helm (sigs.k8s.io/yaml) reads what we write as it was, and we read YAML as it does."""

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import click.testing
import pytest
import yaml
from goreader import Read, reader
from hypothesis import given, settings
from hypothesis import strategies as st
from minicluster.documents import yamlio
from support import Helm, front_door

#: Texts that some YAML reader takes for another type.
TRAPS = [
    *("", "~", "null", "Null", "NULL", "nil", "none", "y", "Y", "n", "N", "yes", "Yes", "no", "NO", "on", "On", "off"),
    *("true", "True", "TRUE", "tRUE", "false", "FALSE", "t", "f", "1e3", "1E3", "12e03", "1234e56", "1e400"),
    *("1.0e+400", "1.0e400", "0.1e-400", "1e-7", "1.e3", "1e", "1e+", ".e5", "e3", "e-3", "0", "-0", "00", "012"),
    *("0777", "08", "09", "0123489", "0o17", "0o8", "0O17", "0b1", "0b2", "0B1", "0b_", "0x1F", "0X1f", "0x", "0xg"),
    *("0x_1", "0x1p-2", "0xFFFFFFFFFFFFFFFF", "0x1FFFFFFFFFFFFFFFF", "18446744073709551615", "18446744073709551616"),
    *("9223372036854775808", "-9223372036854775808", "-9223372036854775809", "0b" + "1" * 64),
    *("0o7777777777777777777777", "1_000", "1__0", "1_", "_1", "-_1", "+_", "0_8", "1_0.5", ".1_0", "1_0e3", "_", "-1"),
    *("+1", "+0x1f", "-0b1", "--1", ".5", "5.", "-.5", "+.5", ".", "..", "...", "-", "--", "---", "+", ".inf", "-.Inf"),
    *("+.INF", "inf", "-inf", "nan", ".nan", ".NaN", "Infinity", "1:30", "1:30:30", "-190:20:30.15", "60:00", "1.5:30"),
    *("2001-01-01", "2024-13-45", "2001-12-14t21:59:43.10-05:00", "2001-01-01T00:00:00Z", "2001-1-1 1:1:1", "<<", "="),
    *("!", "!!str", "!!binary aGk=", "&a", "*a", "?", "? a", ":", ": a", "a:", "a: b", "a #b", "#a", "a#b", "[", "]"),
    *("[a]", "{", "}", "{a}", ",", "a,b", "%", "%YAML 1.1", "@a", "`a`", "|", "|-", ">", ">-\n a", "'", "''", '"'),
    *('""', "it's", "\\", "\\n", "a\\", "/", "//", "\t", "\ta", "a\t", "a\tb", "\ta\nb", "a\n\tb", " ", " a", "a "),
    *("a  b", "\n", "\n\n", "a\n", "\na", "\n a\n", " a\nb", "a\nb", "a\nb\n", "a\nb\n\n", "a\n\nb", "a \nb"),
    *("a\n b\n  c", "a\n---\nb", "---\na: b", "a\n...\nb", "- a\n- b", "a\u2028b", "a\nb\u2028c: d", "a\n\u2029b"),
    *("\u2028", "a\x85b", "a\nb\x85c: d", "\ufeffa", "a\n\ufeff", "a\rb", "a\r\nb"),
    *("é", "日本", "🚀", "\xa0", "\u200b"),
    *("\u0001", "\x1b", "\x7f", "\ufffe", "\uffff", "1Gi", "500m", "4GB", "1.2.3", "v1", "x" * 3000, "word " * 600),
    *("word\n" * 60, "y" * 130, "1" * 200),
]


@pytest.fixture(scope="module")
def read(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Read:
    """Read by one Helm and the other."""
    return reader(helm, tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="module")
def both(helm3: Helm, helm4: Helm, tmp_path_factory: pytest.TempPathFactory) -> list[Read]:
    """Read by both Helms, for properties."""
    return [reader(helm, tmp_path_factory.mktemp("reader")) for helm in (helm3, helm4)]


@pytest.fixture(scope="module")
def as_values(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Read a values file by Helm."""
    chart = tmp_path_factory.mktemp("values")
    (chart / "templates").mkdir()
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: values\nversion: 0.1.0\n")
    (chart / "templates" / "all.yaml").write_text("x: {{ toJson .Values | b64enc }}\n")
    return lambda text: json.loads(base64.b64decode(yaml.safe_load(helm.template(values=text, chart=chart))["x"]))


def everywhere(texts: list[str]) -> dict[str, Any]:
    """Return a document that has texts as values and keys, in lists and maps, shallow and deep."""
    return {
        "list": texts,
        "map": {f"k{n}": text for n, text in enumerate(texts)},
        "keys": dict.fromkeys(texts, "v"),
        "lists": [[text, [text]] for text in texts],
        "deep": [{"a": text, "b": {"c": [text], "d": text}} for text in texts],
        "others": [0, 1, -1, 2**53, 0.5, 1e-7, 1.5e300, True, False, None, {}, []],
    }


TEXT = st.text(
    st.sampled_from("yYnNotrueflsax018e+-_.:<=~ \n\t#'\"\\&*!|>%@`[]{},?\x85\u2028\u2029\ufeffé🚀")
    | st.characters(codec="utf-8"),
    max_size=12,
)
# few long lists: each is read by a Helm of its own
BATCH = st.lists(TEXT, min_size=150, max_size=400)


def test_go_reads_difficult_texts_as_we_wrote_them(read: Read, as_values: Callable[[str], Any]) -> None:
    document = everywhere(TRAPS)
    text = yamlio.dump(document).decode()
    assert read([text]) == [document]
    assert as_values(text) == {**document, "map": document["map"]}
    assert yamlio.load(text) == document


@given(texts=BATCH)
@settings(max_examples=4)
def test_go_reads_any_text_as_we_wrote_it(both: list[Read], texts: list[str]) -> None:
    document = everywhere(texts)
    text = yamlio.dump(document).decode()
    assert yamlio.load(text) == document
    for go in both:
        assert go([text]) == [document]


@pytest.mark.parametrize("trap", ["y", "08", "1e3", "0o17", "1234e56", "<<", "2001-01-01", "1:30", "~", "=", ".5"])
def test_a_text_that_yaml_could_read_as_another_type_is_quoted(trap: str) -> None:
    assert yamlio.dump({trap: trap}).decode() == f"---\n'{trap}': '{trap}'\n"


def test_a_text_that_needs_no_quotes_is_written_without() -> None:
    texts = ["flux submit", "ghcr.io/a/b:c", "/mnt/flux", "kary:32", "yes and no", "None", "a-b"]
    assert yamlio.dump(texts).decode() == "---\n" + "".join(f"- {text}\n" for text in texts)
    assert yamlio.dump({"a": "x\ny\n"}) == b"---\na: |\n  x\n  y\n"


def one_kind_of_number(value: Any) -> Any:
    """Return a value as after JSON in Go, which has floats only."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def same(text: str, gos: Any) -> bool:
    """Tell whether we read a document as Go does, or refuse what it refuses."""
    try:
        mine = yamlio.load(text)
    except yaml.YAMLError:
        return set(gos) == {"Error"}
    ours, theirs = one_kind_of_number(mine.get("v")), one_kind_of_number(gos.get("v"))
    return mine.keys() == gos.keys() and type(ours) is type(theirs) and ours == theirs


PLAIN = [trap for trap in TRAPS if trap.strip() == trap and "\n" not in trap]
SCALAR = st.text(st.sampled_from("yYnNoOtrueflsaxXbBEe0123456789+-_.:<=~ "), min_size=1, max_size=9)


def test_we_read_a_plain_scalar_as_go_does(read: Read) -> None:
    texts = [f"v: {trap}\n" for trap in PLAIN]
    assert [text for text, found in zip(texts, read(texts), strict=True) if not same(text, found)] == []


@given(scalars=st.lists(SCALAR, min_size=300, max_size=800))
@settings(max_examples=4)
def test_we_read_any_plain_scalar_as_go_does(both: list[Read], scalars: list[str]) -> None:
    texts = [f"v: {scalar}\n" for scalar in scalars]
    for go in both:
        assert [text for text, found in zip(texts, go(texts), strict=True) if not same(text, found)] == []


DOCUMENTS = [
    "a: &a {x: 1, y: 2}\nv: {<<: *a, y: 3}\n",
    "a: &a {x: 1}\nb: &b {x: 2, z: 3}\nv: {<<: [*a, *b]}\n",
    "a: &a {x: 1}\nv:\n  y: 2\n  <<: *a\n",
    "v: {'<<': 1}\n",
    "v: [<<, '<<']\n",
    "v: !!binary aGk=\n",
    "v: !!str 1\n",
    "v: !!float 1\n",
    "v: !!int 0x1F\n",
    "v: !!int x\n",
    "v: !!timestamp 2001-01-01\n",
    "v: 'a\n\n  b'\n",
    "v: >-\n  a\n  b\n\n  c\n",
    "v: |+\n  a\n\n",
    "v:\ta\n",
    "v: {a,b: c}\n",
    'v: "\\x41\\u00e9\\U0001F680\\L\\N\\_"\n',
]


def test_we_read_documents_as_go_does(read: Read) -> None:
    for text, theirs in zip(DOCUMENTS, read(DOCUMENTS), strict=True):
        if set(theirs) == {"Error"}:
            with pytest.raises(yaml.YAMLError):
                yamlio.load(text)
        else:
            assert json.loads(json.dumps(yamlio.load(text))) == theirs, text


NAMES = ["y", "n", "on", "null", "1234e56", "08", "1e3", "0x1f", "0123489", "12e03", "10"]


@pytest.mark.any_helm
@pytest.mark.parametrize("name", ["y", "1e3", "08"])
def test_names_that_yaml_could_misread_survive_in_releases_and_containers(helm: Helm, read: Read, name: str) -> None:
    others = [{"name": name, "image": "a", "command": "b"} for name in NAMES]
    sidecars = [{**other, "ports": [80]} for other in others]
    values = {"containers": [{"name": "main", "runFlux": True}, *sidecars], "services": others}
    stream = helm.template("--post-renderer", "minicluster", values=values, release=name)
    objects = read([document for document in stream.split("\n---\n") if "kind:" in document])
    made = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    assert set(made) == {
        *(
            ("ConfigMap", f"{name}-programs"),
            ("ConfigMap", f"{name}-programs-slurm"),
            ("ConfigMap", f"{name}-config"),
            ("Secret", f"{name}-curve"),
            ("Job", name),
            ("Service", name),
        ),
        *(("Service", f"{name}-{each}") for each in NAMES),
        *(("Deployment", f"{name}-services"), ("Service", f"{name}-ready"), ("Pod", f"{name}-quorum")),
    }
    pods = [made[kind]["spec"]["template"] for kind in (("Job", name), ("Deployment", f"{name}-services"))]
    assert {pod["metadata"]["labels"]["app.kubernetes.io/instance"] for pod in pods} == {name}
    started = [c["command"] for pod in pods for c in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]]
    for each in NAMES:
        assert ["/bin/sh", "/mnt/flux/configmap/start.sh", "container.sh", each, "sidecar"] in started
        assert ["/bin/sh", "/mnt/flux/minicluster/container.sh", each, "service"] in started
    assert f"mc_name={name}\n" in made["ConfigMap", f"{name}-config"]["data"]["settings.sh"]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"])
def test_a_unicode_line_break_does_not_end_a_text(helm: Helm, read: Read, mark: str) -> None:
    text = f"a\nexit 0{mark}launcher: true{mark}workingDir: /evil{mark}--- b"
    where: dict[str, Any] = {"annotations": {"a": text, "b": f"one{mark}line"}}
    # the schema refuses U+0085 in texts of our own fields, but not in fields of Kubernetes
    free = {} if mark == "\x85" else {"environment": {"A": text}, "command": text, "commands": {"pre": text}}
    pod = {"template": {"metadata": where}, **({} if mark == "\x85" else {"annotations": {"c": text}})}
    container = {**free, "securityContext": {"seLinuxOptions": {"level": text}}}
    values = {
        "containers": [container],
        "pod": {**pod, "tolerations": [{"key": text}]},
        **({} if mark == "\x85" else {"flux": {"environment": {"B": text}}}),
    }
    stream = helm.template("--post-renderer", "minicluster", values=values)
    objects = read([document for document in re.split(r"(?m)^---\n", stream) if "kind:" in document])
    made = {one["kind"]: one for one in objects if one["metadata"]["name"].startswith("flux-sample")}
    template = made["Job"]["spec"]["template"]
    runner = template["spec"]["containers"][0]
    annotations = template["metadata"]["annotations"]
    assert {key: annotations[key] for key in ("a", "b")} == where["annotations"]
    assert runner["securityContext"] == container["securityContext"]
    assert template["spec"]["tolerations"] == [{"key": text}]
    assert "workingDir" not in runner
    if free:
        data = next(one["data"] for one in objects if one["metadata"]["name"] == "flux-sample-config")
        assert annotations["c"] == text
        assert {"name": "A", "value": text} in runner["env"]
        assert (data["command"], data["pre.sh"]) == (text, text)
        assert f"export B='{text}'" in data["settings.sh"]
        assert "mc_work=submit\n" in data["settings.sh"]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"])
def test_a_unicode_line_break_does_not_break_a_map_that_the_chart_extends(helm: Helm, read: Read, mark: str) -> None:
    text = {"a": f"x{mark}y: z{mark}--- b", "c": f"d\n{mark}e", "d": f'\\"{mark}\\\\🚀é'}
    values = {
        "jobAnnotations": text,
        "suspend": True,
        "kueue": {"elastic": True},
        "pod": {"annotations": text},
        "flux": {"bursting": {"expose": {"type": "NodePort", "annotations": text}}},
        "containers": [
            {
                "volumes": {
                    "v": {"path": "/v", "capacity": "1Gi", "annotations": text, "keep": True},
                    "w": {"path": "/w", "csiDriver": "d", "csiDriverAttributes": text},
                }
            }
        ],
    }
    stream = helm.template(values=values)
    objects = read([document for document in re.split(r"(?m)^---\n", stream) if "kind:" in document])
    made = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    job = made["Job", "flux-sample"]
    own = {"minicluster/suspended": "the value suspend", "kueue.x-k8s.io/elastic-job": "true"}
    annotations = job["metadata"]["annotations"]
    assert json.loads(annotations.pop("minicluster/immutable"))
    assert annotations.pop("minicluster/version")
    assert annotations == text | own
    template = job["spec"]["template"]
    assert text.items() < template["metadata"]["annotations"].items()
    (volume,) = [one for one in template["spec"]["volumes"] if one["name"] == "w"]
    assert volume["csi"]["volumeAttributes"] == text
    assert made["Service", "flux-sample-lead"]["metadata"]["annotations"] == text
    kept = {"helm.sh/resource-policy": "keep"}
    assert made["PersistentVolumeClaim", "flux-sample-v"]["metadata"]["annotations"] == text | kept


def test_go_reads_the_output_of_commands_as_they_wrote_it(read: Read, as_values: Callable[[str], Any]) -> None:
    names = [name for name in TRAPS if re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) and len(name) < 60]
    assert {"y", "08", "1234e56", "on"} <= set(names)
    runner = click.testing.CliRunner()
    keys = [runner.invoke(front_door, ["keygen", name, "-n", name]) for name in names]
    metadata = [one["metadata"] for one in read([done.stdout.removeprefix("---\n") for done in keys])]
    assert metadata == [{"name": name, "namespace": name} for name in names]
    environment = {f"V{number}": name for number, name in enumerate(names)}
    cluster = {
        "apiVersion": "flux-framework.org/v1alpha2",
        "kind": "MiniCluster",
        "metadata": {"name": "y", "namespace": "n"},
        "spec": {"size": 1, "containers": [{"image": "08", "environment": environment}]},
    }
    done = runner.invoke(front_door, ["convert", "-"], input=json.dumps(cluster))
    container = as_values(done.stdout)["containers"][0]
    assert container == {"image": "08", "environment": environment}
