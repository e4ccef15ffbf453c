"""The values that the schema refuses in both Helms, and the messages."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from minicluster.errors import END
from minicluster.render import schema
from renderings import runner
from support import CHART, DEFAULTS, Helm, lines_with, one, values_text


def _of_template(spec: Any) -> dict[str, Any]:
    return {"pod": {"template": {"spec": spec}}}


def _of_runner(**fields: Any) -> dict[str, Any]:
    return _of_template({"containers": [{"name": "flux-sample", **fields}]})


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
    (runner(command=[1]), "- at '/containers/0/command/0': got number, want string"),
    # parts of Kubernetes that the templates read
    (_of_template("foo"), "- at '/pod/template/spec': got string, want object"),
    (
        _of_template({"schedulingGroup": {}, "containers": "x"}),
        "- at '/pod/template/spec/containers': got string, want array",
    ),
    (_of_template({"containers": ["x"]}), "- at '/pod/template/spec/containers/0': got string, want object"),
    (_of_runner(lifecycle="x"), "- at '/pod/template/spec/containers/0/lifecycle': got string, want object"),
    (_of_runner(volumeMounts="x"), "- at '/pod/template/spec/containers/0/volumeMounts': got string, want array"),
    (
        _of_runner(volumeMounts=[{"mountPath": 3}]),
        "- at '/pod/template/spec/containers/0/volumeMounts/0/mountPath': got number, want string",
    ),
    (
        _of_runner(volumeMounts=[{"name": "a"}]),
        "- at '/pod/template/spec/containers/0/volumeMounts/0': missing property 'mountPath'",
    ),
    (
        runner(securityContext={"capabilities": "x"}) | {"metrics": {"enabled": True}},
        "- at '/containers/0/securityContext/capabilities': got string, want object",
    ),
    (
        runner(securityContext={"capabilities": {"drop": "ALL"}}),
        "- at '/containers/0/securityContext/capabilities/drop': got string, want array",
    ),
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
    (
        runner(commands={"nodeCheckSeconds": 0}),
        "- at '/containers/0/commands/nodeCheckSeconds': minimum: got 0, want 1",
    ),
    (
        runner(commands={"nodeCheck": ["nvidia-smi"]}),
        "- at '/containers/0/commands/nodeCheck': got array, want string",
    ),
    (runner(resources={"limits": {"cpu": -4}}), "- at '/containers/0/resources/limits/cpu': minimum: got -4, want 0"),
    # choices and texts
    ({"flux": {"arch": "x86"}}, "- at '/flux/arch': value must be one of '', 'arm'"),
    (
        {"flux": {"container": {"mode": "x"}}},
        "- at '/flux/container/mode': value must be one of 'auto', 'image', 'copy'",
    ),
    ({"flux": {"submitCommand": ""}}, "- at '/flux/submitCommand': minLength: got 0, want 1"),
    ({"nameOverride": "a" * 64}, "- at '/nameOverride': maxLength: got 64, want 63"),
    (
        {"kind": "MiniCluster", "spec": {}},
        "- at '/kind': value must be 'absent: this is a MiniCluster, of which `minicluster convert FILE` makes values'",
    ),
    (
        runner(preCommand="x"),
        "- at '/containers/0/preCommand': value must be 'absent: write it as commands.pre'",
    ),
    ({"spec": {}}, "- at '/spec': value must be 'absent: drop the line `spec:`, and indent what is below it less'"),
]


def merged(base: Any, over: Any) -> Any:
    """Return maps, and lists of one map each, merged key by key."""
    if isinstance(base, dict) and isinstance(over, dict):
        return base | {key: merged(base.get(key), item) for key, item in over.items()}
    both = isinstance(base, list) and isinstance(over, list) and base
    return [merged(base[0], over[0])] if both else over


def together() -> list[tuple[dict[str, Any], list[str]]]:
    """Return values with many faults, and the line of each: Helm tells all faults that are not within each other."""
    groups: list[tuple[dict[str, Any], list[str]]] = []
    for values, line in REFUSED:
        place = line.split("'")[1] + "/"
        for index, (others, lines) in enumerate(groups):
            places = [known.split("'")[1] + "/" for known in lines]
            if not any(place.startswith(known) or known.startswith(place) for known in places):
                groups[index] = merged(others, values), [*lines, line]
                break
        else:
            groups.append((values, [line]))
    return groups


@pytest.mark.parametrize(("values", "lines"), together(), ids=lambda x: "" if isinstance(x, dict) else x[0])
def test_helm_refuses_values_that_the_schema_does_not_allow(
    helm: Helm, values: dict[str, Any], lines: list[str]
) -> None:
    done = helm.run("template", "x", CHART, "--values", "-", stdin=json.dumps(values))
    assert done.code != 0
    assert done.out == ""
    told = {line.strip() for line in done.err.splitlines() if line.strip().startswith("- at ")}
    # of an object with several faults
    assert {line for line in told if not line.endswith(": validation failed")} == set(lines)


SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
#: No format allows them, and they break YAML that is not quoted.
BREAKS = "A\"': [{\n---\n\x85 #\\\u2028"
WRONG = [BREAKS, "\x7f", '\\\x80\U0001f680"', "\ufffe\uffff"]


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and all schemas in it."""
    if isinstance(schema, dict):
        yield schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from parts(part)


