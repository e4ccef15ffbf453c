"""Workflow tools as launchers on a real Kubernetes: the examples as they are, in an image that has the tools."""

import re
from pathlib import Path
from typing import Any

import pytest
from real_cluster import Install, Need, example, need_image

from tools.clients import until
from tools.releases import STEP_SECONDS
from tools.testbed import bind

IMAGE, pytestmark = need_image("MINICLUSTER_TEST_WORKFLOW_IMAGE", "workflow tools")


def path(tool: str) -> str:
    """Return a PATH with the tool's own virtual environment first."""
    return f"/opt/{tool}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


PROBES = {
    "snakemake": "python -c 'import snakemake_executor_plugin_flux'",
    "parsl": "python -c 'import parsl'",
    "maestro": "python -c 'import maestrowf'",
    "dask": "python -c 'import distributed'",
    "nextflow": "command -v nextflow",
}
#: The shell commands that succeed where a tool is in the image.
LOOKS = {tool: f"PATH={path(tool)}; {probe}" for tool, probe in PROBES.items()}
#: The numbers in the greetings of the example.
GREETED = {
    "snakemake": range(4),
    "parsl": range(8),
    "maestro": range(1, 5),
    "dask": range(8),
    "nextflow": range(1, 5),
}
#: The jobs of the example: result, number of nodes.
JOBS = {
    "snakemake": ["CD 1"] * 4,
    "parsl": ["CD 1"] * 8,
    "maestro": ["CD 1"] * 4 + ["CD 2"],
    "dask": ["CD 2"],
    "nextflow": ["CD 1"] * 4,
}
#: The ranks that the jobs run on.
RANKS = {tool: {"0", "1"} for tool in LOOKS} | {"maestro": {"0", "1", "[0-1]"}, "dask": {"[0-1]"}}
#: A tool sees that a job has finished before Flux has cleaned up after it: first wait for no active job, then list.
LIST = """
for _ in $(seq 300); do
  [ -n "$(flux jobs -n -o '{id}')" ] || break
  sleep 0.1
done
flux jobs -a -n --count=0 -o 'job {status_abbrev} {nnodes} {ranks}'
"""


def workflow(tool: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return values and runner of a tool's example, in the tests' image; at its end, the command lists its jobs."""
    values, runner = example(f"launcher-{tool}")
    # one core a node, so that jobs of one core are on both nodes
    runner |= {"image": IMAGE, "cores": 1, "environment": {**runner.get("environment", {}), "PATH": path(tool)}}
    runner["command"] = f"at_end() {{ code=$?; {LIST} exit $code; }}\ntrap at_end EXIT\n{runner['command']}"
    return values, runner


@pytest.mark.parametrize("tool", LOOKS)
def test_the_jobs_of_a_workflow_tool_run_on_all_nodes(
    release: Install, volume: str, tmp_path: Path, need: Need, tool: str
) -> None:
    need(tool)
    values, runner = workflow(tool)
    cluster = release(values, runner)
    if "volumes" in runner:
        bind(cluster, "data", volume, tmp_path / "data")
    conditions = cluster.wait_for_end()
    log = cluster.log(0)
    assert "Complete" in conditions, log
    greetings = re.findall(r"^hello (\d+) from mini-(\d)$", log, re.MULTILINE)
    assert sorted(int(number) for number, _index in greetings) == list(GREETED[tool])
    assert {index for _number, index in greetings} == {"0", "1"}
    jobs = re.findall(r"^job (\S+ \d) (\S+)$", log, re.MULTILINE)
    assert sorted(job for job, _ranks in jobs) == JOBS[tool]
    assert {ranks for _job, ranks in jobs} == RANKS[tool]


#: A text of the log once there are jobs.
STARTED = {"snakemake": "rule hello", "nextflow": "Submitted process"}


@pytest.mark.parametrize("tool", STARTED)
def test_a_workflow_tool_completes_its_work_after_its_lead_is_killed(
    release: Install, volume: str, tmp_path: Path, need: Need, tool: str
) -> None:
    need(tool)
    cluster = release(*workflow(tool))
    bind(cluster, "data", volume, tmp_path / "data")
    until(lambda: cluster.pod(0) and STARTED[tool] in cluster.log(0), STEP_SECONDS)
    cluster.kubectl("delete", "pod", cluster.pod(0), "--grace-period=0", "--force")
    conditions = cluster.wait_for_end()
    log = cluster.log(0)
    assert "Complete" in conditions, log
    assert sorted(re.findall(r"^hello (\d+) from mini-\d$", log, re.MULTILINE)) == [str(n) for n in GREETED[tool]]
    assert cluster.created(0) == 2
