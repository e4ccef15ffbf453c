import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minicluster.errors import SpecError
from minicluster.render import stream
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel
from support import CHART, DEFAULTS, GROUP, PACKAGE, deep, nested

Make = Callable[..., MiniClusterModel]
LABEL = "must have only a-z, 0-9 and -, and begin and end with a letter or digit"
SUBDOMAIN = "must have only a-z, 0-9, - and ., and begin and end with a letter or digit"
KEY = "must be a name of at most 63 letters, digits, -, _ and ., such as app or example.com/app"
VARIABLE = "must have only letters, digits, -, _ and ., and not begin with a digit"
FOLDER = "must be an absolute path of letters, digits, -, _ and ., below /"
IMAGE = "must be an image such as ubuntu:noble or ghcr.io/org/app:1.0"
QUANTITY = "must be a quantity, e.g. 4, 500m or 8Gi"


def runner(**fields: Any) -> dict[str, Any]:
    return {"containers": [fields]}


def at(path: str, value: Any) -> dict[str, Any]:
    spec: dict[str, Any] = nested(path.split("."), value)
    return spec


def of_template(spec: Any) -> dict[str, Any]:
    return at("pod.template.spec", spec)


def of_app(**fields: Any) -> dict[str, Any]:
    return of_template({"containers": [{"name": "app", **fields}]})


