"""The check of a node before its broker starts: who stays out, what is said, and how the lead is told."""

import re
import time

import pytest
from pods import Make, Pod, until

QUIET = {"logging": {"quiet": True}}
TWO = {"size": 2, **QUIET}
UNFIT = 69
#: Fails until there is a file
CHECK = 'echo "not the last line" >&2\nprintf "no GPU: \\033[1m/dev/nvidia0\\n\\n"\ntest -e "$MINICLUSTER_HOME/fit"'
REASON = "its check failed: no GPU: [1m/dev/nvidia0"
SHOWN = "not the last line\nno GPU: [1m/dev/nvidia0\n"


def checked(make: Make, text: str, index: int = 0, seconds: int = 60, **values: object) -> Pod:
    """Return a pod with a check, and no pauses after it."""
    commands = {"nodeCheck": text, "nodeCheckSeconds": seconds}
    pod = make({**TWO, **values}, {"command": "true", "commands": commands}, index=index)
    pod.edit("check.sh", "FIRST_PAUSE_SECONDS=10", "FIRST_PAUSE_SECONDS=0")
    return pod


def told(pod: Pod) -> list[str]:
    """Return the reasons that a worker has told its lead."""
    return [call.env["MINICLUSTER_UNFIT"] for call in pod.calls("start") if "MINICLUSTER_UNFIT" in call.env]


@pytest.mark.parametrize("index", [0, 1])
def test_the_broker_starts_after_a_check_that_succeeds(make: Make, index: int) -> None:
    text = 'echo hidden; printf "%s\\n" "$HOME" "$JOB_COMPLETION_INDEX" >>"$MINICLUSTER_HOME/checked"; export A=b'
    pod = checked(make, text, index)
    if index:
        pod.play("start", ": >$MINICLUSTER_HOME/config/run/ended")
    assert pod.run() == (0, "")
    assert (pod.home / "checked").read_text().split() == [pod.environment["HOME"], str(index)]
    [call] = pod.calls("start")
    assert "A" not in call.env


def test_a_lead_whose_check_fails_ends_with_a_code_of_its_own(make: Make) -> None:
    pod = checked(make, CHECK)
    assert pod.run() == (UNFIT, f"{SHOWN}minicluster: flux-sample-0: {REASON}\n")
    assert pod.calls("start") == []


def test_a_lead_whose_container_was_killed_is_replaced_if_its_check_fails(make: Make) -> None:
    pod = checked(make, CHECK)
    pod.run_folder.mkdir(parents=True)
    code, log = pod.run()
    assert code == 85
    assert log.endswith(f"minicluster: flux-sample-0: {REASON}\n")
    # a result stands
    (pod.run_folder / "exit-code").write_text("0\n")
    assert pod.run()[0] == 0


def test_a_worker_whose_check_fails_stays_out_until_it_succeeds(make: Make) -> None:
    pod = checked(make, CHECK, index=1)
    # the lead can't be reached: the check goes on
    pod.play("start", '[ -n "${MINICLUSTER_UNFIT:-}" ] && exit 1; : >$MINICLUSTER_HOME/config/run/ended')
    process = pod.start()
    until(lambda: len(told(pod)) > 2)
    assert set(told(pod)) == {REASON}
    assert process.runs
    (pod.home / "fit").touch()
    assert process.wait() == 0
    *failed, last = pod.calls("start")
    said = f"{SHOWN}minicluster: flux-sample-1: {REASON}; it runs again in 0 s\n"
    assert process.log == said * len(failed)
    # in place of Flux's own start, and apart from the folder by which a probe, or a sidecar, knows a broker
    own = pod.attributes(failed[0])
    folder = f"{pod.state}/run/unfit"
    assert (own["rundir"], own["local-uri"], own["broker.rc3_path"]) == (folder, f"local://{folder}/local", "")
    assert own["broker.rc1_path"] == f"'{pod.root}/bin/flux' python '{pod.home}/minicluster/unfit.py'"
    real = pod.attributes(last)
    assert "MINICLUSTER_UNFIT" not in last.env
    assert own.keys() - real.keys() == {"broker.rc1_path", "broker.rc3_path"}
    assert {key for key, value in real.items() if own[key] != value} == {"rundir", "local-uri"}


