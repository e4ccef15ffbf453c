"""The objects of the chart get their own API version, and none of them without its MiniCluster."""

import json

import pytest
import yaml
from minicluster.errors import StreamError
from minicluster.render import stream
from support import GROUP, awaiting, load_all

LABELS = "  labels:\n    app.kubernetes.io/instance: a\n"
META = f"metadata:\n  name: a-x\n{LABELS}"
MINE = f"apiVersion: {GROUP}/v1\nmetadata: {{name: a, namespace: ns}}\nspec: {{}}\nkind: MiniCluster\n"
LOST = (
    "the {} is in the stream, and the document of its MiniCluster a is not: it was cut off, or a step before "
    "minicluster dropped it; give all that Helm renders"
)
OLD = (
    "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\n  labels: {app.kubernetes.io/instance: a}\n"
    "  annotations: {minicluster/immutable: '{}'}\n"
)


def render(*documents: str) -> str:
    return b"".join(stream.render("---\n".join(documents).encode(), lambda found: [[] for _ in found])).decode()


@pytest.mark.parametrize("version", ["v1", "batch/v1", "rbac.authorization.k8s.io/v1", "scheduling.k8s.io/v1alpha2"])
@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_an_object_gets_its_own_api_version_and_keeps_every_other_byte(version: str, quote: str) -> None:
    text = (
        "# a comment\napiVersion: {0}{1}{0} # x\nkind: A\n" + META + "text: |\n  apiVersion: " + f"{GROUP}/batch.v1\n"
    )
    assert render(text.format(quote, awaiting(version)), MINE) == text.format(quote, version)


def test_an_object_in_json_gets_its_own_api_version() -> None:
    document = {"apiVersion": awaiting("apps/v1"), "kind": "Deployment", **yaml.safe_load(META)}
    assert load_all(render(json.dumps(document) + "\n", MINE)) == [{**document, "apiVersion": "apps/v1"}]


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("Job a-x", f"apiVersion: {awaiting('batch/v1')}\nkind: Job\n{META}"),
        ("Service a-x", f"apiVersion: {awaiting('v1')}\nkind: Service\n{META}"),
        ("Job a", OLD),
    ],
)
def test_an_object_without_its_minicluster_is_refused(name: str, document: str) -> None:
    with pytest.raises(StreamError) as caught:
        render(document)
    assert str(caught.value) == LOST.format(name)


def test_each_minicluster_needs_its_document() -> None:
    other = f"apiVersion: {awaiting('batch/v1')}\nkind: Job\n{META}".replace("instance: a", "instance: b")
    with pytest.raises(StreamError, match="the document of its MiniCluster b is not"):
        render(other, MINE)


@pytest.mark.parametrize("config", ["a-config", "dev-a-config", "a-config-v2"])
def test_a_job_that_was_rendered_before_passes_unchanged(config: str) -> None:
    text = f"{OLD}---\nkind: ConfigMap\nmetadata:\n  name: {config}\n"
    assert render(text) == text


def test_a_minicluster_document_that_is_cut_off_is_refused() -> None:
    assert render(MINE.rstrip()) == ""
    for end in range(MINE.index("metadata"), len(MINE) - 2):
        with pytest.raises(StreamError):
            render(MINE[:end])
    with pytest.raises(StreamError, match="a MiniCluster document is cut off: give all that Helm renders"):
        render(MINE[: MINE.index("kind")])
