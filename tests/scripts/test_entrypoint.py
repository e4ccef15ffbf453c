"""How a pod starts and ends."""

import io
import json
import os
import random
import re
import shutil
import signal
import stat
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from minicluster.cluster.pods import REPLACED_CODES
from pods import COMMANDS, PATIENCE, RETRY, ROOT, Make, Pod, until

QUIET = {"logging": {"quiet": True}}
TWO = {"size": 2, **QUIET}


@pytest.mark.parametrize(("code", "ends"), [(0, 0), (3, 3), *((code, 1) for code in REPLACED_CODES)])
def test_the_lead_ends_with_the_exit_code_of_its_work(make: Make, code: int, ends: int) -> None:
    pod = make(QUIET, {"command": f"echo out; exit {code}"})
    found, log = pod.run()
    assert found == ends
    lines = log.splitlines()
    assert lines[0] == "out"
    assert lines[1:2] == ([f"minicluster: the job failed with exit code {code}"] if code else [])


def test_the_snippets_of_lead_and_worker_run_in_order(make: Make) -> None:
    names = ("init", "pre", "brokerPre", "workerPre", "post")
    commands = {name: f"A=${{A:-}}{name},; export A; echo $A >>$MINICLUSTER_HOME/said" for name in names}
    lead, worker = (make(TWO, {"command": "echo work $A", "commands": commands}, index=index) for index in (0, 1))
    worker.play("start", ": >$MINICLUSTER_HOME/config/run/ended")
    assert lead.run() == (0, "work init,pre,brokerPre,\n")
    assert worker.run() == (0, "")
    for pod, own in ((lead, "brokerPre"), (worker, "workerPre")):
        first = ["init,", "init,pre,", f"init,pre,{own},"]
        assert (pod.home / "said").read_text().split() == [*first, f"{first[-1]}post,"]


@pytest.mark.parametrize("what", ["false", "exit 3", "nosuchtool"])
def test_a_failing_snippet_is_explained_although_logging_is_quiet(make: Make, what: str) -> None:
    pre = f'for n in 1 2 3 4 5 6; do echo line $n; done\necho "it\'s bad" >&2\n{what}'
    pod = make(QUIET, {"command": "true", "commands": {"init": "echo hidden", "pre": pre}})
    code, log = pod.run()
    assert code == {"false": 1, "exit 3": 3, "nosuchtool": 127}[what]
    *said, last = log.splitlines()
    assert last == f"minicluster: pre.sh failed with exit code {code}"
    assert len(said) == 5
    assert said[-1].endswith("nosuchtool: not found") or "nosuchtool: command" in said[-1] or said[-1] == "it's bad"
    assert (what == "nosuchtool") == ("nosuchtool" in said[-1])


def test_a_pod_without_flux_says_which_value_to_set(make: Make) -> None:
    pod = make(QUIET, {"command": "true"})
    (pod.root / "bin/flux").unlink()
    message = "there is no flux here (in PATH): set flux.container.image to a view for this image's distribution"
    assert pod.run() == (127, f"minicluster: {message}\n")


@pytest.mark.parametrize(
    ("job", "namespace", "group"),
    [
        ("flux-sample", "ns", ""),
        ("flux-sample-big", "ns", "big"),
        ("dev-flux-sample", "ns", ""),
        ("flux-sample-v2", "ns", ""),
        ("dev-flux-sample-big", "ns", "big"),
        ("flux-sample", "other", ""),
    ],
)
def test_a_pod_whose_job_was_renamed_or_moved_ends_and_says_so(
    make: Make, job: str, namespace: str, group: str
) -> None:
    pod = make({**QUIET, "groups": [{"name": "big", "cores": 1}]}, {"command": "true"})
    if group:
        pod.play("start", ": >$MINICLUSTER_HOME/config/run/ended")
    names = {"MINICLUSTER_JOB": job, "MINICLUSTER_NAMESPACE": namespace, "MINICLUSTER_GROUP": group}
    own = f"flux-sample{f'-{group}' if group else ''}"
    said = (
        f"minicluster: this pod is {job}-0 in the namespace {namespace}, and its configuration is that of {own}-0 in "
        "ns: names can't change after the rendering; set nameOverride and Helm's --namespace\n"
    )
    assert pod.run("entrypoint.sh", **names) == ((0, "") if (job, namespace) == (own, "ns") else (1, said))


@pytest.mark.parametrize("given", [None, "", "/nonexistent/zsh"])
def test_the_broker_gets_a_shell_that_exists(make: Make, given: str | None) -> None:
    pod = make(QUIET, {"command": "true"})
    del pod.environment["SHELL"]
    assert pod.run("entrypoint.sh", **({} if given is None else {"SHELL": given})) == (0, "")
    [call] = pod.calls("start")
    assert call.env["SHELL"].startswith("/")
    assert Path(call.env["SHELL"]).exists()


