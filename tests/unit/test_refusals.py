"""Each refusal of contradicting values, with its whole message."""

from typing import Any

import pytest
from minicluster.errors import SpecError
from minicluster.spec import load

LEAD = {"name": "root", "address": "10.0.0.1", "size": 3}
RUNNER: dict[str, Any] = {"image": "a", "runFlux": True}
HOST = "it is for the container that runs Flux"


def sidecar(**fields: Any) -> dict[str, Any]:
    return {"containers": [RUNNER, {"name": "side", "image": "b", **fields}]}


def service(**fields: Any) -> dict[str, Any]:
    return {"services": [{"name": "web", "image": "b", **fields}]}


def runner(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"image": "a", **fields}]}


def volume(**fields: Any) -> dict[str, Any]:
    return runner(volumes={"v": fields})


def bursting(**fields: Any) -> dict[str, Any]:
    return {"flux": {"bursting": fields}}


def scaling(size: int, max_size: int, **fields: Any) -> dict[str, Any]:
    return {"size": size, "maxSize": max_size, "autoscaling": {"enabled": True, **fields}}


SOURCES = "claimName, hostPath, secretName, configMapName, emptyDir, csiDriver"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"size": 4, "maxSize": 2}, "size is 4, maxSize 2: lower size, or install with a larger maxSize"),
    ({"size": 2, "minSize": 3}, "minSize is 3, size 2: minSize can't be above size; lower minSize"),
    # containers
    ({"containers": [{"name": "a"}, {"name": "b"}]}, "none of the 2 containers has runFlux: true: "),
    ({"containers": [RUNNER, {**RUNNER, "name": "b"}]}, "2 of the 2 containers have runFlux: true: "),
    ({"containers": [RUNNER, {"image": "b"}]}, "containers[1] has no name: all but the one that runs Flux need one"),
    ({"services": [{"image": "b"}]}, "services[0] has no name: all but the one that runs Flux need one"),
    (runner(noWrapEntrypoint=True), "noWrapEntrypoint is set on the container that runs Flux: "),
    ({"containers": [RUNNER, {"name": "mc"}]}, "two containers are named mc: rename one of them"),
    ({"containers": [RUNNER, {"name": "flux-view"}]}, "two containers are named flux-view: rename one of them"),
    ({"services": [{"name": "w"}, {"name": "w"}]}, "two containers are named w: rename one of them"),
    (
        sidecar(commands={"servicePre": "true"}),
        "containers[1].commands.servicePre is set and the image's own entrypoint runs: give a command",
    ),
    (sidecar(command="a", noWrapEntrypoint=True), "containers[1] has command and noWrapEntrypoint: drop one of them"),
    (
        sidecar(command="a", commands={"script": "b"}),
        "containers[1] has command and commands.script: give the one that is the work",
    ),
    (sidecar(command="a", commands={"pre": "b"}), f"containers[1].commands.pre is set: {HOST}; use servicePre"),
    (service(command="a", commands={"post": "b"}), f"services[0].commands.post is set: {HOST}; use servicePre"),
    (service(runFlux=True), f"services[0].runFlux is set: {HOST}; drop it"),
    *((sidecar(**{key: True}), f"containers[1].{key} is set: {HOST}; drop it") for key in ("launcher", "batch")),
    (sidecar(cores=2), f"containers[1].cores is set: {HOST}; drop it"),
    (
        {"containers": [RUNNER, {"name": "lead", "ports": [80]}]},
        "a sidecar's ports would have the Service mc-lead: over 63 characters, or taken; rename it",
    ),
    (
        {"containers": [RUNNER, {"name": "s" * 61, "ports": [80]}]},
        f"a sidecar's ports would have the Service mc-{'s' * 61}: over 63 characters, or taken; rename it",
    ),
    # volumes
    (volume(path="/d"), f"containers[0].volumes.v has no source: give exactly one of {SOURCES}"),
    (
        volume(path="/d", claimName="c", hostPath="/h"),
        f"containers[0].volumes.v has claimName and hostPath: give exactly one of {SOURCES}",
    ),
    (volume(claimName="c"), "containers[0].volumes.v has no path: say where to mount it"),
    (
        volume(path="/d", claimName="c", items={"a": "b"}),
        "containers[0].volumes.v.items is set without configMapName or secretName: drop it",
    ),
    (
        volume(path="/d", claimName="c", emptyDirMedium="memory"),
        "containers[0].volumes.v.emptyDirMedium is set without emptyDir: drop it",
    ),
    (
        runner(volumes={"minicluster-x": {"emptyDir": True}}),
        "containers[0].volumes.minicluster-x: names that begin with minicluster are the cluster's own; rename it",
    ),
    (
        {
            "containers": [
                {**RUNNER, "volumes": {"v": {"path": "/d", "claimName": "c"}}},
                {"name": "side", "volumes": {"v": {"path": "/d", "claimName": "other"}}},
            ]
        },
        "containers[1].volumes.v has other settings than the volume v of another container: rename one of them",
    ),
    # work
    (
        runner(command="a", commands={"script": "b"}),
        "containers[0] has command and commands.script: give the one that is the work",
    ),
    (
        {"interactive": True, **runner(command="a")},
        "interactive is true and there is a command: an interactive cluster runs none; drop one of them",
    ),
    (runner(command="a", batch=True, launcher=True), "containers[0] has batch and launcher: give the one that fits"),
    (runner(command="a", batchRaw=True), "containers[0].batchRaw is set without batch: set batch too"),
    (runner(command=["a"], batch=True), "containers[0].batch is set: its command must be a text, each line a job"),
    (runner(launcher=True), "containers[0].launcher is set and there is no command: give one"),
    (runner(command="a", batch=True, diagnostics=True), "containers[0].diagnostics is set beside batch or launcher: "),
    (runner(command="a", commands={"servicePre": "b"}), "containers[0].commands.servicePre is for the other "),
    # flux
    (
        {"flux": {"scheduler": {"simple": True, "queuePolicy": "easy"}}},
        "flux.scheduler.queuePolicy is easy and simple is true: sched-simple knows fcfs only",
    ),
    (
        {"flux": {"curveCert": "a", "curveCertSecret": "b"}},
        "flux.curveCert and flux.curveCertSecret are both set: give one of them",
    ),
    (
        {"flux": {"container": {"disable": True, "mode": "copy"}}},
        "flux.container.disable is true and mode is copy: without a view there is no mode; drop it",
    ),
    (
        {"flux": {"brokerConfig": "a = 1", "scheduler": {"simple": True}}},
        "flux.scheduler.simple and flux.brokerConfig are both set: brokerConfig is used as given; say it there",
    ),
    (
        {"flux": {"brokerConfig": "a = 1", "bursting": {"hostlist": "a-[0-1]"}}},
        "flux.bursting and flux.brokerConfig are both set: brokerConfig is used as given; say it there",
    ),
    # autoscaling and metrics
    *(
        (
            {**values, **bursting(leadBroker=LEAD, hostlist="mc-0")},
            "autoscaling or metrics is on beside flux.bursting.leadBroker: they are the lead cluster's; turn them off",
        )
        for values in ({"autoscaling": {"enabled": True}}, {"metrics": {"enabled": True}})
    ),
    *(
        (
            {**values, "flux": {"disableSocket": True}},
            "autoscaling or metrics is on with flux.disableSocket: they need the broker's socket; drop one of them",
        )
        for values in ({"autoscaling": {"enabled": True}}, {"metrics": {"enabled": True}})
    ),
    (scaling(2, 8, max=9), "autoscaling.max is 9, maxSize 8: lower it, or install with a larger maxSize"),
    (scaling(3, 8, min=4, max=3), "autoscaling.min is 4, autoscaling.max 3: lower min"),
    (scaling(1, 8, min=2), "size is 1, autoscaling goes from 2 to 8: choose a size between"),
    (scaling(5, 8, max=4), "size is 5, autoscaling goes from 1 to 4: choose a size between"),
    (
        {**scaling(4, 8, min=2), "minSize": 3},
        "minSize is 3, autoscaling.min 2: a lead that comes back would wait for nodes that were scaled away; "
        "lower minSize",
    ),
    (
        scaling(2, 8, targetCPUUtilizationPercentage=50),
        "autoscaling.targetCPUUtilizationPercentage is set and the runner requests no CPU: "
        "set resources.requests.cpu, of which it is a part",
    ),
    (
        {"containers": [RUNNER, {"name": "minicluster-agent"}]},
        "two containers are named minicluster-agent: rename one of them",
    ),
    *(
        (
            {**values, "metrics": {**values.get("metrics", {}), "port": 9100}, **runner(ports=[80, 9100])},
            "metrics.port is 9100, a port of another container of the pod: choose another",
        )
        for values in ({"autoscaling": {"enabled": True}}, {"metrics": {"enabled": True}})
    ),
    # state
    (
        {"state": {"claimName": "c"}, **bursting(leadBroker=LEAD, hostlist="mc-0")},
        "state.claimName and flux.bursting.leadBroker are both set: the lead has the state; drop the claim",
    ),
    (
        {"state": {"claimName": "c"}, "archive": {"path": "/a/b"}},
        "state.claimName and archive.path are both set: each brings the queue back; drop one of them",
    ),
    # bursting
    (bursting(hostlist="a-0", clusters=[{"size": 1}]), "flux.bursting has hostlist and clusters: give one of them"),
    *(
        (
            bursting(leadBroker={k: v for k, v in LEAD.items() if k != key}, hostlist="a-0"),
            f"flux.bursting.leadBroker has no {key}: name, address and size are needed",
        )
        for key in LEAD
    ),
    (
        {"flux": {"topology": "binomial", "bursting": {"clusters": [{"size": 1}]}}},
        "flux.topology is binomial with bursting: every broker must reach rank 0 directly; drop it",
    ),
    (
        bursting(clusters=[{"name": "b"}, {"name": "b"}]),
        "two bursts are named b: rename one of them",
    ),
    (
        bursting(clusters=[{"name": "mc"}]),
        "flux.bursting.clusters has mc, this cluster's own name: rename one of them",
    ),
    (
        bursting(clusters=[{"name": "b"}], leadBroker=LEAD),
        "flux.bursting.clusters has no mc: give the lead cluster's list, with this cluster",
    ),
    (
        {"size": 3, **bursting(clusters=[{"name": "mc", "size": 2}], leadBroker=LEAD)},
        "size is 3, flux.bursting.clusters has 2 for mc: lower size",
    ),
    (
        {"maxSize": 3, **bursting(clusters=[{"name": "mc", "size": 2}], leadBroker=LEAD)},
        "maxSize is 3, flux.bursting.clusters has 2 for mc: lower maxSize",
    ),
    (
        {"flux": {"topology": "kary:2", "bursting": {"hostlist": "mc-0,vm-0"}}},
        "flux.topology is kary:2 with bursting: every broker must reach rank 0 directly; drop it",
    ),
    (
        {**runner(command="a"), **bursting(leadBroker=LEAD, hostlist="a-0")},
        "flux.bursting.leadBroker is set and there is a command: the work is the lead cluster's; drop the command",
    ),
    (
        {"archive": {"path": "/a/b"}, **bursting(leadBroker=LEAD, hostlist="a-0")},
        "archive.path and flux.bursting.leadBroker are both set: the lead cluster has the state; drop the path",
    ),
    (
        bursting(expose={"nodePort": 30000}),
        "flux.bursting.expose has a port or annotations and no type: give NodePort or LoadBalancer",
    ),
    # aliases
    (
        {"flux": {"leadBroker": LEAD, "bursting": {"leadBroker": LEAD}}},
        "flux.leadBroker and leadBroker are both set: the one is another name of the other; give one of them",
    ),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED, ids=lambda x: x[:50] if isinstance(x, str) else "")
def test_what_contradicts_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load({"metadata": {"name": "mc", "namespace": "ns"}, "spec": spec})
    text = str(caught.value).removeprefix("MiniCluster mc: ")
    assert text == message or (message.endswith(" ") and text.startswith(message))


@pytest.mark.parametrize(
    "spec",
    [
        scaling(1, 8),
        scaling(8, 8, min=8, max=8),
        {**scaling(2, 8, min=2), "minSize": 2},
        {"size": 9, "maxSize": 9, "autoscaling": {"max": 3}},
        {**scaling(2, 8, targetCPUUtilizationPercentage=50), **runner(resources={"limits": {"cpu": 1}})},
    ],
    ids=str,
)
def test_what_scales_is_taken(spec: dict[str, Any]) -> None:
    load({"metadata": {"name": "mc", "namespace": "ns"}, "spec": spec})


@pytest.mark.parametrize(
    ("alias", "name"), [("preWorker", "workerPre"), ("preBroker", "brokerPre")], ids=["worker", "broker"]
)
def test_an_alias_is_what_it_stands_for(alias: str, name: str) -> None:
    document = {"metadata": {"name": "mc"}, "spec": runner(command="a", commands={alias: "echo"})}
    assert load(document).runner["commands"] == {name: "echo"}
