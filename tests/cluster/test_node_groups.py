"""Groups: Jobs of unlike pods in one release, on a real API server with the real controllers."""

import json
from pathlib import Path
from typing import Any

import pytest
from autoscaled import again, agent, resize
from budget import selector
from kube import Kube, KubeError
from support import lines_with

from tools.clients import ProcessError
from tools.releases import Release

GROUPS: list[dict[str, Any]] = [
    {"name": "gpu", "size": 2, "maxSize": 3, "cores": 1, "pod": {"labels": {"kind": "gpu"}}},
    {"name": "spot", "size": 0, "maxSize": 2, "cores": 1},
]
CHANGE = "can't change on the live MiniCluster mc:"
WAY = "uninstall mc first, which loses its queue, or install under another name"
VALUES: dict[str, Any] = {"size": 1, "maxSize": 2, "groups": GROUPS, "containers": [{"command": "sleep inf"}]}


def sized(gpu: int, spot: int) -> list[dict[str, Any]]:
    return [GROUPS[0] | {"size": gpu}, GROUPS[1] | {"size": spot}]


def hosts(release: Release) -> list[str]:
    """Return the host names of the pods that run."""
    pods = release.items("pods")
    return sorted(
        pod["spec"]["hostname"]
        for pod in pods
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    )


def wait_for(release: Release, *names: str) -> None:
    release.cluster.wait(f"the hosts {names}", lambda: hosts(release) == sorted(names))


def test_groups_are_installed_scaled_to_zero_and_back_and_removed(release: Release) -> None:
    release.install(**VALUES)
    wait_for(release, "mc-0", "mc-gpu-0", "mc-gpu-1")
    job = release.get("job", "mc-gpu")
    assert (job["spec"]["completions"], job["spec"]["parallelism"], job["spec"].get("suspend")) == (2, 2, False)
    record = json.loads(job["metadata"]["annotations"]["minicluster/immutable"])
    assert record["pod.labels.kind"] == "gpu"
    # a Job of 0 completions would have ended
    asleep = release.get("job", "mc-spot")
    assert (asleep["spec"]["completions"], asleep["spec"]["suspend"]) == (1, True)
    uids = {pod["metadata"]["uid"] for pod in release.items("pods")}
    release.upgrade(groups=sized(3, 2), size=2)
    wait_for(release, "mc-0", "mc-1", "mc-gpu-0", "mc-gpu-1", "mc-gpu-2", "mc-spot-0", "mc-spot-1")
    assert uids < {pod["metadata"]["uid"] for pod in release.items("pods")}, "a pod was replaced"
    release.upgrade(groups=sized(0, 1))
    wait_for(release, "mc-0", "mc-1", "mc-spot-0")
    release.upgrade(groups=sized(1, 0))
    wait_for(release, "mc-0", "mc-1", "mc-gpu-0")
    release.ok("rollback", "1")
    wait_for(release, "mc-0", "mc-gpu-0", "mc-gpu-1")
    release.ok("uninstall", "--wait")
    release.cluster.wait("nothing", lambda: release.items() == [])


@pytest.mark.any_helm
def test_what_a_group_can_not_change_is_refused_by_name(release4: Release) -> None:
    release4.install(**VALUES)
    for groups, message in (
        ([GROUPS[0] | {"cores": 2}, GROUPS[1]], f"groups[0].cores {CHANGE} it is 1, asked is 2; {WAY}"),
        (
            [GROUPS[0] | {"maxSize": 4}, GROUPS[1]],
            f"groups[0].maxSize {CHANGE} it is 3, asked is 4; {WAY}",
        ),
        ([GROUPS[0]], f"the group spot can't be removed from the live MiniCluster mc; {WAY}"),
        (
            [*GROUPS, {"name": "more", "size": 1, "cores": 1}],
            f"the group more can't be added to the live MiniCluster mc; {WAY}",
        ),
        (sized(4, 0), "groups[0].size is 4, its maxSize 3: lower size, or install with a larger maxSize"),
    ):
        assert lines_with(release4.refuse(groups=groups), message)
    assert hosts(release4) == ["mc-0", "mc-gpu-0", "mc-gpu-1"]


@pytest.mark.any_helm
def test_a_group_without_max_size_keeps_that_of_its_install(release4: Release) -> None:
    release4.install(**{**VALUES, "groups": [{"name": "a", "size": 3, "cores": 1}]})
    release4.upgrade(groups=[{"name": "a", "size": 1, "cores": 1}])
    wait_for(release4, "mc-0", "mc-a-0")
    release4.upgrade(groups=[{"name": "a", "size": 3, "cores": 1}])
    wait_for(release4, "mc-0", "mc-a-0", "mc-a-1", "mc-a-2")


