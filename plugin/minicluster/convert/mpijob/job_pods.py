"""The pods of an MPIJob's workers as values; what the chart has no field for goes into `pod.template`."""

import json
import re
from typing import Any

from minicluster.convert.mpijob import run_time
from minicluster.convert.mpijob.workers import Template
from minicluster.convert.part import Map, Part
from minicluster.errors import ConvertError

#: Fields of a pod that are fields of `pod` here
SAME_IN_PODS = (
    *("nodeSelector", "tolerations", "schedulerName", "serviceAccountName", "automountServiceAccountToken"),
    *("runtimeClassName", "dnsPolicy", "hostIPC", "hostPID", "hostNetwork", "securityContext", "priorityClassName"),
    *("topologySpreadConstraints", "terminationGracePeriodSeconds"),
)
#: Labels that mpi-operator gives its pods begin with this
OF_KUBEFLOW = "training.kubeflow.org/"
#: Values by which a launcher has no GPU
HIDES_GPUS = ("", "none", "void", "-1")


def values(workers: Part, launcher: Part, name: str) -> tuple[Map, list[str]]:
    """Return the values of the workers' pods, and the launcher's words.

    The runner has the variables and volumes of the launcher's container too.

    Raises ConvertError for a field that can't be carried over.
    """
    template, first = workers.make("template"), launcher.make("template")
    spec, lead = template.make("spec"), first.make("spec")
    containers, leads = spec.items("containers"), lead.items("containers")
    if not containers or not leads:
        empty = (lead if containers else spec).path
        raise ConvertError(f"{empty}.containers is empty: give the whole document")
    is_same = workers.path == launcher.path
    command = _words(leads[0])
    if not is_same:
        _add_launcher(spec, lead)
    pod_values = _pod(template, spec, name)
    merged = Template(spec)
    pod_values["containers"] = [
        merged.container(container, is_runner=not place, keeps_command=is_same)
        for place, container in enumerate(containers)
    ]
    if len(containers) > 1:
        pod_values["containers"][0]["runFlux"] = True
    extra = merged.rest()
    if extra:
        pod_values["pod"]["template"] = {"spec": extra}
    for one in (workers, launcher):
        one.fields.pop("template", None)
    return pod_values, command


def _pod(template: Part, spec: Part, name: str) -> Map:
    """Return the fields of the pod that the chart has."""
    uses_labels = OF_KUBEFLOW in json.dumps(spec.fields, default=str)
    pod = {key: value for key in SAME_IN_PODS if (value := spec.fields.pop(key, None)) not in (None, "", [], {})}
    for key in ("labels", "annotations"):
        if template.get(f"metadata.{key}"):
            pod[key] = template.get(f"metadata.{key}")
    if uses_labels:
        own = {f"{OF_KUBEFLOW}job-name": name, f"{OF_KUBEFLOW}job-role": "worker"}
        pod["labels"] = own | pod.get("labels", {})
    secrets = [one.text("name") for one in spec.items("imagePullSecrets")]
    if secrets:
        pod["imagePullSecrets"] = secrets
    for key in ("imagePullSecrets", "restartPolicy"):
        spec.fields.pop(key, None)
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            raise ConvertError(f"{spec.path}.{key} is set: the pods' names are the Job's; drop it")
    share = spec.fields.pop("shareProcessNamespace", None)
    return {"containers": [], "pod": pod} | ({"shareProcessNamespace": True} if share else {})


