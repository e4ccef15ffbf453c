"""The scheduler of scheduler-plugins with Coscheduling, beside a cluster, for benchmarks.

It has no release as a program: `go build -o .tools/bin/coscheduler ./cmd/scheduler` in a checkout of
sigs.k8s.io/scheduler-plugins makes one (0.34.7 was built with `-replace` of k8s.io/csi-translation-lib by its 0.34.4).
Without that file there is nothing to measure.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.clients import BIN, KubernetesCluster
from tools.embedded import LEASH

PROGRAM = BIN / "coscheduler"
CRD = BIN.parent / "crds" / "scheduling.x-k8s.io_podgroups.yaml"
SCHEDULER = "coscheduling"
#: A pod with this label belongs to the PodGroup of that name
POD_GROUP = "scheduling.x-k8s.io/pod-group"
#: Those of the plugin's own example
PLUGINS = {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "PrioritySort"}]}
PERMIT_SECONDS = 10


def pod_group(name: str, size: int) -> dict[str, Any]:
    """Return the PodGroup of a gang."""
    spec = {"minMember": size}
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def join(job: dict[str, Any]) -> None:
    """Make the pods of a Job those of the PodGroup of its name."""
    template = job["spec"]["template"]
    template.setdefault("metadata", {}).setdefault("labels", {})[POD_GROUP] = job["metadata"]["name"]
    template["spec"]["schedulerName"] = SCHEDULER


@contextmanager
def coscheduler(cluster: KubernetesCluster, folder: Path) -> Iterator[int]:
    """Run the scheduler until the end of the block; yield its process."""
    definition = json.loads(cluster.kubectl("create", "--dry-run=client", "-o", "json", f"--filename={CRD}"))
    name = definition["metadata"]["name"]
    had = bool(cluster.kubectl("get", "crd", name, "--ignore-not-found", "-o", "name"))
    if not had:
        cluster.create(definition)
    cluster.kubectl("wait", f"crd/{name}", "--for=condition=Established")
    profile = {
        "schedulerName": SCHEDULER,
        "plugins": {"multiPoint": PLUGINS},
        "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": PERMIT_SECONDS}}],
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": cluster.env["KUBECONFIG"]},
        "profiles": [profile],
    }
    (folder / "coscheduler.json").write_text(json.dumps(config))
    with (folder / "coscheduler.log").open("wb") as log:
        words = [*LEASH, str(PROGRAM), f"--config={folder}/coscheduler.json", "--secure-port=0"]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
        if not had:
            cluster.kubectl("delete", "crd", name, "--wait=false")
