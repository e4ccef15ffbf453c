"""How a worker whose check failed tells its lead why it stays out."""

import pytest
from fake_flux import FakeFlux, run_program

REASON = "its check failed: no GPU"


def tell(monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, reason: str = REASON) -> None:
    """Run the program, which ends the broker."""
    monkeypatch.setenv("MINICLUSTER_UNFIT", reason)
    with pytest.raises(SystemExit) as end:
        run_program(monkeypatch, flux, "unfit.py")
    assert end.value.code == 1


def test_the_rank_is_drained_for_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    flux = FakeFlux({}, {0}, rank=3, drained={2: "bad DIMM"})
    tell(monkeypatch, flux)
    assert flux.drained == {2: "bad DIMM", 3: REASON}


@pytest.mark.parametrize("before", ["its check failed: no disk", "minicluster: the pod was told to stop"])
def test_a_new_reason_takes_the_place_of_an_earlier_one_of_ours(monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    flux = FakeFlux({}, {0}, rank=3, drained={3: before})
    tell(monkeypatch, flux)
    assert flux.drained == {3: REASON}


@pytest.mark.parametrize("before", ["bad DIMM", "", REASON])
def test_the_drain_of_a_person_stays_and_nothing_is_told_twice(monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    flux = FakeFlux({}, {0}, rank=3, drained={3: before})
    tell(monkeypatch, flux)
    assert (flux.drained, flux.done) == ({3: before}, [])


def test_bytes_that_are_no_text_are_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    flux = FakeFlux({}, {0}, rank=3)
    tell(monkeypatch, flux, "its check failed: \udcff\udcfe")
    assert flux.drained == {3: "its check failed: ��"}
