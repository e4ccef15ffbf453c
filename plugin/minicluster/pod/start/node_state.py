"""What the guard of a node's memory tells Flux: the job that ends, and that the node takes no more jobs, or does again.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, NamedTuple

from node_words import f58, say, size


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

    def end_job(self, job: int, why: str) -> None:
        """Have Flux end a job; a failure is in the log: the processes end anyway."""
        try:
            told = {"id": job, "type": "memory", "severity": 0, "note": why}
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

    def _handle(self) -> Any:
        """Return a connection to this node's broker. Raises OSError."""
        import flux

        uri = next(self.run.glob("local*"), None)
        if not uri:
            raise OSError(errno.ENOENT, "the broker has no socket")
        os.environ["FLUX_URI"] = f"local://{uri}"
        return flux.Flux()
