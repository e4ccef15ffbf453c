"""What becomes of a script's head, in one line: the job in short, or the refusal."""

from typing import Any

from slurm_jobspec import jobspec_of, urgency_of
from slurm_parse import SlurmError, read_submission
from slurm_wanted import Facts, Request, hosts_of, shape_of
from slurm_words import array_of

#: A MiniCluster with the groups gpu and v100
FACTS = Facts("mc", ["debug"], ["gpu", "v100"], 8, 64 << 30, 1e9, "host", "/home/me", "me")
ENVIRONMENT = {"PATH": "/bin", "HOME": "/home/me", "A": "1", "MINICLUSTER_HOME": "/mnt/flux"}


def becomes(head: str) -> str:
    """Return what becomes of lines, with | between them."""
    script = "#!/bin/sh\n" + "".join(f"#SBATCH {line}\n" for line in head.split("|"))
    try:
        given = read_submission("sbatch", ["job.sh"], {}, script, "job.sh")
        # Flux counts them
        hosts = {"node[1-3]": 3, "node1": 1}.get(hosts_of(given.values), 0)
        layout = shape_of(given.values, FACTS, hosts)
        request = Request("sbatch", given.values, [], script, layout, [], FACTS)
        tasks = array_of(given.values["array"]) if "array" in given.values else None
        spec = jobspec_of(request, ENVIRONMENT, {"index": 1, "array": 7} if tasks else {})
        urgency = urgency_of(given.values)
    except SlurmError as error:
        return f"refused: {error}"
    passed = [line.partition(" ")[0] for line in given.passed]
    parts = [_resources(spec), *_system(spec), *([f"{len(tasks[0])} tasks, {tasks[1]} at a time"] if tasks else [])]
    return ", ".join(
        [*parts, *([f"urgency {urgency}"] if urgency != 16 else []), *(f"{name} passed over" for name in passed)]
    )


def _resources(spec: dict[str, Any]) -> str:
    """Return resources as `2 nodes of 1 slot of 4 cores`, and which kind of job it is."""
    text, part = [], spec["resources"][0]
    if part["type"] == "node":
        text.append(f"{part['count']} node{' alone' if part.get('exclusive') else ''}")
        part = part["with"][0]
    inner = "+".join(f"{each['count']} {each['type']}" for each in part["with"])
    kind = "instance" if "broker" in spec["tasks"][0]["command"] else "script"
    slots = f"{part['count']} slot"
    return f"{kind}: {' of '.join([*text, slots, inner])}"


def _system(spec: dict[str, Any]) -> list[str]:
    """Return what else differs from a job without options."""
    system = spec["attributes"]["system"]
    options = system["shell"]["options"]
    found = [f"{system['duration']:g} s"] if system["duration"] else []
    files = [options["output"][name]["path"] for name in ("stdout", "stderr") if name in options["output"]]
    found += [f"output {' '.join(files)}"] if files != ["slurm-{{id.dec}}.out"] else []
    found += [f"{key} {system[key]}" for key in ("queue", "constraints", "dependencies") if key in system]
    found += [f"{key} {options[key]}" for key in ("taskmap",) if key in options]
    command = spec["tasks"][0]["command"]
    found += ["append"] if "append" in command else []
    found += [f"in {system['cwd']}"] if system["cwd"] != "/home/me" else []
    found += [f"named {system['job']['name']}"] if system["job"]["name"] != "sbatch" else []
    signal = "/mnt/flux/minicluster/slurm_signal.sh"
    found += [" ".join(["warned", *command[command.index(signal) + 1 :][:3]])] if signal in command else []
    found += [f"requeue {own['requeue']}"] if (own := spec["attributes"]["user"].get("minicluster")) else []
    left = sorted(
        set(system["environment"]) - {name for name in system["environment"] if name.startswith(("SLURM", "MINI"))}
    )
    found += [f"variables {' '.join(left)}"] if left != ["A", "ENVIRONMENT", "HOME", "PATH"] else []
    return found
