"""What the chart renders against evictions: annotations for autoscalers, a PodDisruptionBudget, its agent's rights."""

from typing import Any

import pytest
from renderings import pod
from support import Helm, by_name

EVICT, DISRUPT = "cluster-autoscaler.kubernetes.io/safe-to-evict", "karpenter.sh/do-not-disrupt"
KEEP = {EVICT: "false", DISRUPT: "true"}
BUDGET = {"disruptionBudget": True}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, KEEP),
        ({"evictable": False}, KEEP),
        ({"evictable": True}, {}),
        # their jobs run again
        ({"onStop": "requeue"}, {}),
        ({"onStop": "requeue", "evictable": False}, KEEP),
        # the budget lets idle pods go
        (BUDGET, {}),
        ({**BUDGET, "evictable": False}, KEEP),
        # those of the values win
        ({"annotations": {EVICT: "true"}}, {**KEEP, EVICT: "true"}),
        ({"annotations": {DISRUPT: "1h"}, "evictable": False}, {**KEEP, DISRUPT: "1h"}),
        ({"evictable": True, "annotations": {EVICT: "false"}}, {EVICT: "false"}),
    ],
    ids=str,
)
def test_autoscalers_leave_pods_alone_whose_jobs_would_be_lost(
    helm: Helm, values: dict[str, Any], expected: dict[str, str]
) -> None:
    annotations = pod(helm.template(values={"pod": values}))["metadata"]["annotations"]
    assert {key: text for key, text in annotations.items() if key in KEEP} == expected


def test_a_group_has_its_own_answer_to_evictions(helm4: Helm) -> None:
    groups = [{"name": "spot", "cores": 1, "pod": {"evictable": True}}, {"name": "gpu", "cores": 1}]
    jobs = {
        name: one for (kind, name), one in by_name(helm4.template(values={"groups": groups})).items() if kind == "Job"
    }
    kept = {
        name: KEEP.keys() <= one["spec"]["template"]["metadata"]["annotations"].keys() for name, one in jobs.items()
    }
    assert kept == {"flux-sample": True, "flux-sample-spot": False, "flux-sample-gpu": True}


def test_the_budget_has_no_selector_and_comes_with_what_its_agent_needs(helm4: Helm) -> None:
    before, after = (by_name(helm4.template(values={"size": 2, "pod": values})) for values in ({}, BUDGET))
    name = "flux-sample"
    assert after.keys() - before.keys() == {
        ("PodDisruptionBudget", name),
        *((kind, f"{name}-agent") for kind in ("ServiceAccount", "Role", "RoleBinding")),
    }
    assert after["PodDisruptionBudget", name]["spec"] == {"minAvailable": 2147483647}
    assert after["Role", f"{name}-agent"]["rules"] == [
        {
            "apiGroups": ["policy"],
            "resources": ["poddisruptionbudgets"],
            "resourceNames": [name],
            "verbs": ["get", "patch"],
        }
    ]
    without = by_name(helm4.template(values={"pod": BUDGET, "autoscaling": {"rbac": False}}))
    assert {kind for kind, _ in without.keys() - before.keys()} == {"PodDisruptionBudget", "ServiceAccount"}
