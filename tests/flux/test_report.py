"""The report of the jobs that the lead writes at its end: to a file, and to its log."""

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from broker_clusters import Cluster, Make
from minicluster.lead.program import BOOT, first_line
from minicluster.status.reported import reported

from tools.clients import until
from tools.releases import MOUNT

RETRY = 85
QUIET = {"logging": {"quiet": True}}
TIMES = ("t_submit", "t_run", "t_cleanup", "t_inactive")
#: The name of a job, and an attribute of the user
NAME, TAG = 'a "b"\n\u2028minicluster-jobs: 0 é', {"x": ["{{id}}", 1.5]}
#: A launcher whose jobs end in each way; one is left in the queue
WORK = f"""\
submit() {{ flux submit --quiet "$@"; }}
submit --job-name={shlex.quote(NAME)} --setattr=user.tag='{json.dumps(TAG)}' true
submit -N2 -n2 --job-name=fails sh -c 'exit 3'
submit --job-name=killed sh -c 'kill -KILL $$'
submit --job-name=late -t 1s sleep 60
flux queue drain
id=$(flux submit --job-name=dropped --urgency=hold true)
flux cancel "$id"
submit --job-name=waits --urgency=hold true
flux job wait-event "$id" clean >/dev/null
exit 5
"""
ALL = [
    (NAME, "INACTIVE", "COMPLETED", 0, "0"),
    ("fails", "INACTIVE", "FAILED", 3, "0-1"),
    ("killed", "INACTIVE", "FAILED", 137, "0"),
    ("late", "INACTIVE", "TIMEOUT", 142, "0"),
    ("dropped", "INACTIVE", "CANCELED", None, None),
    ("waits", "SCHED", None, None, None),
]


@pytest.fixture
def volume() -> Iterator[Path]:
    """A folder that all pods share; each has a /tmp of its own."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def mounted(volume: Path, **runner: Any) -> dict[str, Any]:
    """Return a runner with the volume."""
    return {"volumes": {"data": {"path": str(volume), "hostPath": str(volume)}}, **runner}


def read(path: Path) -> list[dict[str, Any]]:
    """Return the jobs in a report."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def ends(jobs: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return how jobs ended, and where they ran."""
    return [tuple(job[key] for key in ("name", "state", "result", "exit_code", "ranks")) for job in jobs]


def started(cluster: Cluster, *words: str) -> str:
    """Return the id of a new job that runs."""
    job = cluster.lead.flux("submit", *words).strip()
    until(lambda: cluster.lead.flux("jobs", "-n", "-o", "{state}", job).strip() == "RUN")
    return cluster.lead.flux("job", "id", "--to=f58plain", job).strip()


def test_the_lead_reports_all_jobs_at_its_end(make: Make, volume: Path) -> None:
    file = volume / "reports" / "jobs.jsonl"
    begin = time.time()
    runner = mounted(volume, command=WORK, launcher=True)
    cluster = make({"size": 2, "report": {"path": str(file), "log": True}}, runner)
    assert cluster.run() == [5, 0]
    jobs = read(file)
    assert ends(jobs) == ALL
    assert [job["ntasks"] for job in jobs] == [1, 2, 1, 1, 1, 1]
    assert [job["user"] for job in jobs] == [{"tag": TAG}, *[{}] * 5]
    assert [job["nodes"] for job in jobs][1] == "flux-sample-[0-1]"
    assert [job["urgency"] for job in jobs] == [16, 16, 16, 16, 0, 0]
    for job in jobs:
        times = [job[key] for key in TIMES if job[key] is not None]
        assert begin <= times[0]
        assert times == sorted(times)
        assert len(times) == {"dropped": 3, "waits": 1}.get(job["name"], 4)
        assert job["id"].startswith("f")
        assert isinstance(job["number"], int)
    # the log has the same, before its last line
    assert reported(cluster.lead.log.splitlines()) == (jobs, 6, "")
    assert cluster.lead.log.splitlines()[-1] == "minicluster: the job failed with exit code 5"
    assert not list(file.parent.glob("*.new"))