def test_the_broker_ignores_flux_uri_and_always_finds_bash(make: Make, shell: str) -> None:
    pod = make(QUIET, {"command": "true"})
    assert pod.run("entrypoint.sh", FLUX_URI="local:///elsewhere") == (0, "")
    [call] = pod.calls("start")
    assert "FLUX_URI" not in call.env
    assert shutil.which("bash", path=call.env["PATH"])
    [work] = pod.calls("run")
    assert bool(shutil.which("bash", path=work.env["PATH"])) == (shell == "bash")


@pytest.mark.parametrize("index", [0, 1])
def test_few_commands_run_before_a_broker(make: Make, shell: str, index: int) -> None:
    """On a Kubernetes node that starts all of its pods at once each costs time."""
    if shell != "bash":
        pytest.skip("without bash there are two more")
    pod = make({"size": 2, **QUIET}, {"command": "true"}, index=index)
    for name in COMMANDS.split():
        pod.wrap(name, f"echo {name} >>{pod.root}/ran")
    pod.wrap("flux", f'echo "flux $1" >>{pod.root}/ran')
    process = pod.start()
    until(lambda: pod.calls("start"))
    ran = (pod.root / "ran").read_text().splitlines()
    of_lead = [] if index else ["flux --version", "flux R", "sed"]
    # the others are of the guard and the watch, which run beside it
    before = [name for name in ran[: ran.index("flux start")] if name not in ("mkfifo", "sleep")]
    assert sorted(before) == sorted(["mkdir", "id", "chmod", "cat", "cat", "mkdir", *of_lead])
    process.end()


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("index", [0, 1])
def test_a_batch_whose_output_folder_can_not_be_written_ends_and_names_it(make: Make, index: int, batch: bool) -> None:
    """Other work has no such files."""
    pod = make({"size": 2, **QUIET}, {"command": "true", "batch": batch, "logs": "/proc/none"}, index=index)
    pod.play("start", ": >$MINICLUSTER_HOME/config/run/ended") if index else None
    why = f"/proc/none can't be written by user {os.geteuid()}: name a folder on a volume where it may write"
    assert pod.run() == ((1, f"minicluster: logs: {why}\n") if batch else (0, ""))


@pytest.mark.parametrize(("is_file", "folder"), [(False, "fluxout"), (True, "mnt/config/fluxout")])
def test_the_output_folder_is_one_that_can_be_made(make: Make, is_file: bool, folder: str) -> None:
    pod = make(QUIET, {"command": "true"})
    if is_file:
        (pod.root / "fluxout").touch()
    assert pod.run() == (0, "")
    [work] = pod.calls("run")
    assert work.env["FLUX_OUTPUT_DIR"] == f"{pod.root}/{folder}"
    assert (pod.root / folder).is_dir()


PLACE = {"MINICLUSTER_NODE": "n1.example", "MINICLUSTER_ZONE": "eu-1a", "MINICLUSTER_REGION": "eu"}


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize(
    ("unset", "told"),
    [
        ((), "node=n1.example zone=eu-1a region=eu"),
        (("REGION",), "node=n1.example zone=eu-1a"),
        (("ZONE", "REGION"), "node=n1.example"),
    ],
    ids=str,
)
def test_a_broker_tells_where_its_pod_runs(make: Make, index: int, unset: tuple[str, ...], told: str) -> None:
    pod = make({"size": 2, "flux": {"locations": True}, **QUIET}, {"command": "true"}, index=index)
    # Kubernetes sets the variable of a label that the pod doesn't have to ""
    pod.environment |= PLACE | dict.fromkeys((f"MINICLUSTER_{name}" for name in unset), "")
    process = pod.start()
    until(lambda: pod.calls("start"))
    assert f"-o-Svendor.minicluster.locations={told}" in pod.calls("start")[0].words
    assert (pod.run_folder / "locations").read_text() == f"{told}\n"
    warning = "flux.locations: no zone: Kubernetes tells pods from 1.35 on, if the Kubernetes node has a zone\n"
    assert process.log.count(warning) == ("ZONE" in unset and index == 0)


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize(
    ("found", "cores"), [("0-3", "0-3"), ("2-4,8", "0-3"), ("7", "0"), ("0-1,64-127", "0-65")], ids=str
)
@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")], ids=["spaces", "compact"])
def test_the_resource_set_lists_the_resources_of_all_hosts(
    make: Make, index: int, found: str, cores: str, separators: tuple[str, str]
) -> None:
    bursts = [{"name": "burst", "size": 2, "cores": 8, "gpus": 0}, {"name": "other", "size": 1}]
    runner = {"resources": {"limits": {"nvidia.com/gpu": 2}}, "command": "true"}
    values = {"size": 2, "maxSize": 5, "flux": {"bursting": {"clusters": bursts}}, **QUIET}
    pod = make(values, runner, index=index)
    answer = json.dumps(
        {"execution": {"R_lite": [{"rank": "0", "children": {"core": found, "gpu": "0-5"}}]}}, separators=separators
    )
    pod.play("R encode --local", f"echo '{answer}'")
    process = pod.start()
    until(lambda: pod.calls("start"))
    own = {"core": cores if index == 0 else "0", "gpu": "0-1"}
    assert json.loads((pod.state / "etc/flux/system/R").read_text()) == {
        "version": 1,
        "execution": {
            "R_lite": [
                {"rank": "0-4", "children": own},
                {"rank": "5-6", "children": {"core": "0-7"}},
                {"rank": "7", "children": own},
            ],
            "starttime": 0,
            "expiration": 0,
            "nodelist": ["flux-sample-[0-4]", "burst-[0-1]", "other-0"],
        },
    }
    # a process costs on a node that starts all of its pods at once
    assert len(pod.calls("R")) == (index == 0)
    process.end()


