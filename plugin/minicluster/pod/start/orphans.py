"""orphans.py FOLDER: ends what a dead broker left in its container: its programs, the shells of its jobs, their tasks.

FOLDER is the broker's run folder. What the broker started has it in MINICLUSTER_BROKER; a task has the broker's URI and
the id of its job. Processes of people and of snippets have neither.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from node_jobs import children, descendants, send_to_all

#: Seconds for which processes are killed; the pause between two looks
KILLING_SECONDS, KILLING_POLL_SECONDS = 5.0, 0.05


def is_of(environment: list[bytes], folder: str) -> bool:
    """Return whether an environment is that of a process of the broker."""
    broker, uri = f"MINICLUSTER_BROKER={folder}".encode(), f"FLUX_URI=local://{folder}/".encode()
    in_job = any(entry.startswith(b"FLUX_JOB_ID=") for entry in environment)
    return broker in environment or (in_job and any(entry.startswith(uri) for entry in environment))


def orphans(folder: str) -> set[int]:
    """Return the ids of the processes of the broker, and of their descendants (proc_pid_environ(5))."""
    pids = set()
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended, or is another user's
            # that of a zombie is empty
            if is_of(file.read_bytes().split(b"\0"), folder):
                pids.add(int(file.parent.name))
    return set(descendants(pids, children()))


def main(folder: str) -> None:
    """Kill until nothing is left. Raises TimeoutError."""
    end = time.monotonic() + KILLING_SECONDS
    while pids := orphans(folder):
        if time.monotonic() >= end:
            raise TimeoutError(f"processes {sorted(pids)} of the dead broker don't end")
        send_to_all(pids, signal.SIGKILL)
        time.sleep(KILLING_POLL_SECONDS)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except OSError as error:
        sys.exit(f"minicluster: {error}")
