"""The queues with names, `flux.queues`, as tables of broker.toml: flux-config-queues(5), flux-config-policy(5)."""

from collections.abc import Mapping
from typing import Any

from minicluster.render.model import MiniClusterModel


def tables(cluster: MiniClusterModel) -> dict[str, Any]:
    """Return the tables of the queues with names (flux-config-queues(5), flux-config-policy(5)), none without one."""
    asked: Mapping[str, Any] = cluster.flux["queues"]
    if not asked:
        return {}
    first = default_queue(asked)
    default = {"policy": {"jobspec": {"defaults": {"system": {"queue": first}}}}} if first else {}
    return {"queues": {name: _queue(queue) for name, queue in sorted(asked.items())}, **default}


def default_queue(asked: Mapping[str, Any]) -> str:
    """Return the queue of jobs that name none; "" if several are without one."""
    return next((name for name, queue in asked.items() if queue.get("default") or len(asked) == 1), "")


def _queue(queue: Mapping[str, Any]) -> dict[str, Any]:
    limits = queue.get("limits", {})
    sizes = {f"n{key}": limits[key] for key in ("nodes", "cores", "gpus") if key in limits}
    policy: dict[str, Any] = {"limits": {"job-size": {"max": sizes}}} if sizes else {}
    if duration := limits.get("duration"):
        policy.setdefault("limits", {})["duration"] = duration
        # Flux would refuse a job without a limit
        policy["jobspec"] = {"defaults": {"system": {"duration": duration}}}
    requires = {"requires": [queue["group"]]} if queue.get("group") else {}
    return {**requires, **({"policy": policy} if policy else {})}
