"""The older API: a v1alpha1 spec becomes one of v1alpha2. Flux was in the image then, its Service had a fixed name."""

import re

from minicluster.convert.containers import add_capabilities
from minicluster.convert.fields import write_connect_timeout
from minicluster.convert.part import Part, every_container, runners, sidecars
from minicluster.errors import ConvertError

#: Fields of a container that became fields of `flux`
MOVED = {"fluxOptionFlags": "optionFlags", "fluxLogLevel": "logLevel"}
#: Snippets that a sidecar ran before its command, in this order
SIDECAR_SNIPPETS = ("brokerPre", "workerPre", "pre")
#: Size of a claim whose size is not given
CAPACITY = "5Gi"
#: Fields of a volume that the operator wrote into a PersistentVolume
OF_THE_CLASS = ("driver", "attributes", "secret", "secretNamespace", "annotations")


def convert_spec(spec: Part) -> None:
    """Turn a spec into one of v1alpha2, except its volumes."""
    if not spec.text("network.headlessName"):
        spec.make("network").fields["headlessName"] = "flux-service"
        spec.note("network.headlessName", "v1alpha1's default, the chart's is the cluster's name")
    if "logging" in spec.fields and "strict" not in spec.at("logging").fields:
        spec.make("logging").fields["strict"] = True
    write_connect_timeout(spec)
    spec.make("flux").make("container").fields["disable"] = True
    spec.note("flux.container.disable", "with v1alpha1 Flux comes in the application's image")
    for container in every_container(spec):
        _convert_container(spec, container)
    for sidecar in sidecars(spec):
        _convert_sidecar(sidecar)
    for runner in runners(spec):
        _convert_work(spec, runner)


def _convert_container(spec: Part, container: Part) -> None:
    for old, new in MOVED.items():
        if spec.get(f"flux.{new}") not in (None, container.get(old)):
            container.drop(old, f"flux.{new} has another value")
        elif old in container.fields:
            spec.make("flux").fields[new] = container.fields.pop(old)
            container.warn(old, f"is flux.{new} here")
    if "preCommand" in container.fields:
        commands = container.make("commands")
        texts = (container.text("preCommand"), commands.text("pre"))
        commands.fields["pre"] = "\n".join(filter(None, texts))
        del container.fields["preCommand"]
        container.warn("preCommand", "is commands.pre here")
    add_capabilities(container)


def _convert_sidecar(sidecar: Part) -> None:
    commands = sidecar.at("commands")
    if not any(commands.fields.values()):
        sidecar.drop("command", "v1alpha1 ran the image's entrypoint unless commands were set")
        sidecar.fields["noWrapEntrypoint"] = True
        return
    texts = [commands.text(key) for key in SIDECAR_SNIPPETS]
    if any(texts):
        for key in SIDECAR_SNIPPETS:
            commands.fields.pop(key, None)
        commands.fields["servicePre"] = "\n".join(filter(None, texts))
        sidecar.warn("commands", "have pre, brokerPre and workerPre joined as servicePre")


def _convert_work(spec: Part, runner: Part) -> None:
    command = runner.text("command")
    if command and not re.search("[\"']", command) and not runner.get("batch"):
        # v1alpha1 passed it as an argument, in which nothing is expanded
        runner.fields["command"] = re.sub(r"([$`\\])", r"\\\1", command)
    if not (command or spec.get("interactive") or runner.get("diagnostics")):
        runner.warn("", "has no command: v1alpha1 then ran its RESTful server, here the cluster idles")


def convert_volumes(spec: Part) -> None:
    """Take over volumes as v1alpha1 had them, also from a document that says it is of v1alpha2.

    Raises ConvertError for storage that exists outside of Kubernetes.
    """
    defined = spec.members("volumes")
    names = spec.at("volumes").fields
    for container in every_container(spec):
        for name, volume in container.members("volumes").items():
            if name in names:
                _convert_volume(volume, defined.get(name, Part("", {}, spec.report)))
        existing = container.at("existingVolumes").fields
        if existing:
            both = existing.keys() & container.at("volumes").fields.keys()
            if both:
                raise ConvertError(f"{container.path} has {min(both)} in volumes and in existingVolumes: rename one")
            del container.fields["existingVolumes"]
            container.make("volumes").fields.update(existing)
            container.warn("existingVolumes", "are volumes here")
    spec.fields.pop("volumes", None)


def _convert_volume(volume: Part, definition: Part) -> None:
    """Give a volume the host's folder of its definition, or a claim. Raises ConvertError for other storage."""
    if definition.fields.get("storageClass", "hostpath") == "hostpath":
        volume.fields["hostPath"] = definition.fields.get("path")
        volume.warn("", "is the host's folder itself: v1alpha1 made a claim and a volume")
        return
    for key in ("volumeHandle", "volumeName"):
        if definition.get(key):
            raise ConvertError(
                f"{definition.path}.{key} names storage that exists, {definition.get(key)}: make a PersistentVolume "
                f"and a claim for it, and give the claim's name as {volume.path}.claimName"
            )
    _make_claim(volume, definition)


def _make_claim(volume: Part, definition: Part) -> None:
    """Let the release make the claim. v1alpha1 also made the volume; here the storage class makes it."""
    claim = {
        "capacity": definition.get("capacity") or CAPACITY,
        "storageClass": definition.get("storageClass"),
        "accessModes": ["ReadWriteMany"],
        "labels": definition.get("labels"),
        "annotations": definition.get("claimAnnotations"),
        "keep": definition.get("delete") is False,
    }
    volume.fields.update({key: value for key, value in claim.items() if value})
    volume.warn("", "is a new volume here, which the storage class makes: v1alpha1 made it from the values")
    for key in OF_THE_CLASS:
        if definition.get(key):
            definition.warn(key, "is dropped: it belongs in the storage class")
