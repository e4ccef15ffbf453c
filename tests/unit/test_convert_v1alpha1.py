"""The older API."""

import pytest
from conversion import V1ALPHA1, Case, app, assert_converted, refused

#: A spec, the keys of the values that the conversion sets or changes (None: it is gone), and all warnings
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
    "no longer here": (
        app(fluxUser={"uid": 1}, commands={"runFluxAsRoot": False}) | {"users": [], "fluxRestful": {"port": 1}},
        app(commands={}) | {"users": None, "fluxRestful": None},
        [
            "fluxRestful is dropped: there is no RESTful server: use flux in the pods",
            "containers[0].fluxUser is dropped: everything runs as the pod's user: set pod.securityContext",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_v1alpha1(case: str) -> None:
    assert_converted(*CASES[case])


def test_a_volume_of_a_storage_class_is_an_error() -> None:
    cluster = app(volumes={"v": {"path": "/v"}}) | {"volumes": {"v": {"path": "/h", "storageClass": "gcs"}}}
    assert refused(cluster, version=V1ALPHA1) == (
        "containers[0].volumes.v is of the storage class gcs, whose claim the operator made: make the claim, and give "
        "its name as containers[0].volumes.v.claimName"
    )
