"""What a pod does with the limit of its container's memory, and when the kernel kills processes for want of it."""

import os
import signal
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pods import Make, Pod, until

QUIET = {"logging": {"quiet": True}}
#: A limit of 192 MiB, and the counters of kills, in both versions of cgroups
V1, V2 = "memory/memory.limit_in_bytes", "memory.max"
COUNTS = {
    "v1": ("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"),
    "v2": ("memory.events", "low 0\nhigh 0\nmax 9\noom 7\noom_kill {}\noom_group_kill 3\n"),
}
SAID = "the kernel has killed {} of the container for want of memory, whose limit is 192 MiB: {}"
WAY = "raise resources.limits.memory"
AGAIN = "minicluster: the broker ended with exit code 137 and starts again in this pod\n"


def write(pod: Pod, file: str, text: str) -> None:
    path = pod.root / "cgroup" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    # at once, as the kernel's files are
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def config(pod: Pod) -> dict[str, Any]:
    """Run a pod, and return the configuration of its broker."""
    assert pod.run() == (0, "")
    [call] = pod.calls("start")
    option = "-o--config-path="
    used = [Path(word.removeprefix(option)) for word in call.words if word.startswith(option)][-1]
    return tomllib.loads(used.read_text())


def records(pod: Pod) -> int:
    """Run a pod, and return the most records of jobs that its broker keeps."""
    return int(config(pod)["job-manager"]["inactive-num-limit"])


@pytest.mark.parametrize(
    ("file", "limit", "expected"),
    [
        (V1, "201326592", 455),
        (V2, "201326592", 455),
        (V2, "67108864", 300),
        (V2, "8589934592", 10000),
        (V1, "9223372036854771712", 10000),
        (V2, "max", 10000),
        ("other", "", 10000),
    ],
)
def test_the_lead_keeps_as_many_records_of_jobs_as_its_memory_has_room_for(
    make: Make, file: str, limit: str, expected: int
) -> None:
    pod = make(QUIET, {"command": "true"})
    write(pod, file, f"{limit}\n")
    assert records(pod) == expected


def test_the_values_number_of_kept_jobs_stays_whatever_the_memory_is(make: Make) -> None:
    pod = make({**QUIET, "flux": {"keptJobs": 5000}}, {"command": "true"})
    write(pod, V2, "67108864\n")
    found = config(pod)
    assert found["job-manager"] == {"inactive-num-limit": 5000}
    # the cache is another thing
    assert "content" in found["modules"]


@pytest.mark.parametrize("limit, size", [(67108864, 1048576), (201326592, 3145728), (1073741824, 0), ("max", 0)])
@pytest.mark.parametrize("simple", [False, True])
def test_a_lead_with_little_memory_keeps_less_of_the_queue_s_store_in_it(
    make: Make, limit: int | str, size: int, simple: bool
) -> None:
    pod = make({**QUIET, "flux": {"scheduler": {"simple": simple}}}, {"command": "true"})
    write(pod, V2, f"{limit}\n")
    found = config(pod).get("modules", {})
    assert ("alternatives" in found) == simple
    expected = {"args": [f"purge-target-size={size}", "purge-old-entry=2"]} if size else None
    assert found.get("content") == expected


def test_a_broker_config_of_the_user_keeps_its_number_of_records(make: Make) -> None:
    pod = make({**QUIET, "flux": {"brokerConfig": "[job-manager]\ninactive-num-limit = 9000\n"}}, {"command": "true"})
    write(pod, V2, "67108864\n")
    found = config(pod)
    assert found["job-manager"] == {"inactive-num-limit": 9000}
    assert "modules" not in found


def test_both_changes_of_the_configuration_are_made(make: Make) -> None:
    pod = make(QUIET, {"command": "true"})
    write(pod, V2, "67108864\n")
    net = pod.root / "net"
    net.mkdir()
    (net / "route").write_text("")
    (net / "if_inet6").write_text("fd000000000000000000000000000001 02 40 00 80     eth0\n")
    pod.edit("entrypoint.sh", "choose_ip_family /proc/net\n", f"choose_ip_family {net}\n")
    assert records(pod) == 300
    assert "\nenable_ipv6 = true\n" in (pod.state / "etc/flux/broker.toml").read_text()


