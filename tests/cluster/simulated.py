"""Releases in a cluster."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embedded import EmbeddedCluster
from support import CHART, Done, Helm, values_text

#: Kinds of which the chart, or what it starts, makes objects.
KINDS = "jobs,pods,services,configmaps,secrets,serviceaccounts,roles,rolebindings"
_numbers = itertools.count()


def new_namespace(cluster: EmbeddedCluster, **labels: str) -> str:
    """Make a namespace in which pods can start, and return its name."""
    name = f"test-{next(_numbers)}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    cluster.wait("the service account", lambda: bool(cluster.get("serviceaccount", "default", "--namespace", name)))
    return name


@dataclass
class Release:
    """A release in a namespace of its own; values add up as in a values file that is edited."""

    helm: Helm
    cluster: EmbeddedCluster
    namespace: str
    name: str = "mc"
    chart: Path = CHART
    values: dict[str, Any] = field(default_factory=dict)

    def run(self, command: str, *args: object, values: Mapping[str, Any] | None = None, post: bool = True) -> Done:
        """Run `helm install` or `upgrade` with the post-renderer."""
        text = values_text({**self.values, **(values or {})})
        renderer = ("--post-renderer", "minicluster") if post else ()
        where = ("--namespace", self.namespace, *renderer, "--values", "-")
        return self.helm.run(command, self.name, self.chart, *where, *args, stdin=text)

    def install(self, *args: object, **values: Any) -> Done:
        """Install; it must end well. The values stay those of the release."""
        self.values |= values
        done = self.run("install", *args)
        assert done.code == 0, done.both
        return done

    def upgrade(self, *args: object, **values: Any) -> Done:
        """Upgrade; it must end well. The values stay those of the release."""
        self.values |= values
        done = self.run("upgrade", *args)
        assert done.code == 0, done.both
        return done

    def refuse(self, *args: object, command: str = "upgrade", **values: Any) -> str:
        """Return what a person sees of an upgrade (or install) that must fail."""
        done = self.run(command, *args, values=values)
        assert done.code != 0, done.both
        assert "Traceback" not in done.both
        return done.both

    def ok(self, command: str, *args: object) -> str:
        """Return what another helm command prints."""
        return self.helm.ok(*command.split(), self.name, "--namespace", self.namespace, *args)

    def get(self, kind: str, name: str | None = None) -> dict[str, Any]:
        """Return an object, by default the one named as the release."""
        found: dict[str, Any] = self.cluster.get(kind, name or self.name, "--namespace", self.namespace)
        return found

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        """Run kubectl in the namespace."""
        return self.cluster.kubectl(*args, "--namespace", self.namespace, stdin=stdin)

    def items(self, kinds: str = KINDS) -> list[dict[str, Any]]:
        """Return the objects in the namespace, but for those that any namespace has."""
        found = self.cluster.get(kinds, "--namespace", self.namespace)["items"]
        given = (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"))
        return [o for o in found if (o["kind"], o["metadata"]["name"]) not in given]

    def objects(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the chart's objects by kind and name, without what the cluster writes to them."""
        found = {(o["kind"], o["metadata"]["name"]): o for o in self.items("jobs,services,configmaps,secrets")}
        for item in found.values():
            item["metadata"].pop("managedFields", None)
            item.pop("status", None)
            if item["kind"] == "Job":
                item["metadata"].pop("resourceVersion")
        return {key: item for key, item in found.items() if not key[1].startswith("sh.helm.release")}

    def pods(self) -> dict[int, dict[str, Any]]:
        """Return the cluster's pods that are not about to go, by index."""
        job, index = "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index"
        found = self.cluster.get("pods", "--namespace", self.namespace, f"--selector={job}={self.name}")["items"]
        alive = [p for p in found if "deletionTimestamp" not in p["metadata"] and p["status"]["phase"] != "Failed"]
        return {int(p["metadata"]["labels"][index]): p for p in alive}

    def running(self, size: int) -> dict[int, str]:
        """Wait until there are so many pods and all run; return their UIDs by index."""

        def ready() -> bool:
            pods = self.pods()
            return set(pods) == set(range(size)) and all(p["status"]["phase"] == "Running" for p in pods.values())

        self.cluster.wait(f"{size} running pods", ready)
        return {index: pod["metadata"]["uid"] for index, pod in self.pods().items()}

    def condition(self, kind: str, seconds: float = 30) -> dict[str, Any]:
        """Wait for a condition of the Job and return it."""
        found: list[dict[str, Any]] = []

        def there() -> bool:
            conditions = self.get("job")["status"].get("conditions", [])
            found[:] = [c for c in conditions if c["type"] == kind and c["status"] == "True"]
            return bool(found)

        self.cluster.wait(f"the Job's condition {kind}", there, seconds)
        return found[0]

    def end(self, index: int, code: int) -> None:
        """Let the containers of a pod end with an exit code."""
        name = self.pods()[index]["metadata"]["name"]
        self.kubectl("annotate", "pod", name, f"kwok.x-k8s.io/exit-code={code}")

    def certificate(self) -> str:
        """Return the certificate in the Secret, base64."""
        text: str = self.get("secret", f"{self.name}-curve")["data"]["curve.cert"]
        return text

    def revisions(self) -> list[tuple[int, str]]:
        """Return the release's revisions and their status."""
        return [(r["revision"], r["status"]) for r in json.loads(self.ok("history", "--output", "json"))]
