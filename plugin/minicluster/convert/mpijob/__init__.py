"""An MPIJob of mpi-operator (kubeflow.org/v2beta1 at commit caa3c47f) as values of the chart.

The workers become the pods, and what the launcher's mpirun starts becomes the work: Flux starts its tasks, so nothing
needs SSH, a launcher's pod or a file of hosts. Each field is taken out of the document, and what is left is refused.
"""

from typing import Any

from minicluster.convert.mpijob import job_pods, launcher, pod_names, policy
from minicluster.convert.part import Map, Part, Report
from minicluster.errors import ConvertError

MPI_JOB = "MPIJob"
#: Which option Open MPI needs, since nothing tells its version
OF_OPEN_MPI = "is OpenMPI: Open MPI 5 needs {}, without it each task is a world of its own; Open MPI 4 needs nothing"


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
    policy.convert(spec.make("runPolicy"), converted)
    policy.queue(labels, converted)
    launcher.convert(first, words, converted, implementation, slots)
    pod_names.rename(converted, name, leads, report)
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
    rest = next(_rest("", spec.fields), None)
    if rest:
        raise ConvertError(f"{rest} is not a field of an MPIJob that is known here: drop it")


def _rest(path: str, value: Any) -> Any:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _rest(f"{path}.{key}" if path else key, item)
    elif value is not None:
        yield path
