"""How fast a MiniCluster starts: from `kubectl apply` to the output of its command, beside bare pods.

    python benchmarks/start.py [--runs 20] [--size 4] [--context NAME]

Each run times, one after the other: an Indexed Job of the same pods whose containers only echo (bare), the
chart with the view as an image volume (image), and with the view copied (copy). The time of the output is
the container runtime's timestamp of the line, so the cluster's clock must be this machine's.
Needs kubectl, helm and minicluster in PATH, and Kubernetes 1.36 for the mode `image`.
"""

import argparse
import json
import statistics
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parent.parent / "charts" / "minicluster"
LINE = "hello world"


def run(*words: str, stdin: str = "") -> str:
    """Return what a command prints."""
    return subprocess.run(words, input=stdin, capture_output=True, text=True, check=True).stdout


def rendered(mode: str, options: argparse.Namespace, kubectl: list[str]) -> list[dict[str, Any]]:
    """Return the manifests of a MiniCluster that says hello."""
    version = json.loads(run(*kubectl, "version", "-o", "json"))["serverVersion"]["gitVersion"]
    container = {"image": "ubuntu:noble", "command": f"echo {LINE}"}
    values = {"size": options.size, "logging": {"quiet": True}, "containers": [container]}
    words = [
        "helm",
        "template",
        f"bench-{mode}",
        str(CHART),
        "--namespace",
        options.namespace,
        "--skip-tests",
        "-f",
        "-",
    ]
    words += [
        "--set",
        f"flux.container.mode={mode}",
        "--kube-version",
        version,
        "--api-versions",
        "batch/v1/Job",
    ]
    manifests = run(*words, stdin=json.dumps(values))
    return [d for d in yaml.safe_load_all(run("minicluster", "render", "--random-curve", stdin=manifests)) if d]


def bare(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the Job alone, its containers with nothing to do but the echo."""
    text = json.dumps(next(d for d in documents if d["kind"] == "Job")).replace("bench-image", "bench-bare")
    job: dict[str, Any] = json.loads(text)
    pod = job["spec"]["template"]["spec"]
    pod["containers"][0].pop("startupProbe")
    pod["containers"][0]["command"] = ["echo", LINE]
    own = ("minicluster-config", "minicluster-curve")
    pod["volumes"] = [v for v in pod["volumes"] if v["name"] not in own]
    pod["containers"][0]["volumeMounts"] = [m for m in pod["containers"][0]["volumeMounts"] if m["name"] not in own]
    return [job]


def seconds_to_output(name: str, documents: list[dict[str, Any]], kubectl: list[str]) -> float:
    """Apply the manifests and return the seconds until the lead prints the line; remove them again."""
    manifests = yaml.safe_dump_all(documents)
    begin = time.time()
    run(*kubectl, "apply", "-f", "-", stdin=manifests)
    selector = f"batch.kubernetes.io/job-name={name},batch.kubernetes.io/job-completion-index=0"
    try:
        while time.time() < begin + 120:
            log = subprocess.run(
                [*kubectl, "logs", "--timestamps", "-l", selector],
                capture_output=True,
                text=True,
                check=False,
            ).stdout
            for line in log.splitlines():
                stamp, _, text = line.partition(" ")
                if text == LINE:
                    return datetime.fromisoformat(stamp).timestamp() - begin
            time.sleep(0.2)
        raise TimeoutError(f"{name} printed nothing within 120 s")
    finally:
        run(*kubectl, "delete", "-f", "-", "--wait", "--cascade=foreground", stdin=manifests)


def main() -> None:
    """Time the ways in turns and print median, maximum and the ratio to bare pods."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--size", type=int, default=4)
    parser.add_argument("--context")
    parser.add_argument("--namespace", default="default")
    options = parser.parse_args()
    kubectl = [
        "kubectl",
        "-n",
        options.namespace,
        *(["--context", options.context] if options.context else []),
    ]
    image, copy = (rendered(mode, options, kubectl) for mode in ("image", "copy"))
    ways = {"bare": bare(image), "image": image, "copy": copy}
    times: dict[str, list[float]] = {way: [] for way in ways}
    for count in range(options.runs):
        for way, documents in ways.items():
            times[way].append(seconds_to_output(f"bench-{way}", documents, kubectl))
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
    main()
