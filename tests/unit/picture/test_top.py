"""`minicluster top`: what it draws, the keys, and all of it in tmux."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_kubectl import Kubectl, lead
from minicluster.picture import top
from minicluster.picture.timeline import Timeline
from minicluster.picture.top_view import SORTS, Chosen, screen, spark
from picture_lead import START, job, past
from status_samples import job as kubernetes_job

from tools.clients import until

HOSTILE = "a [bold red]b[/]\x1b[31m\x07\r\n" + "x" * 10_000
NEVER = {"result": None, "t_run": None, "t_cleanup": None, "t_inactive": None, "ranks": None, "exit_code": None}
ROWS = [
    job(1, name="first", t_submit=START - 3),
    job(2, name="second", result="FAILED", exit_code=3, t_submit=START - 2),
    job(3, name="third", state="RUN", **{**NEVER, "t_run": START, "ranks": "2", "nodes": "mini-2"}),
    job(4, name=HOSTILE, state="SCHED", **NEVER),
]


def timeline(nodes: int = 4) -> Timeline:
    found = Timeline("mini")
    found.take_past(ROWS, START)
    found.take_nodes([{"t": START - 50, "event": "online", "ranks": f"0-{nodes - 1}"}])
    found.take_size(nodes, START - 10)
    return found


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50), (20, 5)])
@pytest.mark.parametrize("nodes", [1, 4, 200])
def test_the_picture_fits_the_terminal(width: int, height: int, nodes: int) -> None:
    found = screen(timeline(nodes), Chosen(), width, height, START + 20).plain.split("\n")
    assert (len(found), max(map(len, found)) <= width) == (height, True)
    assert not [line for line in found if "\x1b" in line or "\x07" in line]


def test_the_picture_has_the_nodes_the_queue_and_the_jobs() -> None:
    found = [line.rstrip() for line in screen(timeline(), Chosen(), 100, 40, START + 20).plain.split("\n")]
    assert "jobs  1 completed  1 failed  1 pending  1 running" in found
    assert "  mini-2  up  1 jobs ■" in found
    assert [line[:11].split() for line in found if line.startswith("f")] == [["f3"], ["f4"], ["f2"], ["f1"]]
    assert "f3           RUNNING        20s      mini-2         third" in found
    assert "f2           FAILED        1m2s    3 mini-[0-1]     second" in found


def test_the_first_picture_has_no_size() -> None:
    head = screen(Timeline("mini"), Chosen(), 80, 24, START).plain.split("\n")[0]
    assert head.split() == ["mini", "…", "12:00:00", "UTC"]


def test_jobs_are_sorted_and_one_is_looked_into() -> None:
    found = {sort: screen(timeline(), Chosen(sort), 80, 40, START + 20).plain for sort in SORTS}
    assert all(f"by {sort}" in text for sort, text in found.items())
    assert found["name"].index("f1 ") < found["name"].index("f2 ")
    detail = ["job f2 (second)", *(f"line {n}" for n in range(99))]
    text = screen(timeline(), Chosen(detail=detail), 80, 24, START + 20).plain
    assert ("job f2 (second)" in text, "line 98" in text, "line 50" in text) == (True, True, False)


def test_curves_have_the_last_value_of_each_column() -> None:
    assert spark([], 0.0, 1.0, 3) == "   "
    assert spark([(0.0, 1.0), (5.0, 4.0), (7.6, 0.0)], 0.0, 10.0, 4) == "▂▂█ "


def test_keys_are_told_apart() -> None:
    assert top.split_keys("sq\x1b[A\x1b[B\x1b\r") == ["s", "q", "up", "down", "escape", "enter"]


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    """A cluster whose lead tells the jobs of ROWS, and then waits."""
    found = Kubectl(tmp_path)
    known = {"job": ROWS[1], "waits": "", "needs": {}, "said": [], "again": "", "now": 0.0, "command": "exit 3"}
    (tmp_path / "told").write_text("".join(json.dumps(each) + "\n" for each in past(ROWS)))
    (tmp_path / "known").write_text(json.dumps({**known, "output": "the end\n"}))
    found.flux(f"read -r program; cat {tmp_path}/told; cat")
    found.tool("sh", f"read -r program; /bin/cat {tmp_path}/known")
    pods = [lead(tmp_path)] + [{**lead(tmp_path, name=f"mini-{n}-x"), **_index(n)} for n in (1, 2, 3)]
    found.has(job=kubernetes_job(), pods={"items": pods}, events={"items": []})
    return found


def _index(index: int) -> dict[str, Any]:
    metadata = {"name": f"mini-{index}-x", "namespace": "lab", "creationTimestamp": "2030-01-01T11:47:10Z", "uid": "u"}
    return {"metadata": {**metadata, "labels": {"batch.kubernetes.io/job-completion-index": str(index)}}}


def test_without_a_terminal_it_prints_one_picture(kubectl: Kubectl) -> None:
    with kubectl.start("top", "mini") as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err, "\x1b" in out) == (0, "", False)
    assert "mini  Running   size 4 of at most 8" in out
    assert [line.split()[0] for line in out.splitlines() if line.startswith("f")] == ["f3", "f4", "f2", "f1"]


class Tmux:
    """A terminal of a size, with a program."""

    def __init__(self, folder: Path, kubectl: Kubectl, width: int, height: int) -> None:
        self._words = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        size = ["-x", str(width), "-y", str(height)]
        environment = {**kubectl.environment, "TERM": "xterm-256color"}
        command = f"{sys.executable} -m minicluster top mini; echo ended $?; cat"
        subprocess.run([*self._words, "new-session", "-d", *size, command], env=environment, check=True)

    def shown(self) -> str:
        """Return what the screen shows."""
        return subprocess.run([*self._words, "capture-pane", "-p"], capture_output=True, text=True, check=True).stdout

    def wait(self, text: str) -> str:
        """Wait for a text on the screen."""
        until(lambda: text in self.shown(), 120)
        return self.shown()

    def press(self, *keys: str) -> None:
        """Press keys."""
        subprocess.run([*self._words, "send-keys", *keys], check=True)

    def end(self) -> None:
        """End it."""
        subprocess.run([*self._words, "kill-server"], check=False)


@pytest.fixture(params=[(80, 24), (200, 50)], ids=str)
def tmux(request: pytest.FixtureRequest, kubectl: Kubectl, tmp_path: Path) -> Iterator[Tmux]:
    if not shutil.which("tmux"):
        pytest.skip("tmux is missing: install it")
    found = Tmux(tmp_path, kubectl, *request.param)
    yield found
    found.end()


def test_it_is_used_in_tmux(tmux: Tmux) -> None:
    tmux.wait("by newest")
    found = tmux.wait("f1 ")
    assert "q quit" in found.rstrip("\n").split("\n")[-1]
    tmux.press("s")
    tmux.wait("by longest")
    tmux.press("s")
    tmux.wait("by state")
    tmux.press("s", "s")
    tmux.wait("by newest")
    tmux.press("Down", "Down", "Enter")
    assert "job f2 (second) failed with exit code 3" in tmux.wait("the end")
    tmux.press("Escape")
    tmux.wait("by newest")
    tmux.press("q")
    assert "by newest" not in tmux.wait("ended 0")
