"""The SDK in programs that fork, as gunicorn, Celery and multiprocessing do."""

import json
from pathlib import Path
from typing import Any

import pytest
from sdk_programs import Programs

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
    done = Programs(tmp_path).run_fork(Path(__file__).with_name("forking.py").read_text(), what)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if what == "with_an_open_job":
        found[1][2] = found[0]
    assert found == EXPECTED[what]
