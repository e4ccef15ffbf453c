"""The job of `minicluster flux NAME -- run` when the command is told to stop, or loses its lead."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from live_kubectl import Kubectl, lead, say
from status_samples import asleep, job

from tools.clients import Done, until

#: flux: `run` is the test's script; `python` notes the requests about the job, and gives the test's answers
FLUX = """
here=${0%/*}
echo "$1 $2" >>"$here/asked"
if [ "$1" = python ]; then
  echo "$6" >>"$here/actions"
  [ ! -e "$here/$6.fails" ] || { cat "$here/$6.fails" >&2; exit 1; }
  [ ! -e "$here/$6.slow" ] || sleep 1
  cat "$here/$6" 2>/dev/null || echo '{}'
  exit
fi
"""
LEAVES = {"deletionTimestamp": "2030-01-01T12:00:00Z"}
WAKES = "mini is suspended, idle for 60 s: waking it"


class Lead(Kubectl):
    """A lead whose flux is asked for a job."""

    @property
    def bin(self) -> Path:
        return self.folder / "home" / "bin"

    def flux(self, script: str) -> None:
        super().flux(FLUX + script)

    def answers(self, action: str, **found: Any) -> None:
        (self.bin / action).write_text(json.dumps({"id": "f1", "cancelled": False, "input": [0, False], **found}))

    def actions(self) -> list[str]:
        return (self.bin / "actions").read_text().split() if (self.bin / "actions").exists() else []

    def ran(self) -> list[str]:
        lines = (self.bin / "asked").read_text().splitlines()
        return [line.partition("=")[0] for line in lines if not line.startswith("python")]


@pytest.fixture
def kubectl(tmp_path: Path) -> Lead:
    return Lead(tmp_path)


def signalled(kubectl: Lead, number: signal.Signals) -> Done:
    """Send a signal to a command whose job has written "ready"; return how it ended."""
    with kubectl.start("flux", "mini", "--", "run", "true") as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


def test_flux_run_marks_its_job_with_a_random_key(kubectl: Lead) -> None:
    kubectl.flux('printf "<%s>" "$@"')
    run, mark, *words = kubectl.run("flux", "mini", "--", "run", "-N2", "a b").out.split("<")[1:]
    assert (run, words) == ("run>", ["-N2>", "a b>"])
    assert re.fullmatch("--setattr=user.minicluster-client=key-[0-9a-f]{32}>", mark)


def test_ctrl_c_cancels_a_job_that_flux_run_does_not_follow_yet(kubectl: Lead) -> None:
    kubectl.flux("trap 'exit 130' INT; echo ready; while :; do sleep 0.1; done")
    kubectl.answers("cancel", cancelled=True)
    (kubectl.bin / "cancel.slow").touch()
    with kubectl.start("flux", "mini", "--", "run", "sleep", "300") as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        # the second one comes while the command looks for the job
        until(kubectl.actions)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", say("job f1 is cancelled"))
    assert kubectl.actions() == ["cancel"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_stop_cancels_a_job_that_waits(kubectl: Lead, number: signal.Signals) -> None:
    # flux job attach can only pass a signal on to a job that runs
    kubectl.flux('echo ready; until [ -e "$here/actions" ]; do sleep 0.1; done; echo cancelled >&2; exit 1')
    kubectl.answers("stop", cancelled=True)
    assert signalled(kubectl, number) == Done(1, "", "cancelled\n")
    assert kubectl.actions() == ["stop", "broker", "cancel"]
    assert not [line for line in kubectl.asked() if "kill -s" in line]


def test_a_signal_to_stop_is_passed_to_a_job_that_runs(kubectl: Lead) -> None:
    kubectl.flux("trap 'echo got; exit 9' TERM; echo ready; while :; do sleep 0.1; done")
    kubectl.answers("stop")
    assert signalled(kubectl, signal.SIGTERM) == Done(9, "got\n", "")


def test_flux_run_ends_its_job_when_nobody_reads_the_output(kubectl: Lead) -> None:
    # flux run and what it becomes ignore SIGPIPE, as Python does
    kubectl.flux("trap '' PIPE; echo ready; exec sleep 300")
    kubectl.answers("stop")
    with kubectl.start("flux", "mini", "--", "run", "true") as process:
        assert process.stdout.readline() == "ready\n"
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (128 + signal.SIGPIPE, "")
    assert kubectl.actions() == ["stop", "cancel"]


def test_flux_run_that_has_no_time_left_blames_no_broker(kubectl: Lead) -> None:
    kubectl.begin_with("import minicluster.exec.submitted\nminicluster.exec.submitted.CANCEL_SECONDS = 0.5\n")
    kubectl.flux("trap 'exit 1' TERM; echo ready; while :; do sleep 0.1; done")
    for action in ("stop", "cancel"):
        (kubectl.bin / f"{action}.slow").touch()
    done = signalled(kubectl, signal.SIGTERM)
    flux = "`minicluster flux mini --"
    message = f"the time was over: what was submitted goes on: {flux} jobs` shows it, {flux} cancel ID` ends it"
    assert done == Done(1, "", say(message))


def test_flux_run_says_when_it_can_not_cancel_its_job(kubectl: Lead) -> None:
    kubectl.flux("trap 'exit 130' INT; echo ready; while :; do sleep 0.1; done")
    (kubectl.bin / "cancel.fails").write_text("no broker\n")
    done = signalled(kubectl, signal.SIGINT)
    flux = "`minicluster flux mini --"
    message = f"no broker: what was submitted goes on: {flux} jobs` shows it, {flux} cancel ID` ends it"
    assert done == Done(130, "", say(message))


# A cluster that falls asleep --------------------------------------------------------------------------------------


def falls_asleep(kubectl: Lead, script: str = "echo not implemented >&2; exit 1") -> None:
    """Let the lead go while the first command runs, and another one come when somebody wakes the cluster."""
    here = kubectl.folder
    kubectl.has(
        job=asleep(),
        patch=asleep(),
        pods_1={"items": [lead(here)]},
        pods_2={"items": [lead(here, **LEAVES)]},
        pods_3={"items": [lead(here, **LEAVES)]},
        pods_4={"items": [lead(here, **LEAVES)]},
        pods_5={"items": [lead(here, **LEAVES)]},
        pods={"items": [lead(here, name="mini-0-y")]},
    )
    again = 'cat; echo "$1"; exit 3'
    kubectl.flux(f'[ -e "$here/again" ] && {{ {again}; }}; : >"$here/again"; {script}')


def test_flux_run_follows_its_queued_job_after_the_cluster_wakes(kubectl: Lead) -> None:
    falls_asleep(kubectl)
    kubectl.answers("find")
    done = kubectl.run("flux", "mini", "--", "run", "cat", stdin="text\n")
    assert done == Done(3, "text\njob\n", "not implemented\n" + say(WAKES, "job f1 goes on"))
    assert kubectl.ran() == ["run --setattr", "job attach"]


def test_flux_run_runs_again_with_all_its_input_when_nothing_was_submitted(kubectl: Lead, tmp_path: Path) -> None:
    reads = "head -c 2 >&2; echo not implemented >&2; exit 1"
    falls_asleep(kubectl, reads)
    done = kubectl.run("flux", "mini", "--", "run", "cat", stdin="text\n")
    said = say(WAKES, "the job was not submitted: running the command again")
    assert done == Done(3, "text\nrun\n", "tenot implemented\n" + said)
    assert kubectl.ran() == ["run --setattr", "run --setattr"]
    # a file as well as a pipe
    (tmp_path / "input").write_text("file\n")
    for name in ("pods.count", "job.count"):
        (kubectl.folder / name).unlink()
    (kubectl.bin / "again").unlink()
    with (
        (tmp_path / "input").open() as stdin,
        kubectl.start("flux", "mini", "--", "run", "cat", stdin=stdin) as process,
    ):
        assert process.communicate(timeout=60)[0] == "file\nrun\n"


def test_flux_run_says_that_input_too_long_to_keep_is_lost(kubectl: Lead) -> None:
    falls_asleep(kubectl, "cat >/dev/null; exit 1")
    kubectl.answers("find")
    done = kubectl.run("flux", "mini", "--", "run", "cat", stdin="x" * (1 << 20) + "y")
    flux = "`minicluster flux mini --"
    lost = f"its input is lost: job f1 goes on: {flux} job attach f1` shows its output, {flux} cancel f1` ends it"
    assert done == Done(1, "", say(WAKES, lost))


def test_flux_run_does_not_print_the_output_of_a_job_twice(kubectl: Lead) -> None:
    falls_asleep(kubectl, "echo job; exit 1")
    kubectl.answers("find")
    assert kubectl.run("flux", "mini", "--", "run", "cat") == Done(3, "job\n", say(WAKES, "job f1 goes on"))
    assert kubectl.ran() == ["run --setattr", "job attach"]


@pytest.mark.parametrize(("exit_code", "expected"), [(0, 0), (7, 7), (None, 1)])
def test_flux_run_does_not_run_again_what_ended_and_flux_has_forgotten(
    kubectl: Lead, exit_code: int | None, expected: int
) -> None:
    falls_asleep(kubectl)
    (kubectl.bin / "find").write_text(json.dumps({"id": "f1", "exit_code": exit_code}))
    done = kubectl.run("flux", "mini", "--", "run", "true")
    said = "job f1 has ended, and Flux no longer has its output"
    assert done == Done(expected, "", "not implemented\n" + say(WAKES, said))
    assert kubectl.ran() == ["run --setattr"]


def test_flux_run_fails_when_its_command_fails_on_an_awake_cluster(kubectl: Lead) -> None:
    kubectl.flux("exit 1")
    assert kubectl.run("flux", "mini", "--", "run", "false") == Done(1, "", "")
    # a broker that died under it would have failed it, too
    assert kubectl.actions() == ["broker"]
    kubectl.has(pods={"items": [lead(kubectl.folder, **LEAVES)]}, pods_1={"items": [lead(kubectl.folder)]}, job=job())
    (kubectl.folder / "pods.count").unlink()
    assert kubectl.run("flux", "mini", "--", "run", "false") == Done(1, "", "")
