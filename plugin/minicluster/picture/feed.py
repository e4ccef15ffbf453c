"""Feeds a timeline: by a conversation with the lead, and by a watch of the Job and its pods, until it is stopped."""

import json
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from minicluster.cluster.find import LiveCluster, broker_pods, live_cluster
from minicluster.cluster.pods import Pod
from minicluster.cluster.reasons import with_reasons
from minicluster.cluster.troubles import sizes_told
from minicluster.console import streams
from minicluster.errors import AbsentError, KubernetesError, MiniClusterError
from minicluster.kube.outage import RETRY_SECONDS
from minicluster.kube.port import KubePort
from minicluster.lead import ask
from minicluster.picture.timeline import Timeline
from minicluster.status.document import answered
from minicluster.status.lookup import Cluster, find
from minicluster.status.reported import PICTURE_JOBS, find_jobs

#: Seconds between two looks at Kubernetes, at least and at most
FEED_PAUSE_SECONDS, FEED_IDLE_SECONDS = 1.0, 60.0
#: Why nothing was heard of the lead at first
UNASKED = "it is asked when it is ready"
#: What is said of an error that nobody expects
OWN_ERROR = "the picture has a bug, please report it: {!r}"
#: Seconds that a request has to end when the feed is closed
CLOSE_SECONDS = 3.0


def sizes(kube: KubePort, cluster: LiveCluster) -> list[tuple[float, str]]:
    """Return when and how the agent has changed the size, as far as there are events, and the user may read them."""
    # an earlier MiniCluster may have had the name
    since = cluster.job.created.timestamp() if cluster.job else 0.0
    with suppress(KubernetesError):
        told = sizes_told(kube.select("events", "", "involvedObject.kind=Job"), cluster.name)
        return [each for each in told if each[0] >= since]
    return []


def described(cluster: LiveCluster, status: str, silence: str, ahead_seconds: float = 0.0) -> dict[str, Any]:
    """Return the document of `minicluster status` by the lead's last answer; where it is "", why there is none.

    The lead's clock is so far ahead of ours.
    """
    now = datetime.now(UTC) + timedelta(seconds=ahead_seconds)

    def asked(_: Pod) -> str:
        if not status:
            raise ask.SilentError(silence)
        return status

    return dict(streams.pasteable(answered(cluster, now, asked)))


class Reader:
    """Reads what observe.py tells into a timeline."""

    def __init__(self, timeline: Timeline) -> None:
        """Begin with the past, which comes first."""
        self.timeline = timeline
        self.status = ""  #: the last one, as `read_answer` takes it
        self._past: list[Mapping[str, Any]] | None = []

    def take(self, told: Mapping[str, Any], now: float) -> None:
        """Take an object."""
        if "jobs" in told and self._past is not None:
            self._past += told["jobs"]
        elif "jobs" in told:
            self.timeline.take_jobs(told["jobs"])
        if "past" in told and self._past is not None:
            self.timeline.take_past(self._past, now)
            self._past = None
        if "nodes" in told:
            self.timeline.take_nodes(told["nodes"], told.get("hosts", ()), told.get("cores", {}))
        if "use" in told:
            self.timeline.take_use(told["use"], told["now"])
        if "status" in told:
            self.status = json.dumps(told["status"])
            self.timeline.told = told["now"]
            self.timeline.ahead_seconds = told["now"] - now


