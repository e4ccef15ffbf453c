"""The log of the lead or another node; it goes on when another pod replaces the node's."""

import logging
from collections.abc import Iterator
from contextlib import closing

from urllib3.exceptions import HTTPError

from minicluster import lines
from minicluster.cluster.hosts import lead_of
from minicluster.cluster.node import Node
from minicluster.live.loglines import NewLines
from minicluster.sdk.client import KubeClient
from minicluster.sdk.exceptions import ApiError, ArgumentError, EndedError
from minicluster.sdk.leads import find_node, host_of, leads, nodes


def logs(kube: KubeClient, name: str, container: str, *, node: str = "", follow: bool) -> Iterator[str]:
    """Yield the lines of a container of a node, by default the lead; with ``follow`` also new lines, and of later pods.

    Raises ApiError, ArgumentError, NotFoundError.
    """
    host = host_of(kube, name, node) if node else lead_of(name)
    if not follow:
        last = find_node(kube, host)
        yield from _PodLog(kube, last, container).lines(follow=False) if last else ()
        return
    log: _PodLog | None = None
    try:
        for found in leads(kube, name, None) if host.is_lead else nodes(kube, host):
            if log is None or log.uid != found.uid:
                yield from log.lines(follow=False) if log else ()
                log = _PodLog(kube, found, container)
            if found.pod.phase != "Pending":
                yield from log.lines(follow=True)
    except EndedError:
        last = find_node(kube, host)
        if last and (log is None or log.uid != last.uid):
            log = _PodLog(kube, last, container)
        yield from log.lines(follow=False) if log else ()


class _PodLog:
    """The log of one pod; it yields no line twice."""

    def __init__(self, kube: KubeClient, node: Node, container: str) -> None:
        self.uid = node.uid
        self._kube, self._pod, self._container = kube, node.pod.name, container or node.pod.runner
        self._new, self._cutter = NewLines(), lines.Cutter()

    def lines(self, *, follow: bool) -> Iterator[str]:
        """Yield the lines that were not yielded before, until the connection ends; without ``follow`` also the last.

        Raises ApiError; ArgumentError for a container that the pod doesn't have.
        """
        for line in self._read(follow=follow):
            yield _text(line)
        if not follow:
            yield from map(_text, self._cutter.end())

    def _read(self, *, follow: bool) -> Iterator[bytes]:
        try:
            with closing(self._kube.log(self._pod, self._container, follow=follow)) as answer:
                for part in self._new.of(answer.stream(amt=None, decode_content=False)):
                    if part.is_note:
                        logging.getLogger(__name__).warning("log of pod %s: %s", self._pod, _text(part.text))
                    else:
                        yield from self._cutter.take(part.text)
        except ApiError as error:
            if "is not valid for pod" in str(error):
                raise ArgumentError(f"container={self._container!r}: {error}") from None
            # no error if the pod is gone, or has not begun
            if not error.is_passing and error.status not in (400, 404):
                raise
        except (HTTPError, OSError):
            return


def _text(line: bytes) -> str:
    return line.removesuffix(b"\n").decode(errors="replace")
