"""`minicluster jobs --html` and `--report`, `minicluster dashboard`: as a person calls them."""

import json
import re
import signal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from live_kubectl import Kubectl, lead, say
from picture_lead import START, job, past
from status_samples import ended
from status_samples import job as kubernetes_job

ROWS = [job(1, name="first"), job(2, name="</script><b>", result="FAILED", exit_code=3)]


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    return Kubectl(tmp_path)


def shown(path: Path) -> dict[str, Any]:
    """Return what a page shows."""
    found = re.search(r'<script type="application/json" id="config">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])["data"]
    return data


def report(tmp_path: Path) -> str:
    path = tmp_path / "report.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return str(path)


def test_a_report_is_shown_without_a_cluster(kubectl: Kubectl, tmp_path: Path) -> None:
    done = kubectl.run("jobs", "mini", "--report", report(tmp_path))
    assert [line.split()[0] for line in done.out.splitlines()] == ["ID", "f1", "f2"]
    log = tmp_path / "log"
    log.write_text("x\nminicluster-jobs: 1\nminicluster-job: " + json.dumps(ROWS[0]) + "\n")
    done = kubectl.run("jobs", "mini", "--report", str(log), "-o", "json")
    assert [json.loads(line) for line in done.out.splitlines()] == [ROWS[0]]
    assert not (kubectl.folder / "asked").exists()


def test_a_report_becomes_a_page(kubectl: Kubectl, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = kubectl.run("jobs", "mini", "--report", report(tmp_path), "--html", str(page))
    assert (done.code, done.err) == (0, say(f"wrote {page} with 2 jobs"))
    found = shown(page)
    assert [(row["id"], row["name"], row["status"]) for row in found["jobs"]] == [
        ("f1", "first", "COMPLETED"),
        ("f2", "</script><b>", "FAILED"),
    ]
    assert [node["name"] for node in found["nodes"]] == ["mini-0", "mini-1"]
    # days later, too, it ends with the run
    assert (found["now"], found["isOver"]) == (START + 63, True)


def test_the_page_and_top_of_an_ended_minicluster_end_with_its_run(kubectl: Kubectl, tmp_path: Path) -> None:
    """Its jobs come from the report in the lead's log."""
    log = [f"minicluster-jobs: {len(ROWS)}", *(f"minicluster-job: {json.dumps(row)}" for row in ROWS)]
    (kubectl.folder / "logs").write_text("\n".join(log) + "\n")
    kubectl.has(job=kubernetes_job(end=("Complete", "")), pods={"items": [lead(tmp_path, ended(0))]}, events=None)
    page = tmp_path / "page.html"
    assert kubectl.run("jobs", "mini", "--html", str(page)).code == 0
    found = shown(page)
    assert (found["now"], found["isOver"], found["state"], len(found["jobs"])) == (START + 63, True, "Complete", 2)
    done = kubectl.run("top", "mini")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0].endswith("as of 01-01 12:01:03 UTC")
    assert [line.split()[:2] for line in done.out.splitlines()[-2:]] == [["f1", "COMPLETED"], ["f2", "FAILED"]]


def test_what_the_lead_tells_becomes_a_page(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "told").write_text("".join(json.dumps(each) + "\n" for each in past(ROWS)))
    kubectl.tool("sh", f"read -r program; /bin/cat {tmp_path}/told")
    kubectl.has(job=kubernetes_job(), pods={"items": [lead(tmp_path)]}, events={"items": []})
    page = tmp_path / "page.html"
    done = kubectl.run("jobs", "mini", "-n", "lab", "--html", str(page))
    assert (done.code, done.err) == (0, say(f"wrote {page} with 2 jobs"))
    found = shown(page)
    assert (found["state"], len(found["jobs"]), found["samples"][-1][4]) == ("Running", 2, 4)
    assert '"where":" -n lab"' in page.read_text()


def test_what_can_not_be_is_refused(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("no report\n")
    done = kubectl.run("jobs", "mini", "--report", str(tmp_path / "other"))
    why = "has no report of jobs: give the file of report.path, or a log with report.log"
    assert (done.code, done.err) == (2, say(f"{tmp_path}/other {why}"))
    done = kubectl.run("jobs", "mini", "--html", str(tmp_path / "x.html"), "-o", "json")
    assert (done.code, done.err) == (2, say("--html writes a page: leave -o json out"))
    with patch("importlib.util.find_spec", return_value=None):
        done = kubectl.run("jobs", "mini", "--html", str(tmp_path / "x.html"))
    why = "the picture needs Bokeh, which is not installed: pip install 'minicluster[dashboard]'"
    assert (done.code, done.err, (tmp_path / "x.html").exists()) == (1, say(why), False)


def test_the_address_is_on_standard_output_and_a_signal_ends_it(kubectl: Kubectl) -> None:
    kubectl.flux("cat >/dev/null")
    with kubectl.start("dashboard", "mini", "--no-open") as process:
        assert process.stdout and process.stderr
        address = process.stdout.readline()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/mini/\n", address)
        assert process.stderr.readline() == say("the page is served until Ctrl-C")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_wrong_name_is_told_at_once(kubectl: Kubectl) -> None:
    kubectl.has(job=None, pods={"items": []})
    with kubectl.start("dashboard", "other", "--no-open") as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, "there is no MiniCluster other" in err) == (1, "", True)
