"""`minicluster run` beside `helm install`, `kubectl logs -f` and `helm uninstall`: the first line, the prompt, the CPU.

    python -m benchmarks.first_line FILE.json [--runs 10] [--image ubuntu:noble] [--nodes 2] [--namespace default]
    python -m benchmarks.first_line FILE.json --in NAME

With `--in` it is `minicluster run --in NAME`, beside `kubectl exec` of `flux run`, which has no instance of its own,
and of `flux run` in `flux alloc`, which has. The ways take turns, each with a command that prints its host's name on
each node. Times are from the command line: to the first line of the work, and from its last line to the prompt. CPU is
that of all processes of the client. Needs kubectl, helm with the plugin, and minicluster in PATH.
"""

import argparse
import secrets
import shlex
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.clusters import FLUX
from benchmarks.results import Row, save
from benchmarks.sizes import cpu_of_children
from tools.clients import CHART, ClusterError, output, run_program

WORDS = ["hostname"]
#: How lines of Helm and kubectl begin
AROUND = ("NAME:", "LAST DEPLOYED:", "NAMESPACE:", "STATUS:", "REVISION:", "DESCRIPTION:", "NOTES:", "release ", "pod/")


def by_hand(image: str, nodes: int, namespace: str) -> str:
    """Return a script that does it with Helm and kubectl alone."""
    name = f"first-{secrets.token_hex(3)}"
    where = ["--namespace", namespace]
    own = ["--set", f"size={nodes},tasks={nodes},logging.quiet=true"]
    own += ["--set", f"containers[0].image={image},containers[0].command={shlex.join(WORDS)}"]
    lead = f"--selector=batch.kubernetes.io/job-name={name},batch.kubernetes.io/job-completion-index=0"
    steps = (
        ["helm", "install", name, CHART, *where, "--hide-notes", "--post-renderer", "minicluster", *own],
        # a log of pods that a selector finds is not waited for
        ["kubectl", *where, "wait", "--for=jsonpath={.status.phase}=Running", "pod", lead, "--timeout=2m"],
        ["kubectl", *where, "logs", "--follow", lead],
        ["helm", "uninstall", name, *where],
    )
    return " && ".join(shlex.join(map(str, words)) for words in steps)


def by_us(image: str, nodes: int, namespace: str) -> str:
    """Return a script that does it with one command."""
    return shlex.join(
        ["minicluster", "run", "--namespace", namespace, "--image", image, f"--nodes={nodes}", "--", *WORDS]
    )


def inside(name: str, nodes: int, namespace: str) -> dict[str, str]:
    """Return the scripts by which a command runs in a MiniCluster that is there."""
    where = ["--namespace", namespace]
    labels = f"batch.kubernetes.io/job-name={name},batch.kubernetes.io/job-completion-index=0"
    lead = output("kubectl", *where, "get", "pods", "--selector", labels, "--output=name").strip()
    flux = ["kubectl", *where, "exec", lead, "--", FLUX]
    work = ["run", f"-N{nodes}", *WORDS]
    ours = ["minicluster", "run", *where, "--in", name, f"--nodes={nodes}", "--", *WORDS]
    return {
        "kubectl exec flux run": shlex.join([*flux, *work]),
        "minicluster run --in": shlex.join(ours),
        "kubectl exec flux alloc flux run": shlex.join([*flux, "alloc", f"-N{nodes}", "flux", *work]),
    }


def timed(script: str, lines: int) -> Mapping[str, float]:
    """Run a script whose work prints so many lines; return the seconds."""
    before, begin = cpu_of_children(), time.monotonic()
    with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True) as process:
        moments = [(line, time.monotonic()) for line in process.stdout or ()]
    end, cpu = time.monotonic(), cpu_of_children() - before
    found = [moment for line, moment in moments if not line.startswith(AROUND)][-lines:]
    if process.returncode or len(found) < lines:
        raise ClusterError(f"{script}: exit code {process.returncode}")
    return {"first": found[0] - begin, "prompt": end - found[-1], "cpu": cpu}


def main() -> None:
    """Measure both ways by turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--image", default="ubuntu:noble")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--in", dest="inside", default="")
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    given = (options.image, options.nodes, options.namespace)
    ways: dict[str, Callable[[], str]] = {
        "helm install, kubectl logs -f, helm uninstall": partial(by_hand, *given),
        "minicluster run": partial(by_us, *given),
    }
    if options.inside:
        scripts = inside(options.inside, options.nodes, options.namespace)
        ways = {way: partial(str, script) for way, script in scripts.items()}
    taken: dict[str, list[Mapping[str, float]]] = {way: [] for way in ways}
    for _ in range(options.runs):
        for way, script in ways.items():
            taken[way].append(timed(script(), options.nodes))
            print(way, {key: round(value, 2) for key, value in taken[way][-1].items()}, flush=True)
    rows: list[Row] = [
        {"way": way, "runs": options.runs}
        | {f"{key}_seconds": statistics.median(one[key] for one in found) for key in ("first", "prompt", "cpu")}
        for way, found in taken.items()
    ]
    for row in rows:
        row["times_first"] = row["first_seconds"] / rows[0]["first_seconds"]
    save(options.file, options.where, rows)


if __name__ == "__main__":
    run_program(main)