@pytest.mark.parametrize("version", COUNTS)
def test_a_broker_that_was_killed_for_its_memory_says_so(make: Make, version: str) -> None:
    pod = make(QUIET)
    file, text = COUNTS[version]
    write(pod, file, text.format(4))  # of an earlier life
    write(pod, V1 if version == "v1" else V2, "201326592\n")
    process = pod.start()
    for count in (5, 7):
        until((pod.run_folder / "ready").exists)
        write(pod, file, text.format(count))
        (pod.run_folder / "ready").unlink()
        (pod.run_folder / "ready").touch()
        os.kill(int((pod.root / "broker").read_text()), signal.SIGKILL)
        until(lambda count=count: len(pod.calls("start")) == (2 if count == 5 else 3))
    until((pod.run_folder / "ready").exists)
    os.kill(int((pod.root / "broker").read_text()), signal.SIGTERM)
    assert process.wait() == 0
    first, second = (SAID.format(what, WAY) for what in ("5 processes", "7 processes"))
    assert process.log == f"minicluster: {first}\n{AGAIN}minicluster: {second}\n{AGAIN}"
    assert (pod.run_folder / "memory.problem").read_text() == f"flux-sample-0: {second}\n"


@pytest.mark.parametrize("index", [0, 1], ids=["lead", "worker"])
def test_a_job_that_the_kernel_kills_is_in_the_log_while_the_broker_runs(make: Make, index: int) -> None:
    pod = make(QUIET, index=index)
    pod.edit("memory.sh", "KILLS_PAUSE_SECONDS=10", "KILLS_PAUSE_SECONDS=0.1")
    write(pod, V2, "201326592\n")
    write(pod, *(COUNTS["v2"][0], COUNTS["v2"][1].format(0)))
    process = pod.start()
    until(lambda: pod.calls("start"))
    write(pod, *(COUNTS["v2"][0], COUNTS["v2"][1].format(1)))
    line = f"minicluster: {SAID.format('a process', WAY)}\n"
    until(lambda: line in process.log)
    assert len(pod.calls("start")) == 1


@pytest.mark.parametrize("index", [0, 1], ids=["lead", "worker"])
def test_a_reserve_of_memory_is_guarded_as_long_as_the_broker_runs(make: Make, index: int) -> None:
    pod = make({**QUIET, "flux": {"memoryReserve": "0.5Gi"}}, index=index)
    pod.play("python guard.py", f"echo $$ >{pod.root}/guard; echo 'minicluster: job f1 took it' >&2; exec sleep 600")
    process = pod.start()
    broker = pod.root / "broker"
    until(lambda: "job f1" in process.log and broker.exists() and broker.read_text())
    guard = int((pod.root / "guard").read_text())
    [call] = pod.calls("python", "guard.py")
    run = f"{pod.run_folder}/flux"
    assert call.words[2:] == [f"{pod.root}/cgroup", "536870912", f"flux-sample-{index}", run, "1", ""]
    os.kill(int((pod.root / "broker").read_text()), signal.SIGTERM)
    until(lambda: not Path(f"/proc/{guard}").exists())
    process.end()


def test_what_jobs_leave_is_looked_after_from_the_first_job_on(make: Make) -> None:
    pod = make({**QUIET, "pod": {"sharedMemory": "none"}, "flux": {"idleJobs": {"for": 60}}})
    pod.play("python guard.py", "exec sleep 600")
    (pod.root / "shm").mkdir()
    for name in ("before", ".hidden"):
        (pod.root / "shm" / name).touch()
    process = pod.start()
    until((pod.run_folder / "ready").exists)
    noted = {Path(name).name for name in (pod.run_folder / "shm").read_text().split("\0") if name}
    assert noted == {"before", ".hidden"}
    assert not pod.calls("python", "guard.py")
    begun = pod.run_folder / "usage/begun"
    until(begun.is_fifo)
    # the node's shell of a job tells of it
    with begun.open("r+b", buffering=0) as fifo:
        fifo.write(b"\n")
    until(lambda: pod.calls("python", "guard.py"))
    [call] = pod.calls("python", "guard.py")
    # without a reserve, and with shared memory that is not its own
    assert call.words[3:] == ["0", "flux-sample-0", f"{pod.run_folder}/flux", "", "0.05 60 warn"]
    process.end()


def test_the_one_heap_of_the_broker_is_not_that_of_its_jobs(make: Make) -> None:
    pod = make(QUIET, {"command": "true"})
    assert pod.run() == (0, "")
    [start], [run] = pod.calls("start"), pod.calls("run")
    assert start.env["MALLOC_ARENA_MAX"] == "1"
    assert not {"MALLOC_ARENA_MAX", "MINICLUSTER_ARENAS"} & run.env.keys()
    pod = make({**QUIET, "flux": {"environment": {"MALLOC_ARENA_MAX": "4"}}}, {"command": "true"})
    assert pod.run() == (0, "")
    assert {call.env["MALLOC_ARENA_MAX"] for verb in ("start", "run") for call in pod.calls(verb)} == {"4"}
