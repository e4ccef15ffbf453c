"""How a MiniCluster is read, and how its values are written."""

import json
from typing import Any

import pytest
import yaml
from conversion import ONE, V1ALPHA2, converted, document
from minicluster.convert import ConvertError, convert
from minicluster.documents import yamlio


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


NAMED = {"batch.kubernetes.io/job-name": "a"}
LEAD = {"batch.kubernetes.io/job-completion-index": "0"}
SELECTORS: list[tuple[Any, str, dict[str, str]]] = [
    ({"job-index": "0"}, "job-index", NAMED | LEAD),
    ({"job-name": "b", "job-index": 0}, "job-index", {"job-name": "b"} | LEAD),
    ({"hpa-selector": "b", "tier": "x"}, "hpa-selector", {"tier": "x", "batch.kubernetes.io/job-name": "b"}),
    ({"app": "flux-operator"}, "app", NAMED),
    ({"app.kubernetes.io/name": "a", "job-index": "0"}, "app.kubernetes.io/name, job-index", NAMED | LEAD),
]


def remark(selector: Any, *names: str) -> list[str]:
    """Return what is said of a Service beside MiniClusters."""
    service = {"kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": selector}}
    return convert(yaml.safe_dump_all([*(document(ONE, name=name) for name in names), service]).encode())[1]


@pytest.mark.parametrize(("selector", "labels", "here"), SELECTORS, ids=str)
def test_convert_names_the_selector_of_a_service_by_labels_that_only_flux_operator_sets(
    selector: Any, labels: str, here: dict[str, str]
) -> None:
    assert remark(selector, "a") == [
        f"Service web selects pods by {labels}, as only an operator labels them: apply it with the selector "
        f"{json.dumps(here)}"
    ]


def test_convert_does_not_guess_which_of_several_clusters_a_service_selects() -> None:
    assert remark({"job-index": "0"}, "a", "b")[0].endswith(f"{json.dumps(NAMED | LEAD)}".replace('"a"', '"NAME"'))


@pytest.mark.parametrize("selector", [{"job-name": "a"}, {"app": "web"}, {"app.kubernetes.io/name": "b"}, {}, None, []])
def test_convert_leaves_other_services_as_they_are(selector: Any) -> None:
    assert remark(selector, "a") == ["Service web is not converted: apply it as before"]


def test_a_name_too_long_for_a_release_becomes_a_name_override() -> None:
    name = "n" * 60
    (values,), _ = convert(yaml.safe_dump(document(ONE, name=name)).encode())
    command, *notes = [line for line in values.text.splitlines() if line.startswith("#")]
    assert command.startswith(f"# helm install {'n' * 53} ")
    assert f"-f {name}-values.yaml" in command
    assert yaml.safe_load(values.text)["nameOverride"] == name
    assert "# nameOverride: a release's name has at most 53 characters" in notes


def lists(kind: str, *, named: bool = True) -> bytes:
    both = [document(ONE, name) for name in ("one", "two")]
    items = both if named else [{"metadata": one["metadata"], "spec": one["spec"]} for one in both]
    version = "v1" if kind == "List" else V1ALPHA2
    return yamlio.dump({"apiVersion": version, "kind": kind, "items": items})


@pytest.mark.parametrize("data", [lists("List"), lists("MiniClusterList"), lists("MiniClusterList", named=False)])
def test_miniclusters_in_a_list_are_as_two_documents(data: bytes) -> None:
    expected = convert(b"".join(yamlio.dump(document(ONE, name)) for name in ("one", "two")))
    assert convert(data) == expected


def test_a_list_in_a_list_is_read() -> None:
    inner = yamlio.load(lists("MiniClusterList", named=False))
    values, remarks = convert(yamlio.dump({"apiVersion": "v1", "kind": "List", "items": [inner, {"kind": "A"}]}))
    assert [one.name for one in values] == ["one", "two"]
    assert remarks == ["A without a name is not converted: apply it as before"]


def test_an_object_with_items_is_no_list() -> None:
    values, remarks = convert(
        yamlio.dump(document(ONE)) + yamlio.dump({"kind": "Menu", "metadata": {"name": "a"}, "items": [document(ONE)]})
    )
    assert ([one.name for one in values], remarks) == (["a"], ["Menu a is not converted: apply it as before"])


def test_a_name_that_kubernetes_would_make_up_is_refused() -> None:
    given = document(ONE)
    given["metadata"] = {"generateName": "study-"}
    with pytest.raises(ConvertError) as caught:
        convert(yamlio.dump(given))
    assert str(caught.value) == (
        "a MiniCluster has metadata.generateName and no name: a release has one name for good; give metadata.name"
    )
