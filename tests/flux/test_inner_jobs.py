"""The jobs inside of jobs that are instances of Flux: in `minicluster jobs`, the report and the history."""

import json
import shlex
from typing import Any

from broker_clusters import Cluster, Make
from minicluster.lead.program import BOOT, first_line
from minicluster.status.reported import INSIDE_COLUMN, KnownJobs, reported, table

from tools.clients import until
from tools.releases import MOUNT

TWO = {"size": 2, "report": {"log": True}, "interactive": True}
#: In an instance: jobs that end well, fail and are left; an instance in it
JOBS = """#!/bin/sh
flux run -n1 --job-name=good true
flux run -n1 --job-name=bad sh -c 'exit 3'
flux batch -n1 --flags=waitable --job-name=deep --output=none <<'END' >/dev/null
#!/bin/sh
flux run -n1 --job-name=deepest true
END
flux job wait --all
flux submit -n1 --job-name=left sleep 600 >/dev/null
"""
WORK = f"""{JOBS}
until [ -e $MINICLUSTER_HOME/go ]; do sleep 0.1; done
"""
#: The files of its history
HISTORY = f"{MOUNT}/config/run/history"


def told(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the jobs that the lead tells, without the last line."""
    done = cluster.lead.run(f"{MOUNT}/bin/flux", "python", "-c", BOOT, "1000", stdin=first_line("job_report"))
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()[:-1]]


def shape(rows: list[dict[str, Any]], job: str) -> list[tuple[str, str, Any]]:
    """Return the depths, names and ends of jobs, without their ids."""
    of_job = [row for row in rows if row["id"].split("/")[0] == job]
    return sorted((row["id"].count("/"), row["name"], row["result"]) for row in of_job)


def counts(rows: list[dict[str, Any]], name: str) -> Any:
    return next(row["inner"] for row in rows if row["name"] == name)


def answers(cluster: Cluster, program: str, request: str = "") -> list[dict[str, Any]]:
    """Return what a program of the lead tells within some seconds."""
    (cluster.lead.state / "program").write_text(first_line(program))
    words = (f"{MOUNT}/bin/flux", "python", "-c", BOOT, "100")
    said = f"{{ cat {MOUNT}/program; sleep 3; {request and f'echo {shlex.quote(request)};'} sleep 5; }}"
    done = cluster.lead.run("sh", "-c", f'{said} | "$@"', "sh", *words)
    return [json.loads(line) for line in done.stdout.splitlines()]


def seen(cluster: Cluster, job: str) -> tuple[Any, Any, Any]:
    """Return what a page, the SDK and sacct show of the jobs inside of one: their depths, names and ends."""
    page = {
        row["id"]: row
        for each in answers(cluster, "observe")
        for row in each.get("jobs", [])
        if "/" in row.get("id", "")
    }
    asked = answers(cluster, "remote", '{"key": "k", "list": true}')
    sdk = [row for each in asked for row in each.get("jobs", []) if "/" in row["id"]]
    sacct = cluster.lead.run(f"{MOUNT}/slurm/sacct", "-nP", "-o", "JobID,JobName,State", "-j", job)
    assert (sacct.returncode, sacct.stderr) == (0, "")
    table = sacct.stdout.splitlines()
    return (
        [each for each in shape([*page.values()], job) if each[0]],
        sorted((row["id"].count("/"), row["name"], row["result"].upper() or None) for row in sdk),
        sorted((row.count("/"), *row.partition(" by ")[0].split("|")[1:]) for row in table if "/" in row),
    )


def test_jobs_inside_of_jobs_are_told_while_it_runs_and_after_its_end(make: Make) -> None:
    cluster = make(TWO, {"cores": 2}).start().wait_for_ready()
    cluster.lead.flux("run", "--job-name=plain", "true")
    # its first broker is where the lead is not
    words = ("-N1", "-n2", "--requires=rank:1", "--job-name=outer", "--output=none")
    assert cluster.lead.run(f"{MOUNT}/bin/flux", "batch", *words, stdin=WORK).returncode == 0
    ended = [(0, "outer", None), (1, "bad", "FAILED"), (1, "deep", "COMPLETED"), (1, "good", "COMPLETED")]
    outer = next(row["id"] for row in told(cluster) if row["name"] == "outer")
    deepest = (2, "deepest", "COMPLETED")
    until(lambda: shape(told(cluster), outer) == [*ended, (1, "left", None), deepest])
    rows = told(cluster)
    some = {"total": 5, "completed": 3, "failed": 1, "canceled": 0, "timeout": 0, "kept": 5}
    assert (counts(rows, "outer"), counts(rows, "plain")) == (some, None)
    assert counts(rows, "deep") == {"total": 1, "completed": 1, "failed": 0, "canceled": 0, "timeout": 0}
    page, sdk, sacct = seen(cluster, outer)
    assert page == sdk == [*ended[1:], (1, "left", None), deepest]
    words = {None: "RUNNING"}
    assert sacct == [(depth, name, words.get(end, end)) for depth, name, end in page]
    cluster.pods[1].run("touch", f"{MOUNT}/go")
    cluster.lead.flux("job", "wait-event", outer, "clean")
    result = [(0, "outer", "COMPLETED"), *ended[1:], (1, "left", "CANCELED"), deepest]
    assert shape(told(cluster), outer) == result
    # Flux forgets them, the history does not
    until(lambda: f'"{outer}"' in cluster.lead.run("cat", f"{HISTORY}/jobs.jsonl").stdout)
    cluster.lead.flux("job", "purge", "--force", "--num-limit=0")
    rows = told(cluster)
    assert shape(rows, outer) == result
    assert counts(rows, "outer") == {**some, "canceled": 1}
    words = {"CANCELED": "CANCELLED"}
    page, sdk, sacct = seen(cluster, outer)
    assert page == sdk == result[1:]
    assert sacct == [(depth, name, words.get(end, end)) for depth, name, end in page]
    lines = table(KnownJobs(rows).rows, None).splitlines()
    print("\n".join(lines))
    assert lines[0].endswith("JOBS INSIDE")
    cluster.lead.shut_down()
    cluster.wait()
    rows, count, _ = reported(cluster.lead.log.splitlines())
    assert (count, shape(rows, outer)) == (7, result)


def test_of_an_instance_that_was_killed_it_is_known_what_was_known_just_before(make: Make) -> None:
    cluster = make(TWO, {"cores": 2}).start().wait_for_ready()
    work = f"{JOBS}flux submit -n2 --job-name=waits true\n"
    work += "echo $$ $(flux getattr broker.pid) >$MINICLUSTER_HOME/pid\nexec sleep 600\n"
    words = ("-N1", "-n2", "--requires=rank:1", "--job-name=outer", "--output=none")
    assert cluster.lead.run(f"{MOUNT}/bin/flux", "batch", *words, stdin=work).returncode == 0
    pid = cluster.pods[1].state / "pid"
    # the lead asks by itself
    until(lambda: '"waits"' in cluster.lead.run("sh", "-c", f"cat {HISTORY}/inside/*").stdout)
    until(lambda: pid.exists() and pid.read_text().strip())
    cluster.pods[1].run("kill", "-9", *pid.read_text().split())
    inside = [(1, "bad", "FAILED"), (1, "deep", "COMPLETED"), (1, "good", "COMPLETED")]
    inside += [(1, "left", "LOST"), (1, "waits", "LOST"), (2, "deepest", "COMPLETED")]
    result = [(0, "outer", "FAILED"), *inside]
    until(lambda: any(row["result"] for row in told(cluster) if row["name"] == "outer"))
    rows = told(cluster)
    outer = next(row for row in rows if row["name"] == "outer")
    assert (shape(rows, outer["id"]), INSIDE_COLUMN.cell(outer)) == (result, "unknown")
    # it lives on in the history alone
    until(lambda: not cluster.lead.run("ls", f"{HISTORY}/inside").stdout)
    cluster.lead.flux("job", "purge", "--force", "--num-limit=0")
    rows = told(cluster)
    assert shape(rows, outer["id"]) == result
    assert {row["t_inactive"] for row in rows if row["result"] == "LOST"} == {outer["t_inactive"]}
    page, sdk, sacct = seen(cluster, outer["id"])
    assert page == sdk == inside
    assert sacct == [(depth, name, end.replace("LOST", "NODE_FAIL")) for depth, name, end in inside]
    cluster.lead.shut_down()
    cluster.wait()
    assert shape(reported(cluster.lead.log.splitlines())[0], outer["id"]) == result