# A value, and the whole message after `MiniCluster NAME: `.
REFUSED: list[tuple[dict[str, Any], str]] = [
    # parts of Kubernetes that the chart's templates read
    (at("pod.template", "x"), 'pod.template is "x": must be object'),
    (of_template("foo"), 'pod.template.spec is "foo": must be object'),
    (of_template({"containers": "x"}), 'pod.template.spec.containers is "x": must be array'),
    (of_template({"containers": ["x"]}), 'pod.template.spec.containers[0] is "x": must be object'),
    (of_app(lifecycle="x"), 'pod.template.spec.containers[0].lifecycle is "x": must be object'),
    (of_app(volumeMounts="x"), 'pod.template.spec.containers[0].volumeMounts is "x": must be array'),
    (
        of_app(volumeMounts=[{"mountPath": 3}]),
        "pod.template.spec.containers[0].volumeMounts[0].mountPath is 3: must be string",
    ),
    (
        of_app(volumeMounts=[{"name": "a"}]),
        'pod.template.spec.containers[0].volumeMounts[0] is {"name": "a"}: needs mountPath',
    ),
    (
        runner(securityContext={"capabilities": "x"}) | {"metrics": {"enabled": True}},
        'containers[0].securityContext.capabilities is "x": must be object',
    ),
    # unknown fields, each with the nearest known one
    ({"siez": 1}, "siez is not a field; did you mean size?"),
    # no suggestion without a similar name
    ({"xyzzy": 1}, "xyzzy is not a field"),
    (at("network.livenessProbe", 1), "network.livenessProbe is not a field"),
    # names that people know from other tools, or that belong to another place
    (runner(env={}), "containers[0].env is not a field; did you mean environment?"),
    (runner(volumeMounts=[]), "containers[0].volumeMounts is not a field; did you mean volumes?"),
    (runner(args=["x"]), "containers[0].args is not a field; did you mean command?"),
    (runner(preCommand="x"), "containers[0].preCommand must be absent: write it as commands.pre"),
    (runner(fluxLogLevel=7), "containers[0].fluxLogLevel is not a field; did you mean flux.logLevel?"),
    ({"fluxOptionFlags": "x"}, "fluxOptionFlags is not a field; did you mean flux.optionFlags?"),
    ({"replicas": 2}, "replicas is not a field; did you mean size?"),
    ({"env": {}}, "env is not a field; did you mean containers[0].environment?"),
    ({"command": "x"}, "command is not a field; did you mean containers[0].command?"),
    ({"image": "x"}, "image is not a field; did you mean containers[0].image?"),
    ({"nodeSelector": {}}, "nodeSelector is not a field; did you mean pod.nodeSelector?"),
    ({"quiet": True}, "quiet is not a field; did you mean logging.quiet?"),
    ({"kind": "x"}, "kind must be absent: this is a MiniCluster, of which `minicluster convert FILE` makes values"),
    ({"spec": {}}, "spec must be absent: drop the line `spec:`, and indent what is below it less"),
    ({"Size": 1}, "Size is not a field; did you mean size?"),
    ({"maxsize": 1}, "maxsize is not a field; did you mean maxSize?"),
    (at("flux.wrapp", 1), "flux.wrapp is not a field; did you mean wrap?"),
    (
        at("flux.container.imagePullSecretName", "x"),
        "flux.container.imagePullSecretName is not a field; did you mean imagePullSecret?",
    ),
    (at("flux.scheduler.policy", "x"), "flux.scheduler.policy is not a field; did you mean queuePolicy?"),
    (at("network.headless", "x"), "network.headless is not a field; did you mean headlessName?"),
    (at("logging.quite", True), "logging.quite is not a field; did you mean quiet?"),
    (at("pod.label", {}), "pod.label is not a field; did you mean labels?"),
    (runner(comand="x"), "containers[0].comand is not a field; did you mean command?"),
    (runner(commands={"prebroker": "x"}), "containers[0].commands.prebroker is not a field; did you mean preBroker?"),
    (runner(resources={"limit": {}}), "containers[0].resources.limit is not a field; did you mean limits?"),
    # types
    ({"size": "4"}, 'size is "4": must be integer'),
    ({"size": 1.5}, "size is 1.5: must be integer"),
    ({"size": True}, "size is true: must be integer"),
    ({"maxSize": "x"}, 'maxSize is "x": must be integer'),
    ({"interactive": "yes"}, 'interactive is "yes": must be boolean'),
    ({"containers": {}}, "containers is {}: must be array"),
    ({"containers": ["x"]}, 'containers[0] is "x": must be object'),
    ({"flux": []}, "flux is []: must be object"),
    (at("flux.disableSocket", 0), "flux.disableSocket is 0: must be boolean"),
    (at("flux.environment", {"A": 1}), "flux.environment.A is 1: must be string"),
    (runner(environment={"A": 1}), "containers[0].environment.A is 1: must be string"),
    (runner(securityContext=[]), "containers[0].securityContext is []: must be object"),
    (runner(commands={"pre": 1}), "containers[0].commands.pre is 1: must be string"),
    (at("jobLabels", {"a": 1}), "jobLabels.a is 1: must be string"),
    (at("pod.tolerations", ["x"]), 'pod.tolerations[0] is "x": must be object'),
    (at("pod.nodeAffinity", {"a": "b"}), 'pod.nodeAffinity.a is "b": must be array'),
    (at("pod.imagePullSecrets", [{"name": "x"}]), 'pod.imagePullSecrets[0] is {"name": "x"}: must be string'),
    (at("pod.template", []), "pod.template is []: must be object"),
    (at("flux", "x" * 100), f'flux is "{"x" * 58}…: must be object'),
    # numbers
    ({"size": 0}, "size is 0: must be at least 1"),
    ({"size": -1}, "size is -1: must be at least 1"),
    ({"size": 100_001}, "size is 100001: must be at most 100000"),
    ({"maxSize": 2**31}, "maxSize is 2147483648: must be at most 2147483647"),
    ({"minSize": 0}, "minSize is 0: must be at least 1"),
    ({"tasks": -1}, "tasks is -1: must be at least 0"),
    ({"deadlineSeconds": 0}, "deadlineSeconds is 0: must be at least 1"),
    ({"backoffLimit": -1}, "backoffLimit is -1: must be at least 0"),
    (runner(cores=0), "containers[0].cores is 0: must be at least 1"),
    (at("flux.logLevel", 8), "flux.logLevel is 8: must be at most 7"),
    (at("pod.terminationGracePeriodSeconds", -1), "pod.terminationGracePeriodSeconds is -1: must be at least 0"),
    # choices
    (at("flux.arch", "x86"), 'flux.arch is "x86": must be one of (empty), arm'),
    (at("flux.container.mode", "mount"), 'flux.container.mode is "mount": must be one of auto, image, copy'),
    (
        runner(imagePullPolicy="Sometimes"),
        'containers[0].imagePullPolicy is "Sometimes": must be one of (empty), Always, IfNotPresent, Never',
    ),
    (at("pod.restartPolicy", "Always"), 'pod.restartPolicy is "Always": must be one of Never'),
    # texts
    (at("flux.submitCommand", ""), 'flux.submitCommand is "": must not be empty'),
    (at("network.clusterDomain", ""), 'network.clusterDomain is "": must not be empty'),
    *(
        (
            at("flux.connectTimeout", text),
            f"flux.connectTimeout is {json.dumps(text)}: must be a time such as 5s, 500ms or 1m",
        )
        for text in ("5 s", "5s\n", "soon")
    ),
    (at("flux.topology", "tree"), 'flux.topology is "tree": must be kary:N, mincrit:N, binomial or custom'),
    (at("flux.wrap", "a b"), 'flux.wrap is "a b": must have no blanks: commas separate its words'),
    *(
        (at("flux.container.mountPath", path), f'flux.container.mountPath is "{path}": {FOLDER}')
        for path in ("flux", "/", "/a b", "")
    ),
    (at("flux.container.workingDir", "x"), 'flux.container.workingDir is "x": must be an absolute path'),
    (runner(workingDir="rel"), 'containers[0].workingDir is "rel": must be an absolute path'),
    (runner(logs="tmp"), 'containers[0].logs is "tmp": must be an absolute path'),
    (
        at("archive.path", "/a b"),
        'archive.path is "/a b": must be an absolute path of letters, digits, -, _ and .',
    ),
    (
        runner(volumes={"v": {"path": "/a:b"}}),
        'containers[0].volumes.v.path is "/a:b": must be an absolute path without a colon',
    ),
    (
        runner(volumes={"v": {"items": {"k": "/a"}}}),
        'containers[0].volumes.v.items.k is "/a": must be a path that does not begin with /',
    ),
    (
        at("network.interface", "a b"),
        'network.interface is "a b": must be the name of an interface, an address or *',
    ),
    (
        at("flux.bursting.hostlist", "a b"),
        'flux.bursting.hostlist is "a b": must be a hostlist such as proto-[0-3],other-0',
    ),
    (at("flux.bursting.expose.address", "a:b"), 'flux.bursting.expose.address is "a:b": must be HOST or HOST:PORT'),
    (
        at("flux.bursting.follow.bursts", [""]),
        'flux.bursting.follow.bursts[0] is "": must be one line that is not empty',
    ),
    (
        at("flux.bursting.leadBroker.address", "a/b"),
        'flux.bursting.leadBroker.address is "a/b": must be a host name or an address',
    ),
    (
        at("flux.scheduler.queuePolicy", "lifo"),
        'flux.scheduler.queuePolicy is "lifo": must be conservative, hybrid or easy',
    ),
    (
        at("flux.scheduler.matchPolicy", "best"),
        'flux.scheduler.matchPolicy is "best": must be one of first, firstnodex, high, hinode, hinodex, lonode, '
        "lonodex, low, or attributes such as policy=low node_exclusive=true",
    ),
    # quantities
    *(
        (
            runner(resources={"limits": {"memory": text}}),
            f'containers[0].resources.limits.memory is "{text}": {QUANTITY}',
        )
        for text in ("4GB", "64MB", "-4", "4 Gi", "", "four", "4gi", "1Ki5")
    ),
    (runner(resources={"limits": {"cpu": -4}}), "containers[0].resources.limits.cpu is -4: must be at least 0"),
    (
        at("pod.sharedMemory", "1GB"),
        'pod.sharedMemory is "1GB": must be none or a quantity, e.g. 4, 500m or 8Gi',
    ),
    (at("state.capacity", "1GB"), f'state.capacity is "1GB": {QUANTITY}'),
    # images
    *(
        (runner(image=image), f'containers[0].image is "{image}": {IMAGE}')
        for image in (
            "ubuntu noble",
            "ubuntu: noble",
            "Ubuntu",
            "ubuntu:",
            "https://ghcr.io/a/b",
            "a//b",
            "a@sha256:12",
        )
    ),
    (at("flux.container.image", " view"), f'flux.container.image is " view": {IMAGE}'),
    (at("flux.bursting.follow.image", "a b"), f'flux.bursting.follow.image is "a b": {IMAGE}'),
    # names
    ({"nameOverride": "A"}, f'nameOverride is "A": {LABEL}'),
    (at("network.headlessName", "-a"), f'network.headlessName is "-a": {LABEL}'),
    (at("flux.curveCertSecret", "Y"), f'flux.curveCertSecret is "Y": {SUBDOMAIN}'),
    (at("flux.container.name", ""), f'flux.container.name is "": {LABEL}'),
    (runner(name="A"), f'containers[0].name is "A": {LABEL}'),
    (runner(name="a" * 64), f'containers[0].name is "{"a" * 58}…: must be at most 63 characters'),
    (runner(imagePullSecret="A_b"), f'containers[0].imagePullSecret is "A_b": {SUBDOMAIN}'),
    (
        at("jobLabels", {"a": "b c"}),
        'jobLabels.a is "b c": must have only letters, digits, -, _ and ., and begin and end with a letter or digit',
    ),
    (at("jobLabels", {"a b": "c"}), f'jobLabels: the name "a b" {KEY}'),
    (at("pod.annotations", {"/a": "c"}), f'pod.annotations: the name "/a" {KEY}'),
    (runner(environment={"1a": "x"}), f'containers[0].environment: the name "1a" {VARIABLE}'),
    (
        at("flux.environment", {"A-B": "x"}),
        'flux.environment: the name "A-B" must have only letters, digits and _, and not begin with a digit',
    ),
    (runner(environment={"A": "", "": "x"}), f'containers[0].environment: the name "" {VARIABLE}'),
    (
        runner(secrets={"A": {"name": "a", "key": "b c"}}),
        'containers[0].secrets.A.key is "b c": must have only letters, digits, -, _ and .',
    ),
    (runner(volumes={"V": {}}), f'containers[0].volumes: the name "V" {LABEL}, at most 63 characters'),
    (
        runner(resources={"limits": {"mem": "4Gi"}}),
        'containers[0].resources.limits: the name "mem" must be cpu, memory, ephemeral-storage, hugepages-SIZE, or the '
        "DOMAIN/NAME of a device",
    ),
    (runner(ports=[80, 80]), "containers[0].ports is [80, 80]: must not have an item twice"),
    (runner(secrets={"A": {}}), "containers[0].secrets.A is {}: needs name and key"),
    (runner(secrets={"A": {"name": "x"}}), 'containers[0].secrets.A is {"name": "x"}: needs key'),
    # control characters
    (
        runner(commands={"script": "#!/bin/bash\r\necho\r\n"}),
        r'containers[0].commands.script is "#!/bin/bash\r\necho\r\n": must have no carriage returns: '
        "save it with line ends of Unix",
    ),
    *(
        (runner(environment={"A": text}), f"containers[0].environment.A is {shown}: must have no control characters")
        for text, shown in (("x\x1b", r'"x\u001b"'), ("\x7f", r'"\u007f"'), ("\uffff", r'"\uffff"'))
    ),
    (at("flux.brokerConfig", "a\x00"), r'flux.brokerConfig is "a\u0000": must have no control characters'),
    (runner(image="a\x00"), r'containers[0].image is "a\u0000": must have no control characters'),
    (
        runner(environment={"\x1b": "x"}),
        r'containers[0].environment: the name "\u001b" must have no control characters',
    ),
    (at("flux.optionFlags", "a\nb"), r'flux.optionFlags is "a\nb": must be one line'),
    (runner(commands={"prefix": "a\nb"}), r'containers[0].commands.prefix is "a\nb": must be one line'),
    (runner(command=3), "containers[0].command is 3: must be string or array"),
    (runner(command=[]), "containers[0].command is []: must have at least 1 item"),
    (runner(command=[1]), "containers[0].command[0] is 1: must be string"),
    (
        runner(command="a\rb"),
        r'containers[0].command is "a\rb": must have no carriage returns: save it with line ends of Unix',
    ),
    (runner(command=["a\x01"]), r'containers[0].command[0] is "a\u0001": must have no control characters'),
    # lists
    ({"containers": []}, "containers is []: must have at least 1 item"),
    (
        {"containers": [{}, {}]},
        "containers[0] and containers[1] could each run Flux: set runFlux: true on the one that does",
    ),
    (
        {"containers": [{"runFlux": True}, {"name": "a", "runFlux": True}]},
        "containers[0] and containers[1] have runFlux: true, and only one can run Flux: leave it on that one",
    ),
    (
        {"containers": [{"runFlux": True}, {}]},
        "containers[1] has no name: give it one; only the runner needs none",
    ),
    (
        {"containers": [{"runFlux": True}, {"name": "a"}, {"name": "a"}]},
        "two containers are named a: rename one of them",
    ),
    (at("pod.nodeAffinity", {"a": []}), "pod.nodeAffinity.a is []: must have at least 1 item"),
    # values that contradict each other
    ({"size": 4, "maxSize": 3}, "size is 4, maxSize 3: lower size, or install with a larger maxSize"),
    ({"size": 2, "minSize": 3}, "minSize is 3, size 2: minSize can't be above size; lower minSize"),
    (
        runner(command="x", commands={"script": "y"}),
        "containers[0] has command and commands.script: give the one that is the work",
    ),
    (
        {"interactive": True, **runner(command=["x"])},
        "interactive is true and there is a command: an interactive cluster runs none; drop one of them",
    ),
    (
        {"interactive": True, **runner(commands={"script": "x"})},
        "interactive is true and there is a command: an interactive cluster runs none; drop one of them",
    ),
    (
        at("flux.scheduler", {"simple": True, "queuePolicy": "easy"}),
        "flux.scheduler.queuePolicy is easy and simple is true: sched-simple has fcfs only; drop it",
    ),
    (
        at("flux", {"curveCert": "x", "curveCertSecret": "y"}),
        "flux.curveCert and flux.curveCertSecret are both set: give one of them",
    ),
    (
        at("flux.container", {"disable": True, "mode": "copy"}),
        "flux.container.disable is true and mode is copy: without a view there is no mode; drop it",
    ),
    *(
        (
            deep(at("flux.brokerConfig", "a = 1"), at(path, value)),
            f"{path} and flux.brokerConfig are both set: brokerConfig is used as given; set it there",
        )
        for path, value in (
            ("flux.scheduler.queuePolicy", "easy"),
            ("flux.scheduler.simple", True),
            ("flux.locations", True),
            ("network.interface", "eth1"),
            ("network.clusterDomain", "x"),
        )
    ),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED, ids=[message[:60] for _, message in REFUSED])
