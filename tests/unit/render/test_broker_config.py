"""A broker.toml of the user: each value of which ours is made is refused beside it, for it would be hidden."""

import re
from typing import Any

import pytest
from minicluster.errors import SpecError
from minicluster.render import broker
from minicluster.render.refusals.flux import COMPARED
from support import CHART, nested

LEAD = {"name": "root", "address": "10.0.0.1", "size": 3}
#: A value of each field of which broker.toml is made, and what must be beside it
VALUES: dict[str, Any] = {
    "groups": [{"name": "gpu", "cores": 1}],
    "state.syncSeconds": 5,
    "flux.locations": True,
    "flux.queues": {"all": {}},
    "flux.keptJobs": 300,
    # what Flux has by default is another one
    "flux.scheduler.queuePolicy": "easy",
    "flux.scheduler.matchPolicy": "lonode",
    "flux.scheduler.simple": True,
    "flux.bursting.clusters": [{"name": "b0", "size": 4}],
    "flux.bursting.leadBroker": LEAD,
    "flux.bursting.hostlist": "flux-sample-0,other-[0-3]",
    "network.clusterDomain": "k8s.example",
    "network.interface": "eth1",
}
BESIDE = {"flux.bursting.leadBroker": {"clusters": [{"name": "flux-sample", "size": 1}]}}
#: They change nothing of broker.toml: what is in it keeps the state in any case
CLAIM = ("state.claimName",)


def lands_in_broker_toml() -> set[str]:
    """Return the fields whose comment in values.yaml has an arrow to broker.toml, without those inside of fields."""
    found, path = set(), [""]
    for line in (CHART / "values.yaml").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"( *)(\w+):", line):
            path = [*path[: len(match[1]) // 2], match[2]]
            if "`broker.toml`" in line.partition("# →")[2]:
                found.add(".".join(path))
    return found


def test_each_field_that_lands_in_broker_toml_is_refused_or_compared() -> None:
    of_text = set(COMPARED) - {"size", "pod.hostNetwork"}
    assert lands_in_broker_toml() - {"flux.brokerConfig"} == {*VALUES, *of_text, *CLAIM}


@pytest.mark.parametrize("path", VALUES)
def test_a_value_that_a_broker_config_would_hide_is_refused(cluster_of: Any, path: str) -> None:
    values = nested(path.split("."), VALUES[path])
    flux = values.setdefault("flux", {})
    flux.setdefault("bursting", {}).update(BESIDE.get(path, {}))
    assert cluster_of(values), "it is valid by itself"
    flux["brokerConfig"] = "a = 1"
    with pytest.raises(SpecError) as caught:
        cluster_of(values)
    first = "flux.bursting.clusters" if path in BESIDE else path
    message = f"{first} and flux.brokerConfig are both set: brokerConfig is used as given; set it there"
    assert str(caught.value) == f"MiniCluster flux-sample: {message}"


def test_values_beside_a_broker_config_that_do_not_make_it_are_taken(cluster_of: Any) -> None:
    values = {"size": 2, "tasks": 4, "flux": {"brokerConfig": "a = 1", "topology": "kary:4", "logLevel": 7}}
    assert broker.config(cluster_of(values)) == "a = 1"


@pytest.mark.parametrize("state", [{"claimName": "c"}, {"capacity": "1Gi"}], ids=str)
@pytest.mark.parametrize("text", ["a = 1", "# nothing", "kvs = 3", "[kvs]\na = 1"])
def test_a_state_that_is_kept_without_checkpoints_is_refused(cluster_of: Any, state: dict[str, str], text: str) -> None:
    with pytest.raises(SpecError) as caught:
        cluster_of({"state": state, "flux": {"brokerConfig": text}})
    assert str(caught.value) == (
        "MiniCluster flux-sample: flux.brokerConfig has no checkpoint-period in kvs, and "
        f"state.{next(iter(state))} is to keep the queue of a killed lead: "
        'write checkpoint-period = "0.02s" there'
    )


def test_a_state_that_is_kept_with_checkpoints_of_the_users_own_is_taken(cluster_of: Any) -> None:
    text = '[kvs]\ncheckpoint-period = "5s"\n'
    assert cluster_of({"state": {"claimName": "c"}, "flux": {"brokerConfig": text}})
