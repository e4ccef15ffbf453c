"""The ConfigMap and the Secret of a cluster.

The ConfigMap has the static programs of ``pod/`` as it is, the settings as quoted assignments, and each
text of the user in a file of its own: nothing of theirs is pasted into a line that a shell reads.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from minicluster.errors import SpecError
from minicluster.render import broker, curve, upgrade
from minicluster.render.hostlist import count, registered, table
from minicluster.render.spec import MiniCluster

#: File of a ConfigMap by the key of ``commands`` that it holds.
SNIPPETS = {
    "init": "init.sh",
    "pre": "pre.sh",
    "brokerPre": "broker-pre.sh",
    "workerPre": "worker-pre.sh",
    "post": "post.sh",
}
#: The programs that run in the pods.
SCRIPTS = Path(__file__).parent.parent / "pod"
GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
BATCH = ("flux", "batch")
#: What a ConfigMap may hold (Kubernetes' limit on all its data).
MAX_DATA = 1_048_576


def documents(cluster: MiniCluster, keypair: curve.Keypair) -> Iterator[dict[str, Any]]:
    """Yield the ConfigMap, and the Secret unless the certificate is in one of the user's.

    Raises SpecError or CurveError for what can't be rendered.
    """
    certificate = curve.certificate(cluster, keypair)
    data = _data(cluster)
    if cluster.live:
        sidecars = {sidecar["name"] for sidecar in cluster.sidecars}
        data = upgrade.files(cluster.live.files, data, sidecars, _verbs(cluster))
    size = sum(len(key) + len(text.encode()) for key, text in data.items())
    if size > MAX_DATA:
        raise SpecError(
            f"MiniCluster {cluster.name}: its texts are {size} bytes, a ConfigMap holds {MAX_DATA}: mount them"
        )
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(cluster, "config"), "data": data}
    if certificate is not None:
        yield {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": _metadata(cluster, "curve"),
            "type": "Opaque",
            "stringData": {"curve.cert": certificate},
        }


def _metadata(cluster: MiniCluster, suffix: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": f"{cluster.name}-{suffix}", "namespace": cluster.namespace}
    if cluster.labels:
        metadata["labels"] = dict(cluster.labels)
    if cluster.annotations:
        metadata["annotations"] = dict(cluster.annotations)
    return metadata


def _data(cluster: MiniCluster) -> dict[str, str]:
    files = (file for file in sorted(SCRIPTS.iterdir()) if file.is_file())
    scripts = {file.name: file.read_text(encoding="utf-8") for file in files}
    commands = cluster.runner.get("commands", {})
    data = scripts | {"broker.toml": broker.config(cluster), "settings.sh": settings(cluster)}
    data["agent.json"] = json.dumps(agent(cluster), indent=2) + "\n"
    data |= {file: commands[key] for key, file in SNIPPETS.items() if commands.get(key)}
    data |= {name: text for name, text in _work_files(cluster).items() if text}
    for container in [*cluster.sidecars, *cluster.spec["services"]]:
        data |= _container_files(container)
    return data


def _work_files(cluster: MiniCluster) -> dict[str, str]:
    runner = cluster.runner
    command = runner.get("command", "")
    if runner.get("batch"):
        return {"batch": command if runner.get("batchRaw") else batch_script(command, _logs(cluster))}
    return {
        "command": _command(command),
        "script": runner.get("commands", {}).get("script", ""),
    }


def _command(command: str | list[str]) -> str:
    """Return a command as the text of a shell script; the words of a list become the program itself."""
    return command if isinstance(command, str) else f"exec {shlex.join(command)}\n"


def _container_files(container: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of a container that is not the runner; no name of a container has a dot."""
    name, command, commands = container["name"], container.get("command", ""), container.get("commands", {})
    files = {
        f"{name}.command": _command(command),
        f"{name}.script": commands.get("script", ""),
        f"{name}.init.sh": commands.get("init", ""),
        f"{name}.pre.sh": commands.get("servicePre", ""),
        f"{name}.post.sh": commands.get("post", ""),
    }
    return {file: text for file, text in files.items() if text}


def batch_script(command: str, logs: str) -> str:
    """Return a batch script that submits each line as a job and fails when one of them does.

    Raises SpecError for a line that would run into the next.
    """
    lines = [line.strip() for line in command.splitlines() if line.strip()]
    script = []
    for number, line in enumerate(lines, 1):
        if line.startswith("#") or line.endswith("\\") or not _words(f"line {number} of the batch", line):
            raise SpecError(
                f"line {number} of the batch is {line!r}: a line is one job; use batchRaw for more than that"
            )
        output = f"--output={shlex.quote(f'{logs}/job-{number}.out')} --error={shlex.quote(f'{logs}/job-{number}.err')}"
        script.append(f"flux submit --flags=waitable {output} {line}")
    return "\n".join([*script, "flux job wait --all"]) + "\n"


