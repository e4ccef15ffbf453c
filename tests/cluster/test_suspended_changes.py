"""What Kubernetes lets a suspended Job change in place: resources, and where its pods may run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.releases import Release

pytestmark = pytest.mark.without("limits", "quota", why="its pods ask for what decides, or for nothing")

CPUS = {"requests": {"cpu": "3", "memory": "1Gi"}, "limits": {"cpu": "3"}}
WHERE: dict[str, Any] = {
    "nodeSelector": {"pool": "big"},
    "tolerations": [{"key": "spot", "operator": "Exists"}],
    "nodeAffinity": {"kubernetes.io/os": ["linux"]},
    "labels": {"team": "a"},
    "annotations": {"example.com/note": "b"},
}
VALUES: dict[str, Any] = {"size": 2, "interactive": True, "archive": {"path": "/tmp/state.tgz"}, "containers": [{}]}


def template(release: Release, name: str = "mc") -> dict[str, Any]:
    """Return what a suspended Job may change, of its pod template."""
    found = release.get("job", name)["spec"]["template"]
    spec, metadata = found["spec"], found["metadata"]
    affinity = spec["affinity"].get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    return {
        "nodeSelector": spec.get("nodeSelector", {}),
        "tolerations": spec.get("tolerations", []),
        "nodeAffinity": {e["key"]: e["values"] for t in affinity.values() for m in t for e in m["matchExpressions"]},
        "labels": {key: text for key, text in metadata["labels"].items() if key == "team"},
        "annotations": {key: text for key, text in metadata["annotations"].items() if key == "example.com/note"},
        "resources": spec["containers"][0].get("resources", {}),
    }


def uid(release: Release) -> str:
    found: str = release.get("job")["metadata"]["uid"]
    return found


def setting(release: Release, name: str) -> str:
    lines: list[str] = release.get("configmap", "mc-config")["data"]["settings.sh"].splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith(f"{name}="))


def test_a_suspended_minicluster_changes_in_place(release: Release) -> None:
    release.install(**VALUES, suspend=True)
    was, before, certificate = template(release), uid(release), release.certificate()
    release.upgrade(pod=WHERE, containers=[{"resources": CPUS}])
    assert template(release) == {**WHERE, "resources": CPUS}
    assert (uid(release), release.certificate(), setting(release, "mc_cpus")) == (before, certificate, "3")
    # the record of the Job is the new one
    assert release.run("upgrade", "--dry-run=server").code == 0
    release.upgrade(suspend=False, pod={**WHERE, "nodeSelector": {}})
    release.running(2)
    assert template(release) == {**WHERE, "nodeSelector": {}, "resources": CPUS}
    assert "pod.nodeSelector.pool can't change on the live MiniCluster mc" in release.refuse(pod=WHERE)
    # suspended again, after it ran
    release.upgrade(suspend=True)
    release.cluster.wait("the end of the pods", lambda: not release.pods())
    release.values |= {"pod": {}, "containers": [{}]}
    release.upgrade()
    assert (template(release), uid(release), setting(release, "mc_cpus")) == (was, before, "''")
    release.ok("rollback", 2)
    assert template(release) == {**WHERE, "resources": CPUS}
    assert "containers[0].image can't change on the live" in release.refuse(containers=[{"image": "ubuntu:jammy"}])


@pytest.mark.any_helm
def test_the_jobs_of_groups_change_when_all_are_suspended(release: Release) -> None:
    group = {"name": "gpu", "size": 1, "cores": 2}
    release.install(**VALUES, suspend=True, groups=[group])
    release.upgrade(groups=[{**group, "resources": CPUS, "pod": {"nodeSelector": {"pool": "gpu"}}}])
    found = template(release, "mc-gpu")
    assert (found["resources"], found["nodeSelector"]) == (CPUS, {"pool": "gpu"})
    assert template(release)["resources"] == {}
    assert "gpu 3 " in release.get("configmap", "mc-config")["data"]["settings.sh"]
    release.upgrade(suspend=False)
    release.running(2)
    assert "groups[0].pod.nodeSelector.pool can't change on" in release.refuse(groups=[group])


@pytest.mark.any_helm
def test_an_older_kubernetes_is_named(release: Release, copy_of_chart: Callable[..., Path]) -> None:
    release.chart = copy_of_chart(
        {"templates/common/_version.tpl": {'"suspendedChanges" "1.36"': '"suspendedChanges" "1.99"'}}
    )
    release.install(**VALUES, suspend=True)
    # where the pods may run can change before they ever ran
    release.upgrade(pod=WHERE)
    assert template(release)["nodeSelector"] == {"pool": "big"}
    said = release.refuse(containers=[{"resources": CPUS}])
    assert "asked is 3; Kubernetes 1.99 can change it while the MiniCluster is suspended, this is v1." in said
    replace = f"`minicluster replace mc -n {release.namespace}`"
    assert f"; {replace} makes its Job anew and keeps the queue; or uninstall mc first" in said
