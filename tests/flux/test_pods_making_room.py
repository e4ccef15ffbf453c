"""Jobs that are stopped for others, and retries, on a real Kubernetes: what `minicluster why` says of them."""

from typing import Any

from pod_jobs import QUIET, submit
from real_cluster import IN_PODS, Install

from tools.clients import until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME

pytestmark = IN_PODS

VALUES: dict[str, Any] = {
    "size": 2,
    **QUIET,
    "flux": {"preemption": {"afterSeconds": 3, "minimumRunSeconds": 1}},
}
MARKED = "--setattr=user.minicluster.preemptible"
WHOLE = ("-N1", "--exclusive")


def states(cluster: FluxRelease) -> dict[str, str]:
    text = cluster.flux(0, "jobs", "-a", "-n", "-o", "{id} {status}").replace("ƒ", "f")
    return dict(line.split() for line in text.splitlines())


def why(cluster: FluxRelease, job: str) -> list[str]:
    return cluster.cluster.run("minicluster", "why", NAME, job, "-n", cluster.namespace).out.splitlines()


def test_a_marked_job_makes_room_and_a_job_is_tried_again(release: Install) -> None:
    cluster = release(VALUES, {"cores": 1})
    cluster.wait_for("0-1")
    marked = [submit(cluster, *WHOLE, MARKED, "sleep", "3600") for _ in range(2)]
    until(lambda: list(states(cluster).values()) == ["RUN", "RUN"], STEP_SECONDS)
    wish = ("--setattr=user.minicluster.retries=1", "--setattr=user.minicluster.retryOn=7")
    job = submit(cluster, *WHOLE, *wish, "sh", "-c", "sleep 1; exit 7")
    until(lambda: states(cluster).get(job) == "FAILED", STEP_SECONDS)
    [stopped] = [one for one in marked if states(cluster)[one] == "CANCELED"]
    said = why(cluster, stopped)
    assert f"minicluster: stopped for job {job}, which has waited long (flux.preemption): it runs again as " in said[0]
    again = said[-2].rpartition(" ")[2]
    assert said[0].endswith(again)
    assert said[-2] == f"it runs again as job {again}"
    # the next try makes room for itself, and is the last one
    said = until(lambda: [line for line in why(cluster, job) if line.startswith("it runs again")], STEP_SECONDS)
    retry = said[0].rpartition(" ")[2]
    until(lambda: states(cluster).get(retry) == "FAILED", STEP_SECONDS)
    assert not [line for line in why(cluster, retry) if line.startswith("it runs again")]
    until(lambda: list(states(cluster).values()).count("RUN") == 2, STEP_SECONDS)
