"""The lines of a log, as texts."""

import logging
from collections.abc import Iterable, Iterator

from minicluster.console import lines
from minicluster.waiting.loglines import LogPart

LOG = logging.getLogger("minicluster.sdk")


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