def test_a_wrong_value_is_refused_in_one_line(cluster_of: Make, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        cluster_of(spec)
    assert str(caught.value) == f"MiniCluster flux-sample: {message}"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("A", "'A'"),
        ("", "''"),
        (None, "None"),
        (3, "3"),
        ("a.b", "'a.b'"),
        ("-a", "'-a'"),
        ("a-", "'a-'"),
        ("a\n", r"'a\n'"),
    ],
)
def test_a_name_that_is_not_a_dns_label_is_refused(cluster_of: Make, name: Any, shown: str) -> None:
    with pytest.raises(SpecError) as caught:
        cluster_of(name=name)
    assert str(caught.value) == (
        f"the name {shown} is not a DNS label: use a-z, 0-9 and - (nameOverride, or the release's name)"
    )


@pytest.mark.parametrize("namespace", ["a b", "a\nb", "A", "-a", "a-", "a\u2028b", 7])
def test_a_namespace_that_is_not_a_dns_label_is_refused(namespace: Any) -> None:
    with pytest.raises(SpecError) as caught:
        load({"metadata": {"name": "a", "namespace": namespace}})
    assert str(caught.value) == f"MiniCluster a: the namespace {namespace!r} is not a DNS label: use a-z, 0-9 and -"


@pytest.mark.parametrize("key", ["labels", "annotations"])
@pytest.mark.parametrize("value", ["", [], 0, {"a": 1}, {1: "a"}], ids=str)
def test_labels_and_annotations_that_are_not_maps_of_strings_are_refused(key: str, value: Any) -> None:
    with pytest.raises(SpecError) as caught:
        load({"metadata": {"name": "a", key: value}})
    assert str(caught.value) == f"MiniCluster a: metadata.{key} must be a map of strings"


