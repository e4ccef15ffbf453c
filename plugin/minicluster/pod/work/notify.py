"""notify.py MODE FORMAT NAME NAMESPACE WORD…: tells a web address what happens, by a POST of JSON each.

MODE is `follow` on the lead, until its broker ends; `ended CODE` at the lead's end; `lost` on a worker whose lead is
lost. WORDS are the things that are told. The address is in a file of a Secret, and in no message: it may have a key.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import html
import http.client
import json
import os
import queue
import ssl
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Mapping, NamedTuple

#: The things, as the values have them
FAILED_THING, EMPTY_THING, ENDED_THING, LOST_THING = "jobFailed", "queueEmpty", "clusterEnded", "leadLost"
#: Seconds of a try; pauses between tries, but at the end of a pod, which waits for one
TRY_SECONDS, PAUSES, LAST_PAUSES = 10.0, (1.0, 5.0, 30.0, 120.0), (1.0, 3.0)
#: Things that may wait to be sent; characters of a text of others
WAITING_RECORDS, TOLD_CHARACTERS = 100, 500
#: Seconds until the next look, doubled each time without a change, up to the second; by which Flux may list a job later
#: than its end; for what is left at the end
SOON_SECONDS, UNCHANGED_SECONDS, LISTED_LATE_SECONDS, FINISH_SECONDS = 1.0, 60.0, 15.0, 10.0
#: Bundles of certificates, where Python's own has none
BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem")


class Where(NamedTuple):
    """Of which MiniCluster is told, and in which form."""

    form: str
    name: str
    namespace: str


def say(text: str) -> None:
    """Print a line to the log."""
    print(f"minicluster: {text}", file=sys.stderr, flush=True)


def body(where: Where, thing: str, text: str, now: float, more: Mapping[str, Any]) -> bytes:
    """Return what is sent."""
    text = f"{where.namespace}/{where.name}: {' '.join(text.split())}"[:TOLD_CHARACTERS]
    if where.form == "slack":
        return json.dumps({"text": html.escape(text, quote=False)}).encode()
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    what = {"event": thing, "cluster": where.name, "namespace": where.namespace, "time": at, "text": text}
    return json.dumps({**what, **more}).encode()


class _Stays(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: it could lead elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def opener() -> urllib.request.OpenerDirector:
    """Return what sends; it takes a proxy by the usual variables."""
    context = ssl.create_default_context()
    for bundle in BUNDLES if not context.cert_store_stats()["x509_ca"] else ():
        if Path(bundle).is_file():
            context.load_verify_locations(bundle)
            break
    return urllib.request.build_opener(_Stays(), urllib.request.HTTPSHandler(context=context))


def post(data: bytes) -> str:
    """Send it once; return why that failed, without the address, or ""."""
    try:
        address = Path(os.environ["MINICLUSTER_HOME"], "notify", "url").read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        return f"the Secret's file can't be read: {type(error).__name__}"
    if not address.startswith(("http://", "https://")):
        return "the Secret has no address that begins with http:// or https://"
    try:
        asked = urllib.request.Request(address, data, {"Content-Type": "application/json"})
        with opener().open(asked, timeout=TRY_SECONDS) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        return f"the server answered {error.code}"
    except urllib.error.URLError as error:
        return _reason(error.reason)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return _reason(error)
    return ""


def _reason(error: Any) -> str:
    # the text of another error may have a part of the address
    told = error.strerror if isinstance(error, OSError) else ""
    return str(told or type(error).__name__)


def send(data: bytes, thing: str, pauses: tuple[float, ...]) -> bool:
    """Send it, again after each pause if that failed; say so at last, and return whether it was sent."""
    why = post(data)
    for pause in pauses if why else ():
        time.sleep(pause)
        why = post(data)
        if not why:
            break
    if why:
        say(f"{thing} could not be told (notify.events), {1 + len(pauses)} tries: {why}")
    return not why


class Sender:
    """Sends one after the other, in a thread; what comes when many wait is left out."""

    def __init__(self, where: Where) -> None:
        self.where, self.waiting = where, queue.Queue(WAITING_RECORDS)  # type: Where, queue.Queue[tuple[str, bytes]]
        self.left_out = 0
        threading.Thread(target=self._send, daemon=True).start()

    def tell(self, thing: str, text: str, **more: Any) -> None:
        """Send it soon."""
        try:
            self.waiting.put_nowait((thing, body(self.where, thing, text, time.time(), more)))
        except queue.Full:
            self.left_out += 1
            say(f"{self.left_out} things are left out (notify.events): {WAITING_RECORDS} wait to be told")

    def _send(self) -> None:
        while True:
            thing, data = self.waiting.get()
            send(data, thing, PAUSES)
            self.waiting.task_done()

    def finish(self, seconds: float) -> None:
        """Wait until all is sent, for some seconds at most."""
        end = time.monotonic() + seconds
        while self.waiting.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.05)


class Follower:
    """Looks at the jobs that have ended since it began."""

    def __init__(self, handle: Any, sender: Sender, things: list[str]) -> None:
        self.handle, self.sender, self.things = handle, sender, things
        # jobs may end before this program is there
        self.since = float(handle.attr_get("broker.starttime"))
        self.known: set[int] = set()
        self.ended = self.failed = 0

    def look(self) -> None:
        """Tell of failed jobs, and of an empty queue. Raises OSError."""
        from flux.job import JobID
        from state import exit_code, jobs

        begin = time.time()
        attributes = ["name", "waitstatus", "result", "exception_type", "exception_note", "nodelist", "t_inactive"]
        listed = jobs(self.handle, "inactive", attributes, self.since)
        new = [job for job in listed if job["id"] not in self.known]
        self.known, self.since = {job["id"] for job in listed}, begin - LISTED_LATE_SECONDS
        for job in new:
            self.ended += 1
            # RFC 30: completed, failed, canceled, timeout
            if job["result"] not in (2, 8):
                continue
            self.failed += 1
            code = exit_code(job["waitstatus"]) if "waitstatus" in job else None
            why = f"{job.get('exception_type', '')}: {job.get('exception_note', '')}".strip(": ")
            how = why or f"exit code {code}"
            about = {"id": JobID(job["id"]).f58plain, "name": job["name"], "exitCode": code, "reason": why}
            if FAILED_THING in self.things:
                text = f"job {about['id']} ({job['name']}) has failed: {how}"
                self.sender.tell(FAILED_THING, text, job={**about, "nodes": job.get("nodelist", "")})
        if self.ended and not self.handle.rpc("job-manager.stats-get", {}, nodeid=0).get()["active_jobs"]:
            if EMPTY_THING in self.things:
                counts = {"ended": self.ended, "failed": self.failed}
                self.sender.tell(
                    EMPTY_THING, f"the queue is empty: {self.ended} ended, {self.failed} failed", jobs=counts
                )
            self.ended = self.failed = 0


def follow(where: Where, things: list[str]) -> None:
    """Tell what happens until the broker ends."""
    import flux
    from changes import PAUSE_SECONDS, Changes

    class Ends(Changes):
        """Waits for the ends of jobs."""

        def read(self, stream: Any) -> bool:
            told = stream.get()
            # before flux-core 0.61 each event is in another place
            return any(event.get("entry", event)["name"] == "clean" for event in told["events"])

    # the work comes first
    os.nice(10)
    sender = Sender(where)
    try:
        follower, changes = Follower(flux.Flux(), sender, things), Ends(flux.Flux(), ["ends"])
        most = SOON_SECONDS
        while True:
            begin = time.monotonic()
            changes.wait(PAUSE_SECONDS, most)
            follower.look()
            most = SOON_SECONDS if time.monotonic() < begin + most else min(2 * most, UNCHANGED_SECONDS)
    except OSError:
        sender.finish(FINISH_SECONDS)
        sys.exit(1)


def main(mode: str, code: str, where: Where, things: list[str]) -> None:
    """Do what the mode says."""
    if mode == "follow" and {FAILED_THING, EMPTY_THING}.intersection(things):
        follow(where, things)
    elif mode == "ended" and ENDED_THING in things:
        text = f"the cluster has ended, exit code {code}"
        send(body(where, ENDED_THING, text, time.time(), {"exitCode": int(code)}), ENDED_THING, LAST_PAUSES)
    elif mode == "lost" and LOST_THING in things:
        text = "the lead is lost; Kubernetes replaces it if it can"
        send(body(where, LOST_THING, text, time.time(), {}), LOST_THING, PAUSES)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Where(*sys.argv[3:6]), sys.argv[6:])