def test_a_resource_set_from_the_values_needs_no_call_of_flux(make: Make) -> None:
    pod = make(QUIET, {"cores": 3, "command": "true"})
    assert pod.run() == (0, "")
    assert pod.calls("R") == []
    assert '"core": "0-2"' in (pod.state / "etc/flux/system/R").read_text()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("echo 'flux-R: ERROR: killed' >&2; exit 9", "flux-R: ERROR: killed"),
        ("true", "minicluster: flux R encode --local names no cores: "),
        ("echo '{}'", "minicluster: flux R encode --local names no cores: {}"),
    ],
)
def test_no_broker_starts_without_a_complete_resource_set(make: Make, answer: str, said: str) -> None:
    pod = make(QUIET, {"command": "true"})
    pod.play("R encode --local", answer)
    problem = "minicluster: the resource set R can't be made: see the lines above"
    assert pod.run() == (1, f"{said}\n{problem}\n")
    assert pod.calls("start") == []


def test_the_broker_gets_a_private_copy_of_the_certificate(make: Make) -> None:
    pod = make(QUIET, {"command": "true"})
    assert pod.run() == (0, "")
    copy = pod.state / "curve/curve.cert"
    assert copy.read_text() == (pod.home / "curve/curve.cert").read_text()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o400


@pytest.mark.parametrize("how", [{}, {"batch": True}, {"launcher": True}], ids=["run", "batch", "launcher"])
def test_no_result_is_recorded_of_work_whose_broker_is_killed(make: Make, how: dict[str, bool]) -> None:
    """The command fails at once, before the entrypoint sees that the broker is gone."""
    pod = make(QUIET, {"command": "flux dies", **how})
    # a busy machine takes its time to end a process and to close its socket
    gone = "while read -r _ _ state _ </proc/$pid/stat && [ $state != Z ]; do :; done"
    for verb in ("run", "batch", "dies"):
        pod.play(verb, f"pid=$(cat {pod.root}/broker); kill -9 $pid; {{ {gone}; }} 2>&-; exit 1")
    assert pod.run() == (RETRY, "minicluster: the broker died, exit code 137: the Job replaces this pod\n")
    assert not (pod.run_folder / "exit-code").exists()


@pytest.mark.parametrize("signal", ["KILL", "SEGV"])
def test_a_lead_whose_broker_is_killed_before_the_quorum_is_replaced(make: Make, signal: str) -> None:
    pod = make(QUIET, {"command": "true"})
    pod.play("start", f"kill -{signal} $$")
    code, log = pod.run()
    assert code == RETRY
    assert re.search(r"minicluster: the broker died, exit code 1\d\d: the Job replaces this pod\n$", log)


# A worker ----------------------------------------------------------------------------------------------------


def test_a_worker_ends_with_the_instance(make: Make) -> None:
    pod = make(TWO, index=1)
    pod.play("start", ": >$MINICLUSTER_HOME/config/run/ended; exit 1")
    assert pod.run() == (0, "")


def test_with_complete_workers_a_worker_ends_with_its_broker(make: Make) -> None:
    pod = make({**TWO, "flux": {"completeWorkers": True}}, index=1)
    pod.play("start", "exit 1")
    assert pod.run() == (0, "")


@pytest.mark.parametrize(("fails", "code"), [("exit 3", 3), ("exit 85", 85), ("false", 1)])
@pytest.mark.parametrize("flux", [{}, {"completeWorkers": True}], ids=["by default", "completeWorkers"])
def test_a_failing_post_snippet_on_a_worker_is_logged_and_does_not_fail_the_pod(
    make: Make, fails: str, code: int, flux: dict[str, bool]
) -> None:
    pod = make({**TWO, "flux": flux}, {"commands": {"post": fails}}, index=1)
    pod.play("start", ": >$MINICLUSTER_HOME/config/run/ended")
    assert pod.run() == (0, f"minicluster: post.sh failed with exit code {code}\n")


