"""minicluster-scale: which requests it writes for the autoscaler, and which it refuses."""

import json
from pathlib import Path

import pytest
import state
from fake_flux import FakeFlux, run_program

POLICY = {"min": 2, "max": 8}


@pytest.fixture
def flux() -> FakeFlux:
    return FakeFlux({0: (1, 0)}, {0})


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "agent.json"
    path.write_text(json.dumps({"policy": POLICY}))
    return path


@pytest.mark.parametrize(("word", "value"), [("2", 2), ("8", 8), ("auto", 0)])
def test_minicluster_scale_writes_its_request_where_the_autoscaler_reads_it(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, settings: Path, word: str, value: int
) -> None:
    run_program(monkeypatch, flux, "scale.py", settings, word)
    assert flux.kvs == {state.REQUESTED_SIZE: value}


def test_minicluster_scale_without_a_size_prints_the_request(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kvs, shown in (({}, "auto\n"), ({state.REQUESTED_SIZE: 5}, "5\n"), ({state.REQUESTED_SIZE: 0}, "auto\n")):
        flux.kvs = dict(kvs)
        run_program(monkeypatch, flux, "scale.py", settings)
        assert (capsys.readouterr().out, flux.kvs) == (shown, kvs)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["1"], "the size is '1': give a number from 2 to 8, or auto"),
        (["9"], "the size is '9': give a number from 2 to 8, or auto"),
        (["-4"], "the size is '-4': give a number from 2 to 8, or auto"),
        (["4.0"], "the size is '4.0': give a number from 2 to 8, or auto"),
        ([""], "the size is '': give a number from 2 to 8, or auto"),
        (["many"], "the size is 'many': give a number from 2 to 8, or auto"),
        (["4", "5"], "2 sizes given: give one, or auto"),
    ],
)
def test_minicluster_scale_refuses_an_invalid_size(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, settings: Path, words: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as end:
        run_program(monkeypatch, flux, "scale.py", settings, *words)
    assert (end.value.code, flux.kvs) == (f"minicluster-scale: {message}", {})


def test_minicluster_scale_without_an_autoscaler_is_an_error(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, settings: Path
) -> None:
    settings.write_text('{"policy": null}')
    with pytest.raises(SystemExit) as end:
        run_program(monkeypatch, flux, "scale.py", settings, "4")
    assert end.value.code == (
        "minicluster-scale: the cluster has no autoscaler: set autoscaling.enabled at its install"
    )
