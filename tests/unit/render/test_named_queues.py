"""The queues with names in broker.toml."""

import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from minicluster.render import broker
from minicluster.render.model import MiniClusterModel

GROUP = [{"name": "gpu", "size": 2, "cores": 4}]
FULL = {"group": "gpu", "default": True, "limits": {"duration": "30m", "nodes": 2, "cores": 8, "gpus": 4}}


@pytest.mark.parametrize(
    ("queues", "tables", "default"),
    [
        ({"all": {}}, {"all": {}}, "all"),
        ({"all": {"limits": {"gpus": 0}}}, {"all": {"policy": {"limits": {"job-size": {"max": {"ngpus": 0}}}}}}, "all"),
        (
            {"slow": {}, "gpu": FULL},
            {
                "gpu": {
                    "requires": ["gpu"],
                    "policy": {
                        "limits": {"duration": "30m", "job-size": {"max": {"nnodes": 2, "ncores": 8, "ngpus": 4}}},
                        # a job without a limit would be refused
                        "jobspec": {"defaults": {"system": {"duration": "30m"}}},
                    },
                },
                "slow": {},
            },
            "gpu",
        ),
    ],
)
def test_queues_are_tables_of_broker_toml(
    cluster_of: Callable[[dict[str, Any]], MiniClusterModel], queues: Any, tables: Any, default: str
) -> None:
    config = tomllib.loads(broker.config(cluster_of({"flux": {"queues": queues}, "groups": GROUP})))
    assert config["queues"] == tables
    assert config["policy"] == {"jobspec": {"defaults": {"system": {"queue": default}}}}
