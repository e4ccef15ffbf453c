"""replace_jobs.py remove|wait FILE: makes Jobs anew that can't take the values of an upgrade with `upgrade.replace`.

FILE is JSON: `name`, the cluster's own Job, and for each of `jobs` the annotations of its new manifest, null for one
that the release no longer has.

- remove: if all Jobs live and have these annotations, nothing happens. Otherwise all are deleted, and the program waits
  until they and their pods are gone; the pods keep the queue, as whenever they are told to stop. So an interrupted
  upgrade can be repeated.
- wait: waits for the quorum of the new Jobs, and fails when they can't start.

Runs alone, with Python 3.8 or later, as an account that may get and delete these Jobs and list pods.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount")
IMMUTABLE, VERSION = "minicluster/immutable", "minicluster/version"
JOB_NAME, INDEX = "job-name", "batch.kubernetes.io/job-completion-index"
#: Seconds for one call; between two looks; for which calls may fail; for the removal beside the pods' grace period
TIMEOUT, PAUSE, PATIENCE, REMOVAL = 10.0, 1.0, 60.0, 120.0
#: Seconds for the start of the new pods, which Helm's --timeout also limits; in which a container may fail to start
START, STUCK = 3600.0, 60.0
#: States of a container that starts by itself
STARTING = ("ContainerCreating", "PodInitializing")
#: Seconds after which a refusal is final: the Role may have been created just now
ROLE = 10.0
Job = Dict[str, Any]
Wanted = Mapping[str, Optional[Mapping[str, str]]]


class ReplaceError(Exception):
    """The Jobs can't be removed; a message of one line."""


class Jobs:
    """The Jobs of a namespace, as the API server has them."""

    def __init__(self, server: str, token: Path = TOKEN) -> None:
        """Keep the addresses. The token is read for each call, because Kubernetes renews it."""
        self.server, self.token = server, token
        namespace = (token / "namespace").read_text().strip()
        self.jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs/"
        self.pods = f"/api/v1/namespaces/{namespace}/pods"

    def get(self, name: str) -> Job | None:
        """Return a Job of a MiniCluster; None when there is none. Raises ReplaceError."""
        job = self._call("GET", self.jobs + name)
        return job if job and IMMUTABLE in _annotations(job) else None

    def delete(self, name: str, uid: str) -> None:
        """Tell the pods of a Job to stop, and let it go after them. Raises ReplaceError."""
        self._call("DELETE", self.jobs + name, {"propagationPolicy": "Foreground", "preconditions": {"uid": uid}})

    def leads(self, name: str) -> list[dict[str, Any]]:
        """Return the pods of index 0 of a Job. Raises ReplaceError."""
        found = self._call("GET", f"{self.pods}?labelSelector={JOB_NAME}%3D{name}") or {"items": []}
        return [pod for pod in found["items"] if _annotations(pod).get(INDEX) == "0"]

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        """Call the API server until it answers; return None for a Job that is gone, or another one now."""
        begin = time.monotonic()
        while True:
            try:
                return self._answer(method, path, body)
            except urllib.error.HTTPError as error:
                if error.code in (404, 409):
                    return None
                why, patience = _message(error), PATIENCE if error.code == 429 or error.code >= 500 else ROLE
            except (OSError, ValueError, http.client.HTTPException) as error:
                why, patience = str(error), PATIENCE
            if time.monotonic() - begin >= patience:
                raise ReplaceError(f"{method} {path}: {why}; upgrade again, or use `minicluster replace`")
            time.sleep(PAUSE)

    def _answer(self, method: str, path: str, body: Any) -> Any:
        headers = {"Authorization": f"Bearer {(self.token / 'token').read_text().strip()}"}
        data = None if body is None else json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
        asked = urllib.request.Request(self.server + path, data, headers, method=method)
        with self._opener().open(asked, timeout=TIMEOUT) as answer:
            return json.load(answer)

    def _opener(self) -> urllib.request.OpenerDirector:
        """Return what asks the API server itself, whatever proxy the image names."""
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self.server[:6] == "https:":
            tls = ssl.create_default_context(cafile=str(self.token / "ca.crt"))
            handlers.append(urllib.request.HTTPSHandler(context=tls))
        return urllib.request.build_opener(*handlers)


