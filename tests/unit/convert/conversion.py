"""Conversions of one MiniCluster, named a."""

from typing import Any

import pytest
from minicluster.convert import convert
from minicluster.documents import yamlio
from minicluster.errors import MiniClusterError

V1ALPHA2 = "flux-framework.org/v1alpha2"
V1ALPHA1 = "flux-framework.org/v1alpha1"
#: flux-operator's own defaults, which are written out for a spec that has neither logging nor flux
WRITTEN = {"logging": {"strict": False}, "flux": {"connectTimeout": ""}}
ONE = {"containers": [{"image": "i"}]}
Case = tuple[dict[str, Any], dict[str, Any], list[str]]


def document(cluster: Any, name: str = "a", version: str = V1ALPHA2, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "MiniCluster", "metadata": {"name": name} | metadata, "spec": cluster}


def converted(cluster: Any, **fields: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the values and the warnings, without the cluster's name."""
    (values,), _ = convert(yamlio.dump(document(cluster, **fields)))
    return yamlio.load(values.text), [warning.removeprefix("MiniCluster a: ") for warning in values.warnings]


def refused(cluster: Any, **fields: Any) -> str:
    with pytest.raises(MiniClusterError) as error:
        converted(cluster, **fields)
    assert "\n" not in str(error.value)
    return str(error.value)


def app(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"image": "i"} | fields]}


def pair(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"image": "i", "runFlux": True}, {"image": "i", "name": "s"} | fields]}


def assert_converted(cluster: dict[str, Any], changes: dict[str, Any], warnings: list[str]) -> None:
    """Compare all values and warnings; ``changes`` are the values that differ from the spec, None for removed ones."""
    cluster = ONE | cluster
    values, found = converted(cluster)
    expected = {key: value for key, value in (WRITTEN | cluster | changes).items() if value is not None}
    if "logging" not in changes:
        expected["logging"] = {"strict": False}
    assert values == expected
    assert found == warnings
