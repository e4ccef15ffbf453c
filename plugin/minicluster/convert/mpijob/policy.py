"""The policy of an MPIJob, and the queue of Kueue that its labels name."""

from minicluster.convert.part import Map, Part
from minicluster.errors import ConvertError
from minicluster.render.constants import KUEUE_PRIORITY, KUEUE_QUEUE

#: Schedulers of gangs, by the name that pods give
GANGS = {"volcano": "volcano", "scheduler-plugins-scheduler": "coscheduling"}
NO_GANG = "no pod names the scheduler volcano or scheduler-plugins-scheduler; set gang.kind and pod.schedulerName"


def convert(policy: Part, converted: Map) -> None:
    """Take over runPolicy. Raises ConvertError for a value without a counterpart."""
    take = policy.fields.pop
    clean = take("cleanPodPolicy", None)
    if clean == "None":
        policy.warn("cleanPodPolicy", "is dropped: it kept the workers after the work; here all pods end with it")
    elif clean not in (None, "", "All", "Running"):
        raise ConvertError(f"runPolicy.cleanPodPolicy is {clean}: must be All, Running or None")
    seconds = take("ttlSecondsAfterFinished", None)
    if seconds is not None:
        converted |= {} if seconds else {"cleanup": True}
        stays = "the release stays until `helm uninstall`"
        kept = f"is dropped: the Job keeps its logs, and {stays}; cleanup: true removes the Job at its end"
        policy.warn("ttlSecondsAfterFinished", kept if seconds else f"is cleanup here: it removes the Job, {stays}")
    for key, name in (("activeDeadlineSeconds", "deadlineSeconds"), ("suspend", "suspend")):
        if policy.get(key):
            converted[name] = policy.get(key)
        take(key, None)
    retries = take("backoffLimit", None)
    if retries is not None:
        converted["backoffLimit"] = retries
        policy.warn("backoffLimit", "counts pods that were lost here: a program that fails is not started again")
    manager = take("managedBy", None)
    if manager not in (None, "", "kubeflow.org/mpi-operator"):
        raise ConvertError(f"runPolicy.managedBy is {manager}: here Kubernetes runs the Job; drop it")
    _convert_scheduling(policy.make("schedulingPolicy"), converted)


def _convert_scheduling(scheduling: Part, converted: Map) -> None:
    """Take over what the gang schedulers read."""
    pod = converted.setdefault("pod", {})
    kind = GANGS.get(str(pod.get("schedulerName")))
    given = {key: scheduling.fields.pop(key, None) for key in SCHEDULING}
    given = {key: value for key, value in given.items() if value is not None}
    if kind:
        converted["gang"] = {"kind": kind}
    elif given:
        scheduling.warn("", f"is dropped: {NO_GANG}")
        return
    queue, least = given.get("queue"), given.get("minAvailable")
    if queue and kind == "volcano":
        converted["gang"]["queue"] = queue
    if least is not None and least < converted["size"]:
        converted["minSize"] = least
        scheduling.warn("minAvailable", "is minSize here: the work starts when as many nodes are up")
    if given.get("priorityClass") and kind == "volcano":
        pod.setdefault("priorityClassName", given["priorityClass"])
    used = ("minAvailable", *(("queue", "priorityClass") if kind == "volcano" else ()))
    for key in given.keys() - set(used):
        scheduling.warn(key, "is dropped: the PodGroup has no such field here")


SCHEDULING = ("minAvailable", "queue", "minResources", "priorityClass", "scheduleTimeoutSeconds")


def queue(labels: Map, converted: Map) -> None:
    """Take over the labels that Kueue reads."""
    keys = {KUEUE_QUEUE: "queueName", KUEUE_PRIORITY: "priorityClass"}
    kueue = {name: labels[key] for key, name in keys.items() if labels.get(key)}
    if kueue:
        converted["kueue"] = kueue
