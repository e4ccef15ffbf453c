"""Refusals of fields of the Job that the chart writes itself, and of replacements that would lose the queue."""

from collections.abc import Iterator

from minicluster.render.constants import MULTIKUEUE, OWN_JOB_FIELDS
from minicluster.render.model import MiniClusterModel


def template(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield fields of `job.template` that the chart writes, each with the value that sets it."""
    part = cluster.spec["job"]["template"]
    if "metadata" in part:
        yield "job.template has metadata: set jobLabels and jobAnnotations"
    spec = part.get("spec")
    for field in spec if isinstance(spec, dict) else ():
        if field in OWN_JOB_FIELDS:
            value = OWN_JOB_FIELDS[field]
            yield f"job.template.spec has {field}, which the chart writes: {f'set {value}' if value else 'drop it'}"
    if isinstance(spec, dict) and spec.get("managedBy") == MULTIKUEUE:
        yield (
            f"job.template.spec.managedBy is {MULTIKUEUE}: it would copy the Job alone to another cluster, without its "
            "ConfigMaps, Secret and Service; install where the pods are to run, or burst there"
        )


def replacement(cluster: MiniClusterModel) -> Iterator[str]:
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
