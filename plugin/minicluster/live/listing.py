"""The MiniClusters of a namespace, or of all: one line each, without asking their leads."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from minicluster.cluster.find import MADE_BY_CHART, Found
from minicluster.cluster.groups import size_of
from minicluster.cluster.job import read_job, release_of
from minicluster.cluster.pods import Pod, read_pod
from minicluster.cluster.without_flux import state_without_flux
from minicluster.kube.kubectl import Kubernetes
from minicluster.live.lookup import check_namespace, refusals
from minicluster.live.table import duration, in_columns
from minicluster.render.constants import GROUP, IMMUTABLE

Row = dict[str, Any]
#: Label selector of the pods of index 0
LEADS = f"{MADE_BY_CHART},app.kubernetes.io/component=broker,batch.kubernetes.io/job-completion-index=0"
COLUMNS = ("name", "release", "size", "groups", "ready", "state", "scheduler", "age")
#: Scheduler of a MiniCluster whose values leave it to the view; its lead knows
BY_VIEW = "Fluxion if its view has it"


def find_all(kubernetes: Kubernetes, everywhere: bool, now: datetime) -> list[Row]:
    """Return a row for each MiniCluster, by namespace and name. Raises StateError, also without such a namespace."""
    where = ["--all-namespaces"] if everywhere else []
    with refusals():
        jobs = kubernetes.get("jobs", f"--selector={MADE_BY_CHART}", *where)
        pods = kubernetes.get("pods", f"--selector={LEADS}", *where)
    leads: dict[tuple[str, str], Pod] = {}
    items = [(item["metadata"]["labels"]["batch.kubernetes.io/job-name"], read_pod(item)) for item in pods["items"]]
    # a pod that ended may have been replaced
    for name, pod in sorted(items, key=lambda item: (item[1].created, not item[1].is_leaving)):
        leads[pod.namespace, name] = pod
    groups = [job for job in jobs["items"] if GROUP in job["metadata"].get("labels", {})]
    rows = [row for job in jobs["items"] if (row := _row(job, leads, groups, now))]
    if not rows and not everywhere:
        check_namespace(kubernetes)
    return sorted(rows, key=lambda row: (row["namespace"], row["name"]))


def _row(
    item: Mapping[str, Any], leads: Mapping[tuple[str, str], Pod], groups: Iterable[Mapping[str, Any]], now: datetime
) -> Row | None:
    """Return the row of a Job, with the pods of its groups; None when it isn't a MiniCluster's."""
    job = read_job(item)
    if job is None:
        return None
    name = str(item["metadata"]["name"])
    lead = leads.get((job.namespace, name))
    its = [group for group in groups if _cluster_of(group) == (job.namespace, name)]
    known = state_without_flux(Found(name, {0: lead} if lead else {}, job), now)
    return {
        "name": name,
        "namespace": job.namespace,
        "release": release_of(item),
        "size": job.size + sum(size_of(group) for group in its),
        "groups": {group["metadata"]["labels"][GROUP]: size_of(group) for group in its},
        "ready": sum(int(each.get("status", {}).get("ready", 0)) for each in (item, *its)),
        "state": known[0] if known else "Running" if lead and lead.is_ready else "Starting",
        "scheduler": _scheduler(json.loads(item["metadata"]["annotations"][IMMUTABLE])),
        "age": max(0, int((now - job.created).total_seconds())),
    }


def _cluster_of(group: Mapping[str, Any]) -> tuple[str, str]:
    metadata = group["metadata"]
    return metadata["namespace"], metadata["labels"]["app.kubernetes.io/instance"]


def _scheduler(immutable: Mapping[str, str]) -> str | None:
    """Return the scheduler that the values ask for; None if the view or flux.brokerConfig decides."""
    if immutable.get("flux.brokerConfig"):
        return None
    if immutable.get("flux.scheduler.simple") == "true":
        return "sched-simple"
    # without Fluxion a policy is an error
    policies = (immutable.get("flux.scheduler.queuePolicy"), immutable.get("flux.scheduler.matchPolicy"))
    return f"Fluxion ({', '.join(filter(None, policies))})" if any(policies) else None


def table(rows: Iterable[Row], everywhere: bool) -> str:
    """Return the rows as kubectl would print them."""
    columns = ("namespace", *COLUMNS) if everywhere else COLUMNS
    cells = [[column.upper() for column in columns], *([_cell(row, column) for column in columns] for row in rows)]
    return in_columns(cells)


def _cell(row: Row, column: str) -> str:
    value = row[column]
    if column == "groups":
        return ",".join(f"{name}={size}" for name, size in value.items()) or "-"
    if column == "scheduler":
        return value or BY_VIEW
    return duration(value) if column == "age" else str(value)
