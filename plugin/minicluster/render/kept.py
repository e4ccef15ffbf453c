"""The live Jobs that an upgrade keeps: the chart renders new ones, whose immutable part gives way to the live one here.

So a newer chart, or a newer Kubernetes, changes only the next Job. What Kubernetes lets a suspended Job change is as in
the new one.

And a MiniCluster that an upgrade would give another name: its Job would go, and with it the queue. Nothing in
Kubernetes says that two names are those of one MiniCluster. But one that is added takes no other's place: an upgrade
that adds one and removes one may rename it.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from minicluster.documents import yamlio
from minicluster.errors import SpecError
from minicluster.kube.names import CHART_NAME
from minicluster.render import handover
from minicluster.render.handover import Newcomer
from minicluster.render.revision import Job, Name, jobs_of, name_of
from minicluster.render.stream import parse, split
from minicluster.render.upgrade import immutable_fields, with_immutable

#: Fields of a Job's spec, and labels of its pods, that the API server sets. It refuses a new Job that has them.
_SERVER_FIELDS = {"selector", "manualSelector"}
_SERVER_LABELS = {"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}
#: Fields of a pod's spec that a suspended Job may change, beside the resources of containers.
_WHERE = ("nodeSelector", "tolerations", "affinity")


def with_kept(stream: bytes) -> bytes:
    """Return a stream of the chart in which Jobs that stay are as they are live; all else byte for byte.

    Raises SpecError for a text that the chart didn't write, and StreamError.
    """
    documents = [document for chunk in split(stream) if b"kept" in chunk and (document := parse(chunk))]
    kept = {name: job for document in documents for name, job in handover.live_jobs(document).items()}
    return b"".join(chunk for chunk, _ in applied(jobs_of(stream), kept)) if kept else stream


def applied(
    documents: Iterable[tuple[bytes, Job | None]], kept: Mapping[Name, handover.LiveJob]
) -> Iterator[tuple[bytes, Job | None]]:
    """Yield the documents of ``jobs_of`` with the Jobs that stay as they are live; all else as it is."""
    for chunk, job in documents:
        live = kept.get(name_of(job)) if job else None
        if job and live:
            stays = as_kept(job, live)
            yield yamlio.dump(stays), stays
        else:
            yield chunk, job


def as_kept(job: Job, live: handover.LiveJob) -> Job:
    """Return a new Job with the immutable part of the live one."""
    fields = immutable_fields({"spec": live.spec})
    spec = {field: value for field, value in fields.items() if field not in _SERVER_FIELDS}
    spec["template"] = _as_sent(live.spec["template"])
    if live.changes_in_place:
        spec["template"] = _changed(spec["template"], job["spec"]["template"])
    return with_immutable(job, spec)


def _as_sent(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return a live pod template without what the API server has added to its metadata."""
    metadata = {key: value for key, value in (template.get("metadata") or {}).items() if key != "creationTimestamp"}
    labels = {key: text for key, text in (metadata.get("labels") or {}).items() if key not in _SERVER_LABELS}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _changed(live: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return a live pod template in which all that a suspended Job may change is as in the new one."""
    spec = {field: value for field, value in live["spec"].items() if field not in _WHERE}
    spec |= {field: new["spec"][field] for field in _WHERE if field in new["spec"]}
    for kind in ("initContainers", "containers"):
        resources = {one["name"]: one.get("resources") or {} for one in new["spec"].get(kind) or []}
        if kind in spec:
            spec[kind] = [
                {**one, "resources": resources[one["name"]]} if one["name"] in resources else one for one in spec[kind]
            ]
    return {**live, "metadata": new["metadata"], "spec": spec}


def refuse_renamed(newcomers: Iterable[Newcomer], kept: Set[Name]) -> None:
    """Raise SpecError for a newcomer beside which a MiniCluster goes.

    ``kept`` are the Jobs of the upgrade; the namespace "" is that of the release.
    """
    for one in newcomers:
        for name, chart in one.others.items():
            # two aliases are two MiniClusters
            is_another = chart != one.chart and CHART_NAME not in (chart, one.chart)
            if not is_another and kept.isdisjoint({(one.namespace, name), ("", name)}):
                raise SpecError(
                    f"nameOverride can't change on the live MiniCluster {name}: the new name is {one.name}, and the "
                    f"queue of {name} would be lost; keep the name {name}, or install {one.name} as a release of its "
                    f"own. If these are two MiniClusters, remove {name} by one upgrade and add {one.name} by the next"
                )
