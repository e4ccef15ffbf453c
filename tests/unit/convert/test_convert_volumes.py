"""Volumes, as flux-operator made and mounted them."""

from itertools import combinations
from typing import Any

import pytest
from conversion import ONE, Case, app, assert_converted, converted

#: A spec, the values that the conversion sets or changes (None: removed), and all warnings
CASES: dict[str, Case] = {
    "an emptyDir is at /dev/shm": (
        app(volumes={"v": {"emptyDir": True, "path": "/v", "readOnly": True, "emptyDirMedium": "Memory"}}),
        app(volumes={"v": {"emptyDir": True}}),
        [
            "containers[0].volumes.v.path is dropped: flux-operator mounts an emptyDir at /dev/shm",
            "containers[0].volumes.v.readOnly is dropped: flux-operator mounts an emptyDir writable",
            "containers[0].volumes.v.emptyDirMedium is dropped: flux-operator knows only memory, in lower case",
        ],
    ),
    "the first source counts": (
        app(volumes={"v": {"path": "/v", "claimName": "c", "secretName": "s", "items": {"a": "b"}}}),
        app(volumes={"v": {"path": "/v", "secretName": "s"}}),
        [
            "containers[0].volumes.v.claimName is dropped: flux-operator used secretName",
            "containers[0].volumes.v.items is dropped: flux-operator used secretName",
        ],
    ),
    "a secret at /dev/shm": (
        app(volumes={"v": {"path": "/v", "secretName": "s", "emptyDir": True}}),
        app(volumes={"v": {"path": "/dev/shm", "secretName": "s"}}),
        ["containers[0].volumes.v.emptyDir is dropped: flux-operator used secretName"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_convert_translates_volumes(case: str) -> None:
    assert_converted(*CASES[case])


#: The order in which flux-operator looks for the source of a volume (getExistingVolumes)
ORDER = ("csiDriver", "secretName", "emptyDir", "hostPath", "configMapName", "claimName")


@pytest.mark.parametrize(("used", "other"), list(combinations(ORDER, 2)))
def test_convert_keeps_the_first_of_two_sources_of_a_volume(used: str, other: str) -> None:
    volume: dict[str, Any] = {key: "/x" if key == "hostPath" else "x" for key in (other, used)}
    volume |= {"emptyDir": True} if "emptyDir" in volume else {}
    values, warnings = converted(ONE | app(volumes={"v": {"path": "/dev/shm", **volume}}))
    assert values["containers"][0]["volumes"]["v"] == {"path": "/dev/shm", used: volume[used]}
    assert warnings == [f"containers[0].volumes.v.{other} is dropped: flux-operator used {used}"]
