"""Whether a job would fit, for the SDK."""

import json
from typing import Any

import pytest
from fake_kube import FakeChannel, FakeKube
from minicluster.sdk import ArgumentError
from minicluster.sdk.jobs import Fit, would_fit
from minicluster.status.why import READY
from status_samples import RUNNING, job, pod

HOME = [{"name": "mini", "env": [{"name": "MINICLUSTER_HOME", "value": "/mnt/flux"}]}]
TOLD = {"refused": "", "waits": "", "needs": {}, "grows": {}, "starts": None, "now": 100.0}


def lead_that_says(answer: dict[str, Any]) -> FakeKube:
    said = FakeChannel(json.dumps({**TOLD, **answer}).encode())
    there = {"job": job(), "pods": [{**pod(0, RUNNING), "spec": {"containers": HOME}}]}
    return FakeKube(has=there, commands=[lambda _: said])


@pytest.mark.parametrize(
    ("options", "answer", "expected", "words"),
    [
        (
            {"nodes": 4, "time_limit": 60, "name": "a $b", "environment": {"A": "b"}},
            {"waits": READY, "starts": {"at": 100.5, "after": ""}},
            Fit("", "", 0.5, {}, "it would run now"),
            ["--nodes=4", "--ntasks=4", "--exclusive", "--time-limit=60s", "--setattr=system.job.name=a $b"],
        ),
        (
            {"tasks": 2, "cores_per_task": 3, "gpus_per_task": 1},
            {"waits": "waits for nodes: why", "needs": {"": 3}},
            Fit("", "waits for nodes: why", None, {"": 3}, "it would wait for nodes: why\nits nodes have yet to come"),
            ["--ntasks=2", "--cores-per-task=3", "--gpus-per-task=1"],
        ),
        ({}, {"refused": "it asks"}, Fit("it asks", "", None, {}, "it can never run: it asks"), []),
    ],
)
def test_options_of_a_job_become_an_answer(options: Any, answer: Any, expected: Fit, words: list[str]) -> None:
    kube = lead_that_says(answer)
    assert would_fit(kube, "mini", options) == expected
    assert sorted(kube.ran[0][1][4:]) == sorted(words)


def test_options_that_make_no_sense_are_refused_before_the_lead_is_asked() -> None:
    with pytest.raises(ArgumentError, match=r"^nodes=0: give a whole number, 1 or more$"):
        would_fit(FakeKube(), "mini", {"nodes": 0})
