"""The fields of containers: those that flux-operator ignored, gave a default, or used in another way."""

import re

from minicluster.console.messages import counted
from minicluster.convert import shell_text
from minicluster.convert.part import Part, every_container, runners, sidecars
from minicluster.errors import SpecError
from minicluster.render import resources
from minicluster.render.load import ALIASES

IMAGE = "ghcr.io/rse-ops/accounting:app-latest"
ONE_USER = "everything runs as the pod's user: set pod.securityContext"
ENTRYPOINT = "noWrapEntrypoint is set, so the image's entrypoint runs"
#: Fields that flux-operator ignored in a sidecar, and why
NOT_IN_SIDECARS = {
    **dict.fromkeys(("batch", "batchRaw", "launcher", "logs"), "it is for the container that runs Flux"),
    **dict.fromkeys(
        ("commands.pre", "commands.brokerPre", "commands.workerPre", "commands.prefix"),
        "flux-operator ran it only in the container that runs Flux",
    ),
}
#: Fields that flux-operator ignored in a service, and why
NOT_IN_SERVICES = {
    "command": "flux-operator ran the image's entrypoint in services",
    **dict.fromkeys(
        ("commands.init", "commands.servicePre", "commands.post", "commands.script", "commands.prefix"),
        "flux-operator did not run it in services",
    ),
    **dict.fromkeys(
        ("runFlux", "batch", "batchRaw", "launcher", "logs", "noWrapEntrypoint"),
        "it is for the containers of the brokers' pods",
    ),
}
#: Fields that flux-operator ignored in the container that runs Flux, and why
NOT_IN_RUNNERS = {
    "name": "flux-operator gave this container the cluster's name",
    "noWrapEntrypoint": "Flux is this container's entrypoint",
    "commands.servicePre": "flux-operator ran it in the other containers only",
}


def drop_users(spec: Part) -> None:
    """Drop the users of containers."""
    for container in every_container(spec):
        for path in ("fluxUser", "fluxuser", "commands.runFluxAsRoot"):
            container.drop(path, ONE_USER)


def rename_snippets(spec: Part) -> None:
    """Rename snippets that flux-operator's documentation calls by other names than its API."""
    for container in every_container(spec):
        commands = container.at("commands")
        for alias, name in ALIASES.items():
            commands.rename(alias, name)


def move_capabilities(spec: Part) -> None:
    """Move addCapabilities, a field of v1alpha1 only: the API server drops it from v1alpha2."""
    for container in [*every_container(spec), spec.at("flux.container")]:
        if add_capabilities(container):
            container.warn(
                "securityContext.addCapabilities",
                "are capabilities.add here: v1alpha2 has no such field, so flux-operator's pods went without",
            )


def add_capabilities(container: Part) -> bool:
    """Move addCapabilities to where Kubernetes has them, and return whether there were any."""
    security = container.at("securityContext")
    if "addCapabilities" not in security.fields:
        return False
    added = security.fields.pop("addCapabilities")
    capabilities = security.make("capabilities")
    known = capabilities.get("add") or []
    capabilities.fields["add"] = [*known, *added] if isinstance(known, list) and isinstance(added, list) else added
    return True


def drop_zeros(spec: Part) -> None:
    """Drop cores that are 0, which flux-operator takes for unset."""
    for container in spec.items("containers"):
        container.drop_zero("cores")


def write_images(spec: Part) -> None:
    """Write out the image where there is none."""
    for container in every_container(spec):
        if not container.get("image"):
            container.fields["image"] = IMAGE
            container.note("image", "flux-operator's default, the chart's is ubuntu:noble")


def convert_runners(spec: Part) -> None:
    """Deal with what flux-operator ignores in the container that runs Flux."""
    for runner in runners(spec):
        for path, why in NOT_IN_RUNNERS.items():
            runner.drop(path, why)
        has_work = bool(runner.get("command") or runner.get("commands.script"))
        if has_work and spec.get("interactive") and not runner.get("diagnostics"):
            idle = "interactive is true, so flux-operator did not run it; to run it, drop interactive instead"
            runner.drop("command", idle)
            runner.drop("commands.script", idle)
            has_work = False
        for key in ("batch", "launcher") if not has_work and not runner.get("diagnostics") else ():
            runner.drop(key, "there is no command to run")
        if not runner.get("batch"):
            runner.drop("batchRaw", "batch is not set")
        shell_text.warn_of_expansion(runner, "commands.prefix", runner.get("commands.prefix"))
        _write_debug_flag(spec, runner, has_work)
        _convert_cores(spec, runner, has_work)