def _add_launcher(spec: Part, lead: Part) -> None:
    """Add what the launcher's container has and the workers' lacks: variables and volumes, which the work may need."""
    _refuse_containers(spec, lead)
    one, other = spec.items("containers")[0], lead.items("containers")[0]
    _drop_own(other)
    _add(one, other, "env", "name")
    _add(one, other, "envFrom", "")
    added = _add(one, other, "volumeMounts", "mountPath")
    names = {mount.get("name") for mount in added}
    both = {own.get("name"): own.fields for own in spec.items("volumes")}
    for volume in lead.items("volumes"):
        name = volume.get("name")
        if name in names and both.get(name, volume.fields) != volume.fields:
            raise ConvertError(f"{lead.path}.volumes has another {name} than the workers: rename one of them")
        if name in names and name not in both:
            spec.fields.setdefault("volumes", []).append(volume.fields)
    if other.get("workingDir"):
        one.fields["workingDir"] = other.get("workingDir")
    if other.get("image") != one.get("image"):
        other.warn("image", f"is dropped: the work runs in the workers' image, {one.get('image')}")
    ignored = {"containers", "initContainers", "volumes", "restartPolicy"}
    differ = [key for key, value in lead.fields.items() if key not in ignored and spec.get(key) != value]
    if differ:
        lead.warn(
            "", f"has {', '.join(differ)}, dropped: there is no launcher's pod, the work starts on the first node"
        )


def _refuse_containers(spec: Part, lead: Part) -> None:
    """Raise ConvertError for a container of the launcher's pod that the workers' pods lack."""
    others = {"initContainers": lead.items("initContainers"), "containers": lead.items("containers")[1:]}
    for key, names in others.items():
        known = [one.fields for one in spec.items(key)]
        gone = next((one for one in names if one.fields not in known), None)
        if gone:
            raise ConvertError(
                f"{lead.path}.{key} has {gone.get('name')}, and there is no launcher's pod: drop it if it waits for "
                "the workers, since the work starts when all nodes are up, or add it to "
                f"{spec.path}.{key}: each pod runs it"
            )


def _drop_own(launcher: Part) -> None:
    """Drop variables that are for mpirun itself, or hide GPUs: tasks run where the launcher does."""
    for item in launcher.items("env"):
        name = item.text("name")
        hides = name in run_time.OF_GPUS and not item.get("valueFrom") and item.text("value") in HIDES_GPUS
        if name in run_time.OF_OPERATOR or hides:
            launcher.note(f"env.{name}", "is dropped: it is for a launcher without tasks")
            launcher.fields["env"].remove(item.fields)


def _add(one: Part, other: Part, key: str, name: str) -> list[Part]:
    """Add the items of the launcher's list that the workers' lacks, and return them. Its variables come first."""
    known = {item.get(name): item.fields for item in one.items(key)} if name else {}
    added = []
    for item in other.items(key):
        mine = known.get(item.get(name)) if name else None
        if mine is None and item.fields not in [old.fields for old in one.items(key)]:
            one.fields.setdefault(key, []).append(item.fields)
            added.append(item)
        elif mine is not None and mine != item.fields and key == "env":
            one.warn("env", f"has another {item.get(name)} than the launcher, whose value tasks get")
            mine.clear()
            mine.update(item.fields)
        elif mine is not None and mine != item.fields:
            one.warn(key, f"has another {item.get(name)} than the launcher, which is dropped")
    return added


def _words(container: Part) -> list[str]:
    """Return the launcher's words as Kubernetes makes them. Raises ConvertError where the image has the program."""
    words = [*(container.get("command") or []), *(container.get("args") or [])]
    if not words or str(words[0]).startswith("-"):
        raise ConvertError(f"{container.path} has no command, so the work is not known: give the image's own command")
    variables = {item.get("name"): item for item in container.items("env")}
    return [expand(str(word), variables, container.path) for word in words]


def expand(text: str, variables: dict[Any, Part], path: str) -> str:
    """Return a text with `$(NAME)` expanded, as Kubernetes does. Raises ConvertError for a value that is not known."""

    def one(match: re.Match[str]) -> str:
        known = variables.get(match[1])
        if match[0] == "$$":
            return "$"
        if known is None:
            return match[0]
        if known.get("valueFrom") or "$(" in known.text("value"):
            raise ConvertError(f"{path} has {match[0]}, whose value is not in the document: write it out")
        return known.text("value")

    return re.sub(r"\$\$|\$\(([-._a-zA-Z0-9]+)\)", one, text)
