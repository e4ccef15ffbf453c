"""Services whose names begin with a digit: Kubernetes 1.36 takes them, an older one is not asked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from quick import QuickCluster, QuickHelm
from simulated import new_namespace
from support import BIN, Helm, chart_of_others, lines_with

from tools.clients import ProcessError
from tools.releases import Release

DOCUMENT = "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: 4node}\nspec: {size: 1}\n"
ALL: dict[str, Any] = {
    "containers": [{"name": "a", "runFlux": True}, {"name": "side", "command": "b", "ports": [80]}],
    "services": [{"name": "db", "command": "c", "ports": [81]}],
    "flux": {"bursting": {"expose": {"type": "NodePort"}}},
    "groups": [{"name": "gpu", "size": 1, "cores": 1}],
}
WHY = "begins with a digit: Kubernetes has such Services from 1.36 on, this is 1.35; set"


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuickCluster]:
    """An API server that refuses what that of the version before 1.36 does."""
    folder = tmp_path_factory.mktemp("former")
    program = folder / "kube-apiserver"
    program.write_text(f'#!/bin/sh\nexec {BIN / "kube-apiserver"} --emulated-version=1.35 "$@"\n')
    program.chmod(0o755)
    with QuickCluster(BIN, folder / "work", nodes=0, api_server=program) as cluster:
        yield cluster


@pytest.fixture
def older(helm: Helm, former: QuickCluster) -> Release:
    """A release there."""
    connected = QuickHelm(helm.name, helm.home, {"KUBECONFIG": str(former.kubeconfig)})
    return Release(connected, former, new_namespace(former), name="2024-run")


@pytest.mark.any_helm
def test_kubernetes_1_36_takes_such_names(release4: Release) -> None:
    release4.name = "2024-run"
    release4.install(size=1, **ALL)
    services = {service["metadata"]["name"] for service in release4.items("services")}
    assert services == {"2024-run", "2024-run-lead", "2024-run-side"}
    release4.running(1)
    release4.upgrade(size=1, deadlineSeconds=1000)
    release4.uninstall()
    release4.install(size=1, nameOverride="mc", network={"headlessName": "0svc"})


def test_an_older_kubernetes_refuses_such_names(older: Release) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "0svc", "namespace": older.namespace}}
    with pytest.raises(ProcessError, match="0svc"):
        older.cluster.create(service | {"spec": {"ports": [{"port": 80}]}})
    said = older.refuse(command="install", size=1)
    assert lines_with(said, f"the name 2024-run {WHY} nameOverride to a name that begins with a letter")
    said = older.refuse(command="install", size=1, nameOverride="mc", network={"headlessName": "0svc"})
    assert lines_with(said, f"the name 0svc {WHY} network.headlessName to a name that begins with a letter")
    assert [one for one in older.items() if one["metadata"]["name"] != "default"] == []
    older.install(size=1, nameOverride="mc")


def test_an_older_kubernetes_refuses_a_document_of_such_a_name(older: Release, tmp_path: Path) -> None:
    older.chart = chart_of_others(tmp_path / "other", DOCUMENT)
    older.name = "mc"
    assert lines_with(older.refuse(command="install"), f"MiniCluster 4node: the name 4node {WHY} nameOverride")
    assert [one for one in older.items() if one["metadata"]["name"] != "default"] == []
