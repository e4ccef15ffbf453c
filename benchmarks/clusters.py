"""The MiniClusters that benchmarks/elasticity.py measures."""

import json
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from minicluster.console.templates import rendered
from minicluster.flux import parse_idset

from tools.clients import CHART, output, until
from tools.testbed import values_of

NAME = "bench-elastic"
FLUX = "/mnt/flux/bin/flux"
START_SECONDS = 300.0
T = TypeVar("T")


def wait(found: Callable[[], T]) -> T:
    """Return the first true value of found(); ask less often than tests do, to leave the CPUs to the cluster."""
    return until(found, START_SECONDS, pause=0.2)


class MeasuredCluster:
    """The MiniCluster that is measured."""

    def __init__(self, values: dict[str, Any], kubectl: list[str], namespace: str, name: str = NAME) -> None:
        self.kubectl, self.namespace, self.name = kubectl, namespace, name
        everything = values_of({"logging": {"quiet": True}, **values}, self.runner, scheduler=self.scheduler)
        words = ("--namespace", namespace, "--post-renderer", "minicluster", "-f", "-")
        output("helm", "install", name, CHART, *words, stdin=json.dumps(everything))
        self.lead = wait(self._lead)

    words: tuple[str, ...] = (FLUX,)
    runner: Mapping[str, Any] = {"cores": 1}
    scheduler = "Fluxion"

    def _lead(self) -> str:
        selector = f"batch.kubernetes.io/job-name={self.name},batch.kubernetes.io/job-completion-index=0"
        pods = json.loads(output(*self.kubectl, "get", "pods", "-l", selector, "-o", "json"))["items"]
        ready = [p for p in pods if p["status"].get("containerStatuses", [{}])[0].get("started")]
        return str(ready[0]["metadata"]["name"]) if ready else ""

    def exec(self, *words: str, seconds: float = 120) -> str:
        """Return what a command prints on the lead."""
        return output(*self.kubectl, "exec", self.lead, "-c", self.name, "--", *words, seconds=seconds)

    def flux(self, *words: str) -> str:
        """Return what flux prints on the lead."""
        return self.exec(*self.words, *words)

    def resize(self, size: int) -> float:
        """Change the size; return the time of the change."""
        begin = time.time()
        change = json.dumps({"spec": {"completions": size, "parallelism": size}})
        output(*self.kubectl, "patch", "job", self.name, "--type=merge", "-p", change)
        return begin

    def size(self) -> int:
        """Return the size of the Job."""
        return int(json.loads(output(*self.kubectl, "get", "job", self.name, "-o", "json"))["spec"]["completions"])

    def changes(self) -> list[tuple[float, str, set[int]]]:
        """Return the times at which ranks went online or offline, as Flux recorded them."""
        lines = self.flux("resource", "eventlog", "-f", "json").splitlines()
        events = [json.loads(line) for line in lines]
        return [
            (event["timestamp"], event["name"], set(parse_idset(event["context"]["idset"])))
            for event in events
            if event["name"] in ("online", "offline")
        ]

    def online(self, since: float) -> dict[int, float]:
        """Return the time at which each rank came online after a moment."""
        return {r: at for at, name, ranks in self.changes() for r in ranks if name == "online" and at > since}

    def up(self) -> int:
        """Return how many nodes are up."""
        return int(self.flux("resource", "list", "-n", "-s", "up", "-o", "{nnodes}") or 0)

    def resized(self) -> float:
        """Return when the agent last changed the size: the container runtime's time of the line in its log."""
        lines = output(*self.kubectl, "logs", "--timestamps", self.lead, "-c", "minicluster-agent").splitlines()
        stamps = [line.split()[0] for line in lines if " -> " in line]
        return datetime.fromisoformat(stamps[-1]).timestamp()

    def run(self, nodes: int) -> tuple[float, float]:
        """Run a job that prints a line on each of some nodes; return when it was submitted and when it printed."""
        job = self.flux("submit", f"-N{nodes}", f"-n{nodes}", "--exclusive", "date", "+%s.%N").strip()
        printed = max(map(float, self.flux("job", "attach", job).split()))
        return float(self.flux("jobs", "-n", "-o", "{t_submit}", job)), printed

    def pods(self) -> int:
        """Return how many pods there are."""
        return output(
            *self.kubectl, "get", "pods", "-l", f"batch.kubernetes.io/job-name={self.name}", "-o", "name"
        ).count("\n")

    def remove(self) -> None:
        """Uninstall it and wait until its pods are gone."""
        output("helm", "uninstall", self.name, "--namespace", self.namespace)
        wait(lambda: not self.pods())


def bare(name: str, size: int, *, keeps: bool = False) -> str:
    """Return the script of bare pods that start Flux by hand."""
    return rendered(__file__, "bare_cluster.sh.j2", name=name, last=size - 1, keeps=keeps)


class BareCluster(MeasuredCluster):
    """Pods that start Flux with the shortest script, in place of those of a MiniCluster, with its hosts.

    With ``keeps`` Flux can continue after a kill, as it always can in a MiniCluster.
    """

    words = ("env", "FLUX_URI=local:///mnt/flux/local", "/opt/views/view/bin/flux")

    def __init__(self, most: int, kubectl: list[str], namespace: str, *, keeps: bool = False) -> None:
        super().__init__({"size": 1, "maxSize": most}, kubectl, namespace, f"{NAME}-{'kept' if keeps else 'bare'}")
        job = json.loads(output(*kubectl, "get", "job", self.name, "-o", "json"))
        output(*kubectl, "delete", "job", self.name, "--cascade=foreground", "--wait")
        template = job["spec"]["template"]
        container = template["spec"]["containers"][0]
        container.pop("startupProbe")
        container["command"] = ["sh", "-c", bare(self.name, most, keeps=keeps)]
        for label in ("controller-uid", "batch.kubernetes.io/controller-uid"):
            template["metadata"]["labels"].pop(label, None)
        spec = {"completionMode": "Indexed", "completions": 1, "parallelism": 1, "template": template}
        manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": self.name}, "spec": spec}
        output(*kubectl, "create", "-f", "-", stdin=json.dumps(manifest))
        self.lead = wait(self._lead)

    def remove(self) -> None:
        """Remove the Job, which Helm does not know, and the rest."""
        output(*self.kubectl, "delete", "job", self.name, "--cascade=foreground", "--wait")
        super().remove()
