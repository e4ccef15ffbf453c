"""A real API server accepts what each file of values-examples/ renders to."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from minicluster.render import postrender
from simulated import new_namespace
from support import ROOT, Helm, load_all

from tools.embedded import EmbeddedCluster

FILES = sorted((ROOT / "values-examples").glob("*.yaml"))
#: Options of helm for the two modes of the view: copied, and mounted as an image.
VERSIONS = {"offline": (), "live": ("--api-versions", "batch/v1/Job", "--kube-version", "1.36.0")}


@pytest.fixture(scope="module")
def place(cluster: EmbeddedCluster) -> Iterator[str]:
    """Make one namespace for all examples: a dry run leaves nothing in it."""
    name = new_namespace(cluster)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_api_server_accepts_it(cluster: EmbeddedCluster, place: str, helm4: Helm, file: Path, version: str) -> None:
    stream = helm4.template(*VERSIONS[version], "--namespace", place, values=file.read_text(), release=file.stem)
    manifests = load_all(postrender.render(stream.encode(), seed=None, allow_random=True).decode())
    # test_gangs.py has the PodGroups
    known = {"apiVersion": "v1", "kind": "List", "items": [one for one in manifests if one["kind"] != "PodGroup"]}
    words = ("apply", "--dry-run=server", "--validate=strict", "--filename=-")
    applied = cluster.kubectl(*words, stdin=json.dumps(known))
    assert f"job.batch/{file.stem} created (server dry run)" in applied
    assert f"configmap/{file.stem}-config created (server dry run)" in applied
