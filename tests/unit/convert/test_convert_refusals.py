"""A spec that can't be converted is an error of one line."""

from typing import Any

import pytest
from conversion import ONE, V1ALPHA1, V1ALPHA2, app, converted, refused
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from minicluster.convert import convert
from minicluster.errors import MiniClusterError

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"siez": 1} | ONE, "siez is not a field; did you mean size?"),
    (app(comand="x"), "containers[0].comand is not a field; did you mean command?"),
    ({"size": 0} | ONE, "size is 0: must be at least 1"),
    ({"deadlineSeconds": 0} | ONE, "deadlineSeconds is 0: must be at least 1"),
    ({"size": "2"} | ONE, 'size is "2": must be integer'),
    (app(environment={"A": 1}), "containers[0].environment.A is 1: must be string"),
    (app(command="x", commands={"script": "y"}), "containers[0] has command and commands.script: give the one that"),
    (app(command="x", batch=True, launcher=True), "containers[0] has batch and launcher: give the one that fits"),
    (app(commands={"script": "y"}, batch=True), "containers[0].batch is set: its command must be a string, one"),
    (
        app(volumes={"v": {"path": "/v"}}),
        "containers[0].volumes.v has no source: give exactly one of claimName, hostPath, secretName, configMapName, "
        "emptyDir, csiDriver, capacity, image",
    ),
    (app(volumes={"v": {"secretName": "s"}}), "containers[0].volumes.v has no path: say where to mount it"),
    (
        {"services": [{"name": "s", "image": "i", "commands": {"pre": "x"}}]} | ONE,
        "services[0].commands.pre is set",
    ),
    ({"services": [{"image": "i"}]} | ONE, "services[0] has no name: give it one; only the runner needs none"),
    ({"flux": {"brokerConfig": "a b"}} | ONE, "flux.brokerConfig is not TOML: "),
    ({"flux": {"optionFlags": "'"}} | ONE, 'flux.optionFlags is "\'": No closing quotation; close the quote'),
    (
        {"containers": [{"image": "i"}, {"image": "i"}]},
        "containers[0] and containers[1] could each run Flux: set runFlux: true on the one that does",
    ),
]


@pytest.mark.parametrize(("cluster", "message"), REFUSED)
def test_convert_refuses_fields_without_an_equivalent(cluster: dict[str, Any], message: str) -> None:
    assert refused(cluster).removeprefix("MiniCluster a: ").startswith(message)


KEYS = (
    *("containers", "services", "flux", "pod", "commands", "command", "script", "volumes", "v", "emptyDir", "name"),
    *("bursting", "clusters", "leadBroker", "scheduler", "container", "environment", "resources", "limits", "cpu"),
    *("existingVolumes", "runFlux", "image"),
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["", "a", "$X"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(JUNK, st.sampled_from([V1ALPHA1, V1ALPHA2]))
@example({"containers": [{"volumes": {"v": 1}}], "volumes": 1}, V1ALPHA1)
def test_convert_refuses_any_other_spec_in_one_line(junk: object, version: str) -> None:
    try:
        converted(junk, version=version)
    except MiniClusterError as error:
        assert len(str(error).splitlines()) == 1


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=60))
def test_convert_refuses_arbitrary_bytes_in_one_line(data: bytes) -> None:
    with pytest.raises(MiniClusterError) as error:
        convert(data)
    assert len(str(error.value).splitlines()) == 1
