"""The resource claims of the brokers' pods, and the templates of claims that the release makes."""

from typing import Any

import pytest
from renderings import pod
from support import CHART, Helm, awaiting, load_all, one, values_text

SPEC = {
    "devices": {
        "requests": [
            {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}},
            {"name": "other", "firstAvailable": [{"name": "a", "deviceClassName": "nic.example.com"}]},
        ],
        "constraints": [{"requests": ["gpu"], "matchAttribute": "example.com/numa"}],
    }
}
VALUES: dict[str, Any] = {
    "nameOverride": "mc",
    "containers": [{"resources": {"claims": [{"name": "gpu", "request": "gpu"}, {"name": "net"}]}}],
    "services": [{"name": "db", "image": "redis"}],
    "pod": {
        "resourceClaims": [
            {"name": "gpu", "spec": SPEC},
            {"name": "net", "resourceClaimName": "shared"},
            {"name": "nic", "resourceClaimTemplateName": "mine"},
        ],
        "template": {"spec": {"resourceClaims": [{"name": "more", "resourceClaimName": "x"}]}},
    },
}
ONLINE = ("--api-versions", "v1/Pod", "--api-versions", "batch/v1/Job")


def served(*versions: str) -> tuple[str, ...]:
    kinds = [f"resource.k8s.io/{version}/ResourceClaimTemplate" for version in versions]
    return (*ONLINE, *(word for kind in kinds for word in ("--api-versions", kind)))


def test_the_brokers_pods_have_the_claims_and_a_template_is_made_for_a_spec(helm: Helm) -> None:
    text = helm.template(values=VALUES)
    assert pod(text)["spec"]["resourceClaims"] == [
        {"name": "gpu", "resourceClaimTemplateName": "mc-gpu"},
        {"name": "net", "resourceClaimName": "shared"},
        {"name": "nic", "resourceClaimTemplateName": "mine"},
        {"name": "more", "resourceClaimName": "x"},
    ]
    assert pod(text)["spec"]["containers"][0]["resources"] == VALUES["containers"][0]["resources"]
    made = one(text, "ResourceClaimTemplate")
    assert (made["apiVersion"], made["metadata"]["name"], made["spec"]) == (
        awaiting("resource.k8s.io/v1"),
        "mc-gpu",
        {"spec": SPEC},
    )
    assert made["metadata"]["labels"]["app.kubernetes.io/instance"] == "mc"
    assert "resourceClaims" not in one(text, "Deployment")["spec"]["template"]["spec"]


@pytest.mark.any_helm
@pytest.mark.parametrize(
    ("options", "version"),
    [
        ((), "v1"),
        (("--kube-version", "1.27"), "v1"),
        (("--kube-version", "1.33", "--api-versions", "batch/v1/Job"), "v1beta1"),
        (("--kube-version", "1.34", "--api-versions", "batch/v1/Job"), "v1"),
        (served("v1", "v1beta2", "v1beta1"), "v1"),
        (served("v1beta1", "v1beta2"), "v1beta2"),
        (served("v1beta1"), "v1beta1"),
    ],
    ids=str,
)
def test_the_api_version_of_a_claim_is_the_newest_of_the_cluster(
    helm: Helm, options: tuple[str, ...], version: str
) -> None:
    made = one(helm.template(*options, values=VALUES), "ResourceClaimTemplate")
    assert made["apiVersion"] == awaiting(f"resource.k8s.io/{version}")
    flat = {**SPEC["devices"], "requests": [{"name": "gpu", "deviceClassName": "gpu.example.com", "count": 2}]}
    flat["requests"].append(SPEC["devices"]["requests"][1])
    assert made["spec"]["spec"] == ({"devices": flat} if version == "v1beta1" else SPEC)


@pytest.mark.parametrize(
    "claims", [VALUES["pod"]["resourceClaims"], [{"name": "a", "resourceClaimName": "b"}]], ids=len
)
def test_claims_need_a_cluster_that_knows_them(helm: Helm, claims: list[Any]) -> None:
    values = {"pod": {"resourceClaims": claims}}
    options = ("--kube-version", "1.33.1", *ONLINE, "--values", "-")
    said = helm.fails("template", "mc", CHART, *options, stdin=values_text(values))
    assert (
        "pod.resourceClaims needs Kubernetes 1.34, and this cluster, v1.33.1, serves no resource.k8s.io: ask its "
        "administrator, or drop the claims"
    ) in said


def test_an_empty_spec_makes_a_template_too(helm4: Helm) -> None:
    values = {"pod": {"resourceClaims": [{"name": name, "spec": {}} for name in ("a", "b")]}}
    made = [d for d in load_all(helm4.template(values=values)) if d["kind"] == "ResourceClaimTemplate"]
    assert [(d["metadata"]["name"], d["spec"]) for d in made] == [
        ("flux-sample-a", {"spec": {}}),
        ("flux-sample-b", {"spec": {}}),
    ]
