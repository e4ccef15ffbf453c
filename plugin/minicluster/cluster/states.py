"""The words that people read for the states of MiniClusters and of jobs, one for each state, and their tones."""

from collections.abc import Mapping

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


def of_job(state: str, result: str | None) -> str:
    """Return the word for a job with Flux's state and result; an unknown one is its own."""
    return result or _JOB_STATES.get(state, state)
