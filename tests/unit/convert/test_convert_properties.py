"""Any valid MiniCluster converts to values that load, and that convert to themselves."""

from collections.abc import Callable
from typing import Any

from conversion import converted
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from minicluster.render import postrender
from minicluster.render.load import load

WORD = st.from_regex(r"\A[a-z][a-z0-9]{0,8}\Z")
TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_categories=["Cc"]), max_size=30)
LINES = st.lists(TEXT, min_size=1, max_size=3).map("\n".join)
WORDS = st.dictionaries(WORD, WORD, max_size=2)
FLAG = st.booleans()
SNIPPETS = ("init", "pre", "post", "brokerPre", "workerPre")
SOURCE: dict[str, st.SearchStrategy[Any]] = {
    "claimName": WORD,
    "hostPath": st.just("/h"),
    "secretName": WORD,
    "configMapName": WORD,
    "csiDriver": WORD,
    "emptyDir": st.just(True),
}
VOLUME = st.sampled_from(sorted(SOURCE)).flatmap(
    lambda key: st.fixed_dictionaries({"path": st.just("/m"), key: SOURCE[key]}, optional={"readOnly": FLAG})
)
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "imagePullPolicy": st.sampled_from(["", "Always", "Never"]),
    "imagePullSecret": WORD,
    "workingDir": st.just("/w"),
    "environment": st.dictionaries(WORD, LINES, max_size=2),
    "secrets": st.dictionaries(WORD, st.fixed_dictionaries({"name": WORD, "key": WORD}), max_size=1),
    "resources": st.fixed_dictionaries({}, optional={"limits": st.just({"cpu": "2", "memory": "1Gi"})}),
    "securityContext": st.just({"privileged": True}),
    "ports": st.lists(st.integers(1, 65535), unique=True, max_size=2),
    "lifeCycle": st.fixed_dictionaries({}, optional={"postStartExec": LINES, "preStopExec": LINES}),
    "pullAlways": FLAG,
}
RUNNER = st.fixed_dictionaries(
    {"image": WORD},
    optional=COMMON
    | {
        "command": LINES,
        "name": WORD,
        "logs": st.just("/logs"),
        "launcher": FLAG,
        "batchRaw": FLAG,
        "runFlux": st.just(True),
        "commands": st.fixed_dictionaries({}, optional=dict.fromkeys(SNIPPETS, LINES)),
        # two volumes can't be at one path, and each emptyDir is at /dev/shm
        "volumes": st.dictionaries(WORD, VOLUME, max_size=2)
        .map(lambda volumes: {name: {**one, "path": f"/m/{name}"} for name, one in volumes.items()})
        .filter(lambda volumes: [*map(set, volumes.values())].count({"path", "emptyDir"}) < 2),
    },
)
FLUX = st.fixed_dictionaries(
    {},
    optional={
        "arch": st.sampled_from(["", "arm"]),
        "logLevel": st.integers(0, 7),
        "connectTimeout": st.sampled_from(["", "0s", "5s"]),
        "topology": st.sampled_from(["", "kary:2", "binomial"]),
        "wrap": st.just("strace,-f"),
        "environment": WORDS,
        "mungeSecret": WORD,
        "scheduler": st.fixed_dictionaries({}, optional={"simple": FLAG, "queuePolicy": st.just("easy")}),
        "container": st.fixed_dictionaries({}, optional={"disable": FLAG, "pullAlways": FLAG, "name": st.just("")}),
        "bursting": st.just({"clusters": [{"size": 2}]}),
        **dict.fromkeys(("disableSocket", "noWaitSocket", "completeWorkers", "minimalService"), FLAG),
    },
).filter(lambda flux: "bursting" not in flux or not flux.get("topology"))
SIDECAR = st.fixed_dictionaries(
    {"image": WORD},
    optional=COMMON
    | {
        "command": LINES,
        "noWrapEntrypoint": FLAG,
        "batch": FLAG,
        "commands": st.fixed_dictionaries({}, optional=dict.fromkeys((*SNIPPETS, "servicePre", "script"), LINES)),
        "volumes": st.dictionaries(WORD, VOLUME, max_size=1),
    },
)
POD = st.fixed_dictionaries(
    {},
    optional={
        "labels": WORDS,
        "annotations": st.dictionaries(WORD, TEXT, max_size=2),
        "restartPolicy": st.sampled_from(["OnFailure", "Never", "Always"]),
        "securityContext": st.just({"fsGroup": 1, "runAsUser": 2}),
        "nodeAffinity": st.dictionaries(WORD, st.lists(WORD, min_size=1, max_size=2), max_size=1),
        "tolerations": st.just([{"key": "a"}]),
        "hostPID": FLAG,
    },
)


