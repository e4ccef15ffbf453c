"""The agent under test."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import metrics
import pytest
from fake_agent import FakeKube, Setup
from fake_flux import FakeFlux, imported
from log import Problems


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    monkeypatch.setenv("MINICLUSTER_HOME", str(tmp_path))
    yield from imported(monkeypatch, None, "agent", "changes")


@pytest.fixture
def mc(program: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Setup:
    flux = FakeFlux(dict.fromkeys(range(8), (1, 0)), set(range(8)))
    kube, shown, where = FakeKube(flux), [], []
    monkeypatch.setattr(program, "server", lambda: "https://api")
    monkeypatch.setattr(program, "Kube", lambda *args: where.append(args) or kube)
    monkeypatch.setattr(metrics.MetricsServer, "serve", lambda _, port, text: shown.append((port, text)))
    agent = program.Agent(flux, tmp_path / "agent.json", Problems(tmp_path / "agent.problem"))
    setup = Setup(flux, kube, agent, tmp_path / "agent.json", shown, where)
    setup.settings()
    return setup
