"""Pods' scripts in plain shells."""

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pods import NAME, SHELLS, Make, Pod


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    """What the image's sh is; the image has bash only where that is it."""
    return str(request.param)


@pytest.fixture
def make(shell: str) -> Iterator[Make]:
    """Makes pods whose processes end with the test."""
    pods: list[Pod] = []
    numbers = itertools.count()

    # a socket's path is short
    with tempfile.TemporaryDirectory(prefix="mc-") as folder:

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
            pods.append(Pod(root, shell, index, cluster))
            return pods[-1]

        yield make
        for pod in pods:
            pod.end()
