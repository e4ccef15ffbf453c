"""recorded.py: a job that lost its node has a copy, or gets none, once the lead has looked for lost jobs."""

import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from fake_flux import FakeFlux, install
from minicluster.lead.program import SENT

#: When this lead has begun
BEGIN = 1000.0
JOB = SimpleNamespace(job=3)


class Lead:
    """A lead whose programs look for lost jobs, and a client's program beside it that asks each second."""

    def __init__(self, recorded: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.flux, self.now, self.copies, self.questions = FakeFlux({}, set(), starttime=BEGIN), 0.0, {}, 0
        monkeypatch.setattr(recorded.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(recorded, "copies_after", lambda *_: self.copies)
        monkeypatch.setattr(sys.modules["flux.kvs"], "get", self._get)
        self.lost = recorded.Lost(self.flux)

    def _get(self, _: object, key: str) -> Any:
        self.questions += 1
        if key not in self.flux.kvs:
            raise FileNotFoundError(key)
        return self.flux.kvs[key]

    def ends(self, happens: dict[int, Callable[["Lead"], None]]) -> tuple[float, int | None]:
        """Return when it is known what becomes of a job, and its copy; some things happen at some seconds."""
        self.lost.add(JOB)
        while True:
            happens.get(int(self.now), lambda _: None)(self)
            for job, copy in self.lost.look():
                assert job is JOB
                return self.now, copy
            self.now += 1


def begins(lead: Lead) -> None:
    lead.flux.kvs["minicluster.losses"] = BEGIN


def began_before(lead: Lead) -> None:
    lead.flux.kvs["minicluster.losses"] = BEGIN - 1


def is_older(_: Lead) -> None:
    del sys.modules["losses"].BEGUN_KEY


def copies(lead: Lead) -> None:
    lead.copies = {"f3": 4}


@pytest.fixture
def lead(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lead]:
    install(monkeypatch, FakeFlux({}, set()))
    monkeypatch.syspath_prepend(str(SENT))
    monkeypatch.setitem(sys.modules, "losses", SimpleNamespace(BEGUN_KEY="minicluster.losses"))
    monkeypatch.setitem(sys.modules, "described", SimpleNamespace(KEY_ATTRIBUTE="key"))
    import recorded  # noqa: PLC0415

    yield Lead(recorded, monkeypatch)
    del sys.modules["recorded"]


@pytest.mark.parametrize(
    ("happens", "end"),
    [
        pytest.param({0: begins, 4: copies}, (4.0, 4), id="a copy"),
        pytest.param({30: copies}, (30.0, 4), id="a copy before it says that it has looked"),
        pytest.param({0: begins}, (10.0, None), id="none"),
        # the copy may come for as long again, after the last second in which it had not looked
        pytest.param({30: begins}, (39.0, None), id="none, and it looks late"),
        pytest.param({0: began_before}, (130.0, None), id="the lead before it has looked"),
        pytest.param({}, (130.0, None), id="it never looks"),
        pytest.param({0: is_older}, (10.0, None), id="its version does not tell"),
    ],
)
def test_a_lost_job_is_told_when_the_lead_has_put_back_what_it_will(
    lead: Lead, happens: dict[int, Callable[[Lead], None]], end: tuple[float, int | None]
) -> None:
    assert lead.ends(happens) == end


def test_a_lead_that_has_looked_is_not_asked_again(lead: Lead) -> None:
    assert lead.ends({3: begins}) == (12.0, None)
    assert lead.questions == 4
    assert lead.ends({}) == (22.0, None)
    assert lead.questions == 4
