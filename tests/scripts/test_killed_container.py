"""A container that is killed starts again in its pod: what it goes on with, and what it leaves to a new pod."""

import os
import signal
from pathlib import Path

import pytest
from pods import RETRY, ROOT, Make, Pod, Process, until

QUIET = {"logging": {"quiet": True}}
CLAIM = {**QUIET, "state": {"claimName": "shared"}}
KILLED = "minicluster: the container was killed, most often for want of memory: raise resources.limits.memory; "
GOES_ON = f"{KILLED}it goes on in this pod\n"


def is_ready(pod: Pod) -> bool:
    return (pod.run_folder / "ready").exists()


def killed(pod: Pod, then: Path | None = None) -> Process:
    """Start a pod, and kill all processes of its container when a file is there, or else when the lead is ready.

    Return the next container's.
    """
    process = pod.start()
    if then:
        until(then.exists)
    else:
        until(lambda: is_ready(pod))
        until(lambda: pod.calls("python", "undrainer.py") or pod.calls("run") or pod.calls("batch"))
    process.end()
    return pod.start()


def shut_down(pod: Pod, process: Process) -> int:
    os.kill(int((pod.root / "broker").read_text()), signal.SIGTERM)
    return process.wait()


def test_an_idle_lead_goes_on_with_its_queue_and_its_history(make: Make) -> None:
    pod = make(QUIET)
    (pod.root / "shm").mkdir()
    for name in ("psm_large", ".hidden"):
        (pod.root / "shm" / name).write_text("x")
    first = pod.start()
    until(lambda: is_ready(pod))
    # the first start of a pod leaves shared memory alone: a sidecar may have made it
    assert len([*(pod.root / "shm").iterdir()]) == 2
    (pod.run_folder / "history").mkdir(exist_ok=True)
    (pod.run_folder / "history/0").write_text("{}\n")
    first.end()
    second = pod.start()
    until(lambda: len(pod.calls("start")) == 2 and is_ready(pod))
    until(lambda: any(call.words[-1] == "kept" for call in pod.calls("python", "undrainer.py")))
    folders = {pod.attributes(call)["statedir"] for call in pod.calls("start")}
    assert len(folders) == 1
    assert (pod.run_folder / "history/0").read_text() == "{}\n"
    assert [*(pod.root / "shm").iterdir()] == []
    # Kubernetes tells of it in the status of the pod
    assert not (pod.run_folder / "memory.problem").exists()
    assert (shut_down(pod, second), second.log) == (0, GOES_ON)


def test_shared_memory_that_others_have_too_stays(make: Make) -> None:
    pod = make({**QUIET, "pod": {"hostIPC": True}})
    (pod.root / "shm").mkdir()
    (pod.root / "shm/of-the-machine").touch()
    again = killed(pod)
    until(lambda: len(pod.calls("start")) == 2 and is_ready(pod))
    assert [path.name for path in (pod.root / "shm").iterdir()] == ["of-the-machine"]
    again.end()


@pytest.mark.parametrize("kind", [{}, {"batch": True}, {"launcher": True}], ids=["run", "batch", "launcher"])
def test_work_without_a_kept_queue_begins_anew_in_a_new_pod(make: Make, kind: dict[str, bool]) -> None:
    pod = make(QUIET, {"command": "sleep 600", **kind})
    pod.play("batch", "sleep 600")
    again = killed(pod, pod.run_folder / "working")
    anew = f"{KILLED}the work begins anew: the Job replaces this pod\n"
    assert (again.wait(), again.log, len(pod.calls("start"))) == (RETRY, anew, 1)


def test_work_that_has_not_begun_begins_in_the_same_pod(make: Make) -> None:
    pod = make(QUIET, {"command": "true"})
    pod.play("start", f"[ -e {pod.root}/second ] && exit 7; : >{pod.root}/second; sleep 600")
    again = killed(pod, pod.root / "second")
    again.wait()
    assert again.log.startswith(GOES_ON)


def test_work_with_a_kept_queue_runs_again_and_its_former_run_is_cancelled_first(make: Make) -> None:
    pod = make(CLAIM, {"command": "flux works"})
    pod.play("run", f"[ -e {pod.root}/second ] && exit 3; : >{pod.root}/second; sleep 600")
    again = killed(pod, pod.root / "second")
    assert (again.wait(), again.log) == (3, f"{GOES_ON}minicluster: the job failed with exit code 3\n")
    assert pod.verbs().count("python own_work.py") == 2


@pytest.mark.parametrize("code", [0, 3])
def test_the_result_of_work_that_had_ended_stands(make: Make, code: int) -> None:
    second = f"{ROOT}/second"
    pod = make(
        QUIET, {"command": f"exit {code}", "commands": {"post": f"[ -e {second} ] || {{ : >{second}; sleep 600; }}"}}
    )
    again = killed(pod, pod.root / "second")
    said = f"minicluster: the job failed with exit code {code}\n" if code else ""
    assert (again.wait(), again.log, len(pod.calls("start"))) == (code, said, 1)


def test_a_worker_joins_again(make: Make) -> None:
    pod = make({"size": 2, **QUIET}, index=1)
    again = killed(pod, pod.run_folder / "flux/local")
    until(lambda: len(pod.calls("start")) == 2)
    assert again.runs
    assert again.log == GOES_ON


def test_a_worker_whose_instance_has_ended_starts_no_broker(make: Make) -> None:
    pod = make({"size": 2, **QUIET}, index=1)
    process = pod.start()
    until((pod.run_folder / "flux/local").exists)
    process.end()
    (pod.run_folder / "ended").touch()
    assert (pod.run(), len(pod.calls("start"))) == ((0, ""), 1)


def test_a_pod_that_was_told_to_stop_stays_told(make: Make) -> None:
    pod = make(QUIET)
    killed(pod).end()
    pod.told_to_stop.write_text("1.00\n")
    assert pod.run() == (RETRY, "")


@pytest.mark.parametrize("had_quorum", [True, False])
def test_an_archive_is_restored_once(make: Make, had_quorum: bool) -> None:
    pod = make({**QUIET, "archive": {"path": f"{ROOT}/data/state.tgz"}})
    (pod.root / "data").mkdir()
    (pod.root / "data/state.tgz").write_bytes(b"old")
    if not had_quorum:
        pod.play("start", f": >{pod.root}/begun; sleep 600")
    again = killed(pod, pod.run_folder / "ready" if had_quorum else pod.root / "begun")
    until(lambda: len(pod.calls("start")) == 2)
    restored = ["content.restore" in pod.attributes(call) for call in pod.calls("start")]
    assert restored == [True, not had_quorum]
    # nothing is lost
    assert again.log == GOES_ON
