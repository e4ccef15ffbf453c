"""The words for the states of MiniClusters and of jobs, and their tones; plain reasons of why something ended.

The reasons are from what Kubernetes, a pod's log, or a lead that does not answer says.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import islice

from minicluster.cluster.troubles import way_out
from minicluster.console.terminal import Tone
from minicluster.errors import cut

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
    "LOST": "wrong",
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

#: Kubernetes' message of a Job that a container's exit code failed
FAILED_CONTAINER = re.compile(
    r"Container (\S+) for pod \S+?/(\S+) failed with exit code (\d+) matching FailJob rule at index \d+"
)
#: Reasons of a Job's end, and what they mean here; success needs no words
END_REASONS = {
    "SuccessPolicy": "",
    "CompletionsReached": "",
    "BackoffLimitExceeded": "its pods failed more than backoffLimit times: `kubectl describe job` lists them",
    "DeadlineExceeded": "deadlineSeconds are over: raise them, or limit the work itself, which keeps its log "
    "(flux.optionFlags: -t 55m)",
}
#: Lines of a log that are Flux's or ours, not the work's
AROUND = re.compile(
    r"minicluster(-jobs?)?: |flux-\w+: |\S*: warning: setlocale: "
    r"|\d+\.\d+s: flux-shell|(<\d+>)?[\w.-]+\.[a-z]+\[\d+\]: |FLUXTIME"
)
OUR_LINE = re.compile(
    r"minicluster: (.*(?:failed with exit code|check failed|d(?:id|oes) not start|died|there is no |is too old: "
    r"|can't (?:be|change)|is set and ).*)"
)
#: What a command of Flux says of a job that it could not submit
REFUSED = re.compile(r"flux-(?:run|submit|alloc|batch|bulksubmit): ERROR: (?:\[Errno \d+\] )?(.*)")
#: What the shell of Flux says when it can't run, or can't run the work
SHELL_ERROR = re.compile(r"\d+\.\d+s: flux-shell\[\d+\]: (?:stderr|ERROR|FATAL): (.*)")
#: What we say of a snippet
SNIPPET = re.compile(r"[\w-]+\.sh failed with exit code \d+")
#: An error in the log of the lead's broker, or one before there is a log
ERROR = re.compile(r"(?:.*[\w-]+\.(?:err|crit|alert|emerg)\[0\]: |(?=flux-start: error ))(.+)")
WORK = re.compile(r"minicluster: the job failed with exit code (\d+)")
#: What the loader and the shells of an image say of a view that can't run there, and what that means
VIEWS = (
    (
        re.compile(r"version .GLIBC_[\d.]+. not found"),
        "the view needs a newer libc than the image has: set flux.container.image to the view of the image's "
        "distribution",
    ),
    (
        re.compile(r"bin/flux: not found|(bin/flux|flux): cannot execute: required file not found"),
        "the image has no glibc, which the view needs: take an image with glibc, or one with its own Flux",
    ),
    (
        re.compile(r"[Ee]xec format error|cannot execute binary file"),
        "the view is for another architecture than the Kubernetes node: set flux.container.image or flux.arch to its "
        "view",
    ),
)
#: Exit code of a process that SIGKILL ended
KILLED = "137"
MEMORY = "killed, most often for want of memory: raise resources.limits.memory"
#: Characters of a log's line
LINE_CHARACTERS = 200
#: Messages of a shell, kubectl, Python and Flux when a lead's broker does not run yet, and when it has ended
BEFORE = re.compile(r"(: not found|No such file or directory|Errno \d+|Connection refused|flux_open|Function not impl)")
AFTER = re.compile(
    r"completed pod|stopped state|container not (found|running)|is not running|pod does not exist|\(NotFound\)"
)


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


def of_end(reason: str, message: str) -> str:
    """Return why a Job has ended."""
    failed = FAILED_CONTAINER.fullmatch(message) if reason == "PodFailurePolicy" else None
    if failed:
        said = f"the container {failed[1]} of pod {failed[2]} failed with exit code {failed[3]}"
        return ": ".join(filter(None, [said, way_out(f"{failed[1]}, exit code {failed[3]}", "")]))
    return END_REASONS.get(reason, ": ".join(filter(None, (reason, message))))


def of_container_end(reason: str, code: int) -> str:
    """Return how a container ended, in the words of Kubernetes.

    It calls a container OOMKilled if the kernel has ever killed a process of it. Only with SIGKILL was that the end.
    """
    if reason == "OOMKilled" and str(code) != KILLED:
        return f"exit code {code}, a process of it was killed for want of memory"
    return ", ".join(filter(None, [reason.removeprefix("Error"), f"exit code {code}"]))


def of_log(lines: Iterable[str]) -> str:
    """Return why a pod failed, by the last lines of its log; "" where they don't tell."""
    said = [line.strip() for line in lines if line.strip()]
    work = next((match for line in said if (match := WORK.match(line))), None)
    ours = [match[1] for line in said if (match := OUR_LINE.match(line))]
    if not work:
        unfit = next((why for line in said for pattern, why in VIEWS if pattern.search(line)), "")
        return (unfit or _with_error(ours[-1], said)) if ours else ""
    code = f"{work[1]} ({MEMORY})" if work[1] == KILLED else work[1]
    refused = [match[1] for line in said if (match := REFUSED.match(line))]
    own = refused or _own(said) or [match[1] for line in said if (match := SHELL_ERROR.match(line))]
    return f"the work failed with exit code {code}" + (f": {cut(own[-1], LINE_CHARACTERS)}" if own else "")


def _own(lines: Iterable[str]) -> list[str]:
    """Return the lines that are the work's."""
    return [line for line in lines if not AROUND.match(line)]


def _with_error(said: str, lines: Iterable[str]) -> str:
    """Return what our last line says, with the last line of a snippet, or with Flux's first error if it did not start.

    Other errors follow from the first.
    """
    if SNIPPET.fullmatch(said):
        return ": ".join([said, *(cut(line, LINE_CHARACTERS) for line in _own(lines)[-1:])])
    if "did not start" not in said:
        return said
    errors = (match[1] for line in lines if (match := ERROR.match(line)))
    return ": ".join([said, *(cut(error, LINE_CHARACTERS) for error in islice(errors, 1))])


def of_silence(message: str) -> str:
    """Return the state of a cluster, Starting or Ending, from its lead's error message; "" if that doesn't tell."""
    if AFTER.search(message):
        return "Ending"
    return "Starting" if BEFORE.search(message) else ""
