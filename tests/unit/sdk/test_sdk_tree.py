"""The executor that spreads jobs over instances of Flux."""

from typing import Any

import pytest
from fake_kube import FakeKube
from minicluster.sdk import ArgumentError, EndedError, FinishedJob, JobFuture, executor
from minicluster.sdk.executor import executor_of
from minicluster.sdk.job_queue import JobQueue


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, JobFuture]]:
    """The jobs that were submitted, each with the number of its queue."""
    jobs: list[tuple[int, JobFuture]] = []
    queues: list[JobQueue] = []

    def submit(queue: JobQueue, *_: object) -> JobFuture:
        if queue not in queues:
            queues.append(queue)
        jobs.append((queues.index(queue), JobFuture(lambda: None)))
        return jobs[-1][1]

    monkeypatch.setattr(JobQueue, "submit", submit)
    monkeypatch.setattr(executor, "TOGETHER_SECONDS", 0.1)
    return jobs


def test_jobs_go_where_the_fewest_are_and_not_to_an_instance_that_waits(
    submitted: list[tuple[int, JobFuture]],
) -> None:
    cancelled: list[int] = []
    held: list[JobFuture] = []
    asked: list[Any] = []

    def hold(words: Any, **options: Any) -> JobFuture:
        asked.append((words[:2], options["nodes"]))
        held.append(JobFuture(lambda: cancelled.append(1)))
        return held[-1]

    made = executor_of(hold, (3, 2), {}, (FakeKube(), "mini"))
    assert asked == [(("flux", "broker"), 2)] * 3
    for job in held[:2]:
        job.start()
    for _ in range(4):
        made.submit("true")
    assert [number for number, _ in submitted] == [0, 1, 0, 1]
    submitted[1][1].end(FinishedJob("f1", 0))
    made.submit("true")
    assert submitted[-1][0] == 1
    for _, job in submitted:
        job.end(FinishedJob("f1", 0))
    made.shutdown()
    # they had no address yet
    assert len(cancelled) == 3
    with pytest.raises(EndedError, match="no instance of this executor runs any more"):
        made._choose(["true"])


@pytest.mark.parametrize("tree", [-1, (2, 0)])
def test_a_tree_without_nodes_is_refused(tree: Any) -> None:
    with pytest.raises(ArgumentError, match="give a number of instances"):
        executor_of(lambda *_: JobFuture(lambda: None), tree, {}, (FakeKube(), "mini"))
