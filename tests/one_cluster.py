"""What several workers share: the simulated cluster and the warm `minicluster` of pytest's main process.

Three clusters, which wait most of the time, would cost as much as thirty tests.
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

import costs
import pytest
import warm
from support import BIN

from tools import tenant
from tools.clients import ClusterError, until
from tools.embedded import EmbeddedCluster

FOLDER, WORK = "one-cluster", "work"
#: Of the folder: why there is no cluster; nothing, if there is one
OUTCOME = "outcome"
RUNNER = pytest.StashKey["Runner"]()


class Runner:
    """The thread that runs the cluster, to its end: the kernel ends programs with the thread that started them."""

    def __init__(self, folder: Path) -> None:
        """Start the cluster, and don't wait for it."""
        self.folder, self.ended = folder, Event()
        self.seconds = Counter[str]()  #: that each program used
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            with EmbeddedCluster(BIN, self.folder / WORK) as cluster:
                tenant.govern(cluster)
                self._tell("")
                self.ended.wait()
                running = costs.running()
                self.seconds.update({name: running[pid].seconds for name, pid in cluster.pids().items()})
        except (ClusterError, OSError) as error:
            self._tell(str(error))

    def _tell(self, outcome: str) -> None:
        new = self.folder / "new"
        new.write_text(outcome)
        new.rename(self.folder / OUTCOME)

    def end(self) -> None:
        """End the cluster."""
        self.ended.set()
        self.thread.join()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Start a warm `minicluster`, whose folder the workers have in their environment."""
    warm.share()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    """Start the cluster, once, if a test may need it."""
    stash = node.config.stash
    if RUNNER not in stash and is_shared() and any(one.startswith("tests/cluster/") for one in ids):
        folder = node.config._tmp_path_factory.getbasetemp() / FOLDER
        folder.mkdir()
        stash[RUNNER] = Runner(folder)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the cluster, and note what it and the warm `minicluster` used."""
    stash = session.config.stash
    if runner := stash.get(RUNNER, None):
        runner.end()
        stash[costs.OF_MAIN].update(runner.seconds)
    if warm.SHARED in os.environ:
        name = Path(warm.__file__).name
        stash[costs.OF_MAIN][name] += sum(one.seconds for one in costs.running().values() if one.name == name)


def is_shared() -> bool:
    """Tell whether workers share a cluster; the tests of `make kubernetes` need an API server of their own alone."""
    return "MINICLUSTER_TEST_KUBERNETES" not in os.environ


def joined(folder: Path) -> Path:
    """Return the folder of the cluster, in a worker, from that of all workers. Raises ClusterError."""
    outcome = folder / FOLDER / OUTCOME
    until(outcome.exists, 180, "the cluster of all workers")
    if why := outcome.read_text():
        raise ClusterError(why)
    return folder / FOLDER / WORK
