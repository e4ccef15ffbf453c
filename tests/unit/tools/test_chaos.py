"""Which jobs chaos counts as lost, and which as run twice."""

import pytest
from minicluster.sdk import FinishedJob, JobFailed, JobFuture, JobLost

from tools.chaos import client, futures, shells
from tools.chaos.leaks import leaks
from tools.chaos.verdict import Ended, Span, verdict
from tools.clients import Done

DONE = Ended("COMPLETED", ran=True)
KILL = Span(100.0, 105.0)


@pytest.mark.parametrize(
    ("starts", "known", "kills", "faults"),
    [
        pytest.param([50.0], DONE, [], [], id="completed"),
        pytest.param([50.0], Ended("FAILED", ran=True), [], [], id="failed"),
        pytest.param([50.0], Ended("FAILED", ran=False), [], [], id="failed without a run"),
        pytest.param([], Ended("CANCELED", ran=True), [], [], id="cancelled while it ran"),
        pytest.param(
            [], Ended("CANCELED", ran=False), [], ["job: CANCELED without a start"], id="cancelled without a start"
        ),
        pytest.param(
            [],
            None,
            [],
            ["job: Flux does not know it, and it was accepted with no kill of the lead after it"],
            id="lost without a kill",
        ),
        pytest.param(
            [],
            None,
            [KILL],
            ["job: Flux does not know it, and it was accepted 60.0 s before a kill of the lead"],
            id="lost long before a kill",
        ),
        pytest.param([], None, [Span(42.0, 47.0)], [], id="lost just before a kill"),
        pytest.param(
            [50.0, 60.0],
            DONE,
            [],
            ["job: started again, first with no kill of the lead after it"],
            id="ran twice without a kill",
        ),
        pytest.param(
            [50.0, 60.0],
            DONE,
            [KILL],
            ["job: started again, first 50.0 s before a kill of the lead"],
            id="ran twice long before a kill",
        ),
        pytest.param([99.0, 120.0], DONE, [KILL], [], id="ran twice just before a kill"),
        pytest.param([120.0, 99.0], DONE, [KILL], [], id="starts in another order"),
        pytest.param([104.0, 120.0], DONE, [KILL], [], id="ran twice during a kill"),
        pytest.param(
            [106.0, 120.0],
            DONE,
            [KILL],
            ["job: started again, first with no kill of the lead after it"],
            id="ran twice after a kill",
        ),
    ],
)
def test_chaos_reports_jobs_that_were_lost_or_ran_twice(
    starts: list[float], known: Ended | None, kills: list[Span], faults: list[str]
) -> None:
    found = verdict({"job": 40.0}, {"job": starts}, {"job": known} if known else {}, kills)
    assert found[1] == faults


def test_chaos_counts_jobs_by_how_they_ended() -> None:
    jobs = dict.fromkeys("abcd", 40.0) | {"e": 99.0}
    starts = {"a": [50.0], "b": [99.0, 120.0], "c": [50.0, 60.0], "d": [50.0]}
    known = {"a": DONE, "b": DONE, "c": DONE, "d": Ended("FAILED", ran=True), "never accepted": DONE}
    counts, _ = verdict(jobs, starts, known, [KILL])
    assert counts == {
        "jobs": 5,
        "completed": 3,
        "failed": 1,
        "lost, in the window": 1,
        "ran twice": 1,
        "ran twice, in the window": 1,
    }


def test_chaos_reports_pods_whose_files_or_memory_grew() -> None:
    old = {"files": 60, "open files": 90, "memory": 20000, "processes": 5, "volume": 100}
    grown = [old | {"files": 80}, old | {"open files": 111, "memory": 85537}]
    assert list(leaks([old, old], grown, 100)) == [
        "pod 1: open files grew from 90 to 111",
        "pod 1: memory grew from 20000 to 85537",
    ]


def test_the_memory_of_a_pod_may_grow_with_the_jobs() -> None:
    old = {"files": 60, "open files": 90, "memory": 20000, "processes": 5, "volume": 100}
    assert list(leaks([old], [old | {"memory": 148000}], 500)) == []
    assert list(leaks([old], [old | {"memory": 148001}], 500)) == ["pod 0: memory grew from 20000 to 148001"]


def future(result: FinishedJob | None = None, error: Exception | None = None) -> JobFuture:
    made = JobFuture(lambda: None)
    made.accept("f1")
    if error:
        made.set_exception(error)
    elif result:
        made.set_result(result)
    return made


def test_a_future_that_says_something_else_than_its_job_did_is_a_fault() -> None:
    said = [FinishedJob("f1", 0, (("stdout", f"job-{number}\n"),)) for number in range(7)]
    killed = JobFailed(FinishedJob("f1", 1, (), "exec: failed to create guest ns: No such file or directory"))
    seen = {
        "job-0": future(said[0]),
        "job-1": future(said[1]),
        "job-2": future(error=killed),
        "job-3": future(said[3]),
        "job-4": future(),
        "job-5": future(error=JobLost("job f1 is lost")),
        "job-6": future(said[5]),
    }
    starts = {"job-0": [1.0, 2.0], "job-1": [1.0], "job-2": [1.0], "job-3": [1.0, 2.0], "job-6": [1.0]}
    counts, faults = client.verdict({name: futures.told(name, one) for name, one in seen.items()}, starts)
    ran = {"ran twice, marked": 1, "ran twice": 1}
    assert counts == {"jobs": 7, "completed": 4, "may have run": 1, "no end": 1, "lost": 1, **ran}
    assert faults == [
        "job-3 (f1): ran 2 times",
        "job-4 (f1): no end, started 0 times: ",
        "job-5 (f1): lost, started 0 times: JobLost: job f1 is lost",
        "job-6 (f1): completed, started 1 times: 'job-5\\n'",
    ]


def test_a_shell_that_was_told_something_else_than_its_job_did_is_a_fault() -> None:
    def job(name: str, result: str = "COMPLETED", exception: str | None = None) -> dict[str, str | None]:
        return {"id": f"f{name}", "name": name, "result": result, "exception": exception}

    killed = "exec: failed to create guest ns: No such file or directory"
    jobs = {
        "f0": job("job-0"),
        "f1": job("job-1", "CANCELED", "cancel: minicluster: the lead was killed: it runs again as f2"),
        "f2": job("job-1"),
        "f3": job("job-2", "FAILED", killed),
        "f4": job("job-3", "FAILED"),
    }
    said = {
        "job-0": Done(0, "ƒ0\n", ""),
        "job-1": Done(0, "ƒ1\n", ""),
        "job-2": Done(0, "ƒ3\n", ""),
        "job-3": Done(0, "ƒ4\n", ""),
        "job-4": Done(0, "ƒ0\n", ""),
        "job-5": Done(0, "ƒ0\nƒ0\n", ""),
        "job-6": Done(1, "", "no lead\n"),
        "job-7": Done(1, "", "no lead\n"),
        "job-8": Done(0, "ƒ9\n", ""),
    }
    told = {name: shells.told(name, done, jobs) for name, done in said.items()}
    counts, faults = client.verdict(told, {f"job-{number}": [1.0] for number in (0, 1, 3, 7)})
    assert counts == {"jobs": 9, "completed": 2, "may have run": 1, "in doubt": 3, "lost": 1, "refused": 2}
    assert [fault.partition(" ")[0] for fault in faults] == ["job-3", "job-4", "job-5", "job-7", "job-8"]
