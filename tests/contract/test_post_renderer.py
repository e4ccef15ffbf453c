"""The post-renderer as both Helms call it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from forks import forked
from minicluster.release.helm import version
from support import (
    CERTIFICATE,
    CHART,
    GROUP,
    ROOT,
    SECRET,
    Done,
    Helm,
    by_name,
    lines_with,
    load_all,
    one,
    values_text,
)
from support import umbrella as umbrella_chart

POST = ("--post-renderer", "minicluster")
NAMED = {"flux": {"curveCertSecret": "mine"}}


def runner(**fields: Any) -> dict[str, Any]:
    return {"containers": [fields]}


TEXTS = {"command": "echo \"$HOME\" 'é' | cat\nexit 3", "environment": {"A": "a\n b\n", "B": "---\n- x"}}


@pytest.mark.parametrize(
    "values",
    [
        {"flux": {"curveCert": CERTIFICATE}, "size": 3, "maxSize": 5},
        {
            **NAMED,
            **runner(**TEXTS, commands={"pre": "\n  x\n", "init": " y \n\n"}),
            "pod": {"annotations": {"a/b": "x: y\n# z"}},
        },
    ],
    ids=["certificate", "texts"],
)
def test_the_post_renderer_makes_the_same_objects_as_render(helm: Helm, values: dict[str, Any]) -> None:
    piped = forked("render", stdin=helm.template(values=values))
    assert by_name(helm.template(*POST, values=values)) == by_name(piped.out)


def test_the_post_renderer_makes_a_random_certificate(helm: Helm) -> None:
    first, second = (one(helm.template(*POST), "Secret")["stringData"]["curve.cert"] for _ in range(2))
    assert first != second
    assert re.search(r'secret-key = "\S{40}"', first)


def test_the_post_renderer_leaves_no_document_or_annotation_of_its_own(helm: Helm) -> None:
    text = helm.template(*POST)
    assert GROUP not in text
    assert "postrender-filename" not in text
    assert set(by_name(text)) == {
        ("Service", "flux-sample"),
        ("Job", "flux-sample"),
        ("ConfigMap", "flux-sample-programs"),
        ("ConfigMap", "flux-sample-programs-slurm"),
        ("ConfigMap", "flux-sample-config"),
        ("Secret", "flux-sample-curve"),
        ("Service", "flux-sample-ready"),
        ("Pod", "flux-sample-quorum"),
    }


def test_rendered_objects_keep_the_name_of_their_template(helm4: Helm) -> None:
    text = helm4.template(*POST, "--show-only", "templates/to-post-renderer/minicluster.yaml")
    assert {kind for kind, _ in by_name(text)} == {"ConfigMap", "Secret"}


def test_the_post_renderer_passes_its_own_output_unchanged(helm: Helm) -> None:
    once = helm.template(*POST, values=NAMED)
    assert forked(stdin=once) == Done(0, once, "")


def test_helm_lists_the_plugin_with_its_version(helm4: Helm) -> None:
    line = rf"^minicluster\s+{re.escape(version())}\s+postrenderer/v1"
    assert re.search(line, helm4.ok("plugin", "list"), re.MULTILINE)


# Errors ------------------------------------------------------------------------------------------------------

#: Values that the post-renderer refuses, with the message that the user must see. tests/unit/render has all of them;
#: here are those whose characters or length Helm could change.
REFUSED: list[Any] = [
    ({"size": 4, "maxSize": 3}, "MiniCluster x: size is 4, maxSize 3: lower size, or install with a larger maxSize"),
    (
        {"flux": {"curveCert": f'secret-key = "{SECRET}"\x01'}},
        "flux.curveCert is not a CURVE certificate: give the text that `flux keygen FILE` writes",
    ),
    (
        {"flux": {"brokerConfig": "[a"}},
        "flux.brokerConfig is not TOML: Expected ']' at the end of a table declaration (at end of document)",
    ),
    (
        {"flux": {"optionFlags": "-o 'a"}},
        'flux.optionFlags is "-o \'a": No closing quotation; close the quote',
    ),
    (
        {"pod": {"template": {"spec": {"containers": [{"imagePullPolcy": "Always"}]}}}},
        "MiniCluster x: pod.template.spec.containers[0].imagePullPolcy is not a field of Kubernetes' Container: "
        "did you mean imagePullPolicy?",
    ),
    (
        runner(commands={"script": "x" * 1_048_576}),
        r"re:MiniCluster x: its texts are 1\d{6} bytes, a ConfigMap holds 1048576: mount them",
    ),
]


@pytest.mark.parametrize(("values", "message"), REFUSED, ids=lambda x: x[:50] if isinstance(x, str) else "")
def test_an_error_of_the_post_renderer_reaches_the_user_whole(helm: Helm, values: dict[str, Any], message: str) -> None:
    done = helm.run("template", "x", CHART, *POST, "--values", "-", stdin=values_text(values))
    assert done.code != 0
    assert done.out == ""
    pattern = message.removeprefix("re:") if message.startswith("re:") else re.escape(message)
    assert len([line for line in done.err.splitlines() if re.search(f"minicluster: {pattern}", line)]) == 1
    assert "Traceback" not in done.err
    assert SECRET not in done.err


def test_a_release_with_a_dot_in_its_name_is_refused_with_the_way_out(helm: Helm) -> None:
    message = "the name 'a.b' is not a DNS label: use a-z, 0-9 and - (nameOverride, or the release's name)"
    assert lines_with(helm.fails("template", "a.b", CHART, *POST), message)
    assert ("Job", "a-b") in by_name(helm.template(*POST, "--set", "nameOverride=a-b", release="a.b"))


def test_the_schema_refuses_a_wrong_value_before_the_post_renderer(helm: Helm) -> None:
    done = helm.run("template", "x", CHART, *POST, "--set", "size=0")
    assert done.code != 0
    assert "- at '/size': minimum: got 0, want 1" in done.err.splitlines()


# Charts of others --------------------------------------------------------------------------------------------

HEAD = "apiVersion: v1\nkind: ConfigMap\n"
TEMPLATES = {
    "comments.yaml": f"# head\n{HEAD}# mid\nmetadata: {{name: comments}} # one\ndata: {{a: b}} # end\n",
    "block.yaml": f"{HEAD}metadata: {{name: block}}\ndata:\n  a: |\n    x\n    ---\n    y\n  b: '{'word ' * 300}'\n",
    "anchors.yaml": f"{HEAD}metadata: &m\n  name: anchors\n  annotations: {{x: &x '1', y: *x}}\n",
    "crlf.yaml": f"{HEAD}metadata: {{name: crlf}}\ndata:\n  a: |\n    b\n    c\n".replace("\n", "\r\n"),
    "json.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "json"}, "data": {"a": "b\\n"}}',
    "two.yaml": f"{HEAD}metadata: {{name: a}}\n---\n{HEAD}metadata: {{name: b}}\n",
    "hook.yaml": HEAD + 'metadata: {name: hook, annotations: {"helm.sh/hook": pre-install}}\n',
    "words.yaml": f"{HEAD}metadata: {{name: words}}\ndata: {{a: 012, b: yes, c: ~, d: 1e3, e: 0x1F}}\n",
}


@pytest.fixture(scope="module")
def umbrella(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chart with templates of its own, and with ours under two aliases."""
    path = tmp_path_factory.mktemp("charts") / "umbrella"
    (path / "templates").mkdir(parents=True)
    (path / "crds").mkdir()
    for name, text in TEMPLATES.items():
        (path / "templates" / name).write_bytes(text.encode())
    shutil.copytree(CHART, path / "charts" / "minicluster")
    dependency = {"name": "minicluster", "version": version(), "repository": ""}
    chart = {
        "apiVersion": "v2",
        "name": "umbrella",
        "version": "1.0.0",
        "dependencies": [
            {**dependency, "alias": "one", "condition": "one.enabled"},
            {**dependency, "alias": "two", "condition": "two.enabled"},
        ],
    }
    (path / "Chart.yaml").write_text(yaml.safe_dump(chart))
    return path