def settings(cluster: MiniCluster) -> str:
    """Return the settings file: assignments whose values are quoted, ``mc_*_words`` each a quoted list."""
    runner, container, logging = cluster.runner, cluster.flux["container"], cluster.spec["logging"]
    commands, lead = runner.get("commands", {}), cluster.flux["bursting"]["leadBroker"]
    values: dict[str, object] = {
        "mc_name": cluster.name,
        "mc_size": cluster.size,
        "mc_max_size": cluster.max_size,
        "mc_view": "" if container["disable"] else "/opt/views/view",
        "mc_python_path": container["pythonPath"],
        "mc_simple": _flag(cluster.flux["scheduler"]["simple"]),
        "mc_needs_fluxion": needs_fluxion(cluster),
        "mc_affinity": cluster.flux["affinity"],
        "mc_cpus": cpus(runner) or "",
        "mc_joins": f"{lead['name']} at {broker.lead_address(cluster)}" if cluster.joins else "",
        "mc_hosts_count": registered(cluster),
        "mc_resources": resources(cluster),
        "mc_archive": cluster.spec["archive"]["path"],
        "mc_state_volume": _flag(cluster.spec["state"]["claimName"]),
        "mc_leave_seconds": broker.grace(cluster)[0],
        "mc_kill_seconds": broker.grace(cluster)[1],
        "mc_work": work(cluster),
        "mc_start_words": shlex.join(broker.start(cluster)),
        "mc_submit_words": shlex.join(submit(cluster)),
        "mc_batch_words": shlex.join(batch(cluster)),
        "mc_prefix_words": shlex.join(prefix(cluster)),
        "mc_script_has_interpreter": _flag(commands.get("script", "").startswith("#!")),
        "mc_logs": _logs(cluster),
        "mc_quiet": _flag(logging["quiet"]),
        "mc_strict": _flag(logging["strict"]),
        "mc_timed": _flag(logging["timed"]),
        "mc_no_wait_socket": _flag(cluster.flux["noWaitSocket"] or cluster.flux["disableSocket"]),
        "mc_complete_workers": _flag(cluster.flux["completeWorkers"]),
    }
    lines = [f"{key}={shlex.quote(str(value))}" for key, value in values.items()]
    return "\n".join(["# shellcheck shell=sh disable=SC2034", *lines, *_environment(cluster)]) + "\n"


def agent(cluster: MiniCluster) -> dict[str, Any]:
    """Return the agent's settings: what it is to do, over which Job; without a policy it leaves the size alone."""
    scaling, runner = cluster.autoscaling, cluster.runner
    policy = (
        {
            "min": scaling["min"],
            "max": scaling["max"],
            "backlog": scaling["backlogSeconds"],
            "idle": scaling["idleSeconds"],
            "step_up": scaling["maxStepUp"],
            "step_down": scaling["maxStepDown"],
            "cpu_target": scaling["targetCPUUtilizationPercentage"],
        }
        if scaling
        else None
    )
    return {
        "name": cluster.name,
        "namespace": cluster.namespace,
        "size": cluster.size,
        "max_size": cluster.max_size,
        "period": cluster.spec["agent"]["periodSeconds"],
        "policy": policy,
        "port": cluster.spec["metrics"]["port"] if cluster.spec["metrics"]["enabled"] else None,
        "container": runner.get("name") or cluster.name,
        "cpu_request": quantity("cpu", _resource(runner, "cpu", first="requests") or 0),
    }


def _environment(cluster: MiniCluster) -> list[str]:
    """Return lines that export flux.environment once, so that what a snippet or a job sets later stays."""
    exports = [f"  export {key}={shlex.quote(value)}" for key, value in sorted(cluster.flux["environment"].items())]
    return ['if [ -z "${MINICLUSTER_ENVIRONMENT:-}" ]; then', *exports, "  export MINICLUSTER_ENVIRONMENT=set", "fi"]


def _flag(value: object) -> str:
    return "1" if value else ""


def _logs(cluster: MiniCluster) -> str:
    return cluster.runner.get("logs") or "/tmp/fluxout"  # noqa: S108 - flux-operator's


def work(cluster: MiniCluster) -> str:
    """Return what the lead does once the quorum is there: idle, diagnose, launch, batch or submit."""
    runner = cluster.runner
    if runner.get("diagnostics"):
        return "diagnose"
    if not (runner.get("command") or runner.get("commands", {}).get("script")):
        return "idle"
    if runner.get("launcher"):
        return "launch"
    return "batch" if runner.get("batch") else "submit"


def nodes(cluster: MiniCluster) -> Iterator[tuple[str, str, int | None, int]]:
    """Yield what R is made of: ranks, hosts, cores and GPUs of a node; cores None where the node tells."""
    own_cores, own_gpus = cores(cluster.runner), gpus(cluster.runner)
    first = 0
    for part in table(cluster):
        size = count(part.hostlist)
        part_cores = own_cores if part.cores is None else part.cores
        part_gpus = own_gpus if part.gpus is None else part.gpus
        yield ids(size, first), part.hostlist, part_cores, part_gpus
        first += size


