"""Slurm's commands on a real Kubernetes: what depends on the cluster's DNS."""

import shlex

import pytest
from pod_jobs import ONE_CORE, QUIET
from real_cluster import IN_PODS, Install

pytestmark = [IN_PODS, pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)]

#: What scripts for PyTorch do: each task meets the first node by its name
SCRIPT = "export MASTER=$(scontrol show hostnames | head -n 1); srun sh -c 'getent hosts \"$MASTER\" || echo none'"


def test_each_task_of_a_job_finds_its_nodes_by_their_names(release: Install) -> None:
    cluster = release({"size": 2, **QUIET, "interactive": True}, ONE_CORE)
    cluster.wait_for("0-1")
    line = f"cd /tmp; sbatch -W -Q -N2 -o out.txt --wrap {shlex.quote(SCRIPT)}; cat out.txt"
    lines = cluster.exec(0, "bash", "-c", f". $MINICLUSTER_HOME/flux-view.sh; {line}").splitlines()
    (address, name), same = (each.split()[:2] for each in lines)
    assert (address, name) == tuple(same) and name.startswith("mini-0.mini."), lines
