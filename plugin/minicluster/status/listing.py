"""The MiniClusters of a namespace, or of all: one line each, without asking their leads."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from minicluster.cluster.find import MADE_BY_CHART, LiveCluster
from minicluster.cluster.job import KubernetesJob, read_job, recorded, release_of
from minicluster.cluster.pods import Pod, read_pod, size_of
from minicluster.cluster.states import CLUSTER_TONES
from minicluster.cluster.without_flux import state_without_flux
from minicluster.kube.cron import soonest
from minicluster.kube.kubectl import Kubernetes
from minicluster.render.constants import GROUP_LABEL
from minicluster.status.columns import Column, in_columns
from minicluster.status.lookup import check_namespace, refusals
from minicluster.status.table import duration

Row = dict[str, Any]
#: Label selector of the pods of index 0
LEADS = f"{MADE_BY_CHART},app.kubernetes.io/component=broker,batch.kubernetes.io/job-completion-index=0"
#: Scheduler of a MiniCluster whose values leave it to the view; its lead knows
BY_VIEW = "Fluxion if its view has it"
#: Annotation of a Job with when its schedules are due
SCHEDULES = "minicluster/schedules"


class Listed(NamedTuple):
    """What Kubernetes has of a MiniCluster."""

    name: str
    item: Mapping[str, Any]  #: its Job as Kubernetes has it
    job: KubernetesJob
    groups: Sequence[Mapping[str, Any]]  #: the Jobs of its groups
    lead: Pod | None
    now: datetime


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
    groups = [job for job in jobs["items"] if GROUP_LABEL in job["metadata"].get("labels", {})]
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
    its = [group for group in groups if _cluster_of(group) == (job.namespace, name)]
    listed = Listed(name, item, job, its, leads.get((job.namespace, name)), now)
    return {key: value(listed) for key, value in LIST_KEYS.items()}


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


def _state(listed: Listed) -> str:
    lead = listed.lead
    known = state_without_flux(LiveCluster(listed.name, {0: lead} if lead else {}, listed.job), listed.now)
    return known[0] if known else "Running" if lead and lead.is_ready else "Starting"


def _next(listed: Listed) -> dict[str, Any] | None:
    """Return the schedule that is due next, and when; None without one, or when the MiniCluster has ended."""
    times = json.loads(listed.item["metadata"].get("annotations", {}).get(SCHEDULES, "[]"))
    first = None if listed.job.end else soonest(times, listed.now)
    if not first:
        return None
    name, due = first
    return {"schedule": name, "at": f"{due:%Y-%m-%dT%H:%M:%SZ}", "in": _seconds(due - listed.now)}


def _seconds(span: timedelta) -> int:
    return max(0, int(span.total_seconds()))


def _sizes(groups: Mapping[str, int]) -> str:
    return ",".join(f"{name}={size}" for name, size in groups.items()) or "-"


#: What is said of a MiniCluster, by the keys of the JSON
LIST_KEYS: Mapping[str, Callable[[Listed], Any]] = {
    "name": lambda listed: listed.name,
    "namespace": lambda listed: listed.job.namespace,
    "release": lambda listed: release_of(listed.item),
    "size": lambda listed: listed.job.size + sum(size_of(group) for group in listed.groups),
    "groups": lambda listed: {group["metadata"]["labels"][GROUP_LABEL]: size_of(group) for group in listed.groups},
    "ready": lambda listed: sum(int(each.get("status", {}).get("ready", 0)) for each in (listed.item, *listed.groups)),
    "state": _state,
    "scheduler": lambda listed: _scheduler(recorded(listed.item)),
    "age": lambda listed: _seconds(listed.now - listed.job.created),
    "next": _next,
}


def _column(key: str, cell: Callable[[Any], str] = str, **how: Any) -> Column:
    """Return the column of a key; a line of a terminal may end after each comma."""
    return Column(
        key.upper(),
        lambda row: cell(row[key]),
        brief=lambda row: cell(row[key]).replace(",", ", ").replace(",  ", ", "),
        **how,
    )


#: The columns of the table, those that always say something, and others
LIST_COLUMNS = (
    _column("name", is_name=True),
    _column("release", may_break=True, goes=1),
    _column("size"),
    _column("groups", _sizes, may_break=True, goes=1),
    _column("ready"),
    _column("state", tone=lambda row: CLUSTER_TONES.get(row["state"], "")),
    _column("scheduler", lambda name: name or BY_VIEW, may_break=True, goes=2),
    _column("age", duration),
    _column("next", lambda due: f"{due['schedule']} in {duration(due['in'])}" if due else "-", may_break=True, goes=1),
)
#: Where a row of these columns says nothing; a terminal shows no column that says nothing in all rows
IS_DULL: Mapping[str, Callable[[Row], bool]] = {
    "RELEASE": lambda row: bool(row["release"] == row["name"]),
    "GROUPS": lambda row: not row["groups"],
    "NEXT": lambda row: not row["next"],
}


def table(rows: Sequence[Row], everywhere: bool, width: int = 0) -> str:
    """Return the rows as `in_columns` does; the namespace comes first, if it isn't the same for all."""
    columns = [*([_column("namespace", is_name=True)] if everywhere else []), *LIST_COLUMNS]
    if width:
        columns = [each for each in columns if each.head not in IS_DULL or not all(map(IS_DULL[each.head], rows))]
    return in_columns(columns, rows, width)
