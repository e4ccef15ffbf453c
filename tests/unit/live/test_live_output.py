"""``minicluster output``: the program on the lead, its streams and its exit code."""

from pathlib import Path

import pytest
from live_kubectl import WAITS, Kubectl, lead
from minicluster.lead.program import BOOT, first_line

from tools.clients import Done


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    made = Kubectl(tmp_path)
    made.flux('cat >"${0%/*}/program"; shift 3; echo "$*"; echo err >&2; exit 1')
    return made


@pytest.mark.parametrize(("options", "words"), [([], "f12"), (["-f"], "f12 follow"), (["--follow"], "f12 follow")])
def test_output_runs_its_program_on_the_lead_and_ends_with_its_exit_code(
    kubectl: Kubectl, options: list[str], words: str
) -> None:
    assert kubectl.run("output", "mini", "f12", *options) == Done(1, f"mini {words}\n", "err\n")
    assert (kubectl.folder / "home/bin/program").read_text() == first_line("printed")
    assert f"bin/flux python -c {BOOT} mini {words}" in kubectl.asked()[-1]


def test_output_that_must_not_wait_says_why_the_lead_can_not_be_asked(kubectl: Kubectl) -> None:
    kubectl.has(pods={"items": [lead(kubectl.folder, WAITS)]})
    kubectl.flux("exit 1")
    done = kubectl.run("output", "mini", "f12", "--no-wait")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("minicluster: mini is Starting: ")
