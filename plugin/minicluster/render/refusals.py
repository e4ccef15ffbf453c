"""What no schema can say of a spec: values that contradict each other, each in a sentence."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from minicluster.render import fragments

if TYPE_CHECKING:
    from minicluster.render.spec import MiniCluster

#: A DNS label, and so a pod's host name.
MAX_NAME = 63
#: Powers of 10 that suffixes of quantities stand for.
POWERS = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
#: Where a volume can come from.
SOURCES = ("claimName", "hostPath", "secretName", "configMapName", "emptyDir", "csiDriver")


def refusals(cluster: "MiniCluster") -> Iterator[str]:
    """Yield what no schema can say: values that contradict each other."""
    runners = [c for c in cluster.spec["containers"] if c.get("runFlux")]
    if len(cluster.spec["containers"]) > 1 and len(runners) != 1:
        count = len(cluster.spec["containers"])
        if runners:
            yield f"{len(runners)} of the {count} containers have runFlux: true: leave it on the one that runs Flux"
        else:
            yield f"none of the {count} containers has runFlux: true: set it on the one that runs Flux"
        return
    yield from _sizes(cluster)
    yield from _containers(cluster)
    yield from _variables(cluster)
    yield from _volumes(cluster)
    yield from _work(cluster)
    yield from _flux(cluster)
    yield from _bursting(cluster)
    yield from _pod(cluster)
    yield from _scaling(cluster)
    yield from _state(cluster)
    yield from _hidden_by_broker_config(cluster)
    yield from _resources(cluster)
    yield from fragments.refusals(cluster)


def _sizes(cluster: "MiniCluster") -> Iterator[str]:
    size, max_size, min_size = cluster.size, cluster.max_size, cluster.spec["minSize"]
    if max_size < size:
        yield f"size is {size}, maxSize {max_size}: lower size, or install with a larger maxSize"
    if min_size is not None and min_size > size:
        yield f"minSize is {min_size}, size {size}: minSize can't be above size; lower minSize"
    last = f"{cluster.name}-{max_size - 1}"
    if len(last) > MAX_NAME:
        yield f"the last pod would be {last}, {len(last)} characters: {MAX_NAME} are allowed; shorten nameOverride"
    if cluster.spec["services"] and len(cluster.name) > MAX_NAME - len("-services"):
        yield f"the host {cluster.name}-services has over {MAX_NAME} characters: shorten nameOverride"
    if cluster.flux["bursting"]["expose"]["type"] and len(cluster.name) > MAX_NAME - len("-lead"):
        yield f"the Service {cluster.name}-lead has over {MAX_NAME} characters: shorten nameOverride"


def _pod(cluster: "MiniCluster") -> Iterator[str]:
    if cluster.spec["networkPolicy"]["enabled"] and cluster.spec["pod"]["hostNetwork"]:
        yield "networkPolicy.enabled and pod.hostNetwork are both true: no policy holds there; drop one of them"
    if cluster.spec["shareProcessNamespace"] and cluster.spec["pod"]["hostPID"]:
        yield "shareProcessNamespace and pod.hostPID are both true: Kubernetes takes one of them; drop the other"
    template = cluster.spec["pod"]["template"].get("spec") or {}
    if cluster.spec["pod"]["dnsPolicy"] == "None" and not (isinstance(template, dict) and template.get("dnsConfig")):
        yield "pod.dnsPolicy is None and there is no name server: give pod.template.spec.dnsConfig.nameservers"


def _scaling(cluster: "MiniCluster") -> Iterator[str]:
    scaling, metrics = cluster.autoscaling, cluster.spec["metrics"]
    if (scaling or metrics["enabled"]) and cluster.joins:
        yield "autoscaling or metrics is on beside flux.bursting.leadBroker: they are the lead cluster's; turn them off"
    if (scaling or metrics["enabled"]) and cluster.flux["disableSocket"]:
        yield "autoscaling or metrics is on with flux.disableSocket: they need the broker's socket; drop one of them"
    ports = [port for container in cluster.spec["containers"] for port in container.get("ports", [])]
    if (scaling or metrics["enabled"]) and metrics["port"] in ports:
        yield f"metrics.port is {metrics['port']}, a port of another container of the pod: choose another"
    if not scaling:
        return
    low, high, size = scaling["min"], scaling["max"], cluster.size
    if high > cluster.max_size:
        yield f"autoscaling.max is {high}, maxSize {cluster.max_size}: lower it, or install with a larger maxSize"
    if low > high:
        yield f"autoscaling.min is {low}, autoscaling.max {high}: lower min"
    if not low <= size <= high:
        yield f"size is {size}, autoscaling goes from {low} to {high}: choose a size between"
    if cluster.spec["minSize"] and cluster.spec["minSize"] > low:
        yield (
            f"minSize is {cluster.spec['minSize']}, autoscaling.min {low}: a lead that comes back would wait for "
            "nodes that were scaled away; lower minSize"
        )
    resources = cluster.runner.get("resources", {})
    requested = resources.get("requests", {}).get("cpu", resources.get("limits", {}).get("cpu", 0))
    if scaling["targetCPUUtilizationPercentage"] and re.fullmatch(r"0*(\.0*)?[a-zA-Z]*", str(requested)):
        yield (
            "autoscaling.targetCPUUtilizationPercentage is set and the runner requests no CPU: "
            "set resources.requests.cpu, of which it is a part"
        )


def _state(cluster: "MiniCluster") -> Iterator[str]:
    if cluster.spec["state"]["claimName"] and cluster.joins:
        yield "state.claimName and flux.bursting.leadBroker are both set: the lead has the state; drop the claim"
    if cluster.spec["state"]["claimName"] and cluster.spec["archive"]["path"]:
        yield "state.claimName and archive.path are both set: each brings the queue back; drop one of them"


def _containers(cluster: "MiniCluster") -> Iterator[str]:
    runner = cluster.runner
    if runner.get("noWrapEntrypoint"):
        yield "noWrapEntrypoint is set on the container that runs Flux: Flux is its entrypoint; drop it"
    for place, container in _named(cluster):
        yield from _container(place, container)
    sidecars = [str(c.get("name")) for c in cluster.sidecars]
    taken = [cluster.flux["container"]["name"], runner.get("name") or cluster.name, "minicluster-agent"]
    for names in (taken + sidecars, [str(c.get("name")) for c in cluster.spec["services"]]):
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"two containers are named {name}: rename one of them"
    for name in [str(c.get("name")) for c in cluster.sidecars if c.get("ports")]:
        service = f"{cluster.name}-{name}"
        if len(service) > MAX_NAME or name in ("lead", "ready"):
            yield f"a sidecar's ports would have the Service {service}: over {MAX_NAME} characters, or taken; rename it"


def _container(place: str, container: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a container that is not the runner can't have."""
    commands, command = container.get("commands", {}), container.get("command")
    given = [key for key, value in commands.items() if value]
    wrapped = not container.get("noWrapEntrypoint") and (command or commands.get("script"))
    if not container.get("name"):
        yield f"{place} has no name: all but the one that runs Flux need one"
    if given and not wrapped:
        yield f"{place}.commands.{given[0]} is set and the image's own entrypoint runs: give a command"
    if command and container.get("noWrapEntrypoint"):
        yield f"{place} has command and noWrapEntrypoint: drop one of them"
    if command and commands.get("script"):
        yield f"{place} has command and commands.script: give the one that is the work"
    allowed = {"servicePre"} if place.startswith("services") else {"servicePre", "init", "post", "script"}
    for key in [f"commands.{key}" for key in given if key not in allowed]:
        yield f"{place}.{key} is set: it is for the container that runs Flux; use servicePre"
    for key in ("launcher", "batch", "batchRaw", "diagnostics", "cores", "logs", "runFlux"):
        if container.get(key):
            yield f"{place}.{key} is set: it is for the container that runs Flux; drop it"