@st.composite
def clusters(draw: Callable[[st.SearchStrategy[Any]], Any]) -> dict[str, Any]:
    size = draw(st.integers(1, 5))
    cluster: dict[str, Any] = {"size": size, "containers": [draw(RUNNER)]}
    if draw(FLAG):
        cluster["containers"][0]["runFlux"] = True
        cluster["containers"].append(draw(SIDECAR) | {"name": "side-car"})
    optional = {
        "maxSize": st.sampled_from([0, size, size + 2]),
        "minSize": st.integers(0, size),
        "tasks": st.integers(0, 9),
        "interactive": FLAG,
        "backoffLimit": st.integers(0, 3),
        "cleanup": FLAG,
        "jobLabels": WORDS,
        "flux": FLUX,
        "pod": POD,
        "logging": st.fixed_dictionaries({}, optional=dict.fromkeys(("quiet", "strict", "timed"), FLAG)),
        "network": st.fixed_dictionaries({}, optional={"headlessName": WORD, "disableAffinity": FLAG}),
        "services": st.lists(SIDECAR.map(lambda c: c | {"name": "web", "commands": {}}), max_size=1),
    }
    cluster |= draw(st.fixed_dictionaries({}, optional=optional))
    for index, container in enumerate([*cluster["containers"], *cluster.get("services", ())]):
        # refused: a name in both, and one volume with two sources
        for name in container.get("environment", {}):
            container.get("secrets", {}).pop(name, None)
        volumes = list(container.get("volumes", {}).items())
        if any("emptyDir" in volume for _, volume in volumes):
            # each would be at /dev/shm
            volumes = volumes[:1]
        if volumes:
            container["volumes"] = {f"{name}{index}": volume for name, volume in volumes}
    return cluster


@settings(deadline=None, derandomize=True, database=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(clusters())
def test_any_valid_minicluster_converts_to_values_that_load(cluster: dict[str, Any]) -> None:
    values, _ = converted(cluster)
    loaded = load({"metadata": {"name": "a"}, "spec": values})
    list(postrender.documents(loaded, lambda: (b"0" * 40, b"0" * 40)))
    assert loaded.size == cluster["size"]
    assert loaded.max_size == (cluster.get("maxSize") or cluster["size"])
    assert loaded.spec["logging"]["strict"] == cluster.get("logging", {}).get("strict", False)
    assert loaded.spec["backoffLimit"] == (cluster.get("backoffLimit") or 100)
    timeout = cluster["flux"].get("connectTimeout", "5s") if "flux" in cluster else ""
    assert loaded.flux["connectTimeout"] == timeout


@settings(deadline=None, derandomize=True, database=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(clusters())
def test_converting_converted_values_changes_nothing(cluster: dict[str, Any]) -> None:
    values, _ = converted(cluster)
    command = values["containers"][0].get("command")
    again, _ = converted(values)
    if isinstance(command, list) or "batch" in values["containers"][0]:
        return
    assert again["containers"] == values["containers"] or any("$$" in str(c) for c in cluster["containers"])
    assert {**again, "containers": 0} == {**values, "containers": 0}
