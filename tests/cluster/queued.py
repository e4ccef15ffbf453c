"""Releases in a queue of Kueue, and what `minicluster status` says of them."""

import dataclasses
from datetime import UTC, datetime
from typing import Any

import kueue_beside
import pytest
from kueue_beside import LOCAL_QUEUE
from minicluster.cluster.kueue import WORKLOADS, true_conditions
from minicluster.kube.kubectl import Kubernetes
from minicluster.live.document import document
from minicluster.live.snapshot import StatusSnapshot, take_snapshot
from quick import QuickCluster, QuickHelm
from support import Helm

from tools.clients import TooLateError
from tools.releases import Release

CPU = {"command": "sleep inf", "resources": {"requests": {"cpu": 1}}}
ELASTIC = {"queueName": LOCAL_QUEUE, "elastic": True}
QUEUED: dict[str, Any] = {"maxSize": 8, "containers": [CPU], "kueue": {"queueName": LOCAL_QUEUE}}


def queued_helm(helm: Helm, cluster: QuickCluster) -> Helm:
    """Return a Helm for the cluster."""
    return QuickHelm(helm.name, helm.home, {"KUBECONFIG": str(cluster.kubeconfig)})


def new_release(helm: Helm, cluster: QuickCluster, cpus: int, flavor: dict[str, Any] | None = None) -> Release:
    """Return a release that is not yet installed, in a namespace with a queue."""
    return Release(
        helm, cluster, kueue_beside.new_queue(cluster, cpus, flavor), values=dict(QUEUED), world=kueue_beside.WORLD
    )


def beside(release: Release, name: str = "other", **values: Any) -> Release:
    """Return another release of the same queue."""
    return dataclasses.replace(release, name=name, values=QUEUED | values)


def with_priority(release: Release, word: str) -> dict[str, Any]:
    """Return the values of a priority: low or high."""
    return {"kueue": {"queueName": LOCAL_QUEUE, "priorityClass": f"{release.namespace}-{word}"}}


def status(release: Release, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what `minicluster status -o json` prints, for a cluster whose lead can't be asked."""
    return document(_take_snapshot(release, monkeypatch))


def why(release: Release, monkeypatch: pytest.MonkeyPatch, index: int) -> str:
    """Return what `minicluster status` says of a pod that is not in Flux."""
    return _take_snapshot(release, monkeypatch).pods[index].why


def _take_snapshot(release: Release, monkeypatch: pytest.MonkeyPatch) -> StatusSnapshot:
    for name in ("PATH", "KUBECONFIG"):
        monkeypatch.setenv(name, release.cluster.env[name])
    return take_snapshot(Kubernetes(namespace=release.namespace), release.name, datetime.now(UTC))


def running(release: Release, size: int) -> dict[int, str]:
    """Wait for the running pods of an elastic cluster, and return their UIDs by index.

    Kueue looks for gated pods when it looks at the Job. One that it did not yet know then stays gated until the
    Job changes. It may also have admitted two Workloads; docs/how-to/use-kueue.md has the ways out.
    """
    for attempt in range(3):
        try:
            return release.running(size, seconds=10)
        except TooLateError:
            remove_second_workload(release)
            release.kubectl("annotate", "job", release.name, f"test/attempt={attempt}", "--overwrite")
    return release.running(size)


def admitted_workloads(release: Release) -> list[dict[str, Any]]:
    """Return the Workloads that Kueue has admitted and that have not ended."""
    workloads = release.items(WORKLOADS)
    return [one for one in workloads if "Admitted" in (its := true_conditions(one)) and "Finished" not in its]


def remove_second_workload(release: Release) -> None:
    """Remove one Workload if Kueue has admitted two for one Job, as an administrator does."""
    for workload in admitted_workloads(release)[1:]:
        name = workload["metadata"]["name"]
        release.kubectl("delete", "workload", name, "--wait=false")
        release.kubectl("patch", "workload", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