def _write_debug_flag(spec: Part, runner: Part, has_work: bool) -> None:
    """Write out the flag of logging.debug that the chart does not give: flux-operator gave `-vvv --quiet`."""
    if not spec.get("logging.debug") or not has_work or runner.get("launcher") or runner.get("diagnostics"):
        return
    flag = "-vvv" if runner.get("batch") else "--quiet"
    flags = spec.get("flux.optionFlags") or ""
    if isinstance(flags, str) and flag not in flags.split():
        spec.make("flux").fields["optionFlags"] = f"{flags} {flag}".strip()
        spec.note("flux.optionFlags", f"flux-operator adds {flag} with logging.debug")


def _convert_cores(spec: Part, runner: Part, has_work: bool) -> None:
    """Write out cores where R had too few for the work: flux-operator's R had all cores of the Kubernetes node."""
    tasks, size = spec.fields.get("tasks", 1), spec.fields.get("size", 1)
    try:
        cores = resources.cores(runner.fields)
    except (SpecError, AttributeError, TypeError, ValueError):
        return
    if not cores or runner.get("cores") or not isinstance(tasks, int) or not isinstance(size, int) or size < 1:
        return
    own = f"give a node {counted(cores, 'core')} here"
    theirs = "flux-operator counted all cores of the Kubernetes node"
    # jobs that a person, a script or a batch submits may need more
    is_one_job = has_work and not runner.get("launcher") and not runner.get("batch")
    needed = _needed_cores(spec, tasks, size)
    if has_work and not runner.get("launcher") and needed > cores:
        runner.fields["cores"] = needed
        runner.warn(
            "resources", f"{own}, too few for the work: {runner.path}.cores is {needed} now; {theirs}, set as many"
        )
    elif not is_one_job or spec.get("flux.optionFlags"):
        runner.warn("resources", f"{own}: {theirs}; set {runner.path}.cores")


def _needed_cores(spec: Part, tasks: int, size: int) -> int:
    """Return how many cores of a node the work asks for, 0 when its flags don't tell."""
    asked = resources.shape(["-N", str(size), "-n", str(tasks), *spec.text("flux.optionFlags").split()])
    return asked.cores_of_a_node if asked else 0


def convert_work(spec: Part) -> None:
    """Give the runner the command or script that flux-operator's shell made of its text."""
    for runner in runners(spec):
        if runner.text("commands.script"):
            runner.at("commands").fields["script"] = shell_text.script(runner, "commands.script")
        if runner.text("command") and runner.get("batch"):
            runner.fields["command"] = shell_text.batch(runner)
        elif runner.text("command"):
            runner.fields["command"] = shell_text.command(runner)


def convert_sidecars(spec: Part) -> None:
    """Deal with what flux-operator ignores in sidecars."""
    for sidecar in sidecars(spec):
        for path, why in NOT_IN_SIDECARS.items():
            sidecar.drop(path, why)
        _convert_sidecar_command(sidecar)
        name = sidecar.text("name")
        if sidecar.get("ports") and name:
            sidecar.warn("ports", f"are ports of the Service CLUSTER-{name} here: flux-operator calls it {name}")


def _convert_sidecar_command(sidecar: Part) -> None:
    commands = sidecar.at("commands")
    if sidecar.get("noWrapEntrypoint"):
        sidecar.drop("command", ENTRYPOINT)
        for key in list(commands.fields):
            commands.drop(key, ENTRYPOINT)
    elif commands.get("script") and "custom-entrypoint.sh" in sidecar.text("command"):
        sidecar.drop("command", "the container runs commands.script")
        commands.fields["script"] = shell_text.heredoc(sidecar, "commands.script", "EOF")
    else:
        commands.drop("script", "flux-operator wrote it to a file and did not run it")
        if not sidecar.get("command") and any(commands.fields.values()):
            sidecar.fields["command"] = "true"
            sidecar.warn("command", "is `true` now: flux-operator ran only the snippets")
        elif not sidecar.get("command"):
            sidecar.warn("", "has no command: its image's entrypoint runs here, flux-operator ran nothing in it")


def convert_services(spec: Part) -> None:
    """Drop what flux-operator ignores in services, where it runs only the image's entrypoint."""
    services = spec.items("services")
    for service in services:
        for path, why in NOT_IN_SERVICES.items():
            service.drop(path, why)
    secrets = [container.text("imagePullSecret") for container in spec.items("containers")]
    if services and any(secrets):
        spec.make("pod").fields["imagePullSecrets"] = list(dict.fromkeys(filter(None, secrets)))
        spec.note("pod.imagePullSecrets", "flux-operator pulls the services with the containers' secrets")


def expand_environment(spec: Part) -> None:
    """Turn `$$` into `$`, as Kubernetes does, and warn of `$(NAME)`, which is not expanded here."""
    for container in every_container(spec):
        environment = container.at("environment")
        for key, value in environment.fields.items():
            if not isinstance(value, str):
                continue
            if re.search(r"(?<!\$)(?:\$\$)*\$\([-._a-zA-Z0-9]+\)", value):
                environment.warn(key, "has $(…): Kubernetes expanded it, here it is taken literally")
            environment.fields[key] = value.replace("$$", "$")
