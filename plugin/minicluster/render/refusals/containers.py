"""Refusals of containers and services: which one runs Flux, names, commands, variables, resources."""

from collections.abc import Iterator, Mapping
from typing import Any

from minicluster.documents import BYTE_ORDER_MARK, map_at, maps_at
from minicluster.kube.names import MOST_CORES, NAME_CHARACTERS, to_number
from minicluster.render.devices import names as gpu_names
from minicluster.render.model import MiniClusterModel, may_run_flux
from minicluster.render.resources import cores as cores_of
from minicluster.render.resources import gpus

#: Fields of the container that runs Flux only.
RUNNERS = ("launcher", "batch", "batchRaw", "diagnostics", "cores", "gpus", "logs", "runFlux")
#: Probes of a container, and the kinds of probes that need a port.
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
PORTS = {"httpGet", "tcpSocket", "grpc"}
#: Vendors of GPUs, whose names for them begin with a domain.
VENDORS = ("nvidia", "amd", "intel")
#: The container of the agent (`minicluster.agentContainer` in the chart)
AGENT = "minicluster-agent"
#: The most bytes of one word, or of NAME=VALUE, that Linux starts a program with (MAX_ARG_STRLEN in execve(2))
WORD_BYTES = (128 << 10) - 1
#: How the names of the cluster's own variables begin.
OWN_VARIABLES = ("mc_", "MINICLUSTER_")


