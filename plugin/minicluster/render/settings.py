"""The settings of the programs in the pods: quoted assignments for the shell, JSON for the agent."""

import shlex
from typing import Any

from minicluster.kube.names import to_number
from minicluster.render import broker, devices, model, resources, work
from minicluster.render.model import MiniClusterModel, NodeGroup
from minicluster.render.mounts import has_own_shared_memory
from minicluster.render.resources import registered

#: The time limit of commands.nodeCheck where the values set none
CHECK_SECONDS = 60


def shell(cluster: MiniClusterModel) -> str:
    """Return settings.sh: assignments whose values are quoted; the value of ``mc_*_words`` is itself a quoted list."""
    runner, container = cluster.runner, cluster.flux["container"]
    # an upgrade reads those of a live settings.sh, which any older version may have written: their names stay
    values: dict[str, object] = {
        "mc_name": cluster.name,
        "mc_namespace": cluster.namespace,
        "mc_size": cluster.size,
        "mc_max_size": cluster.max_size,
        "mc_view": "" if container["disable"] else "/opt/views/view",
        "mc_python_path": container["pythonPath"],
        "mc_simple": _flag(cluster.flux["scheduler"]["simple"]),
        "mc_needs_fluxion": _needs_fluxion(cluster),
        "mc_affinity": cluster.flux["affinity"],
        "mc_cpus": resources.whole_cpus(runner) or "",
        "mc_gpu_variable": devices.task_variable(cluster),
        "mc_groups": "".join(_group(group) for group in cluster.groups),
        "mc_queues": " ".join(cluster.flux["queues"]),
        "mc_end_after": cluster.spec["endAfterSeconds"] or "",
        "mc_notify": " ".join(cluster.spec["notify"]["events"]),
        "mc_notify_format": cluster.spec["notify"]["format"],
        "mc_joins": _joined_lead(cluster),
        "mc_hosts_count": registered(cluster),
        "mc_port_hex": f"{broker.port(cluster):04X}",  # as /proc/net/tcp has it
        "mc_own_config": _flag(cluster.flux["brokerConfig"]),
        "mc_records": "" if cluster.flux["brokerConfig"] or cluster.flux["keptJobs"] else broker.KEPT_JOBS,
        **_of_guard(cluster),
        "mc_resource_set": resources.resource_set(cluster),
        "mc_archive": cluster.spec["archive"]["path"],
        "mc_report_path": cluster.spec["report"]["path"],
        "mc_report_log": _flag(cluster.spec["report"]["log"]),
        "mc_state_volume": _flag(cluster.state_claim),
        "mc_check_seconds": runner.get("commands", {}).get("nodeCheckSeconds", CHECK_SECONDS),
        **dict(zip(("mc_leave_seconds", "mc_kill_seconds", "mc_end_seconds"), model.grace(cluster), strict=True)),
        "mc_preemption": _preemption(cluster),
        "mc_on_stop": cluster.spec["pod"]["onStop"],
        "mc_work": work.kind(cluster),
        "mc_wrap": cluster.flux["wrap"].split(",")[0],
        "mc_start_words": shlex.join(broker.start(cluster)),
        "mc_submit_words": shlex.join(work.submit(cluster)),
        "mc_batch_words": shlex.join(work.batch(cluster)),
        "mc_prefix_words": shlex.join(work.prefix(cluster)),
        "mc_script_has_interpreter": _flag(work.script(cluster).startswith("#!")),
        "mc_logs": runner.get("logs", ""),
        **_logging(cluster),
        "mc_no_wait_socket": _flag(cluster.flux["noWaitSocket"] or cluster.flux["disableSocket"]),
        "mc_complete_workers": _flag(cluster.flux["completeWorkers"]),
    }
    lines = [f"{key}={shlex.quote(str(value))}" for key, value in values.items()]
    return "\n".join(["# shellcheck shell=sh disable=SC2034", *lines, *_environment(cluster)]) + "\n"


def _logging(cluster: MiniClusterModel) -> dict[str, str]:
    logging = cluster.spec["logging"]
    return {
        "mc_quiet": _flag(logging["quiet"]),
        "mc_log_file": _flag(model.has_log_file(cluster)),
        "mc_strict": _flag(logging["strict"]),
        "mc_timed": _flag(logging["timed"]),
    }


