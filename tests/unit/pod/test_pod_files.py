"""start.sh: a pod keeps the files that it started with."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from minicluster.pod import programs
from support import EACH_SHELL

PROGRAM = 'echo "$MINICLUSTER_HOME/minicluster/me" version 1; cat "$MINICLUSTER_HOME/minicluster/other"; echo "$@"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A pod's folder, with the ConfigMap as Kubernetes mounts it: links into a folder that is replaced."""
    for version in ("1", "2"):
        folder = tmp_path / "configmap" / f"..{version}"
        folder.mkdir(parents=True)
        for name in ("start.sh", "world.sh"):
            shutil.copy(programs()[name], folder)
        (folder / "me.sh").write_text(PROGRAM.replace("1", version))
        (folder / "other").write_text(f"other {version}\n")
        (folder / "agent.json").write_text(version)
        for file in folder.iterdir():
            file.chmod(0o555)
    (tmp_path / "configmap" / "..data").symlink_to("..1")
    for name in ("start.sh", "world.sh", "me.sh", "other", "agent.json"):
        (tmp_path / "configmap" / name).symlink_to(f"..data/{name}")
    return tmp_path


def start(shell: str, home: Path, *words: str) -> str:
    command = [*([shell, "sh"] if shell == "busybox" else [shell]), str(home / "configmap" / "start.sh"), *words]
    env = {**os.environ, "MINICLUSTER_HOME": str(home)}
    # the containers of a pod may have different users
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, umask=0o077)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("shell", EACH_SHELL)
def test_a_pod_keeps_its_files_when_the_configmap_changes(home: Path, shell: str) -> None:
    assert start(shell, home, "me.sh", "a b", "c") == f"{home}/minicluster/me version 1\nother 1\na b c\n"
    (home / "configmap" / "..data").unlink()
    (home / "configmap" / "..data").symlink_to("..2")
    # a container of the pod that starts again, and a second one
    assert start(shell, home, "me.sh", "a b").splitlines()[:2] == [f"{home}/minicluster/me version 1", "other 1"]
    assert start(shell, home, "me.sh", "side").splitlines()[1] == "other 1"
    assert {(home / "minicluster" / file).stat().st_mode & 0o555 for file in (".", "me.sh")} == {0o555}
    # except for the agent's settings
    assert (home / "minicluster" / "agent.json").read_text() == "2"


@pytest.mark.parametrize("shell", EACH_SHELL)
def test_the_copy_is_in_memory_and_made_again_if_that_was_lost(home: Path, shell: str) -> None:
    memory = home / "files"
    memory.mkdir()
    for _ in range(2):
        assert start(shell, home, "me.sh", "side").splitlines()[1] == "other 1"
        assert (home / "minicluster").readlink() == Path("files/.files-side")
        # as the start of a machine leaves a pod
        shutil.rmtree(memory / ".files-side")
    assert start(shell, home, "me.sh").splitlines()[1] == "other 1"
    assert (home / "minicluster").readlink() == Path("files/.files-")
    assert list(home.glob(".files-*")) == []


@pytest.mark.parametrize("shell", EACH_SHELL)
def test_containers_that_start_at_once_get_whole_files(home: Path, shell: str) -> None:
    # files of a copy that was interrupted
    (home / ".files-b").mkdir()
    (home / ".files-b" / "other").write_text("half")
    env = {**os.environ, "MINICLUSTER_HOME": str(home)}
    command = [*([shell, "sh"] if shell == "busybox" else [shell]), str(home / "configmap" / "start.sh"), "me.sh"]
    names = ("", "b", "c", "d", "e")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = [subprocess.Popen([*command, *([n] if n else [])], env=env, text=True, **pipes) for n in names]  # type: ignore[call-overload]
    for one in running:
        out, err = one.communicate(timeout=30)
        assert (one.returncode, err) == (0, "")
        assert out.splitlines()[1] == "other 1"


def test_a_container_whose_copy_is_not_linked_removes_it(home: Path) -> None:
    # another container links its copy while ours is made
    (home / "cp").write_text('#!/bin/sh\nln -sn .files-first "$MINICLUSTER_HOME/minicluster"\nexec /bin/cp "$@"\n')
    (home / "cp").chmod(0o755)
    shutil.copytree(home / "configmap" / "..1", home / ".files-first")
    env = {**os.environ, "MINICLUSTER_HOME": str(home), "PATH": f"{home}:{os.environ['PATH']}"}
    command = ["sh", str(home / "configmap" / "start.sh"), "me.sh", "second"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == ["other 1", "second"]
    assert [folder.name for folder in home.glob(".files-*")] == [".files-first"]
