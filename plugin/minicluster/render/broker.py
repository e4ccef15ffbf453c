"""What the brokers are told: broker.toml and the words of ``flux start``.

Keys and attributes are those of flux-config-bootstrap(5), flux-config-resource(5), flux-config-tbon(5)
and flux-broker-attributes(7), Flux 0.88.
"""

import tomllib
from collections.abc import Mapping
from typing import Any

import tomli_w

from minicluster.errors import SpecError
from minicluster.render.constants import BROKER_PORT
from minicluster.render.hostlist import hosts, registered, table
from minicluster.render.spec import MiniCluster

PORT = BROKER_PORT
#: Children of a broker when no topology is asked for; one more than a flat tree can have is another level.
FANOUT = 256
#: Seconds that a broker and its archive have of a grace period of 30 s and more
ENDS = 7
#: Of Fluxion's policies the one that starts most jobs and lets a job wait for nodes that are not up; fcfs fails it.
QUEUE_POLICY = "easy"
#: The lowest nodes first, as sched-simple does: an Indexed Job gives up its highest.
MATCH_POLICY = "lonode"


def quorum(cluster: MiniCluster) -> int | None:
    """Return how many brokers must be online before the work starts, None for all of them."""
    min_size: int | None = cluster.spec["minSize"]
    if min_size is not None:
        return min_size
    if cluster.autoscaling:
        # a lead that comes back must not wait for nodes that were scaled away
        return int(cluster.autoscaling["min"])
    return None if registered(cluster) == cluster.size else cluster.size


def config(cluster: MiniCluster) -> str:
    """Return broker.toml: the user's own text, or the one computed from the spec.

    Raises SpecError when the user's text is not TOML, or stands beside values that it would hide.
    """
    given: str = cluster.flux["brokerConfig"]
    if not given:
        return tomli_w.dumps(_tables(cluster))
    try:
        tomllib.loads(given)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"flux.brokerConfig is not TOML: {error}") from None
    return given


def _tables(cluster: MiniCluster) -> dict[str, Any]:
    network = cluster.spec["network"]
    domain = f"{cluster.service}.{cluster.namespace}.svc.{network['clusterDomain']}"
    tables: dict[str, Any] = {
        # an exec into the pod is often root's, whoever runs the broker
        "access": {"allow-guest-user": True, "allow-root-owner": True},
        "bootstrap": {
            "curve_cert": f"{cluster.state}/curve/curve.cert",
            "default_port": PORT,
            "default_bind": f"tcp://{interface(cluster)}:%p",
            # the dot ends the name: no search domain is tried while the name isn't there yet
            "default_connect": f"tcp://%h.{domain}.:%p",
            "hosts": bootstrap(cluster),
        },
        # what a container sees of a node is not what it may use: R is right, detection isn't
        "resource": {"path": f"{cluster.state}/etc/flux/system/R", "noverify": True},
    }
    if cluster.spec["state"]["claimName"]:
        # what a kill can lose (flux-config-kvs(5))
        tables["kvs"] = {"checkpoint-period": "5s"}
    scheduler = cluster.flux["scheduler"]
    if scheduler["simple"]:
        # Fluxion's own check of feasibility would load its resource module beside sched-simple
        tables["modules"] = {"alternatives": {"sched": "sched-simple", "feasibility": "sched-simple"}}
    else:
        tables["sched-fluxion-qmanager"] = {"queue-policy": scheduler["queuePolicy"] or QUEUE_POLICY}
        tables["sched-fluxion-resource"] = {"match-policy": scheduler["matchPolicy"] or MATCH_POLICY}
    return tables


def interface(cluster: MiniCluster) -> str:
    """Return what brokers bind to: a pod's interface is eth0, those of nodes have names of their own."""
    given: str = cluster.spec["network"]["interface"]
    return given or ("*" if cluster.spec["pod"]["hostNetwork"] else "eth0")


def bootstrap(cluster: MiniCluster) -> list[dict[str, str]]:
    """Return the table of hosts; in that of a burst rank 0 has the address of its lead."""
    entries = [{"host": part.hostlist} for part in table(cluster)]
    if not cluster.joins:
        return entries
    lead = cluster.flux["bursting"]["leadBroker"]
    address = f"tcp://{lead_address(cluster)}"
    if cluster.flux["bursting"]["hostlist"]:
        # a host that is listed again is updated: flux-config-bootstrap(5)
        return [*entries, {"host": hosts(lead["name"], 1), "connect": address}]
    others = [{"host": hosts(lead["name"], lead["size"] - 1, first=1)}] if lead["size"] > 1 else []
    return [{"host": hosts(lead["name"], 1), "connect": address}, *others, *entries[1:]]


def lead_address(cluster: MiniCluster) -> str:
    """Return where a burst reaches its lead, as HOST:PORT."""
    lead = cluster.flux["bursting"]["leadBroker"]
    return f"{lead['address']}:{lead.get('port', PORT)}"


def start(cluster: MiniCluster) -> list[str]:
    """Return the words that start a broker, without the initial program."""
    flux = cluster.flux
    words = ["flux", "start", f"--config-path={cluster.files}/broker.toml"]
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
    # told to stop, a broker has what is left of the pod's grace period, and the dump needs time too
    rest = grace(cluster)[2]
    timeout = 10 if rest >= ENDS else max(2, rest // 2)
    attributes["broker.cleanup-timeout"] = attributes["broker.shutdown-timeout"] = f"{timeout}s"
    attributes |= log(cluster)
    return words + setting(attributes)


def grace(cluster: MiniCluster) -> tuple[int, int, int]:
    """Return how a pod's grace period is used, in seconds: work may go on, it is ended, the broker is."""
    seconds = int(cluster.spec["pod"]["terminationGracePeriodSeconds"])
    leave = max(seconds - 15, seconds // 2)
    kill = (seconds - leave + 1) // 2
    return leave, kill, seconds - leave - kill


def tree(cluster: MiniCluster) -> dict[str, object]:
    """Return the attributes of the tree of brokers."""
    flux = cluster.flux
    # every broker of a burst reaches rank 0 only, so it is the parent of all
    attributes: dict[str, object] = {"tbon.topo": flux["topology"] or f"kary:{0 if cluster.spans else FANOUT}"}
    if _seconds(flux["connectTimeout"]):
        attributes["tbon.connect_timeout"] = flux["connectTimeout"]
    if cluster.spec["logging"]["zeromq"]:
        attributes["tbon.zmqdebug"] = 1
    return attributes


def log(cluster: MiniCluster) -> dict[str, object]:
    """Return the attributes of a broker's log."""
    level = 0 if cluster.spec["logging"]["quiet"] else cluster.flux["logLevel"]
    return {"log-stderr-mode": "local", "log-stderr-level": level}


def setting(attributes: Mapping[str, object]) -> list[str]:
    """Return the words that set attributes of a broker."""
    return [f"-S{key}={value}" for key, value in attributes.items()]


def _seconds(duration: str) -> float:
    return float(duration.rstrip("smhd") or 0)
