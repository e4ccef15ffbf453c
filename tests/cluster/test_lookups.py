"""How often an upgrade reads the live objects."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from quick import QuickCluster
from simulated import started

from tools.releases import Release

REQUESTS = re.compile(r"^apiserver_request_total\{(.*)\} (\d+)$", re.MULTILINE)
FULL: dict[str, Any] = {
    "maxSize": 2,
    "autoscaling": {"enabled": True},
    "services": [{"name": "web", "image": "a"}],
    "flux": {"bursting": {"expose": {"type": "NodePort"}}},
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuickCluster]:
    """An API server that nobody else asks."""
    with started(tmp_path_factory.mktemp("api"), nodes=0) as cluster:
        yield cluster


def reads(cluster: QuickCluster) -> Counter[str]:
    """Return how often single objects were read, by resource."""
    found: Counter[str] = Counter()
    for text, count in REQUESTS.findall(cluster.kubectl("get", "--raw", "/metrics")):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', text))
        if labels["verb"] == "GET":
            found[labels["resource"]] += int(count)
    return found


@pytest.mark.parametrize(
    ("values", "resources"), [({}, ["jobs"]), (FULL, ["jobs", "deployments"])], ids=["plain", "full"]
)
def test_an_upgrade_reads_each_object_once(
    release: Release, cluster: QuickCluster, values: dict[str, Any], resources: list[str]
) -> None:
    release.install(size=1, **values)
    before = reads(cluster)
    done = release.run("upgrade", "--dry-run=server", values={"deadlineSeconds": 1000})
    assert done.code == 0, done.both
    after = reads(cluster)
    assert {name: after[name] - before[name] for name in resources} == dict.fromkeys(resources, 1)