def _named(cluster: "MiniCluster") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the containers that need a name, with their places in the spec."""
    for n, container in enumerate(cluster.spec["containers"]):
        if container is not cluster.runner:
            yield f"containers[{n}]", container
    for n, container in enumerate(cluster.spec["services"]):
        yield f"services[{n}]", container


def _variables(cluster: "MiniCluster") -> Iterator[str]:
    places = {"flux.environment": cluster.flux["environment"]}
    for group in ("containers", "services"):
        for n, container in enumerate(cluster.spec[group]):
            variables, secrets = container.get("environment", {}), container.get("secrets", {})
            places |= {f"{group}[{n}].environment": variables, f"{group}[{n}].secrets": secrets}
            for name in sorted(variables.keys() & secrets.keys()):
                yield f"{group}[{n}] has {name} in environment and in secrets: drop one of them"
    for place, variables in places.items():
        for name in variables:
            if name.startswith(("mc_", "MINICLUSTER_")):
                yield f"{place}.{name}: names that begin with mc_ or MINICLUSTER_ are the cluster's own; rename it"


def _volumes(cluster: "MiniCluster") -> Iterator[str]:
    for group in ("containers", "services"):
        seen: dict[str, Mapping[str, Any]] = {}
        for n, container in enumerate(cluster.spec[group]):
            yield from _mounts(f"{group}[{n}].volumes", container.get("volumes", {}), _own_paths(cluster, group))
            for name, volume in container.get("volumes", {}).items():
                place = f"{group}[{n}].volumes.{name}"
                yield from _volume(place, name, volume)
                settings = {key: value for key, value in volume.items() if key not in ("path", "readOnly")}
                if seen.setdefault(name, settings) != settings:
                    yield f"{place} has other settings than the volume {name} of another container: rename one of them"


def _own_paths(cluster: "MiniCluster", group: str) -> tuple[list[str], list[str]]:
    """Return where the cluster's own volumes are: there, and in the second ones also below, nothing can be mounted."""
    below = [
        f"{cluster.mount}/{name}"
        for name in ("minicluster", "configmap", "curve", "config", "state", "munge", "copy", "bin")
    ]
    view = group == "containers" and not cluster.flux["container"]["disable"]
    return [cluster.mount], [*below, *(["/opt/software", "/opt/views"] if view else [])]