@pytest.mark.parametrize(("length", "max_size"), [(62, 1), (61, 11), (60, 101)])
def test_a_name_too_long_for_the_last_pod_is_refused(cluster_of: Make, length: int, max_size: int) -> None:
    name = "a" * length
    cluster_of({"maxSize": max_size}, name=name[1:])
    with pytest.raises(SpecError) as caught:
        cluster_of({"maxSize": max_size}, name=name)
    assert str(caught.value) == (
        f"MiniCluster {name}: the last pod would be {name}-{max_size - 1}, 64 characters: "
        "63 are allowed; shorten nameOverride"
    )
    assert cluster_of({"maxSize": max_size - 1 or None}, name=name[1:]).name == name[1:]


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"size": 4.0},
        {"maxSize": None, "minSize": None},
        {"size": 4, "maxSize": 4, "minSize": 4},
        {"tasks": 0, "backoffLimit": 0},
        runner(command="x" * 131_072),
        runner(command="tab\tand\nnewline"),
        runner(environment={"A": None, "a.b-c": "x"}),
        at("flux", {"container": {"disable": True}}),
        at("flux", {"brokerConfig": "a = 1", "scheduler": {"queuePolicy": "", "matchPolicy": ""}}),
        at("flux.connectTimeout", "100ms"),
        at("flux.topology", "kary:32"),
        at("network.interface", "[::1]"),
        at("flux.scheduler", {"simple": True, "queuePolicy": "fcfs"}),
        at("pod.sharedMemory", 1073741824),
        at("pod.sharedMemory", "none"),
        *(
            runner(image=image)
            for image in (
                "",
                "ubuntu",
                "ubuntu:24.04",
                "library/ubuntu:noble",
                "localhost:5000/a/b_c/d__e/f-g.h",
                "Registry.example.com:443/a:V1.0_x-y",
                "[::1]:5000/a",
                "ghcr.io/a/b@sha256:" + "0" * 64,
                "ghcr.io/a/b:tag@sha256:" + "a" * 64,
            )
        ),
        at("global", {"anything": [1]}),
    ],
    ids=lambda x: str(x)[:50],
)
def test_valid_values_are_accepted(cluster_of: Make, spec: dict[str, Any] | None) -> None:
    cluster_of(spec)


