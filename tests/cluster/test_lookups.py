"""How often an upgrade reads the live objects."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from quick import QuickCluster

from tools.releases import Release

#: What kubectl logs of a request for a single object: its resource is before its name
READ = re.compile(r"Filter accepting GET \S+/namespaces/[^/ ]+/(\w+)/[^/ ]+ ")
FULL: dict[str, Any] = {
    "maxSize": 2,
    "autoscaling": {"enabled": True},
    "services": [{"name": "web", "image": "a"}],
    "flux": {"bursting": {"expose": {"type": "NodePort"}}},
}


class Proxy(NamedTuple):
    """An address of the API server that nobody else asks."""

    address: str
    log: Path

    def reads(self) -> Counter[str]:
        """Return how often single objects were read, by resource."""
        return Counter(READ.findall(self.log.read_text()))


@pytest.fixture
def proxy(cluster: QuickCluster, tmp_path: Path) -> Iterator[Proxy]:
    log = tmp_path / "log"
    line = [cluster.bin_dir / "kubectl", "proxy", "--port=0", "--v=3"]
    with (
        log.open("w") as file,
        subprocess.Popen(line, env=cluster.env, text=True, stdout=subprocess.PIPE, stderr=file) as process,
    ):
        assert process.stdout
        yield Proxy("http://" + process.stdout.readline().split()[-1], log)
        process.terminate()


@pytest.mark.parametrize(
    ("values", "resources"), [({}, ["jobs"]), (FULL, ["jobs", "deployments"])], ids=["plain", "full"]
)
def test_an_upgrade_reads_each_object_once(
    release: Release, proxy: Proxy, values: dict[str, Any], resources: list[str]
) -> None:
    release.install(size=1, **values)
    asked = ("--dry-run=server", "--kube-apiserver", proxy.address)
    done = release.run("upgrade", *asked, values={"deadlineSeconds": 1000})
    assert done.code == 0, done.both
    reads = proxy.reads()
    assert {name: reads[name] for name in resources} == dict.fromkeys(resources, 1), reads
