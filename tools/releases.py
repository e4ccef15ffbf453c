"""A MiniCluster as a Helm release, for tests, benchmarks and tools: they change it and look at its objects."""

import json
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minicluster.kube.names import INDEX

from tools import tenant
from tools.clients import CHART, Done, Helm, KubernetesCluster, ProcessError, until, values_text
from tools.tenant import PLAIN, Tenant

#: Where Flux is in the pods of a release with the chart's defaults.
MOUNT = "/mnt/flux"
#: Kinds of the objects that the chart makes, or that these make.
KINDS = "jobs,pods,services,configmaps,secrets,serviceaccounts,roles,rolebindings"
JOB_NAME = "batch.kubernetes.io/job-name"
#: Seconds for a step that needs an image, a pod and a broker.
STEP_SECONDS = 120.0


def index_of(pod: Mapping[str, Any]) -> int:
    """Return the completion index of a pod."""
    return int(pod["metadata"]["labels"][INDEX])


def is_live(pod: Mapping[str, Any]) -> bool:
    """Say whether a pod has neither failed nor been deleted."""
    return "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] != "Failed"


@dataclass
class Release:
    """A release in a namespace; its values add up, as in a values file that is edited."""

    helm: Helm
    cluster: KubernetesCluster
    namespace: str
    name: str = "mc"
    chart: Path = CHART
    values: dict[str, Any] = field(default_factory=dict)
    world: Tenant = PLAIN  #: the values get what that of the namespace asks for

    # Helm ----------------------------------------------------------------------------------------------------

    def run(self, command: str, *args: object, values: Mapping[str, Any] | None = None, post: bool = True) -> Done:
        """Run `helm install` or `upgrade` with the post-renderer."""
        text = values_text(tenant.values({**self.values, **(values or {})}, self.world))
        renderer = ("--post-renderer", "minicluster") if post else ()
        where = ("--namespace", self.namespace, *renderer, "--values", "-")
        return self.helm.run(command, self.name, self.chart, *where, *args, stdin=text)

    def install(self, *args: object, **values: Any) -> Done:
        """Install; the values stay those of the release. Raises ProcessError."""
        self.values |= values
        return self._succeeds("install", *args)

    def upgrade(self, *args: object, **values: Any) -> Done:
        """Upgrade; the values stay those of the release. Raises ProcessError."""
        self.values |= values
        return self._succeeds("upgrade", *args)

    def _succeeds(self, command: str, *args: object) -> Done:
        done = self.run(command, *args)
        if done.code:
            raise ProcessError(f"helm {command} {self.name}: {done.both}")
        return done

    def refuse(self, *args: object, command: str = "upgrade", **values: Any) -> str:
        """Return both outputs of an upgrade (or install) that must fail. Raises ProcessError otherwise."""
        done = self.run(command, *args, values=values)
        if not done.code or "Traceback" in done.both:
            raise ProcessError(f"helm {command} {self.name} should have been refused: {done.both}")
        return done.both

    def ok(self, command: str, *args: object) -> str:
        """Return what another helm command prints. Raises ProcessError."""
        return self.helm.ok(*command.split(), self.name, "--namespace", self.namespace, *args)

    def certificate(self) -> str:
        """Return the certificate in the Secret, base64."""
        text: str = self.get("secret", f"{self.name}-curve")["data"]["curve.cert"]
        return text

    def revisions(self) -> list[tuple[int, str]]:
        """Return the release's revisions and their status."""
        return [(r["revision"], r["status"]) for r in json.loads(self.ok("history", "--output", "json"))]

    # Kubernetes ----------------------------------------------------------------------------------------------

    def kubectl(self, *args: object, stdin: str | None = None) -> str:
        """Return what kubectl prints in the namespace. Raises ProcessError."""
        return self.cluster.kubectl("--namespace", self.namespace, *args, stdin=stdin)

    def get(self, kind: str, name: str | None = None) -> dict[str, Any]:
        """Return an object, by default the one named as the release. Raises ProcessError."""
        document: dict[str, Any] = self.cluster.get(kind, name or self.name, "--namespace", self.namespace)
        return document

    def items(self, kinds: str = KINDS, *args: object) -> list[dict[str, Any]]:
        """Return the objects in the namespace, without those that every namespace has."""
        listed = self.cluster.get(kinds, "--namespace", self.namespace, *args)["items"]
        given = (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"))
        return [o for o in listed if (o["kind"], o["metadata"]["name"]) not in given]

    def objects(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the chart's objects by kind and name, without the fields that the cluster writes."""
        by_name = {(o["kind"], o["metadata"]["name"]): o for o in self.items("jobs,services,configmaps,secrets")}
        for item in by_name.values():
            item["metadata"].pop("managedFields", None)
            item.pop("status", None)
            if item["kind"] == "Job":
                item["metadata"].pop("resourceVersion")
        return {key: item for key, item in by_name.items() if not key[1].startswith("sh.helm.release")}

    def conditions(self) -> dict[str, dict[str, Any]]:
        """Return the Job's true conditions by type."""
        conditions = self.get("job")["status"].get("conditions", [])
        return {condition["type"]: condition for condition in conditions if condition["status"] == "True"}

    def condition(self, kind: str, seconds: float = 30) -> dict[str, Any]:
        """Wait for a condition of the Job and return it. Raises ClusterError."""
        self.cluster.wait(f"the Job's condition {kind}", lambda: kind in self.conditions(), seconds)
        return self.conditions()[kind]

    def pods(self, index: int | None = None) -> list[dict[str, Any]]:
        """Return the cluster's pods, including those that have ended, by index and age."""
        listed = self.items("pods", f"--selector={JOB_NAME}={self.name}")
        listed.sort(key=lambda pod: (index_of(pod), pod["metadata"]["creationTimestamp"]))
        return [pod for pod in listed if index in (None, index_of(pod))]

    def live_pods(self) -> dict[int, dict[str, Any]]:
        """Return by index the pods that have neither failed nor been deleted."""
        return {index_of(pod): pod for pod in self.pods() if is_live(pod)}

    def running(self, size: int, seconds: float = 30) -> dict[int, str]:
        """Wait until there are ``size`` pods and all run; return their UIDs by index. Raises ClusterError."""
        pods: dict[int, dict[str, Any]] = {}

        def ready() -> bool:
            nonlocal pods
            pods = self.live_pods()
            return set(pods) == set(range(size)) and all(p["status"]["phase"] == "Running" for p in pods.values())

        self.cluster.wait(f"{size} running pods", ready, seconds)
        return {index: pod["metadata"]["uid"] for index, pod in pods.items()}

    def pod(self, index: int) -> str:
        """Return the name of the pod of an index that runs and was not deleted; "" when there is none."""
        running = [pod for pod in self.pods(index) if is_live(pod) and pod["status"]["phase"] == "Running"]
        return str(running[-1]["metadata"]["name"]) if running else ""

    def evict(self, pod: str) -> None:
        """Evict a pod, as a drain of its node does."""
        metadata = {"name": pod, "namespace": self.namespace}
        eviction = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/eviction"
        self.kubectl("create", "--raw", path, "--filename=-", stdin=eviction)

    def uninstall(self) -> None:
        """Uninstall, and wait until the pods are gone."""
        self.ok("uninstall")
        until(lambda: not self.pods(), STEP_SECONDS, "the end of the pods")


class FluxRelease(Release):
    """A release whose pods run Flux: on a real cluster, not on simulated Kubernetes nodes."""

    def wait_for_end(self) -> dict[str, str]:
        """Return the reasons of the Job's conditions once it is Complete or Failed."""
        until(lambda: {"Complete", "Failed"} & self.conditions().keys(), STEP_SECONDS, "the end of the Job")
        return {kind: condition["reason"] for kind, condition in self.conditions().items()}

    def uids(self) -> list[str]:
        """Return the UIDs of the pods that run, by index."""
        return [pod["metadata"]["uid"] for pod in self.pods() if pod["status"]["phase"] == "Running"]

    def log(self, index: int) -> str:
        """Return the log of the last pod of an index."""
        return self.kubectl("logs", self.pods(index)[-1]["metadata"]["name"])

    def lead_codes(self) -> list[int]:
        """Return the exit codes of all pods of index 0 that are still listed."""
        states = [pod["status"]["containerStatuses"][0]["state"] for pod in self.pods(0)]
        return [state["terminated"]["exitCode"] for state in states]

    def created(self, index: int) -> int:
        """Return how many pods of an index have been made so far."""
        events = self.items("events", "--field-selector=reason=SuccessfulCreate")
        return sum(f"pod: {self.name}-{index}-" in event["message"] for event in events)

    def run_in(self, pod: str, *words: str) -> Done:
        """Run a command in a pod, whatever its exit code."""
        return self.cluster.run("kubectl", "--namespace", self.namespace, "exec", pod, "--", *words)

    def exec(self, index: int, *words: str) -> str:
        """Return what a command prints in the pod of an index; "" when there is no pod."""
        pod = self.pod(index)
        return self.run_in(pod, *words).out if pod else ""

    def flux(self, index: int, *words: str) -> str:
        """Return what flux prints in the pod of an index; "" when there is no pod."""
        return self.exec(index, f"{MOUNT}/bin/flux", *words)

    def up(self) -> str:
        """Return the ranks that the lead can use now."""
        return self.flux(0, "resource", "list", "-n", "-s", "up", "-o", "{ranks}").strip()

    def wait_for(self, ranks: str, seconds: float = STEP_SECONDS) -> float:
        """Wait until exactly these ranks are up; return after how many seconds."""
        begin = time.monotonic()
        until(lambda: self.up() == ranks, seconds, f"ranks {ranks}")
        return time.monotonic() - begin

    def broker(self, index: int) -> str:
        """Return the pod and start time of a broker, which differ from its successor's; "" when it doesn't answer."""
        pod = self.pod(index)
        started = self.flux(index, "getattr", "broker.starttime").strip()
        return f"{pod} {started}" if pod and started else ""

    def processes(self, index: int) -> list[int]:
        """Return the processes of a runner, by their ids on this machine; none where it runs on another one."""
        states = [one for pod in self.pods(index)[-1:] for one in pod["status"].get("containerStatuses", [])[:1]]
        ids, pids = [one["containerID"].rpartition("/")[2] for one in states], []
        for file in Path("/proc").glob("[0-9]*/cgroup"):
            with suppress(OSError):  # it ended meanwhile
                pids += [int(file.parent.name) for one in ids if one in file.read_text()]
        return pids

    def kill_container(self, index: int) -> None:
        """Kill all processes of a runner at once, as the kernel does with cgroup v2 when its memory is used up.

        Raises ProcessError where they are on another machine.
        """
        if not (processes := self.processes(index)):
            raise ProcessError(f"the processes of pod {index} are not on this machine")
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def kill_broker(self, index: int) -> None:
        """Kill the broker, not the pod."""
        pid = self.flux(index, "getattr", "broker.pid").strip()
        self.kubectl("exec", self.pod(index), "--", "/bin/sh", "-c", f"kill -9 {pid}")