def _mounts(place: str, volumes: Mapping[str, Any], own: tuple[list[str], list[str]]) -> Iterator[str]:
    """Yield the volumes of a container that are mounted where something is."""
    exact, trees = own
    seen: dict[str, str] = {}
    for name, volume in volumes.items():
        path = posixpath.normpath("/" + (volume.get("path") or "/dev/shm").lstrip("/"))  # noqa: S108 - the default
        tree = next((tree for tree in trees if f"{path}/".startswith(f"{tree}/")), path if path in exact else None)
        if tree:
            yield f"{place}.{name}.path is {path}: {tree} is the cluster's own; mount it elsewhere"
        elif path == "/":
            yield f"{place}.{name}.path is /: nothing of the image would be left; mount it elsewhere"
        if path in seen:
            yield f"{place}: {seen[path]} and {name} are both at {path}; mount one elsewhere"
        seen[path] = name


def _volume(place: str, name: str, volume: Mapping[str, Any]) -> Iterator[str]:
    sources = [key for key in SOURCES if volume.get(key)]
    if name.startswith("minicluster"):
        yield f"{place}: names that begin with minicluster are the cluster's own; rename it"
    if len(sources) != 1:
        yield f"{place} has {' and '.join(sources) or 'no source'}: give exactly one of {', '.join(SOURCES)}"
    elif not volume.get("path") and sources != ["emptyDir"]:
        yield f"{place} has no path: say where to mount it"
    parts = {
        "items": ("configMapName", "secretName"),
        "emptyDirMedium": ("emptyDir",),
        "emptyDirSizeLimit": ("emptyDir",),
    }
    for key, owners in (parts | {"csiDriverAttributes": ("csiDriver",)}).items():
        if volume.get(key) and not set(owners) & set(sources):
            yield f"{place}.{key} is set without {' or '.join(owners)}: drop it"
    paths = {f"{place}.items.{key}": path for key, path in volume.get("items", {}).items()}
    for where, path in {
        **paths,
        f"{place}.path": volume.get("path", ""),
        f"{place}.hostPath": volume.get("hostPath", ""),
    }.items():
        if ".." in path.split("/"):
            yield f"{where} is {path}: Kubernetes takes no .. in a path; write it without"


