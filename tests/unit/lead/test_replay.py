"""Jobs that are replayed on other nodes, and under other policies."""

import json
from typing import Any

import pytest
from minicluster.lead.sent.replay import Job, replay
from minicluster.status.simulated import Load, Outcome, outcomes, records, simulate, table
from support import as_in_schema

#: On two nodes of two cores: half a node, both nodes, then two small ones, of which the first ends in time
LOAD = [
    Job(0, 16, 1, 1, 60, 100),
    Job(1, 16, 2, 2, 30, 50),
    Job(2, 16, 1, 2, 40, 90),
    Job(3, 16, 1, 2, 40, 120),
]


def starts_of(load: list[Job], nodes: int, policy: str) -> list[float | None]:
    return [each and each[0] for each in replay(load, nodes, 2, policy)]


@pytest.mark.parametrize(
    ("nodes", "policy", "starts"),
    [
        (2, "fcfs", [0, 60, 90, 90]),
        (2, "easy", [0, 60, 2, 90]),
        (2, "conservative", [0, 60, 2, 90]),
        (4, "fcfs", [0, 1, 2, 31]),
        # the second asks for more nodes
        (1, "fcfs", [0, None, 60, 100]),
    ],
)
def test_jobs_start_as_their_scheduler_would_start_them(nodes: int, policy: str, starts: list[float | None]) -> None:
    assert starts_of(LOAD, nodes, policy) == starts


def test_one_reservation_lets_more_jobs_pass_than_all_of_them() -> None:
    # the third may go before the second's turn, which has no place of its own under easy
    load = [Job(0, 16, 1, 1, 60, 60), Job(1, 16, 1, 2, 9, 10), Job(2, 16, 1, 2, 9, 10), Job(3, 16, 1, 1, 75, 75)]
    assert starts_of(load, 1, "conservative") == [0, 60, 69, 78]
    assert starts_of(load, 1, "easy") == [0, 60, 69, 78]
    urgent = [job._replace(priority=priority) for job, priority in zip(load, (16, 16, 16, 31), strict=True)]
    assert starts_of(urgent, 1, "fcfs") == [0, 78, 87, 3]


def row(job: Job, start: float) -> dict[str, Any]:
    end = start + job.seconds
    times = {"t_submit": job.submit, "t_run": start, "t_cleanup": end, "t_inactive": None, "duration": job.limit}
    return {**times, "nnodes": job.nodes, "ncores": job.nodes * job.cores, "urgency": 16}


def test_what_happened_stands_beside_what_the_model_makes_of_it() -> None:
    rows = [row(job, start) for job, start in zip(LOAD, (0, 61, 2, 92), strict=True)]
    load = Load("mini", rows, 2, 2, "easy")
    runs = simulate(load, [1], [])
    found = [*outcomes(load, runs)]
    assert found == [
        Outcome("recorded", None, "-", 4, 0, 0, 89, 132, None, None),
        Outcome("simulated", 2, "easy", 4, 0, 0, 87, 130, 340 / 520, 260 / 3600),
        Outcome("simulated", 1, "easy", 3, 1, 58, 97, 140, 220 / 280, 140 / 3600),
    ]
    assert [(each["t_run"], each["t_cleanup"], each["ranks"], each["nodes"]) for each in records(load, runs[0])] == [
        (0, 60, "0", "mini-[0]"),
        (60, 90, "0-1", "mini-[0-1]"),
        (2, 42, "1", "mini-[1]"),
        (90, 130, "0", "mini-[0]"),
    ]
    said: list[str] = []
    assert table(found, said.append).splitlines()[2] == (
        "simulated 4   2      easy     0s            1m27s       2m10s      65%      0.07"
    )
    assert said == ["1 job can't run on 1 node: more is asked for"]
    for each in found:
        as_in_schema("simulate", json.loads(json.dumps(each._asdict())))
