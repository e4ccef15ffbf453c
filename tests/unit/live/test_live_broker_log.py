"""``minicluster logs --all``: after the log of a node, the files of its broker."""

from pathlib import Path
from typing import Any

import pytest
from live_kubectl import FORBIDDEN, Kubectl, lead, say
from status_samples import ended, job

from tools.clients import Done

SAYS = "minicluster: the log of the broker of mini-0:\n"
CANT = "the log of its broker can't be read"


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    made = Kubectl(tmp_path)
    (tmp_path / "home/config/run").mkdir(parents=True)
    (tmp_path / "logs").write_text("2030-01-01T12:00:00.5Z hi\n")
    return made


def write(kubectl: Kubectl, **files: str) -> None:
    for name, text in files.items():
        (kubectl.folder / "home/config/run" / f"broker.{name.replace('_', '.')}").write_text(text)


def test_all_prints_what_the_broker_has_logged_after_the_log(kubectl: Kubectl) -> None:
    write(kubectl, log="new\n", log_old="old\n")
    assert kubectl.run("logs", "mini", "--all") == Done(0, "hi\nold\nnew\n", SAYS)
    assert kubectl.run("logs", "mini") == Done(0, "hi\n", "")
    (kubectl.folder / "home/config/run/broker.log.old").unlink()
    assert kubectl.run("logs", "mini", "--all", "--node", "0") == Done(0, "hi\nnew\n", SAYS)


def test_all_says_that_a_node_has_no_such_file(kubectl: Kubectl) -> None:
    message = "mini-0 has no file of its broker's log: the log has what the broker says"
    assert kubectl.run("logs", "mini", "--all") == Done(0, "hi\n", say(message))


@pytest.mark.parametrize(
    ("state", "job_is", "why"),
    [
        ({"phase": "Pending"}, job() | {"spec": {"completions": 4, "parallelism": 4}}, "mini-0 is Pending"),
        (ended(0), job(end=("Complete", "x")), "mini-0 has ended: Complete: x: said why"),
    ],
    ids=["starts", "ended"],
)
def test_all_says_why_the_files_can_not_be_read(kubectl: Kubectl, state: Any, job_is: Any, why: str) -> None:
    kubectl.has(job=job_is, pods={"items": [lead(kubectl.folder, state)]}, events={"items": []})
    assert kubectl.run("logs", "mini", "--all") == Done(0, "hi\n", say(f"{CANT}: {why}"))


def test_all_says_that_the_pod_does_not_answer_and_what_a_user_may_not_do(kubectl: Kubectl) -> None:
    (kubectl.folder / "refused").write_text("error: unable to upgrade connection: container not found\n")
    message = f"{CANT}: unable to upgrade connection: container not found"
    assert kubectl.run("logs", "mini", "--all") == Done(0, "hi\n", say(message))
    (kubectl.folder / "refused").write_text(FORBIDDEN.format("pods/exec", "create"))
    done = kubectl.run("logs", "mini", "--all")
    assert (done.code, done.out) == (0, "hi\n")
    assert done.err.endswith(": ask for a Role that allows it\n")


@pytest.mark.parametrize("other", [["-f"], ["-c", "agent"]])
def test_all_reads_a_file_of_the_broker_once(kubectl: Kubectl, other: list[str]) -> None:
    done = kubectl.run("logs", "mini", "--all", *other)
    assert (done.code, done.out) == (2, "")
    assert f"--all reads the log of a broker as it is now: drop {other[0]}" in done.err