def _resources(cluster: "MiniCluster") -> Iterator[str]:
    """Yield requests that their limits don't allow."""
    places = {"flux.container": cluster.flux["container"], "agent": cluster.spec["agent"]} | {
        f"{group}[{n}]": container
        for group in ("containers", "services")
        for n, container in enumerate(cluster.spec[group])
    }
    for place, container in places.items():
        resources = container.get("resources", {})
        limits, requests = resources.get("limits", {}), resources.get("requests", {})
        for name, asked in requests.items():
            limit = limits.get(name)
            where = f"{place}.resources.requests.{name} is {asked}"
            if "/" in name and (limit is None or amount(asked) != amount(limit)):
                yield f"{where}, of limits {limit or 'nothing'}: devices are given whole; give limits the same number"
            elif limit is not None and amount(asked) > amount(limit):
                yield f"{where}, limits.{name} {limit}: a request can't be above its limit; lower it"


def amount(quantity: object) -> Decimal:
    """Return the number that a quantity of the schema is (apimachinery/pkg/api/resource/quantity.go)."""
    number, suffix = re.findall(r"^(.*?[0-9.])([a-zA-Z]*)$", str(quantity))[0]
    base, exponent = (1024, 1 + "KMGTPE".index(suffix[0])) if suffix.endswith("i") else (10, POWERS[suffix])
    return Decimal(number) * Decimal(base) ** exponent


def _work(cluster: "MiniCluster") -> Iterator[str]:
    runner = cluster.runner
    commands, command = runner.get("commands", {}), runner.get("command")
    script = commands.get("script")
    place = f"containers[{cluster.spec['containers'].index(runner)}]"
    if command and script:
        yield f"{place} has command and commands.script: give the one that is the work"
    if cluster.spec["interactive"] and (command or script):
        yield "interactive is true and there is a command: an interactive cluster runs none; drop one of them"
    if runner.get("batch") and runner.get("launcher"):
        yield f"{place} has batch and launcher: give the one that fits"
    if runner.get("batchRaw") and not runner.get("batch"):
        yield f"{place}.batchRaw is set without batch: set batch too"
    if runner.get("batch") and not isinstance(command, str):
        yield f"{place}.batch is set: its command must be a text, each line a job"
    for key in ("batch", "launcher"):
        if runner.get(key) and not (command or script):
            yield f"{place}.{key} is set and there is no command: give one"
    if runner.get("diagnostics") and (runner.get("batch") or runner.get("launcher")):
        yield f"{place}.diagnostics is set beside batch or launcher: diagnostics runs instead of the command; drop one"
    if commands.get("servicePre"):
        yield f"{place}.commands.servicePre is for the other containers: use pre"
    if cluster.joins and (command or script or cluster.spec["interactive"]):
        yield "flux.bursting.leadBroker is set and there is a command: the work is the lead cluster's; drop the command"


