"""A model of Kueue 0.19 with elastic Jobs: it starts Jobs as wholes, keeps the pods of a growth gated, and evicts."""

import math
from typing import TYPE_CHECKING, Any

from tools.simulator.indexed_job import IndexedJob

if TYPE_CHECKING:
    from tools.simulator.kubernetes import Kubernetes

#: The labels of a Job in a queue and of the pods that Kueue has started, and the gate of elastic Jobs
QUEUE_LABEL, STARTED_LABEL = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/podset"
GATE = {"name": "kueue.x-k8s.io/elastic-job"}
#: Label of a pod with its index
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
#: How often it looks
LOOK_SECONDS = (0.1, 3.0)
#: How often a group is evicted when the quota changes, and how long what was evicted waits at least
CHOSEN_PART, AGAIN_SECONDS = 0.5, (0.0, 120.0)


class Kueue:
    """The queue of the Jobs of one MiniCluster."""

    def __init__(self, kubernetes: "Kubernetes", quota: int) -> None:
        """Take the Jobs, which are suspended, and how many pods may run."""
        self.kubernetes, self.quota = kubernetes, quota
        self.admitted = dict.fromkeys(kubernetes.jobs, 0)
        self.again = dict.fromkeys(kubernetes.jobs, 0.0)  #: until when a Job that was evicted waits
        self.refused = -math.inf  #: when there was last no quota for a Job
        for job in kubernetes.jobs.values():
            job.manifest["metadata"]["labels"][QUEUE_LABEL] = "queue"
            job.manifest["spec"]["suspend"] = True
            job.manifest["spec"]["template"]["spec"]["schedulingGates"] = [GATE]
        self._look_soon()

    def _look_soon(self) -> None:
        self.kubernetes.loop.at(self.kubernetes.random.uniform(*LOOK_SECONDS), self._look)

    def _look(self) -> None:
        for name, job in self.kubernetes.jobs.items():
            spec = job.manifest["spec"]
            # between the two changes that empty a group
            if spec["parallelism"] <= len(job.ranks):
                self._admit(name, job, spec)
        self._look_soon()

    def _admit(self, name: str, job: IndexedJob, spec: dict[str, Any]) -> None:
        """Admit the size of a Job if there is quota for all of it."""
        wish, others = spec["parallelism"], sum(self.admitted.values()) - self.admitted[name]
        is_refused = wish + others > self.quota or self.kubernetes.loop.now < self.again[name]
        if is_refused and wish > self.admitted[name]:
            self.refused = self.kubernetes.loop.now
            return
        self.admitted[name] = wish
        labels = spec["template"]["metadata"].setdefault("labels", {})
        if spec["suspend"]:
            spec["suspend"] = False
            labels[STARTED_LABEL] = "main"
            self.kubernetes.write(job.manifest)
        if STARTED_LABEL in labels:
            self.kubernetes.ungate(job)
        # else others have resumed it: its pods stay gated

    def change(self, quota: int) -> None:
        """Change the quota, and evict what has no room any more, the last Jobs first; and a group now and then."""
        self.quota = quota
        random = self.kubernetes.random
        for name in reversed([*self.admitted]):
            is_chosen = self.kubernetes.jobs[name] is not self.kubernetes.own and random.random() < CHOSEN_PART
            if is_chosen or (sum(self.admitted.values()) > quota and self.admitted[name]):
                self._evict(name, self.kubernetes.jobs[name].manifest)
                self.again[name] = self.kubernetes.loop.now + random.uniform(*AGAIN_SECONDS)

    def _evict(self, name: str, job: dict[str, Any]) -> None:
        self.admitted[name] = 0
        job["spec"]["suspend"] = True
        job["spec"]["template"]["metadata"].get("labels", {}).pop(STARTED_LABEL, None)
        self.kubernetes.write(job)


def pods_of(kubernetes: "Kubernetes", job: IndexedJob) -> list[dict[str, Any]]:
    """Return the pods of a Job, as the API server lists them."""
    pods = []
    for rank in set(job.ranks) & kubernetes.pods.keys():
        pod, metadata = kubernetes.pods[rank], {"labels": {INDEX_LABEL: str(rank - job.ranks.start)}}
        spec = {"schedulingGates": [GATE]} if pod.is_gated else {"nodeName": "node"}
        is_ready = rank in kubernetes.instance.online and not pod.is_lost
        status = {"conditions": [{"type": "Ready", "status": "True"}] if is_ready else []}
        going = {"deletionTimestamp": "now"} if pod.leaves else {}
        pods.append({"metadata": {**metadata, **going}, "spec": spec, "status": status})
    return pods
