"""Releases in a queue of Kueue, and what `minicluster status` says of them."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from minicluster.kube.kubectl import Kubernetes
from minicluster.status.document import document
from minicluster.status.snapshot import StatusSnapshot, take_snapshot
from quick import QuickCluster, QuickHelm
from simulated import new_namespace
from support import Helm

from tools import tenant
from tools.kueue_beside import LABEL, LOCAL_QUEUE, queue
from tools.releases import Release

#: The world of a namespace with a queue: its quota is Kueue's
WORLD = tenant.SHARED.without("limits", "quota")

CPU = {"command": "sleep inf", "resources": {"requests": {"cpu": 1}}}
ELASTIC = {"queueName": LOCAL_QUEUE, "elastic": True}
QUEUED: dict[str, Any] = {"maxSize": 8, "containers": [CPU], "kueue": {"queueName": LOCAL_QUEUE}}


def queued_helm(helm: Helm, cluster: QuickCluster) -> Helm:
    """Return a Helm for the cluster."""
    return QuickHelm(helm.name, helm.home, {"KUBECONFIG": str(cluster.kubeconfig)})


def new_release(helm: Helm, cluster: QuickCluster, cpus: int, flavor: dict[str, Any] | None = None) -> Release:
    """Return a release that is not yet installed, in a namespace with a queue."""
    name = new_namespace(cluster, WORLD, **{LABEL: "true"})
    cluster.create(*queue(name, cpus, flavor))
    return Release(helm, cluster, name, values=dict(QUEUED), world=WORLD)


def beside(release: Release, name: str = "other", **values: Any) -> Release:
    """Return another release of the same queue."""
    return dataclasses.replace(release, name=name, values=QUEUED | values)


def with_priority(release: Release, word: str) -> dict[str, Any]:
    """Return the values of a priority: low or high."""
    return {"kueue": {"queueName": LOCAL_QUEUE, "priorityClass": f"{release.namespace}-{word}"}}


def status(release: Release, monkeypatch: pytest.MonkeyPatch, minutes: float = 0) -> dict[str, Any]:
    """Return what `minicluster status -o json` prints in so many minutes, for a cluster whose lead can't be asked."""
    return document(_take_snapshot(release, monkeypatch, minutes))


def why(release: Release, monkeypatch: pytest.MonkeyPatch, index: int) -> str:
    """Return what `minicluster status` says of a pod that is not in Flux."""
    return _take_snapshot(release, monkeypatch).pods[index].why


def _take_snapshot(release: Release, monkeypatch: pytest.MonkeyPatch, minutes: float = 0) -> StatusSnapshot:
    assert isinstance(release.cluster, QuickCluster)
    release.cluster.answer_reads(monkeypatch)
    for name in ("PATH", "KUBECONFIG"):
        monkeypatch.setenv(name, release.cluster.env[name])
    return take_snapshot(
        Kubernetes(namespace=release.namespace), release.name, datetime.now(UTC) + timedelta(minutes=minutes)
    )


def true_conditions(workload: dict[str, Any]) -> set[str]:
    """Return the types of a Workload's true conditions."""
    conditions = workload.get("status", {}).get("conditions", [])
    return {condition["type"] for condition in conditions if condition["status"] == "True"}
