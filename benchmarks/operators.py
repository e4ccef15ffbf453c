"""LAMMPS by mpirun in bare pods, the MPI Operator, flux-operator and the chart: work, launcher and whole life.

    python -m benchmarks.operators FILE.json --image IMAGE [--operators DIR] [--pods 2 4 8 16] [--rounds 2]

The comparison of arXiv 2309.17420, in small: LAMMPS' Lennard-Jones melt with a rank in each pod, all on one Kubernetes
node; the ways take turns. Work is LAMMPS' own `Loop time`, the launcher takes from mpirun or `flux run` to its end, and
the life is from the first command that creates something, a rendering included, until all pods are gone; what made them
is deleted once the lead has ended. The image has LAMMPS (`lmp`), Open MPI and a sshd to which root may log in with a
key. DIR has `mpi-operator` and `flux-operator`, built from their sources, and their definitions as NAME.yaml; a way
whose program is missing is left out. Needs the cluster of MINICLUSTER_TEST_KUBECONFIG.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks import operator_objects as objects
from benchmarks.results import Row, medians, save, with_load
from tools import testbed
from tools.clients import CHART, ClusterError, KubernetesCluster, output, run_program, until
from tools.embedded import LEASH
from tools.tenant import PLAIN

LIFE_SECONDS = 300.0
LOOK_SECONDS = 0.25
#: The ways, as the page names them
WAYS = {
    "mpirun": "mpirun, bare pods",
    "mpi-operator": "MPI Operator",
    "flux-operator": "flux-operator",
    "chart": "this chart",
}
#: The words of a controller, after its program
FLAGS = {
    "mpi-operator": ["-kubeConfig", "{kubeconfig}", "-lock-namespace", "{namespace}"],
    "flux-operator": ["--metrics-bind-address=0", "--health-probe-bind-address=0"],
}


@contextmanager
def controller(name: str, folder: Path, cluster: KubernetesCluster, namespace: str) -> Iterator[None]:
    """Run the controller of an operator until the end of the block, with its definition."""
    definition = folder / f"{name}.yaml"
    cluster.kubectl("apply", "--server-side", "--filename", definition)
    is_served = ("wait", "--for=condition=Established", "--filename", definition)
    cluster.wait(f"the definition of {name}", lambda: bool(cluster.kubectl(*is_served)))
    where = {"kubeconfig": cluster.env["KUBECONFIG"], "namespace": namespace}
    words = [*LEASH, str(folder / name), *(flag.format(**where) for flag in FLAGS[name])]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=cluster.env)
        try:
            yield
        finally:
            if process.poll() is not None:
                log.seek(0)
                print(f"{name} ended with {process.returncode}: {log.read()[-2000:]}", file=sys.stderr)
            process.kill()
            process.wait()
            cluster.kubectl("delete", "--filename", definition)


class Way:
    """A way to run LAMMPS in a namespace."""

    def __init__(self, name: str, image: str, cluster: KubernetesCluster, namespace: str) -> None:
        self.name, self.image, self.cluster, self.namespace = name, image, cluster, namespace

    def kubectl(self, *words: object, stdin: str | None = None) -> str:
        """Return what kubectl prints in the namespace."""
        return self.cluster.kubectl("-n", self.namespace, *words, stdin=stdin)

    def lead(self) -> Mapping[str, str]:
        """Return name and phase of the pod that starts LAMMPS."""
        columns = "-o=jsonpath={range .items[*]}{.metadata.name} {.status.phase}{end}"
        found = self.kubectl("get", "pods", "-l", objects.LEADS[self.name], columns).split()
        return dict(zip(("name", "phase"), found, strict=False))

    def helm(self, *words: str, stdin: str | None = None) -> str:
        """Return what Helm prints."""
        return output("helm", *words, "--namespace", self.namespace, env=self.cluster.env, stdin=stdin)

    def measure(self, pods: int) -> Row:
        """Run it once, and return the seconds of each part."""
        begin = time.monotonic()
        if self.name == "chart":
            text = objects.chart(self.image, pods)
            words = ("install", objects.NAME, str(CHART), "--post-renderer", "minicluster", "--values", "-")
            self.helm(*words, stdin=text)
        else:
            text = objects.OBJECTS[self.name](self.image, pods)
            self.kubectl("create", "--filename=-", stdin=text)
        try:
            self.wait(lambda: self.lead().get("phase") in ("Succeeded", "Failed"), "the end of the lead")
            ended = time.monotonic() - begin
            said = self.kubectl("logs", self.lead()["name"], "--all-containers")
        finally:
            if self.name == "chart":
                self.helm("uninstall", objects.NAME)
            else:
                self.kubectl("delete", "--wait=false", "--filename=-", stdin=text)
            self.wait(lambda: not self.kubectl("get", "pods", "-o", "name"), "the end of the pods")
        return {**read(said), "ended_seconds": ended, "life_seconds": time.monotonic() - begin}

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Look often: `until` asks less and less."""
        end = time.monotonic() + LIFE_SECONDS
        while not done():
            if time.monotonic() > end:
                raise ClusterError(f"{self.name}: {what} did not come within {LIFE_SECONDS:g} s")
            time.sleep(LOOK_SECONDS)


def read(said: str) -> Row:
    """Return the seconds of work and launcher from a log. Raises ClusterError."""
    loop = re.search(r"^Loop time of (\S+) on", said, re.MULTILINE)
    stamps = [float(at) for at in re.findall(r"^stamp (\S+)$", said, re.MULTILINE)]
    if not loop or len(stamps) != 2:  # its begin and its end
        raise ClusterError(f"LAMMPS did not run: {said[-2000:]}")
    return {"work_seconds": float(loop[1]), "launcher_seconds": stamps[1] - stamps[0]}


def summary(way: str, pods: int, runs: Sequence[Row]) -> Row:
    """Return the medians of a way, and the shortest and longest life."""
    return {"way": WAYS[way], "pods": pods, "rounds": len(runs), **medians(runs, "life_seconds")}


def main() -> None:
    """Measure the ways in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--image", required=True)
    parser.add_argument("--operators", type=Path, default=Path())
    parser.add_argument("--pods", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    load, cluster = os.getloadavg()[0], testbed.kubernetes()
    names = [way for way in WAYS if way not in FLAGS or (options.operators / way).exists()]
    known: dict[tuple[str, int], list[Row]] = {(way, pods): [] for pods in options.pods for way in names}
    with testbed.new_namespace(world=PLAIN) as namespace, ExitStack() as beside:
        for name in set(names) & set(FLAGS):
            beside.enter_context(controller(name, options.operators, cluster, namespace))
        until(lambda: cluster.kubectl("-n", namespace, "get", "serviceaccount", "default"))
        for _ in range(options.rounds):
            for (name, pods), runs in known.items():
                runs.append(Way(name, options.image, cluster, namespace).measure(pods))
                print(name, pods, runs[-1], flush=True)
                rows = [summary(*key, found) for key, found in known.items() if found]
                save(options.file, with_load(options.where, load), rows)


if __name__ == "__main__":
    run_program(main)
