"""How a MiniCluster is read, and how its values are written."""

import yaml
from conversion import ONE, V1ALPHA2, converted, document
from minicluster import yamlio
from minicluster.convert import convert


def test_convert_reads_yaml_that_kubectl_reads() -> None:
    text = (
        f"apiVersion:\t{V1ALPHA2}\nkind: MiniCluster\t# x\nmetadata: {{name:\ta}}\nspec:\n  size:\t2\n  containers:\n"
    )
    text += "  - image: !!binary aQ==\n  pod:\n    labels: {2: x, true: z}\n"
    (values,), _ = convert(text.encode())
    found = yamlio.load(values.text)
    assert (values.name, found["size"]) == ("a", 2)
    assert found["containers"] == [{"image": "i"}]
    assert found["pod"] == {"labels": {"2": "x", "true": "z"}}


def test_convert_keeps_the_order_of_the_keys() -> None:
    cluster = {"tasks": 1, "size": 2, "flux": {"topology": "", "arch": ""}, "containers": [{"logs": "", "image": "i"}]}
    values, _ = converted(cluster)
    assert list(values) == ["tasks", "size", "flux", "containers", "logging"]
    assert list(values["flux"]) == ["topology", "arch"]
    assert list(values["containers"][0]) == ["logs", "image"]


def test_convert_reads_plain_scalars_as_kubernetes_does() -> None:
    text = "{A: 1:30:00, B: 2024-01-01, C: =, D: '007'}"
    data = f"apiVersion: {V1ALPHA2}\nkind: MiniCluster\nmetadata: {{name: a}}\nspec:\n  containers:\n"
    (values,), _ = convert(f"{data}  - image: i\n    environment: {text}\n".encode())
    written = values.text.partition("environment:\n")[2].splitlines()[:4]
    # quoted, so that readers of YAML 1.1 find texts too
    assert [line.strip() for line in written] == ["A: '1:30:00'", "B: '2024-01-01'", "C: '='", "D: '007'"]


def test_convert_writes_yaml_anchors_out() -> None:
    data = yaml.safe_dump(document(ONE)).replace("image: i", "image: i\n    environment: &e {A: b}\n    secrets: {}")
    (values,), _ = convert(f"{data}  flux: {{environment: *e}}\n".encode())
    assert "*" not in values.text
    assert values.text.count("A: b") == 2


def test_a_name_too_long_for_a_release_becomes_a_name_override() -> None:
    name = "n" * 60
    (values,), _ = convert(yaml.safe_dump(document(ONE, name=name)).encode())
    command, *notes = [line for line in values.text.splitlines() if line.startswith("#")]
    assert command.startswith(f"# helm install {'n' * 53} ")
    assert f"-f {name}-values.yaml" in command
    assert yaml.safe_load(values.text)["nameOverride"] == name
    assert "# nameOverride: a release's name has at most 53 characters" in notes
