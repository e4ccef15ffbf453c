"""The requests of replace_jobs.py and scheduled_run.py to the API server, as an account that may do little.

Runs beside them, with Python 3.8 or later.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Dict

TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount")
IMMUTABLE = "minicluster/immutable"
JOB_NAME, INDEX = "job-name", "batch.kubernetes.io/job-completion-index"
#: Seconds for one call; between two looks; for which calls may fail
TIMEOUT, PAUSE, PATIENCE = 10.0, 1.0, 60.0
#: Seconds after which a refusal is final: the Role may have been created just now
ROLE = 10.0
#: What the API server says while the account lacks its right
LACKS = "cannot create resource"
#: The container of the hooks' pods
OWN = "replace"
Job = Dict[str, Any]


class ReplaceError(Exception):
    """The Jobs can't be removed; a message of one line."""


class RefusedError(Exception):
    """The API server would not take an object; its message."""


def in_cluster() -> str:
    """Return the address of the API server."""
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    return f"https://{f'[{host}]' if ':' in host else host}:{os.environ['KUBERNETES_SERVICE_PORT']}"


class Jobs:
    """The Jobs of a namespace, as the API server has them."""

    way_out = "upgrade again, or use `minicluster replace`"

    def __init__(self, server: str, token: Path = TOKEN) -> None:
        """Keep the addresses. The token is read for each call, because Kubernetes renews it."""
        self.server, self.token = server, token
        namespace = (token / "namespace").read_text().strip()
        self.jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs/"
        self.pods = f"/api/v1/namespaces/{namespace}/pods"

    def get(self, name: str) -> Job | None:
        """Return a Job of a MiniCluster; None when there is none. Raises ReplaceError."""
        job = self._call("GET", self.jobs + name)
        return job if job and IMMUTABLE in annotations_of(job) else None

    def delete(self, name: str, job: Job) -> bool:
        """Tell the pods of a Job to stop, and let it go after them; return whether it was as it is known here.

        Raises ReplaceError.
        """
        known = {key: job["metadata"][key] for key in ("uid", "resourceVersion")}
        body = {"propagationPolicy": "Foreground", "preconditions": known}
        return self._call("DELETE", self.jobs + name, body) is not None

    def leads(self, name: str) -> list[dict[str, Any]]:
        """Return the pods of index 0 of a Job. Raises ReplaceError."""
        pods = self._call("GET", f"{self.pods}?labelSelector={JOB_NAME}%3D{name}") or {"items": []}
        return [pod for pod in pods["items"] if annotations_of(pod).get(INDEX) == "0"]

    def refusal(self, made: dict[str, Any]) -> str:
        """Return why the API server would refuse a new object; "" when it would take it. Raises ReplaceError."""
        path = self.pods if made["kind"] == "Pod" else self.jobs.rstrip("/")
        try:
            self._call("POST", f"{path}?dryRun=All", made)
        except RefusedError as error:
            return str(error)
        return ""

    def others(self, pod: str) -> list[str]:
        """Return the containers of a hook's pod that somebody added beside its own one. Raises ReplaceError."""
        live_pod = self._call("GET", f"{self.pods}/{pod}") or {"spec": {"containers": []}}
        return [container["name"] for container in live_pod["spec"]["containers"] if container["name"] != OWN]

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
                if method == "POST" and patience == ROLE and LACKS not in why:
                    raise RefusedError(why) from None
            except (OSError, ValueError, http.client.HTTPException) as error:
                why, patience = str(error), PATIENCE
            if time.monotonic() - begin >= patience:
                raise ReplaceError(f"{method} {path}: {why}; {self.way_out}")
            time.sleep(PAUSE)

    def _answer(self, method: str, path: str, body: Any) -> Any:
        headers = {"Authorization": f"Bearer {(self.token / 'token').read_text().strip()}"}
        data = None if body is None else json.dumps(body).encode()
        headers["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
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


def annotations_of(job: Job) -> dict[str, str]:
    """Return the annotations of an object."""
    return job["metadata"].get("annotations") or {}


def _message(error: urllib.error.HTTPError) -> str:
    """Return the API server's message of an error, on one line."""
    try:
        return " ".join(str(json.load(error)["message"]).split())
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        return str(error.reason)