@pytest.mark.parametrize("kept", [False, True], ids=["lost", "kept"])
def test_a_lead_that_is_told_to_stop_reports_its_queue(make: Make, volume: Path, kept: bool) -> None:
    file = volume / "jobs.jsonl"
    values: dict[str, Any] = {**QUIET, "report": {"path": str(file)}, "pod": {"terminationGracePeriodSeconds": 30}}
    if kept:
        values["archive"] = {"path": f"{volume}/state.tgz"}
    cluster = make(values, mounted(volume)).start().wait_for_ready()
    held = cluster.lead.flux("submit", "--urgency=hold", "true").strip()
    runs = started(cluster, "sleep", "600")
    cluster.lead.signal(signal.SIGTERM)
    # a report is there before the jobs end
    until(file.exists)
    assert [(job["state"], job["result"]) for job in read(file)] == [("SCHED", None), ("RUN", None)]
    assert cluster.lead.wait() == RETRY
    assert [(job["state"], job["result"], job["exit_code"]) for job in read(file)] == [
        ("INACTIVE", "CANCELED", 143),
        ("SCHED", None, None),
    ]
    assert read(file)[0]["id"] == runs
    cluster.start([0]).wait_for_ready()
    if kept:
        cluster.lead.flux("job", "urgency", held, "16")
        cluster.lead.flux("job", "wait-event", held, "clean")
    cluster.lead.flux("run", "true")
    cluster.lead.shut_down()
    cluster.lead.wait()
    # in the order in which they ended
    results = [job["result"] for job in read(file)]
    assert results == (["CANCELED", "COMPLETED", "COMPLETED"] if kept else ["COMPLETED"])


def recorded(cluster: Cluster) -> list[str]:
    """Return the lines of the lead's history."""
    return cluster.lead.run("cat", f"{MOUNT}/config/run/history/jobs.jsonl").stdout.splitlines()


def test_jobs_that_flux_has_forgotten_are_in_the_report_of_a_later_lead(make: Make, volume: Path) -> None:
    file = volume / "jobs.jsonl"
    cluster = make({**QUIET, "state": {"claimName": "shared"}, "report": {"path": str(file)}}, mounted(volume))
    cluster.keep_jobs(8).start().wait_for_ready()
    for last in (8, 16):
        cluster.lead.flux("submit", "--quiet", f"--cc={last - 7}-{last}", "--setattr=user.n={cc}", "true")
        cluster.lead.flux("queue", "drain")
        # at once no more than the limit: else Flux may forget some before they are recorded
        until(lambda count=last: len(recorded(cluster)) == count)
    until(lambda: len(cluster.lead.flux("jobs", "-an", "-o", "{id}").split()) == 8)
    cluster.lead.kill()
    cluster.start([0]).wait_for_ready()
    cluster.lead.flux("run", "--setattr=user.n=17", "true")
    cluster.lead.run(f"{MOUNT}/bin/flux", "shutdown", "--quiet")
    assert cluster.wait() == [0]
    assert sorted(job["user"]["n"] for job in read(file)) == [*range(1, 18)]
    assert {job["result"] for job in read(file)} == {"COMPLETED"}


def test_a_report_that_can_not_be_written_changes_no_exit_code(make: Make, volume: Path) -> None:
    (volume / "file").touch()
    path = volume / "file" / "jobs.jsonl"
    cluster = make({**QUIET, "report": {"path": str(path)}}, mounted(volume, command="exit 0"))
    assert cluster.run() == [0]
    said = "minicluster: the report of the jobs failed: [Errno 17] File exists: "
    assert [line.startswith(said) for line in cluster.lead.log.splitlines() if "report" in line] == [True]


def test_a_killed_broker_that_does_not_come_back_reports_nothing(make: Make, volume: Path) -> None:
    runner = mounted(volume, command="sleep 600")
    cluster = make({"report": {"log": True}}, runner).start().wait_for_ready()
    cluster.lead.kill_broker()
    assert cluster.lead.wait() == RETRY
    assert "minicluster: the report of the jobs failed: the broker had no time for it" in cluster.lead.log.splitlines()
    assert reported(cluster.lead.log.splitlines()) == ([], None, "")


def test_the_lead_is_asked_for_its_jobs_by_a_program_that_is_sent(flux_path: Path) -> None:
    script = (
        'flux run -n1 true && flux submit --urgency=hold true >&2 && printf %s "$program" | flux python -c "$boot" 1000'
    )
    environment = {
        **os.environ,
        "PATH": f"{flux_path.parent}:{os.environ['PATH']}",
        "boot": BOOT,
        "program": first_line("job_report"),
    }
    words = ["flux", "start", "sh", "-c", script]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    *jobs, last = map(json.loads, done.stdout.splitlines())
    assert [job["state"] for job in jobs] == ["INACTIVE", "SCHED"]
    assert {**last, "now": 0} == {"purged": 0, "earlier": 0, "now": 0}