def _flux(cluster: "MiniCluster") -> Iterator[str]:
    flux = cluster.flux
    policy = flux["scheduler"]["queuePolicy"]
    if flux["scheduler"]["simple"] and policy not in ("", "fcfs"):
        yield f"flux.scheduler.queuePolicy is {policy} and simple is true: sched-simple knows fcfs only"
    match = flux["scheduler"]["matchPolicy"]
    if flux["scheduler"]["simple"] and match:
        yield f"flux.scheduler.matchPolicy is {match} and simple is true: sched-simple has none; drop it"
    if policy == "fcfs" and not flux["scheduler"]["simple"]:
        yield (
            "flux.scheduler.queuePolicy is fcfs: Fluxion's fcfs fails a job that needs a node that is not up yet; "
            "use easy, or simple: true, which is first come, first served and lets it wait"
        )
    if flux["curveCert"] and flux["curveCertSecret"]:
        yield "flux.curveCert and flux.curveCertSecret are both set: give one of them"
    if flux["container"]["disable"] and flux["container"]["mode"] != "auto":
        mode = flux["container"]["mode"]
        yield f"flux.container.disable is true and mode is {mode}: without a view there is no mode; drop it"


def _bursting(cluster: "MiniCluster") -> Iterator[str]:
    bursting = cluster.flux["bursting"]
    lead = bursting["leadBroker"]
    if bursting["hostlist"] and bursting["clusters"]:
        yield "flux.bursting has hostlist and clusters: give one of them"
    if cluster.joins and cluster.spec["archive"]["path"]:
        yield "archive.path and flux.bursting.leadBroker are both set: the lead cluster has the state; drop the path"
    for key in [key for key in ("name", "address", "size") if cluster.joins and not lead.get(key)]:
        yield f"flux.bursting.leadBroker has no {key}: name, address and size are needed"
    if cluster.spans and cluster.flux["topology"] not in ("", "kary:0"):
        topology = cluster.flux["topology"]
        yield f"flux.topology is {topology} with bursting: every broker must reach rank 0 directly; drop it"
    names = [burst["name"] for burst in cluster.bursts]
    for name in {name for name in names if names.count(name) > 1}:
        yield f"two bursts are named {name}: rename one of them"
    if not cluster.joins and cluster.name in names:
        yield f"flux.bursting.clusters has {cluster.name}, this cluster's own name: rename one of them"
    if cluster.joins and not bursting["hostlist"]:
        mine = [burst for burst in cluster.bursts if burst["name"] == cluster.name]
        if not mine:
            yield f"flux.bursting.clusters has no {cluster.name}: give the lead cluster's list, with this cluster"
        elif cluster.max_size > mine[0]["size"]:
            key = "size" if cluster.size > (size := mine[0]["size"]) else "maxSize"
            yield (f"{key} is {cluster.spec[key]}, flux.bursting.clusters has {size} for {cluster.name}: lower {key}")
    if not bursting["expose"]["type"] and (bursting["expose"]["nodePort"] or bursting["expose"]["annotations"]):
        yield "flux.bursting.expose has a port or annotations and no type: give NodePort or LoadBalancer"


def _hidden_by_broker_config(cluster: "MiniCluster") -> Iterator[str]:
    """Yield the values that a broker.toml of the user's own would silently override."""
    if not cluster.flux["brokerConfig"]:
        return
    scheduler, network, bursting = cluster.flux["scheduler"], cluster.spec["network"], cluster.flux["bursting"]
    computed = {
        "flux.scheduler.queuePolicy": scheduler["queuePolicy"],
        "flux.scheduler.matchPolicy": scheduler["matchPolicy"],
        "flux.scheduler.simple": scheduler["simple"],
        "flux.bursting": bursting["clusters"] or bursting["leadBroker"] or bursting["hostlist"],
        "network.interface": network["interface"],
        "network.clusterDomain": network["clusterDomain"] != "cluster.local",
    }
    for name, is_set in computed.items():
        if is_set:
            yield f"{name} and flux.brokerConfig are both set: brokerConfig is used as given; say it there"
