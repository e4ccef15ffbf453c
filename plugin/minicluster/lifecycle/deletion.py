"""Removes the release of a MiniCluster, waits until its pods are gone, and names the claims that stay."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from minicluster.cluster.find import broker_pods
from minicluster.cluster.job import end_of, release_of
from minicluster.console.streams import Agree, Say
from minicluster.documents import yamlio
from minicluster.errors import KubernetesError, StateError, ToolError
from minicluster.kube.port import KubePort
from minicluster.lifecycle import leaving
from minicluster.lifecycle.remaking import REMOVAL_POLL_SECONDS
from minicluster.release import helm
from minicluster.render.constants import GROUP_LABEL, IMMUTABLE
from minicluster.render.stream import split
from minicluster.status.lookup import Cluster, absent, refusals, search

NAME_LABEL = "app.kubernetes.io/name"


class Contents(NamedTuple):
    """The objects of a release."""

    is_ours: bool  #: whether it has any of a MiniCluster
    clusters: list[str]  #: names of MiniClusters
    others: list[str]  #: KIND NAME of what is of no MiniCluster
    kept: list[str]  #: names of claims that stay


def read_contents(kubernetes: KubePort, release: str) -> Contents | None:
    """Return what a release has; None when there is no such release. Raises ToolError."""
    try:
        text = kubernetes.helm("get", "manifest", release)
    except ToolError as error:
        if helm.NOT_FOUND in str(error):
            return None
        raise
    return contents(text.encode())


def contents(manifest: bytes) -> Contents:
    """Return what a manifest has."""
    items = list(_objects(manifest))
    ours = [item for item in items if _metadata(item, "labels").get(NAME_LABEL) == "minicluster"]
    return Contents(
        is_ours=bool(ours),
        clusters=[item["metadata"]["name"] for item in ours if _is_cluster(item)],
        others=[f"{item['kind']} {item['metadata']['name']}" for item in items if item not in ours],
        kept=[
            item["metadata"]["name"]
            for item in items
            if item["kind"] == "PersistentVolumeClaim"
            and _metadata(item, "annotations").get("helm.sh/resource-policy") == "keep"
        ],
    )


def _objects(manifest: bytes) -> Iterator[Mapping[str, Any]]:
    for chunk in split(manifest):
        document = yamlio.load(chunk, duplicates=True)
        if isinstance(document, dict) and "metadata" in document:
            yield document


def _metadata(item: Mapping[str, Any], field: str) -> Mapping[str, str]:
    return item["metadata"].get(field) or {}


def _is_cluster(item: Mapping[str, Any]) -> bool:
    return (
        item["kind"] == "Job"
        and IMMUTABLE in _metadata(item, "annotations")
        and GROUP_LABEL not in _metadata(item, "labels")
    )


def delete(kubernetes: KubePort, name: str, seconds: float, say: Say, agree: Agree) -> None:
    """Remove a MiniCluster by its own name or its release's, and say what stays.

    Helm has ``seconds``, and so have the pods after that. Raises StateError, StatusError, ToolError.
    """
    live, names = search(kubernetes, name)
    release = _release(kubernetes, live.name) if live else name
    there = read_contents(kubernetes, release)
    if there is None and live:
        raise StateError(f"{live.name} belongs to no Helm release: remove it as it was made, such as by kubectl")
    if there is None:
        raise absent(kubernetes, name, names)
    if not there.is_ours:
        raise StateError(f"the release {release} has no MiniCluster: `helm uninstall {release}` removes it")
    _tell(kubernetes, release, there, say, agree)
    try:
        helm.uninstall(kubernetes, release, seconds)
    except ToolError as error:
        if read_contents(kubernetes, release) is not None:  # else another client has removed it meanwhile
            raise ToolError(
                f"{release} is not removed yet: {helm.explain(error)}; run the same command again"
            ) from None
    for cluster in there.clusters:
        _wait_for_pods(kubernetes, cluster, seconds)
    say(f"{release} is removed from {kubernetes}")
    _tell_kept(kubernetes, release, there.kept, say)


def _tell_kept(kubernetes: KubePort, release: str, claims: list[str], say: Say) -> None:
    """Say which claims stay, and of which no volume has any data: the start has failed."""
    empty = [claim for claim in claims if _is_unbound(kubernetes, claim)]
    full = [claim for claim in claims if claim not in empty]
    for names, what in (
        (full, f"kept with their data, for the next {release}"),
        (empty, "kept, never bound to a volume"),
    ):
        if names:
            say(f"{what}: {', '.join(names)}; `kubectl delete pvc {' '.join(names)}` removes them")


def _is_unbound(kubernetes: KubePort, claim: str) -> bool:
    """Return whether a claim has no volume yet; False where the user may not read it."""
    try:
        claim_object = kubernetes.get("persistentvolumeclaim", claim)
    except KubernetesError:
        return False
    return bool(claim_object) and claim_object.get("status", {}).get("phase") == "Pending"


def _release(kubernetes: KubePort, cluster: str) -> str:
    """Return the release of a MiniCluster."""
    with refusals():
        owner = kubernetes.get("job", cluster) or kubernetes.get("configmap", f"{cluster}-config")
    return release_of(owner) if owner else cluster


def _tell(kubernetes: KubePort, release: str, there: Contents, say: Say, agree: Agree) -> None:
    """Say what goes, and let a person agree. Raises StateError."""
    lost = [_tell_jobs(kubernetes, cluster, say) for cluster in there.clusters]
    more = [*(f"MiniCluster {name}" for name in there.clusters if len(there.clusters) > 1), *there.others]
    if more:
        say(f"the release {release} has more than one MiniCluster, and all of it goes: {', '.join(more)}")
    agree(f"Remove {release}?", "more" if more else "jobs" if any(lost) else "nothing")


def _tell_jobs(kubernetes: KubePort, name: str, say: Say) -> bool:
    """Say what happens to the jobs of a MiniCluster; return whether any are lost."""
    cluster = Cluster(kubernetes, name)
    with refusals():
        job = cluster.read_job()
        if not job or end_of(name, job):
            return False
        lead = cluster.read_lead()
    keeps = leaving.keeps_queue(job)
    going = leaving.find_affected(kubernetes, lead, leaving.on_stop(job))
    return leaving.tell(name, going, "its nodes", leaving.of_pods(job, keeps_queue=keeps), say)


def _wait_for_pods(kubernetes: KubePort, name: str, seconds: float) -> None:
    """Wait until all brokers of a MiniCluster are gone. Raises StateError."""
    end = time.monotonic() + seconds
    while True:
        with refusals():
            pods = kubernetes.select("pods", broker_pods(name))["items"]
        if not pods:
            return
        if time.monotonic() >= end:
            names = ", ".join(sorted(pod["metadata"]["name"] for pod in pods))
            raise StateError(
                f"the release of {name} is removed, and after {seconds:g} s these pods are left: {names}; `kubectl "
                "describe pod` says why"
            )
        time.sleep(REMOVAL_POLL_SECONDS)
