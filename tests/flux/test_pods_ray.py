"""Ray on Flux in one line, on a real Kubernetes, in an image that has it; on CPUs."""

import re
import shlex

import pytest
from real_cluster import Install, need_image
from support import ROOT

from tools.testbed import NAME

IMAGE, MARKS = need_image("MINICLUSTER_TEST_RAY_IMAGE", "Ray")
pytestmark = [*MARKS, pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)]
WORK = """
import os, sys, time, ray
ray.init()
@ray.remote(scheduling_strategy="SPREAD")
def square(x):
    time.sleep(0.2)
    return os.uname().nodename, x * x
found = ray.get([square.remote(x) for x in range(20)])
print("sum", sum(x for _, x in found), sorted({host for host, _ in found}))
sys.exit(3)
"""


def test_the_line_of_the_page_runs_ray_on_all_nodes(release: Install) -> None:
    """Its exit code is that of the program, not that of Ray on the other nodes."""
    page = (ROOT / "docs/how-to/run-workflow-tools.md").read_text()
    line = re.search(r"minicluster flux demo -- (run .*?)\n```", page, re.DOTALL)
    assert line
    words = shlex.split(line[1].replace("\\\n", " ").replace(".demo:", f".{NAME}:").replace("work.py", "/tmp/work.py"))
    cluster = release({"size": 2, "interactive": True, "logging": {"quiet": True}}, {"image": IMAGE, "cores": 2})
    cluster.wait_for("0-1")
    put = ("exec", cluster.pod(0), "-i", "--", "sh", "-c", f"printf %s {shlex.quote(WORK)} >/tmp/work.py")
    cluster.kubectl(*put)
    run = ["minicluster", "flux", NAME, "-n", cluster.namespace, "--", *words]
    done = cluster.cluster.run(*run)
    assert (done.code, "sum 2470 ['mini-0', 'mini-1']" in done.out) == (3, True), done.out + done.err