def test_a_failing_post_snippet_on_the_lead_fails_the_pod(make: Make) -> None:
    pod = make(QUIET, {"command": "true", "commands": {"post": "exit 3"}})
    assert pod.run() == (3, "minicluster: post.sh failed with exit code 3\n")


def test_the_pause_between_two_attempts_of_a_worker_has_a_limit(make: Make, shell: str) -> None:
    if shell == "busybox":
        pytest.skip("it has a sleep of its own")
    pod = make(TWO, index=1)
    pod.edit("worker.sh", "watch_connection /proc/net", "true")
    pod.edit("worker.sh", "SHORT_SECONDS=2", "SHORT_SECONDS=600")
    pod.edit("broker.sh", "guard_node &", "true &")
    pod.command("sleep", '#!/bin/sh\necho "$1" >>$MINICLUSTER_HOME/pauses\n')
    tries = f"[ $(wc -l <{pod.root}/calls) -lt 40 ] || : >$MINICLUSTER_HOME/config/run/ended"
    pod.play("start", f"PATH=/usr/bin:/bin; {tries}; exit 1")
    code, log = pod.run()
    assert code == 0
    pauses = (pod.home / "pauses").read_text().split()
    assert len(pauses) > 20
    assert pauses == ["1", "2", "4"] + ["8"] * (len(pauses) - 3)
    said = [f"minicluster: the broker ended with exit code 1 and starts again in {pause} s" for pause in pauses]
    assert log.splitlines() == said


# Told to stop ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [0, 1])
def test_a_pod_that_is_told_to_stop_runs_leave_py_and_is_replaced(make: Make, shell: str, index: int) -> None:
    pod = make({**TWO, "pod": {"terminationGracePeriodSeconds": 40}}, index=index)
    pod.wrap("timeout", f'echo "$1" >>{pod.root}/limits')
    process = pod.start()
    until(lambda: (pod.run_folder / "flux/local").exists() and (index or (pod.run_folder / "ready").exists()))
    assert process.stop() == RETRY
    assert process.log == ""
    role, queue = ("worker", "kept") if index else ("lead", "lost")
    [call] = pod.calls("python", "leave.py")
    told, begun = call.words[3:5]
    assert told == begun
    assert call.words[2:] == [role, told, begun, "25", "8", "7", str(pod.run_folder), "cancel", queue, "", ""]
    assert call.env["FLUX_URI"] == f"local://{pod.run_folder}/flux/local"
    if shell != "busybox":  # its timeout is always its own
        assert (pod.root / "limits").read_text().split()[-1] == "34"
    assert not (pod.run_folder / "exit-code").exists()


def test_a_lead_with_a_kept_queue_tells_leave_py_to_requeue_jobs(make: Make, tmp_path: Path) -> None:
    archive, report = str(tmp_path / "state.tgz"), str(tmp_path / "jobs.jsonl")
    values = {"archive": {"path": archive}, "report": {"path": report}, "pod": {"onStop": "requeue"}}
    pod = make({**QUIET, **values}, {"volumes": {"data": {"path": str(tmp_path), "emptyDir": True}}})
    process = pod.start()
    until((pod.run_folder / "ready").exists)
    assert process.stop() == RETRY
    [call] = pod.calls("python", "leave.py")
    assert call.words[5:] == ["7", "8", "15", str(pod.run_folder), "requeue", "kept", archive, report]


def uptime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def test_the_grace_period_is_counted_from_the_stop_hook(make: Make, shell: str) -> None:
    pod = make({**TWO, "pod": {"terminationGracePeriodSeconds": 40}}, index=1)
    pod.wrap("timeout", f'echo "$1" >>{pod.root}/limits')
    process = pod.start()
    until((pod.run_folder / "flux/local").exists)
    pod.told_to_stop.write_text(f"{uptime() - 20:.2f}\n")
    assert process.stop() == RETRY
    [call] = pod.calls("python", "leave.py")
    assert 19.9 < float(call.words[4]) - float(call.words[3]) < 20 + PATIENCE
    if shell != "busybox":
        assert 34 - 20 - PATIENCE < int((pod.root / "limits").read_text().split()[-1]) <= 34 - 20 + 1
    # for a container that is started again
    assert not pod.told_to_stop.exists()


@pytest.mark.parametrize("text", ["", "\n", "soon\n"])
def test_a_pod_stops_although_the_stop_hook_noted_no_time(make: Make, text: str) -> None:
    pod = make(TWO, index=1)
    process = pod.start()
    until((pod.run_folder / "flux/local").exists)
    pod.told_to_stop.write_text(text)
    assert process.stop() == RETRY
    [call] = pod.calls("python", "leave.py")
    assert call.words[3] == call.words[4]


