"""How remote.py turns a request into a jobspec, and describes a job of the queue.

A module of that program: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import os
import time
from typing import Any, Mapping

from flux.job import JobID, JobspecV1
from instance import instance

#: The user attribute of a job with the key of its request
KEY_ATTRIBUTE = "minicluster-sdk"


def jobspec(job: dict[str, Any], key: str) -> Any:
    """Return the jobspec of a job, with ``instance`` in one of its own. Raises ValueError for numbers out of range."""
    nodes, tasks = job.get("nodes"), job.get("tasks")
    spec = JobspecV1.from_command(
        job["command"],
        num_nodes=nodes,
        num_tasks=tasks or nodes or 1,
        cores_per_task=job.get("cores_per_task") or 1,
        gpus_per_task=job.get("gpus_per_task"),
        # nodes without tasks are whole nodes, as of `flux submit -N`
        exclusive=job.get("exclusive", False) or bool(nodes and not tasks),
    )
    spec.environment = {**os.environ, **job.get("environment", {})}
    if files := job.get("files"):
        spec.setattr("system.files", {path: _file(text) for path, text in files.items()})
    spec.cwd = job.get("working_dir") or os.getcwd()  # noqa: PTH109 - a text
    if job.get("instance"):
        spec = JobspecV1(**instance(spec.jobspec, nodes or 1))
    spec.duration = job.get("time_limit") or 0
    for name, value in job.get("attributes", {}).items():
        spec.setattr(name, value)
    spec.setattr(f"user.{KEY_ATTRIBUTE}", key)
    return spec


def _file(text: str) -> dict[str, Any]:
    """Return a file of a job (RFC 37)."""
    return {"mode": 0o100600, "encoding": "base64", "data": text}


def calls_function(spec: dict[str, Any]) -> bool:
    """Return whether a job calls a function of its client (call_function.py)."""
    files = spec.get("attributes", {}).get("system", {}).get("files") or {}
    return "call_function.py" in files


def marked(spec: dict[str, Any]) -> Any:
    """Return the key in a jobspec, None where it has none."""
    return (spec.get("attributes", {}).get("user") or {}).get(KEY_ATTRIBUTE)


def why(ids: list[Any], handle: Any) -> list[str]:
    """Return why jobs wait, "" for one that does not."""
    try:
        from waiting import reasons  # it needs programs of the lead's pod

        explained = reasons(handle, ids) if ids else {}
    except (ImportError, OSError):
        explained = {}
    return [explained.get(job, "") for job in ids]


def shown(job: Any, waits: str) -> dict[str, Any]:
    """Return what a list shows of an active job."""
    return {
        "id": job.id.f58,
        "name": job.name,
        "state": job.state.lower(),
        "result": "",
        "exit_code": None,
        "nodes": str(job.nodelist or ""),
        "tasks": int(job.ntasks or 0),
        "submitted": job.t_submit,
        "runtime": job.runtime,
        "waits": waits,
    }


def shown_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a list shows of a job from its record: one that has ended, or is inside of another."""
    begin, end = record["t_run"], record["t_cleanup"] or record["t_inactive"] or time.time()
    return {
        "id": "/".join(JobID(each).f58 for each in record["id"].split("/")),
        "name": record["name"],
        "state": record["state"].lower(),
        "result": (record["result"] or "").lower(),
        "exit_code": record["exit_code"],
        "nodes": record["nodes"] or "",
        "tasks": record["ntasks"] or 0,
        "submitted": record["t_submit"],
        "runtime": end - begin if begin else 0.0,
        "waits": "",
    }
