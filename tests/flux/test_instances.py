"""The program that runs a command in an instance of its own, a job of the cluster: `minicluster run --in`."""

import json
import subprocess
from typing import Any

from broker_clusters import Cluster, Make
from minicluster.lead.program import BOOT, first_line, program_text

from tools.releases import MOUNT

TWO = {"size": 2, "logging": {"quiet": True}}
#: What the instance of a job is
LOOKS = "cat; pwd; echo $OWN; "
LOOKS += "flux resource list -s all -no '{nnodes}'; flux getattr size; flux getattr parent-uri >&2; exit 7"


def own(errors: str) -> str:
    """Return errors without the log of an older broker, such as that its hosts have other names here."""
    return "".join(line for line in errors.splitlines(keepends=True) if ".err[" not in line)


def run(cluster: Cluster, *words: str, nodes: int, tasks: int | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command on the lead as a client does."""
    user = {"minicluster-client": "key-a"}
    job: dict[str, Any] = {"command": words, "nodes": nodes, "tasks": tasks, "seconds": 60, "cwd": "/tmp", "user": user}
    job["environment"] = {"OWN": "own"}
    flux = f"{MOUNT}/bin/flux"
    line = (flux, "python", "-c", program_text("instance"), flux, json.dumps(job), "user.minicluster-client=key-a")
    return cluster.lead.run(*line, stdin="in\n")


def test_a_command_has_an_instance_of_its_own_and_marks_its_end(make: Make) -> None:
    cluster = make(TWO).start().wait_for_ready()
    looked = run(cluster, "sh", "-c", f"[ $FLUX_TASK_RANK = 1 ] || {{ {LOOKS}; }}", nodes=2, tasks=2)
    assert (looked.returncode, looked.stdout) == (7, "in\n/tmp\nown\n2\n2\n\x1eminicluster-end\n")
    uri, said, mark = own(looked.stderr).split("\n")[:3]
    assert (uri.startswith("local://"), "jobtap" in looked.stderr + cluster.lead.log) == (True, False)
    assert (said, mark) == ("flux-job: task(s) exited with exit code 7", "\x1eminicluster-end 7")
    ranks = run(cluster, "printenv", "FLUX_TASK_RANK", nodes=2)
    assert sorted(ranks.stdout.split("\n")[:2]) == ["0", "1"]
    # others don't see the marks
    words = (f"{MOUNT}/bin/flux", "python", "-c", BOOT, "mini", cluster.lead.flux("jobs", "-ano", "{id}").split()[0])
    printed = cluster.lead.run(*words, stdin=first_line("printed"))
    assert (sorted(printed.stdout.split("\n")), own(printed.stderr)) == (["", "0", "1"], "")
    # a name for people, and the attribute by which a client finds it
    jobs = cluster.lead.flux("jobs", "-ano", "{name} {nnodes} {returncode}")
    assert jobs == "printenv 2 0\nsh 2 7\n"
    refused = run(cluster, "x", nodes=3)
    told = "minicluster: 3 nodes are more than its 2, which is with maxSize: ask for fewer\n"
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", told)
