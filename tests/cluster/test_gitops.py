"""Rendered manifests on a cluster: applied twice, and synced as Argo CD and Flux CD do."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from autoscaled import agent
from budget import DisruptionBudget
from support import BIN, ROOT, SECRET, Helm, load_all

from tools import tenant
from tools.clients import ProcessError
from tools.releases import Release

#: How Argo CD and Flux CD apply manifests.
APPLY = ("apply", "--server-side", "--force-conflicts", "--field-manager=sync", "--filename=-")
VALUES = {"size": 2, "maxSize": 4, "flux": {"curveCertSecret": "flux-curve"}}
Objects = dict[tuple[str, str], dict[str, Any]]


def run(helm: Helm, *args: object) -> str:
    """Return what `minicluster` prints when it uses this Helm."""
    command = ["minicluster", *map(str, args)]
    env = helm.environment | {"HELM_BIN": str(BIN / helm.name)}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60).stdout


class Synced:
    """A MiniCluster that a folder in git describes."""

    def __init__(self, release: Release, folder: Path) -> None:
        self.release = release
        self.folder = folder
        self.objects: set[tuple[str, str]] = set()
        release.kubectl("create", "--filename=-", stdin=run(release.helm, "keygen", "flux-curve"))

    def render(self, helm: Helm, **values: Any) -> str:
        """Render into the folder and return all manifests."""
        file = self.folder.parent / "values.json"
        file.write_text(json.dumps(tenant.values(VALUES | values, self.release.world)))
        place = ("-n", self.release.namespace, "--output-dir", self.folder)
        run(helm, "template", "mc", "-f", file, *place, "--kube-version", "1.36")
        return "---\n".join(path.read_text() for path in sorted(self.folder.glob("*.yaml")))

    def sync(self, stream: str) -> None:
        """Apply the manifests, then delete the objects that are no longer in them."""
        self.release.kubectl(*APPLY, stdin=stream)
        described = {(d["kind"], d["metadata"]["name"]) for d in load_all(stream)}
        for kind, name in self.objects - described:
            self.release.kubectl("delete", kind.lower(), name)
        self.objects = described

    def live(self) -> Objects:
        """Return the live objects of the manifests, without their status."""
        found = {key: self.release.get(*key) for key in self.objects}
        for item in found.values():
            if item.pop("status", None):
                # resourceVersion also counts changes of the status
                item["metadata"].pop("resourceVersion")
        return found


@pytest.fixture
def synced(release4: Release, tmp_path: Path) -> Synced:
    return Synced(release4, tmp_path / "rendered")


def test_a_second_sync_changes_nothing(synced: Synced, helm3: Helm, helm4: Helm) -> None:
    synced.sync(synced.render(helm4))
    uids = synced.release.running(2)
    before = synced.live()
    maps = {("ConfigMap", f"mc-{name}") for name in ("programs", "programs-slurm", "config")}
    assert set(before) == {*maps, ("Service", "mc"), ("Job", "mc")}
    for helm in (helm4, helm3):
        synced.sync(synced.render(helm))
        assert synced.live() == before
    assert synced.release.running(2) == uids
    certificate = base64.b64decode(synced.release.get("secret", "flux-curve")["data"]["curve.cert"]).decode()
    assert 'secret-key = "' in certificate
    assert SECRET not in certificate


def changes(old: Any, new: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """Return what differs, by path."""
    if isinstance(old, dict) and isinstance(new, dict):
        parts = (changes(old.get(key), new.get(key), f"{path}.{key}") for key in sorted({*old, *new}))
        return {key: value for part in parts for key, value in part.items()}
    return {} if old == new else {path: (old, new)}


def test_a_new_size_in_git_changes_two_fields_of_the_job(synced: Synced, helm4: Helm) -> None:
    synced.sync(synced.render(helm4))
    first = synced.release.running(2)
    before = synced.live()
    synced.sync(synced.render(helm4, size=3))
    assert {index: uid for index, uid in synced.release.running(3).items() if index in first} == first
    after = synced.live()
    for item in (*before.values(), *after.values()):
        for field in ("managedFields", "generation", "resourceVersion"):
            item["metadata"].pop(field, None)
    assert changes(before["Job", "mc"], after["Job", "mc"]) == {
        ".spec.completions": (2, 3),
        ".spec.parallelism": (2, 3),
    }
    assert changes(before["Service", "mc"], after["Service", "mc"]) == {}
    configured = set(changes(before["ConfigMap", "mc-config"], after["ConfigMap", "mc-config"]))
    assert configured == {".data.settings.sh", ".data.agent.json"}


def test_a_sync_leaves_requested_replicas_alone(synced: Synced, helm4: Helm) -> None:
    handled = {"autoscaling": {"enabled": True, "handle": True}}
    synced.sync(synced.render(helm4, **handled))
    synced.release.running(2)
    synced.release.kubectl("scale", "deployment", "mc", "--replicas=4")
    before = synced.live()["Deployment", "mc"]["spec"]
    assert before["replicas"] == 4
    synced.sync(synced.render(helm4, **handled, jobLabels={"a": "b"}))
    assert synced.live()["Deployment", "mc"]["spec"] == before


def test_a_sync_leaves_the_pods_alone_that_are_held(synced: Synced, helm4: Helm, tmp_path: Path) -> None:
    values = {"pod": {"disruptionBudget": True}}
    stream = synced.render(helm4, **values)
    synced.sync(stream)
    DisruptionBudget().hold(agent(synced.release, tmp_path), frozenset({0, 2}), 0, 10)
    before = synced.live()["PodDisruptionBudget", "mc"]["spec"]
    assert before["selector"]["matchExpressions"][0]["values"] == ["0", "2"]
    synced.sync(synced.render(helm4, **values, jobLabels={"a": "b"}))
    # Argo CD without server-side apply
    synced.release.kubectl("apply", "--filename=-", stdin=stream)
    assert synced.live()["PodDisruptionBudget", "mc"]["spec"] == before


def test_a_sync_prunes_objects_that_git_no_longer_has(synced: Synced, helm4: Helm) -> None:
    services = [{"name": "db", "image": "redis"}]
    synced.sync(synced.render(helm4, services=services))
    uids = synced.release.running(2)
    assert synced.release.get("deployment", "mc-services")
    synced.sync(synced.render(helm4))
    with pytest.raises(ProcessError, match="not found"):
        synced.release.get("deployment", "mc-services")
    assert synced.release.running(2) == uids
    synced.sync(synced.render(helm4, services=services))
    assert synced.release.get("deployment", "mc-services")
    assert synced.release.running(2) == uids


def test_a_sync_of_an_immutable_change_is_refused_and_the_pods_go_on(synced: Synced, helm4: Helm) -> None:
    synced.sync(synced.render(helm4))
    uids = synced.release.running(2)
    with pytest.raises(ProcessError, match="field is immutable"):
        synced.sync(synced.render(helm4, shareProcessNamespace=True))
    assert synced.release.running(2) == uids
    # what `argocd app sync --force --replace` does, for this one object
    job = (synced.folder / "job-mc.yaml").read_text()
    synced.release.kubectl("replace", "--force", "--filename=-", stdin=job)
    assert not set(synced.release.running(2).values()) & set(uids.values())


def test_a_sync_does_not_wake_a_cluster_that_sleeps(synced: Synced, helm4: Helm) -> None:
    stream = synced.render(helm4)
    synced.sync(stream)
    synced.release.running(2)
    patch = '{"spec": {"suspend": true}}'
    synced.release.kubectl("patch", "job", "mc", "--field-manager=minicluster-agent", "--patch", patch)
    synced.release.cluster.wait("the end of the pods", lambda: not synced.release.pods())
    synced.sync(stream)
    synced.sync(synced.render(helm4, jobLabels={"a": "b"}))
    assert (synced.release.get("job")["spec"]["suspend"], synced.release.pods()) == (True, [])


def test_a_sync_resets_a_size_set_elsewhere_unless_it_is_ignored(synced: Synced, helm4: Helm) -> None:
    stream = synced.render(helm4)
    synced.sync(stream)
    patch = '{"spec": {"completions": 4, "parallelism": 4}}'
    synced.release.kubectl("patch", "job", "mc", "--field-manager=autoscaler", "--patch", patch)
    synced.release.running(4)
    # RespectIgnoreDifferences: Argo CD applies the live values of the fields that the Application ignores
    application = yaml.safe_load((ROOT / "gitops/argocd/application-autoscaled.yaml").read_text())
    left = stream
    for pointer in application["spec"]["ignoreDifferences"][0]["jsonPointers"]:
        field = pointer.rpartition("/")[2]
        assert f" {field}: 2\n" in left
        left = left.replace(f" {field}: 2\n", f" {field}: 4\n")
    synced.sync(left)
    uids = synced.release.running(4)
    synced.sync(stream)
    assert synced.release.running(2) == {index: uids[index] for index in range(2)}
