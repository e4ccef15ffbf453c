"""What the guard of a node's memory tells Flux: the job that ends, and that the node takes no more jobs, or does again.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any, Iterable, NamedTuple

#: The digits of Flux's short ids (RFC 19)
F58_DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
#: The memo of a job with the nodes on which it is idle, and what begins their keys
IDLE_KEY, RANK_PREFIX = "minicluster_idle", "rank"


def say(text: str) -> None:
    """Tell the pod's log."""
    print(f"minicluster: {text}", file=sys.stderr, flush=True)


def size(number: int) -> str:
    """Return bytes as people write them.

    >>> size(2 << 30), size(1717986918), size(300 << 20)
    ('2 GiB', '1.6 GiB', '300 MiB')
    """
    unit, scale = ("GiB", 1 << 30) if number >= 1 << 30 else ("MiB", 1 << 20)
    return f"{number / scale:.1f}".replace(".0", "") + f" {unit}"


def f58(job: int) -> str:
    """Return the short id of a job without Flux's bindings, which take 7 MiB.

    >>> f58(62226694144)
    'f2dom5Dy'
    """
    digits = ""
    while job or not digits:
        job, digit = divmod(job, len(F58_DIGITS))
        digits = F58_DIGITS[digit] + digits
    return f"f{digits}"


def by_name(jobs: Iterable[int]) -> str:
    """Return jobs, one of which is meant.

    >>> by_name([1]), by_name([1, 2])
    ('job f2', 'one of the jobs f2, f3')
    """
    names = sorted(map(f58, jobs))
    return f"job {names[0]}" if len(names) == 1 else f"one of the jobs {', '.join(names)}"


class Held(NamedTuple):
    """Bytes of memory that are no job's."""

    shared: int
    processes: int
    other: int  #: such as files of other volumes in memory

    @property
    def all(self) -> int:
        """All bytes."""
        return self.shared + self.processes + self.other

    @property
    def why(self) -> str:
        """What has most of it."""
        if self.shared == max(self):
            return f"{size(self.shared)} of /dev/shm belong to no job"
        if self.processes == max(self):
            return f"{size(self.processes)} belong to what runs outside of jobs"
        return f"{size(self.other)} belong to no job: files of volumes in memory count, too"


class FluxNode:
    """The node as Flux knows it. Flux's bindings take 7 MiB: they are imported when there is something to tell."""

    def __init__(self, run: Path) -> None:
        self.run = run

    def end_job(self, job: int, why: str, kind: str = "memory", severity: int = 0) -> None:
        """Have Flux end a job, or tell of it with a higher severity; a failure is in the log."""
        try:
            told = {"id": job, "type": kind, "severity": severity, "note": why}
            self._handle().rpc("job-manager.raise", told).get()
        except OSError as error:
            say(f"Flux could not be told of job {f58(job)}: {error}")

    def drain(self, why: str) -> bool:
        """Let no more jobs start here; say whether they don't. A drain of others keeps its reason."""
        try:
            handle = self._handle()
            from state import MEMORY_REASON

            told = {"targets": handle.attr_get("rank"), "reason": MEMORY_REASON + why}
            handle.rpc("resource.drain", told, nodeid=0).get()
        except OSError as error:
            # while the broker starts or ends there is nothing to drain
            return error.errno == errno.EEXIST
        return True

    def undrain(self) -> bool:
        """Undo our drain, if there still is one; say whether that is known."""
        try:
            handle = self._handle()
            from offers import undrain
            from state import MEMORY_REASON, unused_nodes

            rank = int(handle.attr_get("rank"))
            if unused_nodes(handle).drained.get(rank, "").startswith(MEMORY_REASON):
                undrain(handle, [rank])
        except OSError:
            return False
        return True

    def rank(self) -> int:
        """Return this node's rank. Raises OSError."""
        return int(self._handle().attr_get("rank"))

    def allotted(self, job: int) -> dict[int, tuple[int, int]]:
        """Return the cores and GPUs that a job has by rank. Raises OSError."""
        from state import by_rank

        answer = self._handle().rpc("job-info.lookup", {"id": job, "keys": ["R"], "flags": 0}).get()
        return by_rank(json.loads(answer["R"]))

    def note_idle(self, job: int, what: str | int, value: str | float | None) -> None:
        """Note since when a job is idle on a rank, or why it is idle; None if it no longer is. Raises OSError."""
        memo = {IDLE_KEY: {f"{RANK_PREFIX}{what}" if isinstance(what, int) else what: value}}
        self._handle().rpc("job-manager.memo", {"id": job, "memo": memo}).get()

    def idle_ranks(self, job: int) -> set[int]:
        """Return the ranks on which a job is noted to be idle. Raises OSError."""
        listed = self._handle().rpc("job-list.list-id", {"id": job, "attrs": ["annotations"]}).get()["job"]
        noted = ((listed.get("annotations") or {}).get("user") or {}).get(IDLE_KEY) or {}
        return {int(key[len(RANK_PREFIX) :]) for key in noted if key.startswith(RANK_PREFIX)}

    def _handle(self) -> Any:
        """Return a connection to this node's broker. Raises OSError."""
        import flux

        uri = next(self.run.glob("local*"), None)
        if not uri:
            raise OSError(errno.ENOENT, "the broker has no socket")
        os.environ["FLUX_URI"] = f"local://{uri}"
        return flux.Flux()
