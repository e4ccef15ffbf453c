"""Each field of the schema does something, and is recorded on the Job unless it may change."""

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from batch import Batch, case
from minicluster.render import postrender, schema
from minicluster.render.load import load
from renderings import runner
from support import CERTIFICATE, CHART, DEFAULTS, Helm, deep, load_all, nested

# one worker renders all
pytestmark = pytest.mark.xdist_group("each_field")
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
Rendered = Callable[[dict[str, Any]], tuple[Any, Any]]

#: Fields that change nothing, and the reason.
NO_EFFECT = {
    "enabled": "for the condition of a parent chart",
    "interactive": "without a command, which excludes it, a cluster is interactive",
    "flux.bursting.expose.address": "is for the notes and for `minicluster burst`",
    "containers.0.runFlux": "the only container is the runner",
    "pod.restartPolicy": "has one value",
    "containers.0.commands.runFluxAsRoot": "flux-operator's; one user runs everything",
    **{
        f"containers.0.{user}.{key}": "flux-operator's; one user runs everything"
        for user in ("fluxUser", "fluxuser")
        for key in ("name", "uid")
    },
}
#: Fields that may change on a live cluster, so the Job does not record them; the certificate is compared elsewhere.
MUTABLE = {
    *(
        "enabled",
        "nameOverride",
        "services",
        "size",
        "minSize",
        "deadlineSeconds",
        "backoffLimit",
        "cleanup",
        "jobLabels",
        "jobAnnotations",
        "suspend",
        "upgrade.replace",
        "schedules",
        "hooks.resources.limits",
        "hooks.resources.requests",
        "kueue.queueName",
        "kueue.priorityClass",
        "flux.curveCert",
        "agent.periodSeconds",
        "networkPolicy.enabled",
        "state.keep",
        "metrics.podMonitor.enabled",
        "metrics.podMonitor.labels",
        "metrics.rules.enabled",
        "metrics.rules.labels",
    ),
    *(f"flux.bursting.expose.{key}" for key in ("type", "address", "nodePort", "annotations")),
    *(
        f"flux.bursting.follow.{key}"
        for key in ("bursts", "image", "backlogSeconds", "idleSeconds", "kubeconfigSecret")
    ),
    *(f"flux.bursting.follow.resources.{key}" for key in ("limits", "requests")),
    *(
        f"autoscaling.{key}"
        for key in (
            "min",
            "max",
            "backlogSeconds",
            "idleSeconds",
            "suspendAfterSeconds",
            "giveUpSeconds",
            "maxStepUp",
            "maxStepDown",
            "targetCPUUtilizationPercentage",
            "handle",
            "rbac",
        )
    ),
}
#: Values of fields for which no candidate below is valid.
SPECIAL: dict[str, Any] = {
    "autoscaling.min": 2,
    "flux.bursting.leadBroker.port": 8051,
    "flux.bursting.leadBroker.groups": [{"name": "x", "maxSize": 2}],
    "flux.bursting.hostlist": "flux-sample-[0-7]",
    "flux.bursting.expose.address": "192.0.2.7:30050",
    "flux.bursting.expose.nodePort": 30050,
    "flux.bursting.follow.bursts": ["b0:0-2@jobs"],
    "flux.brokerConfig": "a = 1\n",
    "flux.container.mode": "image",
    "pod.onStop": "requeue",
    "flux.curveCert": CERTIFICATE,
    "flux.affinity": "off",
    "hooks.resources.requests": {"cpu": "50m"},
    "report.path": "/d/jobs",
    "flux.memoryReserve": "1Gi",
    "flux.queues": {"all": {}},
    "schedules": [{"name": "night", "cron": "0 2 * * *", "command": ["true"]}],
    "flux.idleJobs.below": 0.5,
    "notify.events": ["jobFailed"],
    "notify.format": "slack",
    "flux.idleJobs.action": "cancel",
    "pod.sharedMemory": "1Gi",
    "flux.scheduler.queuePolicy": "easy",
    "flux.scheduler.matchPolicy": "first",
    "gang.kind": "volcano",
    "groups": [{"name": "x", "cores": 1}],
    "job.template": {"spec": {"managedBy": "example.com/jobs"}},
    "maxSize": 9,
    "minSize": 1,
    "state.capacity": "2Gi",
    "state.accessModes": ["ReadWriteOnce"],
    **{key: {"runAsUser": 7} for key in ("pod.securityContext", "containers.0.securityContext")},
    "flux.container.securityContext": {"runAsUser": 7},
    **{f"{place}.resources.claims": [{"name": "x"}] for place in ("containers.0", "flux.container", "agent")},
    "pod.resourceClaims": [{"name": "x", "resourceClaimName": "y"}],
    "pod.resources": {"cpu": 1},
    "pod.tolerations": [{"key": "x"}],
    "pod.topologySpreadConstraints": [{"maxSkew": 1}],
    "pod.template": {"metadata": {"annotations": {"a": "b"}}},
}
LEAD = {"name": "lead", "address": "a", "size": 2}
JOINS = {"flux": {"bursting": {"leadBroker": LEAD, "clusters": [{"name": "flux-sample", "size": 8}]}}}
SCALES = {"autoscaling": {"enabled": True}}
CLAIMS = {"pod": {"resourceClaims": [{"name": "x", "resourceClaimName": "y"}]}}
CLAIM = {"state": {"capacity": "1Gi"}}
EXPOSED = {"flux": {"bursting": {"expose": {"type": "NodePort"}}}}
ROOT = {
    "flux": {
        "bursting": {"clusters": [{"name": "b0", "size": 4}], "expose": {"address": "h"}, "follow": {"image": "i"}}
    }
}
FOLLOWED = deep(ROOT, {"flux": {"bursting": {"follow": {"bursts": ["b0"]}}}})
#: Values that a field needs beside it.
BESIDE: dict[str, dict[str, Any]] = {
    "containers.0.launcher": runner(command="x"),
    "containers.0.batchRaw": runner(command="x", batch=True),
    "containers.0.batch": runner(command="x"),
    "containers.0.commands.nodeCheckSeconds": runner(commands={"nodeCheck": "x"}),
    "flux.preemption.minimumRunSeconds": {"flux": {"preemption": {"afterSeconds": 60}}},
    **{f"flux.idleJobs.{key}": {"flux": {"idleJobs": {"for": 60}}} for key in ("below", "action")},
    "notify.": {"notify": {"secret": {"name": "s"}, "events": ["queueEmpty"]}},
    "archive.dumpSeconds": {"archive": {"path": "/data/state.tgz"}},
    "report.path": runner(volumes={"d": {"path": "/d", "emptyDir": True}}),
    "state.storageClass": CLAIM,
    "state.accessModes": CLAIM,
    "state.keep": CLAIM,
    "upgrade.replace": CLAIM,
    "autoscaling.enabled": {},
    "autoscaling.suspendAfterSeconds": SCALES | CLAIM,
    "autoscaling.targetCPU": SCALES | runner(resources={"requests": {"cpu": 1}}),
    "autoscaling.": SCALES,
    "agent.resources.claims": SCALES | CLAIMS,
    "agent.": SCALES,
    "containers.0.resources.claims": CLAIMS,
    "flux.container.resources.claims": CLAIMS,
    "pod.segments.topologyKey": {"kueue": {"queueName": "q"}, "pod": {"segments": {"size": 2}}},
    "gang.kind": {"pod": {"schedulerName": "s"}},
    "gang.queue": {"pod": {"schedulerName": "s"}, "gang": {"kind": "volcano"}},
    "metrics.enabled": {},
    "metrics.rules.labels": {"metrics": {"enabled": True, "rules": {"enabled": True}}},
    "metrics.": {"metrics": {"enabled": True}},
    "flux.bursting.leadBroker": JOINS,
    "flux.bursting.follow.bursts": ROOT,
    "flux.bursting.follow.": FOLLOWED,
    "flux.bursting.expose.nodePort": EXPOSED,
    "flux.bursting.expose.annotations": EXPOSED,
}
PROMETHEUS = (
    *("--api-versions", "monitoring.coreos.com/v1/PodMonitor"),
    *("--api-versions", "monitoring.coreos.com/v1/PrometheusRule"),
)
CANDIDATES: list[Any] = [
    *(True, False, 3, 5, 500, "x1", "/x1", "7s", "binomial", "Never", "arm", "Default", "Memory"),
    *("NodePort", [80], {"x": {"path": "/x", "emptyDir": True}}, [{"name": "x", "size": 1}], [{"name": "x"}]),
    *({"cpu": 1}, ["x1"], [{"a": "b"}], {"x1": "x1"}, {"x1": ["x1"]}, {"a": {"name": "b", "key": "c"}}),
]


