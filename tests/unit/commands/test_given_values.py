"""`-f`, `--values`: a file, an address or standard input, and whatever can be read only once is there until the end."""

import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from minicluster.commands import options
from minicluster.commands.given_values import as_given


@click.group()
def group() -> None:
    """Have a command."""


@group.command("print")
@options.values("Values.")
def command(files: Sequence[str]) -> None:
    """Print what Helm gets, twice, and what is shown."""
    for word in [each for file in files for each in file.split(",")] * 2:
        path = Path(word)
        mode = oct(path.stat().st_mode & 0o777) if "minicluster-" in word else ""
        click.echo(f"{word}|{path.read_text() if path.is_file() else ''}|{mode}")
    click.echo(as_given(" ".join(files)))


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    threading.Thread(target=path.write_text, args=("size: 5",), daemon=True).start()
    return path


def call(*words: object, stdin: str = "") -> Result:
    return CliRunner().invoke(group, ["print", *(str(word) for word in words)], input=stdin)


def test_files_addresses_and_a_folder_reach_helm_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("size: 2")
    words = f"{file},oci://x/y", "secrets://z", os.devnull, tmp_path
    lines = call(*(word for each in words for word in ("-f", each))).output.splitlines()
    assert lines[:5] == [f"{file}|size: 2|", "oci://x/y||", "secrets://z||", f"{os.devnull}||", f"{tmp_path}||"]
    assert lines[-1] == " ".join(map(str, words))


def test_standard_input_can_be_read_twice_and_is_gone_in_the_end() -> None:
    *read, shown = call("-f", "-", stdin="size: 3").output.splitlines()
    match = re.fullmatch(r"(.*/standard-input)\|size: 3\|0o600", read[0])
    assert match
    assert (read, shown) == ([read[0]] * 2, "-")
    assert not Path(match[1]).parent.exists()


def test_a_pipe_can_be_read_twice(pipe: Path) -> None:
    *read, shown = call("-f", f"-,{pipe}", stdin="size: 3").output.splitlines()
    assert [line.split("|")[1] for line in read] == ["size: 3", "size: 5"] * 2
    assert shown == f"-,{pipe}"


@pytest.mark.parametrize(
    ("words", "stdin", "message"),
    [
        (("-f", "-"), "", "standard input is empty: see why nothing has written values there, or drop it."),
        (("-f", "-"), " \n", "standard input is empty: see why nothing has written values there, or drop it."),
        (("-f", "-", "-f", "-"), "size: 1", "standard input can be read only once: give it once."),
        (("-f", "-,no"), "size: 1", "Path 'no' does not exist."),
    ],
)
def test_what_has_no_values_is_refused(words: Sequence[str], stdin: str, message: str) -> None:
    done = call(*words, stdin=stdin)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == f"Error: Invalid value for '-f' / '--values': {message}"
