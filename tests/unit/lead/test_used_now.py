"""What a job that runs has used until now, by what its nodes say."""

import json
import subprocess
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from fake_flux import FakeFlux, imported, resource_set
from minicluster.lead.program import SENT

#: A job on two nodes, whose R is known
JOB = {"id": 7, "ranks": "1-2", "nodelist": "mc-[1-2]", "annotations": {}}
NODE = dict.fromkeys(("memory_peak", "memory_limit", "cpu_seconds", "cores", "threads", "read", "written"))


LEAD = FakeFlux({}, set())
LEAD.submit(7, R=resource_set({1: (4, 0), 2: (2, 0)}))


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setenv("MINICLUSTER_HOME", "/mc")
    monkeypatch.syspath_prepend(str(SENT))
    yield from imported(monkeypatch, LEAD, "used_now")


def line(told: Any) -> str:
    """Return what a node's guard has written of the job, and of another one."""
    return json.dumps({"time": 1.0, "jobs": {"7": told, "8": {"cpu_seconds": 99.0}}})


@pytest.mark.parametrize(
    ("said", "first", "second"),
    [
        (
            {"1": {"cpu_seconds": 1.5, "memory_peak": 5, "memory_limit": 9}, "2": {"cpu_seconds": 0.5}},
            {"cpu_seconds": 1.5, "memory_peak": 5, "memory_limit": 9, "cores": 4},
            {"cpu_seconds": 0.5, "cores": 2},
        ),
        # one node does not answer, and another one is none of the job's
        ({"2": {"cpu_seconds": 0.5}, "3": {"cpu_seconds": 1}}, {}, {"cpu_seconds": 0.5, "cores": 2}),
    ],
)
def test_the_nodes_of_a_job_say_what_it_has_used(
    program: Any, monkeypatch: pytest.MonkeyPatch, said: Any, first: Any, second: Any
) -> None:
    asked: list[list[str]] = []

    def run(words: list[str], **_: object) -> SimpleNamespace:
        asked.append(words)
        return SimpleNamespace(stdout="".join(f"{rank}: {line(told)}\n" for rank, told in said.items()) + "x\n")

    monkeypatch.setattr(program.subprocess, "run", run)
    used = program.used_now(LEAD, JOB)
    assert used["nodes"] == {"mc-1": {**NODE, **first}, "mc-2": {**NODE, **second}}
    assert asked == [["/mc/bin/flux", "exec", "-q", "--label-io", "-r", "1-2", "cat", "/mc/config/run/usage/now"]]


def test_where_nobody_answers_in_time_nothing_is_known(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(words: list[str], timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired(words, timeout)

    monkeypatch.setattr(program.subprocess, "run", run)
    assert program.used_now(LEAD, JOB) is None
    # a job with many nodes is not asked, nor one without any
    monkeypatch.setattr(program.subprocess, "run", lambda *_, **__: pytest.fail("they are asked"))
    assert program.used_now(LEAD, {**JOB, "ranks": "0-256"}) is None
    assert program.used_now(LEAD, {**JOB, "ranks": ""}) is None
