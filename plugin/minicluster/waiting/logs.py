"""The log of the lead or another node, which goes on in the pod that replaces it, and the log of its broker.

Each line is passed once, though a log is read more than once.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import NamedTuple

from minicluster.cluster.find import Host, find_host, lead_of
from minicluster.cluster.job import end_of, read_job
from minicluster.cluster.lead import Node, end_with
from minicluster.cluster.pods import FIND_TOOLS
from minicluster.cluster.reasons import pod_with_reason
from minicluster.cluster.states import CLUSTER_TONES
from minicluster.console.streams import Say
from minicluster.console.terminal import StyledText
from minicluster.errors import ChoiceError, KubernetesError, StateError
from minicluster.kube.port import KubePort
from minicluster.lead.ask import SilentError, ask
from minicluster.status.lookup import Cluster, find, refusals, refuse_forbidden
from minicluster.status.reporter import StateReporter, describe, end_in_words, ended, news, see
from minicluster.waiting.ready import absence
from minicluster.waiting.wait import StartWatch, looks, looks_at

#: Prints the files, the older one first. Takes the folder of Flux
PRINT_FILES = (
    f'{FIND_TOOLS}for file in broker.log.old broker.log; do cat "$0/config/run/$file" 2>/dev/null || true; done'
)
#: The time before each line: the second, its fraction, the time zone
STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|[-+]\d\d:\d\d) ")
#: What may be the begin of a time
CUT_STAMP = re.compile(rb"[-\d:.TZ+]*")
Time = tuple[bytes, bytes]


class LogPart(NamedTuple):
    """A part of a line without its time; the last one ends with the line's end."""

    text: bytes
    is_note: bool  #: whether it is a whole line of the kubelet's own, which has no time


def show(cluster: Cluster, host: Host, container: str) -> Iterator[LogPart]:
    """Yield the log of a host, or else of the last pod that was this host.

    Raises StateError when there is none, ChoiceError without such a container.
    """
    with refusals():
        node = cluster.read_node(host)
        if node is None:
            raise StateError(f"there is no log: {_absence(cluster, host)}")
    yield from _PodLog(cluster.kubernetes, node, container).new(follow=False)


def find_log(kubernetes: KubePort, name: str, text: str) -> tuple[Cluster, Host]:
    """Return a MiniCluster and its host that a text means, "" for the lead. Raises StatusError, ChoiceError."""
    cluster = find(kubernetes, name)
    return Cluster(kubernetes, cluster.name), find_host(cluster, text) if text else lead_of(cluster.name)


def _absence(cluster: Cluster, host: Host) -> str:
    """Return why a host has no pod. Raises KubernetesError."""
    job, kubernetes = cluster.read_job(), cluster.kubernetes
    end, its_job = end_in_words(kubernetes, cluster.name, job, None), read_job(job) if job else None
    if end:
        return ended(cluster.name, end, None)
    if host.is_lead or (its_job and its_job.is_suspended):
        return ": ".join(describe(kubernetes, see(kubernetes, cluster.name, job, None)))
    return absence(kubernetes, host, kubernetes.get("job", host.job), None)[0]


def follow(cluster: Cluster, host: Host, container: str, say: Say) -> Iterator[LogPart]:
    """Yield the same, and the logs of the pods that replace it, until the MiniCluster ends. Raises the same."""
    yield from _of_lead(cluster, container, say) if host.is_lead else _of_node(cluster, host, container, say)


def _of_lead(cluster: Cluster, container: str, say: Say) -> Iterator[LogPart]:
    """Yield the log of each lead; say what state a MiniCluster without one is in, and how it ended."""
    kubernetes, name = cluster.kubernetes, cluster.name
    log, tell = FollowedLog(kubernetes, container, "the lead", say), StateReporter(kubernetes, name, say)
    check = StartWatch(name)
    with tell.waiting():
        for job, lead in looks(cluster, say):
            end, is_running = end_with(name, job, lead), bool(lead and lead.pod.phase == "Running")
            if is_running and not end:
                tell.forget()
                tell.quietly("Running")
            yield from log.new(lead, is_over=bool(end))
            if end:
                how = end_in_words(kubernetes, name, job, lead) or end
                say(StyledText(ended(name, how, lead), CLUSTER_TONES[how[0]]))
                return
            if not is_running:
                check(tell(job, lead))


def _of_node(cluster: Cluster, host: Host, container: str, say: Say) -> Iterator[LogPart]:
    """Yield the log of a host's pods until their Job ends, and say why it has none."""
    log, told = FollowedLog(cluster.kubernetes, container, str(host), say), ""
    check = StartWatch(cluster.name)
    for job, node in looks_at(cluster, host, say):
        end = end_of(host.job, job)
        yield from log.new(node, is_over=bool(end))
        # the Job of a pod that has succeeded is about to end
        is_quiet = node and node.pod.phase in ("Running", "Succeeded") and not end
        why = "" if is_quiet else absence(cluster.kubernetes, host, job, node)[0]
        if why and news(why) != told:
            say(why)
        told = news(why)
        if end:
            return
        check.see(pod_with_reason(cluster.kubernetes, node.pod) if node else None, str(host))


