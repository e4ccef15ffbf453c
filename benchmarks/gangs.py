"""Gangs on few slots: as Jobs, alone, with Coscheduling or in a queue of Kueue, and as jobs of one MiniCluster.

    python -m benchmarks.gangs FILE.json [--gangs 50] [--slots 8] [--work 3] [--seed 1] [--where TEXT]

A gang is 2 to 6 pods, or nodes, that work for some seconds once all of them run, as the ranks of an MPI program do. Its
pods meet in a folder of the one Kubernetes node, which has so many slots as an extended resource. The seconds of a gang
are from the first submission, or from `helm install` of the MiniCluster, to its end. The way is stuck if no gang ends
for a minute while others wait. Needs the cluster of MINICLUSTER_TEST_KUBECONFIG, as its administrator, and the programs
that `make tools` builds; for Coscheduling also that of benchmarks/coscheduling.py.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.clusters import FLUX, MeasuredCluster
from benchmarks.coscheduling import PROGRAM, coscheduler, join, pod_group
from benchmarks.results import Row, save
from tools import testbed
from tools.clients import KubernetesCluster, output, run_program
from tools.kueue_beside import LABEL, LOCAL_QUEUE, QUEUEING, kueue
from tools.tenant import PLAIN

SLOT = "minicluster.test/slot"
STUCK_SECONDS, LOOK_SECONDS = 60.0, 0.5
SIZES = range(2, 7)
#: $1: a folder of the gang; $2: its pods; $3: seconds of work
MEET = 'mkdir -p "$1"; : > "$1/$HOSTNAME"; until [ "$(ls "$1" | wc -l)" -ge "$2" ]; do sleep 0.1; done; sleep "$3"'
#: The ways, as the page names them
WAYS = {
    "jobs": "Kubernetes Jobs",
    "coscheduling": "Kubernetes Jobs, Coscheduling",
    "kueue": "Kubernetes Jobs in a queue of Kueue",
    "flux": "one MiniCluster",
}


class RealCluster(KubernetesCluster):
    """The cluster of the kubeconfig, with a folder for what runs beside it."""

    def __init__(self, folder: Path) -> None:
        """Make the certificate of webhooks on this machine in the folder."""
        super().__init__(testbed.kubernetes().env)
        self.work_dir = folder
        of_this_machine = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
        files = ("-keyout", folder / "apiserver.key", "-out", folder / "apiserver.crt")
        output("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *of_this_machine, *files)


class Gangs(NamedTuple):
    """What runs: the size of each gang, its seconds of work, and the slots."""

    sizes: Sequence[int]
    work: float
    slots: int

    @property
    def least_seconds(self) -> float:
        """The seconds that the work alone takes."""
        return sum(self.sizes) * self.work / self.slots


def job(name: str, size: int, work: float, folder: str, *, queued: bool) -> dict[str, Any]:
    """Return the Indexed Job of a gang, whose pods meet in a folder of the node."""
    labels = {"kueue.x-k8s.io/queue-name": LOCAL_QUEUE} if queued else {}
    container = {
        "name": "main",
        "image": testbed.images()["containers"][0]["image"],
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", MEET, "sh", f"/gangs/{name}", str(size), str(work)],
        "resources": {"requests": {SLOT: "1"}, "limits": {SLOT: "1"}},
        "volumeMounts": [{"name": "gangs", "mountPath": "/gangs"}],
    }
    volume = {"name": "gangs", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "volumes": [volume],
    }
    spec = {
        "completionMode": "Indexed",
        "completions": size,
        "parallelism": size,
        "backoffLimit": 0,
        "suspend": queued,
        "template": {"spec": pod},
    }
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def ends(begin: float, count: int, ended: Callable[[], Sequence[float]]) -> list[float]:
    """Return the seconds from ``begin`` to the end of each gang; of fewer gangs if the others are stuck."""
    known, changed = list(ended()), time.monotonic()
    while len(known) < count and time.monotonic() < changed + STUCK_SECONDS:
        time.sleep(LOOK_SECONDS)
        now = list(ended())
        if len(now) > len(known):
            known, changed = now, time.monotonic()
    return sorted(at - begin for at in known)


def by_jobs(cluster: KubernetesCluster, gangs: Gangs, way: str) -> list[float]:
    """Run the gangs as Jobs."""
    queued = way == "kueue"
    labels = [f"{LABEL}=true"] if queued else []
    with testbed.new_namespace(*labels, world=PLAIN) as namespace, tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        if queued:
            cluster.create(*queue_of(namespace, gangs.slots))
        made = [job(f"g{n}", size, gangs.work, folder, queued=queued) for n, size in enumerate(gangs.sizes)]
        if way == "coscheduling":
            for each in made:
                join(each)
            made = [pod_group(f"g{n}", size) for n, size in enumerate(gangs.sizes)] + made
        for each in made:
            each["metadata"]["namespace"] = namespace

        def ended() -> list[float]:
            jobs = cluster.get("jobs", "-n", namespace)["items"]
            times = (each["status"].get("completionTime") for each in jobs)
            return [datetime.fromisoformat(text).timestamp() for text in times if text]

        begin = time.time()
        cluster.create(*made)
        known = ends(begin, len(gangs.sizes), ended)
        if queued:
            for kind in ("clusterqueue", "resourceflavor"):
                cluster.kubectl("delete", kind, namespace, "--wait=false")
    return known


def queue_of(namespace: str, slots: int) -> list[dict[str, Any]]:
    """Return a queue of Kueue with the slots."""
    quota = {"name": namespace, "resources": [{"name": SLOT, "nominalQuota": slots}]}
    group = {"coveredResources": [SLOT], "flavors": [quota]}
    made: Sequence[tuple[str, Any, Any]] = (
        ("ResourceFlavor", {"name": namespace}, {}),
        ("ClusterQueue", {"name": namespace}, {"namespaceSelector": {}, "resourceGroups": [group]}),
        ("LocalQueue", {"name": LOCAL_QUEUE, "namespace": namespace}, {"clusterQueue": namespace}),
    )
    return [{"apiVersion": QUEUEING, "kind": kind, "metadata": data, "spec": spec} for kind, data, spec in made]


def by_flux(gangs: Gangs) -> list[float]:
    """Run the gangs as jobs of a MiniCluster that has all slots."""
    with testbed.new_namespace(world=PLAIN) as namespace:
        begin = time.time()
        cluster = SlotCluster({"size": gangs.slots}, ["kubectl", "-n", namespace], namespace)
        words = [f"{FLUX} submit --quiet -N{size} -n{size} sleep {gangs.work:g}" for size in gangs.sizes]
        cluster.exec("sh", "-ec", "\n".join(words))

        def ended() -> list[float]:
            rows = (line.split("|") for line in cluster.flux("jobs", "-a", "-n", "--count=0", "-o", LINE).splitlines())
            return [float(at) for result, at in rows if result == "COMPLETED"]

        known = ends(begin, len(gangs.sizes), ended)
        cluster.remove()
    return known


#: Columns of `flux jobs`
LINE = "{result}|{t_inactive}"


class SlotCluster(MeasuredCluster):
    """A MiniCluster each of whose pods takes a slot."""

    runner: Mapping[str, Any] = {"cores": 1, "resources": {"requests": {SLOT: "1"}, "limits": {SLOT: "1"}}}


@contextmanager
def slots_of(cluster: KubernetesCluster, slots: int) -> Iterator[None]:
    """Give the first Kubernetes node the slots."""
    node = cluster.get("nodes")["items"][0]["metadata"]["name"]

    def patch(count: int | None) -> None:
        text = json.dumps({"status": {part: {SLOT: count and str(count)} for part in ("capacity", "allocatable")}})
        cluster.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", text)

    patch(slots)
    try:
        yield
    finally:
        patch(None)


def main() -> None:
    """Measure each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--gangs", type=int, default=50)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--work", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    sizes = random.Random(options.seed).choices(SIZES, k=options.gangs)  # noqa: S311 - no secret
    gangs = Gangs(sizes, options.work, options.slots)
    rows: list[Row] = []

    def note(way: str, known: list[float]) -> None:
        is_whole = len(known) == len(sizes)
        last = known[-1] if is_whole else None
        median = statistics.median(known) if is_whole else None
        row = {"way": WAYS[way], "gangs": len(sizes), "done": len(known), "last_seconds": last}
        rows.append({**row, "median_seconds": median, "times_least": last and last / gangs.least_seconds})
        print(rows[-1], flush=True)
        save(options.file, options.where, rows)

    with tempfile.TemporaryDirectory() as folder:
        cluster = RealCluster(Path(folder))
        with slots_of(cluster, options.slots):
            note("jobs", by_jobs(cluster, gangs, "jobs"))
            if PROGRAM.exists():
                with coscheduler(cluster, cluster.work_dir):
                    note("coscheduling", by_jobs(cluster, gangs, "coscheduling"))
            with kueue(cluster, cluster.work_dir):
                note("kueue", by_jobs(cluster, gangs, "kueue"))
            note("flux", by_flux(gangs))


if __name__ == "__main__":
    run_program(main)