@pytest.mark.parametrize("index", [0, 1])
def test_a_pod_that_is_told_to_stop_before_it_handles_signals_starts_no_broker(make: Make, index: int) -> None:
    pod = make(TWO, {"commands": {"init": ": >$MINICLUSTER_HOME/init"}}, index=index)
    assert pod.run("stop.sh") == (0, "")
    assert pod.run() == (RETRY, "")
    assert pod.calls() == []
    assert not (pod.home / "init").exists()


@pytest.mark.parametrize("index", [0, 1])
def test_a_pod_that_is_told_to_stop_during_a_snippet_is_replaced(make: Make, index: int) -> None:
    init = "cd $MINICLUSTER_HOME; : >begun; until [ -e end ]; do sleep 0.05; done; : >after"
    pod = make(TWO, {"commands": {"init": init}}, index=index)
    process = pod.start()
    until((pod.home / "begun").exists)
    process.popen.send_signal(signal.SIGTERM)
    (pod.home / "end").touch()
    assert process.wait() == RETRY
    assert (process.log, pod.calls()) == ("", [])


def test_a_pod_can_be_told_to_stop_at_any_instant(make: Make) -> None:
    """With the hook before the signal, as the kubelet does. A signal that comes too early is lost or kills it."""
    for delay in range(12):
        pod = make(TWO, index=delay % 2)
        process = pod.start("start.sh", "entrypoint.sh")
        time.sleep(delay / 20)  # not a synchronisation: the instant is what varies
        assert pod.run("stop.sh") == (0, "")
        code = process.stop()
        assert code in (RETRY, -signal.SIGTERM), process.log
        assert process.log == ""


@pytest.mark.parametrize("text", ["exit 3", """printf '%s' "it's $0" `echo é`"""])
def test_the_stop_hook_runs_the_hook_of_the_user(make: Make, text: str) -> None:
    pod = make(TWO)
    begin = uptime()
    code, log = pod.run("stop.sh", text)
    assert (code, log) == ((3, "") if text == "exit 3" else (0, "it's /bin/shé"))
    assert begin - 0.02 <= float(pod.told_to_stop.read_text()) <= uptime()


#: As leave.py does: lets the work end, after the grace period by force
LEAVES = ": >$MINICLUSTER_HOME/end; while [ -S $MINICLUSTER_HOME/config/run/flux/local ]; do sleep 0.05; done"


@pytest.mark.parametrize(
    ("leaves", "ends"),
    [(LEAVES, 3), (f": >$MINICLUSTER_HOME/config/run/stopping; {LEAVES}", RETRY)],
    ids=["in time", "late"],
)
def test_work_that_ends_by_itself_while_the_lead_leaves_decides_its_exit_code(
    make: Make, leaves: str, ends: int
) -> None:
    pod = make(QUIET, {"command": "cd $MINICLUSTER_HOME; : >begun; until [ -e end ]; do sleep 0.05; done; exit 3"})
    pod.play("python leave.py", leaves)
    process = pod.start()
    until((pod.home / "begun").exists)
    assert process.stop() == ends
    assert (pod.run_folder / "exit-code").exists() == (ends == 3)


@pytest.mark.parametrize("ended", ["", "ended", "exit-code"])
def test_a_failure_of_leave_py_is_logged_unless_the_instance_has_ended(make: Make, ended: str) -> None:
    pod = make(TWO, index=1)
    end = f": >$MINICLUSTER_HOME/config/run/{ended};" if ended else ""
    pod.play("python leave.py", f"{end} echo 'minicluster: no answer' >&2; exit 1")
    process = pod.start()
    until((pod.run_folder / "flux/local").exists)
    assert process.stop() == RETRY
    assert process.log == ("" if ended else "minicluster: no answer\n")


def test_a_pod_stops_within_its_grace_period_when_leave_py_hangs(make: Make) -> None:
    """Also when more signals come."""
    pod = make({**TWO, "pod": {"terminationGracePeriodSeconds": 2}}, index=1)
    pod.play("python leave.py", ": >$MINICLUSTER_HOME/leaves; exec sleep 600")
    process = pod.start()
    until((pod.run_folder / "flux/local").exists)
    process.popen.send_signal(signal.SIGTERM)
    until((pod.home / "leaves").exists)
    assert process.stop() == RETRY


@pytest.mark.parametrize(
    ("play", "code", "said"),
    [
        ("exit 137", RETRY, "the broker died, exit code 137: the Job replaces this pod"),
        ("exit 129", 129, "the instance was shut down before its job ended"),
    ],
)
def test_a_broker_that_ends_before_the_work_fails_the_lead(make: Make, play: str, code: int, said: str) -> None:
    pod = make(QUIET, {"command": "true"})
    pod.play("start", f": >$MINICLUSTER_HOME/config/run/ready; {play}")
    assert pod.run() == (code, f"minicluster: {said}\n")


