"""The hook that `helm plugin install` runs, with a stand-in of Python: what a person sees of it."""

import os
import subprocess
from pathlib import Path

import pytest
from screens import look
from support import PACKAGE

#: It makes an environment whose Python does nothing, and fails to install packages if it is told to
PYTHON = """#!/bin/sh
case "$*" in
*" venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
*" pip "*) if [ -e "$HELM_PLUGIN_DIR/refusal" ]; then echo "no index" >&2; exit 1; fi ;;
esac
"""
STEPS = ["making a Python environment", "getting its packages", "checking that it renders"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "python3").write_text(PYTHON)
    (tmp_path / "python3").chmod(0o755)
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin" / "run.sh").write_text("cat >/dev/null")
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HELM_PLUGIN_DIR": f"{tmp_path}/plugin"}


WORDS = ["sh", str(PACKAGE.parent / "install.sh")]


def test_an_installation_shows_its_steps_on_one_line_of_a_terminal(environment: dict[str, str]) -> None:
    seen = look(WORDS, environment)
    assert (seen.code, seen.last) == (0, [])
    for number, step in enumerate(STEPS, 1):
        assert f"minicluster: {number} of 3: {step}".encode() in seen.raw
    assert b"\n" not in seen.raw
    (Path(environment["HELM_PLUGIN_DIR"]) / "refusal").touch()
    failed = look(WORDS, environment, 200)
    assert (failed.code, len(failed.last)) == (1, 1)
    assert failed.last[0].startswith("minicluster: pip can't get its packages: no index")


def test_an_installation_without_a_terminal_says_nothing(environment: dict[str, str]) -> None:
    done = subprocess.run(WORDS, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