def takes(live: Mapping[str, Job], wanted: Wanted) -> bool:
    """Say whether the live Jobs are those that are wanted, with the values that can't change."""
    names = {name for name, annotations in wanted.items() if annotations is not None}
    return names == set(live) and all(_fits(job, wanted[name] or {}) for name, job in live.items())


def _fits(job: Job, wanted: Mapping[str, str]) -> bool:
    if "deletionTimestamp" in job["metadata"]:
        return False
    has = _annotations(job)
    same = json.loads(has[IMMUTABLE]) == json.loads(wanted[IMMUTABLE])
    # the first version wrote none
    return same and has.get(VERSION, wanted[VERSION]) == wanted[VERSION]


def _annotations(job: Job) -> dict[str, str]:
    return job["metadata"].get("annotations") or {}


def _message(error: urllib.error.HTTPError) -> str:
    """Return the API server's message of an error, on one line."""
    try:
        return " ".join(str(json.load(error)["message"]).split())
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        return str(error.reason)


def remove(jobs: Jobs, wanted: Wanted) -> str:
    """Remove the Jobs if they can't become those that are wanted; say what was done. Raises ReplaceError."""
    found = {name: jobs.get(name) for name in wanted}
    live = {name: job for name, job in found.items() if job}
    if not live:
        return "no Job is there"
    if takes(live, wanted):
        return "the live Jobs take these values, so their pods stay"
    pods = [job["spec"]["template"]["spec"] for job in live.values()]
    limit = max(pod.get("terminationGracePeriodSeconds", 30) for pod in pods) + REMOVAL
    end = time.monotonic() + limit
    left = {name: job["metadata"]["uid"] for name, job in live.items()}
    for name, uid in left.items():
        jobs.delete(name, uid)
    while True:
        now = {name: job["metadata"]["uid"] for name in left for job in [jobs.get(name)] if job}
        left = {name: uid for name, uid in left.items() if now.get(name) == uid}
        if not left:
            return f"the Jobs {', '.join(live)} and their pods are gone"
        if time.monotonic() >= end:
            late = f"the pods of {', '.join(left)} are not gone after {limit:g} s"
            raise ReplaceError(f"{late}: upgrade again when they are")
        time.sleep(PAUSE)


def wait(jobs: Jobs, name: str) -> str:
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
        why = next((text for pod in leads for text in _troubles(pod)), "")
        stuck = (stuck or time.monotonic()) if why else 0.0
        if why and time.monotonic() - stuck >= STUCK:
            raise ReplaceError(f"the new pods of {name} can't start: {why}")
        if time.monotonic() >= end:
            raise ReplaceError(f"{name} has no quorum after {START:g} s")
        time.sleep(PAUSE)


def _is_ready(pod: Mapping[str, Any]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def _troubles(pod: Mapping[str, Any]) -> list[str]:
    """Return why containers of a pod wait, other than that they are being started."""
    status = pod["status"]
    containers = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    states = [container["state"].get("waiting", {}) for container in containers]
    found = [state for state in states if state.get("reason", STARTING[0]) not in STARTING]
    return [" ".join(f"{state['reason']}: {state.get('message', '')}".split()) for state in found]


def main() -> None:
    """Remove the Jobs that the file names, or wait for the new ones; exit with 1 and a line when that fails."""
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    server = f"https://{f'[{host}]' if ':' in host else host}:{os.environ['KUBERNETES_SERVICE_PORT']}"
    action, file = sys.argv[1:]
    try:
        plan = json.loads(Path(file).read_text(encoding="utf-8"))
        done = remove(Jobs(server), plan["jobs"]) if action == "remove" else wait(Jobs(server), plan["name"])
        print(f"minicluster: {done}", flush=True)
    except (ReplaceError, OSError) as error:
        sys.exit(f"minicluster: {error}")


if __name__ == "__main__":
    main()
