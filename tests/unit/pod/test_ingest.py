"""What Flux would make of a job, and which limits of a queue it would exceed."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from fake_flux import install
from ingest import Ingested, beyond_limit, ingested

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
    install(monkeypatch)
    assert beyond_limit(CONFIG, job) == expected


@pytest.mark.parametrize("refusal", ["", "it is too large"])
def test_a_job_is_shown_to_the_plugins_of_this_flux(monkeypatch: pytest.MonkeyPatch, refusal: str) -> None:
    executor = ThreadPoolExecutor(max_workers=1)

    class Jobspec:
        def __init__(self, **jobspec: Any) -> None:
            self.jobspec = jobspec

    class Frobnicator:
        def __init__(self, words: list[str]) -> None:
            assert words == ["--plugins=defaults,own", "--fast"]

        def start(self) -> None:
            """Read the configuration."""

        def frob(self, jobspec: Any, user: int, urgency: int, flags: int) -> None:
            assert (user, urgency, flags) == (os.getuid(), 16, 0)
            jobspec.jobspec["attributes"]["system"]["duration"] = 60.0

    class Validator:
        """As before flux-core 0.69, without a function that stops it."""

        def __init__(self, words: list[str]) -> None:
            assert words == []
            self.executor = executor

        def start(self) -> None:
            """Make the executor."""

        def validate(self, job: dict[str, Any]) -> str:
            assert job["jobspec"]["attributes"]["system"]["duration"] == 60.0
            return f'{{"errnum": {int(bool(refusal))}, "errstr": "{refusal}"}}'

    install(monkeypatch)
    known = {"JobFrobnicator": Frobnicator, "JobValidator": Validator, "FLUX_JOB_URGENCY_DEFAULT": 16}
    for name in ("flux.constants", "flux.job.frobnicator", "flux.job.validator"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**known))
    monkeypatch.setattr(sys.modules["flux.job"], "Jobspec", Jobspec, raising=False)
    config = {"ingest": {"frobnicator": {"plugins": ["defaults", "own"], "args": ["--fast"]}}}
    handle = SimpleNamespace(rpc=lambda _: SimpleNamespace(get=lambda: config))
    job = jobspec("", 1, 1, 0.0)
    with_limit = jobspec("", 1, 1, 60.0)
    assert ingested(handle, job) == Ingested(with_limit, refusal)
    # no thread is left
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(print)
