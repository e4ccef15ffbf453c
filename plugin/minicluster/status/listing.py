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
    return {key.name: key.value(listed) for key in LIST_KEYS}


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


class Key(NamedTuple):
    """What is said of a MiniCluster: a key of the JSON, and a column of the table."""

    name: str
    value: Callable[[Listed], Any]
    cell: Callable[[Any], str] = str
    may_break: bool = False  #: on a narrow terminal
    is_name: bool = False  #: as of a `Column`
    goes: int = 0  #: the same
    is_dull: Callable[[Row], bool] = lambda _: False  #: whether it says nothing; a terminal shows no column of these


LIST_KEYS = (
    Key("name", lambda listed: listed.name, is_name=True),
    Key("namespace", lambda listed: listed.job.namespace, is_name=True),
    Key(
        "release",
        lambda listed: release_of(listed.item),
        may_break=True,
        goes=1,
        is_dull=lambda row: bool(row["release"] == row["name"]),
    ),
    Key("size", lambda listed: listed.job.size + sum(size_of(group) for group in listed.groups)),
    Key(
        "groups",
        lambda listed: {group["metadata"]["labels"][GROUP_LABEL]: size_of(group) for group in listed.groups},
        _sizes,
        may_break=True,
        goes=1,
        is_dull=lambda row: not row["groups"],
    ),
    Key(
        "ready",
        lambda listed: sum(int(each.get("status", {}).get("ready", 0)) for each in (listed.item, *listed.groups)),
    ),
    Key("state", _state),
    Key(
        "scheduler",
        lambda listed: _scheduler(recorded(listed.item)),
        lambda name: name or BY_VIEW,
        may_break=True,
        goes=2,
    ),
    Key("age", lambda listed: _seconds(listed.now - listed.job.created), duration),
    Key(
        "next",
        _next,
        lambda due: f"{due['schedule']} in {duration(due['in'])}" if due else "-",
        may_break=True,
        goes=1,
        is_dull=lambda row: not row["next"],
    ),
)


def table(rows: Sequence[Row], everywhere: bool, width: int = 0) -> str:
    """Return the rows as `in_columns` does; the namespace comes first, if it isn't the same for all."""
    keys = sorted(LIST_KEYS, key=lambda key: key.name != "namespace")[0 if everywhere else 1 :]
    if width:
        keys = [key for key in keys if not all(map(key.is_dull, rows))]
    return in_columns(list(map(_column, keys)), rows, width)


def _column(key: Key) -> Column:
    return Column(
        key.name.upper(),
        lambda row: key.cell(row[key.name]),
        lambda row: CLUSTER_TONES.get(row["state"], "") if key.name == "state" else "",
        key.may_break,
        # a line may end after each comma
        lambda row: key.cell(row[key.name]).replace(",", ", ").replace(",  ", ", "),
        key.is_name,
        key.goes,
    )
