"""The time that the post-renderer adds to `helm template`, and how it depends on the input.

    python -m benchmarks.render [--runs 20]

Prints the median seconds of `helm template` with and without the post-renderer, by both Helms in turns, and of
`minicluster` alone: for a maxSize of 4 and of 100,000, for a stream with 1,000 other documents, and for one with
1,000 MiniClusters. Then of Helm 3 with it, for 4,000 nodes of one kind and for 1,000 of each of four kinds. Needs
helm (4), helm3 and minicluster in PATH, and the bytecode of the package, as pip installs it (`python -m compileall -q
plugin/minicluster`).
"""

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable

from tools.clients import CHART, ROOT, output, run_program

TEMPLATE = ("template", "bench", CHART)
POST = ("--post-renderer", "minicluster")
OTHER = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata:\n  text: |\n" + "    a line\n" * 50


def helm(*options: str) -> str:
    """Return what `helm template` of Helm 4 prints; the plugin is that of this repository."""
    return output("helm", *TEMPLATE, *options, env={**os.environ, "HELM_PLUGINS": str(ROOT)})


def helm3(*options: str) -> str:
    """Return what `helm template` of Helm 3 prints, which can't read the plugin of Helm 4."""
    return output("helm3", *TEMPLATE, *options, env={**os.environ, "HELM_PLUGINS": ""})


def post_render(stream: str) -> None:
    """Run the post-renderer over a stream; its output is not read: it can be 140 MB."""
    subprocess.run(["minicluster"], input=stream.encode(), stdout=subprocess.DEVNULL, check=True)


def nodes(*groups: str) -> list[str]:
    """Return the options for 4,000 nodes, as many in each group as in the cluster itself."""
    size = 4000 // (len(groups) + 1)
    values = [{"name": name, "size": size, "cores": 4} for name in groups]
    return ["--set", f"size={size}", "--set-json", f"groups={json.dumps(values)}", *POST]


def medians(runs: int, **ways: Callable[[], object]) -> dict[str, float]:
    """Time the ways in turns and return the median seconds of each."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(runs + 1):  # the first is a warm-up
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(all_[1:]) for name, all_ in times.items()}


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    small = helm("--set", "maxSize=4")
    large = helm("--set", "maxSize=100000")
    many = "".join(small.replace('name: "bench', f'name: "bench{n}') for n in range(1000))
    times = medians(
        runs,
        plain=helm,
        rendered=lambda: helm(*POST),
        plain3=helm3,
        rendered3=lambda: helm3(*POST),
        small=lambda: post_render(small),
        large=lambda: post_render(large),
        others=lambda: post_render(small + OTHER * 1000),
        many=lambda: post_render(many),
        alike=lambda: helm3(*nodes()),
        grouped=lambda: helm3(*nodes("a", "b", "c")),
    )
    for name, plain, rendered in (
        ("helm ", times["plain"], times["rendered"]),
        ("helm3", times["plain3"], times["rendered3"]),
    ):
        print(f"{name} template                {plain:.3f} s")
        print(f"  with --post-renderer        {rendered:.3f} s   {rendered / plain:.2f} x, {rendered - plain:+.3f} s")
    print(f"minicluster, maxSize 4        {times['small']:.3f} s")
    print(f"  maxSize 100,000             {times['large']:.3f} s   {times['large'] / times['small']:.2f} x")
    print(f"  1,000 other documents       {times['others']:.3f} s   {times['others'] / times['small']:.2f} x")
    print(f"  1,000 MiniClusters          {times['many']:.3f} s   {times['many'] / times['small']:.2f} x")
    print(f"helm3, 4,000 nodes            {times['alike']:.3f} s")
    print(f"  in 4 groups of 1,000        {times['grouped']:.3f} s   {times['grouped'] / times['alike']:.2f} x")


if __name__ == "__main__":
    run_program(main)