#: Parts that Kubernetes defines: each is one field
KUBERNETES = {"#/$defs/securityContext", "#/$defs/podTemplate"}


def leaves(part: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    if part.get("$ref") in KUBERNETES:
        yield ".".join(path), part
        return
    if "$ref" in part:
        part = SCHEMA["$defs"][part["$ref"].rpartition("/")[2]]
    if "const" in part:
        return  # a message
    if "properties" in part:
        for key, field in part["properties"].items():
            yield from leaves(field, (*path, key))
    elif path == ("containers",):
        yield from leaves(part["items"], ("containers", "0"))
    else:
        yield ".".join(path), part


LEAVES = dict(leaves(SCHEMA))


def default(path: str) -> Any:
    value: Any = DEFAULTS
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value.get(key) if isinstance(value, dict) else None
    return value


def other(path: str) -> Any:
    """Return a value of a field that is valid and not the default."""
    if path in SPECIAL:
        return SPECIAL[path]
    validator = schema.validator({**LEAVES[path], "$defs": SCHEMA["$defs"]})
    return next(v for v in CANDIDATES if v != default(path) and validator.is_valid(v))


def values_with(path: str, value: Any, beside: dict[str, Any]) -> dict[str, Any]:
    parts = path.split(".")
    if parts[:2] == ["containers", "0"]:
        container = beside.get("containers", [{}])[0]
        return {**beside, "containers": [deep(container, nested(parts[2:], value))]}
    found: dict[str, Any] = deep(beside, nested(parts, value))
    return found


#: Fields that have only one value or none, aliases, and fields that the runner can't have; the last two are tested
#: below.
ELSEWHERE = (
    "pod.restartPolicy",
    "flux.bursting.follow.resources.claims",
    "hooks.resources.claims",
    "flux.leadBroker.",
    "flux.bursting.leadBroker.hostlist",
    "containers.0.commands.servicePre",
    "containers.0.noWrapEntrypoint",
    "containers.0.leadOnly",
)


FIELDS = [path for path in LEAVES if not path.startswith(ELSEWHERE)]


def beside(path: str) -> dict[str, Any]:
    return next((values for start, values in BESIDE.items() if path.startswith(start)), {})


def sized(values: dict[str, Any]) -> dict[str, Any]:
    return case(deep({"size": 2, "maxSize": 8}, values))


@pytest.fixture(scope="module")
def rendered(helm4: Helm, tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """Return all objects after the post-renderer, and the values that the Job records."""
    known = [values for path in FIELDS for values in (beside(path), values_with(path, other(path), beside(path)))]
    batch = Batch(helm4, tmp_path_factory.mktemp("batch"), map(sized, known), *PROMETHEUS)

    @functools.cache
    def parts(text: str) -> tuple[Any, Any]:
        documents: list[dict[str, Any]] = []
        recorded = None
        for document in load_all(batch.stream(sized(json.loads(text)))):
            if document["kind"] == "MiniCluster":
                documents += postrender.documents(load(document), lambda: (b"p" * 40, b"s" * 40))
                continue
            if document["kind"] == "Job":
                recorded = document["metadata"]["annotations"].pop("minicluster/immutable")
            documents.append(document)
        return documents, recorded

    return lambda values: parts(json.dumps(values))


@pytest.mark.parametrize("path", FIELDS)
def test_each_field_changes_the_objects_and_is_recorded_unless_it_may_change(rendered: Rendered, path: str) -> None:
    documents, recorded = rendered(values_with(path, other(path), beside(path)))
    before = rendered(beside(path))
    assert (documents == before[0]) == (path in NO_EFFECT), "the field is ignored, or no longer an exception"
    if path not in NO_EFFECT:
        assert (recorded == before[1]) == (path in MUTABLE), "the Job does not record what can't change, or what can"


@pytest.mark.parametrize(
    "fields",
    [{"commands": {"servicePre": "x"}, "command": "y"}, {"noWrapEntrypoint": True}, {"leadOnly": True, "command": "y"}],
    ids=str,
)
def test_fields_of_other_containers_change_the_objects_and_are_recorded(
    rendered: Rendered, fields: dict[str, Any]
) -> None:
    other = {"name": "other", "command": fields.get("command", "")}
    documents, recorded = rendered({"containers": [{"runFlux": True}, other]})
    after = rendered({"containers": [{"runFlux": True}, {**other, **fields}]})
    assert recorded != after[1]
    if "noWrapEntrypoint" not in fields:
        assert documents != after[0]


def test_an_alias_of_a_field_renders_the_same(rendered: Rendered) -> None:
    clusters = JOINS["flux"]["bursting"]["clusters"]
    alias = {"flux": {"leadBroker": LEAD, "bursting": {"clusters": clusters}}}
    assert rendered(JOINS)[0] == rendered(alias)[0]
    commands = [
        {"preCommand": "w", "preBroker": "x", "preWorker": "y"},
        {"pre": "w", "brokerPre": "x", "workerPre": "y"},
    ]
    assert rendered(runner(commands=commands[0]))[0] == rendered(runner(commands=commands[1]))[0]
    lead, hosts = {"name": "root", "address": "192.0.2.1"}, {"hostlist": "root-[0-3],vm-a-[001-003]"}
    aliases = [{"leadBroker": lead | hosts}, {"bursting": {"leadBroker": lead | hosts}}]
    documents = [rendered({"flux": flux})[0] for flux in (*aliases, {"bursting": {"leadBroker": lead} | hosts})]
    assert documents[0] == documents[1] == documents[2]


def test_the_fields_listed_as_exceptions_exist() -> None:
    assert set(NO_EFFECT) | MUTABLE | set(SPECIAL) <= set(LEAVES)
