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
    groups = [{"name": "gpu", "size": 0, "max_size": 3, "policy": {"min": 0, "max": 3, "priority": 0}}]
    path.write_text(json.dumps({"size": 2, "max_size": 8, "policy": POLICY, "groups": groups}))
    return path


@pytest.mark.parametrize(
    ("word", "request_"),
    [
        ("2", {"minicluster.size": 2}),
        ("8", {"minicluster.size": 8}),
        ("auto", {"minicluster.size": 0}),
        ("gpu=3", {"minicluster.sizes.gpu": 3}),
        ("gpu=0", {"minicluster.sizes.gpu": 0}),
        ("gpu=auto", {"minicluster.sizes.gpu": 0}),
    ],
)
def test_minicluster_scale_writes_its_request_where_the_autoscaler_reads_it(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, settings: Path, word: str, request_: dict[str, int]
) -> None:
    run_program(monkeypatch, flux, "scale.py", settings, word)
    assert flux.kvs == request_
    assert state.requested_size(flux, word.rpartition("=")[0]) == next(iter(request_.values()))


def test_minicluster_scale_without_a_size_prints_the_request(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kvs, shown in (
        ({}, "auto\ngpu=auto\n"),
        ({"minicluster.size": 5}, "5\ngpu=auto\n"),
        ({"minicluster.size": 0, "minicluster.sizes.gpu": 2}, "auto\ngpu=2\n"),
    ):
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
        (["gpu=4"], "the size is '4': give a number from 0 to 3, or auto"),
        (["cpu=1"], "there is no group 'cpu': the groups are gpu"),
        (["=3"], "there is no group '': the groups are gpu"),
        (["gpu="], "the size is '': give a number from 0 to 3, or auto"),
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
