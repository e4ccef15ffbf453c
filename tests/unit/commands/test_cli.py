import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from forks import forked, without_coverage
from minicluster import cli
from minicluster import commands as package
from minicluster.commands import MODULES, SECTIONS, group, run
from minicluster.commands.options import duration
from minicluster.errors import CurveError, MiniClusterError, SpecError, StreamError
from minicluster.release import helm
from support import CERTIFICATE, GROUP, SECRET, SEED, Done, by_name, front_door, one

DOCUMENT = f"apiVersion: {GROUP}/v1\nkind: MiniCluster\nmetadata: {{name: a, namespace: ns}}\n"
#: As the chart writes it where it can look up live objects
LOOKED = f"{DOCUMENT}kubernetes: v1.36.3\n"
WRONG = DOCUMENT + "spec: {size: 0}\n"
END = "[the rest of this line is Helm's]"
MESSAGE = "MiniCluster a: size is 0: must be at least 1"
NO_CERTIFICATE = (
    "MiniCluster a has no certificate, and a random one would differ each time: set flux.curveCertSecret to "
    "a Secret that `minicluster keygen` makes once, or give --curve-seed-file"
)

NO_CALLER = (
    "MiniCluster a has no certificate, and no Helm command is above this one that says where to look for a live one, "
    "so each run would make another: set flux.curveCertSecret to a Secret that `minicluster keygen` makes once"
)


def minicluster(*args: str, stdin: str = "", **env: str) -> Done:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HELM_")}
    return forked(*args, stdin=stdin, env=kept | env)


def test_minicluster_without_arguments_post_renders() -> None:
    done = minicluster(stdin=f"kind: A\n---\n{LOOKED}")
    assert (done.code, done.err) == (0, "")
    assert set(by_name("metadata: {name: x}\n" + done.out)) == {
        ("A", "x"),
        ("ConfigMap", "a-config"),
        ("Secret", "a-curve"),
    }


def test_the_post_renderers_certificate_is_random() -> None:
    first, second = (one(minicluster(stdin=LOOKED).out, "Secret")["stringData"] for _ in range(2))
    assert first != second


def test_a_program_that_has_helm_in_it_gets_no_new_certificate_without_a_cluster() -> None:
    assert minicluster(stdin=DOCUMENT) == Done(1, "", f"minicluster: {NO_CALLER}\n")
    live = f"{DOCUMENT}certificate: {json.dumps(CERTIFICATE)}\n"
    for given in (live, f"{DOCUMENT}spec: {{flux: {{curveCert: {json.dumps(CERTIFICATE)}}}}}\n"):
        assert one(minicluster(stdin=given).out, "Secret")["stringData"] == {"curve.cert": CERTIFICATE}
    named = minicluster(stdin=f"{DOCUMENT}spec: {{flux: {{curveCertSecret: mine}}}}\n")
    assert (named.code, set(by_name(named.out))) == (0, {("ConfigMap", "a-config")})


@pytest.mark.parametrize("plugin", [{}, {"HELM_PLUGIN_NAME": "diff"}], ids=["helm", "helm diff"])
def test_a_post_renderer_error_is_one_line_and_exit_code_1(plugin: dict[str, str]) -> None:
    assert minicluster(stdin=WRONG, **plugin) == Done(1, "", f"minicluster: {MESSAGE}\n")


def test_an_error_under_helm_4_is_a_document_that_helm_shows() -> None:
    done = minicluster(stdin=WRONG, HELM_PLUGIN_NAME="minicluster")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == {
        "apiVersion": "v1",
        "kind": "Error",
        "metadata": {
            "name": ["error"],
            "annotations": {"postrenderer.helm.sh/postrender-filename": f"\nminicluster: {MESSAGE}\n{END}"},
        },
    }


@pytest.mark.parametrize("message", ["a\nb", "  a \t b\n", "a\r\nb", "a\u2028b", "a\x85b"])
def test_an_error_message_is_joined_into_one_line(message: str) -> None:
    for kind in (MiniClusterError, StreamError, SpecError, CurveError):
        assert str(kind(message)) == "a b"
    assert len(cli.error_document(str(MiniClusterError(message))).splitlines()) == 1


def test_render_without_a_source_of_keys_is_refused() -> None:
    assert minicluster("render", stdin=DOCUMENT) == Done(1, "", f"minicluster: {NO_CERTIFICATE}\n")


def test_render_shows_errors_on_stderr_under_helm_4_too() -> None:
    done = minicluster("render", stdin=WRONG, HELM_PLUGIN_NAME="minicluster")
    assert done == Done(1, "", f"minicluster: {MESSAGE}\n")


@pytest.mark.parametrize(
    "document",
    [
        DOCUMENT + "spec: {flux: {curveCertSecret: mine}}\n",
        DOCUMENT + f"spec: {{flux: {{curveCert: {json.dumps(CERTIFICATE)}}}}}\n",
        DOCUMENT + f"certificate: {json.dumps(CERTIFICATE)}\n",
    ],
    ids=["the user's Secret", "the user's certificate", "the live certificate"],
)
def test_render_needs_no_seed_where_there_is_a_certificate(document: str) -> None:
    result = CliRunner().invoke(front_door, ["render"], input=document)
    assert result.exit_code == 0
    assert result.output == CliRunner().invoke(front_door, ["render"], input=document).output


