"""A job on the lead: submitted once, its output copied to a file, and what Flux knows of it when it has ended."""

import io
import json
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import IO, Any

from minicluster.cluster.lead import Lead
from minicluster.console import lines
from minicluster.console.streams import Say
from minicluster.errors import KubernetesError, StateError
from minicluster.kube.outage import Outage
from minicluster.lead.ask import LateError, SilentError, ask
from minicluster.status.lookup import GOES_ON, Cluster, refusals
from minicluster.status.reported import Row, ask_jobs
from minicluster.status.reporter import ended
from minicluster.waiting.lead_log import Write
from minicluster.waiting.wait import StartWatch, is_ready, look_for

#: Runs a command with one stream for its output and its errors: those of kubectl stay apart
MERGED = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh")
#: Seconds until a lead that did not answer is asked again
LEAD_RETRY_SECONDS = 0.5


class PassedOn(io.BytesIO):
    """Passes on what is written to it; after a step back to its begin, only what comes after that."""

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._pass_on, self._count, self._place = write, 0, 0

    def seek(self, place: int, _whence: int = 0) -> int:
        """Step back."""
        self._place = place
        return place

    def truncate(self, size: int | None = None) -> int:
        """Keep what was passed on."""
        return size or 0

    def write(self, data: bytes) -> int:  # type: ignore[override]  # no other buffer comes
        """Pass on what is new."""
        self._place += len(data)
        if new := data[max(0, len(data) - max(0, self._place - self._count)) :]:
            self._pass_on(new)
        self._count = max(self._count, self._place)
        return len(data)


def run_job(cluster: Cluster, words: Sequence[str], output: IO[bytes], say: Say) -> tuple[Row, list[Any]]:
    """Submit a job, copy its output until it has ended, and return what the report says of it, and its events.

    A connection that breaks is made again, and the output copied anew. Raises StateError for a job that is refused or
    lost, for a MiniCluster that ends or can't start, and at the deadline.
    """
    lead = ready_lead(cluster, say)
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
        lead = ready_lead(cluster, say)


def ready_lead(cluster: Cluster, say: Say) -> Lead:
    """Return the lead as soon as it is ready. Raises StateError when it won't be, and at the deadline."""
    end, lead = look_for(cluster, is_ready, say, StartWatch(cluster.name))
    if lead is None or end:
        raise StateError(ended(cluster.name, end or ("Gone", ""), lead))
    return lead


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
    return job, [json.loads(line) for line in lines.split(text)]