def test_an_empty_spec_has_the_defaults_of_the_chart(cluster_of: Make) -> None:
    assert cluster_of().spec == DEFAULTS


def test_the_package_contains_the_chart() -> None:
    assert (PACKAGE / "chart").resolve() == CHART


def test_values_are_merged_over_the_defaults_and_null_is_unset(cluster_of: Make) -> None:
    spec = {
        "size": 3,
        "tasks": None,
        "flux": {"logLevel": 3, "scheduler": {"simple": True}, "wrap": None},
        "containers": [{"command": "x", "cores": None}],
    }
    wanted = deep(DEFAULTS, {"size": 3, "flux": {"logLevel": 3, "scheduler": {"simple": True}}})
    assert cluster_of(spec).spec == wanted | {"containers": [{"command": "x"}]}


VOLUME = {"path": "/a", "configMapName": "c"}
NULL: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(({key: None}, {}) for key in ("environment", "secrets", "resources", "volumes", "command", "ports", "cores")),
    *(({key: {"x": None}}, {key: {}}) for key in ("environment", "secrets", "volumes")),
    ({"environment": {"X": None, "Y": "1"}}, {"environment": {"Y": "1"}}),
    ({"commands": None}, {}),
    ({"commands": {"pre": None, "servicePre": "x"}, "command": "y"}, {"commands": {"servicePre": "x"}, "command": "y"}),
    ({"lifeCycle": {"postStartExec": None}}, {"lifeCycle": {}}),
    ({"resources": {"limits": None}}, {"resources": {}}),
    ({"resources": {"limits": {"cpu": None, "memory": "1Gi"}}}, {"resources": {"limits": {"memory": "1Gi"}}}),
    ({"volumes": {"v": {**VOLUME, "claimName": None}}}, {"volumes": {"v": VOLUME}}),
    ({"volumes": {"v": {**VOLUME, "items": {"k": None}}}}, {"volumes": {"v": {**VOLUME, "items": {}}}}),
    ({"securityContext": {"runAsUser": None}}, {"securityContext": {}}),
    ({"securityContext": {"capabilities": {"add": None}}}, {"securityContext": {"capabilities": {}}}),
]