@pytest.mark.any_helm
def test_the_services_of_the_lead_select_no_pod_of_a_group(release4: Release) -> None:
    sidecar = {"name": "web", "image": "nginx", "command": "serve", "ports": [80], "leadOnly": True}
    runner = {"command": "sleep inf", "runFlux": True}
    release4.install(**{**VALUES, "containers": [runner, sidecar]})
    wait_for(release4, "mc-0", "mc-gpu-0", "mc-gpu-1")
    selector = release4.get("service", "mc-web")["spec"]["selector"]
    found = release4.items("pods", f"--selector={','.join(f'{key}={value}' for key, value in selector.items())}")
    assert [pod["spec"]["hostname"] for pod in found] == ["mc-0"]
    everywhere = release4.get("service", "mc")["spec"]["selector"]
    found = release4.items("pods", f"--selector={','.join(f'{key}={value}' for key, value in everywhere.items())}")
    assert len(found) == 3


# With autoscaling --------------------------------------------------------------------------------------------------

LIMITS = {"autoscaling": {"enabled": True}, "maxSize": 1}
IN_TANDEM = "can only be modified in tandem with spec.parallelism"


def agents(release: Release, folder: Path) -> tuple[Kube, Kube]:
    """Return the agent's clients for the groups."""
    own = agent(release, folder)
    return own.of_group("gpu"), own.of_group("spot")


def test_the_agent_scales_groups_and_no_upgrade_or_rollback_changes_their_sizes(
    release: Release, tmp_path: Path
) -> None:
    release.install(**{**VALUES, **LIMITS})
    wait_for(release, "mc-0", "mc-gpu-0", "mc-gpu-1")
    gpu, spot = agents(release, tmp_path)
    resize(spot, 2)
    wait_for(release, "mc-0", "mc-gpu-0", "mc-gpu-1", "mc-spot-0", "mc-spot-1")
    release.upgrade(**LIMITS, groups=GROUPS, deadlineSeconds=9000)
    gpu.empty(gpu.get_job(), 3)
    wait_for(release, "mc-0", "mc-spot-0", "mc-spot-1")
    release.upgrade(**LIMITS, groups=GROUPS, deadlineSeconds=9001)
    spot.empty(spot.get_job(), 2)
    wait_for(release, "mc-0")
    # the manifest of the first revision has two pods of gpu, and none of spot
    with pytest.raises(ProcessError, match=IN_TANDEM):
        release.ok("rollback", 1)
    resize(spot, 1)
    wait_for(release, "mc-0", "mc-spot-0")
    with pytest.raises(ProcessError, match=IN_TANDEM):
        release.ok("rollback", 1)
    assert hosts(release) == ["mc-0", "mc-spot-0"]
    release.upgrade(autoscaling={"enabled": False}, groups=GROUPS, maxSize=1)
    wait_for(release, "mc-0", "mc-gpu-0", "mc-gpu-1")
    release.upgrade(**LIMITS, groups=GROUPS)
    job = release.get("job", "mc-spot")
    assert (job["spec"]["completions"], job["spec"]["parallelism"], job["spec"]["suspend"]) == (3, 3, True)
    # the agent finishes it at its next look
    again(lambda: spot.empty(spot.get_job(), 2))
    job = release.get("job", "mc-spot")
    assert (job["spec"]["completions"], job["spec"]["parallelism"], job["spec"]["suspend"]) == (3, 0, False)
    release.ok("uninstall", "--wait")
    release.cluster.wait("nothing", lambda: release.items() == [])


@pytest.mark.any_helm
def test_the_agent_may_change_the_jobs_of_groups_and_hold_their_pods_but_no_others(
    release4: Release, tmp_path: Path
) -> None:
    release4.install(**{**VALUES, **LIMITS, "pod": {"disruptionBudget": True}})
    wait_for(release4, "mc-0", "mc-gpu-0", "mc-gpu-1")
    own = agent(release4, tmp_path)
    gpu = own.of_group("gpu")
    gpu.select(gpu.get_budget(), selector(gpu.name, [1]))
    budgets = {each["metadata"]["name"]: each["spec"] for each in release4.items("poddisruptionbudgets")}
    assert {name: "selector" in spec for name, spec in budgets.items()} == {
        "mc": False,
        "mc-gpu": True,
        "mc-spot": False,
    }
    with pytest.raises(KubeError, match=r"403 .*mc-other"):
        own.of_group("other").get_job()
    # no pod starts while a group becomes empty
    gpu.empty(gpu.get_job(), 3)
    wait_for(release4, "mc-0")
    made = [event["message"] for event in release4.items("events") if event["involvedObject"]["name"] == "mc-gpu"]
    assert len([text for text in made if text.startswith("Created pod: ")]) == 2
    assert gpu.get_job()["status"].get("conditions") is None or not any(
        each["type"] in ("Complete", "Failed") for each in gpu.get_job()["status"]["conditions"]
    )
