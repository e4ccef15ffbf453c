"""scheduled_run.py FILE SCHEDULE: wakes a MiniCluster that sleeps, and submits a run of a schedule on its lead, once.

FILE is JSON: `name`, the MiniCluster, and `schedules`, each with `options` and a `command` by its name. MC_JOB is the
name of the Job of this pod, which a CronJob calls CRONJOB-MINUTES, by the time at which the run was due; MC_UID is its
uid. What is submitted is marked by them, so a try after a lost pod or connection does not submit it again
(scheduled_submit.py).

Exits with 2 where another try would not help. Runs with Python 3.8 or later, as an account that may get and patch one
Job, list pods and run commands in them.
"""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import ssl
import sys
import time
import urllib.parse
from pathlib import Path
from typing import Any, Iterator, Mapping

from replace_server import PAUSE, TIMEOUT, Jobs, ReplaceError, annotations_of, in_cluster

SUSPENDED = "minicluster/suspended"
#: How the agent says that it suspended a Job, and its name in managedFields (cluster/job.py)
IDLE, MANAGER = "idle for ", "minicluster-agent"
QUEUE = "kueue.x-k8s.io/queue-name"
RUNNER = "kubectl.kubernetes.io/default-container"
#: Seconds for the lead to come, and for the submission
START, ANSWER = 3000.0, 120.0
#: The code of a submission that was refused, and that of a try which can't help
REFUSED = 2
#: Channels of a command's streams, by their first byte
OUT, ERR, STATUS = 1, 2, 3
SUBMIT = Path(__file__).with_name("scheduled_submit.py")


class FinalError(Exception):
    """The run can't be submitted; a message of one line."""


class BrokenError(Exception):
    """A connection broke, or could not be made."""


class Cluster(Jobs):
    """A MiniCluster, as the API server has it."""

    way_out = "the Job tries again"

    def patch(self, name: str, change: Mapping[str, Any]) -> dict[str, Any] | None:
        """Change a Job, and return it; None if it was changed meanwhile. Raises ReplaceError."""
        changed: dict[str, Any] | None = self._call("PATCH", f"{self.jobs}{name}?fieldManager={MANAGER}", change)
        return changed

    def wake(self, name: str, job: Mapping[str, Any]) -> None:
        """Resume a Job that sleeps. Afterwards no client owns `suspend`, so Helm may set it. Raises ReplaceError."""
        known = {"resourceVersion": job["metadata"]["resourceVersion"], "annotations": {SUSPENDED: None}}
        after = self.patch(name, {"metadata": known, "spec": {"suspend": False}})
        while after:
            metadata = after["metadata"]
            others = [one for one in metadata.get("managedFields", []) if one["manager"] != MANAGER]
            if len(others) == len(metadata.get("managedFields", [])):
                return
            known = {"resourceVersion": metadata["resourceVersion"], "managedFields": others}
            after = self.patch(name, {"metadata": known}) or self.patch(name, {})

    def run(self, lead: dict[str, Any], words: list[str]) -> int:
        """Run a command in the lead's container, with our streams; return its exit code. Raises BrokenError."""
        pod, runner = lead["metadata"]["name"], annotations_of(lead)[RUNNER]
        asked = [("container", runner), ("stdout", "1"), ("stderr", "1"), *(("command", word) for word in words)]
        with self._connect(f"{self.pods}/{pod}/exec?{urllib.parse.urlencode(asked)}") as stream:
            for channel, data in messages(stream):
                if channel == STATUS:
                    return exit_code(json.loads(data))
                out = sys.stdout.buffer if channel == OUT else sys.stderr.buffer
                out.write(data)
                out.flush()
        raise BrokenError("the connection ended before the command")

    def _connect(self, path: str) -> Any:
        """Return a file of a WebSocket (RFC 6455) on which a command's streams come."""
        to = urllib.parse.urlsplit(self.server)
        connection = socket.create_connection((to.hostname, to.port or 443), TIMEOUT)
        if to.scheme == "https":
            tls = ssl.create_default_context(cafile=str(self.token / "ca.crt"))
            connection = tls.wrap_socket(connection, server_hostname=to.hostname)
        connection.settimeout(ANSWER)
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {to.netloc}",
            f"Authorization: Bearer {(self.token / 'token').read_text().strip()}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Protocol: v4.channel.k8s.io",
        ]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        stream = connection.makefile("rb")
        # the file keeps the connection
        connection.close()
        answer = stream.readline().decode(errors="replace").strip()
        while stream.readline().strip():
            pass
        if " 101 " not in f"{answer} ":
            raise BrokenError(f"the lead's pod can't be asked: {answer}")
        return stream