#: What the lead's file has of a start that fails, with the count of the rest
LEAD = """\
broker.info[0]: parent-none: join->init 0.01ms
sched-fluxion-resource.warning[0]: create_reader: allowlist unsupported
broker.err[0]: rc1.0: sched-fluxion-resource: libboost_graph.so.1.74.0: cannot open shared object file
broker.err[0]: rc1.0: flux modprobe rc1 Exited (rc=1) 1.6s
"""
WORKERS = "".join(f"broker.err[{rank}]: rc3.0: flux modprobe rc3 Exited (rc=1) 0.1s\n" for rank in range(1, 8))
OWN = "".join(LEAD.splitlines(keepends=True)[2:])


@pytest.mark.parametrize(
    ("index", "errors", "shown"),
    [
        (0, WORKERS + LEAD + WORKERS, OWN),
        (0, WORKERS, "".join(WORKERS.splitlines(keepends=True)[:5])),
        (0, "flux-start: error execing broker: No such file or directory\n", None),
        (1, WORKERS, "".join(WORKERS.splitlines(keepends=True)[:5])),
        (1, "<6>broker.info[1]: parent-ready: join->init 0.01ms\n", ""),
    ],
    ids=["of the lead", "of workers", "no broker", "on a worker", "no errors"],
)
def test_the_first_errors_of_a_start_are_shown_although_logging_is_quiet(
    make: Make, index: int, errors: str, shown: str | None
) -> None:
    pod = make({**QUIET, "size": 8}, {"command": "true"}, index=index)
    (pod.root / "errors").write_text(errors)
    pod.play("start", f"cat {pod.root}/errors >>$MINICLUSTER_HOME/config/run/broker.log; exit 7")
    process = pod.start()
    until(lambda: "broker" in process.log and "exit code 7" in process.log)
    process.end()
    ours = "minicluster: the broker "
    assert process.log.partition(ours)[0] == (errors if shown is None else shown)


@pytest.mark.parametrize(
    ("values", "index", "words"),
    [
        ({}, 0, ["-o-Slog-forward-level=6", "-o-Slog-filename={}/broker.log"]),
        (QUIET, 0, ["-o-Slog-forward-level=6", "-o-Slog-filename={}/broker.log"]),
        ({}, 1, ["-o-Slog-stderr-level=6"]),
        ({"flux": {"logLevel": 6}}, 0, []),
        ({"logging": {"debug": True}}, 0, []),
        ({"logging": {"debug": True}}, 1, []),
    ],
    ids=["lead", "quiet lead", "worker", "level of a lead", "debug of a lead", "debug of a worker"],
)
def test_a_file_has_the_log_of_the_broker_unless_the_values_want_it_on_stderr(
    make: Make, values: dict[str, Any], index: int, words: list[str]
) -> None:
    pod = make({**values, "size": 2}, {"command": "true"}, index=index)
    pod.play("start", f"echo said >&2; : >{pod.run_folder}/ended")
    assert pod.run()[0] == (0 if index else 1)
    given = pod.calls("start")[0].words
    level = next(place for place, word in enumerate(given) if word.startswith("-o-Slog-stderr-level="))
    after = [word for word in given[level + 1 :] if word.startswith("-o-Slog-")]
    assert after == [word.format(pod.run_folder) for word in words]
    has_file = bool(index and words)
    assert (pod.run_folder / "broker.log").exists() is has_file
    assert ("said" in pod.processes[-1].log.splitlines()) is not has_file


@pytest.mark.parametrize("values", [{}, QUIET])
def test_each_broker_of_a_worker_has_a_log_of_its_own_and_that_of_the_one_before(
    make: Make, values: dict[str, Any]
) -> None:
    pod = make({**values, "size": 2}, index=1)
    pod.play("start", f"date >>{pod.root}/count; n=$(wc -l <{pod.root}/count); echo broker.err[1]: $n >&2; exit 7")
    process = pod.start()
    until(lambda: process.log.count("exit code 7") >= 3)
    process.end()
    log, old = (pod.run_folder / name for name in ("broker.log", "broker.log.old"))
    assert int(log.read_text().split()[-1]) == int(old.read_text().split()[-1]) + 1
    said = [line for line in process.log.splitlines() if line.startswith("broker.err")]
    assert said[:3] == [f"broker.err[1]: {number}" for number in (1, 2, 3)]


def test_a_program_of_flux_wrap_that_the_image_lacks_is_named(make: Make) -> None:
    pod = make({**QUIET, "flux": {"wrap": "strace,-e,network"}}, {"command": "true"})
    said = "flux.wrap: there is no strace in this image: correct the value, or use an image that has it"
    assert pod.run() == (127, f"minicluster: {said}\n")
    assert pod.calls("start") == []
    pod.command("strace", "#!/bin/sh\n")
    pod.renew()
    assert pod.run() == (0, "")


