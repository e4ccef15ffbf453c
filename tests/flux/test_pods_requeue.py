"""Jobs that are put back into the queue when their pods are told to stop, on a real Kubernetes."""

import time
from pathlib import Path
from typing import Any

import pytest
from pod_jobs import ONE_CORE, QUIET, submit
from real_cluster import IN_PODS, NODE_FOLDER, Install, example

from tools.clients import until
from tools.releases import JOB_NAME, STEP_SECONDS, FluxRelease
from tools.testbed import NAME, bind

pytestmark = IN_PODS

#: Task 1 counts, saves the count when it is told to end, and continues from there; a file ends all tasks
COUNTS = """\
if [ "$FLUX_TASK_RANK" = 0 ]; then until [ -e /shared/end ]; do sleep 0.2; done; exit; fi
n=0
[ ! -e /shared/state ] || n=$(cat /shared/state)
echo "starts at $n" >>/shared/log
trap 'echo "$n" >/shared/state; exit 1' TERM
until [ -e /shared/end ]; do n=$((n + 1)); sleep 0.1; done
"""


def rows(cluster: FluxRelease) -> dict[str, list[str]]:
    """Return state or result, and the note of the exception, by job."""
    text = cluster.flux(0, "jobs", "-a", "-n", "-o", "{id.f58};{status};{exception.note}").replace("ƒ", "f")
    return {line.split(";")[0]: line.split(";")[1:] for line in text.splitlines()}


@NODE_FOLDER
@pytest.mark.parametrize("stop", ["shrink", "delete"])
def test_a_job_saves_its_state_and_continues_when_its_pod_is_told_to_stop(
    release: Install, tmp_path: Path, stop: str
) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "job").write_text(COUNTS)
    values: dict[str, Any] = {"size": 3, **QUIET, "pod": {"terminationGracePeriodSeconds": 16, "onStop": "requeue"}}
    cluster = release(values, {**ONE_CORE, "volumes": {"shared": {"path": "/shared", "hostPath": str(tmp_path)}}})
    cluster.wait_for("0-2")
    first = submit(cluster, "-N2", "-n2", "--requires=ranks:1-2", "sh", "/shared/job")
    until((tmp_path / "log").exists)
    begin = time.monotonic()
    if stop == "shrink":
        cluster.upgrade("--set", "size=2")
    else:
        cluster.kubectl("delete", "pod", "--wait=false", cluster.pod(1), cluster.pod(2))
    until((tmp_path / "state").exists, STEP_SECONDS)
    until(lambda: len(rows(cluster)) == 2, STEP_SECONDS)
    [(job, (result, note)), (copy, _)] = sorted(rows(cluster).items(), key=lambda each: each[0] != first)
    assert result == "CANCELED"
    assert note == f"minicluster: the pod was told to stop and its grace period is over: it runs again as {copy}"
    print(f"{stop}: saved and put back {time.monotonic() - begin:.1f} s after the stop, grace period 16 s")
    if stop == "shrink":
        cluster.upgrade("--set", "size=3")
    cluster.wait_for("0-2")
    until(lambda: len((tmp_path / "log").read_text().splitlines()) == 2, STEP_SECONDS)
    (tmp_path / "end").touch()
    assert until(lambda: rows(cluster)[copy][0] == "COMPLETED", STEP_SECONDS)
    before, after = (tmp_path / "log").read_text().splitlines()
    assert before == "starts at 0"
    assert after == f"starts at {(tmp_path / 'state').read_text().strip()}" != before
    # it was put back once
    assert set(rows(cluster)) == {job, copy}


def test_a_job_on_spot_instances_continues_on_the_next_one(release: Install, volume: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    values, runner = example("spot")
    # the test's Kubernetes nodes are no spot instances, and have few cores
    values["groups"] = [{"name": "spot", "size": 2, "cores": 1}]
    script = runner["commands"]["script"].replace("sleep 1;", "sleep 0.5; touch /data/began;").replace("300", "60")
    runner |= {"resources": {}, "cores": 1, "commands": {"script": script}}
    cluster = release({**values, **QUIET}, runner)
    bind(cluster, "data", volume, tmp_path)
    until((tmp_path / "began").exists, STEP_SECONDS, "the job")
    pods = [one["metadata"]["name"] for one in cluster.items("pods", f"--selector={JOB_NAME}={NAME}-spot")]
    cluster.evict(pods[0])
    until(lambda: len(rows(cluster)) == 2, STEP_SECONDS, "the copy of the job")
    (first,) = (job for job, (result, _) in rows(cluster).items() if result in ("FAILED", "CANCELED"))
    saved = int((tmp_path / "spot.state").read_text())
    assert 0 < saved < 60
    (copy,) = rows(cluster).keys() - {first}
    until(lambda: cluster.pod(0) == "" or rows(cluster).get(copy, [""])[0] == "RUN", STEP_SECONDS, "the next instance")
    asked = ("minicluster", "output", NAME, copy, "-n", cluster.namespace)
    # a job that runs may have written nothing yet
    until(lambda: cluster.cluster.run(*asked).out == f"continues after step {saved}\n", STEP_SECONDS, "its first line")
    assert "Complete" in cluster.wait_for_end()
    assert not (tmp_path / "spot.state").exists()
