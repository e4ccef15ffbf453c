"""A job sees its GPUs, and no others, in the variable that the runtime of their kind reads."""

from typing import Any

import pytest
from broker_clusters import Cluster, Make
from broker_pods import Flux

QUIET: dict[str, Any] = {"logging": {"quiet": True}}
CUDA = "CUDA_VISIBLE_DEVICES"
NEURON = "NEURON_RT_VISIBLE_CORES"
PER_TASK = ("-g1", "-ogpu-affinity=per-task")


def started(make: Make, flux: Flux, limit: str, **environment: str) -> Cluster:
    """Return a pod with four GPUs. Skips where the scheduler doesn't know GPUs."""
    flux.knows_gpus()
    runner = {"cores": 4, "resources": {"limits": {limit: 4}}}
    return make(QUIET, runner, environment=environment).start().wait_for_ready()


def seen(cluster: Cluster, variable: str, *words: str) -> list[str]:
    """Return what the tasks of a command have in a variable."""
    return sorted(cluster.lead.flux(*words, "sh", "-c", f'echo "${{{variable}-unset}}"').splitlines())


def test_the_variable_of_a_kind_takes_the_place_of_cudas(make: Make, flux: Flux) -> None:
    cluster, variable = started(make, flux, "amd.com/gpu"), "ROCR_VISIBLE_DEVICES"
    assert seen(cluster, variable, "run", "-n2", "-g1") == ["0,1"] * 2
    assert seen(cluster, CUDA, "run", "-n2", "-g1") == ["unset"] * 2
    assert seen(cluster, variable, "run", "-n2", *PER_TASK) == ["0", "1"]
    assert seen(cluster, variable, "run", "-n2", "-g1", "-ogpu-affinity=map:1;0") == ["0", "1"]
    assert seen(cluster, variable, "run", "-n2") == ["-1", "-1"]
    assert seen(cluster, variable, "run", "-n1", "-g1", "-ogpu-affinity=off") == ["unset"]


#: The limit and the variable of a kind; the variable that a device plugin gives to the pod, and the GPUs that it means
NAMED = {
    "names": ("nvidia.com/mig-1g.5gb", CUDA, {"NVIDIA_VISIBLE_DEVICES": "MIG-a,MIG-b,MIG-c,MIG-d"}, "abcd"),
    "range": ("aws.amazon.com/neuroncore", NEURON, {NEURON: "2,4-6"}, "2456"),
}


@pytest.mark.parametrize("case", NAMED)
def test_a_gpu_has_the_name_by_which_the_pod_got_it(make: Make, flux: Flux, case: str) -> None:
    limit, variable, given, gpus = NAMED[case]
    names = [f"MIG-{gpu}" if gpu.isalpha() else gpu for gpu in gpus]
    cluster = started(make, flux, limit, **given)
    assert seen(cluster, variable, "run", "-n1", "-g4") == [",".join(names)]
    assert seen(cluster, variable, "run", "-n1") == ["-1"]
    job = cluster.lead.flux("submit", "-n2", "-g1", "sleep", "inf").strip()
    cluster.lead.flux("job", "wait-event", job, "start")
    # the last two, also for jobs of an instance that has these
    within = ("run", "-n1", "-c2", "-g2", "flux", "start")
    assert seen(cluster, variable, *within, "flux", "run", "-n2", *PER_TASK) == names[2:]


def test_jobs_at_the_same_time_have_gpus_of_their_own(make: Make, flux: Flux) -> None:
    cluster = started(make, flux, "amd.com/gpu")
    show = 'echo "$ROCR_VISIBLE_DEVICES"; exec sleep inf'
    jobs = [cluster.lead.flux("submit", "-g2", "sh", "-c", show).strip() for _ in range(2)]
    for job in jobs:
        cluster.lead.flux("job", "wait-event", "--waitcreate", "--path=guest.output", job, "data")
    log = "\n".join(cluster.lead.flux("job", "eventlog", "--path=guest.output", job) for job in jobs)
    assert {ids for ids in ("0,1", "2,3") if f'"{ids}\\n"' in log} == {"0,1", "2,3"}, log


@pytest.mark.parametrize("gpus", [0, 3])
def test_the_gpus_of_flux_are_those_of_the_value(make: Make, gpus: int) -> None:
    runner = {"cores": 4, "gpus": gpus, "resources": {"limits": {"nvidia.com/gpu": 2}}}
    cluster = make(QUIET, runner).start().wait_for_ready()
    assert cluster.lead.flux("resource", "list", "-n", "-s", "free", "-o", "{ncores} {ngpus}") == f"4 {gpus}\n"
