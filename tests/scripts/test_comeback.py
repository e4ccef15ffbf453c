"""A broker that dies: which one comes back in its pod, with which state, and how often."""

import os
import re
import signal
from pathlib import Path

import pytest
from pods import RETRY, ROOT, Make, Pod, Process, until

QUIET = {"logging": {"quiet": True}}
CLAIM = {**QUIET, "state": {"claimName": "shared"}}
AGAIN = "minicluster: the broker ended with exit code 137 and starts again in this pod\n"
#: Waits for the end of a process: a busy machine takes its time to close its socket
GONE = "while read -r _ _ state _ </proc/$pid/stat && [ $state != Z ]; do :; done"
REPLACED = "minicluster: the broker died, exit code 137: the Job replaces this pod\n"


def is_ready(pod: Pod) -> bool:
    return (pod.run_folder / "ready").exists()


def starts(pod: Pod) -> int:
    return len(pod.calls("start"))


def kill_broker(pod: Pod) -> None:
    """Kill a broker that is ready."""
    until(lambda: is_ready(pod))
    os.kill(int((pod.root / "broker").read_text()), signal.SIGKILL)


def come_back(pod: Pod, count: int) -> None:
    """Wait for the start of a broker, and until it is ready."""
    until(lambda: starts(pod) == count)
    until(lambda: is_ready(pod))


def of_a_kept_queue(pod: Pod) -> int:
    """Return how many undrainers were told that the queue is kept."""
    return sum(call.words[-1] == "kept" for call in pod.calls("python", "undrainer.py"))


def shut_down(pod: Pod, process: Process) -> int:
    """Shut the instance down, as a person does, and return the exit code of the pod."""
    os.kill(int((pod.root / "broker").read_text()), signal.SIGTERM)
    return process.wait()


def test_the_broker_of_an_idle_lead_comes_back_each_time_it_is_killed(make: Make) -> None:
    pod = make(QUIET)
    process = pod.start()
    for count in (2, 3, 4):
        kill_broker(pod)
        come_back(pod, count)
        # its nodes may be drained, as with a kept queue
        until(lambda count=count: of_a_kept_queue(pod) == count - 1)
    assert shut_down(pod, process) == 0
    assert process.log == AGAIN * 3


#: Writes its process id to a file, and ignores what asks it to end
STAYS = "trap '' TERM HUP; echo $$ >>FILE; while :; do sleep 0.1; done"


def test_nothing_of_a_dead_broker_is_left_when_it_comes_back(make: Make) -> None:
    """Not even what has an environment of its own, or a dead parent. What others started stays."""
    text = STAYS.replace("FILE", f"{ROOT}/of-lead").replace("'", '"')
    pod = make(CLAIM, {"command": f"env -i PATH=\"$PATH\" sh -c '{text}'", "launcher": True})
    uri = f"local://{pod.run_folder}/flux/local"
    task = other(pod, "of-job", FLUX_URI=uri, FLUX_JOB_ID="f1")
    person = other(pod, "of-person", FLUX_URI=uri)
    elsewhere = other(pod, "of-other", FLUX_URI="local:///elsewhere/flux/local", FLUX_JOB_ID="f1")
    pod.start()
    until(lambda: lines(pod.root / "of-lead"))
    [launcher] = lines(pod.root / "of-lead")
    kill_broker(pod)
    come_back(pod, 2)
    assert task.wait() == -signal.SIGKILL
    assert not lives(launcher)
    assert person.runs
    assert elsewhere.runs
    until(lambda: len(lines(pod.root / "of-lead")) == 2)


def other(pod: Pod, name: str, **env: str) -> Process:
    """Start a process beside the entrypoint, and wait until it runs."""
    file = pod.root / name
    argv = [str(pod.root / "bin/sh"), "-c", STAYS.replace("FILE", str(file))]
    pod.processes.append(Process(pod.root / f"{name}-log", argv, pod.environment | env))
    until(lambda: lines(file))
    return pod.processes[-1]


