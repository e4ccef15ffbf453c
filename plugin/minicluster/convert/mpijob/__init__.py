"""An MPIJob of mpi-operator (kubeflow.org/v2beta1 at commit caa3c47f) as values of the chart.

The workers become the pods, and what the launcher's mpirun starts becomes the work: Flux starts its tasks, so nothing
needs SSH, a launcher's pod or a file of hosts. Each field is taken out of the document, and what is left is refused.
"""

from collections.abc import Iterator
from typing import Any

from minicluster.convert.mpijob import job_pods, launcher, run_time
from minicluster.convert.part import Map, Part, Report
from minicluster.errors import ConvertError
from minicluster.render.constants import KUEUE_PRIORITY, KUEUE_QUEUE

MPI_JOB = "MPIJob"
#: Which option Open MPI needs, since nothing tells its version
OF_OPEN_MPI = "is OpenMPI: Open MPI 5 needs {}, without it each task is a world of its own; Open MPI 4 needs nothing"
#: Schedulers of gangs, by the name that pods give
GANGS = {"volcano": "volcano", "scheduler-plugins-scheduler": "coscheduling"}
NO_GANG = "no pod names the scheduler volcano or scheduler-plugins-scheduler; set gang.kind and pod.schedulerName"
SCHEDULING = ("minAvailable", "queue", "minResources", "priorityClass", "scheduleTimeoutSeconds")


def values(name: str, given: Map, labels: Map, report: Report) -> Map:
    """Return the values of an MPIJob; ``given`` is its spec, which is used up. Raises ConvertError."""
    spec = Part("", given, report)
    workers, first = _replicas(spec)
    slots = _number(spec, "slotsPerWorker", 1)
    implementation = spec.fields.pop("mpiImplementation", "OpenMPI")
    if implementation not in ("OpenMPI", "Intel", "MPICH"):
        raise ConvertError(f"mpiImplementation is {implementation}: must be OpenMPI, Intel or MPICH")
    for key in ("sshAuthMountPath", "launcherCreationPolicy"):
        spec.fields.pop(key, None)
    converted, words = job_pods.values(workers, first, name)
    leads = int(spec.fields.get("runLauncherAsWorker") is True)
    converted["size"] = _size(spec, workers)
    convert_policy(spec.make("runPolicy"), converted)
    take_queue(labels, converted)
    launcher.convert(first, words, converted, implementation, slots)
    run_time.rename(converted, name, leads, report)
    refuse_rest(spec)
    if implementation == "OpenMPI":
        way = (
            "`flux run -opmi=pmix`" if converted["containers"][0].get("launcher") else "-opmi=pmix in flux.optionFlags"
        )
        spec.warn("mpiImplementation", OF_OPEN_MPI.format(way))
    converted = {key: converted[key] for key in ("size", "tasks") if key in converted} | converted
    return {key: value for key, value in converted.items() if value != {}}


def _replicas(spec: Part) -> tuple[Part, Part]:
    """Return the specs of the workers and the launcher; of a job without workers both are the launcher's."""
    replicas = spec.make("mpiReplicaSpecs")
    for kind in replicas.fields:
        if kind not in ("Launcher", "Worker"):
            raise ConvertError(f"mpiReplicaSpecs.{kind} is not known: an MPIJob has a Launcher and Workers")
    if not isinstance(replicas.get("Launcher"), dict):
        raise ConvertError("mpiReplicaSpecs has no Launcher, whose command would be the work: give the whole document")
    if replicas.at("Launcher").fields.pop("replicas", 1) != 1:
        raise ConvertError("mpiReplicaSpecs.Launcher.replicas is not 1: an MPIJob has one launcher")
    for kind in replicas.fields:
        # a pod that fails is replaced by the Job
        replicas.at(kind).fields.pop("restartPolicy", None)
    has_workers = isinstance(replicas.get("Worker"), dict) and replicas.get("Worker.replicas") != 0
    return replicas.at("Worker" if has_workers else "Launcher"), replicas.at("Launcher")


def _size(spec: Part, workers: Part) -> int:
    """Return the number of pods that have tasks."""
    has_workers = workers.path.endswith("Worker")
    count = _number(workers, "replicas", 1) if has_workers else 0
    both = spec.fields.pop("runLauncherAsWorker", False)
    if not (count or both):
        raise ConvertError("mpiReplicaSpecs has no Worker, and runLauncherAsWorker is not set: no pod would run tasks")
    if count and both:
        spec.warn("runLauncherAsWorker", "is one node more here, whose pod is as those of the workers")
    return count + bool(both)


def _number(part: Part, key: str, default: int) -> int:
    value = part.fields.pop(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConvertError(f"{'.'.join(filter(None, [part.path, key]))} is {value!r}: must be a number, at least 1")
    return value


def refuse_rest(spec: Part) -> None:
    """Raise ConvertError for a field that nothing took."""
    for rest in _rest("", spec.fields):
        raise ConvertError(f"{rest} is not a field of an MPIJob that is known here: drop it")


def _rest(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _rest(f"{path}.{key}" if path else key, item)
    elif value is not None:
        yield path


def convert_policy(policy: Part, converted: Map) -> None:
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


def take_queue(labels: Map, converted: Map) -> None:
    """Take over the labels that Kueue reads."""
    keys = {KUEUE_QUEUE: "queueName", KUEUE_PRIORITY: "priorityClass"}
    kueue = {name: labels[key] for key, name in keys.items() if labels.get(key)}
    if kueue:
        converted["kueue"] = kueue
