"""What jobs have used, in their records: real brokers and shells, and programs that tell what they have used."""

import json
from typing import Any

import pytest
from broker_clusters import Cluster, Make
from broker_pods import Flux
from minicluster.lead.program import BOOT, first_line

from tools.clients import until
from tools.releases import MOUNT

MIB = 1 << 20
#: Takes MiB of memory in each of so many processes, then seconds of a CPU; reads 1 MiB, writes 2, and tells its use
WORK = """\
import json, os, resource, sys, time
taken, shared = int(sys.argv[1]) << 20, int(sys.argv[2]) << 20
common = b"x" * shared
children = [pid for pid in (os.fork() for _ in range(2 if shared else 0)) if pid]
own = b"x" * taken
if shared and len(children) < 2: time.sleep(1.5); os._exit(0)
if shared: time.sleep(1.5)
open("/dev/zero", "rb").read(1 << 20)
open("/dev/null", "wb").write(bytes(2 << 20))
while time.process_time() < float(sys.argv[3]): pass
time.sleep(float(sys.argv[4]))
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"memory": used.ru_maxrss << 10, "cpu": used.ru_utime + used.ru_stime}))
"""
WORDS = (f"{MOUNT}/bin/flux", "python", "/tmp/work")


@pytest.fixture
def cluster(make: Make) -> Cluster:
    """Two nodes, whose guards start with the first job."""
    cluster = make({"size": 2, "logging": {"quiet": True}}, {"cores": 4}).start().wait_for_ready()
    for pod in cluster.pods.values():
        assert not pod.run("sh", "-c", 'echo "$0" >/tmp/work', WORK).returncode
        until((pod.state / "config/run/usage/begun").is_fifo)
    return cluster


def run(cluster: Cluster, *words: str) -> tuple[dict[str, Any], list[dict[str, float]]]:
    """Return what the record says that a job has used, and what its tasks say."""
    done = cluster.lead.run(f"{MOUNT}/bin/flux", "run", *words)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return usage_of(cluster, cluster.lead.flux("jobs", "-a", "-c1", "-no", "{id}").strip()), said


def usage_of(cluster: Cluster, job: str) -> dict[str, Any]:
    report = cluster.lead.flux("python", f"{MOUNT}/minicluster/job_report.py", "100")
    found = {record["id"]: record for record in map(json.loads, report.splitlines()) if "id" in record}
    used: dict[str, Any] = found[job.replace("ƒ", "f")]["usage"]
    return used


def explained(cluster: Cluster, job: str) -> dict[str, Any]:
    """Return what `minicluster why` is told of a job."""
    (cluster.lead.state / "program").write_text(first_line("explain"))
    words = (f"{MOUNT}/bin/flux", "python", "-c", BOOT, job)
    done = cluster.lead.run("sh", "-c", f'exec "$@" <{MOUNT}/program', "sh", *words)
    known: dict[str, Any] = json.loads(done.stdout)
    return known


def used_now(cluster: Cluster, seconds: int) -> list[dict[str, Any]]:
    """Return what a page is told that nodes use, by rank."""
    (cluster.lead.state / "program").write_text(first_line("observe"))
    words = (f"{MOUNT}/bin/flux", "python", "-c", BOOT, "100")
    done = cluster.lead.run("sh", "-c", f'{{ cat {MOUNT}/program; sleep {seconds}; }} | "$@"', "sh", *words)
    told = map(json.loads, done.stdout.splitlines())
    return [each["use"] for each in told if "use" in each]


def test_a_job_has_used_what_its_processes_have(cluster: Cluster) -> None:
    used, said = run(cluster, "-N2", "-n2", "-c2", *WORDS, "300", "0", "1.2", "0")
    assert list(used["nodes"]) == ["flux-sample-0", "flux-sample-1"]
    for node in used["nodes"].values():
        assert node["memory_peak"] == pytest.approx(said[0]["memory"], rel=0.02)
        assert node["cpu_seconds"] == pytest.approx(said[0]["cpu"], abs=0.1)
        assert (node["cores"], node["memory_limit"], node["threads"]) == (2, None, 1)
        assert MIB < node["read"] < 1.5 * MIB
        assert 2 * MIB < node["written"] < 2.1 * MIB
    nodes = [*used["nodes"].values()]
    assert used["total"]["memory_peak"] == sum(node["memory_peak"] for node in nodes)
    assert used["total"]["cores"] == 4
    # what four processes share counts once
    used, said = run(cluster, *WORDS, "50", "100", "0", "0")
    assert 300 * MIB < used["total"]["memory_peak"] < 325 * MIB
    # a job of a third of a second
    used, said = run(cluster, *WORDS, "60", "0", "0", "0.2")
    assert used["total"]["memory_peak"] == pytest.approx(said[0]["memory"], rel=0.02)
    # one without a look at it
    used, _ = run(cluster, "true")
    assert used["total"]["cpu_seconds"] < 0.1