def test_render_with_a_seed_is_the_same_each_time(tmp_path: Path) -> None:
    outputs = []
    for name, seed in {"a": SEED, "b": SEED + b"\n", "c": SEED + b"x"}.items():
        (tmp_path / name).write_bytes(seed)
        result = CliRunner().invoke(front_door, ["render", "--curve-seed-file", str(tmp_path / name)], input=DOCUMENT)
        outputs.append((result.exit_code, result.output))
    assert outputs[0] == outputs[1] != outputs[2]
    assert outputs[0][0] == 0


def test_render_with_random_curve_makes_a_new_certificate_each_time() -> None:
    first, second = (CliRunner().invoke(front_door, ["render", "--random-curve"], input=DOCUMENT) for _ in range(2))
    assert first.exit_code == second.exit_code == 0
    assert first.output != second.output


def test_render_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "stream.yaml"
    path.write_text("kind: A\nmetadata: {name: x}\n")
    result = CliRunner().invoke(front_door, ["render", str(path)])
    assert (result.exit_code, result.output) == (0, "kind: A\nmetadata: {name: x}\n")


def test_a_short_seed_is_refused_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "seed").write_bytes(b"  fifteen bytes..  \n")
    result = CliRunner().invoke(front_door, ["render", "--curve-seed-file", str(tmp_path / "seed")], input=DOCUMENT)
    assert result.exit_code == 2
    assert "the curve seed has under 16 bytes: make one with `openssl rand -hex 32`" in result.output
    assert "fifteen" not in result.output


def test_no_error_shows_the_secret_key(tmp_path: Path) -> None:
    (tmp_path / "seed").write_bytes(SEED)
    broken = CERTIFICATE.replace("public-key", "public")
    for spec in (
        {"flux": {"curveCert": broken}},
        {"flux": {"curveCert": CERTIFICATE, "curveCertSecret": "x"}},
        {"flux": {"curveCert": CERTIFICATE + "\x00"}},
        {"flux": {"curveCert": [CERTIFICATE]}},
        {"flux": {"curveCert": CERTIFICATE}, "size": 0},
        {"flux": CERTIFICATE},
    ):
        text = DOCUMENT + f"spec: {json.dumps(spec)}\n"
        result = CliRunner().invoke(front_door, ["render", "--curve-seed-file", str(tmp_path / "seed")], input=text)
        assert result.exit_code == 1
        assert SECRET not in result.output
        assert SEED.decode() not in result.output


@pytest.mark.parametrize("value", [f'secret-key = "{SECRET}"\x00', [SECRET], {SECRET: 1}], ids=["text", "list", "map"])
def test_no_schema_error_shows_the_secret_key(value: object) -> None:
    text = DOCUMENT + f"spec: {json.dumps({'flux': {'curveCert': value}})}\n"
    result = CliRunner().invoke(front_door, ["render"], input=text)
    assert "flux.curveCert" in result.output
    assert SECRET[:20] not in result.output


def test_help_and_version_are_printed() -> None:
    for args in ([], ["-h"], ["--help"]):
        result = CliRunner().invoke(front_door, args)
        assert result.exit_code == 0
        assert "Flux Framework on Kubernetes as a plain Helm release" in result.output
        assert "render" in result.output
    result = CliRunner().invoke(front_door, ["--version"])
    assert result.output == f"minicluster, version {helm.version()}\n"
    assert "--curve-seed-file" in CliRunner().invoke(front_door, ["render", "--help"]).output


def test_help_has_the_commands_by_sections_the_everyday_ones_first() -> None:
    shown = CliRunner().invoke(front_door, ["--help"]).output
    parts = re.split(r"^([A-Z].*):$", shown, flags=re.MULTILINE)[1:]
    found = {
        title: re.findall("^  ([a-z]+) ", text, re.MULTILINE)
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    }
    assert list(found) == [*SECTIONS, "Options"]
    assert next(iter(found.values()))[:2] == ["create", "run"]
    assert {title: tuple(names) for title, names in found.items() if title in SECTIONS} == SECTIONS


def test_each_command_is_in_one_section() -> None:
    """Also those that are not written yet: one without a section is not there."""
    written = [
        (name, path.stem)
        for path in Path(package.__file__).parent.glob("[a-z]*.py")
        for name in re.findall(r'^@click\.(?:command|group)\("(\w+)"', path.read_text(), re.MULTILINE)
    ]
    written += [(name, "flux") for name in SECTIONS["Slurm's commands"]]  # made of a table
    assert sorted(written) == sorted(MODULES.items())
    assert [command.name for command in commands(group, within=False)] == list(MODULES)


def test_an_unknown_command_exits_with_2() -> None:
    assert CliRunner().invoke(front_door, ["rendre"]).exit_code == 2


