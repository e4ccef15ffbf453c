"""What the lead does once it has its quorum, and its exit code by the end of the work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from minicluster.render.work import batch_script
from pods import ROOT, Make, Process, until
from support import EACH_SHELL

QUIET = {"logging": {"quiet": True}}
KEPT = [{"archive": {"path": "/ROOT/data/state.tgz"}}, {"state": {"claimName": "claim"}}]
FAILED = "minicluster: the job failed with exit code"
#: Prints the environment of a job
SHOWS = 'echo "${PYTHONPATH-unset}"'


def shells_of(words: list[str]) -> list[str]:
    """Return the last two words of a call; the shell without its folder."""
    return [Path(words[-2]).name, words[-1]]


def test_a_command_is_submitted_as_a_file_for_a_shell(make: Make) -> None:
    pod = make({"size": 4, "tasks": 3, **QUIET}, {"command": "echo {{id}} '$HOME'"})
    assert pod.run() == (0, "{{id}} $HOME\n")
    [call] = pod.calls("run")
    assert call.words[:3] == ["run", "-n", "3"]
    assert shells_of(call.words) == ["bash", f"{pod.home}/minicluster/command"]  # also one outside of PATH


def test_the_submission_is_logged(make: Make) -> None:
    code, log = make({"size": 4}, {"command": "true"}).run()
    assert code == 0
    assert log.splitlines() == [
        "minicluster: flux-sample-0 of 4 (max 4), Flux 0.88.0",
        "minicluster: scheduler: sched-simple",
        "minicluster: flux run -n 1 --job-name=true",
    ]


def test_the_scheduler_is_logged(make: Make) -> None:
    pod = make({"size": 4}, {"command": "true"})
    pod.play(
        "dmesg",
        "echo 'Nov 22 sched-fluxion-resource.info[0]: version 0.34.0'; "
        "echo 'Nov 22 sched-fluxion-qmanager.info[0]: version 0.34.0'",
    )
    assert pod.run()[1].splitlines()[1] == "minicluster: scheduler: Fluxion 0.34.0"
    assert (pod.run_folder / "fluxion").read_text() == "0.34.0\n"


def test_a_failure_of_the_undrainer_is_logged_once_and_kept_for_the_status(make: Make) -> None:
    pod = make({"interactive": True, **QUIET, **KEPT[0]})
    pod.play("python undrainer.py", "echo 'Traceback' >&2; echo 'ImportError: no journal' >&2; exit 1")
    process = pod.start()
    what = "nodes that come back may stay drained, and jobs unrecorded"
    why = f"minicluster: the undrainer failed, {what}: ImportError: no journal"
    assert until(lambda: process.log) == f"{why}\n"
    assert until((pod.run_folder / "undrainer.problem").read_text) == f"{why}\n"


def test_an_undrainer_that_ends_with_the_instance_is_not_a_failure(make: Make) -> None:
    pod = make({**QUIET, **KEPT[1]}, {"command": "true"})
    pod.play("python undrainer.py", "exit 1")
    pod.play("getattr", "exit 1")
    assert pod.run() == (0, "")
    assert not (pod.run_folder / "undrainer.problem").exists()


def test_queues_start_unless_flux_has_restored_how_they_were_left(make: Make) -> None:
    pod = make({"flux": {"queues": {"a": {"default": True}, "b": {}, "c": {}}}, **QUIET}, {"command": "true"})
    pod.play("kvs get", """echo '{"max_jobid":7,"queue":[{"name":"b","enable":true,"start":false}]}'""")
    pod.play("queue start", "exit 0")
    # an older flux has no argument for it
    pod.play("queue start --quiet c", "exit 1")
    assert pod.run() == (0, "")
    words = [call.words for call in pod.calls("queue")]
    start = ["queue", "start", "--quiet"]
    assert words == [[*start, "a"], [*start, "c"], [*start, "--queue", "c"]]


def test_an_idle_cluster_ends_when_its_watcher_does(make: Make) -> None:
    pod = make({"interactive": True, "endAfterSeconds": 60, **QUIET})
    pod.play("python end_idle.py", 'echo "$3"')
    why = "for 60 s there was no job, and nobody connected: it ends (endAfterSeconds)"
    assert pod.run() == (0, f"60\nminicluster: {why}\n")
    assert (pod.run_folder / "exit-code").read_text() == "0\n"


def test_a_policy_without_fluxion_fails_the_work_before_it_starts(make: Make) -> None:
    pod = make({"flux": {"scheduler": {"queuePolicy": "hybrid"}}, **QUIET}, {"command": "true"})
    missing = (
        "flux.scheduler.queuePolicy hybrid is set and this Flux has no Fluxion: drop it, or use a view with flux-sched"
    )
    assert pod.run() == (1, f"minicluster: {missing}\n{FAILED} 1\n")
    assert pod.calls("run") == []


def test_the_script_of_the_runner_may_name_its_interpreter(make: Make) -> None:
    cat = "#!/usr/bin/env cat\nline\n"
    assert make(QUIET, {"commands": {"script": cat}}).run() == (0, cat)
    assert make(QUIET, {"commands": {"script": "echo $((1 + 1))"}}).run() == (0, "2\n")


@pytest.mark.parametrize("own", ["", "/image's own"])
@pytest.mark.parametrize("runner", [{"command": SHOWS}, {"command": SHOWS, "launcher": True}], ids=["job", "launcher"])
def test_the_work_has_the_pythonpath_of_the_image_and_not_of_the_view(
    make: Make, own: str, runner: dict[str, object]
) -> None:
    pod = make(QUIET, runner)
    environment = {"PYTHONPATH": own} if own else {}
    assert pod.run("entrypoint.sh", **environment) == (0, f"{own or 'unset'}\n")
    # although the stand-in for Flux adds its own path to the programs that it starts
    assert [call.env.get("PYTHONPATH", "") for call in pod.calls("run")] in ([], [own])


def test_a_launcher_submits_its_jobs_to_the_instance_of_the_cluster(make: Make) -> None:
    pod = make(QUIET, {"command": "flux submit --quiet true; exit 4", "launcher": True})
    assert pod.run() == (4, f"{FAILED} 4\n")
    [call] = pod.calls("submit")
    assert call.env["FLUX_URI"] == f"local://{pod.run_folder}/flux/local"


def test_the_process_id_of_a_launcher_is_in_a_file(make: Make) -> None:
    command = f'cat "{ROOT}/mnt/config/run/launcher"; echo $$ "$A"; exit 4'
    pod = make(QUIET, {"command": command, "launcher": True, "commands": {"prefix": "env A='d  \"$$\" e'"}})
    code, log = pod.run()
    first, second, *_ = log.splitlines()
    assert (code, second) == (4, f'{first} d  "$$" e')
    assert not (pod.run_folder / "launcher").exists()


def test_the_prefix_comes_before_the_submit_command(make: Make) -> None:
    pod = make(QUIET, {"command": 'echo "$B"', "commands": {"prefix": "env B='d  e'"}})
    assert pod.run() == (0, "d  e\n")


# Batch -------------------------------------------------------------------------------------------------------


def batch(
    make: Make, submitted: str = "echo ƒbatch", attached: str = '[ -n "$3" ]'
) -> tuple[int, str, list[list[str]]]:
    """Run a batch of two lines; return the exit code, what was printed, and the calls of flux job."""
    pod = make(QUIET, {"command": "echo a\necho b", "batch": True})
    pod.play("batch", submitted)
    pod.play("job attach", attached)
    return pod.run()


def test_the_lead_waits_for_a_batch_and_shows_its_output(make: Make) -> None:
    assert batch(make, attached='echo "output of $3"') == (0, "output of ƒbatch\n")


def test_a_batch_that_fails_fails_the_work(make: Make) -> None:
    assert batch(make, attached="exit 3") == (3, f"{FAILED} 3\n")


def test_a_batch_that_is_refused_fails_the_work(make: Make) -> None:
    code, log = batch(make, submitted="echo 'flux-batch: ERROR: no' >&2; exit 1")
    assert code == 1
    assert log.startswith("flux-batch: ERROR: no\n")


def test_the_script_of_a_batch_submits_each_line_of_the_command(make: Make, tmp_path: Path) -> None:
    pod = make(QUIET, {"command": "echo a\necho b", "batch": True})
    # the stand-in has no instance in which the script could submit
    pod.play("batch", f'for file; do :; done; cp "$file" {pod.root}/script')
    pod.play("job attach", "exit 0")
    assert pod.run() == (0, "")
    first, *_ = (pod.root / "script").read_text().split("\n")
    assert first.startswith("#!/")
    assert Path(first.removeprefix("#!")).exists()
    code, submitted, _ = run_batch(tmp_path, [str(pod.root / "script")], "")
    assert (code, [words[3:] for words in submitted]) == (0, [["echo", "a"], ["echo", "b"]])
    assert [words[:3] for words in submitted] == [
        ["--flags=waitable", f"--output=/my logs/job-{number}.out", f"--error=/my logs/job-{number}.err"]
        for number in (1, 2)
    ]


def run_batch(folder: Path, words: list[str], submit: str, wait: str = "") -> tuple[int, list[list[str]], str]:
    """Run the script of a batch; return its exit code, the words of each `flux submit`, and its standard error."""
    (folder / "bin").mkdir()
    flux = f"""#!/bin/sh
