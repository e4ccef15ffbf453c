"""Jobs of a cluster in pods, which note when they start."""

import time

from tools.clients import until
from tools.releases import MOUNT, STEP_SECONDS, FluxRelease

QUIET = {"logging": {"quiet": True}}
#: A command that ends as soon as somebody makes the file /tmp/end in its pod.
UNTIL_TOLD = "until [ -e /tmp/end ]; do sleep 0.2; done; echo done"
ONE_CORE = {"cores": 1}
#: The key in the KVS to which a job appends its id each time that it starts
RUNS = "minicluster-test.runs"


def submit(cluster: FluxRelease, *words: str) -> str:
    """Return the id of a new job, or those of several, with f: whether Flux prints ƒ depends on build and locale."""
    text = cluster.kubectl("exec", cluster.pod(0), "--", f"{MOUNT}/bin/flux", "submit", *words)
    return text.strip().replace("ƒ", "f")


def noted() -> str:
    """Return the first line of a job's script: it notes the job's id."""
    note = f'{MOUNT}/bin/flux kvs put --namespace=primary --append {RUNS}="$FLUX_JOB_ID "'
    return f'[ "$FLUX_TASK_RANK" != 0 ] || {note}'


def ids(text: str) -> list[str]:
    """Return the job ids of a text, sorted, with f as those of `submit`."""
    return sorted(text.replace("ƒ", "f").split())


def runs_of(cluster: FluxRelease) -> list[str]:
    """Return the ids that jobs noted, as `ids` does."""
    return ids(cluster.flux(0, "kvs", "get", RUNS))


def ended(cluster: FluxRelease, job: str) -> str:
    """Return the result of a job; "" while it has none."""
    return cluster.flux(0, "jobs", "-n", "-o", "{result}", job).strip()


#: Prints when the KVS was checkpointed; an older Flux has no function for it
CHECKPOINT = """
import flux, flux.kvs
handle = flux.Flux()
try:
    print(flux.kvs.kvs_checkpoint_lookup(handle)[0]["timestamp"])
except AttributeError:
    print(handle.rpc("content.checkpoint-get", {"key": "kvs-primary"}).get()["value"]["timestamp"])
"""


def wait_for_checkpoint(cluster: FluxRelease) -> None:
    """Wait until the volume has the present state: a kill loses all changes since the last checkpoint."""
    begin = time.time()
    # without a change Flux makes no more checkpoints
    cluster.flux(0, "kvs", "put", f"waits={begin}")
    until(lambda: float(cluster.flux(0, "python", "-c", CHECKPOINT) or 0) > begin, STEP_SECONDS)


def size(cluster: FluxRelease) -> int:
    """Return the size of the Job."""
    return int(cluster.get("job")["spec"]["completions"])