def lives(pid: str) -> bool:
    """Say whether a process has not ended; nobody may have asked for its exit code yet."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def test_work_without_a_kept_queue_begins_anew_in_another_pod(make: Make) -> None:
    pod = make(QUIET, {"command": "sleep 600"})
    process = pod.start()
    kill_broker(pod)
    assert (process.wait(), process.log, starts(pod)) == (RETRY, REPLACED, 1)


@pytest.mark.parametrize("kind", [{}, {"batch": True}, {"launcher": True}], ids=["run", "batch", "launcher"])
def test_work_with_a_kept_queue_runs_again_in_the_same_pod_and_counts(make: Make, kind: dict[str, bool]) -> None:
    pod = make(CLAIM, {"command": "flux works", **kind})
    for verb in ("run", "batch", "works"):
        kill = f": >{pod.root}/second; pid=$(cat {pod.root}/broker); kill -9 $pid; {{ {GONE}; }} 2>&-; exit 1"
        pod.play(verb, f"[ ! -e {pod.root}/second ] || exit 3; {kill}")
    pod.play("job attach", "exit 3")
    code, log = pod.run()
    assert (code, log) == (3, f"{AGAIN}minicluster: the job failed with exit code 3\n")
    cancels = 0 if "launcher" in kind else 2
    assert len(pod.calls("python", "own_work.py", "cancel")) == cancels


def test_work_that_ended_just_before_its_broker_died_counts(make: Make) -> None:
    pod = make(CLAIM, {"command": "sleep 600"})
    pod.play("python orphans.py", f"echo 0 >{pod.run_folder}/exit-code")
    process = pod.start()
    kill_broker(pod)
    assert (process.wait(), starts(pod)) == (0, 1)


def test_a_broker_that_comes_back_goes_on_with_the_state_that_it_restored(make: Make) -> None:
    pod = make({**QUIET, "archive": {"path": f"{ROOT}/data/state.tgz"}})
    (pod.root / "data").mkdir()
    (pod.root / "data/state.tgz").write_bytes(b"old")
    process = pod.start()
    kill_broker(pod)
    come_back(pod, 2)
    process.end()
    restored = ["content.restore" in pod.attributes(call) for call in pod.calls("start")]
    assert restored == [True, False]


def test_a_broker_that_dies_before_it_restored_its_state_restores_it_again(make: Make) -> None:
    pod = make({**QUIET, "archive": {"path": f"{ROOT}/data/state.tgz"}})
    (pod.root / "data").mkdir()
    (pod.root / "data/state.tgz").write_bytes(b"old")
    pod.play("start", "kill -KILL $$")
    process = pod.start()
    until(lambda: starts(pod) >= 2)
    process.end()
    assert all("content.restore" in pod.attributes(call) for call in pod.calls("start"))


@pytest.mark.parametrize("then", ["kill -KILL $$", "exit 1"])
def test_a_broker_that_never_gets_its_quorum_again_is_replaced_with_its_pod(make: Make, then: str) -> None:
    pod = make(CLAIM)
    pod.play("start", f"[ -e {pod.root}/second ] || {{ : >{pod.root}/second; kill -KILL $$; }}; {then}")
    code, log = pod.run()
    assert (code, starts(pod)) == (RETRY, 5)
    ends = "137" if "KILL" in then else "1"
    said = log.splitlines()
    assert said[0] == AGAIN.strip()
    assert said[-1] == f"minicluster: the broker died, exit code {ends}: the Job replaces this pod"


def test_a_broker_that_dies_again_and_again_with_its_quorum_is_replaced_with_its_pod(make: Make) -> None:
    pod = make(QUIET)
    pod.edit("comeback.sh", "MOST_FAILURES=50", "MOST_FAILURES=3")
    pod.play("start", ": >$MINICLUSTER_HOME/config/run/ready; kill -KILL $$")
    assert pod.run() == (RETRY, AGAIN * 2 + REPLACED)


def test_deaths_that_are_far_apart_do_not_add_up(make: Make) -> None:
    pod = make(QUIET)
    pod.edit("comeback.sh", "STEADY_SECONDS=60 MOST_FAILURES=50", "STEADY_SECONDS=0 MOST_FAILURES=2")
    often = f"[ $(wc -l <{pod.root}/calls) -gt 20 ]"
    pod.play("start", f": >$MINICLUSTER_HOME/config/run/ready; {often} || kill -KILL $$; exit 129")
    code, log = pod.run()
    assert code == 129
    assert log.count(AGAIN) > 5


def test_a_broker_that_does_not_start_the_first_time_fails_the_lead(make: Make) -> None:
    pod = make(CLAIM)
    pod.play("start", "exit 7")
    assert pod.run() == (7, "minicluster: the broker did not start, exit code 7\n")


def test_a_lead_whose_leftovers_do_not_end_is_replaced(make: Make) -> None:
    pod = make(QUIET)
    pod.play("python orphans.py", "exit 1")
    process = pod.start()
    kill_broker(pod)
    assert (process.wait(), process.log) == (RETRY, AGAIN + REPLACED)


def test_a_lead_that_is_told_to_stop_while_its_broker_comes_back_starts_none(make: Make) -> None:
    pod = make(QUIET)
    pod.play("python orphans.py", f": >{pod.root}/asked; exec sleep 600")
    process = pod.start()
    kill_broker(pod)
    until((pod.root / "asked").exists)
    assert (process.stop(), process.log, starts(pod)) == (RETRY, AGAIN, 1)


def test_a_lead_whose_broker_came_back_leaves_like_any_other(make: Make) -> None:
    pod = make(QUIET)
    process = pod.start()
    kill_broker(pod)
    come_back(pod, 2)
    assert process.stop() == RETRY
    assert re.findall("leave.py", " ".join(pod.verbs())) == ["leave.py"]
