"""How fast a MiniCluster starts, from `kubectl apply` to the output of its command, compared with bare pods.

    python -m benchmarks.start [--runs 20] [--size 4] [--views image copy memory] [--context NAME]

Each run times, one after the other, an Indexed Job of the same images whose containers
  echo    only print the line: the time that Kubernetes itself needs,
  bare    start Flux with the shortest possible script, with the chart's certificate and hosts,
  jobset  do the same as pods of a JobSet, where the cluster has its controller,
and the chart with the view as an image volume (image), and with the view copied, to the disk (copy) and into memory
(memory). The others get the view in the first of these ways that are asked for. The time of the output is the container
runtime's timestamp of the line, so the cluster's clock must be this machine's.
Needs kubectl, helm and minicluster in PATH, and Kubernetes 1.35 for image volumes.
"""

import argparse
import json
import statistics
import time
from datetime import datetime
from typing import Any

import yaml
from minicluster.console import templates
from minicluster.documents import yamlio

from tools.clients import CHART, output, run, run_program, until

LINE = "hello world"
#: The ways by which pods get the view: values of flux.container
VIEWS = {"image": {"mode": "image"}, "copy": {"mode": "copy"}, "memory": {"mode": "copy", "copyMedium": "Memory"}}


def rendered(way: str, options: argparse.Namespace, kubectl: list[str]) -> list[dict[str, Any]]:
    """Return the manifests of a MiniCluster that prints hello, with one of VIEWS."""
    version = json.loads(output(*kubectl, "version", "-o", "json"))["serverVersion"]["gitVersion"]
    container = {"image": "ubuntu:noble", "command": f"echo {LINE}"}
    values = {"size": options.size, "logging": {"quiet": True}, "containers": [container]}
    values["flux"] = {"container": VIEWS[way]}
    words = ["helm", "template", f"bench-{way}", CHART, "--namespace", options.namespace, "--skip-tests", "-f", "-"]
    words += ["--kube-version", version, "--api-versions", "batch/v1/Job"]
    manifests = output(*words, stdin=json.dumps(values))
    return [d for d in yaml.safe_load_all(output("minicluster", "render", "--random-curve", stdin=manifests)) if d]


def renamed(documents: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the manifests of the chart under another name."""
    old = next(d for d in documents if d["kind"] == "Job")["metadata"]["name"]
    copied: list[dict[str, Any]] = json.loads(json.dumps(documents).replace(old, name))
    return copied


def with_command(documents: list[dict[str, Any]], command: list[str]) -> list[dict[str, Any]]:
    """Return the manifests with another command in the containers, and no probe."""
    container = next(d for d in documents if d["kind"] == "Job")["spec"]["template"]["spec"]["containers"][0]
    container.pop("startupProbe")
    container["command"] = command
    return documents


def bare_script(name: str, size: int) -> str:
    """Return the script of pods of a Job that start Flux by hand."""
    words = ["echo", *LINE.split()]
    return templates.rendered(__file__, "bare_start.sh.j2", name=name, last=size - 1, keeps=False, command=words)


def bare(documents: list[dict[str, Any]], name: str, size: int) -> list[dict[str, Any]]:
    """Return the manifests with pods that start Flux by hand, under another name."""
    return with_command(renamed(documents, name), ["sh", "-c", bare_script(name, size)])


def as_jobset(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the manifests with a JobSet in place of their Job, which it creates under the same name."""
    job = next(d for d in documents if d["kind"] == "Job")
    name, replica, _ = job["metadata"]["name"].split("-")
    spec = {
        "network": {"subdomain": job["metadata"]["name"]},
        "replicatedJobs": [{"name": replica, "template": {"spec": job["spec"]}}],
    }
    made = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}
    # it makes the Service too
    return [*(d for d in documents if d["kind"] not in ("Job", "Service")), made]


def seconds_to_output(name: str, documents: list[dict[str, Any]], kubectl: list[str]) -> float:
    """Apply the manifests and return the seconds until the lead prints the line; remove them again."""
    manifests = b"".join(map(yamlio.dump, documents)).decode()
    begin = time.time()
    output(*kubectl, "apply", "-f", "-", stdin=manifests)
    selector = f"batch.kubernetes.io/job-name={name},batch.kubernetes.io/job-completion-index=0"
    words = (*kubectl, "logs", "--timestamps", "-l", selector)

    def printed() -> list[str]:
        stamps = (line.partition(" ") for line in run(*words).out.splitlines())
        return [stamp for stamp, _, text in stamps if text == LINE]

    try:
        stamp = until(printed, 120, f"the output of {name}", pause=0.2)[0]
        return datetime.fromisoformat(stamp).timestamp() - begin
    finally:
        output(*kubectl, "delete", "-f", "-", "--wait", "--cascade=foreground", stdin=manifests)


def main() -> None:
    """Time the ways in turns and print median, maximum and the ratio to bare pods."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--size", type=int, default=4)
    parser.add_argument("--views", choices=VIEWS, nargs="+", default=[*VIEWS])
    parser.add_argument("--context")
    parser.add_argument("--namespace", default="default")
    options = parser.parse_args()
    kubectl = [
        "kubectl",
        "-n",
        options.namespace,
        *(["--context", options.context] if options.context else []),
    ]
    views = {way: rendered(way, options, kubectl) for way in options.views}
    first = views[options.views[0]]
    ways = {
        "echo": with_command(renamed(first, "bench-echo"), ["echo", LINE]),
        "bare": bare(first, "bench-bare", options.size),
        **views,
    }
    if output(*kubectl, "api-resources", "--api-group=jobset.x-k8s.io", "-o", "name"):
        ways["jobset"] = as_jobset(bare(first, "bench-jobset-0", options.size))
    times: dict[str, list[float]] = {way: [] for way in ways}
    for count in range(options.runs):
        for way, documents in ways.items():
            name = "bench-jobset-0" if way == "jobset" else f"bench-{way}"
            times[way].append(seconds_to_output(name, documents, kubectl))
        print(
            f"{count + 1:2}",
            *(f"{way} {all_[-1]:.2f} s" for way, all_ in times.items()),
            sep="  ",
            flush=True,
        )
    base = statistics.median(times["bare"])
    for way, all_ in times.items():
        median = statistics.median(all_)
        print(f"{way:6} median {median:5.2f} s  max {max(all_):5.2f} s  {median / base:4.2f} x bare")


if __name__ == "__main__":
    run_program(main)
