"""The schema: what it refuses in both Helms, and in which words."""

import json
from typing import Any

import pytest
from renderings import runner
from support import CHART, Helm, lines_with, values_text

QUANTITY = r"^\\+?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?$"
#: What names of labels and of resources must match.
LABEL = r"^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
RESOURCE = r"^(cpu|memory|ephemeral-storage|hugepages-[0-9]+[KMGTPE]i|[-.a-z0-9]+/[-._A-Za-z0-9]+)$"
REFUSED: list[Any] = [
    ({"siez": 1}, "- at '': additional properties 'siez' not allowed"),
    ({"flux": {"wrapp": 1}}, "- at '/flux': additional properties 'wrapp' not allowed"),
    ({"flux": {"container": {"x": 1}}}, "- at '/flux/container': additional properties 'x' not allowed"),
    ({"flux": {"scheduler": {"x": 1}}}, "- at '/flux/scheduler': additional properties 'x' not allowed"),
    ({"network": {"x": 1}}, "- at '/network': additional properties 'x' not allowed"),
    ({"logging": {"x": 1}}, "- at '/logging': additional properties 'x' not allowed"),
    ({"pod": {"x": 1}}, "- at '/pod': additional properties 'x' not allowed"),
    (runner(x=1), "- at '/containers/0': additional properties 'x' not allowed"),
    (runner(commands={"x": 1}), "- at '/containers/0/commands': additional properties 'x' not allowed"),
    (runner(resources={"x": 1}), "- at '/containers/0/resources': additional properties 'x' not allowed"),
    (runner(secrets={"A": {"name": "x"}}), "- at '/containers/0/secrets/A': missing property 'key'"),
    ({"containers": []}, "- at '/containers': minItems: got 0, want 1"),
    # types
    ({"size": "4"}, "- at '/size': got string, want integer"),
    ({"size": 1.5}, "- at '/size': got number, want integer"),
    ({"maxSize": "x"}, "- at '/maxSize': got string, want null or integer"),
    ({"interactive": "yes"}, "- at '/interactive': got string, want boolean"),
    ({"flux": {"environment": {"A": 1}}}, "- at '/flux/environment/A': got number, want string"),
    (runner(command=[1]), "- at '/containers/0/command': 'anyOf' failed"),
    # numbers
    ({"size": 0}, "- at '/size': minimum: got 0, want 1"),
    ({"size": -3}, "- at '/size': minimum: got -3, want 1"),
    ({"maxSize": 0}, "- at '/maxSize': minimum: got 0, want 1"),
    ({"minSize": 0}, "- at '/minSize': minimum: got 0, want 1"),
    ({"tasks": -1}, "- at '/tasks': minimum: got -1, want 0"),
    ({"backoffLimit": -1}, "- at '/backoffLimit': minimum: got -1, want 0"),
    ({"deadlineSeconds": 0}, "- at '/deadlineSeconds': minimum: got 0, want 1"),
    (runner(cores=0), "- at '/containers/0/cores': minimum: got 0, want 1"),
    ({"flux": {"logLevel": 8}}, "- at '/flux/logLevel': maximum: got 8, want 7"),
    # quantities
    *(
        (values, f"{place}: '{quantity}' does not match pattern '{QUANTITY}'")
        for quantity in ("4GB", "64MB", "-4", "4 Gi", "", "four", "4gi", "1Ki5")
        for place, values in (
            ("- at '/containers/0/resources/limits/memory'", runner(resources={"limits": {"memory": quantity}})),
            ("- at '/pod/resources/cpu'", {"pod": {"resources": {"cpu": quantity}}}),
            (
                "- at '/containers/0/volumes/v/emptyDirSizeLimit'",
                runner(volumes={"v": {"emptyDir": True, "emptyDirSizeLimit": quantity}}),
            ),
        )
    ),
    (runner(resources={"limits": {"cpu": -4}}), "- at '/containers/0/resources/limits/cpu': minimum: got -4, want 0"),
    (
        runner(resources={"limits": {"mem": "4Gi"}}),
        f"- at '/containers/0/resources/limits/mem': value must be 'absent: a name here must match {RESOURCE}'",
    ),
    ({"jobLabels": {"a b": "c"}}, f"- at '/jobLabels/a b': value must be 'absent: a name here must match {LABEL}'"),
    (
        {"pod": {"annotations": {"/a": "c"}}},
        f"- at '/pod/annotations/~1a': value must be 'absent: a name here must match {LABEL}'",
    ),
    # choices and texts
    ({"flux": {"arch": "x86"}}, "- at '/flux/arch': value must be one of '', 'arm'"),
    (
        {"flux": {"container": {"mode": "x"}}},
        "- at '/flux/container/mode': value must be one of 'auto', 'image', 'copy'",
    ),
    ({"flux": {"submitCommand": ""}}, "- at '/flux/submitCommand': minLength: got 0, want 1"),
    (
        {"flux": {"connectTimeout": "5 s"}},
        r"- at '/flux/connectTimeout': '5 s' does not match pattern '^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d)?)?$'",
    ),
    ({"nameOverride": "a" * 64}, "- at '/nameOverride': maxLength: got 64, want 63"),
    ({"nameOverride": "A"}, "- at '/nameOverride': 'A' does not match pattern '^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$'"),
    (
        {"flux": {"environment": {"A-B": "x"}}},
        "- at '/flux/environment/A-B': value must be 'absent: a name here must match ^[a-zA-Z_][a-zA-Z0-9_]*$'",
    ),
    (
        {"kind": "MiniCluster", "spec": {}},
        "- at '/kind': value must be 'absent: this is a MiniCluster, of which `minicluster convert FILE` makes values'",
    ),
    ({"spec": {}}, "- at '/spec': value must be 'absent: drop the line `spec:`, and indent what is below it less'"),
]


@pytest.mark.parametrize(("values", "line"), REFUSED, ids=lambda x: x[5:60] if isinstance(x, str) else "")
def test_helm_refuses(helm: Helm, values: dict[str, Any], line: str) -> None:
    done = helm.run("template", "x", CHART, "--values", "-", stdin=json.dumps(values))
    assert done.code != 0
    assert done.out == ""
    assert line in done.err.splitlines()


@pytest.mark.parametrize("text", ["x\x1b", "x\r\n", "\x7f", "\u0080", "\uffff"])
def test_helm_refuses_control_characters(helm: Helm, text: str) -> None:
    values = runner(command=text, environment={"A": text}, commands={"pre": text})
    done = helm.run("template", "x", CHART, "--values", "-", stdin=values_text(values))
    assert done.code != 0
    for place in ("command", "environment/A", "commands/pre"):
        assert lines_with(done.err, f"- at '/containers/0/{place}':")


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"maxSize": None, "minSize": None},
        {"flux": {"topology": "kary:2", "connectTimeout": "", "wrap": "strace,-e,network"}},
        {"global": {"any": {"thing": 1}}},
        runner(command="several\n\tlines"),
        runner(command=["", " "]),
        runner(environment={"a.b-c": ""}, resources={"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": 0.5}}),
        {"pod": {"template": {"spec": {"anything": [1, None]}}, "terminationGracePeriodSeconds": 0}},
    ],
    ids=str,
)
def test_helm_takes(helm: Helm, values: dict[str, Any]) -> None:
    helm.template(values=values)