@pytest.mark.parametrize(("null", "unset"), NULL, ids=str)
def test_null_in_an_item_of_a_list_is_unset(cluster_of: Make, null: dict[str, Any], unset: dict[str, Any]) -> None:
    assert cluster_of({"services": [{"name": "a", **null}]}).spec["services"] == [{"name": "a", **unset}]


def test_a_byte_order_mark_before_a_text_of_a_file_is_dropped(cluster_of: Make) -> None:
    def spec(mark: str) -> dict[str, Any]:
        own = {"command": f"{mark}a", "runFlux": True, "commands": {"pre": f"{mark}b\ufeff\n", "post": mark}}
        other = {"name": "other", "commands": {"script": f"{mark}#!/bin/sh\n", "init": f"{mark}d"}}
        return {"containers": [own, other], "services": [{"name": "a", "command": f"{mark}e"}]}

    assert cluster_of(spec("\ufeff")).spec == cluster_of(spec("")).spec
    assert cluster_of(at("flux.brokerConfig", "\ufeffa = 1")).flux["brokerConfig"] == "a = 1"


def test_null_as_an_item_of_a_list_is_refused(cluster_of: Make) -> None:
    with pytest.raises(SpecError) as caught:
        cluster_of(runner(ports=[None]))
    assert str(caught.value) == "MiniCluster flux-sample: containers[0].ports[0] is null: must be integer"


