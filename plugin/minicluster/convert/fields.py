"""The fields of a spec outside its containers: those that flux-operator ignored, gave a default, or used otherwise."""

import re

from minicluster.convert.part import MOUNT_PATH, Part, runners
from minicluster.convert.shell_text import heredoc, warn_of_expansion
from minicluster.render.work import only_submit

#: Fields that have no meaning without an operator, and why
UNSUPPORTED = {
    "users": "there are no accounts, one user runs everything",
    "fluxRestful": "no RESTful server is built in: docs/how-to/serve-an-http-api.md has one",
    "flux.installRoot": "Flux is found in PATH, or in the view",
}
#: Fields whose 0 means unset to flux-operator, each with a warning if 0 is a value here
ZEROS = {
    "maxSize": "",
    "minSize": "",
    "backoffLimit": "is 0, which flux-operator reads as 100: the values keep 100; for no retries, set 0 in them",
    "flux.logLevel": "is 0, which flux-operator reads as 6: the values have none; for no log, set 0",
    "flux.submitCommand": "",
}
#: Maps whose empty texts, lists and maps are unset to flux-operator
SPARSE = ("flux.container", "flux.bursting", "flux.scheduler")
#: Files of flux-operator's brokers, as its times had them, and where they are below `config` here
OPERATOR_PATHS = {
    r"view/etc/flux/system/R(?:-\d+)?\b": "etc/flux/system/R",
    r"config/etc/flux/system/R-\d+\b": "etc/flux/system/R",
    r"(?:view|config)/(?:etc/)?curve/curve\.cert": "curve/curve.cert",
    r"view/(?=var/lib/flux\b|run/flux\b)": "",
}
#: Fields that are kept, but have another effect here
DIFFERENT = {
    "cleanup": "removes the Job with its pods: the release stays until `helm uninstall`",
    "archive.path": "is also written here when the cluster ends: flux-operator only restored from it",
    "flux.mungeSecret": "is used here, so the image must have munged: flux-operator ignored it",
    "flux.wrap": "wraps the workers' brokers too: flux-operator wrapped only the lead's",
    "flux.container.pythonPath": "is for Flux's own commands only: jobs keep their image's PYTHONPATH",
}


def drop_unsupported(spec: Part) -> None:
    """Drop what has no meaning without an operator."""
    for path, why in UNSUPPORTED.items():
        spec.drop(path, why)


def move_lead_broker(spec: Part) -> None:
    """Move the lead of a burst from where flux-operator's documentation has it to where its API has it."""
    flux = spec.at("flux")
    if "leadBroker" in flux.fields and not flux.get("bursting.leadBroker"):
        flux.make("bursting").fields["leadBroker"] = flux.fields.pop("leadBroker")
        flux.warn("leadBroker", "is flux.bursting.leadBroker here")
    lead = flux.at("bursting.leadBroker")
    if "hostlist" in lead.fields and flux.get("bursting.hostlist") in (None, "", lead.fields["hostlist"]):
        flux.at("bursting").fields["hostlist"] = lead.fields.pop("hostlist")
        flux.warn("leadBroker.hostlist", "is flux.bursting.hostlist here")


def drop_zeros(spec: Part) -> None:
    """Drop zeros and empty values that flux-operator takes for unset."""
    for path, warning in ZEROS.items():
        if spec.drop_zero(path) and warning:
            spec.warn(path, warning)
    for path in SPARSE:
        fields = spec.at(path).fields
        for key in [key for key, value in fields.items() if value in ("", [], {})]:
            del fields[key]
    for burst in spec.at("flux.bursting").items("clusters"):
        for key in ("name", "size"):
            burst.drop_zero(key)


def write_defaults(spec: Part) -> None:
    """Write out flux-operator's defaults where the chart has others.

    A default of its API applies only if the object around the field is given: without `flux` there is no connect
    timeout.
    """
    if "strict" not in spec.at("logging").fields:
        spec.make("logging").fields["strict"] = False
        spec.note("logging.strict", "flux-operator's default is false, the chart's is true")
    write_connect_timeout(spec)


def write_connect_timeout(spec: Part) -> None:
    """Write out that there is no timeout when `flux` is not given."""
    if "flux" not in spec.fields:
        spec.fields["flux"] = {"connectTimeout": ""}
        spec.note("flux.connectTimeout", "without flux, flux-operator has none; the chart has 5s")


def warn_of_arch(spec: Part) -> None:
    """Warn where the chart picks another view image."""
    view = spec.at("flux.container")
    if spec.get("flux.arch") == "arm" and not view.get("image") and not view.get("disable"):
        spec.warn("flux.arch", "is arm: the chart uses the view image for arm; flux-operator did not change the image")