def _group(group: NodeGroup) -> str:
    """Return a line with the name of a group, the CPUs that its runner requests, and the variable of its GPUs."""
    cpus = resources.whole_cpus(group.cluster.runner) or "-"
    return f"{group.name} {cpus} {devices.task_variable(group.cluster)}\n"


def _of_guard(cluster: MiniClusterModel) -> dict[str, object]:
    """Return what the guard of a node is started with."""
    idle, reserve = cluster.flux["idleJobs"], cluster.flux["memoryReserve"]
    return {
        "mc_own_shm": _flag(has_own_shared_memory(cluster)),
        "mc_reserve": int(to_number(reserve)) if reserve else "",
        "mc_idle": f"{idle['below']} {idle['for']} {idle['action']}" if idle["for"] else "",
    }


def _preemption(cluster: MiniClusterModel) -> str:
    """Return the seconds of `flux.preemption`, and those that jobs have before a pod's end; "" without it."""
    rules = cluster.flux["preemption"]
    if not rules["afterSeconds"]:
        return ""
    return f"{rules['afterSeconds']} {rules['minimumRunSeconds']} {model.grace(cluster)[0]}"


def _flag(value: object) -> str:
    return "1" if value else ""


def _needs_fluxion(cluster: MiniClusterModel) -> str:
    """Return the first value that needs Fluxion, as `name value`; "" for none."""
    scheduler = cluster.flux["scheduler"]
    asked = [f"flux.scheduler.{key} {scheduler[key]}" for key in ("queuePolicy", "matchPolicy") if scheduler[key]]
    return asked[0] if asked and not scheduler["simple"] else ""


def _joined_lead(cluster: MiniClusterModel) -> str:
    """Return the lead that a burst joins, as messages name it; "" for a root."""
    if not cluster.joins:
        return ""
    return f"{cluster.flux['bursting']['leadBroker']['name']} at {broker.lead_address(cluster)}"


def _environment(cluster: MiniClusterModel) -> list[str]:
    """Return lines that export flux.environment only once, so that it doesn't override what a snippet or job sets."""
    exports = [f"  export {key}={shlex.quote(value)}" for key, value in sorted(cluster.flux["environment"].items())]
    return ['if [ -z "${MINICLUSTER_ENVIRONMENT:-}" ]; then', *exports, "  export MINICLUSTER_ENVIRONMENT=set", "fi"]


#: The keys of the agent's policy, and the values in `autoscaling` that they have.
POLICY = {
    "min": "min",
    "max": "max",
    "backlog": "backlogSeconds",
    "idle": "idleSeconds",
    "suspend": "suspendAfterSeconds",
    "give_up": "giveUpSeconds",
    "step_up": "maxStepUp",
    "step_down": "maxStepDown",
    "cpu_target": "targetCPUUtilizationPercentage",
    "handle": "handle",
}


def agent(cluster: MiniClusterModel) -> dict[str, Any]:
    """Return the agent's settings: its Jobs and its policy; without a policy it leaves the sizes alone.

    Without a ``budget`` it holds no pods.
    """
    metrics, scaling = cluster.spec["metrics"], cluster.autoscaling
    # the lead's pod has what the next lead lacks, even while there is no job
    needs_lead = not cluster.keeps_state or bool(cluster.runner.get("launcher"))
    return {
        "name": cluster.name,
        "namespace": cluster.namespace,
        "size": cluster.size,
        "max_size": cluster.max_size,
        "groups": [
            {"name": g.name, "size": g.size, "max_size": g.max_size, "policy": g.autoscaling or None}
            for g in cluster.groups
        ],
        "period": cluster.spec["agent"]["periodSeconds"],
        "policy": {key: scaling[value] for key, value in POLICY.items()} if scaling else None,
        # what the agent of this version knows: a newer chart's upgrade reads it
        "policy_keys": list(POLICY),
        "budget": {"always_lead": needs_lead} if cluster.spec["pod"]["disruptionBudget"] else None,
        "port": metrics["port"] if metrics["enabled"] else None,
        "container": cluster.runner_name,
        "cpu_request": float(resources.requested_cpus(cluster.runner)),
    }
