"""A job on the lead: submitted once, its output copied to a file, and what Flux knows of it when it has ended."""

import io
import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import IO, Any

from minicluster.cluster.lead import Lead
from minicluster.console import lines
from minicluster.console.streams import Say
from minicluster.errors import KubernetesError, StateError
from minicluster.kube.outage import RETRY_SECONDS, Outage
from minicluster.kube.port import KubePort
from minicluster.lead.ask import LateError, SilentError, ask
from minicluster.status.lookup import GOES_ON, Cluster, refusals
from minicluster.status.reported import Row, ask_jobs
from minicluster.status.table import left_at
from minicluster.waiting.logs import FollowedLog
from minicluster.waiting.wait import StartWatch, ready_lead

#: Runs a command with one stream for its output and its errors: those of kubectl stay apart
MERGED = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh")
#: Seconds until a lead that did not answer is asked again
LEAD_RETRY_SECONDS = 0.5


#: Gets the bytes of a log
Write = Callable[[bytes], object]
#: Seconds for the rest of a log whose container has ended
LAST_LINES_SECONDS = 10.0
#: Seconds for a thread that is told to stop
LEAVE_SECONDS = 2.0


class PassedOn(io.BytesIO):
    """Passes on what is written to it; after a step back to its begin, only what comes after that."""

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._pass_on, self._count, self._place = write, 0, 0

    def seek(self, place: int, _whence: int = 0) -> int:
        """Step back."""
        self._place = place
        return place

    def write(self, data: bytes) -> int:  # type: ignore[override]  # no other buffer comes
        """Pass on what is new."""
        if new := data[max(0, self._count - self._place) :]:
            self._pass_on(new)
        self._place += len(data)
        self._count = max(self._count, self._place)
        return len(data)


def run_job(cluster: Cluster, words: Sequence[str], output: IO[bytes], say: Say) -> tuple[Row, list[Any]]:
    """Submit a job, copy its output until it has ended, and return its record with its ``end``, and its events.

    A connection that breaks is made again, and the output copied anew. Raises StateError for a job that is refused or
    lost, for a MiniCluster that ends or can't start, and at the deadline.
    """
    lead = ready_lead(cluster, say, StartWatch(cluster.name))
    try:
        said = ask(cluster.kubernetes, lead.pod, "submission", lead.flux_words("submit", *words))
    except LateError:
        _check_time(cluster)
        raise
    except (KubernetesError, SilentError) as error:
        _check_time(cluster)
        raise StateError(f"the job of {cluster.name} can't be submitted: {error.reason}") from None
    # as the report has it, whatever the locale of the lead
    name, outage = said.strip().replace("ƒ", "f"), Outage(say)
    while True:
        _copy(cluster, lead, name, output)
        _check_time(cluster)
        try:
            with refusals():
                answer = _ask(cluster, lead, name)
        except LateError:
            _check_time(cluster)
        except SilentError as error:
            if not outage.bears(error.reason):
                raise StateError(f"{error.reason}: {GOES_ON}") from None
        else:
            outage.end()
            if answer:
                return answer
        time.sleep(LEAD_RETRY_SECONDS)
        lead = ready_lead(cluster, say, StartWatch(cluster.name))


def _copy(cluster: Cluster, lead: Lead, name: str, output: IO[bytes]) -> None:
    """Copy the output of a job from its begin, until it ends, the connection breaks, or the deadline is over."""
    output.seek(0)
    output.truncate()
    words = (*MERGED, *lead.flux_words("job", "attach", name))
    # the lead is asked next, which says what is wrong
    with (
        suppress(KubernetesError),
        closing(cluster.kubernetes.run(lead.pod.name, lead.pod.runner, words)) as channel,
    ):
        while channel.wait(None, _left(cluster)) and (data := channel.read()) is not None:
            output.write(data)
            output.flush()


def _left(cluster: Cluster) -> float | None:
    end = cluster.kubernetes.deadline
    return None if end is None else max(0.0, end - time.monotonic())


def _check_time(cluster: Cluster) -> None:
    """Raise StateError at the deadline."""
    if cluster.kubernetes.is_late:
        raise StateError(f"{cluster.name} in {cluster.kubernetes}: gave up after {cluster.kubernetes.limit:g} s")


def _ask(cluster: Cluster, lead: Lead, name: str) -> tuple[Row, list[Any]] | None:
    """Return a job that has ended, and its events; None while it runs.

    Raises what `ask` raises; StateError if the lead does not know the job.
    """
    known, _, _ = ask_jobs(cluster.kubernetes, lead.pod)
    job = next((row for row in known.rows if row["id"] == name), None)
    if job is None:
        raise StateError(f"job {name} of {cluster.name} is lost: the lead was replaced, and its queue was not kept")
    if job["state"] != "INACTIVE":
        return None
    words = lead.flux_words("job", "eventlog", "--format=json", name)
    text = ask(cluster.kubernetes, lead.pod, "events of a job", words)
    return {**job, "end": left_at(job)}, [json.loads(line) for line in lines.split(text)]


class LeadLog:
    """Writes the log of each lead from its first line on. Without a log the rest goes on, and why is said."""

    def __init__(self, kubernetes: KubePort, write: Write, say: Say) -> None:
        self._stop = threading.Event()
        self._log = FollowedLog(kubernetes.within(None, self._stop), "", "the lead", say)
        self._write, self._say = write, say
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._uid, self._ended = "", 0.0  # of the pod that was read last, and when its log ended
        self.has_begun = False  #: whether a line was there

    def close(self) -> None:
        """Leave the log."""
        self._stop.set()
        if self._thread:
            self._thread.join(LEAVE_SECONDS)

    def see(self, lead: Lead | None) -> None:
        """Follow the log of a lead that has begun. Raises the error of a line that could not be written."""
        if isinstance(self._error, StateError):
            return
        if self._error:
            raise self._error
        is_read = self._thread and self._thread.is_alive()
        # most often a log ends because its container has, which Kubernetes tells a moment later
        is_over = lead and lead.uid == self._uid and time.monotonic() - self._ended < RETRY_SECONDS
        if lead and lead.pod.phase != "Pending" and not (is_read or is_over):
            self._thread = threading.Thread(target=self._follow, args=(lead,), daemon=True)
            self._thread.start()

    def finish(self, lead: Lead | None) -> None:
        """Write the rest of the log of a lead that has ended. Raises the same as `see`."""
        if self._thread:
            self._thread.join(LAST_LINES_SECONDS)
            if self._thread.is_alive():
                # the connection hangs: two threads must not read one log
                self.close()
        if not self._error:
            self._read(lead, is_over=True)
        self.see(None)
        if self._error:
            self._say(str(self._error))

    def _follow(self, lead: Lead) -> None:
        self._read(lead, is_over=False)
        self._uid, self._ended = lead.uid, time.monotonic()

    def _read(self, lead: Lead | None, *, is_over: bool) -> None:
        try:
            for part in self._log.new(lead, is_over=is_over):
                if part.is_note:
                    self._say(part.text.decode(errors="replace"))
                    continue
                self.has_begun = True
                self._write(part.text)
        except Exception as error:
            # the main thread raises it
            self._error = error
