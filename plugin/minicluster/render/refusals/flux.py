"""Refusals of Flux's own settings: scheduler, certificate, view, bursting, and the user's own broker.toml."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from minicluster.documents import map_at, maps_at
from minicluster.errors import SpecError
from minicluster.flux import expand_hosts, indexed_hosts, split_hosts
from minicluster.render import broker, constants, work
from minicluster.render.model import MiniClusterModel
from minicluster.render.resources import hostlist_of, root_hosts


def scheduler(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield policies that the scheduler doesn't have, or that fail jobs."""
    values = cluster.flux["scheduler"]
    queue, match = values["queuePolicy"], values["matchPolicy"]
    if values["simple"]:
        if queue not in ("", "fcfs"):
            yield f"flux.scheduler.queuePolicy is {queue} and simple is true: sched-simple has fcfs only; drop it"
        if match:
            yield f"flux.scheduler.matchPolicy is {match} and simple is true: sched-simple has none; drop it"
    elif queue == "fcfs":
        yield (
            "flux.scheduler.queuePolicy is fcfs: Fluxion's fcfs fails a job that needs a node that is not up yet; "
            f"use {broker.QUEUE_POLICY}, or simple: true, which is first come, first served and lets it wait"
        )


def named(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what contradicts in the queues with names."""
    asked = cluster.flux["queues"]
    groups = {group.name: group.max_size for group in cluster.groups}
    most = sum(groups.values(), cluster.max_size + sum(burst["size"] for burst in cluster.bursts))
    defaults = [name for name, queue in asked.items() if queue.get("default")]
    if len(defaults) > 1:
        yield f"flux.queues.{defaults[0]} and flux.queues.{defaults[1]} are both the default: choose one"
    if asked and not broker.default_queue(asked):
        yield f"flux.queues has no default, and jobs may name no queue: set default in one of {', '.join(asked)}"
    for name, queue in asked.items():
        group, nodes = queue.get("group", ""), queue.get("limits", {}).get("nodes", 0)
        if group and group not in groups:
            there = f"give one of {', '.join(groups)}" if groups else "there are no groups"
            yield f"flux.queues.{name}.group is {group}, which is no group: {there}"
        elif nodes > (can_have := groups.get(group, most)):
            yield f"flux.queues.{name}.limits.nodes is {nodes}, and its jobs can have {can_have} at most: lower it"


def submission(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield a flag that `flux run` lacks, if that runs the work."""
    flag = work.only_submit(cluster.flux["optionFlags"])
    if flag and work.kind(cluster) == "submit" and work.is_run(cluster):
        yield f"flux.optionFlags has {flag}, and `flux run` has no such flag: set flux.submitCommand to flux submit"


def view(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield a mode of a view that is not used."""
    view = cluster.flux["container"]
    if view["disable"] and view["mode"] != "auto":
        yield f"flux.container.disable is true and mode is {view['mode']}: without a view there is no mode; drop it"


def bursting(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what a root or a burst can't have, and what is missing for it."""
    bursting = cluster.flux["bursting"]
    lead, topology = bursting["leadBroker"], cluster.flux["topology"]
    if bursting["hostlist"] and bursting["clusters"]:
        yield "flux.bursting has hostlist and clusters: give one of them"
    yield from _lead(cluster)
    if cluster.is_multi_cluster and topology not in ("", "kary:0"):
        yield f"flux.topology is {topology} with bursting: every broker must reach rank 0 directly; drop it"
    yield from _clusters(cluster)
    name = lead.get("name") if cluster.joins else cluster.name
    if name and bursting["hostlist"] and split_hosts(bursting["hostlist"])[0] != (first := indexed_hosts(name, 1)):
        yield f"flux.bursting.hostlist is {bursting['hostlist']}: its first host must be that of the lead, {first}"
    elif name and bursting["hostlist"] and cluster.root_groups:
        of_root = hostlist_of(root_hosts(cluster))
        if not f"{bursting['hostlist']},".startswith(f"{of_root},"):
            yield f"flux.bursting.hostlist is {bursting['hostlist']}: beside groups it must begin with {of_root}"
    if not bursting["expose"]["type"] and (bursting["expose"]["nodePort"] or bursting["expose"]["annotations"]):
        yield "flux.bursting.expose has a port or annotations and no type: give NodePort or LoadBalancer"


def _lead(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what a burst doesn't say of its lead; beside a hostlist without groups, the size isn't needed."""
    bursting = cluster.flux["bursting"]
    needed, way = ["name", "address"], "name and address are needed"
    if bursting["hostlist"] and cluster.root_groups:
        needed, way = [*needed, "size"], "name, address and size are needed beside groups"
    elif not bursting["hostlist"]:
        needed, way = [*needed, "size"], "name, address and size are needed, or a hostlist in place of size"
    for key in [key for key in needed if cluster.joins and not bursting["leadBroker"].get(key)]:
        yield f"flux.bursting.leadBroker has no {key}: {way}"


def _clusters(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what is wrong with the names and sizes of the bursts."""
    names = [burst["name"] for burst in cluster.bursts]
    for name in {name for name in names if names.count(name) > 1}:
        yield f"two bursts are named {name}: rename one of them"
    if not cluster.joins and cluster.name in names:
        yield f"flux.bursting.clusters has {cluster.name}, this cluster's own name: rename one of them"
    for group in cluster.groups:
        if (taken := f"{cluster.name}-{group.name}") in names:
            yield f"flux.bursting.clusters has {taken}, and {group.place} has hosts of that name: rename one of them"
    if not cluster.joins or cluster.flux["bursting"]["hostlist"]:
        return
    own = next((burst for burst in cluster.bursts if burst["name"] == cluster.name), None)
    if own is None:
        yield f"flux.bursting.clusters has no {cluster.name}: give the lead cluster's list, with this cluster"
    elif cluster.max_size > own["size"]:
        key = "size" if cluster.size > own["size"] else "maxSize"
        yield f"{key} is {cluster.spec[key]}, flux.bursting.clusters has {own['size']} for {cluster.name}: lower {key}"


#: Values that do more than make broker.toml; `broker_config` compares what they mean with the user's own
COMPARED = ("size", "maxSize", "flux.container.mountPath", "network.headlessName", "pod.hostNetwork")


def hidden_by_broker_config(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield the values that the user's own broker.toml would silently override: those of which ours is made."""
    if not cluster.flux["brokerConfig"]:
        return
    tables = broker.computed(cluster)
    for name, spec in _with_others(cluster.spec, constants.default_values()):
        if name not in COMPARED and broker.computed(cluster._replace(spec=spec)) != tables:
            yield f"{name} and flux.brokerConfig are both set: brokerConfig is used as given; set it there"


def _with_others(spec: Mapping[str, Any], by_default: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each value that is set, by its name, and the spec with another one in its place."""
    for key, value in spec.items():
        default = by_default.get(key)
        if value == default:
            continue
        if isinstance(value, dict) and default:
            yield from ((f"{key}.{name}", {**spec, key: inner}) for name, inner in _with_others(value, default))
        else:
            # a text may say what holds without it too
            yield key, {**spec, key: f"{value}x" if isinstance(value, str) else default}


def broker_config(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what keeps the brokers of a user's own broker.toml apart, such as paths and names of flux-operator."""
    tables = broker.given(cluster)
    if tables is None:
        return
    bootstrap = map_at(tables, "bootstrap")
    own, known = indexed_hosts(cluster.name, cluster.max_size), _hosts_of(bootstrap)
    missing = next((host for host in expand_hosts(own) if host not in known), None) if known else None
    if missing:
        yield (
            f"flux.brokerConfig has no host {missing} in bootstrap.hosts, so its broker can't start: give "
            f'hosts = [{{host = "{own}"}}]'
        )
    domain = re.search(r"%h\.([^.:]+)\.[^:]*\bsvc\b", str(bootstrap.get("default_connect")))
    if domain and domain[1] != cluster.service:
        yield (
            f"flux.brokerConfig has the Service {domain[1]} in bootstrap.default_connect, and the cluster's is "
            f"{cluster.service}: set network.headlessName to {domain[1]}, or write {cluster.service}"
        )
    paths = {
        "bootstrap.curve_cert": (bootstrap.get("curve_cert"), "curve/curve.cert"),
        "resource.path": (map_at(tables, "resource").get("path"), "etc/flux/system/R"),
    }
    for key, (path, right) in paths.items():
        if str(path).startswith(f"{cluster.mount}/") and path != f"{cluster.state}/{right}":
            yield f"flux.brokerConfig has {key} = {path}, where no file is: write {cluster.state}/{right}"
    if cluster.state_claim and "checkpoint-period" not in map_at(tables, "kvs"):
        key = "claimName" if cluster.spec["state"]["claimName"] else "capacity"
        yield (
            f"flux.brokerConfig has no checkpoint-period in kvs, and state.{key} is to keep the queue of a killed "
            'lead: write checkpoint-period = "0.02s" there'
        )


def _hosts_of(bootstrap: Mapping[str, Any]) -> set[str]:
    """Return the hosts of a table bootstrap; none where it is not as Flux reads it, which says so itself."""
    parts = [one["host"] for one in maps_at(bootstrap, "hosts") if isinstance(one.get("host"), str)]
    with suppress(SpecError):
        return {host for part in parts for host in expand_hosts(part)}
    return set()