def messages(stream: Any) -> Iterator[tuple[int, bytes]]:
    """Yield the channel and the data of each message of a WebSocket, until it is closed."""
    whole = bytearray()
    while True:
        head = stream.read(2)
        if len(head) < 2:
            return
        size = head[1] & 127
        if size > 125:
            size = int.from_bytes(stream.read(2 if size == 126 else 8), "big")
        data, code = stream.read(size), head[0] & 15
        if code == 8 or len(data) < size:
            return
        if code < 3:
            whole += data
            if head[0] & 128:
                if whole:
                    yield whole[0], bytes(whole[1:])
                whole.clear()


def exit_code(status: Mapping[str, Any]) -> int:
    """Return the exit code of a command by its Status. Raises BrokenError when it did not run."""
    if status.get("status") == "Success":
        return 0
    causes = (status.get("details") or {}).get("causes") or []
    codes = [cause["message"] for cause in causes if cause.get("reason") == "ExitCode"]
    if not codes:
        raise BrokenError(str(status.get("message", "the command could not be run")))
    return int(codes[0])


def run_of(schedule: str, wanted: Mapping[str, Any], job: str, uid: str, now: float) -> dict[str, Any]:
    """Return what is submitted for a Job: one of a CronJob is known by its time, another, made by hand, by its uid."""
    minutes = re.search(r"-([0-9]{7,9})$", job)
    due = int(minutes[1]) * 60.0 if minutes else now
    key = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(due)) if minutes else uid
    return {"schedule": schedule, "key": key, "due": due, **wanted}


def look(cluster: Cluster, name: str) -> dict[str, Any] | None:
    """Return the lead if it is ready; wake a MiniCluster that sleeps. Raises FinalError, ReplaceError."""
    job = cluster.get(name)
    if not job:
        raise FinalError(f"there is no Job {name}")
    ended = [each["type"] for each in job.get("status", {}).get("conditions", []) if each["status"] == "True"]
    if "Complete" in ended or "Failed" in ended or "deletionTimestamp" in job["metadata"]:
        raise FinalError(f"{name} has ended")
    if job["spec"].get("suspend") and QUEUE not in job["metadata"].get("labels", {}):
        why = annotations_of(job).get(SUSPENDED, "somebody")
        if not why.startswith(IDLE):
            raise FinalError(f"{name} is suspended by {why}, and not woken")
        print(f"minicluster: {name} is suspended, {why}: waking it", flush=True)
        cluster.wake(name, job)
    leads = (pod for pod in cluster.leads(name) if "deletionTimestamp" not in pod["metadata"])
    return next((pod for pod in leads if is_ready(pod)), None)


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Say whether a pod is ready."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def submit(cluster: Cluster, name: str, run: Mapping[str, Any]) -> None:
    """Submit a run on the lead, for which it waits. Raises FinalError."""
    end, why = time.monotonic() + START, "its lead is not ready"
    while time.monotonic() < end:
        try:
            lead = look(cluster, name)
            if lead:
                runner = next(c for c in lead["spec"]["containers"] if c["name"] == annotations_of(lead)[RUNNER])
                home = next(one["value"] for one in runner["env"] if one["name"] == "MINICLUSTER_HOME")
                words = [f"{home}/bin/flux", "python", "-c", SUBMIT.read_text(), json.dumps(run)]
                code = cluster.run(lead, words)
                if code == 0:
                    return
                if code == REFUSED:
                    raise FinalError(f"flux refused the job of {run['schedule']}")
                why = f"the submission ended with {code}"
        except (BrokenError, ReplaceError, OSError, ValueError) as error:
            why = str(error)
            print(f"minicluster: {why}; it is tried again", file=sys.stderr, flush=True)
        time.sleep(PAUSE)
    raise FinalError(f"{name}: {why}, after {START:g} s")


def main() -> None:
    """Submit the run of this pod's Job; exit with 2 and a line when that can't be."""
    file, schedule = sys.argv[1:]
    plan = json.loads(Path(file).read_text(encoding="utf-8"))
    run = run_of(schedule, plan["schedules"][schedule], os.environ["MC_JOB"], os.environ["MC_UID"], time.time())
    try:
        submit(Cluster(in_cluster()), plan["name"], run)
    except FinalError as error:
        print(f"minicluster: {error}", file=sys.stderr)
        sys.exit(REFUSED)


if __name__ == "__main__":
    main()
