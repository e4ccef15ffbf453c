"""`minicluster run --in`: a command in an instance of its own inside a MiniCluster that stays."""

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_kubectl import Kubectl
from minicluster.exec.written import UntilMark

from tools.clients import Done, until

#: What a lead does: the work prints, and its instance goes on; mine.py answers with a file
FLUX = r"""
cd "${0%/*}/../.."
case $* in
*user.minicluster-client=*) printf '%s' "$5" >asked-job ;;
*" find") echo '{"id": "f1", "cancelled": false, "input": [0, true]}'; exit ;;
"job attach --read-only f1") touch quick ;;
*" broker") echo '{"is_new": false}'; exit ;;
*" cancel")
  touch cancelled
  [ ! -e refuses ] || { cat refuses >&2; exit 1; }
  echo '{"id": "f1", "cancelled": true}'; exit ;;
*" waits") echo '{"id": "f1", "waits": "waits for nodes"}'; exit ;;
*) cat; exit ;;
esac
cat work
echo err >&2
printf '\036minicluster-end 7\n' >&2
[ ! -e quick ] || printf '\036minicluster-end\n'
touch printed
until [ -e cancelled ]; do sleep 0.02; done
exit 143
"""


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    made = Kubectl(tmp_path)
    made.flux(FLUX)
    (tmp_path / "work").write_bytes(b"a\n\x1emini")
    yield made
    # an instance that nobody follows any more
    (tmp_path / "cancelled").touch()


def test_the_work_ends_the_command_before_the_end_of_its_instance(kubectl: Kubectl) -> None:
    (kubectl.folder / "quick").touch()
    done = kubectl.run("run", "--in", "mini", "-N2", "-n", "3", "--timeout", "1h", "--", "/bin/x", "a  b")
    assert done == Done(7, "a\n\x1emini", "err\n")
    job = json.loads((kubectl.folder / "asked-job").read_text())
    key = job["user"].pop("minicluster-client")
    assert key.startswith("key-")
    asked = {"command": ["/bin/x", "a  b"], "nodes": 2, "tasks": 3, "seconds": 3600.0, "cwd": None}
    assert job == {**asked, "environment": {}, "user": {}}


def test_an_instance_is_found_again_after_a_cut(kubectl: Kubectl) -> None:
    relay = Path(__file__).parents[1] / "relay.py"
    (kubectl.folder / "relay").write_text(f'exec {sys.executable} -IS {relay} "$folder" "$@"')
    with kubectl.start("run", "--in", "mini", "--", "x") as process:
        until((kubectl.folder / "printed").exists)
        (kubectl.folder / "cut").touch()
        out, err = process.communicate(timeout=60)
    assert Done(process.returncode, out, err) == Done(7, "a\n\x1emini", "err\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_instance(kubectl: Kubectl, number: int) -> None:
    with kubectl.start("run", "--in", "mini", "--", "x") as process:
        until((kubectl.folder / "asked-job").exists)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    told = "err\nminicluster: job f1 is cancelled\n"
    assert Done(process.returncode, out, err) == Done(128 + number, "a\n\x1emini", told)


def test_an_instance_that_can_not_be_cancelled_is_named_once(kubectl: Kubectl) -> None:
    (kubectl.folder / "refuses").write_text("no broker\n")
    with kubectl.start("run", "--in", "mini", "--", "x") as process:
        until((kubectl.folder / "asked-job").exists)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    flux = "`minicluster flux mini --"
    told = f"no broker: what was submitted goes on: {flux} jobs` shows it, {flux} cancel ID` ends it"
    assert Done(process.returncode, out, err) == Done(143, "a\n\x1emini", f"err\nminicluster: {told}\n")


def test_the_end_of_the_time_cancels_it_and_a_wait_is_explained(kubectl: Kubectl) -> None:
    done = kubectl.run("run", "--in", "mini", "--timeout", "5s", "--", "x")
    told = ("job f1 waits for nodes", "job f1 is cancelled", "mini in namespace default: gave up after 5 s")
    assert done == Done(1, "a\n\x1emini", "err\n" + "".join(f"minicluster: {line}\n" for line in told))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--image", "x", "--", "y"),
            "--image is for a MiniCluster of its own, and mini is there: leave out --image or --in",
        ),
        (
            ("-N3",),
            "there is nothing to run: give a command after --; `minicluster flux mini -- alloc -N3` opens a shell in "
            "an instance",
        ),
        (
            ("-N3", "-n2", "--", "x"),
            "2 tasks are fewer than the 3 nodes: ask for at least 3, or 0 for one on each node",
        ),
    ],
)
def test_what_an_instance_can_not_have_is_refused(kubectl: Kubectl, words: tuple[str, ...], told: str) -> None:
    assert kubectl.run("run", "--in", "mini", *words) == Done(2, "", f"minicluster: {told}\n")


@pytest.mark.parametrize("size", [1, 2, 100])
def test_the_mark_is_found_in_parts_and_again_after_a_cut(size: int) -> None:
    text = b"one\x1emini\x1etwo\x1eminicluster-end\n"
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    written = UntilMark()
    before = b"".join(written.new(0, part) for part in parts[: len(parts) // 2])
    written.again()
    after = b"".join(written.new(0, part) for part in parts)
    assert (before + after, written.is_over) == (b"one\x1emini\x1etwo", True)
