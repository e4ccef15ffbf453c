"""Refusals of fields of the pod and of the Job, of their claims and GPUs, and of what would lose a kept queue."""

from collections.abc import Iterator

from minicluster.documents import map_at, maps_at, value_at
from minicluster.kube.names import REQUEUE_ATTRIBUTE, is_zero
from minicluster.render import devices
from minicluster.render.constants import MULTIKUEUE, OWN_JOB_FIELDS
from minicluster.render.model import MiniClusterModel

LEAD = "flux.bursting.leadBroker"
#: Pairs of values that exclude each other: why, and the way out
EXCLUSIVE = (
    ("flux.curveCert", "flux.curveCertSecret", "give one of them"),
    (
        "networkPolicy.enabled",
        "pod.hostNetwork",
        "a NetworkPolicy does not apply to the host's network; drop one of them",
    ),
    ("shareProcessNamespace", "pod.hostPID", "Kubernetes allows one of them; drop the other"),
    ("groups", LEAD, "the nodes of a burst are alike; drop the groups, and join by a burst for each kind of nodes"),
    ("groups", "flux.minimalService", "brokers of groups need host names; drop one of them"),
    ("pod.segments", LEAD, "a burst has none; drop pod.segments"),
    ("state.claimName", "state.capacity", "the claim is yours, or the release makes it; drop one"),
    ("state.claimName", LEAD, "the lead has the state; drop the claim"),
    ("state.capacity", LEAD, "the lead has the state; drop the claim"),
    ("state.claimName", "archive.path", "each restores the queue; drop one of them"),
    ("state.capacity", "archive.path", "each restores the queue; drop one of them"),
    ("archive.path", LEAD, "the lead cluster has the state; drop the path"),
    ("report.path", LEAD, "the lead cluster has the jobs; drop it"),
    ("report.log", LEAD, "the lead cluster has the jobs; drop it"),
    ("report.log", "logging.quiet", "a quiet log is the job's output alone; set report.path"),
    ("autoscaling.enabled", "flux.disableSocket", "the agent needs the broker's socket; drop one of them"),
    ("metrics.enabled", "flux.disableSocket", "the agent needs the broker's socket; drop one of them"),
    ("pod.disruptionBudget", "flux.disableSocket", "the agent needs the broker's socket; drop one of them"),
)


def exclusive(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield pairs of values that exclude each other."""
    for one, other, way in EXCLUSIVE:
        values = [value_at(cluster.spec, *path.split(".")) for path in (one, other)]
        if all(values):
            yield f"{one} and {other} are both {'true' if values == [True, True] else 'set'}: {way}"


def fields(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield fields of the pod that mean nothing, or lack another one."""
    pod = cluster.spec["pod"]
    if pod["sharedMemory"] != "none" and is_zero(pod["sharedMemory"]):
        yield f"pod.sharedMemory is {pod['sharedMemory']}: give a size such as 1Gi, or none for 64 MB"
    if pod["dnsPolicy"] == "None" and not value_at(pod["template"], "spec", "dnsConfig"):
        yield "pod.dnsPolicy is None and no name server is given: set pod.template.spec.dnsConfig.nameservers"


def on_stop(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield values with which jobs can't run again after a stop."""
    if cluster.spec["pod"]["onStop"] != "requeue":
        return
    if not cluster.spec["pod"]["terminationGracePeriodSeconds"]:
        yield (
            "pod.onStop is 'requeue' and pod.terminationGracePeriodSeconds is 0: a pod is killed before it can put "
            "a job back; allow it some seconds"
        )
    if cluster.runner.get("launcher"):
        yield (
            "pod.onStop is 'requeue' and the runner is a launcher: only a launcher knows which of its jobs run again; "
            f"drop onStop, and have the launcher mark jobs with --setattr={REQUEUE_ATTRIBUTE}=1"
        )


def kept_state(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield fields of a claim that the release doesn't make."""
    state = cluster.spec["state"]
    for key in [key for key in ("storageClass", "accessModes") if not state["capacity"] and state[key]]:
        yield f"state.{key} is set without capacity: it is of a claim that the release makes; drop it"


def job_template(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield fields of `job.template` that the chart writes, each with the value that sets it."""
    part = cluster.spec["job"]["template"]
    if "metadata" in part:
        yield "job.template has metadata: set jobLabels and jobAnnotations"
    spec = map_at(part, "spec")
    for field in spec:
        if field in OWN_JOB_FIELDS:
            value = OWN_JOB_FIELDS[field]
            yield f"job.template.spec has {field}, which the chart writes: {f'set {value}' if value else 'drop it'}"
    if spec.get("managedBy") == MULTIKUEUE:
        yield (
            f"job.template.spec.managedBy is {MULTIKUEUE}: it would copy the Job alone to another cluster, without its "
            "ConfigMaps, Secret and Service; install where the pods are to run, or burst there"
        )


def job_replacement(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield values with which an upgrade that makes the Job anew would lose the queue, or could not be repeated."""
    if not cluster.spec["upgrade"]["replace"]:
        return
    if not cluster.keeps_state:
        yield (
            "upgrade.replace is true and no queue is kept, so an upgrade would lose it: set state.claimName, "
            "state.capacity or archive.path at the install, or drop upgrade.replace"
        )
    if cluster.spec["cleanup"]:
        yield "upgrade.replace and cleanup are true, so an interrupted upgrade could not be repeated: drop one of them"


#: Where a claim of the pod can come from.
CLAIM_SOURCES = ("resourceClaimName", "resourceClaimTemplateName", "spec")


def pod_claims(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield claims of the pod without one source, or with another one's name."""
    names = [claim["name"] for claim in cluster.spec["pod"]["resourceClaims"]]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"pod.resourceClaims has {name} twice: rename one of them"
    for n, claim in enumerate(cluster.spec["pod"]["resourceClaims"]):
        given = [key for key in CLAIM_SOURCES if key in claim]
        if len(given) != 1:
            yield (
                f"pod.resourceClaims[{n}] ({claim['name']}) has {' and '.join(given) or 'no source'}: "
                f"give exactly one of {', '.join(CLAIM_SOURCES)}"
            )


def used_claims(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield claims of containers that their pod doesn't have."""
    pod = cluster.spec["pod"]
    added = maps_at(pod["template"], "spec", "resourceClaims")
    of_pod = {str(claim.get("name")) for claim in [*pod["resourceClaims"], *added]}
    for place, container in {**cluster.own_containers, **cluster.containers}.items():
        is_elsewhere = place.startswith(("services", "flux.bursting.follow", "hooks"))
        for claim in container.get("resources", {}).get("claims", []):
            name = claim["name"]
            if is_elsewhere:
                yield f"{place}.resources.claims has {name}: only the brokers' pods have claims; drop it"
            elif name not in of_pod:
                there = ", ".join(sorted(of_pod)) or "none"
                yield f"{place}.resources.claims has {name}, and pod.resourceClaims has {there}: add it there"


def gpu_kinds(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield GPUs of several kinds, unless ``gpus`` says what Flux has: a task is told its GPUs by one variable."""
    if "gpus" in cluster.runner:
        return
    variables = {name: devices.variable(name) for name in devices.limits(cluster.runner)}
    known = {text: name for name, text in variables.items() if text is not None}
    if len(known) > 1:
        place = cluster.runner_place
        yield (
            f"{place}.resources.limits has {' and '.join(known.values())}: Flux numbers one kind of GPU; drop the "
            f"other, or set {place}.gpus"
        )
