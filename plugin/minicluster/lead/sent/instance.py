"""instance.py FLUX JOB KEY: runs a command in an instance of Flux of its own, a job of this one, and follows that.

FLUX is the path of flux. JOB is a JSON object: the ``command``, its ``nodes``, its ``tasks`` (null is one on each node,
which it has whole), the ``seconds`` that it may take (0 is no limit), its ``cwd`` (null is ours), variables of its
``environment`` besides ours, and the job's ``user`` attributes. KEY is for mine.py. When the command has ended, both
streams get a mark, and standard error with its exit code: whoever follows need not wait for the end of the instance.
Given to `flux python -c` by inside.py, as a word: the input is the command's. A module of remote.py, too. Needs
nothing of Flux's Python, whose import takes longer than all of this. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Mapping

#: Runs the job in the file work; with $1 it marks the ends of both streams
WORK_SCRIPT = r"""work=${0%/*}/work
id=$(flux job submit "$work") || exit
[ "$1" ] || exec flux job attach "$id" </dev/null
flux job attach "$id"
code=$?
# without its broker it can't be known how the work ended: then the end of the instance tells
[ $code = 0 ] || flux getattr rank >/dev/null 2>&1 || exit
printf '\036minicluster-end %d\n' $code >&2
printf '\036minicluster-end\n'
exit $code
"""
#: Seconds for which a shell gathers output. It is written to the instance, and from there to this one
OUTPUT_SECONDS = 0.02
#: Seconds by which the limit of the job is later than that of its client
SLACK_SECONDS = 10


def instance(work: dict[str, Any], nodes: int, marks: bool = False) -> dict[str, Any]:
    """Return the jobspec of an instance on whole nodes that runs another job in it; it needs nothing of the other."""
    ours = work["attributes"]["system"]
    output = {"output": {"batch-timeout": OUTPUT_SECONDS}}
    options = ours.setdefault("shell", {}).setdefault("options", {})
    options.update({**output, **options})
    files = {"start": WORK_SCRIPT, "work": json.dumps(work)}
    spec = _jobspec(["flux", "broker", "sh", "{{tmpdir}}/start", *(["marks"] if marks else [])], nodes, 1, whole=True)
    spec["attributes"]["system"] = {
        "environment": ours["environment"],
        "cwd": ours["cwd"],
        "duration": 0,
        "job": {"name": work["tasks"][0]["command"][0].rpartition("/")[2]},
        # as `flux alloc` has them
        "shell": {"options": {**output, "per-resource": {"type": "node"}, "mpi": "none", "exit-timeout": "none"}},
        "files": {name: {"mode": 0o100600, "data": data, "encoding": "utf-8"} for name, data in files.items()},
    }
    return spec


def _work(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the jobspec of a command, as `flux run` has it."""
    nodes, tasks = job["nodes"], job["tasks"]
    work = _jobspec(job["command"], nodes, -(-tasks // nodes) if tasks else 1, whole=not tasks)
    if tasks:
        work["tasks"][0]["count"] = {"total": tasks}
    cwd = job["cwd"] or os.getcwd()  # noqa: PTH109 - a text
    work["attributes"]["system"] = {"environment": {**os.environ, **job["environment"]}, "cwd": cwd, "duration": 0}
    return work


def _jobspec(words: list[str], nodes: int, slots: int, *, whole: bool) -> dict[str, Any]:
    """Return a jobspec without attributes: some slots of a core on each node, or one on whole nodes."""
    slot = {"type": "slot", "count": slots, "with": [{"type": "core", "count": 1}], "label": "task"}
    node = {"type": "node", "count": nodes, **({"exclusive": True} if whole else {}), "with": [slot]}
    tasks = [{"command": words, "slot": "task", "count": {"per_slot": 1}}]
    return {"version": 1, "resources": [node], "tasks": tasks, "attributes": {}}


def main(flux: str, text: str) -> None:
    """Submit the job, and become the command that follows it."""
    job = json.loads(text)
    known = int(subprocess.run([flux, "getattr", "size"], stdout=subprocess.PIPE, check=True).stdout)  # noqa: S603 - words
    if job["nodes"] > known:
        sys.exit(f"minicluster: {job['nodes']} nodes are more than its {known}, which is with maxSize: ask for fewer")
    spec = instance(_work(job), job["nodes"], marks=True)
    # its client may be killed
    spec["attributes"]["system"]["duration"] = job["seconds"] and job["seconds"] + SLACK_SECONDS
    spec["attributes"]["user"] = job["user"]
    data = json.dumps(spec).encode()
    done = subprocess.run([flux, "job", "submit"], input=data, stdout=subprocess.PIPE, check=False)  # noqa: S603 - words
    if done.returncode:
        sys.exit(done.returncode)
    os.execv(flux, [flux, "job", "attach", done.stdout.decode().strip()])  # noqa: S606 - words


if __name__ == "__main__":
    main(*sys.argv[1:3])
