"""How much the post-renderer writes, and how long it takes, by the size of the cluster.

    python -m benchmarks.sizes FILE.json [--hosts 4 1000 10000 100000] [--runs 5]

Each row is a MiniCluster with a number of hosts (`size` and `maxSize`). It has the bytes of the ConfigMaps' and the
Secret's data, of the hostlist and of broker.toml in it, and of the Job's manifest; and the least CPU seconds of
`minicluster` in the runs. Needs helm and minicluster in PATH.
"""

import argparse
import json
import resource
import tomllib
from pathlib import Path
from typing import Any

import yaml

from benchmarks.results import Row, save
from tools.clients import CHART, output, run_program


def data_bytes(document: dict[str, Any]) -> int:
    """Return the bytes of the data of a ConfigMap or Secret, as Kubernetes counts them.

    >>> data_bytes({"data": {"key": "ä"}})
    5
    """
    data = document.get("data") or document.get("stringData") or {}
    return sum(len(key) + len(text.encode()) for key, text in data.items())


def sizes(manifests: str) -> Row:
    """Return the bytes of the parts of rendered manifests."""
    documents = [document for document in yaml.safe_load_all(manifests) if document]
    found = {document["kind"]: document for document in documents if document["kind"] in ("Secret", "Job")}
    maps = [document for document in documents if document["kind"] == "ConfigMap"]
    toml = next(filter(None, (one["data"].get("broker.toml") for one in maps)))
    return {
        "configmap_bytes": sum(map(data_bytes, maps)),
        "secret_bytes": data_bytes(found["Secret"]),
        "broker_toml_bytes": len(toml),
        "hostlist_bytes": len(tomllib.loads(toml)["bootstrap"]["hosts"][0]["host"]),
        "job_bytes": len(json.dumps(found["Job"])),
    }


def cpu_of_children() -> float:
    """Return the CPU seconds of commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(hosts: int, runs: int) -> Row:
    """Render a MiniCluster a few times."""
    stream = output("helm", "template", "bench", CHART, "--set", f"size={hosts},maxSize={hosts}")
    seconds, rendered = [], ""
    for _ in range(runs):
        before = cpu_of_children()
        rendered = output("minicluster", stdin=stream)
        seconds.append(cpu_of_children() - before)
    return {"hosts": hosts, **sizes(rendered), "render_cpu_seconds": min(seconds)}


def main() -> None:
    """Measure each number of hosts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--hosts", type=int, nargs="+", default=[4, 1000, 10000, 100000])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    save(options.file, options.where, [measure(hosts, options.runs) for hosts in options.hosts])


if __name__ == "__main__":
    run_program(main)