@pytest.mark.parametrize("which", ["MINICLUSTER_FAILURES", "MINICLUSTER_IGNORED_FAILURES"])
def test_a_lead_says_that_the_queue_of_a_former_one_is_lost(make: Make, which: str) -> None:
    pod = make(QUIET, {"command": "true"})
    lost = "a former lead was lost (pod number 2 of this index), and its queue with it: "
    said = "`minicluster status` says why; state.capacity keeps a queue"
    assert pod.run("entrypoint.sh", **{which: "2"}) == (0, f"minicluster: {lost}{said}\n")
    assert (pod.run_folder / "former-lead.problem").read_text() == f"{lost}state.capacity keeps a queue\n"
    pod.renew()
    # an annotation that the pod does not have is empty
    assert pod.run("entrypoint.sh", MINICLUSTER_FAILURES="", MINICLUSTER_IGNORED_FAILURES="") == (0, "")
    assert not (pod.run_folder / "former-lead.problem").exists()


def test_a_kept_queue_is_not_lost(make: Make) -> None:
    pod = make({**QUIET, "state": {"claimName": "shared"}}, {"command": "true"})
    assert pod.run("entrypoint.sh", MINICLUSTER_FAILURES="2") == (0, "")


# The archive -------------------------------------------------------------------------------------------------


def archive(seed: int) -> bytes:
    """Return an archive as Flux dumps it, of a file that can't be compressed."""
    content = random.Random(seed).randbytes(30_000)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        info = tarfile.TarInfo("file")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


OLD, NEW = archive(1), archive(2)
LOST = "a lead that began at TIME saved no state: its jobs are lost"


def with_archive(make: Make, old: bytes | None, dump: bytes | None, **runner: Any) -> Pod:
    """Make a lead with an archive, whose broker dumps another one; with None there is none."""
    pod = make({**QUIET, "archive": {"path": f"{ROOT}/data/state.tgz"}}, {"command": "true", **runner})
    place = pod.root / "data"
    if old is not None:
        place.mkdir()
        (place / "state.tgz").write_bytes(old)
    if dump is not None:
        (pod.root / "dump").write_bytes(dump)
    return pod


@pytest.mark.parametrize("code", [0, 3])
def test_a_complete_dump_replaces_the_archive(make: Make, code: int) -> None:
    pod = with_archive(make, OLD, NEW, command=f"exit {code}")
    assert pod.run()[0] == code
    assert {path.name: path.read_bytes() for path in (pod.root / "data").iterdir()} == {"state.tgz": NEW}


