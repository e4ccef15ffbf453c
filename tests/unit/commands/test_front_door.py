"""Each command reports an error in one line, without a traceback: exit code 2 for wrong usage, 1 otherwise."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from forks import Forked
from minicluster import cli, flux
from minicluster.errors import CurveError, MiniClusterError, UsageError
from screens import look
from support import GROUP, SEED, Done, Process, front_door

DOCUMENT = f"apiVersion: {GROUP}/v1\nkind: MiniCluster\nmetadata: {{name: a, namespace: ns}}\nkubernetes: v1.36.3\n"
CLUSTER = "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: a}\nspec: {containers: [{}]}\n"
#: Each write to it fails, as on a full disk.
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the commands are given."""
    (tmp_path / "stream").write_text(DOCUMENT)
    (tmp_path / "cluster").write_text(CLUSTER)
    (tmp_path / "seed").write_bytes(SEED)
    (tmp_path / "file").write_text("")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "helm").write_text(
        f"#!/bin/sh\ncase $1 in env) echo '{tmp_path}/file/x';; *) cat stream;; esac\n"
    )
    loud = 'echo "level=ERROR msg=\\"it is so\\"" >&2\necho "Error: it is \\"so\\"" >&2\nexit 1\n'
    (tmp_path / "bin" / "loud").write_text(f"#!/bin/sh\n{loud}")
    (tmp_path / "bin" / "kubectl").write_text("#!/bin/sh\ncase $* in *config*) ;; *) echo no JSON;; esac\n")
    (tmp_path / "values").write_text(
        "maxSize: 2\nflux: {bursting: {clusters: [{name: b, size: 1}], expose: {type: NodePort}}}\n"
    )
    for name in ("helm", "loud", "kubectl"):
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """Return the environment of a command."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HELM_", "MINICLUSTER_"))}
    return {**kept, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", **variables}


def shell(folder: Path, script: str, **variables: str) -> Done:
    """Run a script in which $M is the command."""
    env = environment(folder, M=f"{sys.executable} -m minicluster", **variables)
    words = ["bash", "-c", script]
    done = subprocess.run(words, capture_output=True, cwd=folder, text=True, check=False, timeout=60, env=env)
    return Done(done.returncode, done.stdout, done.stderr)


#: Commands that print something when nothing is wrong: their words, and the file that is their input
PRINTING = {
    "post-render": ("", "stream"),
    "render": ("render --random-curve", "stream"),
    "template": ("template x --curve-seed-file seed", "file"),
    "convert": ("convert cluster", "file"),
    "keygen": ("keygen a", "file"),
    "keygen sealed": ("keygen a --seal-with cat", "file"),
    "chart": ("chart path", "file"),
    "help": ("--help", "file"),
    "help of a command": ("status --help", "file"),
    "version": ("--version", "file"),
}


@pytest.mark.parametrize("command", PRINTING)
def test_each_command_prints_and_exits_with_0_when_nothing_is_wrong(folder: Path, command: str) -> None:
    words, given = PRINTING[command]
    done = shell(folder, f"$M {words} < {given}")
    assert (done.code, done.err) == (0, "")
    assert done.out


def run(folder: Path, words: str, given: str = "file", variables: Mapping[str, str] = {}, **streams: Any) -> Done:
    """Run a command with a file as its input; ``streams`` are open files, or the descriptors of those ``closed``."""
    with (folder / given).open() as stdin:
        how = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        with Forked(shlex.split(words), cwd=folder, env=environment(folder, **variables), text=True, **how) as process:
            out, err = process.communicate(timeout=60)
    return Done(process.returncode, out or "", err or "")


@pytest.fixture
def broken() -> Iterator[int]:
    """A pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize("command", PRINTING)
def test_an_unwritable_standard_output_is_an_error_of_one_line(folder: Path, command: str, broken: int) -> None:
    # click writes help and version itself
    own = command.startswith(("help", "version"))
    before = "" if own else "standard output can't be written: "
    assert run(folder, *PRINTING[command], closed=[1]) == Done(1, "", f"minicluster: {before}Bad file descriptor\n")
    broken_pipe = "" if own else f"minicluster: {before}Broken pipe\n"
    assert run(folder, *PRINTING[command], stdout=broken) == Done(1, "", broken_pipe)


