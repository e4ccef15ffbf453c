"""replace_jobs.py check|remove|wait FILE: makes Jobs anew that can't take new values, for `upgrade.replace`.

FILE is JSON: `name`, the cluster's own Job; for each of `jobs` the annotations of its new manifest, null for one that
the release no longer has; `made`, the new manifests; `open`, a pattern of what is no refusal of them.

- check: asks the API server whether it would take the new Jobs and their pods, and fails if not. Its pod must end
  before anything is removed: one to which somebody adds a container that never ends could not bring the Jobs back.
- remove: if all Jobs live and have these annotations, nothing happens. Otherwise all are deleted, and the program waits
  until they and their pods are gone; the pods keep the queue, as whenever they are told to stop. So an interrupted
  upgrade can be repeated.
- wait: waits for the quorum of the new Jobs, and fails when they can't start.

Runs with Python 3.8 or later, as an account that may get and delete these Jobs, and read and create Jobs and pods.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional

from replace_server import IMMUTABLE, Job, Jobs, ReplaceError, annotations_of, in_cluster

VERSION = "minicluster/version"
#: Seconds between two looks; for the removal beside the pods' grace period
PAUSE, REMOVAL = 1.0, 120.0
#: Seconds for the start of the new pods, which Helm's --timeout also limits; in which a container may fail to start
START, STUCK = 3600.0, 60.0
#: Conditions of a Job whose work has ended well; the first is set while pods still leave
COMPLETE = ("SuccessCriteriaMet", "Complete")
#: Annotation of a pod with the name of its container that runs Flux
RUNNER = "kubectl.kubernetes.io/default-container"
#: States of a container that starts by itself
STARTING = ("ContainerCreating", "PodInitializing")
#: What the pod that checks says beside containers that somebody added
WAITS = (
    "this pod ends when {} ends, too, which the cluster added to it, and until then nothing is removed: leave pods out "
    "of that by pod.labels or pod.annotations, or use `minicluster replace`"
)
Made = List[Dict[str, Any]]
Wanted = Mapping[str, Optional[Mapping[str, str]]]


def takes(live: Mapping[str, Job], wanted: Wanted) -> bool:
    """Say whether the live Jobs are those that are wanted, with the values that can't change."""
    names = {name for name, annotations in wanted.items() if annotations is not None}
    return names == set(live) and all(_fits(job, wanted[name] or {}) for name, job in live.items())


def _fits(job: Job, wanted: Mapping[str, str]) -> bool:
    if "deletionTimestamp" in job["metadata"]:
        return False
    has = annotations_of(job)
    same = json.loads(has[IMMUTABLE]) == json.loads(wanted[IMMUTABLE])
    # the first version wrote none
    return same and has.get(VERSION, wanted[VERSION]) == wanted[VERSION]


def check(jobs: Jobs, wanted: Wanted, made: Made, still_open: str) -> str:
    """Say that the API server would take the new Jobs and their pods. Raises ReplaceError if not."""
    live = {name: job for name in wanted for job in [jobs.get(name)] if job}
    if takes(live, wanted):
        return "the live Jobs take these values"
    for name, one in _new_objects(made):
        why = jobs.refusal(one)
        if why and not re.search(still_open, why):
            raise ReplaceError(f"nothing is removed, as the new {one['kind']} of {name} would be refused: {why}")
    return f"the new Jobs {', '.join(job['metadata']['name'] for job in made)} can be made"


