"""Services whose names begin with a digit: Kubernetes 1.36 takes them."""

from pathlib import Path
from typing import Any

from support import CHART, Helm, chart_of_others, lines_with

from tools.releases import Release

DOCUMENT = "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: 4node}\nspec: {size: 1}\n"
ALL: dict[str, Any] = {
    "containers": [{"name": "a", "runFlux": True}, {"name": "side", "command": "b", "ports": [80]}],
    "services": [{"name": "db", "command": "c", "ports": [81]}],
    "flux": {"bursting": {"expose": {"type": "NodePort"}}},
    "groups": [{"name": "gpu", "size": 1, "cores": 1}],
}
WHY = "the name 2024-run begins with a digit: Kubernetes has such Services from 1.36 on, this is 1.35; set nameOverride"


def test_kubernetes_1_36_takes_such_names(release: Release) -> None:
    release.name = "2024-run"
    release.install(size=1, **ALL)
    services = {service["metadata"]["name"] for service in release.items("services")}
    assert services == {"2024-run", "2024-run-lead", "2024-run-side"}
    release.running(1)
    release.upgrade(deadlineSeconds=1000)


def test_kubernetes_1_36_takes_a_document_of_such_a_name(release: Release, tmp_path: Path) -> None:
    release.chart = chart_of_others(tmp_path / "other", DOCUMENT)
    release.install()
    assert release.get("service", "4node")
    assert release.get("job", "4node")


def test_an_older_kubernetes_gets_no_such_name(helm: Helm) -> None:
    version = ("--kube-version", "1.35.0", "--api-versions", "batch/v1/Job")
    said = helm.fails("template", "2024-run", CHART, *version, "--post-renderer", "minicluster")
    assert lines_with(said, WHY)