class FollowedLog:
    """The log of a node, in all of its pods."""

    def __init__(self, kubernetes: KubePort, container: str, who: str, say: Say) -> None:
        """Read nothing yet; ``who`` is the node in words."""
        self._kubernetes, self._container, self._who, self._say = kubernetes, container, who, say
        self._log: _PodLog | None = None

    def new(self, node: Node | None, *, is_over: bool) -> Iterator[LogPart]:
        """Yield new lines of the node's present pod, until the connection ends. Raises StateError."""
        if node and (self._log is None or self._log.uid != node.uid):
            if self._log:
                # the old pod's last lines, from after the connection broke
                yield from self._log.new(follow=True)
                yield from self._log.line_end()
                self._say(f"{self._who} was replaced: the log goes on with pod {node.pod.name}")
            self._log = _PodLog(self._kubernetes, node, self._container)
        if self._log and node and node.pod.phase != "Pending":
            yield from self._log.new(follow=not is_over)


class _PodLog:
    """The log of one pod, no line twice."""

    def __init__(self, kubernetes: KubePort, node: Node, container: str) -> None:
        self.uid = node.uid
        self._kubernetes, self._pod, self._container = kubernetes, node.pod.name, container or node.pod.runner
        self._new, self._last = NewLines(), b"\n"

    def line_end(self) -> Iterator[LogPart]:
        """Yield what a line lacks that was cut off."""
        if not self._last.endswith(b"\n"):
            yield LogPart(b"\n", is_note=False)

    def new(self, *, follow: bool) -> Iterator[LogPart]:
        """Yield what was not yielded before, until the connection ends, or at the deadline.

        With ``follow`` it is no error if the pod is gone, or has not begun. Raises StateError.
        """
        try:
            with closing(self._kubernetes.log(self._pod, self._container, follow=follow, times=True)) as data:
                for part in self._new.of(data):
                    self._last = part.text
                    yield part
        except KubernetesError as error:
            if "is not valid for pod" in error.reason:
                raise ChoiceError(f"there is no log: {error.reason}") from None
            refuse_forbidden(error)
            if not follow:
                raise StateError(f"there is no log: {error.reason}") from None


def read_broker_log(cluster: Cluster, host: Host) -> str:
    """Return what the broker of a host has logged in its pod.

    Raises StateError when the pod can't be asked, or has no such file.
    """
    with refusals():
        node = cluster.read_node(host)
        if node is None or not node.is_running:
            job = cluster.kubernetes.get("job", host.job)
            why = absence(cluster.kubernetes, host, job, node)[0] if job else f"{host} has no pod"
            raise StateError(f"the log of its broker can't be read: {why}")
        try:
            text = ask(cluster.kubernetes, node.pod, "log of a broker", ("/bin/sh", "-c", PRINT_FILES, node.home))
        except SilentError as error:
            raise StateError(f"the log of its broker can't be read: {error.reason}") from None
    if not text:
        raise StateError(f"{host} has no file of its broker's log: the log has what the broker says")
    return text


class NewLines:
    """Finds what it has not seen before, by the times before the lines.

    Lines may have one time (CRI-O gives it to all that it reads at once), and a line of standard error may stand after
    a later one of standard output. So what is known is counted from the first line with the latest time: none before it
    has that time, and a log that the kubelet has cut at its begin may still have it.
    """

    def __init__(self) -> None:
        self._latest: Time = (b"", b"")
        self._count = 0  #: of lines from the first one with that time on
        self._length = 0  #: of what is known of the last one
        self._notes: list[bytes] = []  #: that came after it

    def of(self, data: Iterable[bytes]) -> Iterator[LogPart]:
        """Yield what is new in a reading from the log's begin, which comes in parts of any size."""
        left, is_latest, notes = self._count, False, list(self._notes)
        begin, skip = b"", None  # bytes that are known of the line that has begun; None before its time is whole
        for part in _parts_of_lines(data):
            text = part
            if skip is None:
                begin += part
                match = STAMP.match(begin)
                if not match and not begin.endswith(b"\n"):
                    continue
                text, begin = begin, b""
                if not match:
                    yield from self._note(text, notes)
                    continue
                text, time = text[match.end() :], (match[1], (match[2] or b"").ljust(9, b"0"))
                if left and time <= self._latest:
                    is_latest = is_latest or time == self._latest
                    left -= is_latest
                    skip = sys.maxsize if left else self._length
                else:
                    left, skip = 0, 0
                    notes.clear()
                    self._begin(time)
            if len(text) > skip:
                self._length += len(text) - skip
                yield LogPart(text[skip:], is_note=False)
            skip = None if part.endswith(b"\n") else max(0, skip - len(text))
        if not CUT_STAMP.fullmatch(begin):
            yield from self._note(begin, notes)

    def _begin(self, time: Time) -> None:
        self._count = 1 if time > self._latest else self._count + 1
        self._latest, self._length = max(time, self._latest), 0
        self._notes.clear()

    def _note(self, text: bytes, known: list[bytes]) -> Iterator[LogPart]:
        """Yield a note unless an earlier reading had it."""
        if text not in known:
            self._notes.append(text)
            yield LogPart(text, is_note=True)


def _parts_of_lines(data: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the parts, cut after each line end."""
    for part in data:
        yield from re.findall(rb"[^\n]*\n|[^\n]+", part)