def runners(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield if, of several containers, not exactly one runs Flux."""
    containers = cluster.spec["containers"]
    candidates = may_run_flux(containers)
    places = " and ".join(f"containers[{place}]" for place in candidates or range(len(containers)))
    if not candidates:
        yield f"{places} have runFlux: false, so none runs Flux: set runFlux: true on the one that does"
    elif len(candidates) > 1 and containers[candidates[0]].get("runFlux"):
        yield f"{places} have runFlux: true, and only one can run Flux: leave it on that one"
    elif len(candidates) > 1:
        yield f"{places} could each run Flux: set runFlux: true on the one that does"


def others(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what the containers and services that don't run Flux can't have."""
    if cluster.runner.get("noWrapEntrypoint"):
        yield "noWrapEntrypoint is set on the container that runs Flux: Flux is its entrypoint; drop it"
    for place, container in cluster.containers.items():
        if container is not cluster.runner:
            yield from _other(place, container)


def _other(place: str, container: Mapping[str, Any]) -> Iterator[str]:
    commands, command = container.get("commands", {}), container.get("command")
    given = [key for key, value in commands.items() if value]
    wrapped = not container.get("noWrapEntrypoint") and (command or commands.get("script"))
    if not container.get("name"):
        yield f"{place} has no name: give it one; only the runner needs none"
    if given and not wrapped:
        yield f"{place}.commands.{given[0]} is set, but the image's own entrypoint runs: give a command"
    if command and container.get("noWrapEntrypoint"):
        yield f"{place} has command and noWrapEntrypoint: drop one of them"
    yield from _command_and_script(place, container)
    allowed = {"servicePre"} if place.startswith("services") else {"servicePre", "init", "post", "script"}
    for key in [f"commands.{key}" for key in given if key not in allowed]:
        yield f"{place}.{key} is set: it is for the container that runs Flux; use servicePre"
    for key in RUNNERS:
        # no GPUs is a number too
        if container.get(key) or (key == "gpus" and key in container):
            yield f"{place}.{key} is set: it is for the container that runs Flux; drop it"


def lead_only(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield containers that can't run on the lead only, and their probes that would fail on workers."""
    merged = {c.get("name"): c for c in maps_at(cluster.spec["pod"]["template"], "spec", "initContainers")}
    for place, container in cluster.containers.items():
        if not container.get("leadOnly"):
            continue
        if container is cluster.runner:
            yield f"{place}.leadOnly is set on the container that runs Flux: each pod has a broker; drop it"
        elif place.startswith("services"):
            yield f"{place}.leadOnly is set: a service has a pod of its own; drop it"
        elif not (container.get("command") or container.get("commands", {}).get("script")):
            yield f"{place}.leadOnly is set without a command: its image's entrypoint would run in each pod; give one"
        if cluster.joins:
            yield f"{place}.leadOnly is set, and with flux.bursting.leadBroker the lead is elsewhere: drop it"
        for probe in PROBES:
            if map_at(merged.get(container.get("name")), probe).keys() & PORTS:
                yield (
                    f"pod.template: the {probe} of {container['name']} would fail on workers, where nothing listens: "
                    "use exec, and test that JOB_COMPLETION_INDEX is 0"
                )


def _command_and_script(place: str, container: Mapping[str, Any]) -> Iterator[str]:
    if container.get("command") and container.get("commands", {}).get("script"):
        yield f"{place} has command and commands.script: give the one that is the work"


def names(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield names that two containers of a pod have, or that make a Service's name wrong."""
    runner, view = cluster.runner_name, cluster.flux["container"]["name"]
    sidecars = [str(c.get("name")) for c in cluster.sidecars]
    for group in ([runner, *sidecars], [str(c.get("name")) for c in cluster.spec["services"]]):
        for name in sorted({name for name in group if group.count(name) > 1}):
            yield f"two containers are named {name}: rename one of them"
    for name in dict.fromkeys([runner, *sidecars]):
        if name == AGENT:
            yield f"a container is named {name}, a name of the cluster's own: rename it"
        if name == view:
            yield f"a container is named {name}, as flux.container.name: rename one of them"
    if view == AGENT:
        yield f"flux.container.name is {view}, a name of the cluster's own: rename it"
    for name in [str(c.get("name")) for c in cluster.sidecars if c.get("ports")]:
        service = f"{cluster.name}-{name}"
        if len(service) > NAME_CHARACTERS:
            yield (
                f"the Service {service} of a sidecar's ports has over {NAME_CHARACTERS} characters: rename the sidecar"
            )
        elif name in ("lead", "ready"):
            yield f"the Service {service} of a sidecar's ports is the cluster's own: rename the sidecar"


def hooks(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield the hooks that a byte-order mark spoils: the template hands them to Kubernetes as they are."""
    for place, container in cluster.containers.items():
        for name, text in container.get("lifeCycle", {}).items():
            if text.startswith(BYTE_ORDER_MARK):
                yield f"{place}.lifeCycle.{name} begins with a byte-order mark: save it without one"


def variables(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield variables that are set twice, or are the cluster's own."""
    places = {"flux.environment": cluster.flux["environment"]}
    for place, container in cluster.containers.items():
        environment, secrets = container.get("environment", {}), container.get("secrets", {})
        places |= {f"{place}.environment": environment, f"{place}.secrets": secrets}
        for name in sorted(environment.keys() & secrets.keys()):
            yield f"{place} has {name} in environment and in secrets: drop one of them"
    for place, owner in places.items():
        for name in owner:
            if name.startswith(OWN_VARIABLES):
                prefixes = " or ".join(OWN_VARIABLES)
                yield f"{place}.{name}: names that begin with {prefixes} are the cluster's own; rename it"


def lengths(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield variables and words of a command that are longer than a program can get."""
    texts = {f"flux.environment.{name}": f"{name}={value}" for name, value in cluster.flux["environment"].items()}
    for place, container in cluster.containers.items():
        for name, value in container.get("environment", {}).items():
            texts[f"{place}.environment.{name}"] = f"{name}={value}"
        command = container.get("command")
        for index, word in enumerate(command if isinstance(command, list) else ()):
            texts[f"{place}.command[{index}]"] = str(word)
    for place, text in texts.items():
        taken = len(text.encode(errors="surrogatepass"))
        if taken > WORD_BYTES:
            yield f"{place} has {taken} bytes, and Linux gives a program at most {WORD_BYTES}: mount it as a file"


def resources(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield requests that their limits don't allow."""
    for place, container in {**cluster.own_containers, **cluster.containers}.items():
        given = container.get("resources", {})
        limits = given.get("limits", {})
        for kind in ("limits", "requests"):
            for name in given.get(kind, {}):
                vendor = name.partition("/")[0]
                if vendor in VENDORS:
                    there = ", ".join(known for known in gpu_names() if f"{vendor}.com/" in known)
                    yield f"{place}.resources.{kind}.{name}: no GPU has this name; there are {there}"
        for name, asked in given.get("requests", {}).items():
            limit = limits.get(name)
            where = f"{place}.resources.requests.{name} is {asked}"
            if "/" in name and (limit is None or to_number(asked) != to_number(limit)):
                shown = "unset" if limit is None else limit
                yield f"{where}, limits.{name} {shown}: for a device they must be equal; give both the same number"
            elif limit is not None and to_number(asked) > to_number(limit):
                yield f"{where}, limits.{name} {limit}: a request can't be above its limit; lower it"


def memory_reserve(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield a reserve of memory that leaves nothing of a limit."""
    reserve, runners = (
        cluster.flux["memoryReserve"],
        [cluster.runner, *(group.cluster.runner for group in cluster.groups)],
    )
    limits = [
        str(limit) for runner in runners if (limit := runner.get("resources", {}).get("limits", {}).get("memory"))
    ]
    least = min(limits, key=to_number, default="")
    if reserve and least and to_number(reserve) >= to_number(least):
        yield f"flux.memoryReserve is {reserve}, and the limit of a runner's memory {least}: no job could run; lower it"


def cores(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield numbers of cores or GPUs that no node has: Flux would hold each of them in memory."""
    runner, place = cluster.runner, cluster.runner_place
    asked = {f"{place}.cores" if runner.get("cores") else f"{place}.resources: cpu": cores_of(runner) or 0}
    asked[f"{place}.resources: GPUs"] = gpus(runner)
    for n, burst in enumerate(cluster.flux["bursting"]["clusters"]):
        asked |= {f"flux.bursting.clusters[{n}].{key}": burst.get(key, 0) for key in ("cores", "gpus")}
    for field, number in asked.items():
        if number > MOST_CORES:
            yield f"{field} is {number}: no node has more than {MOST_CORES}; lower it"


def work(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield contradictions in the work that the runner gives to Flux."""
    runner, place = cluster.runner, cluster.runner_place
    commands, command = runner.get("commands", {}), runner.get("command")
    work = command or commands.get("script")
    yield from _command_and_script(place, runner)
    if cluster.spec["interactive"] and work:
        yield "interactive is true and there is a command: an interactive cluster runs none; drop one of them"
    if runner.get("batch") and runner.get("launcher"):
        yield f"{place} has batch and launcher: give the one that fits"
    if runner.get("batchRaw") and not runner.get("batch"):
        yield f"{place}.batchRaw is set without batch: set batch too"
    if runner.get("batch") and not isinstance(command, str):
        yield f"{place}.batch is set: its command must be a string, one job per line"
    for key in ("batch", "launcher"):
        if runner.get(key) and not work:
            yield f"{place}.{key} is set and there is no command: give one"
    if runner.get("diagnostics") and (runner.get("batch") or runner.get("launcher")):
        yield f"{place}.diagnostics is set beside batch or launcher: diagnostics runs instead of the command; drop one"
    if "nodeCheckSeconds" in commands and not commands.get("nodeCheck"):
        yield f"{place}.commands.nodeCheckSeconds is set without nodeCheck: give the check"
    if commands.get("servicePre"):
        yield f"{place}.commands.servicePre is for the other containers: use pre"
    if cluster.joins and (work or cluster.spec["interactive"]):
        yield "flux.bursting.leadBroker is set and there is a command: the work is the lead cluster's; drop the command"