def test_a_worker_checks_again_before_each_start_of_its_broker(make: Make) -> None:
    pod = checked(make, 'echo >>"$MINICLUSTER_HOME/checked"', index=1)
    pod.play("start", "[ $(cat $MINICLUSTER_HOME/checked | wc -l) -lt 3 ] || : >$MINICLUSTER_HOME/config/run/ended")
    assert pod.run()[0] == 0
    assert len(pod.calls("start")) == 3


def test_the_pauses_between_checks_double_up_to_a_limit(make: Make) -> None:
    pod = checked(make, "false", index=1)
    pod.edit(
        "check.sh", "FIRST_PAUSE_SECONDS=0 LONGEST_PAUSE_SECONDS=300", "FIRST_PAUSE_SECONDS=1 LONGEST_PAUSE_SECONDS=3"
    )
    pod.play("start", "exit 1")
    begin, process = time.monotonic(), pod.start()
    until(lambda: process.log.count("again in") > 3)
    assert time.monotonic() - begin > 1 + 2 + 3
    assert re.findall(r"again in (\d+) s", process.log) == ["1", "2", "3", "3"]


def test_a_worker_that_stays_out_ends_at_once_when_it_is_told_to_stop(make: Make) -> None:
    pod = checked(make, CHECK, index=1)
    pod.edit("check.sh", "FIRST_PAUSE_SECONDS=0", "FIRST_PAUSE_SECONDS=600")
    process = pod.start()
    until(lambda: told(pod))
    assert process.stop() == 85


def test_a_pod_that_is_told_to_stop_does_not_wait_for_its_check(make: Make) -> None:
    pod = checked(make, ': >"$MINICLUSTER_HOME/begun"; sleep 600')
    process = pod.start()
    until((pod.home / "begun").exists)
    assert process.stop() == 85


def test_a_check_that_does_not_end_fails(make: Make) -> None:
    pod = checked(make, "trap '' TERM\necho begun\nwhile :; do sleep 0.1; done", seconds=1)
    reason = "its check failed: no end within 1 s: begun"
    assert pod.run() == (UNFIT, f"begun\nminicluster: flux-sample-0: {reason}\n")


STRICT = {"logging": {"quiet": True, "strict": True}}
LAX = {"logging": {"quiet": True, "strict": False}}
RULES = {
    "a command fails": ("(exit 3)\ntrue", STRICT, "exit code 3"),
    "a variable is unset": ("echo $unset_variable\ntrue", STRICT, ""),
    "only the last command counts": ("(exit 3)\nexit 4", LAX, "exit code 4"),
    "an interpreter": ("#!/usr/bin/env false", STRICT, "exit code 1"),
    "an ending in 1": ("exit 1", LAX, "exit code 1"),
    "a code that would replace the pod": ("exit 85", STRICT, "exit code 85"),
}


@pytest.mark.parametrize(("text", "values", "said"), RULES.values(), ids=RULES)
def test_a_check_follows_the_rules_of_snippets_and_scripts(
    make: Make, text: str, values: dict[str, object], said: str
) -> None:
    code, log = checked(make, text, **values).run()
    assert code == UNFIT
    assert log.endswith(f"its check failed: {said}\n") if said else "unset_variable" in log.splitlines()[-1]


def test_a_pipe_of_a_check_fails_in_bash(make: Make, shell: str) -> None:
    pod = checked(make, "(exit 3) | cat")
    code, _ = pod.run()
    assert (code == UNFIT) == (shell == "bash")


def test_the_output_of_a_failed_check_is_bounded(make: Make) -> None:
    pod = checked(make, "n=0; while [ $n -lt 2000 ]; do echo 0123456789; n=$((n + 1)); done\nprintf '%0500d' 7; exit 1")
    code, log = pod.run()
    *shown, last = log.splitlines()
    assert code == UNFIT
    assert len("\n".join(shown)) == 8192
    assert last == f"minicluster: flux-sample-0: its check failed: {'0' * 200}"


def test_without_a_check_nothing_runs(make: Make) -> None:
    pod = make(QUIET, {"command": "true"})
    pod.command("timeout", f"#!/bin/sh\necho >>{pod.root}/checked\n")
    assert pod.run() == (0, "")
    assert not (pod.root / "checked").exists()
