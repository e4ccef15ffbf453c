"""Groups of unlike pods in one queue, on a real Kubernetes."""

import json
from typing import Any

from pod_jobs import QUIET, UNTIL_TOLD, ended, submit
from real_cluster import IN_PODS, Install

from tools.clients import until
from tools.releases import STEP_SECONDS, FluxRelease

pytestmark = IN_PODS

GROUPS: list[dict[str, Any]] = [
    {"name": "gpu", "size": 1, "maxSize": 2, "properties": ["a100"], "cores": 2},
    {"name": "spot", "size": 0, "maxSize": 2, "cores": 1},
]
VALUES: dict[str, Any] = {"size": 1, "maxSize": 2, "groups": GROUPS, "interactive": True, **QUIET}


def sized(gpu: int, spot: int) -> list[dict[str, Any]]:
    return [GROUPS[0] | {"size": gpu}, GROUPS[1] | {"size": spot}]


def hosts(cluster: FluxRelease, *words: str) -> list[str]:
    """Return where a job's tasks run, without the cluster's name."""
    text = cluster.flux(0, "run", *words, "hostname")
    return sorted(line.removeprefix(f"{cluster.name}-") for line in text.split())


def test_jobs_choose_a_group_and_each_group_has_a_size_of_its_own(release: Install) -> None:
    cluster = release(VALUES, {"cores": 1})
    cluster.wait_for("0,2")
    assert hosts(cluster, "--requires=gpu") == ["gpu-0"]
    assert hosts(cluster, "--requires=a100", "-n2") == ["gpu-0", "gpu-0"]
    assert hosts(cluster, "--requires=^gpu") == ["0"]
    cluster.upgrade(groups=sized(1, 2))
    cluster.wait_for("0,2,4-5")
    assert hosts(cluster, "-N4") == ["0", "gpu-0", "spot-0", "spot-1"]
    # a job of another group goes on, and one that runs there ends first
    held = submit(cluster, "--requires=gpu", "sh", "-c", UNTIL_TOLD)
    short = submit(cluster, "--requires=spot", "-N2", "sh", "-c", "sleep 3")
    until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{state}", short).strip() == "RUN", STEP_SECONDS)
    cluster.upgrade(groups=sized(1, 0))
    cluster.wait_for("0,2")
    # drained nodes are not up either, while their job still runs
    until(lambda: ended(cluster, short), STEP_SECONDS)
    assert (ended(cluster, short), ended(cluster, held)) == ("COMPLETED", "")
    cluster.flux(0, "exec", "-r", "2", "touch", "/tmp/end")
    until(lambda: ended(cluster, held) == "COMPLETED", STEP_SECONDS)
    # a lost pod of a group comes back
    [lost] = [pod["metadata"]["name"] for pod in cluster.items("pods") if "-gpu-0" in pod["metadata"]["name"]]
    cluster.kubectl("delete", "pod", lost)
    cluster.upgrade(groups=sized(2, 0), size=2)
    cluster.wait_for("0-3")
    assert hosts(cluster, "--requires=gpu", "-N2") == ["gpu-0", "gpu-1"]


def test_all_groups_end_with_the_work_of_the_lead(release: Install) -> None:
    cluster = release({**VALUES, "interactive": False, "groups": sized(2, 1)}, {"cores": 1, "command": "hostname"})
    jobs = ("", "-gpu", "-spot")

    def conditions() -> list[str]:
        found = [cluster.get("job", f"{cluster.name}{suffix}")["status"].get("conditions", []) for suffix in jobs]
        return [one["type"] for each in found for one in each if one["type"] in ("Complete", "Failed")]

    until(lambda: conditions() == ["Complete"] * 3, STEP_SECONDS)


def test_status_counts_the_nodes_of_each_group(release: Install) -> None:
    cluster = release(VALUES, {"cores": 1})
    cluster.wait_for("0,2")
    text = cluster.cluster.output("minicluster", "status", cluster.name, "-n", cluster.namespace, "-o", "json")
    found = json.loads(text)
    assert [(one["name"], one["size"], one["nodes"]["up"], one["nodes"]["notStarted"]) for one in found["groups"]] == [
        ("gpu", 1, 1, 1),
        ("spot", 0, 0, 2),
    ]
    assert found["nodes"] == {"up": 2, "drained": 0, "missing": 0, "notStarted": 4}


SCALED: dict[str, Any] = {
    "size": 1,
    "autoscaling": {"enabled": True, "idleSeconds": 4},
    "agent": {"periodSeconds": 2},
    "groups": [
        {"name": "gpu", "size": 0, "maxSize": 2, "cores": 1, "gpus": 1},
        {"name": "spot", "size": 0, "maxSize": 3, "cores": 1, "autoscaling": {"priority": 1}},
    ],
    "interactive": True,
    **QUIET,
}


def size_of(cluster: FluxRelease, group: str) -> int:
    """Return the pods that the Job of a group should have."""
    spec = cluster.get("job", f"{cluster.name}-{group}")["spec"]
    return int(spec["completions"]) if spec["parallelism"] else 0


def wait_for_sizes(cluster: FluxRelease, gpu: int, spot: int) -> None:
    until(lambda: (size_of(cluster, "gpu"), size_of(cluster, "spot")) == (gpu, spot), STEP_SECONDS)


def test_the_autoscaler_grows_the_group_that_fits_and_shrinks_each_by_itself(release: Install) -> None:
    cluster = release(SCALED, {"cores": 1})
    cluster.wait_for("0")
    gpu = submit(cluster, "-n1", "-g1", "sh", "-c", UNTIL_TOLD)
    wait_for_sizes(cluster, 1, 0)
    # the lead's only core is taken first
    short = [submit(cluster, "-n1", "sh", "-c", "sleep 5") for _ in range(3)]
    wait_for_sizes(cluster, 1, 2)
    until(lambda: all(ended(cluster, job) == "COMPLETED" for job in short), STEP_SECONDS)
    wait_for_sizes(cluster, 1, 0)
    assert ended(cluster, gpu) == ""
    cluster.flux(0, "exec", "-r", "1", "touch", "/tmp/end")
    until(lambda: ended(cluster, gpu) == "COMPLETED", STEP_SECONDS)
    wait_for_sizes(cluster, 0, 0)
    cluster.wait_for("0")
    # and back, by a request
    cluster.cluster.output("minicluster", "scale", cluster.name, "spot=2", "-n", cluster.namespace, "--wait")
    wait_for_sizes(cluster, 0, 2)
    assert hosts(cluster, "--requires=spot", "-N2") == ["spot-0", "spot-1"]
    cluster.cluster.output("minicluster", "scale", cluster.name, "spot=auto", "-n", cluster.namespace)
    wait_for_sizes(cluster, 0, 0)
