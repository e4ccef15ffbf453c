"""Asks Kueue why it holds Jobs of a MiniCluster back, or keeps some of their pods gated."""

from collections.abc import Mapping
from dataclasses import replace

from minicluster.cluster import kueue
from minicluster.cluster.find import Found
from minicluster.cluster.groups import GroupNodes
from minicluster.cluster.job import KubernetesJob
from minicluster.cluster.pods import Pod
from minicluster.kubectl import CommandError, Kubernetes


def with_reasons_of_kueue(kubernetes: Kubernetes, found: Found) -> Found:
    """Return the same objects, with Kueue's reasons for its Jobs that are suspended and its pods that are gated."""
    job, pods, groups = found.job, found.pods, []
    if job:
        why, pods = _reasons(kubernetes, job, pods)
        job = replace(job, why_suspended=why or job.why_suspended)
    for group in found.groups:
        why, its = _reasons(kubernetes, group, group.pods)
        groups.append(replace(group, why_held=why, pods=its))
    return Found(found.name, pods, job, groups)


def _reasons(
    kubernetes: Kubernetes, job: KubernetesJob | GroupNodes, pods: Mapping[int, Pod]
) -> tuple[str, dict[int, Pod]]:
    """Return why Kueue holds a Job back, "" if it does not, and its pods: a gated one has the reason as its message."""
    is_held = bool(job.is_suspended and job.queue)
    if not (job.uid and (is_held or any(pod.is_gated for pod in pods.values()))):
        return "", dict(pods)
    why = _ask(kubernetes, job.uid)
    told = {index: replace(pod, message=why) if pod.is_gated else pod for index, pod in pods.items()}
    return f"Kueue's queue {job.queue}: {why}" if is_held else "", told


def _ask(kubernetes: Kubernetes, uid: str) -> str:
    try:
        return kueue.why_held(kubernetes.get(kueue.WORKLOADS, f"--selector={kueue.JOB}={uid}"))
    except CommandError as error:
        return f"why is unknown, {error.reason}"