@pytest.mark.parametrize(
    "dump",
    [None, b"", NEW[: len(NEW) // 2], NEW[:-200], b"\x1f\x8b"],
    ids=["none", "empty", "half", "near its end", "magic"],
)
def test_an_incomplete_dump_does_not_replace_the_archive(make: Make, dump: bytes | None) -> None:
    pod = with_archive(make, OLD, dump)
    file = pod.root / "data/state.tgz"
    assert pod.run() == (0, f"minicluster: the state was not dumped: {file} is unchanged\n")
    assert file.read_bytes() == OLD
    # by this file the next lead sees that something is lost
    assert (pod.root / "data/state.tgz.begun").exists()


def test_a_lead_says_what_the_one_before_did_not_save(make: Make) -> None:
    pod = with_archive(make, OLD, None)
    pod.run()
    (pod.root / "dump").write_bytes(NEW)
    pod.renew()
    code, log = pod.run()
    assert (code, re.sub(r"at .{19} \w+ ", "at TIME ", log)) == (0, f"minicluster: {LOST}\n")
    pod.renew()
    assert pod.run() == (0, "")


def test_the_log_says_how_old_the_restored_state_is(make: Make) -> None:
    pod = with_archive(make, OLD, NEW)
    pod.edit("settings.sh", "mc_quiet=1", "mc_quiet=")
    file = pod.root / "data/state.tgz"
    os.utime(file, (1_700_000_000, 1_700_000_000))
    code, log = pod.run(TZ="UTC")
    assert code == 0
    said = f"minicluster: the state of 2023-11-14 22:13:20 UTC is restored from {file}"
    assert log.splitlines().count(said) == 1


def test_a_dump_of_an_earlier_pod_does_not_replace_the_archive(make: Make) -> None:
    pod = with_archive(make, OLD, None)
    pod.run()
    # left by a pod that was killed before it could replace the archive
    Path(pod.attributes(pod.calls("start")[0])["content.dump"]).write_bytes(NEW)
    pod.renew()
    pod.run()
    assert (pod.root / "data/state.tgz").read_bytes() == OLD


def test_the_broker_restores_its_state_from_an_existing_archive(make: Make) -> None:
    first = with_archive(make, None, NEW)
    file = str(first.root / "data/state.tgz")
    assert first.run() == (0, "")
    first.renew()
    assert first.run() == (0, "")
    attributes = [first.attributes(call) for call in first.calls("start")]
    assert [each.get("content.restore") for each in attributes] == [None, file]
    assert all(each["content.dump"] not in ("", file) for each in attributes), "beside the good one"


# State on a claim --------------------------------------------------------------------------------------------


def test_each_cluster_keeps_its_state_in_a_folder_of_its_own_on_a_claim(make: Make) -> None:
    values = {**QUIET, "state": {"claimName": "shared"}}
    pods = [make(values, {"command": "true"}, name=name) for name in ("one", "two", "one")]
    claim = pods[0].root.parent / "claim"
    claim.mkdir()
    folders = []
    for pod in pods:
        (pod.home / "state").symlink_to(claim)
        assert pod.run() == (0, "")
        [call] = pod.calls("start")
        folder = pod.attributes(call)["statedir"]
        assert folder.startswith(f"{pod.home}/state/")
        folders.append(folder.removeprefix(f"{pod.home}/state/"))
        assert (claim / folders[-1]).is_dir()
    assert folders[0] == folders[2] != folders[1]


def test_the_state_is_in_the_pod_without_a_claim(make: Make) -> None:
    pod = make(QUIET, {"command": "true"})
    assert pod.run() == (0, "")
    assert pod.attributes(pod.calls("start")[0])["statedir"].startswith(f"{pod.state}/")


# munge -------------------------------------------------------------------------------------------------------


def test_munged_gets_a_key_that_belongs_to_its_user(make: Make, shell: str) -> None:
    if shell == "busybox":
        pytest.skip("its mkdir is always its own")
    pod = make({**QUIET, "flux": {"mungeSecret": "munge"}}, {"command": "true"})
    (pod.home / "munge").mkdir()
    key = pod.home / "munge/munge.key"
    key.write_bytes(b"\0munge key\n")
    # nothing is made in this machine's own /run
    pod.wrap("mkdir", 'case " $* " in *" /run/munge "*) exit 0 ;; esac')
    pod.command("munged", f'#!/bin/sh\nprintf "%s\\n" "$@" >{pod.root}/munged\n')
    assert pod.run() == (0, "")
    words = (pod.root / "munged").read_text().splitlines()
    [copy] = [word.removeprefix("--key-file=") for word in words if word.startswith("--key-file=")]
    assert copy != str(key)
    path = pod.state / copy.removeprefix(f"{pod.state}/")
    assert path.read_bytes() == key.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o400


def test_a_munge_key_without_munged_is_an_error(make: Make) -> None:
    pod = make({**QUIET, "flux": {"mungeSecret": "munge"}}, {"command": "true"})
    (pod.home / "munge").mkdir()
    (pod.home / "munge/munge.key").write_bytes(b"key")
    message = "flux.mungeSecret is set and this image has no munged: use an image that has it, or drop the secret"
    assert pod.run() == (127, f"minicluster: {message}\n")


def test_a_munged_that_does_not_start_is_an_error(make: Make, shell: str) -> None:
    if shell == "busybox":
        pytest.skip("its mkdir is always its own")
    pod = make({**QUIET, "flux": {"mungeSecret": "munge"}}, {"command": "true"})
    (pod.home / "munge").mkdir()
    (pod.home / "munge/munge.key").write_bytes(b"key")
    pod.wrap("mkdir", 'case " $* " in *" /run/munge "*) exit 0 ;; esac')
    pod.command("munged", "#!/bin/sh\necho 'munged: Error: no' >&2; exit 1\n")
    code, log = pod.run()
    assert code == 1
    first, second = log.splitlines()
    assert first == "munged: Error: no"
    assert re.fullmatch(r"minicluster: munged does not start as user \d+: see the lines above", second)
    assert pod.calls("start") == []


# The user ----------------------------------------------------------------------------------------------------


def user(pod: Pod, known: bool) -> None:
    """Give the user a passwd entry, or none."""
    pod.command("id", f'#!/bin/sh\n[ "$1" != -un ] || exit {0 if known else 1}\necho 12345\n')


@pytest.mark.parametrize(
    ("given", "known", "found"),
    [
        ({}, False, ("flux", "flux")),
        ({"USER": "me"}, False, ("me", "me")),
        ({"USER": "me", "LOGNAME": "her"}, False, ("me", "her")),
        ({}, True, (None, None)),
    ],
    ids=str,
)
def test_a_user_without_a_passwd_entry_gets_a_user_name(
    make: Make, shell: str, given: dict[str, str], known: bool, found: tuple[str | None, str | None]
) -> None:
    if shell == "busybox":
        pytest.skip("its id is always its own")
    pod = make(QUIET, {"command": "true"})
    user(pod, known)
    assert pod.run("entrypoint.sh", **given) == (0, "")
    [call] = pod.calls("run")
    assert (call.env.get("USER"), call.env.get("LOGNAME")) == found