def convert_pod(spec: Part) -> None:
    """Deal with what flux-operator ignores or does otherwise in the pod."""
    pod = spec.at("pod")
    if pod.text("restartPolicy") not in ("", "Never"):
        pod.drop("restartPolicy", "a pod that fails is replaced by the Job, up to backoffLimit")
    if not pod.get("restartPolicy"):
        pod.fields.pop("restartPolicy", None)
    ignored = [key for key in pod.at("securityContext").fields if key != "fsGroup"]
    if ignored:
        pod.warn("securityContext", f"applies in full here: flux-operator ignored {', '.join(ignored)}")
    for key in ("labels", "annotations"):
        if pod.get(key) and spec.items("services"):
            pod.warn(key, "are only on the brokers' pods here: flux-operator put them on the services' pod too")
    if spec.get("network.disableAffinity") and pod.get("nodeAffinity"):
        pod.warn("nodeAffinity", "applies here: flux-operator ignored it when network.disableAffinity was set")


def warn_of_differences(spec: Part) -> None:
    """Warn of fields that are kept, but have another effect here."""
    for path, warning in DIFFERENT.items():
        if spec.get(path):
            spec.warn(path, warning)


def convert_flux(spec: Part) -> None:
    """Deal with what flux-operator ignores or does otherwise in `flux`."""
    flux = spec.at("flux")
    _convert_scheduler(spec, flux)
    if flux.text("brokerConfig"):
        flux.drop("scheduler.queuePolicy", "flux.brokerConfig is used as given")
        flux.fields["brokerConfig"] = _own_paths(spec, flux, heredoc(flux, "brokerConfig", "EOT"))
    for key in ("optionFlags", "submitCommand"):
        warn_of_expansion(flux, key, flux.text(key))
    if only_submit(flux.text("optionFlags")) and not flux.text("submitCommand"):
        flux.fields["submitCommand"] = "flux submit"
    environment = flux.at("environment")
    for key, text in environment.fields.items():
        warn_of_expansion(environment, key, text)
    lead = flux.at("bursting.leadBroker")
    if lead.fields and not lead.get("address"):
        flux.at("bursting").fields.pop("leadBroker")
    elif lead.fields:
        _drop_work(spec)


def _own_paths(spec: Part, flux: Part, text: str) -> str:
    """Return a broker.toml with this chart's paths in place of flux-operator's, and take over its Service's name."""
    mount = flux.text("container.mountPath") or MOUNT_PATH
    replaced = text
    for pattern, path in OPERATOR_PATHS.items():
        replaced = re.sub(rf"{re.escape(mount)}/{pattern}", f"{mount}/config/{path}", replaced)
    if replaced != text:
        flux.warn("brokerConfig", f"has paths below {mount}/config now: flux-operator's files were below {mount}/view")
    if ".flux-service." in text and not spec.get("network.headlessName"):
        spec.make("network").fields["headlessName"] = "flux-service"
        spec.warn("network.headlessName", "is flux-service now: flux.brokerConfig uses this name")
    return replaced


def _drop_work(spec: Part) -> None:
    """Drop the lead's work: a cluster that joins another has no lead."""
    why = "all pods of a cluster that joins another are workers"
    spec.drop("interactive", why)
    for runner in runners(spec):
        for path in ("command", "commands.script", "batch", "batchRaw", "launcher"):
            runner.drop(path, why)


def _has_a_queue(spec: Part) -> bool:
    """Whether people or programs submit jobs, so that their order counts; else the cluster runs one job."""
    work = [one for one in runners(spec) if one.get("command") or one.get("commands.script")]
    return bool(spec.get("interactive")) or not work or any(one.get("launcher") for one in work)


def _convert_scheduler(spec: Part, flux: Part) -> None:
    policy, is_simple = flux.get("scheduler.queuePolicy"), flux.get("scheduler.simple")
    if policy == "fcfs" and not is_simple:
        why = "Fluxion's fcfs fails a job whose nodes are not up yet; the default is conservative"
        flux.drop("scheduler.queuePolicy", why)
    if is_simple and policy not in (None, "fcfs"):
        flux.drop("scheduler.queuePolicy", "it is for Fluxion, and flux.scheduler.simple is set")
    is_elsewhere = flux.get("brokerConfig") or flux.get("bursting.leadBroker.address")
    if not (policy or is_simple or is_elsewhere) and _has_a_queue(spec):
        why = "flux-operator's default is fcfs, the chart's is conservative, by which a later job fills a gap"
        spec.note("flux.scheduler.queuePolicy", why)
