"""How settle.py ends the jobs of a MiniCluster that is replaced. How it holds the queue is tested with real Flux."""

import importlib
import sys
from types import ModuleType

import pytest
from fake_flux import FakeFlux, install
from minicluster.lead.program import SENT


@pytest.fixture
def flux() -> FakeFlux:
    return FakeFlux(dict.fromkeys(range(4), (1, 0)), set(range(4)))


@pytest.fixture
def settle(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    install(monkeypatch, flux)
    for name in ("settle", "requeue", "put_back"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(SENT))
    return importlib.import_module("settle")


def test_a_job_that_is_seen_late_is_put_back_like_the_others(
    flux: FakeFlux, settle: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It got its nodes just before the queue stopped."""

    def add(number: int, requeue: int, state: str = "run") -> None:
        own = {"user": {"minicluster": {"requeue": requeue}}, "system": {}}
        spec = {"resources": [], "tasks": [], "attributes": own}
        flux.submit(number, state=state, ranks=str(number - 1), urgency=16, jobspec=spec)

    late = [lambda: add(2, 1), lambda: add(3, 0)]
    monkeypatch.setattr(settle, "stop_queues", lambda _: late.pop(0)() if late else None)
    add(1, 1)
    # this one ends without our help
    add(4, 1, "cleanup")
    assert settle.end_jobs(flux, {}) == {"copies": {"f1": "f1000", "f2": "f1001"}, "lost": ["f3"]}
    assert [each[1] for each in flux.done if each[0] == "cancel"] == [1, 2, 3]
