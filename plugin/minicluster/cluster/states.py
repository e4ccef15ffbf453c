"""The words that people read for the states of MiniClusters and of jobs, their tones, and how a job ended."""

from collections.abc import Mapping

from minicluster.cluster.words import KILLED, MEMORY
from minicluster.console.terminal import Tone

#: The states of a MiniCluster
CLUSTER_TONES: Mapping[str, Tone] = {
    "Suspended": "waits",
    "Starting": "waits",
    "Running": "well",
    "Ending": "waits",
    "Complete": "well",
    "Failed": "wrong",
    "Gone": "wrong",
    "Unknown": "wrong",
}
#: Those after which nothing more happens
ENDED_STATES = ("Complete", "Failed", "Gone")
#: The states of a job, and its results
JOB_TONES: Mapping[str, Tone] = {
    "PENDING": "waits",
    "RUNNING": "well",
    "COMPLETED": "well",
    "FAILED": "wrong",
    "CANCELED": "wrong",
    "TIMEOUT": "wrong",
}
#: Flux's states of a job that has no result, by the word for them
_JOB_STATES = {
    **dict.fromkeys(("NEW", "DEPEND", "PRIORITY", "SCHED"), "PENDING"),
    **dict.fromkeys(("RUN", "CLEANUP"), "RUNNING"),
}
#: What became of a job, by the type of its exception (RFC 21); others have failed
EXCEPTIONS = {
    "cancel": "was cancelled",
    "timeout": "ran into its time limit",
    "alloc": "can never run",
    "idle": "was ended because it did nothing",
}


def of_job(state: str, result: str | None) -> str:
    """Return the word for a job with Flux's state and result; an unknown one is its own."""
    return result or _JOB_STATES.get(state, state)


def of_job_end(code: int | None, kind: str, note: str, where: str = "") -> str:
    """Return how a job ended, by its exit code, and the type and note of its exception; "" for none.

    ``where`` says when and where, and begins with a space.
    """
    if kind:
        what = EXCEPTIONS.get(kind)
        return (what or "failed") + where + (f": {note}" if note else "" if what else f": {kind}")
    if code == 0:
        return "completed" + where
    return f"failed with exit code {code}{f' ({MEMORY})' if str(code) == KILLED else ''}{where}"