def ids(size: int, first: int = 0) -> str:
    """Return so many ids as an idset (RFC 22)."""
    return f"{first}-{first + size - 1}" if size > 1 else str(first)


def resources(cluster: MiniCluster) -> str:
    """Return what the pods make R of: a line for each of the nodes, cores `-` where the node tells."""
    return "\n".join(f"{ranks} {hosts} {cores or '-'} {gpus}" for ranks, hosts, cores, gpus in nodes(cluster))


def prefix(cluster: MiniCluster) -> list[str]:
    """Return the words before what submits or launches the work."""
    return _words("commands.prefix", cluster.runner.get("commands", {}).get("prefix", ""))


def _verbs(cluster: MiniCluster) -> dict[str, int]:
    """Return how many words come before the task flags, by setting."""
    before = len(prefix(cluster))
    return {"mc_submit_words": before + len(_verb(cluster)), "mc_batch_words": before + len(BATCH)}


def _verb(cluster: MiniCluster) -> list[str]:
    return _words("flux.submitCommand", cluster.flux["submitCommand"])


def _task_flags(cluster: MiniCluster) -> list[str]:
    tasks, size = int(cluster.spec["tasks"]), cluster.size
    nodes = ["-N", str(size)] if tasks == 0 or tasks >= size else []
    count = ["-n", str(tasks)] if tasks else []
    return [*nodes, *count, *_words("flux.optionFlags", cluster.flux["optionFlags"])]


def submit(cluster: MiniCluster) -> list[str]:
    """Return the words that submit the command: prefix, verb, task flags, the user's flags.

    Raises SpecError for an open quote.
    """
    verb = _verb(cluster)
    debug = ["-vvv"] if cluster.spec["logging"]["debug"] else []
    # `flux run` prints no id and shows the output by itself
    watch = debug if verb[-1:] == ["run"] else [*(debug or ["--quiet"]), "--watch"]
    return [*prefix(cluster), *verb, *_task_flags(cluster), *_mark(cluster), *watch]


def batch(cluster: MiniCluster) -> list[str]:
    """Return the words that submit the batch script; its output is kept for the log."""
    output = ["-o", "output.stdout.type=kvs", "-o", "output.stderr.type=kvs"]
    return [*prefix(cluster), *BATCH, *_task_flags(cluster), *_mark(cluster), *output]


def _mark(cluster: MiniCluster) -> list[str]:
    """Return what tells the cluster's own work from other jobs, for a lead that finds it in a queue that was kept."""
    return ["--setattr=user.minicluster=work"] if cluster.keeps_state else []


def _words(name: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise SpecError(f"{name} is {text!r}: {error}; close the quote") from None


def cores(runner: Mapping[str, Any]) -> int | None:
    """Return the cores of a node in R: ``cores``, else the CPU limit or request; None when the node tells."""
    if runner.get("cores"):
        return int(runner["cores"])
    cpu = _resource(runner, "cpu")
    return None if cpu is None else max(1, int(quantity("cpu", cpu)))


def cpus(runner: Mapping[str, Any]) -> int | None:
    """Return the whole CPUs that the container asks Kubernetes for; None for none, or a part of one."""
    asked = quantity("cpu", _resource(runner, "cpu", first="requests") or 0)
    return int(asked) if asked and asked == int(asked) else None


def needs_fluxion(cluster: MiniCluster) -> str:
    """Return the first value that only Fluxion can do, as `name value`; "" for none."""
    scheduler = cluster.flux["scheduler"]
    asked = [f"flux.scheduler.{key} {scheduler[key]}" for key in ("queuePolicy", "matchPolicy") if scheduler[key]]
    return asked[0] if asked and not scheduler["simple"] else ""


def gpus(runner: Mapping[str, Any]) -> int:
    """Return the GPUs of a node in R, from the limits of the runner."""
    limits = runner.get("resources", {}).get("limits", {})
    return sum(int(quantity(name, limits[name])) for name in GPUS if name in limits)


def _resource(runner: Mapping[str, Any], name: str, first: str = "limits") -> Any:
    resources = runner.get("resources", {})
    other = "requests" if first == "limits" else "limits"
    return resources.get(first, {}).get(name, resources.get(other, {}).get(name))


def quantity(name: str, value: object) -> float:
    """Return a Kubernetes quantity as a number.

    Raises SpecError when it isn't one.
    """
    # apimachinery/pkg/api/resource/quantity.go
    suffixes = {"m": 1e-3, "k": 1e3, "Ki": 2**10, "M": 1e6, "Mi": 2**20, "": 1}
    text = str(value).strip()
    match = re.fullmatch(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(m|k|Ki|M|Mi|)", text)
    if not match:
        raise SpecError(f"resources: {name} is {text!r}: give a number, e.g. 4 or 500m")
    return float(match[1]) * suffixes[match[2]]
