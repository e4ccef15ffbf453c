"""Conversions of an MPIJob named a, with two workers."""

from typing import Any

import pytest
from minicluster.convert import convert
from minicluster.documents import yamlio
from minicluster.errors import MiniClusterError

V2BETA1 = "kubeflow.org/v2beta1"
#: What tells of Open MPI's versions, in each conversion of a job that names no other MPI
OPEN_MPI = (
    "mpiImplementation is OpenMPI: Open MPI 5 needs {}, without it each task is a world of its own; "
    "Open MPI 4 needs nothing"
)
BY_FLAGS = OPEN_MPI.format("-opmi=pmix in flux.optionFlags")
#: Flags of the work of a job that names no other MPI, which gives tasks the variables of Open MPI's mpirun
TOLD = {"flux": {"optionFlags": "-o mpi=openmpi"}}
BY_RUN = OPEN_MPI.format("`flux run -opmi=pmix`")
RUNS_ONCE = "mpiReplicaSpecs.Launcher.command runs once, on the first node; its mpirun is `flux run` now"


def job(words: Any, *, worker: Any = None, pod: Any = None, launcher: Any = None, **spec: Any) -> dict[str, Any]:
    """Return an MPIJob whose launcher has the words, and two workers; ``spec`` adds to the job's."""
    lead = {"name": "lead", "image": "i", "command": words} | (launcher or {})
    workers = {"name": "mpi", "image": "i"} | (worker or {})
    replicas = {
        "Launcher": {"template": {"spec": {"containers": [lead]}}},
        "Worker": {"replicas": 2, "template": {"spec": {"containers": [workers]} | (pod or {})}},
    }
    whole = {"mpiReplicaSpecs": replicas} | spec
    return {"apiVersion": V2BETA1, "kind": "MPIJob", "metadata": {"name": "a"}, "spec": whole}


def converted(document: dict[str, Any]) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the values, the warnings and the notes, without the job's name."""
    (values,), _ = convert(yamlio.dump(document))
    return values.values, [warning.removeprefix("MPIJob a: ") for warning in values.warnings], values.notes


def refused(document: dict[str, Any]) -> str:
    with pytest.raises(MiniClusterError) as error:
        converted(document)
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix("MPIJob a: ")


def shell(text: str) -> list[str]:
    return ["bash", "-c", text]