def test_minicluster_on_a_terminal_shows_help_instead_of_waiting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(sys, "argv", ["minicluster"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code in (0, None)
    assert "render" in capsys.readouterr().out


def test_the_post_renderer_imports_no_slow_modules() -> None:
    # each of these costs every helm command milliseconds
    slow = {"ast", "click", "dataclasses", "hashlib", "inspect", "jinja2", "rich", "tomllib", "zmq"}
    stdin = DOCUMENT + f"certificate: {json.dumps(CERTIFICATE)}\n"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "minicluster"],
        input=stdin, capture_output=True, text=True, check=True, timeout=60, env=without_coverage(os.environ),
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "minicluster.render.postrender" in imported
    assert imported & slow == set()


def test_the_post_renderer_prints_nothing_of_a_stream_with_an_error() -> None:
    assert minicluster(stdin=f"kind: A\n---\n{DOCUMENT}---\n{WRONG.replace('name: a', 'name: b')}").out == ""


def commands(group: click.Group, *, within: bool = True) -> Iterator[click.Command]:
    context = click.Context(group)
    for command in (group.get_command(context, name) for name in group.list_commands(context)):
        assert command
        yield command
        if within and isinstance(command, click.Group):
            yield from commands(command)


@pytest.mark.parametrize("command", [*commands(group)], ids=lambda command: command.callback.__module__)
def test_each_command_summary_is_a_whole_sentence(command: click.Command) -> None:
    # the width that is left beside the longest name, on a terminal of 80 columns
    assert re.fullmatch(r"[A-Z][^.]*\.", command.get_short_help_str(limit=64))


def options(command: click.Command) -> dict[str, list[str]]:
    found = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    return {option.opts[-1]: option.opts for option in found}


def test_options_of_one_name_have_the_same_short_forms_in_all_commands() -> None:
    every = [options(command) for command in commands(group)]
    # `minicluster run` has -N and -n of `flux run`, so its namespace has no short form
    assert options(run.command)["--namespace"] == ["--namespace"]
    every = [{name: of for name, of in opts.items() if of != ["--namespace"]} for opts in every]
    assert {"-n", "--namespace"} <= {name for opts in every for name in opts.get("--namespace", [])}
    for name in {name for opts in every for name in opts}:
        assert len({tuple(opts[name]) for opts in every if name in opts}) == 1, name
    short = [(opt, name) for opts in every for name, of in opts.items() for opt in of if not opt.startswith("--")]
    # as Helm and kubectl have them
    assert sorted(set(short)) == [
        ("-A", "--all-namespaces"),
        ("-N", "--nodes"),
        ("-c", "--container"),
        ("-f", "--follow"),
        ("-f", "--values"),
        ("-n", "--namespace"),
        ("-n", "--tasks"),
        ("-o", "--output"),
        ("-w", "--watch"),
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("1m30s", 90), ("1h0m0.5s", 3600.5), ("1.5h", 5400), (".5s", 0.5), ("250ms", 0.25),
     ("0s", 0)],
)  # fmt: skip
def test_a_duration_is_converted_to_seconds(text: str, seconds: float) -> None:
    assert duration.convert(text, None, None) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "600", "0", "5 m", "-5m", "5m!", "m", "1d", "1e3s", "1.2.3s", "\u0665m"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    done = CliRunner().invoke(front_door, ["burst", "remove", "flux", "b0", "--timeout", text])
    assert (done.exit_code, done.stderr) == (
        2,
        f"minicluster: Invalid value for '--timeout': {text!r} is not a duration: write it with units, as 90s, 5m or "
        "1h30m; see `minicluster burst remove --help`\n",
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--memory", "10"), "10 is 10 bytes: did you mean 10Gi"),
        (("--memory", "8GB"), "'8GB' is not a quantity, e.g. 4, 500m or 8Gi"),
        (("--cpu", "4Gi"), "4Gi is 4294967296 CPUs, and no node has more than 8192: lower it"),
        (("--keep", "10@nfs"), "10 is 10 bytes: did you mean 10Gi"),
    ],
)
def test_an_amount_that_nobody_means_is_refused_before_helm_runs(words: tuple[str, str], why: str) -> None:
    done = CliRunner().invoke(front_door, ["create", "demo", *words])
    message = f"minicluster: Invalid value for '{words[0]}': {why}; see `minicluster create --help`\n"
    assert (done.exit_code, done.stderr) == (2, message)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_offers_the_matching_commands(shell: str) -> None:
    script = minicluster(_MINICLUSTER_COMPLETE=f"{shell}_source")
    assert (script.code, script.err) == (0, "")
    assert f"_MINICLUSTER_COMPLETE={shell}_complete" in script.out
    words = {"COMP_WORDS": "minicluster burst in", "COMP_CWORD": "2" if shell != "fish" else "in"}
    found = minicluster(_MINICLUSTER_COMPLETE=f"{shell}_complete", **words)
    assert found.code == 0
    assert "install" in found.out
    assert "remove" not in found.out
