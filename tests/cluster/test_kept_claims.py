"""The claims of a release: how they end with it, how the next release takes them over, and how they grow."""

from collections.abc import Iterator
from typing import Any

import pytest
from support import lines_with

from tools.releases import Release

pytestmark = pytest.mark.any_helm

#: A class without a provisioner, whose volumes may grow
CLASS = "grows"


def values(**state: Any) -> dict[str, Any]:
    data = {"path": "/data", "capacity": "1Gi", "storageClass": CLASS}
    return {"state": {"capacity": "1Gi", "storageClass": CLASS, **state}, "containers": [{"volumes": {"data": data}}]}


@pytest.fixture
def offered(release: Release) -> Iterator[Release]:
    """The release, with a class and a volume for each of its claims."""
    claims = ("mc-state", "mc-data")
    names = [f"{release.namespace}-{claim}" for claim in claims]
    metadata, provisioner = {"name": CLASS}, {"provisioner": "kubernetes.io/no-provisioner"}
    storage_class = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, **provisioner}
    volumes = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "5Gi"},
                "storageClassName": CLASS,
                "hostPath": {"path": "/none"},
                "claimRef": {"namespace": release.namespace, "name": claim},
            },
        }
        for name, claim in zip(names, claims, strict=True)
    ]
    release.cluster.create({**storage_class, "allowVolumeExpansion": True}, *volumes)
    yield release
    release.cluster.kubectl("delete", "storageclass", CLASS)
    release.cluster.kubectl("delete", "persistentvolume", *names, "--wait=false")


def claims(release: Release) -> dict[str, tuple[str, str, str]]:
    """Return UID, requested size and class of each claim that stays, by name."""
    found = release.items("persistentvolumeclaims")
    return {
        item["metadata"]["name"]: (
            item["metadata"]["uid"],
            item["spec"]["resources"]["requests"]["storage"],
            item["spec"].get("storageClassName", "(none)"),
        )
        for item in found
        if "deletionTimestamp" not in item["metadata"]
    }


def bound(release: Release) -> bool:
    return all(item["status"]["phase"] == "Bound" for item in release.items("persistentvolumeclaims"))


def test_claims_grow_and_the_state_claim_outlives_the_release(offered: Release) -> None:
    release = offered
    release.install(size=1, **values())
    first = claims(release)
    assert {name: fields[1:] for name, fields in first.items()} == {
        "mc-data": ("1Gi", CLASS),
        "mc-state": ("1Gi", CLASS),
    }
    release.cluster.wait("bound claims", lambda: bound(release))
    # a larger request is passed on; a smaller one is refused, as any other change that a claim does not allow
    pods = release.running(1)
    release.upgrade(**values(capacity="2Gi"))
    assert claims(release)["mc-state"] == (first["mc-state"][0], "2Gi", CLASS)
    assert release.running(1) == pods
    text = release.refuse(**values(capacity="1Gi"))
    assert lines_with(text, "state.capacity is 1Gi, the claim mc-state has 2Gi: a claim can't shrink; ")
    text = release.refuse(state={})
    assert lines_with(text, "state.capacity can't change on the live MiniCluster mc: it is a claim of the release, ")
    # the state stays, the data goes
    release.ok("uninstall", "--wait")
    release.cluster.wait("the end of the pods", lambda: not release.pods())
    release.cluster.wait("the end of a claim", lambda: set(claims(release)) == {"mc-state"})
    # the next release uses it again, and can't change its fields
    text = release.refuse(command="install", **values(accessModes=["ReadWriteMany"], capacity="2Gi"))
    assert lines_with(text, "state.accessModes is ReadWriteMany, the claim mc-state has ReadWriteOnce: ")
    text = release.refuse(command="install", **values(storageClass="other", capacity="2Gi"))
    assert lines_with(text, f"state.storageClass is other, the claim mc-state has {CLASS}: that is immutable; ")
    release.values = {}
    release.install(maxSize=3, state={"capacity": "3Gi"})
    assert claims(release) == {"mc-state": (first["mc-state"][0], "3Gi", CLASS)}
    release.running(1)


def test_an_install_refuses_a_claim_of_somebody_else(release4: Release) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "mc-state", "namespace": release4.namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    release4.cluster.create(claim)
    text = release4.refuse(command="install", state={"capacity": "1Gi"})
    assert lines_with(text, "cannot be imported into the current release: invalid ownership metadata")


def test_an_install_is_refused_while_its_claim_is_being_deleted(release4: Release) -> None:
    values = {"state": {"capacity": "1Gi", "keep": False}}
    release4.install(**values)
    release4.kubectl("patch", "pvc", "mc-state", "--patch", '{"metadata":{"finalizers":["example.com/stay"]}}')
    release4.ok("uninstall")
    text = release4.refuse(command="install", **values)
    assert lines_with(text, "state: the claim mc-state is being deleted: wait until it is gone")
    release4.kubectl("patch", "pvc", "mc-state", "--patch", '{"metadata":{"finalizers":null}}')
    release4.cluster.wait("its end", lambda: not release4.items("persistentvolumeclaims"))
    release4.install(**values)
