"""What ran, after the end: `minicluster jobs` on a real Kubernetes, and the file of the report."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pod_jobs import ONE_CORE, UNTIL_TOLD, submit
from real_cluster import IN_PODS, NODE_FOLDER, Install
from support import as_in_schema

from tools.clients import Done, until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME

pytestmark = [IN_PODS, pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)]

#: The name of a job, which is hard to quote
HARD = 'a "b" é\u2028minicluster-jobs: 0'


def jobs(cluster: FluxRelease, *words: str) -> Done:
    """Run `minicluster jobs` to its end."""
    return cluster.cluster.run("minicluster", "jobs", NAME, "-n", cluster.namespace, *words)


def rows(cluster: FluxRelease) -> list[dict[str, Any]]:
    """Return the jobs that it lists."""
    done = jobs(cluster, "-o", "json")
    assert done.code == 0, done.err
    return [as_in_schema("jobs", json.loads(line)) for line in done.out.splitlines()]


def ends(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return how jobs ended."""
    return [tuple(job[key] for key in ("name", "state", "result", "exit_code", "nodes", "user")) for job in found]


def mounted(folder: Path) -> dict[str, Any]:
    """Return a volume that is a folder of the Kubernetes node."""
    return {"data": {"path": "/data", "hostPath": str(folder)}}


def test_jobs_lists_the_queue_and_after_the_end_the_report_in_the_log(release: Install) -> None:
    cluster = release({"size": 2, "report": {"log": True}}, {**ONE_CORE, "command": UNTIL_TOLD, "launcher": True})
    cluster.wait_for("0-1")
    submit(cluster, f"--job-name={HARD}", "--setattr=user.tag=x", "-N2", "-n2", "true")
    submit(cluster, "--job-name=fails", "sh", "-c", "exit 3")
    waits = submit(cluster, "--job-name=waits", "--urgency=hold", "true")
    expected = [
        (HARD, "INACTIVE", "COMPLETED", 0, f"{NAME}-[0-1]", {"tag": "x"}),
        ("fails", "INACTIVE", "FAILED", 3, f"{NAME}-0", {}),
        ("waits", "SCHED", None, None, None, {}),
    ]
    until(lambda: ends(rows(cluster)) == expected, STEP_SECONDS)
    assert jobs(cluster).out.splitlines()[3].split()[1:] == ["waits", "-", "PENDING", "-", "-", "-"]
    live = rows(cluster)
    assert cluster.flux(0, "job", "id", "--to=dec", waits).strip() == str(live[2]["number"])
    cluster.exec(0, "touch", "/tmp/end")
    assert cluster.cluster.run("minicluster", "wait", NAME, "-n", cluster.namespace, "--for", "end").code == 0
    assert rows(cluster) == live
    assert jobs(cluster).err == ""


@NODE_FOLDER
def test_a_lead_that_is_evicted_and_one_that_ends_replace_the_file(release: Install, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "reports" / "jobs.jsonl"
    values = {
        "size": 1,
        "logging": {"quiet": True},
        "archive": {"path": "/data/state.tgz"},
        "report": {"path": "/data/reports/jobs.jsonl"},
        "pod": {"terminationGracePeriodSeconds": 30},
    }
    cluster = release(values, {**ONE_CORE, "volumes": mounted(tmp_path / "data")})
    cluster.wait_for("0")
    submit(cluster, "--job-name=held", "--urgency=hold", "true")
    runs = submit(cluster, "--job-name=runs", "sleep", "600")
    until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{state}", runs).strip() == "RUN", STEP_SECONDS)
    first = cluster.pod(0)
    cluster.evict(first)
    until(lambda: cluster.pod(0) not in ("", first) and cluster.up() == "0", STEP_SECONDS)

    def found() -> list[tuple[Any, ...]]:
        return [job[:4] for job in ends([json.loads(line) for line in file.read_text().splitlines()])]

    ended, waits = [("runs", "INACTIVE", "CANCELED", 143)], [("held", "SCHED", None, None)]
    assert found() == ended + waits
    cluster.flux(0, "run", "--job-name=later", "true")
    cluster.uninstall()
    until(lambda: len(found()) == 3, STEP_SECONDS)
    assert found() == [*ended, ("later", "INACTIVE", "COMPLETED", 0), *waits]


@NODE_FOLDER
def test_jobs_says_where_the_file_is_after_the_end(release: Install, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    runner = {**ONE_CORE, "command": "echo done", "volumes": mounted(tmp_path / "data")}
    cluster = release({"size": 1, "report": {"path": "/data/jobs.jsonl"}}, runner)
    assert cluster.cluster.run("minicluster", "wait", NAME, "-n", cluster.namespace, "--for", "end").code == 0
    done = jobs(cluster)
    assert (done.code, done.out) == (1, "")
    # the lead's pod says it before its Job does
    assert re.fullmatch(
        "minicluster: mini is Complete(: the lead's pod mini-0-[a-z0-9]+ ended with exit code 0)?; "
        r"the report of its jobs is in /data/jobs\.jsonl, on a volume of its pods\n",
        done.err,
    )
    [job] = [json.loads(line) for line in (tmp_path / "data" / "jobs.jsonl").read_text().splitlines()]
    assert (job["result"], job["exit_code"]) == ("COMPLETED", 0)
