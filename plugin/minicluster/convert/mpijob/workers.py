"""The containers of an MPIJob's workers as values; what the chart has no field for is left for `pod.template`."""

import re

from minicluster.convert.part import Map, Part
from minicluster.errors import ConvertError
from minicluster.kube.names import INDEX

SAME_IN_CONTAINERS = ("name", "image", "imagePullPolicy", "resources", "securityContext", "workingDir")
SSH_PROBES = ("readinessProbe", "livenessProbe", "startupProbe")
#: Sources of volumes, and their fields in the chart
SOURCES = {
    "persistentVolumeClaim": {"claimName": "claimName"},
    "hostPath": {"path": "hostPath"},
    "secret": {"secretName": "secretName"},
    "configMap": {"name": "configMapName"},
    "image": {"reference": "image", "pullPolicy": "imagePullPolicy"},
    "emptyDir": {"medium": "emptyDirMedium", "sizeLimit": "emptyDirSizeLimit"},
}
#: Ports of SSH, as mpi-operator's images have it
SSH_PORTS = (22, 2222)
SSH_SERVER = re.compile(r"\bsshd\b|\bservice\s+ssh\b")
#: Label by which mpi-operator numbers its workers
REPLICA_INDEX = "training.kubeflow.org/replica-index"
SHELL_FREE = "there is no SSH here, and Flux's broker is what the container runs"


class Template:
    """Containers whose fields without a counterpart gather in `pod.template`."""

    def __init__(self, spec: Part) -> None:
        """Begin with the spec of a pod."""
        self._spec = spec
        # the volumes of its init containers
        self._used = {mount.get("name") for one in spec.items("initContainers") for mount in one.items("volumeMounts")}
        self._volumes = {volume.get("name"): volume.fields for volume in spec.items("volumes")}
        self._containers: list[Map] = []

    def container(self, container: Part, *, is_runner: bool, keeps_command: bool) -> Map:
        """Return a container as values."""
        fields = container.fields
        converted = {key: fields.pop(key) for key in SAME_IN_CONTAINERS if fields.get(key) not in (None, "", {})}
        if is_runner:
            _drop_server(container, keeps_command)
        else:
            converted |= _sidecar_command(container)
        environment, rest = _environment(container)
        converted |= environment
        volumes, mounts = self._take_volumes(container)
        converted |= {"volumes": volumes} if volumes else {}
        for key in ("env", "volumeMounts", "tty", "stdin", "stdinOnce"):
            fields.pop(key, None)
        fields |= {"env": rest} if rest else {}
        fields |= {"volumeMounts": mounts} if mounts else {}
        if fields:
            self._containers.append({"name": converted.get("name"), **fields})
        return converted

    def rest(self) -> Map:
        """Return the spec of `pod.template`: what no value of the chart has."""
        spec = self._spec.fields
        spec.pop("containers", None)
        mounted = {mount["name"] for one in self._containers for mount in one.get("volumeMounts", [])} | self._used
        volumes = [volume for name, volume in self._volumes.items() if name in mounted]
        spec.pop("volumes", None)
        parts = {"containers": self._containers, "volumes": volumes}
        return {key: value for key, value in (spec | parts).items() if value not in (None, [], {})}

    def _take_volumes(self, container: Part) -> tuple[Map, list[Map]]:
        mounts = [mount.fields for mount in container.items("volumeMounts")]
        names = [mount.get("name") for mount in mounts]
        volumes: Map = {}
        rest: list[Map] = []
        for mount in mounts:
            name = str(mount.get("name"))
            source = _source(self._volumes.get(name, {}))
            is_plain = not mount.keys() - {"name", "mountPath", "readOnly"} and names.count(name) == 1
            if source and is_plain and name not in self._used:
                read = {"readOnly": True} if mount.get("readOnly") else {}
                volumes[name] = {"path": mount.get("mountPath"), **source, **read}
            else:
                rest.append(mount)
        return volumes, rest


def _drop_server(container: Part, keeps_command: bool) -> None:
    """Drop what ran a server of SSH in a worker; report any other command."""
    words = " ".join(map(str, [*(container.get("command") or []), *(container.get("args") or [])]))
    for key in ("command", "args"):
        container.fields.pop(key, None)
    is_server = re.fullmatch(r"(?:\S*/)?sshd(?: -\S+| \S+)*", words)
    if words and not keeps_command and not is_server:
        first = ", commands.pre may do what comes before it" if SSH_SERVER.search(words) else ""
        container.warn("command", f"is dropped: {SHELL_FREE}{first}")
    for key in SSH_PROBES:
        container.drop(key, SHELL_FREE)
    ports = [port.fields for port in container.items("ports") if port.get("containerPort") not in SSH_PORTS]
    container.fields.pop("ports", None)
    container.fields.update({"ports": ports} if ports else {})


def _sidecar_command(container: Part) -> Map:
    command, words = container.fields.pop("command", None), container.fields.pop("args", None)
    if words and not command:
        raise ConvertError(f"{container.path} has args and no command, so its command is not known: give both")
    return {"command": [*command, *(words or [])]} if command else {"noWrapEntrypoint": True}


def _environment(container: Part) -> tuple[Map, list[Map]]:
    """Return variables as values, and those that only Kubernetes knows."""
    plain: Map = {}
    secrets: Map = {}
    rest: list[Map] = []
    for item in container.items("env"):
        key, value, source = item.get("name"), item.get("value"), item.get("valueFrom.secretKeyRef")
        is_secret = isinstance(source, dict) and source.keys() == {"name", "key"} and not value
        if is_secret:
            secrets[key] = dict(source)
        elif item.get("valueFrom") or "$(" in str(value):
            _take_field(container, item)
            rest.append(item.fields)
        else:
            if re.search(r"(?<!\$)\$[A-Za-z_{]", str(value or "")):
                container.warn(f"env.{key}", f"is {value}: nothing expands its $, neither here nor in an MPIJob")
            plain[key] = "" if value is None else str(value).replace("$$", "$")
    variables = {"environment": plain} if plain else {}
    return variables | ({"secrets": secrets} if secrets else {}), rest


def _take_field(container: Part, item: Part) -> None:
    """Take the index of a pod where Kubernetes has it; report what else a pod has otherwise here."""
    path = item.text("valueFrom.fieldRef.fieldPath")
    if path == f"metadata.labels['{REPLICA_INDEX}']":
        item.at("valueFrom.fieldRef").fields["fieldPath"] = f"metadata.labels['{INDEX}']"
        container.note(f"env.{item.text('name')}", "is the index that Kubernetes gives the pod")
    elif path == "metadata.name":
        container.warn(f"env.{item.text('name')}", "ends with random characters here: the hostname ends with the index")


def _source(volume: Map) -> Map:
    """Return the source of a volume in the chart's words; none if it has no words for it."""
    kinds = [key for key in volume if key != "name"]
    if len(kinds) != 1 or not isinstance(volume[kinds[0]], dict):
        return {}
    source = dict(volume[kinds[0]])
    if kinds[0] == "hostPath" and source.get("type") in ("", "Directory"):
        del source["type"]
    if kinds[0] == "emptyDir" and source.get("medium", "") in ("", "Memory"):
        source["medium"] = source.get("medium", "").lower()
    words = SOURCES.get(kinds[0], {})
    if source.keys() - words.keys() or (kinds[0] != "emptyDir" and not source):
        return {}
    given = {words[key]: value for key, value in source.items() if value}
    return {"emptyDir": True, **given} if kinds[0] == "emptyDir" else given