class Feed:
    """Feeds a timeline in threads of its own; who reads the timeline holds the lock."""

    def __init__(self, kube: KubePort, name: str) -> None:
        """Begin to feed the timeline of a MiniCluster, which is given by its own name."""
        self.lock, self.timeline = threading.Lock(), Timeline(name)
        self._describing = threading.Lock()  # both threads do: what is newer comes last
        self._stop, self._look = threading.Event(), threading.Event()
        self._kube = kube.within(None, self._stop)
        self._near, self._far = socket.socketpair()
        self._near.setblocking(False)
        self._found: LiveCluster | None = None
        self._status, self._silence = "", UNASKED
        self._has_recalled, self._lacking = False, ""
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._watch, self._listen)]
        for thread in self._threads:
            thread.start()

    @property
    def is_complete(self) -> bool:
        """Whether it is known how all is: from the lead, or that there is none."""
        status = self.timeline.status
        if self.timeline.is_over:
            return self._has_recalled
        # what only the lead tells; which nodes are up comes last
        nodes = status.get("nodes")
        if nodes:
            return len(self.timeline.nodes.up) >= int(nodes["up"])
        return status.get("state", "Unknown") not in ("Running", "Unknown")

    def close(self) -> None:
        """Stop, and wait for the end of the requests."""
        self._stop.set()
        self._look.set()
        with suppress(OSError):
            self._far.send(b"!")
        for thread in self._threads:
            thread.join(CLOSE_SECONDS)
        if not any(thread.is_alive() for thread in self._threads):
            for one in (self._near, self._far):
                one.close()

    # Kubernetes -----------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Look at the objects whenever they may have changed."""
        name = self.timeline.name
        while not self._stop.is_set():
            try:
                for job, pods in self._kube.sights(name, broker_pods(name), FEED_IDLE_SECONDS):
                    if self._stop.is_set():
                        return
                    # `find` raises the error for a MiniCluster that is gone
                    live = live_cluster(self._kube, name, job, pods) or find(self._kube, name)
                    self._see(with_reasons(self._kube, live))
                    self._stop.wait(FEED_PAUSE_SECONDS)
            except AbsentError as error:
                self._found = None
                self._fail(str(error), {**self.timeline.status, "state": "Gone", "why": ""})
            except MiniClusterError as error:
                self._fail(f"Kubernetes does not tell how it is now: {error}")
            except Exception as error:  # the thread must live on: the page would stand still without a word
                self._fail(OWN_ERROR.format(error))
            self._stop.wait(RETRY_SECONDS)

    def _see(self, live: LiveCluster) -> None:
        told = sizes(self._kube, live)
        self._found = live
        self._describe()
        with self.lock:
            if live.job:
                self.timeline.take_size(live.job.size, self.timeline.clock(time.time()), told)
        self._look.set()

    def _fail(self, trouble: str, status: Mapping[str, Any] | None = None) -> None:
        with self.lock:
            self.timeline.take_status(status or {}, trouble)

    def _describe(self) -> None:
        """Give the timeline the status by all that is known."""
        with self._describing:
            if self._found is None:
                return
            description = described(self._found, self._status, self._silence, self.timeline.ahead_seconds)
            if description["state"] == "Unknown" and self._silence == UNASKED:
                return  # it is asked at this moment
            with self.lock:
                self.timeline.take_status(description, self._lacking)

    # the lead -------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Talk to the lead whenever there is one."""
        while not self._stop.is_set():
            has_lead = True
            try:
                has_lead = self._talk()
                if not has_lead and self.timeline.is_over and not self._has_recalled:
                    self._recall()
            except (MiniClusterError, ValueError) as error:
                self._silence = str(error)
            except Exception as error:
                self._silence = OWN_ERROR.format(error)
            if has_lead:
                self._status = ""
                self._describe()
                self._stop.wait(RETRY_SECONDS)
            else:
                # Kubernetes tells when it comes
                self._look.clear()
                self._look.wait(FEED_IDLE_SECONDS)

    def _recall(self) -> None:
        """Take the jobs of a MiniCluster that has ended from their report, unless its lead has told them before."""
        with self.lock:
            is_known = bool(self.timeline.jobs.jobs)
        try:
            known = find_jobs(self._kube, self.timeline.name, lambda _: None, PICTURE_JOBS) if not is_known else None
            with self.lock:
                if known and known.rows:
                    self.timeline.take_past(known.rows, time.time())
        except MiniClusterError as error:
            self._lacking = str(error)
        self._has_recalled = True
        self._describe()

    def _talk(self) -> bool:
        """Talk to the lead until it is stopped; return False if there is none. Raises KubernetesError, BrokenError."""
        lead = Cluster(self._kube, self.timeline.name).read_lead()
        if not (lead and lead.is_ready):
            return False
        with ask.talk(self._kube, lead, "observe", str(PICTURE_JOBS)) as conversation:
            reader = Reader(self.timeline)
            while not self._stop.is_set():
                for reply in conversation.replies(self._near):
                    with self.lock:
                        reader.take(reply, time.time())
                if reader.status not in ("", self._status):
                    self._status = reader.status
                    self._describe()
        return True
