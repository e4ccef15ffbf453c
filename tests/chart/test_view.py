"""How the view comes into the pods, and what else depends on the version of Kubernetes."""

from typing import Any

import pytest
from renderings import at, job, pod
from support import Helm, deep


@pytest.mark.parametrize(
    ("values", "mode"),
    [
        ({}, "copy"),
        (at("flux.container.mode", "copy"), "copy"),
        (at("flux.container.mode", "image"), "image"),
        (at("flux.container.disable", True), "none"),
    ],
)
def test_the_view_is_copied_offline_unless_the_values_say_otherwise(
    helm: Helm, values: dict[str, Any], mode: str
) -> None:
    assert view_mode(helm.template(values=values)) == mode


@pytest.mark.parametrize(
    ("version", "mode", "fields"),
    [
        ("1.27.0", "copy", set()),
        ("1.28.9", "copy", set()),
        ("1.29.0", "copy", {"backoffLimitPerIndex"}),
        ("1.30.5", "copy", {"backoffLimitPerIndex"}),
        ("1.31.0", "copy", {"backoffLimitPerIndex", "successPolicy"}),
        ("1.35.3", "copy", {"backoffLimitPerIndex", "successPolicy"}),
        ("1.36.0-alpha.1", "image", {"backoffLimitPerIndex", "successPolicy"}),
        ("1.36.0-gke.100", "image", {"backoffLimitPerIndex", "successPolicy"}),
        ("1.40.1+k3s1", "image", {"backoffLimitPerIndex", "successPolicy"}),
    ],
)
def test_the_version_of_kubernetes_chooses_the_view_mode_and_job_fields(
    helm: Helm, version: str, mode: str, fields: set[str]
) -> None:
    text = helm.template("--api-versions", "batch/v1/Job", "--kube-version", version)
    assert view_mode(text) == mode
    assert {"backoffLimitPerIndex", "successPolicy"} & set(job(text)["spec"]) == fields


def view_mode(text: str) -> str:
    """Return how the view comes into the pods, and check that all parts for it are rendered."""
    spec = pod(text)["spec"]
    init = [container["name"] for container in spec.get("initContainers", [])]
    view = next((volume for volume in spec["volumes"] if volume["name"] == "minicluster-view"), None)
    mounts = {
        m["mountPath"]: m["subPath"] for m in spec["containers"][0]["volumeMounts"] if m["name"] == "minicluster-view"
    }
    if view is None:
        assert (init, mounts) == ([], {})
        return "none"
    if "image" in view:
        assert (init, mounts) == ([], {"/opt/software": "opt/software", "/opt/views": "opt/views"})
        return "image"
    assert (init, mounts) == (["flux-view"], {"/opt/software": "software", "/opt/views": "views"})
    return "copy"


@pytest.mark.parametrize(
    ("flux", "image"),
    [
        ({}, "ghcr.io/converged-computing/flux-view-ubuntu:tag-noble"),
        ({"arch": "arm"}, "ghcr.io/converged-computing/flux-view-ubuntu:arm-jammy"),
        ({"arch": "arm", "container": {"image": "mine"}}, "mine"),
        ({"container": {"image": "mine"}}, "mine"),
    ],
)
@pytest.mark.parametrize("mode", ["image", "copy"])
def test_the_image_of_the_view_follows_the_values(helm4: Helm, flux: dict[str, Any], image: str, mode: str) -> None:
    spec = pod(helm4.template(values=deep({"flux": flux}, at("flux.container.mode", mode))))["spec"]
    if mode == "copy":
        assert spec["initContainers"][0]["image"] == image
    else:
        assert next(v for v in spec["volumes"] if v["name"] == "minicluster-view")["image"]["reference"] == image