def _new_objects(made: Made) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the new Jobs, and a pod of each, with a name that no object has."""
    for job in made:
        name, template = job["metadata"]["name"], job["spec"]["template"]
        unnamed = {"generateName": f"{name[:50]}-", "name": None}
        yield name, {**job, "metadata": {**job["metadata"], **unnamed}}
        metadata = {**template.get("metadata", {}), **unnamed}
        yield name, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def remove(jobs: Jobs, wanted: Wanted, name: str) -> str:
    """Remove the Jobs if they can't become those that are wanted; say what was done.

    Raises ReplaceError, also when the work of ``name`` ends well meanwhile: the new Job would run it again.
    """
    present = {name: jobs.get(name) for name in wanted}
    live = {name: job for name, job in present.items() if job}
    if not live:
        return "no Job is there"
    if takes(live, wanted):
        return "the live Jobs take these values, so their pods stay"
    pods = [job["spec"]["template"]["spec"] for job in live.values()]
    limit = max(pod.get("terminationGracePeriodSeconds", 30) for pod in pods) + REMOVAL
    end = time.monotonic() + limit
    # the cluster's own Job first: where its work has ended, nothing is removed
    left = {its: live[its]["metadata"]["uid"] for its in sorted(live, key=lambda its: its != name)}
    for its, uid in left.items():
        _delete(jobs, its, uid, name)
    has_ended = False
    while True:
        has_ended = has_ended or any(_ended_well(pod) for pod in jobs.leads(name))
        now = {its: job["metadata"]["uid"] for its in left for job in [jobs.get(its)] if job}
        left = {its: uid for its, uid in left.items() if now.get(its) == uid}
        if not left and has_ended:
            well = f"the work of {name} ended well while its pods were told to stop"
            raise ReplaceError(f"{well}: upgrade again to run it once more, or uninstall the release")
        if not left:
            return f"the Jobs {', '.join(live)} and their pods are gone{_fate(live[name]) if name in live else ''}"
        if time.monotonic() >= end:
            late = f"the pods of {', '.join(left)} are not gone after {limit:g} s"
            raise ReplaceError(f"{late}: upgrade again when they are")
        time.sleep(PAUSE)


def _fate(job: Job) -> str:
    """Return what happened to the jobs of a MiniCluster whose pods were told to stop; "" if nothing says it."""
    values = json.loads(annotations_of(job).get(IMMUTABLE, "{}"))
    on_stop = values.get("pod.onStop")
    if not on_stop:
        return ""
    seconds = job["spec"]["template"]["spec"].get("terminationGracePeriodSeconds", 30)
    end = "put back into the queue" if on_stop == "requeue" else "cancelled, unless marked to run again"
    return f": their jobs had the pods' {seconds} s to end, what still ran was {end}; jobs that wait stay in the queue"


def _delete(jobs: Jobs, its: str, uid: str, name: str) -> None:
    """Delete a Job as it was when it was looked at. Raises ReplaceError when the work of ``name`` has ended well."""
    while True:
        job = jobs.get(its)
        if not job or job["metadata"]["uid"] != uid or "deletionTimestamp" in job["metadata"]:
            return
        if its == name and _is_complete(job):
            raise ReplaceError(f"the work of {name} has ended, and a new Job would run it again: nothing is removed")
        if jobs.delete(its, job):
            return


def _is_complete(job: Job) -> bool:
    conditions = job.get("status", {}).get("conditions", [])
    return any(c["type"] in COMPLETE and c["status"] == "True" for c in conditions)


def _ended_well(pod: dict[str, Any]) -> bool:
    """Say whether the lead's container has ended with 0: no pod that was told to stop does, unless the work ended."""
    runner = annotations_of(pod).get(RUNNER)
    ends = [c["state"].get("terminated") for c in pod["status"].get("containerStatuses", []) if c["name"] == runner]
    return any(end and end["exitCode"] == 0 for end in ends)


def wait(jobs: Jobs, name: str, made: Made) -> str:
    """Wait for the quorum of a Job, or its end; say what came. Raises ReplaceError when its pods can't start."""
    end, stuck = time.monotonic() + START, 0.0
    while True:
        job = jobs.get(name)
        if not job:
            raise ReplaceError(f"somebody has removed the Job {name}: upgrade again")
        if job["spec"].get("suspend"):
            return f"{name} is suspended: its pods start when it is resumed"
        ended = [c for c in job.get("status", {}).get("conditions", []) if c["status"] == "True"]
        for condition in ended:
            if condition["type"] == "Failed":
                raise ReplaceError(f"the new pods of {name} failed: {condition.get('message', '')}")
            if condition["type"] == "Complete":
                return f"the work of {name} has ended"
        leads = [pod for pod in jobs.leads(name) if "deletionTimestamp" not in pod["metadata"]]
        if any(_is_ready(pod) for pod in leads):
            return f"{name} has its quorum"
        why = next((text for pod in leads for text in _troubles(pod)), "") if leads else "the lead has no pod"
        stuck = (stuck or time.monotonic()) if why else 0.0
        if why and time.monotonic() - stuck >= STUCK:
            refused = "" if leads else _refusal_of_pod(jobs, name, made)
            raise ReplaceError(f"the new pods of {name} can't start: {refused or why}")
        if time.monotonic() >= end:
            raise ReplaceError(f"{name} has no quorum after {START:g} s")
        time.sleep(PAUSE)


def _refusal_of_pod(jobs: Jobs, name: str, made: Made) -> str:
    """Return why the API server refuses a pod of a Job; "" when it does not, or no longer."""
    objects = (one for its, one in _new_objects(made) if its == name and one["kind"] == "Pod")
    return next((jobs.refusal(one) for one in objects), "")


def _is_ready(pod: Mapping[str, Any]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def _troubles(pod: Mapping[str, Any]) -> list[str]:
    """Return why containers of a pod wait, other than that they are being started."""
    status = pod["status"]
    containers = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    states = [container["state"].get("waiting", {}) for container in containers]
    troubles = [state for state in states if state.get("reason", STARTING[0]) not in STARTING]
    return [" ".join(f"{state['reason']}: {state.get('message', '')}".split()) for state in troubles]


def run(jobs: Jobs, action: str, plan: Mapping[str, Any], pod: str) -> str:
    """Do what the pod of this name is for; say what was done. Raises ReplaceError."""
    if action == "remove":
        return remove(jobs, plan["jobs"], plan["name"])
    if action == "wait":
        return wait(jobs, plan["name"], plan["made"])
    done, others = check(jobs, plan["jobs"], plan["made"], plan["open"]), ", ".join(jobs.others(pod))
    return f"{done}; {WAITS.format(others)}" if others else done


def main() -> None:
    """Do one of the three for the Jobs that the file names; exit with 1 and a line when that fails."""
    action, file = sys.argv[1:]
    try:
        plan = json.loads(Path(file).read_text(encoding="utf-8"))
        print(f"minicluster: {run(Jobs(in_cluster()), action, plan, socket.gethostname())}", flush=True)
    except (ReplaceError, OSError) as error:
        sys.exit(f"minicluster: {error}")


if __name__ == "__main__":
    main()
