"""The scheduler is asked once whether equal jobs can ever run."""

import runpy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from fake_flux import FakeFlux
from fake_flux import modules as fake_modules
from minicluster.pod import programs

REFUSED = (22, "unsatisfiable request")
REFUSED_IN_FULL = (22, "unsatisfiable request: it asks for 3 nodes of 1 core, and all nodes have room for 2")


class Flux:
    """Flux's own plugin, and the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.asked = 100.0, []
        self.answer: tuple[int, str | None] | None = (0, None)
        mine = self
        self.handle = FakeFlux({0: (4, 0), 1: (4, 2)}, {0})

        class Validator:
            def __init__(self, parser: Any) -> None:
                self.parser = parser

            flux = self.handle

            def validate(self, args: Any) -> tuple[int, str | None] | None:
                mine.asked.append(args.jobinfo["jobspec"])
                return mine.answer

        names = ["flux", "flux.job", "flux.job.validator", "flux.job.validator.plugins"]
        modules = fake_modules(self.handle) | {name: ModuleType(name) for name in names}
        modules[names[-1]].feasibility = SimpleNamespace(Validator=Validator)  # type: ignore[attr-defined]
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        self.plugin = runpy.run_path(str(programs()["feasible.py"]))["Validator"]("a parser")

    def asks(self, job: dict[str, Any], answer: tuple[int, str | None] | None = (0, None)) -> bool:
        """Validate a job; return whether the scheduler was asked."""
        before, self.answer = len(self.asked), answer
        found = self.plugin.validate(SimpleNamespace(jobinfo={"jobspec": job, "userid": 1000}))
        assert found in (answer, (0, None), REFUSED_IN_FULL)
        return len(self.asked) > before


def job(nodes: int = 1, **system: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "resources": [{"type": "node", "count": nodes}],
        "tasks": [{"command": ["true"]}],
        "attributes": {"system": {"duration": 0, "cwd": "/", "environment": {}, **system}, "user": {"key": nodes}},
    }


@pytest.fixture
def flux(monkeypatch: pytest.MonkeyPatch) -> Flux:
    return Flux(monkeypatch)


@pytest.mark.parametrize("answer", [(0, None), None], ids=str)
def test_equal_requests_are_asked_once(flux: Flux, answer: tuple[int, str | None] | None) -> None:
    assert flux.plugin.parser == "a parser"
    assert flux.asks(job(), answer)
    same = job(cwd="/data", environment={"A": "b"}, shell={"options": {}}, job={"name": "x"}, dependencies=[{}])
    assert not flux.asks({**same, "tasks": [{"command": ["sleep", "1"]}]}, REFUSED)


@pytest.mark.parametrize(
    "other",
    [
        job(2),
        job(duration=60),
        job(constraints={"properties": ["gpu"]}),
        job(queue="debug"),
        job(new="a later Flux may read it"),
    ],
    ids=str,
)
def test_other_requests_are_asked(flux: Flux, other: dict[str, Any]) -> None:
    assert flux.asks(job())
    assert flux.asks(other)


def test_refused_requests_are_asked_each_time(flux: Flux) -> None:
    for answer in (REFUSED, REFUSED, (0, None)):
        assert flux.asks(job(), answer)
    assert not flux.asks(job(), REFUSED)


def test_answers_count_for_ten_seconds(flux: Flux) -> None:
    assert flux.asks(job())
    flux.now += 9.9
    assert not flux.asks(job(), REFUSED)
    flux.now += 0.1
    assert flux.asks(job(), REFUSED)


def core(nodes: int, **system: Any) -> dict[str, Any]:
    """Return a job that asks for a core on each of some nodes."""
    slot = {"type": "slot", "count": 1, "label": "task", "with": [{"type": "core", "count": 1}]}
    return {**job(nodes, **system), "resources": [{"type": "node", "count": nodes, "with": [slot]}]}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (core(3), REFUSED_IN_FULL),
        # what the scheduler refuses for another reason
        (core(2), REFUSED),
    ],
    ids=["too many", "another reason"],
)
def test_a_refusal_says_what_the_job_asks_for_and_what_there_is(flux: Flux, asked: Any, expected: Any) -> None:
    flux.answer = REFUSED
    assert flux.plugin.validate(SimpleNamespace(jobinfo={"jobspec": asked})) == expected


def test_a_refusal_counts_whatever_can_not_be_explained(flux: Flux) -> None:
    flux.answer, flux.handle.errors = REFUSED, {"resource.status": OSError(5, "no")}
    assert flux.plugin.validate(SimpleNamespace(jobinfo={"jobspec": core(3)})) == REFUSED
