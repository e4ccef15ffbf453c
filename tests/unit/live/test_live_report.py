"""``minicluster jobs``: from the lead while it runs, then from its log; and the table."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_kubectl import FORBIDDEN, Kubectl, lead, say
from minicluster.cluster import states
from minicluster.status.reported import reported, table
from status_samples import WHY, asleep, ended, job

from tools.clients import Done

HOSTILE = 'a "b"\n\u2028minicluster-jobs: 0 \x1b[31m' + "é" * 40
START = 1_893_499_200.5  # 2030-01-01T12:00:00.5Z


def row(number: int, **fields: Any) -> dict[str, Any]:
    """Return a job of a report."""
    found = {"id": f"f{number}", "number": number, "name": "work", "state": "INACTIVE", "result": "COMPLETED"}
    times = {"t_submit": START - 1, "t_run": START, "t_cleanup": START + 62, "t_inactive": START + 63}
    return {**found, "exit_code": 0, "nodes": "mini-[0-1]", "ranks": "0-1", "ntasks": 2, **times, "user": {}, **fields}


NEVER = {"t_run": None, "t_cleanup": None, "t_inactive": None, "nodes": None, "ranks": None, "exit_code": None}
ROWS = [
    row(1),
    row(2, name=HOSTILE, result="FAILED", exit_code=143, user={"x": HOSTILE}),
    row(3, name="", state="SCHED", result=None, **NEVER),
    row(4, result="CANCELED", **{**NEVER, "t_inactive": START}),
    row(5, state="RUN", result=None, exit_code=None, t_cleanup=None, t_inactive=None),
]
SHOWN = """\
ID   NAME                                       NODES        STATUS      EXIT CODE   START                  DURATION
f1   work                                       mini-[0-1]   COMPLETED   0           2030-01-01T12:00:00Z   1m2s
f2   a "b" minicluster-jobs: 0 \\x1b[31mééééé…   mini-[0-1]   FAILED      143         2030-01-01T12:00:00Z   1m2s
f3   -                                          -            PENDING     -           -                      -
f4   work                                       -            CANCELED    -           -                      -
f5   work                                       mini-[0-1]   RUNNING     -           2030-01-01T12:00:00Z   2m
"""


def log_of(rows: list[dict[str, Any]]) -> list[str]:
    """Return a report as the lead prints it."""
    return [f"minicluster-jobs: {len(rows)}", *(f"minicluster-job: {json.dumps(each)}" for each in rows)]


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    return Kubectl(tmp_path)


def over(kubectl: Kubectl, log: list[str], **values: str) -> None:
    """Let the cluster be complete, with a log."""
    kubectl.has(job=job(end=("Complete", "x"), **values), pods={"items": [lead(kubectl.folder, ended(0))]})
    (kubectl.folder / "logs").write_text("".join(f"{line}\n" for line in log))


def test_the_table_has_a_line_for_each_job() -> None:
    assert table(ROWS, START + 120) == SHOWN


def test_a_job_that_waits_may_have_an_estimate_of_its_start() -> None:
    waits = row(3, state="SCHED", result=None, **NEVER, t_estimate=START + 600)
    assert table([waits], START).splitlines()[1].split() == [
        "f3",
        "work",
        "-",
        "PENDING",
        "-",
        "~2030-01-01T12:10:00Z",
        "-",
    ]


def test_a_job_that_says_how_far_it_is_has_a_bar() -> None:
    runs = {**ROWS[-1], "progress": 0.4}
    assert [
        line.split("DURATION")[-1].split("2m ")[-1].strip() for line in table([runs], START + 120).splitlines()
    ] == [
        "PROGRESS",
        "[||||||||............] 40%, ~3m left",
    ]


def test_in_a_report_a_job_runs_until_the_last_time_that_is_known() -> None:
    assert table(ROWS, None).splitlines()[-1].endswith(" 1m3s")


#: The last line of the lead's answer
NO_MORE = {"purged": 0, "earlier": 0}


def test_jobs_asks_the_lead_while_it_runs(kubectl: Kubectl) -> None:
    kubectl.tool("sh", 'read -r program; /bin/cat "${0%/*}/rows"')
    (kubectl.folder / "rows").write_text("".join(json.dumps(each) + "\n" for each in [*ROWS, NO_MORE]))
    done = kubectl.run("jobs", "mini", "-o", "json")
    assert (done.code, [json.loads(line) for line in done.out.splitlines()], done.err) == (0, ROWS, "")
    assert kubectl.asked()[-1].startswith("exec mini-0-x --container=mini --stdin -- /bin/sh -c ")
    (kubectl.folder / "rows").write_text(json.dumps(NO_MORE))
    assert kubectl.run("jobs", "mini") == Done(0, "", say("no jobs in mini"))


def test_jobs_run_for_as_long_as_the_lead_says_whatever_our_clock(kubectl: Kubectl) -> None:
    kubectl.tool("sh", 'read -r program; /bin/cat "${0%/*}/rows"')
    told = [*ROWS, {**NO_MORE, "now": START + 120}]
    (kubectl.folder / "rows").write_text("".join(json.dumps(each) + "\n" for each in told))
    assert kubectl.run("jobs", "mini") == Done(0, SHOWN, "")


def test_jobs_says_how_many_jobs_flux_no_longer_knows(kubectl: Kubectl) -> None:
    kubectl.tool("sh", 'read -r program; /bin/cat "${0%/*}/rows"')
    (kubectl.folder / "rows").write_text(f'{json.dumps(ROWS[0])}\n{{"purged": 700, "earlier": 30}}\n')
    done = kubectl.run("jobs", "mini", "-o", "json")
    assert (done.code, json.loads(done.out)) == (0, ROWS[0])
    assert done.err == say("the records of 700 jobs are gone, which ended before all others") + say(
        "30 more jobs ended before these: --count 1030 shows them"
    )


@pytest.mark.parametrize("most", [5, 1000, 5000])
def test_the_count_that_jobs_suggests_shows_all_jobs(kubectl: Kubectl, most: int) -> None:
    kubectl.tool("sh", 'read -r program; /bin/cat "${0%/*}/rows"')
    (kubectl.folder / "rows").write_text(f'{json.dumps(ROWS[0])}\n{{"purged": 0, "earlier": 30}}\n')
    done = kubectl.run("jobs", "mini", "-o", "json", f"--count={most}")
    assert done.err == say(f"30 more jobs ended before these: --count {most + 30} shows them")


@pytest.mark.parametrize(("words", "most"), [([], "1000"), (["--count=0"], "0"), (["--count", "70000"], "70000")])
def test_the_lead_is_told_how_many_jobs_are_wanted(kubectl: Kubectl, words: list[str], most: str) -> None:
    kubectl.tool("sh", 'read -r program; /bin/cat "${0%/*}/rows"')
    (kubectl.folder / "rows").write_text(json.dumps(NO_MORE))
    assert kubectl.run("jobs", "mini", *words).code == 0
    assert kubectl.asked()[-1].endswith(f" {most}")


def test_jobs_says_how_many_jobs_a_report_lacks(kubectl: Kubectl) -> None:
    missing = "700 jobs are missing in the report: Flux no longer had their records"
    over(kubectl, ["out", f"minicluster: {missing}", *log_of(ROWS[:4])])
    done = kubectl.run("jobs", "mini", "-o", "json")
    assert (len(done.out.splitlines()), done.err) == (4, say(missing))


def test_jobs_reads_the_log_after_the_end(kubectl: Kubectl) -> None:
    over(kubectl, ["out", *log_of(ROWS[:4]), "minicluster: the job failed with exit code 3"])
    done = kubectl.run("jobs", "mini", "-n", "lab")
    assert done == Done(0, "".join(line for line in SHOWN.splitlines(keepends=True) if line[:2] != "f5"), "")
    assert kubectl.asked()[-1] == "--namespace=lab logs mini-0-x --container=mini"
    done = kubectl.run("jobs", "mini", "-o", "json")
    assert [json.loads(line) for line in done.out.splitlines()] == ROWS[:4]


def test_of_the_jobs_in_a_log_as_many_are_shown_as_are_wanted(kubectl: Kubectl) -> None:
    over(kubectl, log_of(ROWS))
    done = kubectl.run("jobs", "mini", "-o", "json", "--count=1")
    shown = [json.loads(line) for line in done.out.splitlines()]
    ended = [row for row in ROWS if row["state"] == "INACTIVE"]
    assert [row for row in shown if row["state"] == "INACTIVE"] == ended[-1:]
    earlier = len(ended) - 1
    assert done.err == say(f"{earlier} more jobs ended before these: --count {len(ended)} shows them")


def test_jobs_says_that_a_log_has_a_part_of_the_report_alone(kubectl: Kubectl) -> None:
    over(kubectl, log_of(ROWS)[:2])
    done = kubectl.run("jobs", "mini")
    assert (done.code, len(done.out.splitlines())) == (0, 2)
    assert done.err == say("the log of the lead has 1 of the 5 jobs of its report")


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"report.path": "/data/jobs.jsonl"}, "the report of its jobs is in /data/jobs.jsonl, on a volume of its pods"),
        (
            {"report.path": "sha256:1", "report.log": "true"},
            "the report of its jobs is in the file of report.path, on a volume of its pods",
        ),
        (
            {"report.log": "true", "report.path": ""},
            "its log has no report of its jobs: the lead did not end by itself, or the log's begin is gone",
        ),
        ({}, "its jobs are known while its lead runs, and later with report.log or report.path"),
    ],
)
def test_jobs_says_where_the_report_is_that_it_can_not_read(
    kubectl: Kubectl, values: dict[str, str], where: str
) -> None:
    over(kubectl, ["out"], **values)
    assert kubectl.run("jobs", "mini") == Done(1, "", say(f"mini is Complete: x: said why; {where}"))


def test_jobs_of_a_cluster_without_pods(kubectl: Kubectl) -> None:
    kubectl.has(job=asleep(), pods={"items": []})
    wakes = "`minicluster flux mini -- COMMAND` or `minicluster scale mini SIZE` wakes it"
    known = "its jobs are known while its lead runs, and later with report.log or report.path"
    assert kubectl.run("jobs", "mini") == Done(1, "", say(f"mini is Suspended: {WHY}: {wakes}; {known}"))


def test_a_lead_whose_broker_has_ended_is_read_from_its_log(kubectl: Kubectl) -> None:
    (kubectl.folder / "refused").write_text("error: cannot exec in a stopped container\nx: container not running\n")
    (kubectl.folder / "logs").write_text("\n".join(log_of(ROWS[:1])))
    assert kubectl.run("jobs", "mini").out.splitlines()[1].startswith("f1 ")


@pytest.mark.parametrize(
    ("kind", "verb", "file"), [("pods/exec", "create", "refused"), ("pods/log", "get", "logs.error")]
)
def test_jobs_names_the_right_that_a_user_lacks(kubectl: Kubectl, kind: str, verb: str, file: str) -> None:
    if kind == "pods/log":
        over(kubectl, [])
    (kubectl.folder / file).write_text(FORBIDDEN.format(kind, verb))
    done = kubectl.run("jobs", "mini")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert f'cannot {verb} resource "{kind}"' in done.err
    assert "ask for a Role that " in done.err


# The log ----------------------------------------------------------------------------------------------------------


def test_the_last_report_of_a_log_counts() -> None:
    assert reported([]) == ([], None, "")
    assert reported(log_of([])) == ([], 0, "")
    assert reported([*log_of(ROWS), "x", *log_of(ROWS[:1])]) == (ROWS[:1], 1, "")


def test_lines_of_others_are_no_jobs() -> None:
    header, *jobs = log_of(ROWS[:2])
    # output of a job without an end of line comes before the report
    log = [f"minicluster-job: {json.dumps(row(9))}", f"out minicluster-job: {header}", jobs[0]]
    others = ["minicluster-job: {", "minicluster-job: 3", 'minicluster-job: {"id": "f9"}', "minicluster-job:"]
    assert reported([*log, *others, f" {jobs[1]}", jobs[1], *log_of([row(7)])[1:]]) == (ROWS[:2], 2, "")


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(name=TEXTS, user=st.dictionaries(TEXTS, TEXTS), before=TEXTS)
def test_a_report_is_found_again_in_any_log(name: str, user: dict[str, str], before: str) -> None:
    rows = [row(1, name=name, user=user), row(2)]
    text = before + "\n".join(log_of(rows)) + "\n"
    assert reported(text.split("\n")) == (rows, 2, "")
    assert len(table(rows, START).splitlines()) == 3


def test_a_report_is_not_why_the_work_failed() -> None:
    log = ["no input", *log_of(ROWS), "minicluster: the job failed with exit code 7"]
    assert states.of_log(log) == "the work failed with exit code 7: no input"
