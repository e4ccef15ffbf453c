"""What rights an installation needs, and which namespaces admit its pods."""

import pytest
import yaml
from simulated import live, new_namespace
from support import ROOT, Helm, lines_with

from tools import tenant
from tools.clients import ProcessError
from tools.releases import Release


def test_the_role_edit_in_the_namespace_is_enough_for_a_release(user: Helm, release: Release) -> None:
    release.helm = user
    assert lines_with(release.refuse(command="install"), "forbidden")
    release.cluster.grant(release.namespace, "edit")
    live(release)
    release.cluster.wait("nothing", lambda: [o["kind"] for o in release.items()] == ["RoleBinding"])


@pytest.mark.any_helm
@pytest.mark.parametrize("mode", ["image", "copy"])
def test_a_restricted_namespace_admits_the_example(connected: Helm, release: Release, mode: str) -> None:
    example = ROOT / "values-examples" / "restricted.yaml"
    if not example.exists():
        pytest.skip("there is no values-examples/restricted.yaml")
    values = yaml.safe_load(example.read_text())
    namespace = new_namespace(release.cluster, tenant.SHARED.without("labels"))
    restricted = Release(connected, release.cluster, namespace)
    restricted.install("--set", f"flux.container.mode={mode}", **values)
    restricted.running(values["size"])
    with_defaults = Release(connected, release.cluster, namespace, name="baseline")
    with_defaults.install(size=1)
    release.cluster.wait(
        "a refusal", lambda: "violates PodSecurity" in release.cluster.kubectl("events", "--namespace", namespace)
    )


@pytest.mark.any_helm
def test_a_baseline_namespace_admits_the_defaults(connected: Helm, release: Release) -> None:
    namespace = new_namespace(release.cluster, tenant.ROOT_PODS.without("labels"))
    baseline = Release(connected, release.cluster, namespace)
    baseline.install(size=2)
    baseline.running(2)


def test_an_install_reads_nothing_outside_its_namespace(user: Helm, release: Release) -> None:
    # an installation that reads outside of its namespace would fail here
    release.cluster.grant(release.namespace, "edit")
    with pytest.raises(ProcessError, match="cannot list resource"):
        release.cluster.kubectl("get", "jobs", "--all-namespaces", "--as=user")
    release.helm = user
    release.install()