@needs_full
@pytest.mark.parametrize("command", PRINTING)
def test_a_full_disk_is_an_error_of_one_line(folder: Path, command: str) -> None:
    before = "" if command.startswith(("help", "version")) else "standard output can't be written: "
    with FULL.open("w") as full:
        done = run(folder, *PRINTING[command], stdout=full)
    assert done == Done(1, "", f"minicluster: {before}No space left on device\n")


@pytest.mark.parametrize("command", ["", "render", "convert -"])
def test_a_closed_standard_input_is_an_error_of_one_line(folder: Path, command: str) -> None:
    said = "minicluster: standard input can't be read: Bad file descriptor\n"
    assert run(folder, command, closed=[0]) == Done(2, "", said)


@needs_full
@pytest.mark.parametrize("command", PRINTING)
def test_a_command_succeeds_when_standard_error_can_not_be_written(folder: Path, command: str) -> None:
    with FULL.open("w") as full:
        assert [run(folder, *PRINTING[command], **how).code for how in ({"closed": [2]}, {"stderr": full})] == [0, 0]


@needs_full
def test_an_error_keeps_its_exit_code_when_standard_error_can_not_be_written(folder: Path) -> None:
    (folder / "x").write_text("x")
    with FULL.open("w") as full:
        for how in ({"closed": [2]}, {"stderr": full}):
            for words, given, code in (("rendre", "file", 2), ("keygen A", "file", 1), ("", "x", 1)):
                assert run(folder, words, given, **how) == Done(code, "", "")
            assert run(folder, "keygen a", stdout=full, **how) == Done(1, "", "")


def test_an_output_file_never_gets_the_descriptor_of_a_closed_stream(folder: Path) -> None:
    done = shell(folder, "$M convert cluster --output-dir new <&- >&- 2>&-")
    assert done == Done(0, "", "")
    assert (folder / "new" / "a-values.yaml").read_text().startswith("# helm install a ")


#: The words of a command, with a variable before them as in a shell, and the one line that it ends with.
WRONG: list[tuple[str, int, str]] = [
    ("keygen", 2, "Missing argument 'NAME'; see `minicluster keygen --help`"),
    ("keygen a b", 2, "Got unexpected extra argument (b); see `minicluster keygen --help`"),
    ("render --no", 2, "No such option '--no'; see `minicluster render --help`"),
    ("status a -o xml", 2, "Invalid value for '-o' / '--output': 'xml' is not one of 'table', 'json'; see "
     "`minicluster status --help`"),
    ("convert no", 2, "Invalid value for 'FILE': 'no': No such file or directory; see `minicluster convert --help`"),
    ("convert bin", 2, "Invalid value for 'FILE': 'bin': Is a directory; see `minicluster convert --help`"),
    ("render no", 2, "Invalid value for '[FILE]': 'no': No such file or directory; see `minicluster render --help`"),
    ("convert cluster --output-dir file/x", 1, "file/x: Not a directory"),
    ("convert cluster --output-dir /proc/x", 1, "/proc/x: No such file or directory"),
    ("template x --curve-seed-file bin", 2, "Invalid value for '--curve-seed-file': File 'bin' is a directory; see "
     "`minicluster template --help`"),
    ("plugin install", 1, "{folder}/file/x/minicluster: Not a directory"),
    ("template Bad_Name", 1, "'Bad_Name' can't be a release's name: use a-z, 0-9, - and ., at most 53 characters, "
     "the first and the last a letter or digit"),
    ("template -- --help", 1, "'--help' can't be a release's name: use a-z, 0-9, - and ., at most 53 characters, "
     "the first and the last a letter or digit"),
    ("HELM_BIN=no template x", 1, "HELM_BIN is no: there is no such program: install Helm 3.14 or later, or Helm 4, "
     "or set HELM_BIN to its path"),
    ("HELM_BIN=no burst values a b", 1, "the root a in namespace default can't be read: HELM_BIN is no: there "
     "is no such program: install Helm 3.14 or later, or Helm 4, or set HELM_BIN to its path; --root-namespace and "
     "--root-context say where it is"),
    ("HELM_BIN={folder}/bin/loud template x", 1, "helm template: it is \"so\""),
    ("HELM_BIN={folder}/bin/loud burst values a b", 1, "the root a in namespace default can't be read: helm get "
     "values: it is \"so\"; --root-namespace and --root-context say where it is"),
    ("status a", 1, "the answer is not JSON: Expecting value: line 1 column 1 (char 0): check KUBECONFIG, --context "
     "and --namespace"),
    ("burst values a b --root-values values", 1, "kubectl get service: the answer is not JSON: Expecting value: "
     "line 1 column 1 (char 0)"),
    ("run", 2, "there is nothing to run: give a command after --, or values with one"),
    *(
        (f"run {words}", 2, f"put -- before the command: `minicluster run … -- {work}`; see `minicluster run --help`")
        for words, work in (("-N 2 hostname -f", "hostname -f"), ("hostname", "hostname"), ("a -N 2", "a -N 2"))
    ),
    ("run -f", 2, "Option '-f' requires an argument; see `minicluster --help`"),
    ("run a -- b", 2, "Got unexpected extra argument (a); see `minicluster run --help`"),
    ("run -N 0 -- a", 2, "Invalid value for '-N' / '--nodes': 0 is not in the range x>=1; see `minicluster run "
     "--help`"),
    ("run --timeout 5 -- a", 2, "Invalid value for '--timeout': '5' is not a duration: write it with units, as 90s, "
     "5m or 1h30m; see `minicluster run --help`"),
    ("run -f no -- a", 2, "Invalid value for '-f' / '--values': Path 'no' does not exist; see `minicluster run "
     "--help`"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "code", "message"), WRONG)
