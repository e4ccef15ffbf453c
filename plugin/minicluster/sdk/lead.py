"""The lead as the SDK uses it: waited for, with a line in the log; its ports and logs; flux commands there."""

import logging
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import cache, partial
from typing import cast

from minicluster import settings
from minicluster.cluster.lead import Lead
from minicluster.console import lines
from minicluster.errors import AwayError, DeadlineError, ToolError
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.port import Forward, KubePort, PodConnection
from minicluster.lead.ask import read
from minicluster.sdk.exceptions import ApiError, ArgumentError, translated
from minicluster.sdk.jobs import JobOptions
from minicluster.sdk.outcome import Result
from minicluster.status.lookup import Cluster
from minicluster.waiting.logs import LogPart
from minicluster.waiting.wait import ready_lead

#: Seconds in which there must be a lead
LEAD_SECONDS = 60.0


class LeadPort:
    """A port of the lead; the connections to one pod share a kubectl."""

    def __init__(self, kube: KubePort, name: str, port: int) -> None:
        """Raise ArgumentError for a number that is no port's."""
        if not isinstance(port, int) or not 0 < port < 65536:
            raise ArgumentError(f"port={port!r}: give a number from 1 to 65535")
        self._kube, self._name, self._port = kube, name, port
        self._forward: Forward | None = None
        self._lock = threading.RLock()

    def connect(self) -> PodConnection:
        """Wait for the lead, and return a new connection. Raises SdkError."""
        with translated(), self._lock:
            pod = wait_for_lead(self._kube, self._name, LEAD_SECONDS).pod.name
            if self._forward and self._forward.is_on and self._forward.pod == pod:
                with suppress(AwayError):  # it has just ended
                    return self._forward.connect()
            self.close()
            self._forward = self._kube.forward(pod, self._port)
            return self._forward.connect()

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            if self._forward:
                self._forward.close()
                self._forward = None


def run_on_lead(kube: KubePort, name: str, words: Sequence[str], seconds: float | None) -> Result:
    """Wait for the lead, and run a flux command there, within some seconds in all; None sets no limit.

    Raises DeadlineError, EndError, AccessError, KubernetesError.
    """
    kube = kube.within(seconds)
    lead = wait_for_lead(kube, name)
    with closing(kube.run(lead.pod.name, lead.pod.runner, lead.flux_words(*words))) as channel:
        out = read(channel, None if seconds is None else kube.left(math.inf))
    if out is None:
        what = " ".join(["flux", *words[:1]])
        raise DeadlineError(f"{what} on {name} has not ended within {seconds:g} s: give it a longer timeout")
    return Result(channel.exit_code or 0, out.decode(errors="replace"), channel.stderr.decode(errors="replace"))


#: Seconds of a wait that nothing is said about, and between two looks
QUIET_SECONDS = 10.0
LOG = logging.getLogger("minicluster.sdk")


def wait_for_lead(
    kube: KubePort,
    name: str,
    seconds: float | None = None,
    stop: threading.Event | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Lead:
    """Return the lead as soon as it is ready. A MiniCluster that sleeps is woken.

    ``note`` gets each state that it is in meanwhile, in the words of `minicluster wait`; the first time the state is
    logged, too, as a warning.
    Raises EndError; DeadlineError when the seconds are over, or ``stop`` is set; AccessError, KubernetesError.
    """
    cluster = Cluster(kube.within(seconds, stop), name)
    lead = cluster.read_lead()
    # mostly this one request is enough
    if lead and lead.is_ready:
        return lead
    warn_once = cache(partial(LOG.warning, "waiting for %s"))

    def log(text: str) -> None:
        note(text)
        warn_once(text)

    return ready_lead(cluster, log, quiet=QUIET_SECONDS)


@translated()
def with_folder(kube: KubePort, name: str, options: JobOptions) -> JobOptions:
    """Bring the folder that goes along with a job to the nodes; return options whose job runs there.

    Raises ArgumentError, EndedError, ApiError; OSError for its files.
    """
    folder = options.get("upload")
    if not folder:
        if options.get("packages"):
            raise ArgumentError("packages without upload: they are in a file of that folder")
        return options
    if options.get("working_dir"):
        raise ArgumentError(f"upload={folder!r} is where the job runs: leave working_dir out")
    from minicluster.exec.upload import Upload  # noqa: PLC0415 - few programs need it

    upload = Upload(str(folder), packages=options.get("packages", ""))
    upload.check()
    # the SDK has no other
    brought = upload.bring(cast("Kubernetes", kube), wait_for_lead(kube, name), LOG.info)
    environment = {**brought.environment, **(options.get("environment") or {})}
    return {**options, "upload": "", "packages": "", "working_dir": brought.path, "environment": environment}


def settled(context: str, namespace: str) -> Kubernetes:
    """Return the place that is meant now; an empty name is that of the settings, the kubeconfig or the pod.

    Raises ApiError without kubectl; KubernetesError without a context.
    """
    try:
        # Ctrl-C in a terminal or a notebook is for the program: it may go on
        where = Kubernetes(context or settings.text("context"), namespace or settings.text("namespace"), is_apart=True)
        return where.settled()
    except ToolError as error:
        raise ApiError(str(error)) from None


def lines_of(parts: Iterable[LogPart]) -> Iterator[str]:
    """Yield the lines of a log without their ends; what the kubelet adds is logged as a warning."""
    cutter = lines.Cutter()
    for part in parts:
        if part.is_note:
            LOG.warning("the kubelet says of a log: %s", _text(part.text))
        else:
            yield from map(_text, cutter.take(part.text))
    yield from map(_text, cutter.end())


def _text(line: bytes) -> str:
    return line.removesuffix(b"\n").decode(errors="replace")
