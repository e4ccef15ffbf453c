"""The scheduler is asked once whether equal jobs can ever run."""

import runpy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from minicluster.pod import programs

REFUSED = (22, "unsatisfiable request")


class Flux:
    """Flux's own plugin, and the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.asked = 100.0, []
        self.answer: tuple[int, str | None] | None = (0, None)
        mine = self

        class Validator:
            def __init__(self, parser: Any) -> None:
                self.parser = parser

            def validate(self, args: Any) -> tuple[int, str | None] | None:
                mine.asked.append(args.jobinfo["jobspec"])
                return mine.answer

        names = ["flux", "flux.job", "flux.job.validator", "flux.job.validator.plugins"]
        modules = {name: ModuleType(name) for name in names}
        modules[names[-1]].feasibility = SimpleNamespace(Validator=Validator)  # type: ignore[attr-defined]
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        self.plugin = runpy.run_path(str(programs()["feasible.py"]))["Validator"]("a parser")

    def asks(self, job: dict[str, Any], answer: tuple[int, str | None] | None = (0, None)) -> bool:
        """Validate a job; return whether the scheduler was asked."""
        before, self.answer = len(self.asked), answer
        found = self.plugin.validate(SimpleNamespace(jobinfo={"jobspec": job, "userid": 1000}))
        assert found in (answer, (0, None))
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