def test_zero_false_and_empty_texts_are_not_replaced_by_defaults(cluster_of: Make) -> None:
    cluster = cluster_of({"tasks": 0, "backoffLimit": 0, "logging": {"strict": False}, "flux": {"connectTimeout": ""}})
    values = (cluster.spec["tasks"], cluster.spec["backoffLimit"], cluster.spec["logging"]["strict"])
    assert (*values, cluster.flux["connectTimeout"]) == (0, 0, False, "")


def test_a_cluster_has_its_sizes_service_namespace_and_paths(cluster_of: Make) -> None:
    cluster = cluster_of({"size": 2, "maxSize": 5})
    assert (cluster.size, cluster.max_size, cluster.service) == (2, 5, "flux-sample")
    assert (cluster.mount, cluster.files, cluster.state) == ("/mnt/flux", "/mnt/flux/minicluster", "/mnt/flux/config")
    assert cluster_of({"network": {"headlessName": "x"}}).service == "x"
    assert load({"metadata": {"name": "a"}}).namespace == "default"


def test_an_unquoted_date_is_read_as_a_text() -> None:
    document = (
        f"apiVersion: {GROUP}/v1\nkind: MiniCluster\nmetadata: {{name: a}}\nspec: {{jobLabels: {{a: 2001-01-01}}}}\n"
    )
    parsed = stream.parse(document.encode())
    assert parsed is not None
    assert load(parsed).spec["jobLabels"] == {"a": "2001-01-01"}


SPEC: dict[str, Any] = {"jobLabels": {"a": "08"}, "containers": [{"command": "echo 'ü' \"$x\"\n"}], "archive": None}


def test_the_spec_may_be_a_json_text() -> None:
    metadata = {"metadata": {"name": "a"}}
    assert load({**metadata, "spec": json.dumps(SPEC)}) == load({**metadata, "spec": SPEC})


DEEP = "spec is nested more than 100 levels deep"
NO_SPEC: dict[str, tuple[Any, str]] = {
    "no json": ("{", "spec is a text that is not JSON (Expecting property name enclosed in double quotes: line 1 "),
    "a word": ("size", "spec is a text that is not JSON (Expecting value: line 1 column 1 (char 0)): write it as "),
    "a list": ("[]", "the spec is []: must be object"),
    "100 levels": ("[" * 100 + "]" * 100, "the spec is [[["),
    "101 levels": ("[" * 101 + "]" * 101, DEEP),
    "many levels": ("[" * 100_000 + "]" * 100_000, DEEP),
    "101 levels, not as JSON": (nested(["x"] * 101, {}), DEEP),
    "a key that is no text": ({1: 2}, "the key 1 is not a string: write it in quotes"),
}


@pytest.mark.parametrize("case", NO_SPEC)
def test_a_spec_that_is_not_a_map_of_values_is_refused(case: str) -> None:
    spec, message = NO_SPEC[case]
    with pytest.raises(SpecError) as error:
        load({"metadata": {"name": "a"}, "spec": spec})
    assert str(error.value).startswith(f"MiniCluster a: {message}")
    assert "\n" not in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda items: (
        st.lists(items, max_size=3)
        | st.dictionaries(st.sampled_from(sorted(DEFAULTS)) | st.text(max_size=5), items, max_size=3)
    ),
    max_leaves=8,
)


@given(spec=st.dictionaries(st.sampled_from(sorted(DEFAULTS)) | st.text(max_size=8), JSON, max_size=4))
def test_any_spec_is_accepted_or_refused_in_one_line(cluster_of: Make, spec: dict[str, Any]) -> None:
    try:
        cluster_of(spec)
    except SpecError as error:
        text = str(error)
        assert text.startswith("MiniCluster flux-sample: ")
        assert len(text.splitlines()) == 1
