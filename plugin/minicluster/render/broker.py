"""The configuration of the brokers: broker.toml (network, scheduler) and the words of ``flux start`` (quorum, log).

Keys and attributes are those of flux-config-bootstrap(5), flux-config-resource(5), flux-config-tbon(5)
and flux-broker-attributes(7), Flux 0.88.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import tomli_w

from minicluster.documents import map_at
from minicluster.errors import SpecError
from minicluster.flux import split_hosts
from minicluster.render import model
from minicluster.render.constants import BROKER_PORT
from minicluster.render.model import MiniClusterModel
from minicluster.render.resources import registered, table

#: Where a broker of a pod listens; the interfaces of a Kubernetes node have names of their own.
INTERFACE = "eth0"
#: Children of a broker when the values set no topology: with more hosts the tree gets another level.
FANOUT_BROKERS = 256
#: The policy of Fluxion by which each job waits for nodes that are not up.
QUEUE_POLICY = "conservative"
#: By these, Fluxion since 0.36 fails a job without a reservation that asks for more nodes than are up; easy gives one.
FAILING_POLICIES = ("fcfs", "easy")
#: The lowest nodes first, as sched-simple does: an Indexed Job gives up its highest.
MATCH_POLICY = "lonode"
#: Records of jobs that have ended that Flux keeps if the values don't say; with little memory memory.sh lowers it.
KEPT_JOBS = 10000


def quorum(cluster: MiniClusterModel) -> int | None:
    """Return how many brokers must be online before the work starts; None for all hosts of the table."""
    min_size: int | None = cluster.spec["minSize"]
    of_groups = sum(group.min_size for group in cluster.groups)
    if min_size is not None:
        return min_size + of_groups
    if cluster.autoscaling:
        # a lead that comes back must not wait for nodes that were scaled away
        return int(cluster.autoscaling["min"]) + of_groups
    needed = cluster.size + of_groups
    return None if registered(cluster) == needed else needed


def config(cluster: MiniClusterModel) -> str:
    """Return broker.toml: the user's own text, or the one computed from the spec.

    Raises SpecError when the user's text is not TOML.
    """
    own: str = cluster.flux["brokerConfig"]
    if not own:
        return tomli_w.dumps(computed(cluster))
    import tomllib  # noqa: PLC0415 - 4 ms

    try:
        tomllib.loads(own)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"flux.brokerConfig is not TOML: {error}") from None
    return own


def given(cluster: MiniClusterModel) -> dict[str, Any] | None:
    """Return the user's own broker.toml as tables; None when there is none, or it is not TOML."""
    own: str = cluster.flux["brokerConfig"]
    if own:
        import tomllib  # noqa: PLC0415 - 4 ms

        with suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(own)
    return None


