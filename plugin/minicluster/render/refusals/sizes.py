"""Refusals of sizes, of the names that grow with them, of work that could never fit, of autoscaling, and of times."""

from collections.abc import Iterator, Mapping
from typing import Any

from minicluster.flux import count_hosts
from minicluster.kube.cron import CronError, parse_cron, parse_zone
from minicluster.kube.names import NAME_CHARACTERS
from minicluster.render import work
from minicluster.render.constants import BROKER_PORT
from minicluster.render.model import MiniClusterModel
from minicluster.render.resources import nodes, registered, requested_cpus, shape
from minicluster.render.schema import shown

#: The most pods of an Indexed Job (Kubernetes' validation of a Job).
MOST_PODS = 100_000
#: The most characters of a CronJob's name: those of its Jobs end with the time
CRONJOB_CHARACTERS = 52


def sizes(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield sizes that exclude each other, and names that would be too long."""
    size, max_size, min_size = cluster.size, cluster.max_size, cluster.spec["minSize"]
    bursting = cluster.flux["bursting"]
    hosts_of = {"maxSize": max_size, "flux.bursting.leadBroker.size": bursting["leadBroker"].get("size", 1)}
    for n, burst in enumerate(bursting["clusters"]):
        hosts_of[f"flux.bursting.clusters[{n}].size"] = burst.get("size", 0)
    for place, hosts in hosts_of.items():
        if hosts > MOST_PODS:
            yield f"{place} is {hosts}: a Job has at most {MOST_PODS} pods; lower it"
    if max_size < size:
        yield f"size is {size}, maxSize {max_size}: lower size, or install with a larger maxSize"
    if min_size is not None and min_size > size:
        yield f"minSize is {min_size}, size {size}: minSize can't be above size; lower minSize"
    last = f"{cluster.name}-{max_size - 1}"
    if len(last) > NAME_CHARACTERS:
        yield (
            f"the last pod would be {last}, {len(last)} characters: {NAME_CHARACTERS} are allowed; shorten nameOverride"
        )
    for what, suffix, is_there in (
        ("host", "services", cluster.spec["services"]),
        ("Service", "lead", bursting["expose"]["type"]),
        ("Deployment", "follow", bursting["follow"]["bursts"]),
    ):
        name = f"{cluster.name}-{suffix}"
        if is_there and len(name) > NAME_CHARACTERS:
            yield f"the {what} {name} has over {NAME_CHARACTERS} characters: shorten nameOverride"


def autoscaling(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield limits of the size that contradict each other."""
    scaling = cluster.autoscaling
    if not scaling:
        return
    if cluster.max_size == 1 and not scaling["suspendAfterSeconds"] and not cluster.groups:
        yield "autoscaling is on and goes from 1 to 1: set maxSize, up to which the cluster can grow"
    yield from bounds("", scaling, cluster.size, cluster.max_size, cluster.spec["minSize"] or 0)
    if scaling["targetCPUUtilizationPercentage"] and not requested_cpus(cluster.runner):
        yield (
            "autoscaling.targetCPUUtilizationPercentage is set and the runner requests no CPU: "
            "set resources.requests.cpu, of which it is a part"
        )


def bounds(place: str, scaling: Mapping[str, Any], size: int, most: int, least: int) -> Iterator[str]:
    """Yield limits of the autoscaler that contradict each other, or the sizes beside them, of a group at a place."""
    low, high, its = scaling["min"], scaling["max"], "its " if place else ""
    if high > most:
        yield f"{place}autoscaling.max is {high}, {its}maxSize {most}: lower it, or install with a larger maxSize"
    if low > high:
        yield f"{place}autoscaling.min is {low}, {its or 'autoscaling.'}max {high}: lower min"
    if not low <= size <= high:
        yield f"{place}size is {size}, {its}autoscaling goes from {low} to {high}: choose a size between"
    if least > low:
        yield (
            f"{place}minSize is {least}, {its}autoscaling.min {low}: a lead that comes back would wait for nodes that "
            "were scaled away; lower minSize"
        )


def agent(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield values with which the agent can't work."""
    spec, port = cluster.spec, cluster.spec["metrics"]["port"]
    parts = {f"{part}.enabled": spec[part]["enabled"] for part in ("autoscaling", "metrics")}
    parts["pod.disruptionBudget"] = spec["pod"]["disruptionBudget"]
    on = [field for field, is_on in parts.items() if is_on]
    for field in on if cluster.joins else ():
        yield f"{field} is true beside flux.bursting.leadBroker: it is for the lead's cluster; set it to false here"
    if on and any(port in container.get("ports", []) for container in spec["containers"]):
        yield f"metrics.port is {port}, a port of another container of the pod: choose another"
    if spec["metrics"]["enabled"] and port == BROKER_PORT:
        yield f"metrics.port is {BROKER_PORT}, on which the broker listens: choose another"


def replicas(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield why nothing would read the replicas that request a size."""
    if cluster.spec["autoscaling"]["handle"] and not cluster.autoscaling:
        yield "autoscaling.handle is true and autoscaling off, so nothing reads its replicas: enable it, or set false"


def end_after(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what contradicts the end of a cluster that is idle."""
    seconds = cluster.spec["endAfterSeconds"]
    if seconds and work.kind(cluster) != "idle":
        yield f"endAfterSeconds is {seconds} and the cluster has work, with which it ends: drop the work, or set 0"
    if seconds and cluster.spec["autoscaling"]["suspendAfterSeconds"]:
        yield f"endAfterSeconds is {seconds} and autoscaling.suspendAfterSeconds set: suspended, it can't end; set one"
    if seconds and cluster.joins:
        yield f"endAfterSeconds is {seconds} and this burst has no lead of its own: set it on the root"


def notify(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what is missing for messages, and who can't tell them."""
    told, secret = cluster.spec["notify"]["events"], cluster.spec["notify"]["secret"]["name"]
    if told and not secret:
        yield "notify.events are set and no address: name a Secret that has it in notify.secret.name"
    if secret and not told:
        yield f"notify.secret.name is {secret} and nothing is told: name something in notify.events, or drop it"
    if "leadLost" in told and cluster.max_size == 1:
        yield "notify.events has leadLost and no other pod can tell that: raise maxSize, or drop it"
    if told and cluster.joins:
        yield "notify.events are set and this burst has no lead of its own: set them on the root"


def scale_to_zero(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what is missing for a cluster that is suspended when idle, and what contradicts that."""
    seconds = cluster.spec["autoscaling"]["suspendAfterSeconds"]
    if not seconds:
        return
    field = f"autoscaling.suspendAfterSeconds is {seconds}"
    if not cluster.autoscaling:
        yield f"{field} and autoscaling is off, so nothing sees that the cluster is idle: enable it, or set 0"
    if not cluster.state_claim:
        yield f"{field} and Flux's state is not on a claim, so the queue would be lost: set state.capacity or claimName"
    if work.kind(cluster) != "idle":
        yield f"{field} and the cluster has work of its own, so it is never idle: drop the work, or set 0"
    if cluster.queue:
        yield f"{field} and the Job is in Kueue's queue {cluster.queue}, which suspends and resumes: set 0, or leave it"


def schedules(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what Kubernetes would refuse of a CronJob, and where no lead could be asked."""
    given = cluster.spec["schedules"]
    names = [each["name"] for each in given]
    for place, each in enumerate(given):
        at, name = f"schedules[{place}]", f"{cluster.name}-{each['name']}"
        for field, read in (("cron", parse_cron), ("timeZone", parse_zone)):
            try:
                read(each.get(field, "Etc/UTC" if field == "timeZone" else ""))
            except CronError as error:
                yield f"{at}.{field} is {shown(each[field])}, which {error}"
        if len(name) > CRONJOB_CHARACTERS:
            yield (
                f"{at}: the CronJob would be {name}, {len(name)} characters: {CRONJOB_CHARACTERS} are allowed; "
                "shorten the name"
            )
        if each["name"] in names[:place]:
            yield f"{at}.name is {each['name']}, which another schedule has: choose another"
    if given and cluster.joins:
        yield "schedules is set and this burst has no lead of its own: set it on the root"
    if given and cluster.flux["disableSocket"]:
        yield "schedules is set and flux.disableSocket is true, so the lead takes no jobs: drop one of them"


def impossible(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield why the work of the cluster could never run."""
    words = work.flags(cluster)
    # a user's broker.toml may name other resources; the work of a live cluster was submitted for its former size
    asked = None if cluster.flux["brokerConfig"] or cluster.installed or not words else shape(words)
    if not asked:
        return
    tasks, size, flags = cluster.spec["tasks"], cluster.size, cluster.flux["optionFlags"]
    hosts = registered(cluster)
    if asked.nodes > hosts:
        yield (
            f"flux.optionFlags is {flags}, which asks for {asked.nodes} nodes of at most {hosts}: the work could never "
            "run; set size, which asks for as many"
        )
    elif asked.tasks and asked.nodes > asked.tasks:
        yield (
            f"flux.optionFlags is {flags}, which asks for more nodes ({asked.nodes}) than tasks ({asked.tasks}): Flux "
            "refuses that; set size and tasks"
        )
    elif _able(cluster, asked.cores_of_a_node) < max(asked.nodes, 1):
        subject = f"tasks is {tasks} and size {size}" + (f", flux.optionFlags is {flags}" if flags else "")
        most = max(part.cores or 0 for part in nodes(cluster))
        yield (
            f"{subject}: that is {asked.cores_of_a_node} cores of a node, and Flux has {most} there: the work could "
            f"never run; ask for less, or set {cluster.runner_place}.cores, otherwise a node's CPU limit or request"
        )


def _able(cluster: MiniClusterModel, cores: int) -> int:
    """Return how many nodes have at least ``cores`` cores, or may have them: only Flux finds how many they have."""
    return sum(count_hosts(part.hosts) for part in nodes(cluster) if part.cores is None or part.cores >= cores)
