"""Which limits of a queue a job would exceed."""

import sys
from typing import Any

import pytest
from fake_flux import modules
from ingest import beyond_limit

LIMITS = {"duration": "600s", "job-size": {"max": {"nnodes": 2, "ncores": 8, "ngpus": 0}}}
CONFIG = {
    "policy": {"limits": {"duration": "3600s"}},
    "queues": {"short": {"policy": {"limits": LIMITS}}, "all": {}},
}


def jobspec(queue: str, nodes: int, cores: int, duration: float, gpus: int = 0) -> dict[str, Any]:
    slot = [{"type": "core", "count": cores}, *([{"type": "gpu", "count": gpus}] if gpus else [])]
    resources = [{"type": "node", "count": nodes, "with": [{"type": "slot", "count": 1, "with": slot}]}]
    return {"resources": resources, "attributes": {"system": {"queue": queue, "duration": duration}}}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (jobspec("short", 2, 4, 600.0), ""),
        (jobspec("short", 3, 1, 60.0), "nnodes is 3, and the policy limit 2 for queue short"),
        (jobspec("short", 2, 5, 60.0), "ncores is 10, and the policy limit 8 for queue short"),
        (jobspec("short", 1, 1, 60.0, 1), "ngpus is 1, and the policy limit 0 for queue short"),
        (jobspec("short", 1, 1, 601.0), "its time limit exceeds the policy limit of 600s for queue short"),
        (jobspec("all", 9, 9, 3600.0), ""),
        # no limit is longer than any
        (jobspec("all", 1, 1, 0.0), "its time limit exceeds the policy limit of 3600s for queue all"),
        (jobspec("", 1, 1, 3601.0), "its time limit exceeds the policy limit of 3600s"),
    ],
)
def test_a_job_beyond_a_limit_of_its_queue_would_be_refused(
    monkeypatch: pytest.MonkeyPatch, job: dict[str, Any], expected: str
) -> None:
    for name, module in modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    assert beyond_limit(CONFIG, job) == expected
