"""Rounds of short tasks by the SDK on a real Kubernetes, as values-examples/evaluations.py runs them."""

import itertools
import random
import subprocess
import sys

import pytest
from pod_jobs import QUIET
from real_cluster import IN_PODS, Install, example
from support import ROOT

from tools.releases import STEP_SECONDS
from tools.testbed import NAME

pytestmark = [IN_PODS, pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)]
LOOP = ROOT / "values-examples/evaluations.py"


def test_rounds_of_tasks_are_scored_in_parallel_and_failed_tasks_end_none(release: Install) -> None:
    values, runner = example("evaluations")
    cluster = release({**values, **QUIET}, runner)
    cluster.wait_for("0-1")
    words = [sys.executable, str(LOOP), NAME, cluster.namespace]
    done = subprocess.run(
        words, env=cluster.cluster.env, capture_output=True, text=True, timeout=STEP_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    chance = random.Random(1)
    first = [chance.gauss(1, 3) for _ in range(32)]
    scored = [x for x in first if x >= 0]
    assert 0 < len(scored) < 32
    lines = done.stdout.splitlines()
    best = max(scored, key=lambda x: -((x - 3) ** 2))
    assert lines[0] == f"round 1: {len(scored)} of 32 tasks have a score, the best value is {best:.3f}"
    assert len(lines) == 5
    assert lines[-1] in [f"round 5: 32 of 32 tasks have a score, the best value is {x}" for x in ("3.000", "2.999")]
    failed = [line for line in done.stderr.splitlines() if "has no score" in line]
    assert len(failed) == cluster.flux(0, "jobs", "-a", "-n", "-c0", "-f", "failed", "-o", "{id}").count("\n")
    assert f"{min(first):.3f} has no score: job " in done.stderr
    rows = cluster.flux(0, "jobs", "-a", "-n", "-c0", "-o", "{ranks} {t_run} {t_cleanup}").splitlines()
    assert len(rows) == 5 * 32
    assert {row.split()[0] for row in rows} == {"0", "1"}
    ran = sorted((float(begin), float(end)) for _rank, begin, end in (row.split() for row in rows))
    assert any(after[0] < before[1] for before, after in itertools.pairwise(ran)), "one after the other"
