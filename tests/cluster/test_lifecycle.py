"""Install, scale, upgrade, roll back and remove, with both Helms."""

import base64
import json
import re
from typing import Any

import pytest
from minicluster.render.load import load
from support import GROUP, SECRET, lines_with

from tools.releases import Release


def test_install_creates_the_objects_and_starts_the_pods(release: Release) -> None:
    done = release.install(size=3, containers=[{"command": "echo hello world"}])
    release.running(3)
    assert set(release.objects()) == {
        ("Job", "mc"),
        ("Service", "mc"),
        ("ConfigMap", "mc-programs"),
        ("ConfigMap", "mc-programs-slurm"),
        ("ConfigMap", "mc-config"),
        ("Secret", "mc-curve"),
    }
    job, service = release.get("job")["spec"], release.get("service")
    assert (job["completions"], job["parallelism"], job["completionMode"]) == (3, 3, "Indexed")
    assert job["successPolicy"] == {"rules": [{"succeededIndexes": "0"}]}
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    data = release.get("configmap", "mc-config")["data"]
    assert data["command"] == "echo hello world"
    certificate = base64.b64decode(release.certificate()).decode()
    assert re.search(r'public-key = "\S{40}"\n    secret-key = "\S{40}"\n$', certificate)
    for index, pod in release.live_pods().items():
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == (f"mc-{index}", "mc")
    for command in ("logs mc", "wait mc", "-- resource list", "jobs mc", "scale mc N", "helm uninstall mc"):
        assert lines_with(done.out, command)
    assert release.revisions() == [(1, "deployed")]
    release.cluster.wait("addresses", lambda: addresses(release) == {"mc-0", "mc-1", "mc-2"})


def addresses(release: Release) -> set[str]:
    """Return the names under which brokers have an address."""
    slices = release.items("endpointslices")
    mine = [s for s in slices if s["metadata"]["labels"]["kubernetes.io/service-name"] == "mc"]
    return {endpoint.get("hostname") for s in mine for endpoint in s.get("endpoints") or []}


def test_an_install_without_the_post_renderer_creates_nothing(release: Release) -> None:
    for args in ((), ("--dry-run=server",)):
        done = release.run("install", *args, post=False)
        assert done.code != 0
        assert f'no matches for kind "Job" in version "{GROUP}/batch.v1"' in done.err
        assert "add--post-renderer-minicluster" in done.err
        assert release.items() == []


def spec_without(release: Release, *fields: str) -> dict[str, Any]:
    spec = release.get("job")["spec"]
    return {key: value for key, value in spec.items() if key not in fields}


def test_scaling_restarts_nothing_and_uninstall_removes_all_objects(release: Release) -> None:
    release.install(size=2, maxSize=4, containers=[{"command": "sleep inf"}])
    first = release.running(2)
    spec = spec_without(release, "completions", "parallelism")
    certificate = release.certificate()
    generation = release.get("job")["metadata"]["generation"]
    release.upgrade(size=4)
    grown = release.running(4)
    assert {index: grown[index] for index in first} == first
    assert release.get("job")["metadata"]["generation"] == generation + 1
    release.upgrade("--reuse-values", size=3)
    shrunk = release.running(3)
    assert shrunk == {index: grown[index] for index in range(3)}
    assert spec_without(release, "completions", "parallelism") == spec
    assert (release.get("job")["spec"]["completions"], release.get("job")["spec"]["parallelism"]) == (3, 3)
    assert release.certificate() == certificate
    settings = release.get("configmap", "mc-config")["data"]["settings.sh"]
    assert "\nmc_size=3\n" in settings
    assert "\nmc_max_size=4\n" in settings
    release.ok("uninstall", "--wait")
    release.cluster.wait("nothing", lambda: release.items() == [])


@pytest.mark.any_helm
def test_scaling_needs_no_value_but_the_size(release: Release) -> None:
    # no --reuse-values and no maxSize: the live cluster's is kept
    release.install(size=1, maxSize=3)
    first = release.running(1)
    release.values = {}
    release.upgrade(size=3)
    assert release.running(3)[0] == first[0]


def test_two_upgrades_with_unchanged_values_change_nothing(release: Release) -> None:
    release.install(
        size=2,
        maxSize=4,
        containers=[{"command": "echo\nhello", "environment": {"A": "$b"}, "resources": {"limits": {"cpu": 1.5}}}],
        jobLabels={"a": "b"},
        pod={"securityContext": {"fsGroup": 1000660000}, "terminationGracePeriodSeconds": 0, "nodeSelector": {}},
    )
    uids = release.running(2)
    release.cluster.wait("the Job's count of its pods", lambda: release.get("job")["status"].get("ready") == 2)
    before = release.objects()
    release.upgrade()
    assert release.objects() == before
    # a first upgrade applies the whole spec, with the fields that Kubernetes set, so Helm 4 owns these from then on
    version = release.get("job")["metadata"]["resourceVersion"]
    release.upgrade("--reuse-values")
    assert release.objects() == before
    assert release.get("job")["metadata"]["resourceVersion"] == version
    assert release.running(2) == uids


#: One that the schema refuses, one of the post-renderer, and one of the chart
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 0}, "- at '/size': minimum: got 0, want 1"),
        ({"flux": {"curveCert": SECRET}}, "flux.curveCert is not a CURVE certificate"),
        ({"nameOverride": "a" * 62}, "64 characters: 63 are allowed; shorten nameOverride"),
    ],
    ids=str,
)
def test_an_install_with_a_wrong_value_creates_nothing(release: Release, values: dict[str, Any], message: str) -> None:
    text = release.refuse(command="install", **values)
    assert len(lines_with(text, message)) == 1
    assert SECRET not in text
    assert release.items() == []


@pytest.mark.any_helm
def test_a_name_that_begins_with_a_digit_installs(release: Release) -> None:
    """Older clusters refuse such a name for a Service (RelaxedServiceNameValidation)."""
    name = "0"
    release.install(nameOverride=name)
    release.name = name
    assert set(release.objects()) == {
        ("Job", name),
        ("Service", name),
        ("ConfigMap", "mc-programs"),
        ("ConfigMap", "mc-programs-slurm"),
        ("ConfigMap", f"{name}-config"),
        ("Secret", f"{name}-curve"),
    }
    release.running(1)
    assert release.live_pods()[0]["spec"]["hostname"] == f"{name}-0"


def test_an_upgrade_with_a_wrong_value_or_without_the_post_renderer_changes_nothing(release: Release) -> None:
    release.install(size=2, maxSize=4)
    release.running(2)
    before = release.objects()
    assert lines_with(release.refuse(size=0), "- at '/size': minimum: got 0, want 1")
    assert lines_with(release.refuse(minSize=3), "MiniCluster mc: minSize is 3, size 2")
    message = "MiniCluster mc: size is 5, maxSize 4: lower size, or install with a larger maxSize"
    assert lines_with(release.refuse(size=5), message)
    done = release.run("upgrade", values={"size": 3}, post=False)
    assert done.code != 0
    assert GROUP in done.err
    assert release.objects() == before
    assert release.revisions()[0] == (1, "deployed")


@pytest.mark.any_helm
def test_helm_get_values_of_a_release_loads_as_its_spec(release: Release) -> None:
    release.install(size=2, tasks=4, flux={"logLevel": 3})
    values = json.loads(release.ok("get values", "--output", "json", "--all"))
    made = load({"metadata": {"name": "mc"}, "spec": values})
    assert (made.size, made.spec["tasks"], made.flux["logLevel"]) == (2, 4, 3)
