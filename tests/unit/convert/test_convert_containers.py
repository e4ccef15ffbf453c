"""Fields of containers, sidecars and services."""

import pytest
from conversion import Case, app, assert_converted, pair
from minicluster.convert import containers

BATCH = "containers[0].batch numbers the files of its jobs from 1: flux-operator began at 0 and counted blank lines"

#: A spec, the values that the conversion sets or changes (None: removed), and all warnings
CASES: dict[str, Case] = {
    "an image of its own": (
        {"containers": [{"command": "x"}]},
        {"containers": [{"command": "x", "image": containers.IMAGE}]},
        [],
    ),
    "the runner has the cluster's name": (
        app(name="n"),
        app(),
        ["containers[0].name is dropped: flux-operator gave this container the cluster's name"],
    ),
    "the runner is wrapped": (
        app(noWrapEntrypoint=True),
        app(),
        ["containers[0].noWrapEntrypoint is dropped: Flux is this container's entrypoint"],
    ),
    "interactive runs no command": (
        app(command="x", batch=True) | {"interactive": True},
        app() | {"interactive": True},
        [
            "containers[0].command is dropped: interactive is true, so flux-operator did not run it; to run it, drop "
            "interactive instead",
            "containers[0].batch is dropped: there is no command to run",
        ],
    ),
    "a launcher without a command": (
        app(launcher=True),
        app(),
        ["containers[0].launcher is dropped: there is no command to run"],
    ),
    "raw without batch": (
        app(command="x", batchRaw=True),
        app(command="x"),
        ["containers[0].batchRaw is dropped: batch is not set"],
    ),
    "a device that Flux doesn't count": (
        app(resources={"limits": {"example.com/npu": 1}}),
        {},
        [
            "containers[0].resources.limits.example.com/npu looks like a device, and Flux doesn't know it: set "
            "containers[0].gpus to the number that jobs may ask for, 0 for none"
        ],
    ),
    "servicePre of the runner": (
        app(commands={"servicePre": "x"}),
        app(commands={}),
        ["containers[0].commands.servicePre is dropped: flux-operator ran it in the other containers only"],
    ),
    "Kubernetes expanded the environment": (
        app(environment={"A": "$$(B) $$", "C": "$(B)"}),
        app(environment={"A": "$(B) $", "C": "$(B)"}),
        ["containers[0].environment.C has $(…): Kubernetes expanded it, here it is taken literally"],
    ),
    "an idle cluster has all cores of its nodes": (
        app(resources={"limits": {"cpu": "1"}}) | {"interactive": True},
        app(resources={"limits": {"cpu": "1"}}) | {"interactive": True},
        [
            "containers[0].resources give a node 1 core here: flux-operator counted all cores of the Kubernetes node; "
            "set containers[0].cores"
        ],
    ),
    "a launcher has all cores of its nodes": (
        app(command="x", launcher=True, resources={"requests": {"cpu": 2}}),
        app(command="x", launcher=True, resources={"requests": {"cpu": 2}}),
        [
            "containers[0].resources give a node 2 cores here: flux-operator counted all cores of the Kubernetes node; "
            "set containers[0].cores"
        ],
    ),
    "one job that fits needs no more": (
        app(command="x", resources={"limits": {"cpu": "2"}}) | {"tasks": 4, "size": 2},
        app(command="x", resources={"limits": {"cpu": "2"}}) | {"tasks": 4, "size": 2},
        [],
    ),
    "debug is quiet too": (
        app(command="x") | {"logging": {"debug": True}, "flux": {"optionFlags": "-c 2"}},
        {"logging": {"debug": True, "strict": False}, "flux": {"optionFlags": "-c 2 --quiet"}},
        [],
    ),
    "debug of a batch": (
        app(command="x", batch=True, batchRaw=True) | {"logging": {"debug": True}},
        {"logging": {"debug": True, "strict": False}, "flux": {"connectTimeout": "", "optionFlags": "-vvv"}},
        [],
    ),
    "added capabilities": (
        app(securityContext={"addCapabilities": ["B", "C"], "capabilities": {"add": ["A"], "drop": ["ALL"]}}),
        app(securityContext={"capabilities": {"add": ["A", "B", "C"], "drop": ["ALL"]}}),
        [
            "containers[0].securityContext.addCapabilities are capabilities.add here: v1alpha2 has no such field, so "
            "flux-operator's pods went without"
        ],
    ),
    "more tasks than cores": (
        app(command="x", resources={"limits": {"cpu": "2"}}) | {"tasks": 9, "size": 2},
        app(command="x", resources={"limits": {"cpu": "2"}}, cores=5) | {"tasks": 9, "size": 2},
        [
            "containers[0].resources give a node 2 cores here, too few for the work: containers[0].cores is 5 now; "
            "flux-operator counted all cores of the Kubernetes node, set as many",
        ],
    ),
    "more tasks than cores in the flags of a batch": (
        app(command="x", batch=True, batchRaw=True, resources={"limits": {"cpu": "500m"}})
        | {"flux": {"optionFlags": "-n 4 -c2"}},
        app(command="x", batch=True, batchRaw=True, resources={"limits": {"cpu": "500m"}}, cores=8),
        [
            "containers[0].resources give a node 1 core here, too few for the work: containers[0].cores is 8 now; "
            "flux-operator counted all cores of the Kubernetes node, set as many",
        ],
    ),
    "an idle cluster with a CPU limit": (
        app(resources={"limits": {"cpu": "2"}}) | {"tasks": 8, "size": 2},
        {},
        [
            "containers[0].resources give a node 2 cores here: flux-operator counted all cores of the Kubernetes node; "
            "set containers[0].cores",
        ],
    ),
    "snippets with other names": (
        app(commands={"preCommand": "c", "preWorker": "a", "preBroker": "b"}),
        app(commands={"pre": "c", "workerPre": "a", "brokerPre": "b"}),
        [
            "containers[0].commands.preCommand is called pre here",
            "containers[0].commands.preWorker is called workerPre here",
            "containers[0].commands.preBroker is called brokerPre here",
        ],
    ),
    "services run their image's entrypoint": (
        {"services": [{"name": "s", "image": "i", "command": "x", "commands": {"init": "y"}, "runFlux": True}]},
        {"services": [{"name": "s", "image": "i", "commands": {}}]},
        [
            "services[0].command is dropped: flux-operator ran the image's entrypoint in services",
            "services[0].commands.init is dropped: flux-operator did not run it in services",
            "services[0].runFlux is dropped: it is for the containers of the brokers' pods",
        ],
    ),
    "the runner by its guide: the others say that they are not": (
        {
            "containers": [
                {"image": "i", "name": "s", "runFlux": False, "command": "y", "batch": True},
                {"image": "i", "name": "n", "command": "x", "batch": True, "batchRaw": True},
            ]
        },
        {
            "containers": [
                {"image": "i", "name": "s", "runFlux": False, "command": "y"},
                {"image": "i", "command": "x", "batch": True, "batchRaw": True},
            ]
        },
        [
            "containers[1].name is dropped: flux-operator gave this container the cluster's name",
            "containers[0].batch is dropped: it is for the container that runs Flux",
        ],
    ),
    "a script that no sidecar ran": (
        pair(command="x", commands={"script": "y"}),
        pair(command="x", commands={}),
        ["containers[1].commands.script is dropped: flux-operator wrote it to a file and did not run it"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_convert_translates_the_fields_of_containers(case: str) -> None:
    assert_converted(*CASES[case])
