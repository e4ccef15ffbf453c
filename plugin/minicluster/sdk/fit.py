"""Whether a job would fit, for the SDK."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.kube.port import KubePort
from minicluster.sdk.jobs import JobOptions, job_of
from minicluster.status import why

#: The options of `flux submit`, by those of a job
OF_FLUX = {"nodes": "--nodes", "tasks": "--ntasks", "cores_per_task": "--cores-per-task"}
OF_FLUX |= {"gpus_per_task": "--gpus-per-task", "working_dir": "--cwd"}


@dataclass(frozen=True)
class Fit:
    """What would become of a job."""

    refused: str  #: why it can never run, "" if it can
    waits: str  #: why it would wait, "" if it would run now
    seconds: float | None  #: until it starts, by the limits of the jobs before it; None if that is not known
    needs: Mapping[str, int]  #: the size that it needs, by group, "" for the cluster's own nodes; {} if it is there
    text: str  #: all of it, as `minicluster why NAME --for` prints it

    def __str__(self) -> str:
        return self.text


def would_fit(kube: KubePort, name: str, options: JobOptions) -> Fit:
    """Ask the lead about a job. Raises ArgumentError, ChoiceError, StateError, StatusError."""
    cluster, known = why.ask_request(kube, name, [*_words(job_of(["true"], {**options, "upload": "", "packages": ""}))])
    sentences = why.request_in_words(cluster.name, known, why.sizes_of(cluster))
    at = (known["starts"] or {}).get("at")
    seconds = None if at is None else max(0.0, at - known["now"])
    waits = "" if why.runs_now(known) else known["waits"]
    return Fit(known["refused"], waits, seconds, known["needs"], "\n".join(each.text for each in sentences))


def _words(job: Mapping[str, Any]) -> Iterator[str]:
    """Yield a job's options as words of `flux submit`."""
    whole = {"tasks": job["nodes"]} if "nodes" in job and "tasks" not in job else {}
    for name, value in {**job, **whole}.items():
        if name in OF_FLUX:
            yield f"{OF_FLUX[name]}={value}"
    if job.get("exclusive") or whole:
        yield "--exclusive"
    if "time_limit" in job:
        yield f"--time-limit={job['time_limit']}s"
    yield from (f"--setattr={name}={value}" for name, value in job["attributes"].items())
