"""What the GPUs of this node's jobs do, by nvidia-smi where the container has it; usage.lua notes whose they are.

The processes that nvidia-smi lists have their ids on the machine, not those in the container, so it is asked of whole
GPUs, of which Flux gives each to one job. Never seen on a GPU: its answer is read as its manual describes it.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Iterable, NamedTuple

GPU_TOOL = "nvidia-smi"
QUERY = ("--query-gpu=index,memory.used,memory.total,utilization.gpu", "--format=csv,noheader,nounits")
MIB_BYTES = 1 << 20
#: Seconds between two questions at least, and for an answer; how many times as long as the tool's CPU time the pause is
GPU_SECONDS, TOOL_SECONDS, GPU_PAUSE_FACTOR = 10.0, 60.0, 500
#: What the name of the file with a job's GPUs ends with
OF_JOB = ".gpus"


class GpuUse(NamedTuple):
    """Of a GPU, or of those of a job."""

    memory: int  #: bytes
    limit: int
    busy: float  #: how many of them


def read_answer(text: str) -> dict[int, GpuUse]:
    r"""Return the use of each GPU by its place; what the tool does not know of one, such as `[N/A]`, leaves it out.

    >>> read_answer("0, 1024, 81559, 37\n1, [N/A], [N/A], [N/A]\n")
    {0: GpuUse(memory=1073741824, limit=85520809984, busy=0.37)}
    """
    uses = {}
    for line in text.split("\n"):
        with suppress(ValueError):
            place, used, total, busy = map(int, line.split(","))
            uses[place] = GpuUse(used * MIB_BYTES, total * MIB_BYTES, busy / 100)
    return uses


class JobGpus:
    """Asks the tool, now and then, while jobs with GPUs run. It is never waited for: it may take seconds."""

    def __init__(self, folder: Path) -> None:
        """With config/run/usage."""
        places = (f"{path}/{GPU_TOOL}" for path in os.environ.get("PATH", "").split(":"))
        self.tool = next((path for path in places if os.access(path, os.X_OK)), None)
        self.folder = folder
        self.child: Any = None
        self.began = self.next_question = 0.0
        self.gpus: dict[int, list[int]] = {}  #: by job
        self.most: dict[int, GpuUse] = {}  #: by job: the most memory, and how many GPUs were busy on average
        self.answers: dict[int, int] = {}

    def look(self, jobs: Iterable[int]) -> None:
        """Take an answer, or ask, if it is time."""
        if not self.tool:
            return
        now = time.monotonic()
        self.gpus = {job: self.gpus.get(job) or self._gpus_of(job) for job in jobs}
        if self.child:
            self._take(now)
        elif now >= self.next_question and any(self.gpus.values()):
            import subprocess  # takes memory

            none, pipe = subprocess.DEVNULL, subprocess.PIPE
            self.began, self.next_question = now, now + GPU_SECONDS
            with suppress(OSError):
                self.child = subprocess.Popen((self.tool, *QUERY), stdin=none, stdout=pipe, stderr=none)

    def _gpus_of(self, job: int) -> list[int]:
        try:
            return [*map(int, (self.folder / f"{job}{OF_JOB}").read_text(encoding="ascii").split())]
        except (OSError, ValueError):
            return []

    def _take(self, now: float) -> None:
        pid, _, took = os.wait4(self.child.pid, os.WNOHANG)
        if not pid:
            if now > self.began + TOOL_SECONDS:
                self.child.kill()
            return
        uses = read_answer(self.child.stdout.read().decode(errors="replace"))
        self.child.stdout.close()
        self.child.returncode, self.child = 0, None
        self.next_question = now + max(GPU_SECONDS, GPU_PAUSE_FACTOR * (took.ru_utime + took.ru_stime))
        for job, gpus in self.gpus.items():
            own = [uses[gpu] for gpu in gpus if gpu in uses]
            # of a part of them nothing is said
            if own and len(own) == len(gpus):
                self._add(job, GpuUse(*(sum(each) for each in zip(*own))))

    def _add(self, job: int, use: GpuUse) -> None:
        known, count = self.most.get(job, use), self.answers.get(job, 0)
        busy = (known.busy * count + use.busy) / (count + 1)
        self.most[job], self.answers[job] = GpuUse(max(known.memory, use.memory), use.limit, busy), count + 1

    def forget(self, job: int) -> None:
        """Forget a job that has ended."""
        for of_job in (self.gpus, self.most, self.answers):
            of_job.pop(job, None)
        with suppress(OSError):
            (self.folder / f"{job}{OF_JOB}").unlink()
