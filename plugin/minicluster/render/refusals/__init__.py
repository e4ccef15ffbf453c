"""Refusals that no schema can express: values that contradict each other, each in a sentence."""

from collections.abc import Iterator
from itertools import chain

from minicluster.render.model import MiniClusterModel
from minicluster.render.refusals import bursts, containers, flux, groups, kubernetes, pod, queues, sizes, volumes

#: Each yields the refusals of one kind.
CHECKS = (
    sizes.sizes,
    containers.others,
    containers.lead_only,
    containers.names,
    containers.hooks,
    containers.variables,
    containers.lengths,
    volumes.volumes,
    containers.work,
    flux.scheduler,
    flux.named,
    flux.submission,
    pod.exclusive,
    flux.view,
    flux.bursting,
    bursts.bursts,
    pod.fields,
    pod.on_stop,
    sizes.agent,
    sizes.autoscaling,
    sizes.scale_to_zero,
    sizes.end_after,
    sizes.notify,
    sizes.replicas,
    pod.kept_state,
    volumes.report,
    pod.job_template,
    pod.job_replacement,
    queues.job_metadata,
    queues.queue,
    queues.gang,
    queues.segments,
    flux.hidden_by_broker_config,
    flux.broker_config,
    containers.resources,
    containers.cores,
    kubernetes.quantities,
    containers.memory_reserve,
    pod.gpu_kinds,
    pod.pod_claims,
    pod.used_claims,
    sizes.impossible,
    kubernetes.fields,
    kubernetes.service_names,
    groups.groups,
    sizes.schedules,
)


def refusals(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield a sentence for each contradiction: the value, what is wrong, the way out."""
    # without one runner there is nothing to compare the other values with
    yield from list(containers.runners(cluster)) or chain.from_iterable(check(cluster) for check in CHECKS)
