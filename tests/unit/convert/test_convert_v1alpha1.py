"""The older API."""

import pytest
from conversion import V1ALPHA1, Case, app, assert_converted, converted, refused

NEW = "containers[0].volumes.v is a new volume here, which the storage class makes: v1alpha1 made it from the values"
#: A spec, the values that the conversion sets or changes (None: removed), and all warnings
CASES: dict[str, Case] = {
    "volumes as v1alpha1 had them": (
        app(volumes={"v": {"path": "/v"}}, existingVolumes={"w": {"path": "/w", "claimName": "c"}})
        | {"volumes": {"v": {"path": "/host", "storageClass": "hostpath"}, "unused": {"path": "/u"}}},
        app(volumes={"v": {"path": "/v", "hostPath": "/host"}, "w": {"path": "/w", "claimName": "c"}})
        | {"volumes": None},
        [
            "containers[0].volumes.v is the host's folder itself: v1alpha1 made a claim and a volume",
            "containers[0].existingVolumes are volumes here",
        ],
    ),
    "a volume of a storage class": (
        app(volumes={"v": {"path": "/v", "readOnly": True}})
        | {"volumes": {"v": {"path": "/h", "storageClass": "gcs"}}},
        app(
            volumes={
                "v": {
                    "path": "/v",
                    "readOnly": True,
                    "capacity": "5Gi",
                    "storageClass": "gcs",
                    "accessModes": ["ReadWriteMany"],
                }
            }
        )
        | {"volumes": None},
        [NEW],
    ),
    "all fields of a volume of a storage class": (
        app(volumes={"v": {"path": "/v"}})
        | {
            "volumes": {
                "v": {
                    "path": "/h",
                    "storageClass": "csi-gcs",
                    "driver": "gcs.csi.ofek.dev",
                    "capacity": "25Gi",
                    "labels": {"type": "remote"},
                    "annotations": {"provider.svc/attribute": "value"},
                    "claimAnnotations": {"gcs.csi.ofek.dev/location": "us-central1"},
                    "attributes": {"mounter": "geesefs"},
                    "secret": "csi-gcs-secret",
                    "secretNamespace": "default",
                    "delete": False,
                }
            }
        },
        app(
            volumes={
                "v": {
                    "path": "/v",
                    "capacity": "25Gi",
                    "storageClass": "csi-gcs",
                    "accessModes": ["ReadWriteMany"],
                    "labels": {"type": "remote"},
                    "annotations": {"gcs.csi.ofek.dev/location": "us-central1"},
                    "keep": True,
                }
            }
        )
        | {"volumes": None},
        [
            NEW,
            *(
                f"volumes.v.{key} is dropped: it belongs in the storage class"
                for key in ("driver", "attributes", "secret", "secretNamespace", "annotations")
            ),
        ],
    ),
    "fields without an equivalent": (
        app(fluxUser={"uid": 1}, commands={"runFluxAsRoot": False}) | {"users": [], "fluxRestful": {"port": 1}},
        app(commands={}) | {"users": None, "fluxRestful": None},
        [
            "fluxRestful is dropped: no RESTful server is built in: docs/how-to/serve-an-http-api.md has one",
            "containers[0].fluxUser is dropped: everything runs as the pod's user: set pod.securityContext",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_convert_translates_v1alpha1(case: str) -> None:
    assert_converted(*CASES[case])


@pytest.mark.parametrize("key", ["volumeHandle", "volumeName"])
def test_convert_refuses_v1alpha1_volumes_of_existing_storage(key: str) -> None:
    definition = {"path": "/h", "storageClass": "gcs", key: "bucket/path"}
    cluster = app(volumes={"v": {"path": "/v"}}) | {"volumes": {"v": definition}}
    assert refused(cluster, version=V1ALPHA1) == (
        f"volumes.v.{key} names storage that exists, bucket/path: make a PersistentVolume and a claim for it, and give "
        "the claim's name as containers[0].volumes.v.claimName"
    )


def test_a_field_that_moved_does_not_override_the_new_one_without_a_word() -> None:
    both = app(fluxLogLevel=7, fluxOptionFlags="-a") | {"flux": {"logLevel": 5, "optionFlags": "-a"}}
    values, warnings = converted(both, version=V1ALPHA1)
    assert (values["flux"]["logLevel"], values["flux"]["optionFlags"]) == (5, "-a")
    assert warnings[:2] == [
        "containers[0].fluxOptionFlags is flux.optionFlags here",
        "containers[0].fluxLogLevel is dropped: flux.logLevel has another value",
    ]


def test_two_volumes_of_one_name_are_refused() -> None:
    volume = {"path": "/v", "claimName": "c"}
    assert refused(app(volumes={"v": volume}, existingVolumes={"v": volume})) == (
        "containers[0] has v in volumes and in existingVolumes: rename one"
    )