def remarks(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what may surprise of the scheduler's policy and a user's own broker.toml: a release's notes have it."""
    why = f"by which Fluxion may fail a job whose nodes are not up: use {QUEUE_POLICY}"
    tables = given(cluster)
    policy = cluster.flux["scheduler"]["queuePolicy"]
    if tables is None and policy in FAILING_POLICIES:
        yield f"flux.scheduler.queuePolicy is {policy}, {why}"
    if tables is None:
        return
    if "hosts" not in map_at(tables, "bootstrap") and cluster.max_size > 1:
        yield "flux.brokerConfig has no bootstrap.hosts, so each broker is an instance of its own: give the hosts"
    own = map_at(tables, "sched-fluxion-qmanager").get("queue-policy")
    if own in FAILING_POLICIES:
        yield f"flux.brokerConfig has the queue-policy {own}, {why}"


def port(cluster: MiniClusterModel) -> int:
    """Return the port on which the brokers of the pods listen."""
    own = map_at(given(cluster), "bootstrap").get("default_port")
    return own if isinstance(own, int) else BROKER_PORT


def computed(cluster: MiniClusterModel) -> dict[str, Any]:
    """Return the broker.toml that is computed from the spec, as tables."""
    network = cluster.spec["network"]
    # on a Kubernetes node's network brokers bind to all of its interfaces
    interface = network["interface"] or ("*" if cluster.spec["pod"]["hostNetwork"] else INTERFACE)
    domain = f"{cluster.service}.{cluster.namespace}.svc.{network['clusterDomain']}"
    bootstrap_table = {
        "curve_cert": f"{cluster.state}/curve/curve.cert",
        "default_port": BROKER_PORT,
        "default_bind": f"tcp://{interface}:%p",
        # the final dot keeps the resolver from trying search domains while the name does not exist yet
        "default_connect": f"tcp://%h.{domain}.:%p",
        "hosts": bootstrap(cluster),
    }
    tables = _of_each_broker(bootstrap_table, f"{cluster.state}/etc/flux/system/R")
    # Flux asks its scheduler, and refuses a job that can never run when it is submitted (flux-config-ingest(5)). R has
    # all hosts that may ever join, so a job may wait for hosts that come later
    tables["ingest"] = {"validator": {"plugins": ["jobspec", f"{cluster.files}/feasible.py"]}}
    if cluster.flux["locations"]:
        # the first two are Flux's own
        tables["ingest"]["frobnicator"] = {"plugins": ["defaults", "constraints", f"{cluster.files}/frobnicator.py"]}
    # each takes memory of the lead's broker, which lives for weeks
    kept: int | None = cluster.flux["keptJobs"]
    tables["job-manager"] = {"inactive-num-limit": KEPT_JOBS if kept is None else kept}
    # a kill loses what was written since the last checkpoint (flux-config-kvs(5))
    tables["kvs"] = {"checkpoint-period": f"{cluster.spec['state']['syncSeconds']:g}s"}
    tables.update(named_queues(cluster))
    scheduler = cluster.flux["scheduler"]
    if scheduler["simple"]:
        # Fluxion's own feasibility check would load its resource module beside sched-simple
        tables["modules"] = {"alternatives": {"sched": "sched-simple", "feasibility": "sched-simple"}}
    else:
        tables["sched-fluxion-qmanager"] = {"queue-policy": scheduler["queuePolicy"] or QUEUE_POLICY}
        tables["sched-fluxion-resource"] = {"match-policy": scheduler["matchPolicy"] or MATCH_POLICY}
    return tables


def of_machine(cluster: MiniClusterModel, has_r: bool) -> str:
    """Return the broker.toml of a machine that joins a root; paths are relative, and without R it asks the lead."""
    return tomli_w.dumps(
        _of_each_broker({"curve_cert": "curve.cert", "hosts": bootstrap(cluster)}, "R" if has_r else "")
    )


def _of_each_broker(network: Mapping[str, Any], r: str) -> dict[str, Any]:
    """Return the tables of each broker, in a pod or not; ``r`` is the path of the resource set, "" without one."""
    return {
        # root, for example in another container of the pod, may look and administer; Flux takes no jobs from it
        "access": {"allow-guest-user": True, "allow-root-owner": True},
        "bootstrap": network,
        # Flux must not detect resources itself: a container sees more of a Kubernetes node than it may use
        "resource": {**({"path": r} if r else {}), "noverify": True},
    }


def bootstrap(cluster: MiniClusterModel) -> list[dict[str, str]]:
    """Return the host table; in that of a burst rank 0 has the address of the lead."""
    hostlists = [part.hostlist for part in table(cluster)]
    if not cluster.joins:
        return [{"host": hostlist} for hostlist in hostlists]
    # each host once: an older Flux ignores a second entry of a host
    lead, hostlists[0] = split_hosts(hostlists[0])
    others = [{"host": hostlist} for hostlist in hostlists if hostlist]
    return [{"host": lead, "connect": f"tcp://{lead_address(cluster)}"}, *others]


def lead_address(cluster: MiniClusterModel) -> str:
    """Return the address by which a burst reaches its lead, as HOST:PORT."""
    lead = cluster.flux["bursting"]["leadBroker"]
    return f"{lead['address']}:{lead.get('port', BROKER_PORT)}"


def start(cluster: MiniClusterModel) -> list[str]:
    """Return the words that start a broker, without the initial program."""
    flux = cluster.flux
    words = start_words(f"{cluster.files}/broker.toml")
    if flux["wrap"]:
        words.append(f"--wrap={flux['wrap']}")
    run = f"{cluster.state}/run/flux"
    attributes: dict[str, object] = {"statedir": f"{cluster.state}/var/lib/flux", "rundir": run}
    if not flux["disableSocket"]:
        attributes["local-uri"] = f"local://{run}/local"
    attributes |= tree(cluster)
    needed = quorum(cluster)
    if needed is not None:
        attributes["broker.quorum"] = needed
    # a broker that is told to stop has the rest of the pod's grace period, and the dump needs some of it
    rest = model.grace(cluster)[2]
    timeout = 10 if rest >= model.END_SECONDS else max(2, rest // 2)
    attributes["broker.cleanup-timeout"] = attributes["broker.shutdown-timeout"] = f"{timeout}s"
    attributes |= model.log_attributes(cluster, to_file=model.has_log_file(cluster))
    return words + setting(attributes)


def start_words(path: str) -> list[str]:
    """Return the words that start a broker with the configuration of a path.

    ``flux start`` passes on what follows ``-o``; its own ``--config-path`` and ``-S`` came with flux-core 0.69.
    """
    return ["flux", "start", f"-o--config-path={path}"]


def tree(cluster: MiniClusterModel) -> dict[str, object]:
    """Return the attributes of the tree of brokers."""
    flux = cluster.flux
    # every broker of a burst reaches rank 0 only, so rank 0 is the parent of all
    fanout = 0 if cluster.is_multi_cluster else FANOUT_BROKERS
    attributes: dict[str, object] = {"tbon.topo": flux["topology"] or f"kary:{fanout}"}
    if float(flux["connectTimeout"].rstrip("smhd") or 0):
        attributes["tbon.connect_timeout"] = flux["connectTimeout"]
    if cluster.spec["logging"]["zeromq"]:
        attributes["tbon.zmqdebug"] = 1
    return attributes


def setting(attributes: Mapping[str, object]) -> list[str]:
    """Return the words that set attributes of a broker."""
    return [f"-o-S{key}={value}" for key, value in attributes.items()]


def named_queues(cluster: MiniClusterModel) -> dict[str, Any]:
    """Return the tables of the queues with names (flux-config-queues(5), flux-config-policy(5)), none without one."""
    asked: Mapping[str, Any] = cluster.flux["queues"]
    if not asked:
        return {}
    first = default_queue(asked)
    default = {"policy": {"jobspec": {"defaults": {"system": {"queue": first}}}}} if first else {}
    return {"queues": {name: _queue(queue) for name, queue in sorted(asked.items())}, **default}


def default_queue(asked: Mapping[str, Any]) -> str:
    """Return the queue of jobs that name none; "" if several are without one."""
    return next((name for name, queue in asked.items() if queue.get("default") or len(asked) == 1), "")


def _queue(queue: Mapping[str, Any]) -> dict[str, Any]:
    limits = queue.get("limits", {})
    sizes = {f"n{key}": limits[key] for key in ("nodes", "cores", "gpus") if key in limits}
    policy: dict[str, Any] = {"limits": {"job-size": {"max": sizes}}} if sizes else {}
    if duration := limits.get("duration"):
        policy.setdefault("limits", {})["duration"] = duration
        # Flux would refuse a job without a limit
        policy["jobspec"] = {"defaults": {"system": {"duration": duration}}}
    requires = {"requires": [queue["group"]]} if queue.get("group") else {}
    return {**requires, **({"policy": policy} if policy else {})}
