"""A MiniCluster from `helm install` to `helm uninstall`, with the commands that do it.

`make demo` shows it on a local control plane, where pods are Running but nothing runs in them.
`make demo CONTEXT=name` shows it on a cluster of yours, in a namespace that it makes and removes.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.clients import BIN, ROOT, ClusterError, KubernetesCluster, ProcessError
from tools.embedded import EmbeddedCluster

NAMESPACE = "minicluster-demo"
CHART = ["charts/minicluster", "--post-renderer", "minicluster"]
PODS = ["--selector", "batch.kubernetes.io/job-name=demo"]
LEAD = ["--selector", "batch.kubernetes.io/job-name=demo,batch.kubernetes.io/job-completion-index=0"]
POD_COLUMNS = "POD:.metadata.name,HOSTNAME:.spec.hostname,ADDRESS:.status.podIP,NODE:.spec.nodeName,PHASE:.status.phase"
JOB_COLUMNS = (
    "COMPLETIONS:.spec.completions,PARALLELISM:.spec.parallelism,MODE:.spec.completionMode,"
    "SUCCEEDS-WITH-INDEX:.spec.successPolicy.rules[*].succeededIndexes,RETRIES:.spec.backoffLimit"
)


@dataclass
class Demo:
    """A cluster, how many seconds its pods may take, and whether anything runs in them."""

    cluster: KubernetesCluster
    seconds: float
    real: bool

    def story(self) -> None:
        """Install, scale up and down, remove. Raises ClusterError."""
        heading("Install: 4 brokers, and hosts for 8 in their configuration")
        self.run("helm", "install", "demo", *CHART, "--set", "size=4,maxSize=8")
        self.show(4)
        heading("What the post-renderer computed")
        self.run("kubectl", "get", "configmap", "demo-config", "--output", r"jsonpath={.data.broker\.toml}")
        for size in (6, 3):
            heading(f"Scale to {size}: nothing but the Job's two numbers changes")
            self.run("helm", "upgrade", "demo", *CHART, "--reuse-values", "--set", f"size={size}", "--hide-notes")
            self.show(size)
        heading("Remove")
        self.run("helm", "uninstall", "demo")
        self.cluster.wait("the end of its objects", lambda: not self.objects(), self.seconds)
        print("\nNothing is left of it.")

    def show(self, size: int) -> None:
        """Show the Job and its pods, once there are as many as wanted."""
        start = time.monotonic()
        self.cluster.wait(f"{size} running pods", lambda: self.phases() == ["Running"] * size, self.seconds)
        print(f"\n{size} pods are Running after {time.monotonic() - start:.1f} s\n")
        self.run("kubectl", "get", "job", "demo", "--output", f"custom-columns={JOB_COLUMNS}")
        self.run("kubectl", "get", "pods", *PODS, "--output", f"custom-columns={POD_COLUMNS}")
        if self.real:
            self.show_flux()

    def show_flux(self) -> None:
        """Show the nodes that Flux itself lists."""
        lead = self.cluster.output("kubectl", "get", "pods", *LEAD, "--output=name").strip()
        self.run("helm", "test", "demo", "--timeout=90s")
        self.run("kubectl", "logs", lead, "--tail=20")
        self.run("kubectl", "exec", lead, "--", "/mnt/flux/bin/flux", "resource", "list")

    def phases(self) -> list[str]:
        """Return the phase of each pod that has not ended, "Terminating" for a pod that is being deleted."""
        pods = self.cluster.get("pods", *PODS)["items"]
        phases = ["Terminating" if "deletionTimestamp" in p["metadata"] else p["status"]["phase"] for p in pods]
        return [phase for phase in phases if phase not in {"Succeeded", "Failed"}]

    def objects(self) -> str:
        """Return the names of the release's objects."""
        label = "app.kubernetes.io/instance=demo"
        return self.cluster.output("kubectl", "get", "all,configmaps,secrets", "--selector", label, "--output=name")

    def run(self, *command: str) -> None:
        """Print a command and run it with its output shown. Raises ProcessError."""
        print(bold(f"$ {shlex.join(command)}"), flush=True)
        if code := subprocess.run(command, env=self.cluster.env, cwd=ROOT, check=False).returncode:
            raise ProcessError(f"{command[0]} {command[1]} ended with {code}")
        print()


def heading(text: str) -> None:
    """Print the title of a chapter."""
    print(f"\n{bold(f'== {text}')}\n", flush=True)


def bold(text: str) -> str:
    """Return the text, in bold on a terminal."""
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


@contextmanager
def own_cluster(work: Path) -> Iterator[Demo]:
    """Start a control plane for the demo."""
    heading("A control plane: etcd, API server, controllers, scheduler, four Kubernetes nodes")
    start = time.monotonic()
    with EmbeddedCluster(BIN, work / "cluster") as own:
        print(f"ready after {time.monotonic() - start:.1f} s; nothing runs in its pods")
        own.env |= announce(own.kubeconfig)
        yield Demo(own, seconds=60, real=False)


@contextmanager
def your_cluster(context: str, work: Path) -> Iterator[Demo]:
    """Make a namespace for the demo in the cluster of a kubeconfig's context, and remove it."""
    heading(f"Namespace {NAMESPACE} in the cluster of context {context}")
    if not shutil.which("kubectl"):
        raise ClusterError("kubectl is missing: install it, or `make tools`")
    view = ("config", "view", "--minify", "--flatten", "--raw", "--output=json", f"--context={context}")
    config: dict[str, Any] = json.loads(KubernetesCluster(os.environ).kubectl(*view))
    config["contexts"][0]["context"]["namespace"] = NAMESPACE
    kubeconfig = work / "kubeconfig"
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(json.dumps(config))
    demo = Demo(KubernetesCluster(os.environ | announce(kubeconfig)), seconds=300, real=True)
    demo.run("kubectl", "create", "namespace", NAMESPACE)
    try:
        yield demo
    finally:
        # the release first: the namespace is removed only after its pods, which may wait for their Job
        demo.run("helm", "uninstall", "demo", "--ignore-not-found")
        demo.run("kubectl", "delete", "namespace", NAMESPACE, "--timeout=5m")


def cluster(context: str | None, folder: str) -> AbstractContextManager[Demo]:
    """Return the cluster for the demo."""
    return your_cluster(context, Path(folder)) if context else own_cluster(Path(folder))


def announce(kubeconfig: Path) -> dict[str, str]:
    """Print the variables that the commands need in their environment, and return them."""
    variables = {"KUBECONFIG": str(kubeconfig), "HELM_PLUGINS": str(ROOT)}
    for name, value in variables.items():
        print(bold(f"$ export {name}={shlex.quote(value)}"))
    return variables


def main() -> int:
    """Run the demo; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--context", help="of your kubeconfig; without it, a control plane of its own")
    context = parser.parse_args().context
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="minicluster-demo-") as folder,
            cluster(context, folder) as demo,
        ):
            demo.story()
    except ClusterError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
