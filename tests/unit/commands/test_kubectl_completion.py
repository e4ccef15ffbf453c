"""What `kubectl minicluster` completes to."""

import os
import sys
from pathlib import Path

import pytest
from minicluster import cli


def test_kubectl_completion_shows_the_help_of_each_candidate() -> None:
    assert cli.completions(["burst", "in"]) == "install\tInstall a burst, or change its size, and...\n:4\n"
    assert cli.completions([]) == cli.completions([""])
    assert cli.completions([]).startswith("create\t")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["status", "flux", "-o", ""], "table\njson\n:4\n"),
        (["status", "--output=j"], "json\n:4\n"),
        (["no such", "thing"], ":4\n"),
        # the shell offers files, or folders
        (["burst", "install", "--values", ""], ":0\n"),
        (["template", "flux", "--output-dir", ""], ":16\n"),
    ],
)
def test_kubectl_completion_tells_the_shell_when_to_offer_files(words: list[str], expected: str) -> None:
    assert cli.completions(words) == expected


def test_kubectl_completion_asks_the_cluster_for_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\necho "$*" >>"$0.log"; printf "job.batch/%s\\n" flux fluid other\n')
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert cli.completions(["logs", "-n", "it's $HOME", "fl"]) == "flux\nfluid\n:4\n"
    assert "--namespace=it's $HOME" in (tmp_path / "kubectl.log").read_text()


def test_a_kubectl_completion_error_is_one_line_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> str:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(cli, "completions", fail)
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-minicluster", ""])
    with pytest.raises(SystemExit) as caught:
        cli.complete()
    assert (caught.value.code, capsys.readouterr()) == (1, ("", "minicluster: Input/output error\n"))
