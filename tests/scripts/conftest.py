"""Pods whose scripts run as plain processes of each shell."""

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pods import NAME, Make, Pod
from support import EACH_SHELL


@pytest.fixture(params=EACH_SHELL)
def shell(request: pytest.FixtureRequest) -> str:
    """The image's /bin/sh. The image has bash only when this is bash."""
    return str(request.param)


@pytest.fixture(scope="session")
def shared() -> Iterator[Path]:
    """The files that pods have alike, to which theirs are links."""
    with tempfile.TemporaryDirectory(prefix="mc-") as folder:
        yield Path(folder)


@pytest.fixture
def make(shared: Path, shell: str) -> Iterator[Make]:
    """Makes pods whose processes end with the test."""
    pods: list[Pod] = []
    numbers = itertools.count()

    # short, because the path of a socket has a limit; a process that was killed may write until it is gone
    with tempfile.TemporaryDirectory(prefix="mc-", ignore_cleanup_errors=True) as folder:

        def make(
            values: dict[str, Any] | None = None,
            runner: dict[str, Any] | None = None,
            index: int = 0,
            name: str = NAME,
        ) -> Pod:
            root = Path(folder) / str(next(numbers))
            sidecars = (values or {}).get("containers", [])
            spec = {**(values or {}), "containers": [{"image": "none", **(runner or {})}, *sidecars]}
            cluster = {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}
            pods.append(Pod(root, shared, shell, index, cluster))
            return pods[-1]

        yield make
        for pod in pods:
            pod.end()
