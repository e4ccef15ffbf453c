"""The claims that a release makes: their fields, and the volumes that use them."""

import json
from typing import Any

import pytest
from minicluster.release.helm import version
from renderings import job, pod
from support import Helm, awaiting, by_name, load_all, one

KEEP = {"helm.sh/resource-policy": "keep"}


def claims(text: str) -> dict[str, dict[str, Any]]:
    return {name: item for (kind, name), item in by_name(text).items() if kind == "PersistentVolumeClaim"}


def volume(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"volumes": {"data": {"path": "/d", **fields}}}]}


def test_a_claim_has_each_field_of_its_volume(helm: Helm) -> None:
    fields = {
        "capacity": "5Gi",
        "storageClass": "fast",
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "labels": {"a": "b", "app.kubernetes.io/name": "mine"},
        "annotations": {"c": "y: \"$(X)'", "d": "08"},
        "keep": True,
    }
    assert claims(helm.template(values=volume(**fields))) == {
        "flux-sample-data": {
            "apiVersion": awaiting("v1"),
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "flux-sample-data",
                "namespace": "ns",
                "labels": {
                    "a": "b",
                    "app.kubernetes.io/name": "minicluster",
                    "app.kubernetes.io/instance": "flux-sample",
                    "app.kubernetes.io/managed-by": "Helm",
                    "helm.sh/chart": f"minicluster-{version()}",
                },
                "annotations": {"c": "y: \"$(X)'", "d": "08", **KEEP},
            },
            "spec": {
                "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "5Gi"}},
            },
        }
    }


def test_brokers_services_and_state_use_the_claims_of_their_volumes(helm4: Helm) -> None:
    """Brokers and services share the claim of a volume; the state has a claim too."""
    data = {"path": "/d", "capacity": "1Gi"}
    values = {
        "nameOverride": "other",
        "state": {"capacity": "2Gi"},
        "containers": [{"volumes": {"data": data, "mine": {"path": "/m", "claimName": "mine"}}}],
        "services": [{"name": "s", "volumes": {"data": data, "db": {"path": "/e", "capacity": "3Gi"}}}],
    }
    text = helm4.template(values=values)
    sizes = {name: claim["spec"]["resources"]["requests"]["storage"] for name, claim in claims(text).items()}
    assert sizes == {"other-data": "1Gi", "other-db": "3Gi", "other-state": "2Gi"}
    used = {
        kind: {
            v["name"]: v["persistentVolumeClaim"]["claimName"]
            for v in one(text, kind)["spec"]["template"]["spec"]["volumes"]
            if "persistentVolumeClaim" in v
        }
        for kind in ("Job", "Deployment")
    }
    assert used == {
        "Job": {"minicluster-state": "other-state", "data": "other-data", "mine": "mine"},
        "Deployment": {"data": "other-data", "db": "other-db"},
    }
    mounts = pod(text)["spec"]["containers"][0]["volumeMounts"]
    assert {"name": "minicluster-state", "mountPath": "/mnt/flux/state"} in mounts


def test_the_claim_of_the_state_is_kept_at_uninstall_by_default(helm4: Helm) -> None:
    found = {
        keep: claims(helm4.template(values={"state": {"capacity": "1Gi", "keep": keep}}))["flux-sample-state"]
        for keep in (None, True, False)
    }
    annotations = {keep: claim["metadata"].get("annotations") for keep, claim in found.items()}
    assert annotations == {None: KEEP, True: KEEP, False: None}
    plain = claims(helm4.template(values=volume(capacity="1Gi")))["flux-sample-data"]
    assert "annotations" not in plain["metadata"]


@pytest.mark.parametrize(
    ("sizes", "mode"),
    [({"size": 1}, "ReadWriteOnce"), ({"size": 2}, "ReadWriteMany"), ({"size": 1, "maxSize": 2}, "ReadWriteMany")],
    ids=str,
)
def test_the_access_mode_of_a_claim_follows_the_number_of_pods(helm4: Helm, sizes: dict[str, int], mode: str) -> None:
    values = {
        **sizes,
        **volume(capacity=1),
        "state": {"capacity": 1},
        "services": [{"name": "s", "volumes": {"db": {"path": "/e", "capacity": 1}}}],
    }
    modes = {name: claim["spec"]["accessModes"] for name, claim in claims(helm4.template(values=values)).items()}
    assert modes == {"flux-sample-data": [mode], "flux-sample-state": [mode], "flux-sample-db": ["ReadWriteOnce"]}


@pytest.mark.parametrize(
    ("given", "spec"),
    [({}, {}), ({"storageClass": ""}, {"storageClassName": ""})],
    ids=str,
)
def test_an_empty_storage_class_is_rendered_and_an_unset_one_is_not(
    helm: Helm, given: dict[str, Any], spec: dict[str, Any]
) -> None:
    text = helm.template(values={**volume(capacity="1Gi", **given), "state": {"capacity": "1Gi", **given}})
    for claim in claims(text).values():
        assert {key: value for key, value in claim["spec"].items() if key == "storageClassName"} == spec


def test_no_claim_is_rendered_for_a_volume_without_a_capacity(helm4: Helm) -> None:
    text = helm4.template(values={**volume(claimName="c"), "state": {"claimName": "s"}})
    assert claims(text) == {}
    assert not [document for document in load_all(text) if "claims" in document]


def test_the_job_records_a_claim_without_its_size(helm4: Helm) -> None:
    def recorded(size: str, **more: Any) -> dict[str, str]:
        fields = {"capacity": size, **more}
        values = {**volume(**fields), "state": {"capacity": size}}
        found: dict[str, str] = json.loads(
            job(helm4.template(values=values))["metadata"]["annotations"]["minicluster/immutable"]
        )
        return found

    one_size = recorded("1Gi")
    assert one_size == recorded("2Gi", labels={"a": "b"}, annotations={"c": "d"}, keep=True)
    assert one_size["containers[0].volumes.data.capacity"] == one_size["state.capacity"] == "a claim of the release"
    assert one_size != recorded("1Gi", storageClass="x")