def wrong(schema: dict[str, Any], text: str) -> Any:
    """Return a value in which each text and name with a format is wrong, or None if no part has a format."""
    schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if "format" in schema:
        return text
    if "properties" in schema:
        found = {key: wrong(part, text) for key, part in schema["properties"].items()}
        return {key: value for key, value in found.items() if value is not None} or None
    if isinstance(schema.get("additionalProperties"), dict):
        return {text if "propertyNames" in schema else "a": wrong(schema["additionalProperties"], text)}
    item = wrong(schema["items"], text) if "items" in schema else None
    return None if item is None else [item]


def texts(value: Any) -> Iterator[str]:
    """Yield the wrong names and texts of a value, each by its path, as a message has it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from (" the name",) if key in WRONG else ()
            yield from (f".{key}{path}" for path in texts(item))
    elif isinstance(value, list):
        yield from (f"[0]{path}" for path in texts(value[0]))
    else:
        yield ""


def refusal(helm: Helm, values: dict[str, Any]) -> str:
    """Return the message of the post-renderer about values that it refuses."""
    done = helm.run(
        "template", "x", CHART, "--post-renderer", "minicluster", "--values", "-", stdin=values_text(values)
    )
    assert (done.code, done.out) == (1, "")
    (line,) = lines_with(done.err, "minicluster: ")
    return line.partition("minicluster: ")[2].partition(END)[0]


def test_the_schema_has_no_pattern_that_helm_would_show() -> None:
    keywords = {key for part in parts(SCHEMA) for key in part}
    assert not keywords & {"pattern", "patternProperties", "anyOf", "oneOf", "not"}


@pytest.mark.parametrize("text", WRONG, ids=ascii)
def test_the_post_renderer_checks_each_format_of_the_schema(helm: Helm, text: str) -> None:
    values = wrong(SCHEMA, text)
    handed_over = json.loads(one(helm.template(values=values), "MiniCluster")["spec"])
    assert handed_over["containers"] == values["containers"]
    found = list(schema.problems(handed_over))
    assert len(found) > 90
    assert len(found) == len(list(texts(values)))
    assert [sentence for sentence in found if " must have no control characters" not in sentence] == []


@pytest.mark.parametrize("text", WRONG[:2], ids=ascii)
def test_a_wrong_text_reaches_the_user_as_it_is(helm: Helm, text: str) -> None:
    values = wrong(SCHEMA, text)
    assert (
        refusal(helm, values)
        == f"the name {text!r} is not a DNS label: use a-z, 0-9 and - (nameOverride, or the release's name)"
    )
    said = refusal(helm, {**values, "nameOverride": ""})
    assert said == f"MiniCluster x: {next(schema.problems({**DEFAULTS, **values, 'nameOverride': ''}))}"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            runner(resources={"limits": {"memory": "4GB"}}),
            'containers[0].resources.limits.memory is "4GB": must be a quantity, e.g. 4, 500m or 8Gi',
        ),
        (
            runner(image="ubuntu noble"),
            'containers[0].image is "ubuntu noble": must be an image such as ubuntu:noble or ghcr.io/org/app:1.0',
        ),
        (
            runner(environment={"1A": "x"}),
            'containers[0].environment: the name "1A" must have only letters, digits, -, _ and ., and not begin with a '
            "digit",
        ),
        (runner(command="x\x1b"), r'containers[0].command is "x\u001b": must have no control characters'),
    ],
    ids=lambda x: x[:40] if isinstance(x, str) else "",
)
def test_the_post_renderer_refuses_a_wrong_text_in_a_sentence(values: dict[str, Any], sentence: str) -> None:
    assert list(schema.problems(values)) == [sentence]


def test_helm_accepts_valid_values(helm: Helm) -> None:
    limits = {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": 0.5}}
    values = {
        "maxSize": None,
        "minSize": None,
        "flux": {"topology": "kary:2", "connectTimeout": "", "wrap": "strace,-e,network"},
        "global": {"any": {"thing": 1}},
        "pod": {"template": {"spec": {"anything": [1, None]}}, "terminationGracePeriodSeconds": 0},
    }
    for command in ("several\n\tlines", ["", " "]):
        helm.template(values=values | runner(command=command, environment={"a.b-c": ""}, resources=limits))
