"""PodGroups, against the definitions of the gang schedulers; none of these runs here."""

import json
import re
from typing import Any

import pytest
from quick import QuickCluster

from tools.kueue_beside import CRDS
from tools.releases import Release

pytestmark = [
    pytest.mark.skipif(not CRDS.exists(), reason=".tools/crds is missing: run `make tools`"),
    pytest.mark.any_helm,
]


def groups(size: int) -> list[dict[str, Any]]:
    return [{"name": "gpu", "size": size, "maxSize": 2, "cores": 1}]


@pytest.mark.xdist_group("nodes")
def test_the_coscheduling_definition_accepts_the_pod_group(release: Release, cluster: QuickCluster) -> None:
    definition = CRDS / "scheduling.x-k8s.io_podgroups.yaml"
    cluster.kubectl("apply", "--server-side", "--filename", definition)
    cluster.kubectl("wait", "crd/podgroups.scheduling.x-k8s.io", "--for=condition=Established")
    try:
        release.install(size=2, gang={"kind": "coscheduling"}, pod={"schedulerName": "s"})
        group = release.get("podgroups.scheduling.x-k8s.io")
        assert group["spec"] == {"minMember": 2}
        strict = {key: group[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": "strict"}}
        words = ("create", "--dry-run=server", "--validate=strict", "--filename=-")
        release.kubectl(*words, stdin=json.dumps(strict))
        release.upgrade(size=1)
        assert release.get("podgroups.scheduling.x-k8s.io")["spec"] == {"minMember": 1}
        release.uninstall()
        release.cluster.wait("no Jobs", lambda: release.items("jobs") == [])
        release.install(groups=groups(2))
        assert release.get("podgroups.scheduling.x-k8s.io")["spec"] == {"minMember": 3}
        release.upgrade(groups=groups(0))
        assert release.get("podgroups.scheduling.x-k8s.io")["spec"] == {"minMember": 1}
        release.uninstall()
        assert release.items("podgroups.scheduling.x-k8s.io") == []
    finally:
        cluster.kubectl("delete", "--filename", definition)


def test_the_volcano_type_has_the_fields_of_the_pod_group() -> None:
    # Volcano's module has the type, and no definition for an API server
    text = (CRDS / "types.go").read_text(encoding="utf-8")
    spec = re.search(r"^type PodGroupSpec struct \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    assert spec
    types = {name: kind for kind, name in re.findall(r'^\t\w+ +(\S+) +`json:"(\w+)', spec[1], re.MULTILINE)}
    assert (types["minMember"], types["queue"]) == ("int32", "string")
