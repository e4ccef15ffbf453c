"""The flow of Prefect in values-examples, as it is, on a real Kubernetes."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from real_cluster import IN_PODS, Install
from support import ROOT

from tools.testbed import NAME, kubernetes

pytestmark = IN_PODS
#: What Prefect's own server needs to start on a busy machine
SERVER_SECONDS = 150


@pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)
def test_the_tasks_of_a_flow_are_jobs_that_prefect_retries(release: Install, tmp_path: Path) -> None:
    for package in ("prefect", "cloudpickle"):
        pytest.importorskip(package)
    cluster = release({"size": 2, "interactive": True, "logging": {"quiet": True}}, {"cores": 2})
    environment = {
        **kubernetes().env,
        "MINICLUSTER_NAMESPACE": cluster.namespace,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PREFECT_HOME": str(tmp_path),
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": f"{SERVER_SECONDS}",
    }

    def run(*points: str) -> "subprocess.CompletedProcess[str]":
        words = [sys.executable, str(ROOT / "values-examples/prefect_flow.py"), NAME, *points]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=400, check=False)
        print(done.stdout, done.stderr)
        return done

    done = run("1000", "2000", "3000")
    guesses = re.findall(r"^mean: (3\.\d+)$", done.stdout, re.MULTILINE)
    assert (done.returncode, len(guesses), abs(float(guesses[0]) - 3.14) < 0.1) == (0, 1, True)
    failing = run("0")
    assert failing.returncode == 1
    assert "ValueError: points=0: give at least one" in failing.stderr
    text = cluster.flux(0, "jobs", "-a", "-n", "-o", "{name} {status_abbrev}")
    expected: list[Any] = ["pi-0 F", "pi-0 F", "pi-1000 CD", "pi-2000 CD", "pi-3000 CD"]
    assert sorted(text.splitlines()) == expected
