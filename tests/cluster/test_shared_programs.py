"""Many MiniClusters in one release: Helm keeps a release in one Secret of at most 1 MiB."""

import base64
from pathlib import Path

import pytest
from quick import QuickCluster
from support import CHART, Helm, chart_of_others
from versions import programs, umbrella

from tools.releases import Release

#: Bytes of a Secret
LIMIT = 1 << 20
LOOP = """{{ range $i := until (int .Values.count) }}---
apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata: {name: {{ $.Release.Name }}-{{ $i }}}
spec:
  size: 2
  containers: [{image: ubuntu:noble, command: hostname}]
{{ end }}"""


@pytest.fixture(scope="module")
def connected(helm: Helm, cluster: QuickCluster) -> Helm:
    """Both Helms, with the whole programs, which take most of the room."""
    return helm.with_env(KUBECONFIG=cluster.kubeconfig)


def stored(release: Release) -> list[int]:
    """Return the bytes that Helm keeps of each revision."""
    found = release.cluster.get("secrets", "--namespace", release.namespace, "--selector=owner=helm")["items"]
    found.sort(key=lambda one: int(one["metadata"]["labels"]["version"]))
    return [len(base64.b64decode(one["data"]["release"])) for one in found]


def fit_in_a_secret(release: Release, few: int, many: int) -> bool:
    """Say whether a hundred MiniClusters take less than a third of a Secret, by revisions with few and with many."""
    first, second = stored(release)
    each = (second - first) / (many - few)
    assert each > 0
    return second + (100 - many) * each < LIMIT / 3


def no_pods(release: Release) -> None:
    """Refuse all pods of the namespace, because these tests are about objects."""
    metadata = {"name": "no-pods", "namespace": release.namespace}
    release.cluster.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": "0"}}}
    )


@pytest.mark.any_helm
def test_a_hundred_miniclusters_of_a_chart_fit_in_a_release(release: Release, tmp_path: Path) -> None:
    no_pods(release)
    release.chart = chart_of_others(tmp_path / "many", LOOP)
    release.install(count=2)
    release.upgrade(count=5)
    assert len(release.items("jobs")) == 5
    assert list(programs(release)) == ["mc-programs"]
    assert fit_in_a_secret(release, 2, 5)
    release.uninstall()
    assert programs(release) == {}


def test_a_hundred_aliases_of_the_chart_fit_in_a_release(release: Release, tmp_path: Path) -> None:
    no_pods(release)
    release.chart = umbrella(tmp_path / "umbrella", CHART, 2)
    release.install()
    before = programs(release)
    assert list(before) == ["mc-programs"]
    # those of before are live now
    release.chart = umbrella(tmp_path / "more", CHART, 5)
    release.upgrade(mc0={"minSize": 1})
    assert len(release.items("jobs")) == 5
    assert programs(release) == before
    assert fit_in_a_secret(release, 2, 5)


def test_the_chart_itself_leaves_room_for_many(release: Release) -> None:
    release.install(size=1)
    assert stored(release)[0] < LIMIT * 3 // 8
