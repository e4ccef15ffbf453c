"""The certificate in a Secret, made once."""

import re
import shlex
import stat
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from forks import forked
from support import Done, front_door


def keygen(*args: str) -> Done:
    return forked("keygen", *args)


def test_keygen_prints_a_secret_with_a_certificate() -> None:
    done = keygen("flux-curve", "--namespace", "team")
    assert (done.code, done.err) == (0, "")
    secret = yaml.safe_load(done.out)
    certificate = secret["stringData"].pop("curve.cert")
    assert secret == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "flux-curve", "namespace": "team"},
        "type": "Opaque",
        "stringData": {},
    }
    assert re.fullmatch(
        r"#  ZeroMQ CURVE \*\*Secret\*\* Certificate\n#  DO NOT DISTRIBUTE\n\n"
        r'metadata\n    name = "flux-curve"\ncurve\n    public-key = "\S{40}"\n    secret-key = "\S{40}"\n',
        certificate,
    )


def test_keygen_without_a_namespace_leaves_it_out() -> None:
    assert yaml.safe_load(keygen("a").out)["metadata"] == {"name": "a"}


def test_keygen_makes_a_new_certificate_each_time() -> None:
    assert keygen("a").out != keygen("a").out


def test_keygen_passes_the_secret_through_the_seal_command(tmp_path: Path) -> None:
    # prints the length of its standard input, and its arguments
    command = f"{sys.executable} -c 'import sys; print(len(sys.stdin.read()), sys.argv[1:])' 'a b' $HOME '*'"
    done = keygen("a", "--seal-with", command)
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"[1-9]\d\d \['a b', '\$HOME', '\*'\]\n", done.out)
    sealed = tmp_path / "sealed"
    assert keygen("a", "--seal-with", f"tee {shlex.quote(str(sealed))}").out == sealed.read_text()


def test_keygen_shows_the_errors_of_a_failing_seal_command(tmp_path: Path) -> None:
    program = tmp_path / "seal"
    program.write_text("#!/bin/sh\necho half\necho no key >&2\nexit 3\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    done = keygen("a", "--seal-with", f"{program} --x")
    assert done == Done(
        1, "", f"no key\nminicluster: --seal-with {program} failed with exit code 3: nothing was sealed\n"
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["A"], "'A' is not a name in Kubernetes: use a-z, 0-9, - and ."),
        (["a\nb: c"], r"'a\nb: c' is not a name in Kubernetes: use a-z, 0-9, - and ."),
        (["a", "-n", "-"], "'-' is not a name in Kubernetes: use a-z, 0-9, - and ."),
        (["a", "--seal-with", ""], "--seal-with is empty: give a command, e.g. kubeseal"),
        (["a", "--seal-with", "a 'b"], '--seal-with "a \'b": No closing quotation'),
        (
            ["a", "--seal-with", "no-such-program x"],
            "--seal-with no-such-program: No such file or directory: install it, or give its path",
        ),
        (
            ["a", "--seal-with", "true"],
            "--seal-with true printed nothing: it must print the sealed Secret",
        ),
    ],
)
def test_keygen_refuses_invalid_names_and_seal_commands(args: list[str], message: str) -> None:
    assert keygen(*args) == Done(1, "", f"minicluster: {message}\n")


def test_keygen_accepts_a_seal_command_that_does_not_read_its_input() -> None:
    assert CliRunner().invoke(front_door, ["keygen", "a", "--seal-with", "echo x"]).exit_code == 0
