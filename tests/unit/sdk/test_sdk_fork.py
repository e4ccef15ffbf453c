"""The SDK in programs that fork, as gunicorn, Celery and multiprocessing do."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from live_kubectl import Kubectl

#: What runs on the lead: each job is over at once, but `wait` waits for a file
LEAD = r"""
import json, os, pathlib, sys, threading, time
sys.stdin.readline()
def say(**reply):
    print(json.dumps(reply), flush=True)
def end(key, words):
    while words == ["wait"] and not os.path.exists(os.environ["FREE"]):
        time.sleep(0.02)
    say(key=key, end={"status": 0, "exception": None, "output": [["stdout", " ".join(words[1:]) + "\n"]]})
say(ready="0.88.0")
for number, line in enumerate(sys.stdin):
    asked = json.loads(line)
    if "submit" in asked:
        say(key=asked["key"], id=f"f{os.getpid()}-{number}")
        threading.Thread(target=end, args=(asked["key"], asked["submit"]["command"])).start()
    elif "list" in asked:
        say(key=asked["key"], jobs=[])
os._exit(0)
"""
CHILD = ["child", [], ["a", "b"], "mini"]
LEFT = "job ID was submitted before the fork: its parent process has the result"
EXPECTED: dict[str, Any] = {
    "used_after_a_job": ["parent", CHILD, CHILD, "again"],
    "with_an_open_job": [LEFT, [True, True, LEFT, [], "child"], "\n"],
    "with_a_submission_on_its_way": [["child"] * 5, "parent"],
    "in_a_pool": ["a", "b", "c", "d"],
    "beside_a_program_that_inherits": "",
    "left_by_a_child": [3, None, "parent"],
}


@pytest.mark.parametrize("what", EXPECTED)
def test_a_program_that_forks_uses_the_sdk_in_parent_and_children(tmp_path: Path, what: str) -> None:
    kubectl = Kubectl(tmp_path)
    kubectl.tool("lead", f"exec {sys.executable} {tmp_path}/lead.py")
    (tmp_path / "lead.py").write_text(LEAD)
    kubectl.flux(f'case $* in *python*) exec "{tmp_path}/lead" ;; esac')
    environment = {**kubectl.environment, "FREE": str(tmp_path / "free")}
    words = [sys.executable, str(Path(__file__).with_name("forking.py")), what]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if what == "with_an_open_job":
        found[1][2] = found[0]
    assert found == EXPECTED[what]