def test_wrong_usage_and_wrong_files_are_errors_of_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int, message: str
) -> None:
    for name in [name for name in os.environ if name.startswith(("HELM_", "MINICLUSTER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(folder)
    words = shlex.split(command.format(folder=folder))
    if words[0].startswith("HELM_BIN="):
        monkeypatch.setenv("HELM_BIN", words.pop(0).partition("=")[2])
    done = CliRunner().invoke(front_door, words)
    assert (done.exit_code, done.stdout, done.stderr) == (code, "", f"minicluster: {message.format(folder=folder)}\n")


@pytest.mark.parametrize(
    ("words", "variables", "code", "message"),
    [
        ("rendre", {}, 2, "No such command 'rendre'. Did you mean 'render'; see `minicluster --help`"),
        ("keygen A", {}, 1, "'A' is not a name in Kubernetes: use a-z, 0-9, - and ."),
        # a run has a thread until its process ends
        (
            "run --name Bad_Name -- a",
            {},
            1,
            "'Bad_Name' can't be a release's name: use a-z, 0-9, - and ., at most 53 characters, the first and the "
            "last a letter or digit",
        ),
        ("run --set a=b -- a", {"HELM_BIN": "loud"}, 1, 'helm template: it is "so"'),
        ("run --name a -- b", {"HELM_BIN": "loud"}, 1, 'helm install a: it is "so"'),
        ("convert /proc/self/mem", {}, 2, "/proc/self/mem can't be read: Input/output error"),
        (
            "render",
            {"MINICLUSTER_CURVE_SEED_FILE": "/proc/self/mem"},
            2,
            "/proc/self/mem can't be read: Input/output error",
        ),
    ],
)
def test_a_process_ends_with_the_exit_code_and_the_line_of_its_error(
    folder: Path, words: str, variables: dict[str, str], code: int, message: str
) -> None:
    assert run(folder, words, "stream", variables) == Done(code, "", f"minicluster: {message}\n")


@pytest.mark.parametrize("command", ["", "convert -"])
def test_a_standard_input_that_is_not_for_reading_is_an_error_of_one_line(folder: Path, command: str) -> None:
    said = "minicluster: standard input can't be read: Bad file descriptor\n"
    with Path(os.devnull).open("w") as given:
        assert run(folder, command, stdin=given) == Done(2, "", said)


@pytest.mark.parametrize("command", ["$M", "$M render", "$M convert -"])
def test_ctrl_c_ends_a_command_without_a_traceback(folder: Path, command: str) -> None:
    with Process(
        [sys.executable, "-m", "minicluster", *command.split()[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        text=True,
    ) as process:
        wchan = Path(f"/proc/{process.pid}/wchan")
        end = time.monotonic() + 30
        while "pipe" not in wchan.read_text() and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert Done(process.returncode, out, err) == Done(130, "", "minicluster: interrupted\n")


def test_ctrl_c_during_the_start_ends_a_command_without_a_traceback(folder: Path) -> None:
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'minicluster.render.load':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    for command in ("$M < stream", "$M convert cluster"):
        assert shell(folder, command, PYTHONPATH=str(folder)) == Done(130, "", "minicluster: interrupted\n")


#: Where Ctrl-C comes: at the import of a module, or at the interpreter's end
MOMENTS = [
    "minicluster.cli",
    "pathlib",
    "minicluster.errors",
    "click",
    "minicluster.commands",
    "minicluster.kube.kubectl",
    "end",
]


RUN = ["run", "--name", "Bad_Name", "--", "a"]


@pytest.mark.parametrize(
    ("words", "moment"),
    # all commands begin in the same way
    [*((RUN, moment) for moment in MOMENTS), (["replace", "--help"], MOMENTS[-1])],
    ids=lambda x: x if isinstance(x, str) else x[0],
)
def test_ctrl_c_at_any_moment_gives_130(folder: Path, words: list[str], moment: str) -> None:
    (folder / "sitecustomize.py").write_text(
        "import atexit, os, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {moment!r} and 'minicluster' in sys.modules:\n"
        "            os.kill(os.getpid(), 2)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        f"if {moment!r} == 'end':\n"
        "    atexit.register(os.kill, os.getpid(), 2)\n"
    )
    # without what other packages of this Python import before us
    done = shell(folder, f"unset ${{!COVERAGE_*}}; $M {shlex.join(words)}", PYTHONPATH=str(folder))
    assert (done.code, "Traceback" in done.err, "ignored" in done.err) == (130, False, False)


def test_ctrl_c_on_a_terminal_imports_nothing_that_is_half_loaded(folder: Path) -> None:
    # of ast, which rich needs
    (folder / "sitecustomize.py").write_text(
        "import os, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == '_ast' and 'minicluster' in sys.modules:\n"
        "            os.kill(os.getpid(), 2)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    variables = environment(folder, PYTHONPATH=str(folder))
    plain = {name: value for name, value in variables.items() if not name.startswith("COVERAGE_")}
    seen = look([sys.executable, "-m", "minicluster", *RUN], plain, folder=folder)
    assert (seen.code, seen.last) == (130, ["minicluster: interrupted"])


def test_ctrl_c_that_the_caller_ignores_is_ignored(folder: Path) -> None:
    (folder / "sitecustomize.py").write_text("import atexit, os\natexit.register(os.kill, os.getpid(), 2)\n")
    assert shell(folder, "trap '' INT; $M replace --help", PYTHONPATH=str(folder)).code == 0


def test_stream_errors_under_helm_4_are_passed_to_helm(folder: Path) -> None:
    done = shell(folder, "$M 0>/dev/null", HELM_PLUGIN_NAME="minicluster")
    assert (done.code, done.err) == (0, "")
    assert "minicluster: standard input can't be read: Bad file descriptor\\n[the rest" in done.out
    assert shell(folder, "$M 0>/dev/null > /dev/full", HELM_PLUGIN_NAME="minicluster") == Done(1, "", "")


class SecretiveError(Exception):
    """An error whose text must not be shown."""


MESSAGES: list[tuple[BaseException, str]] = [
    (CurveError("a\n b"), "a b"),
    (RecursionError("maximum"), "the input is nested too deeply"),
    (MemoryError(), "there is not enough memory for this input"),
    (PermissionError(13, "Permission denied", "/a\nb"), "/a b: Permission denied"),
    (OSError(), "OSError"),
    (
        SecretiveError("key"),
        "SecretiveError at an unknown line, a bug in minicluster: report it with your input",
    ),
]


@pytest.mark.parametrize(("error", "expected"), MESSAGES, ids=lambda x: type(x).__name__)
def test_each_kind_of_exception_has_a_message_of_one_line(error: BaseException, expected: str) -> None:
    assert cli.message(error) == expected


def test_a_bug_is_reported_by_its_source_line_and_not_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, cli.front_door():
        list(flux.expand_hosts(object()))  # type: ignore[arg-type]
    assert end.value.code == 1
    assert capsys.readouterr().err.startswith("minicluster: TypeError at flux.py:")


@pytest.mark.parametrize(
    ("error", "code"), [(MiniClusterError("x"), 1), (UsageError("x"), 2)], ids=["another error", "wrong usage"]
)
def test_wrong_usage_exits_with_2_and_other_errors_with_1(
    error: MiniClusterError, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end, cli.front_door():
        raise error
    assert end.value.code == code
    assert capsys.readouterr().err == "minicluster: x\n"
