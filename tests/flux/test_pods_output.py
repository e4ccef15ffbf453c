"""The log of a lead without `logging.quiet`, what its brokers say, and the output of a job, on a real Kubernetes."""

import re

import pytest
from real_cluster import IN_PODS, Install

from tools.clients import Done
from tools.releases import FluxRelease
from tools.testbed import NAME

pytestmark = [IN_PODS, pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)]


def run(cluster: FluxRelease, command: str, *words: str) -> Done:
    """Run `minicluster COMMAND` to its end."""
    return cluster.cluster.run("minicluster", command, NAME, "-n", cluster.namespace, *words)


def test_the_log_is_the_output_of_the_work_and_three_lines_more(release: Install) -> None:
    cluster = release({"size": 2}, {"command": "echo hi"})
    assert "Complete" in cluster.wait_for_end()
    lines = [re.sub(r", Flux .*|(?<=scheduler: ).*", "", line) for line in cluster.log(0).splitlines()]
    assert lines == [
        f"minicluster: {NAME}-0 of 2 (max 2)",
        "minicluster: scheduler: ",
        "minicluster: flux run -n 1 --job-name=echo",
        "hi",
    ]
    done = run(cluster, "logs", "--all")
    assert (done.code, done.out) == (0, cluster.log(0))
    assert done.err.startswith(f"minicluster: the log of its broker can't be read: {NAME}-0 has ended")


def test_what_brokers_say_and_jobs_print_is_shown(release: Install) -> None:
    cluster = release({"size": 2}, {"cores": 2})
    cluster.wait_for("0-1")
    for index in (0, 1):
        done = run(cluster, "logs", "--all", "--node", str(index))
        assert (done.code, done.err) == (0, f"minicluster: the log of the broker of {NAME}-{index}:\n")
        assert f"broker.info[{index}]: quorum-full: quorum->run" in done.out.removeprefix(cluster.log(index))
        assert "quorum-full" not in cluster.log(index)
    job = cluster.flux(0, "submit", "sh", "-c", "echo out; echo err >&2; sleep 1; echo end; exit 3").strip()
    assert run(cluster, "output", job, "-f") == Done(0, "out\nend\n", "err\n")
    assert run(cluster, "output", cluster.flux(0, "job", "id", "--to=dec", job).strip()) == Done(
        0, "out\nend\n", "err\n"
    )
    assert run(cluster, "output", "f234").code == 1