case $1 in submit) shift; printf '%s\\0' "$@" >>{folder}/submits; echo >>{folder}/submits; {submit or "true"} ;;
*) {wait or "true"} ;; esac
"""
    (folder / "bin" / "flux").write_text(flux)
    (folder / "bin" / "flux").chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "FLUX_OUTPUT_DIR": "/my logs"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    submits = (folder / "submits").read_text() if (folder / "submits").exists() else ""
    return done.returncode, [line.split("\0")[:-1] for line in submits.split("\n")[:-1]], done.stderr


@pytest.mark.parametrize("shell", EACH_SHELL)
def test_a_line_of_a_batch_has_no_effect_on_the_others(shell: str, tmp_path: Path) -> None:
    """Lines that no check without a shell finds."""
    broken = ["echo `(`", "cat <<EOF", "; { echo", "echo $(", "; exit 0"]
    script = batch_script("\n".join(["echo $((1+1)) 'a  b'; true", *broken, "echo last"]))
    words = {"busybox": ["busybox", "sh"]}.get(shell, [shell])
    code, submitted, err = run_batch(tmp_path, [*words, "-c", script], "")
    jobs = [words[3:] for words in submitted]
    assert jobs[0] == ["echo", "2", "a  b"]
    assert jobs[-1] == ["echo", "last"]
    assert code != 0
    assert "minicluster: line 4 of the batch failed with exit code " in err
    assert "line 1 " not in err
    assert "line 7 " not in err


@pytest.mark.parametrize(
    ("submit", "wait", "code"),
    [("", "", 0), ("", "exit 4", 4), ("exit 3", "", 3), ("exit 3", "exit 4", 4)],
    ids=["none", "a job", "a submission", "both"],
)
def test_a_batch_fails_with_a_job_and_with_a_line_that_is_not_submitted(
    submit: str, wait: str, code: int, tmp_path: Path
) -> None:
    assert run_batch(tmp_path, ["sh", "-c", batch_script("echo a\necho b")], submit, wait)[0] == code


@pytest.mark.parametrize("first", ["#!/usr/bin/env python3", "#! /bin/sh -e"])
def test_a_batch_script_may_name_its_interpreter(make: Make, first: str) -> None:
    text = f"{first}\n#flux: -N1\n\techo \\t '%s'\n"
    pod = make(QUIET, {"command": text, "batch": True, "batchRaw": True})
    pod.play("batch", f'for file; do :; done; cp "$file" {pod.root}/script')
    pod.play("job attach", "exit 0")
    assert pod.run() == (0, "")
    assert (pod.root / "script").read_bytes() == text.encode()


def test_a_batch_whose_script_can_not_be_written_is_not_submitted(make: Make) -> None:
    pod = make(QUIET, {"command": "echo a", "batch": True})
    (pod.run_folder / "batch").mkdir(parents=True)
    code, log = pod.run()
    assert code != 0
    assert log.endswith(f"{FAILED} {code}\n")
    assert pod.calls("batch") == []


# A queue that was kept ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", KEPT, ids=["archive", "claim"])
@pytest.mark.parametrize("how", [{}, {"batch": True}], ids=["submit", "batch"])
def test_the_work_of_a_previous_lead_is_cancelled_before_the_new_submission(
    make: Make, kept: dict[str, object], how: dict[str, object]
) -> None:
    pod = make({**QUIET, **kept}, {"command": "true", **how})
    pod.play("batch", "echo ƒ")
    pod.play("job attach", "exit 0")
    pod.run()
    called = [verb for verb in pod.verbs() if verb in ("run", "batch", "python own_work.py")]
    assert called == ["python own_work.py", "batch" if how else "run"]


@pytest.mark.parametrize("how", [{}, {"batch": True}], ids=["submit", "batch"])
def test_nothing_is_submitted_when_the_kept_queue_can_not_be_searched(make: Make, how: dict[str, object]) -> None:
    pod = make({**QUIET, **KEPT[1]}, {"command": "true", **how})
    pod.play("python own_work.py cancel", "echo 'own_work.py: no answer' >&2; exit 2")
    assert pod.run() == (
        1,
        "own_work.py: no answer\n"
        "minicluster: nothing is submitted: the kept queue can't be searched for an earlier run of this work\n"
        f"{FAILED} 1\n",
    )
    assert pod.calls("run") + pod.calls("batch") == []


def test_jobs_of_a_previous_launcher_are_not_cancelled(make: Make) -> None:
    pod = make({**QUIET, **KEPT[1]}, {"command": "true", "launcher": True})
    pod.run()
    assert pod.calls("python", "own_work.py", "cancel") == []


def test_a_lead_without_a_kept_queue_searches_for_no_previous_work(make: Make) -> None:
    pod = make(QUIET, {"command": "true"})
    assert pod.run() == (0, "")
    assert pod.calls("python", "own_work.py", "cancel") == []


# Work that is put back ---------------------------------------------------------------------------------------

AGAIN = {**QUIET, "pod": {"onStop": "requeue"}}


@pytest.mark.parametrize("how", [{}, {"batch": True}], ids=["submit", "batch"])
@pytest.mark.parametrize("code", [0, 4])
def test_work_that_a_pod_put_back_is_followed_to_its_exit_code(make: Make, how: dict[str, object], code: int) -> None:
    pod = make(AGAIN, {"command": "exit 3", **how})
    pod.play("batch", "echo ƒ")
    pod.play("job attach", "exit 3")
    pod.play("python own_work.py follow", f"exit {code}")
    assert pod.run() == (code, f"{FAILED} {code}\n" if code else "")
    [call] = pod.calls("python", "own_work.py", "follow")
    assert call.words[3:] == ["3"]


@pytest.mark.parametrize(
    ("values", "command"),
    [(AGAIN, "true"), (QUIET, "exit 3"), (AGAIN, ": >$MINICLUSTER_HOME/config/run/stopping; exit 3")],
    ids=["succeeded", "not put back", "cancelled by the lead"],
)
def test_work_that_succeeded_or_is_not_put_back_is_not_followed(
    make: Make, values: dict[str, object], command: str
) -> None:
    pod = make(values, {"command": command})
    pod.run()
    assert pod.calls("python", "own_work.py", "follow") == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (KEPT[0], ["cancel", "kept"]),
        (KEPT[1], ["cancel", "kept"]),
        ({"size": 2}, ["cancel", "lost"]),
        ({"size": 2, "pod": {"onStop": "requeue"}}, ["requeue", "lost"]),
        ({"size": 2, "flux": {"preemption": {"afterSeconds": 9}}}, ["cancel", "lost", "9", "60", "15"]),
    ],
    ids=["archive", "claim", "none", "requeue", "preemption"],
)
def test_the_undrainer_starts_with_the_lead(make: Make, values: dict[str, object], words: list[str]) -> None:
    pod = make({**QUIET, **values})
    idle(pod.start(), pod.run_folder)
    [call] = until(lambda: pod.calls("python", "undrainer.py"))
    assert call.words[2:] == words


def test_a_cluster_of_one_host_whose_queue_is_not_kept_has_no_undrainer(make: Make) -> None:
    pod = make({**QUIET, "size": 1})
    pod.run("finish")
    assert pod.calls("python", "undrainer.py") == []


# Without work ------------------------------------------------------------------------------------------------


HANGS_UP = "until [ -e $MINICLUSTER_HOME/end ]; do sleep 0.05; done; kill -HUP $!"


def idle(process: Process, folder: Path) -> None:
    """Wait until the lead has its quorum; it then goes on."""
    until((folder / "ready").exists)
    assert process.runs


def test_without_a_command_the_lead_stays_until_the_instance_is_shut_down(make: Make) -> None:
    pod = make({"size": 2, **QUIET})
    # `flux shutdown` sends SIGHUP to the initial program
    pod.play("start", f'while [ "$1" != /bin/sh ]; do shift; done; "$@" & {HANGS_UP}; wait $!')
    process = pod.start()
    idle(process, pod.run_folder)
    (pod.home / "end").touch()
    assert process.wait() == 0
    # the workers need not come back
    [call] = pod.calls("exec")
    assert "-r all" in " ".join(call.words)


def test_diagnostics_are_printed_without_secrets_and_the_cluster_stays(make: Make) -> None:
    pod = make(QUIET, {"diagnostics": True, "command": "never"})
    pod.play("overlay status", "echo overlay; exit 1")
    pod.play("resource list", "echo resources")
    pod.play("python diagnose.py", f"exec {sys.executable} $2")
    hidden = "line\nFLUX_URI=of a secret"
    process = pod.start("entrypoint.sh", DATABASE=hidden, FLUX_TOKEN=hidden, GITHUB_PAT="ghp_1")
    until(lambda: "SHELL=" in process.log)
    lines = process.log.splitlines()
    assert lines[:3] == ["overlay", "resources", "commands:    \t\t0.88.0"]
    assert f"MINICLUSTER_HOME={pod.home}" in lines
    assert [line for line in lines if line.endswith("=(not shown)")] == [
        f"{name}=(not shown)" for name in ("DATABASE", "FLUX_TOKEN", "GITHUB_PAT")
    ]
    assert "secret" not in process.log
    assert "ghp_1" not in process.log
    assert process.runs


# Its end -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "told"), [(1, 0), (3, 1)])
def test_the_lead_tells_the_workers_that_the_instance_ends(make: Make, size: int, told: int) -> None:
    pod = make({"size": size, **QUIET}, {"command": "true"})
    pod.play("exec", 'while [ "$1" != /bin/sh ]; do shift; done; "$@"')
    assert pod.run() == (0, "")
    words = ["exec", "-q", "-r", "all", "-x", "0", "/bin/sh", "-c", f": >'{pod.run_folder}/ended'"]
    assert [call.words for call in pod.calls("exec")] == [words] * told
    # the file is made in the worker's own pod
    assert (pod.run_folder / "ended").exists() == bool(told)


def test_a_shutdown_while_the_work_ends_does_not_hide_its_result(make: Make) -> None:
    pod = make(QUIET, {"command": "exit 3"})
    # the broker passes it on as SIGHUP
    pod.play("getattr", f'kill -TERM "$(cat {pod.root}/broker)"; sleep 0.3')
    assert pod.run() == (3, f"{FAILED} 3\n")


def test_timed_logging_prints_the_wall_times_of_submission_and_start(make: Make) -> None:
    code, log = make({"logging": {"quiet": True, "timed": True}}, {"command": "exit 3"}).run()
    assert code == 3
    assert [line.rsplit(" ", 1)[0] for line in log.splitlines()] == [
        "FLUXTIME fluxsubmit wall time",
        "FLUXTIME fluxstart wall time",
        "minicluster: the job failed with exit code",
    ]