def test_a_job_that_was_ended_has_used_something(cluster: Cluster) -> None:
    flux = cluster.lead.flux
    # on a busy machine a job is looked at late
    late = flux("submit", "-t10s", *WORDS, "60", "0", "0", "60").strip()
    batch = flux("batch", "-n1", "--wrap", "-t60s", "flux", "run", *WORDS, "70", "0", "0", "60").strip()
    until(lambda: flux("jobs", "-no{state}", late).strip() == "INACTIVE")
    number = flux("job", "id", "--to=dec", batch).strip()
    files = [pod.state / "config/run/usage" / number for pod in cluster.pods.values()]
    until(lambda: any(file.exists() and int(file.read_text().split()[0]) > 70 * MIB for file in files))
    until(lambda: explained(cluster, batch)["job"]["usage"])
    [(host, now)] = explained(cluster, batch)["job"]["usage"]["nodes"].items()
    assert host.startswith("flux-sample-")
    assert (now["memory_peak"] > 70 * MIB, now["cpu_seconds"] > 0, now["cores"], now["read"]) == (True, True, 1, None)
    both = flux("submit", "-N2", "-n2", "sleep", "60").strip()
    until(lambda: len(explained(cluster, both)["job"]["usage"]["nodes"]) == 2)
    [*_, told] = used_now(cluster, 9)
    assert sorted(told) == ["0", "1"]
    [now] = [each["jobs"][number] for each in told.values() if number in each["jobs"]]
    assert 70 * MIB < now["memory"] <= now["memory_peak"] < 170 * MIB
    assert now["threads"] >= 1
    flux("cancel", batch)
    until(lambda: flux("jobs", "-no{state}", batch).strip() == "INACTIVE")
    for job, least in ((late, 60 * MIB), (batch, 70 * MIB)):
        used = usage_of(cluster, job)["total"]
        assert least < used["memory_peak"] < least + 100 * MIB
        assert used["cpu_seconds"] > 0


def test_a_job_has_used_gpus_as_the_tool_of_their_vendor_says(make: Make, flux: Flux) -> None:
    flux.knows_gpus()
    runner = {"cores": 4, "resources": {"limits": {"nvidia.com/gpu": 4}}}
    cluster = make({"logging": {"quiet": True}}, runner).start().wait_for_ready()
    tool = cluster.lead.state / "bin/nvidia-smi"
    tool.write_text("#!/bin/sh\nfor gpu in 0 1 2 3; do echo $gpu, $((gpu * 1024)), 8192, $((gpu * 20)); done\n")
    tool.chmod(0o755)
    held, job = (cluster.lead.flux("submit", "-n1", "-g2", "sleep", "inf").strip() for _ in range(2))
    numbers = [cluster.lead.flux("job", "id", "--to=dec", each).strip() for each in (held, job)]
    files = [cluster.lead.state / "config/run/usage" / number for number in numbers]
    until(lambda: all(file.exists() and len(file.read_text().split()) == 6 for file in files))
    until(lambda: explained(cluster, job)["job"]["usage"]["total"].get("gpus_busy"))
    cluster.lead.flux("cancel", "--all")
    until(lambda: cluster.lead.flux("jobs", "-no{state}", job, held).split() == ["INACTIVE"] * 2)
    used = [usage_of(cluster, each)["total"] for each in (held, job)]
    found = sorted([each[key] for key in ("gpus", "gpu_memory_peak", "gpu_memory_limit", "gpus_busy")] for each in used)
    assert found == [[2, 1 << 30, 16 << 30, 0.2], [2, 5 << 30, 16 << 30, 1.0]]
    # one without GPUs has no word of them
    assert "gpus" not in run(cluster, *WORDS, "1", "0", "0", "0")[0]["total"]
    assert [*(cluster.lead.state / "config/run/usage").glob("*.gpus")] == []


@pytest.mark.parametrize("action", ["warn", "cancel"])
def test_a_job_that_does_nothing_is_told_of_or_ended(make: Make, action: str) -> None:
    idle = {"for": 3, "below": 0.2, "action": action}
    values = {"size": 2, "logging": {"quiet": True}, "flux": {"idleJobs": idle}}
    cluster = make(values, {"cores": 4}).start().wait_for_ready()
    flux = cluster.lead.flux
    busy = flux("submit", "-N2", "-n2", "sh", "-c", "[ $FLUX_TASK_RANK = 0 ] && while :; do :; done; sleep 60").strip()
    job = flux("submit", "-N2", "-n2", "sleep", "60").strip()
    until(lambda: " exception type=" in flux("job", "eventlog", job))
    [said] = [line for line in flux("job", "eventlog", job).splitlines() if " exception type=" in line]
    severity = {"warn": 1, "cancel": 0}[action]
    assert f'type="idle" severity={severity} ' in said
    assert 'note="kept less than 0.2 of its 2 cores busy for 3 s (flux.idleJobs)"' in said
    if action == "cancel":
        until(lambda: flux("jobs", "-no{state}", job).strip() == "INACTIVE")
    else:
        assert explained(cluster, job)["warned"].startswith("kept less than 0.2")
    assert " exception type=" not in flux("job", "eventlog", busy)
