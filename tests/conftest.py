"""Options and fixtures of all tiers."""

import fcntl
import gc
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import forks
import pytest
import warm
from hypothesis import HealthCheck, settings
from minicluster.console import streams
from minicluster.pod import programs
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel
from support import ROOT, Helm, tool

pytest_plugins = ["costs", "one_cluster", "turns", "workers"]

# the programs of the pods import each other by their file names
sys.path[:0] = sorted({str(file.parent) for file in programs().values()})

# The same few examples each time: an old fault must not fail the tests of an unrelated change.
# `--hypothesis-profile explore` looks for new ones.
settings.register_profile("default", max_examples=25, derandomize=True, database=None, deadline=None, print_blob=True)
settings.register_profile(
    "explore",
    max_examples=2000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")

# Helm, kubectl and the control planes are written in Go: they spend an eighth of their time on collecting garbage, and
# those of a control plane a sixth on handing work from one processor to another
os.environ.setdefault("GOGC", "400")
os.environ.setdefault("GOMAXPROCS", "1")
# and a third of what a Helm or a kubectl needs to start goes into the texts of their language, of which French has few;
# nothing else has a French with this encoding
os.environ["LC_MESSAGES"] = "fr_FR.none"

# `minicluster` starts thousands of times: without files of bytecode each start compiles the whole package
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# what a contributor has set for commands is not for tests
os.environ["XDG_CONFIG_HOME"] = str(ROOT / "build" / "config")

# a user's output goes through a buffer
os.environ.pop("PYTHONUNBUFFERED", None)

# a shell's &, nohup and some CI runners make us, and so all that a test starts, ignore Ctrl-C or a hang-up
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files instead of comparing")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Let Python look at the ten thousand tests for garbage neither now nor later: they stay.

    Later it looks at young objects alone: a look at all costs more than what it frees is worth.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 10, 1000)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that `make test` would skip because a tool is missing: it has built them all."""
    report = yield
    if report.skipped and "make tools" in str(report.longrepr) and "MINICLUSTER_TEST_TOOLS" in os.environ:
        report.outcome = "failed"
    return report


@pytest.fixture(autouse=True)
def _about_nothing() -> None:
    """Forget the namespace and the context of a command that another test ran in this process."""
    streams.about(namespace="", context="")


@pytest.fixture(scope="session", autouse=True)
def _forks() -> Iterator[None]:
    """End the process that forks."""
    yield
    forks.end()


def _helm(name: str, factory: pytest.TempPathFactory) -> Helm:
    """Return a Helm whose `minicluster` is warm; test_packages.py has the start as users have it."""
    if not tool(name):
        pytest.skip(f"{name} is missing: run `make tools`")
    cold = Helm(name, factory.mktemp(name))
    path = os.pathsep.join([str(warm.ours()), cold.environment["PATH"]])
    return cold.with_env(PATH=path, **warm.NO_GARBAGE)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with both Helms, or with Helm 4 alone where `any_helm` says that they make no difference."""
    if "helm" in metafunc.fixturenames:
        both = ["helm", "helm3"]
        names = both[:1] if metafunc.definition.get_closest_marker("any_helm") else both
        metafunc.parametrize("helm", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Each Helm that the test runs with."""
    return _helm(request.param, tmp_path_factory)


@pytest.fixture(scope="session")
def helm4(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm 4, for tests that need only one Helm."""
    return _helm("helm", tmp_path_factory)


@pytest.fixture(scope="session")
def helm3(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm 3, for tests of what differs there."""
    return _helm("helm3", tmp_path_factory)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def cluster_of() -> Callable[..., MiniClusterModel]:
    """Return a function that makes a cluster from a spec, as the post-renderer does from a document."""

    def make(spec: Any = None, /, name: str = "flux-sample", namespace: str = "ns", **fields: Any) -> MiniClusterModel:
        return load({"metadata": {"name": name, "namespace": namespace}, "spec": spec or {}, **fields})

    return make


@pytest.fixture(scope="session")
def seed_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a file with the seed of reproducible certificates."""
    from support import SEED  # noqa: PLC0415

    path = tmp_path_factory.mktemp("seed") / "seed"
    path.write_bytes(SEED)
    return path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build everything that is released, without signatures: once for all workers, because it takes ten seconds."""
    from newcomer import build, need_wheels  # noqa: PLC0415

    if not tool("helm"):
        pytest.skip("helm is missing: run `make tools`")
    need_wheels()
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    dist = shared / "release" / "dist"
    with (shared / "release.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not dist.exists():
            dist.parent.mkdir(exist_ok=True)
            build(own / "dist").rename(dist)
    return dist