OFF = ("--set", "one.enabled=false,two.enabled=false")
ON = ("--set", "one.nameOverride=first,one.flux.curveCertSecret=x,two.nameOverride=second,two.flux.curveCertSecret=x")


def others(text: str) -> list[str]:
    """Return the documents of Helm's output except the MiniCluster documents and the objects made of them."""
    chunks = re.split(r"^(?=---\n)", text, flags=re.MULTILINE)
    return [chunk for chunk in chunks if "\n# Source: " in chunk and "kind: MiniCluster\n" not in chunk]


def test_documents_of_other_charts_pass_byte_for_byte_in_helm_3(helm3: Helm, umbrella: Path) -> None:
    plain, rendered = (others(helm3.template(*ON, *post, chart=umbrella)) for post in ((), POST))
    assert len(plain) == len(TEMPLATES) + 1 + 2 * 4
    # those of our chart get their own API version
    own = {"batch.": "batch/v1", "": "v1"}
    assert rendered == [re.sub(f"{GROUP}/(batch.|)v1", lambda found: own[found[1]], one) for one in plain]


@pytest.fixture(scope="module")
def cat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of plugins: ours, and one that changes nothing and keeps its input."""
    path = tmp_path_factory.mktemp("plugins")
    (path / "minicluster").symlink_to(ROOT / "plugin")
    (path / "cat").mkdir()
    command = [{"command": "sh", "args": ["-c", 'tee "$SEEN"']}]
    plugin = {
        "apiVersion": "v1",
        "type": "postrenderer/v1",
        "name": "cat",
        "version": "0.1.0",
        "runtime": "subprocess",
        "runtimeConfig": {"platformCommand": command},
    }
    (path / "cat" / "plugin.yaml").write_text(yaml.safe_dump(plugin))
    return path


def test_documents_of_other_charts_pass_as_helm_4_hands_them_over(helm4: Helm, umbrella: Path, cat: Path) -> None:
    env = {"HELM_PLUGINS": str(cat), "SEEN": str(cat / "seen")}
    args = ("template", "x", umbrella, *OFF)
    plain = helm4.ok(*args, "--post-renderer", "cat", env=env)
    assert helm4.ok(*args, *POST, env=env) == plain
    assert {name for _, name in by_name(plain)} == {
        "comments",
        "block",
        "anchors",
        "crlf",
        "json",
        "a",
        "b",
        "hook",
        "words",
    }
    seen = (cat / "seen").read_bytes()
    passed = subprocess.run([sys.executable, "-m", "minicluster"], input=seen, capture_output=True, check=True)
    assert passed.stdout == seen


def test_two_miniclusters_of_an_umbrella_chart_are_both_rendered(helm: Helm, umbrella: Path) -> None:
    objects = by_name(helm.template(*ON, *POST, chart=umbrella))
    for name in ("first", "second"):
        assert {("Job", name), ("Service", name), ("ConfigMap", f"{name}-config")} <= set(objects)
    assert ("ConfigMap", "hook") in objects


def test_two_miniclusters_of_one_name_in_a_release_are_refused(helm: Helm, umbrella: Path) -> None:
    text = helm.fails("template", "x", umbrella, "--namespace", "ns", *POST)
    assert lines_with(text, "two MiniCluster documents are named x in namespace ns: give one a nameOverride")


def test_a_release_without_a_minicluster_passes_unchanged(helm: Helm, umbrella: Path) -> None:
    plain, rendered = (helm.template(*OFF, *post, chart=umbrella) for post in ((), POST))
    assert load_all(plain) and by_name(plain) == by_name(rendered)


# An empty stream ---------------------------------------------------------------------------------------------

EMPTY = (
    "minicluster: the stream is empty: pipe the output of `helm template` in. A step before minicluster may have "
    "failed: set -o pipefail; Helm 3's --output-dir goes past a post-renderer: use `minicluster template --output-dir`"
)
#: Scripts that call minicluster, and give it nothing when the first step fails or drops all
CHAINS = {
    "a pipe": "no-such-step | minicluster",
    "shells within shells": "no-such-step | sh -c 'sh -c minicluster; exit $?'",
    "exec": "no-such-step > empty; exec minicluster < empty",
    "a pipe to a program of another name": "no-such-step | python3 -m minicluster",
}


def post_renderer(helm: Helm, folder: Path, script: str) -> tuple[dict[str, str], str]:
    """Return the environment, and the name or path, of a post-renderer that is a script."""
    path = folder / "chain"
    path.mkdir()
    (path / "chain.sh").write_text(f"#!/bin/sh\n{script}\n")
    (path / "chain.sh").chmod(0o755)
    command = [{"command": str(path / "chain.sh")}]
    about = {"apiVersion": "v1", "type": "postrenderer/v1", "name": "chain", "version": "0.1.0"}
    plugin = {**about, "runtime": "subprocess", "runtimeConfig": {"platformCommand": command}}
    (path / "plugin.yaml").write_text(yaml.safe_dump(plugin))
    return ({"HELM_PLUGINS": str(folder)}, "chain") if helm.major == 4 else ({}, str(path / "chain.sh"))


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A chart with nothing but ours under a condition."""
    path = umbrella_chart(tmp_path / "alone", "minicluster")
    shutil.rmtree(path / "templates")
    return path


