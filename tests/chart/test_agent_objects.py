"""The objects and fields that autoscaling and metrics add."""

from typing import Any

import pytest
from renderings import pod
from support import Helm, by_name, load_all

AGENTS: list[Any] = [
    ({}, [], []),
    ({"metrics": {"enabled": True}}, ["minicluster-agent"], []),
    ({"autoscaling": {"enabled": True}}, ["minicluster-agent"], ["minicluster-agent"]),
    ({"pod": {"disruptionBudget": True}}, ["minicluster-agent"], ["minicluster-agent"]),
    # a token that the user asks for is mounted in another way
    (
        {"autoscaling": {"enabled": True}, "pod": {"serviceAccountName": "mine"}},
        ["minicluster-agent"],
        ["minicluster-agent"],
    ),
]


@pytest.mark.parametrize(
    ("values", "agents", "mounting"), AGENTS, ids=["none", "metrics", "autoscaling", "budget", "account"]
)
def test_only_the_agent_mounts_a_service_account_token(
    helm4: Helm, values: dict[str, Any], agents: list[str], mounting: list[str]
) -> None:
    containers = [{"runFlux": True}, {"name": "side", "image": "busybox", "command": "sleep inf"}]
    services = [{"name": "web", "image": "nginx", "command": "sleep inf"}]
    text = helm4.template(values={"size": 2, "containers": containers, "services": services, **values})
    specs = [d["spec"] for d in load_all(text) if d["kind"] == "Pod"] + [pod(text)["spec"]]
    assert len(specs) > 1
    named, mount = [], []
    for spec in specs:
        assert spec["automountServiceAccountToken"] is False
        for container in spec["containers"] + spec.get("initContainers", []):
            named += [container["name"]] if container["name"] == "minicluster-agent" else []
            mount += [container["name"] for m in container.get("volumeMounts", []) if m["name"] == "minicluster-token"]
    assert (named, mount) == (agents, mounting)
    projected = [v for spec in specs for v in spec.get("volumes", []) if "projected" in v]
    volumes = [v["name"] for v in projected if any("serviceAccountToken" in s for s in v["projected"]["sources"])]
    assert volumes == ["minicluster-token"] * len(mounting)


def test_values_of_autoscaling_and_metrics_change_nothing_while_both_are_off(helm: Helm) -> None:
    values = {
        "autoscaling": {"enabled": False, "min": 2, "max": 3, "targetCPUUtilizationPercentage": 50, "rbac": True},
        "metrics": {"enabled": False, "podMonitor": {"labels": {"a": "b"}}},
        "agent": {"periodSeconds": 3},
    }
    monitored = ("--api-versions", "monitoring.coreos.com/v1/PodMonitor")
    before, after = by_name(helm.template(*monitored)), by_name(helm.template(*monitored, values=values))
    spec = [objects.pop(("MiniCluster", "flux-sample"))["spec"] for objects in (before, after)]
    assert before == after
    assert spec[0] != spec[1]
