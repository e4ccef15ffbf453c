"""The NetworkPolicies: which ports they open, and to whom."""

from typing import Any

import pytest
from support import Helm, by_name

CLOSED: dict[str, Any] = {"networkPolicy": {"enabled": True}}
BROKERS = {
    "app.kubernetes.io/name": "minicluster",
    "app.kubernetes.io/instance": "flux-sample",
    "app.kubernetes.io/component": "broker",
}
SERVICES = {**BROKERS, "app.kubernetes.io/component": "services"}
LEADS = {**BROKERS, "batch.kubernetes.io/job-completion-index": "0"}
FROM_BROKERS = {"from": [{"podSelector": {"matchLabels": BROKERS}}]}


def tcp(*ports: int) -> dict[str, Any]:
    return {"ports": [{"protocol": "TCP", "port": port} for port in ports]}


POLICIES: list[Any] = [
    ({}, {"": (BROKERS, [FROM_BROKERS])}),
    (
        {
            "containers": [
                {"runFlux": True, "ports": [9000]},
                {"name": "a", "ports": [80, 443]},
                {"name": "b", "ports": [80]},
            ]
        },
        {"": (BROKERS, [FROM_BROKERS, tcp(9000, 80, 443)])},
    ),
    ({"metrics": {"enabled": True, "port": 9100}}, {"": (BROKERS, [FROM_BROKERS, tcp(9100)])}),
    ({"metrics": {"enabled": False, "port": 9100}}, {"": (BROKERS, [FROM_BROKERS])}),
    *(
        (
            {"flux": {"bursting": {"expose": expose}}},
            {"": (BROKERS, [FROM_BROKERS]), "-lead": (LEADS, [tcp(8050)])},
        )
        for expose in ({"type": "NodePort"}, {"type": "LoadBalancer"}, {"address": "192.0.2.7:30050"})
    ),
    ({"flux": {"bursting": {"clusters": [{"size": 1}]}}}, {"": (BROKERS, [FROM_BROKERS])}),
    (
        {"services": [{"name": "web", "ports": [80]}, {"name": "db"}]},
        {"": (BROKERS, [FROM_BROKERS]), "-services": (SERVICES, [FROM_BROKERS, tcp(80)])},
    ),
    (
        {"services": [{"name": "db"}]},
        {"": (BROKERS, [FROM_BROKERS]), "-services": (SERVICES, [FROM_BROKERS])},
    ),
]


@pytest.mark.parametrize(("values", "policies"), POLICIES, ids=[str(values)[:80] for values, _ in POLICIES])
def test_the_network_policies_open_these_ports_to_these_pods(
    helm: Helm, values: dict[str, Any], policies: dict[str, Any]
) -> None:
    objects = by_name(helm.template(values={**values, **CLOSED}))
    found = {name: one["spec"] for (kind, name), one in objects.items() if kind == "NetworkPolicy"}
    assert found == {
        f"flux-sample{suffix}": {
            "podSelector": {"matchLabels": selector},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        }
        for suffix, (selector, ingress) in policies.items()
    }


def test_the_network_policies_select_the_brokers_and_services(helm4: Helm) -> None:
    objects = by_name(helm4.template(values={"services": [{"name": "web"}], **CLOSED}))
    for kind, name, policy in (("Job", "", ""), ("Deployment", "-services", "-services")):
        labels = objects[kind, f"flux-sample{name}"]["spec"]["template"]["metadata"]["labels"]
        selector = objects["NetworkPolicy", f"flux-sample{policy}"]["spec"]["podSelector"]["matchLabels"]
        assert selector.items() <= labels.items()


def test_no_network_policy_is_rendered_by_default(helm: Helm) -> None:
    assert "NetworkPolicy" not in helm.template(values={"flux": {"bursting": {"expose": {"type": "NodePort"}}}})
