"""The report of the jobs: the broker writes it at its end, the entrypoint prints it."""

from typing import Any

import pytest
from pods import ROOT, Make, Pod

#: What the program does: it writes two jobs, or fails
WRITES = 'printf \'%s\\n\' \'{"id": "f1"}\' \'{"id": "f2"}\' >"$3/report"'
FAILS = "echo a note >&2; echo no room >&2; exit 1"
FAILED = "minicluster: the report of the jobs failed"
LATE = f"{FAILED}: the broker had no time for it"


def reporting(make: Make, program: str, command: str = "echo out", **report: Any) -> Pod:
    """Make a lead whose program of the report is a text for a shell."""
    volumes = {"data": {"path": f"{ROOT}/data", "emptyDir": True}}
    pod = make({"report": report}, {"command": command, "volumes": volumes})
    pod.play("python job_report.py", program)
    return pod


def lines(log: str) -> list[str]:
    """Return the lines of a log from the work's output on, which `out` begins."""
    return log[log.index("out\n") :].splitlines()[1:]


@pytest.mark.parametrize("code", [0, 3])
def test_the_log_has_the_report_after_the_output(make: Make, code: int) -> None:
    pod = reporting(make, WRITES, f"echo out; exit {code}", log=True)
    found, log = pod.run()
    assert found == code
    jobs = ["minicluster-jobs: 2", 'minicluster-job: {"id": "f1"}', 'minicluster-job: {"id": "f2"}']
    assert lines(log) == jobs + ([f"minicluster: the job failed with exit code {code}"] if code else [])


def test_the_program_gets_the_file_of_the_report(make: Make) -> None:
    pod = reporting(make, WRITES, path=f"{ROOT}/data/jobs.jsonl")
    found, log = pod.run()
    assert (found, lines(log)) == (0, [])
    [call] = pod.calls("python", "job_report.py")
    assert call.words[2:] == [str(pod.run_folder), "7", f"{pod.root}/data/jobs.jsonl"]


@pytest.mark.parametrize(
    ("program", "said"), [(FAILS, f"{FAILED}: no room"), ("exit 142", LATE), ("echo >&2; kill $$", "")]
)
def test_a_report_that_fails_is_one_line_and_changes_no_exit_code(make: Make, program: str, said: str) -> None:
    pod = reporting(make, program, "echo out; exit 4", log=True)
    found, log = pod.run()
    [line, last] = lines(log)
    assert (found, last) == (4, "minicluster: the job failed with exit code 4")
    # some shells name the signal
    assert line == said or (not said and line in (LATE, f"{FAILED}: Terminated"))


def test_a_report_from_before_the_container_was_killed_is_not_printed(make: Make) -> None:
    pod = reporting(make, WRITES, log=True)
    pod.run()
    for mark in ("exit-code", "working"):
        (pod.run_folder / mark).unlink(missing_ok=True)
    pod.play("python job_report.py", "exit 142")
    assert lines(pod.run()[1]) == [LATE]


def test_without_a_report_the_broker_keeps_its_rc3(make: Make) -> None:
    pod = make({}, {"command": "true"})
    assert pod.run()[0] == 0
    assert "broker.rc3_path" not in pod.attributes(pod.calls("start")[0])
    assert "config" not in pod.verbs()


def test_a_flux_that_does_not_tell_its_rc3_runs_without_a_report(make: Make) -> None:
    pod = reporting(make, WRITES, log=True)
    pod.play("config", "exit 1")
    found, log = pod.run()
    assert (found, lines(log)) == (0, [LATE])
    assert "minicluster: there will be no report of the jobs: Flux does not tell its rc3" in log.splitlines()


@pytest.mark.parametrize("how", [{"log": True}, {"path": f"{ROOT}/data/jobs.jsonl"}], ids=["log", "file"])
def test_the_log_says_how_many_jobs_the_report_lacks(make: Make, how: dict[str, Any]) -> None:
    pod = reporting(make, f'{WRITES}; echo 700 >"$3/report.purged"', **how)
    found, log = pod.run()
    said = "minicluster: 700 jobs are missing in the report: Flux no longer had their records"
    assert (found, lines(log)[0]) == (0, said)


def test_the_log_has_the_last_jobs_of_a_long_report(make: Make) -> None:
    many = 'number=0; while [ "$number" -lt 10002 ]; do number=$((number + 1)); echo "{\\"id\\": \\"f$number\\"}"; done'
    pod = reporting(make, f'{{ {many}; }} >"$3/report"', log=True)
    found, log = pod.run()
    count, first, *_, last = lines(log)
    assert (found, len(lines(log)), count) == (0, 10001, "minicluster-jobs: 10002")
    assert (first, last) == ('minicluster-job: {"id": "f3"}', 'minicluster-job: {"id": "f10002"}')