@pytest.mark.parametrize("chain", CHAINS)
def test_an_empty_stream_of_a_step_that_failed_is_refused(helm: Helm, tmp_path: Path, chain: str) -> None:
    env, renderer = post_renderer(helm, tmp_path, CHAINS[chain])
    done = helm.run("template", "x", CHART, "--post-renderer", renderer, env=env)
    assert (done.code, done.out) == (1, "")
    assert len(lines_with(done.err, EMPTY)) == 1


def test_an_empty_stream_that_helm_itself_hands_over_is_nothing(helm: Helm, alone: Path) -> None:
    words = ("template", "x", alone, "--set", "minicluster.enabled=false", "--post-renderer")
    done = helm.run(*words, "minicluster")
    assert (done.code, done.out.strip()) in ((0, ""), (0, "# nothing is rendered"))
    # that it is empty may be the wish of the chart, or not
    env, renderer = post_renderer(helm, alone.parent, "cat | minicluster")
    assert lines_with(helm.fails(*words, renderer, env=env), EMPTY)


def test_a_chart_that_is_not_enabled_says_so_through_any_step(helm: Helm, tmp_path: Path) -> None:
    env, renderer = post_renderer(helm, tmp_path, "sed 's/x/x/' | minicluster")
    text = helm.ok("template", "x", CHART, "--set", "enabled=false", "--post-renderer", renderer, env=env)
    assert load_all(text) == [{"apiVersion": "v1", "kind": "ConfigMapList", "items": []}]


def test_a_folder_of_helm_3_is_refused_with_the_command_that_writes_one(helm3: Helm, tmp_path: Path) -> None:
    done = helm3.run("template", "x", CHART, *POST, "--output-dir", tmp_path / "out")
    assert done.code == 1
    assert lines_with(done.err, EMPTY)


def test_the_post_renderer_works_without_hooks(helm: Helm) -> None:
    kinds = {kind for kind, _ in by_name(helm.template(*POST, "--no-hooks"))}
    assert kinds == {"Service", "Job", "ConfigMap", "Secret"}
