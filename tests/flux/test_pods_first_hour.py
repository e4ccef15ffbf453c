"""The first hour with the commands, on a terminal and on real pods: each screen is in first_hour.txt.

`--update-golden` writes that file: read it as who has never seen a MiniCluster.
"""

import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from real_cluster import IN_PODS, NODE_FOLDER
from screens import look

from tools import testbed
from tools.releases import FluxRelease

pytestmark = [IN_PODS, NODE_FOLDER]

COLUMNS = 80
HOUR = Path(__file__).with_name("first_hour.txt")
#: What a person types, by the command: each text after another one was there
TYPED = {
    "minicluster shell demo": [("# ", "flux resource list\n"), ("demo-3", ""), ("# ", "exit\n")],
    "minicluster scale demo 1": [("[y/N]", "y\n")],
    "minicluster replace demo --set maxSize=8": [("[y/N]", "y\n")],
    "minicluster delete demo": [("[y/N]", "y\n")],
}
#: What differs from hour to hour, and what stands for it
VARIES = (
    (r"minicluster-test-[0-9a-f]{8}", "lab"),
    (r"/\S*/charts/minicluster", "charts/minicluster"),
    (r"\b([ƒf])(?=\w*[0-9A-Z])[1-9A-HJ-NP-Za-km-z]{5,}\b", r"\g<1>5kZ7abc"),
    (r"\b(run|demo-\d)-[a-z0-9]{5}\b", r"\1-x2c4v"),
    (r"\b\d+s\b", "4s"),
    (r"\b\d\d-\d\d \d\d:\d\d\b", "01-30 12:00"),
)


@pytest.fixture
def hour(tmp_path: Path) -> Iterator[FluxRelease]:
    """A namespace with a storage class that has a volume for each claim of demo."""
    with testbed.new_namespace() as namespace, testbed.new_volume() as first, testbed.new_volume() as second:
        release = testbed.release(namespace, {}, tmp_path)
        release.name = "demo"
        made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": namespace}}
        release.cluster.create({**made, "provisioner": "kubernetes.io/no-provisioner"})
        for claim, volume in (("state", first), ("data", second)):
            testbed.offer(release, f"demo-{claim}", volume, tmp_path / claim, namespace)
        yield release
        release.cluster.kubectl("delete", "storageclass", namespace)


def kubeconfig(release: FluxRelease, folder: Path) -> str:
    """Write a kubeconfig whose current namespace is that of a release; return its path."""
    found = yaml.safe_load(Path(os.environ[testbed.KUBECONFIG]).read_text())
    current = next(one for one in found["contexts"] if one["name"] == found["current-context"])
    current["context"]["namespace"] = release.namespace
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(found))
    return str(path)


def plain(screen: list[str]) -> list[str]:
    """Return the lines of a screen without what varies; those of the tasks of a job come in any order."""
    # the terminal breaks a line at its width
    text = "".join(line if len(line) == COLUMNS else f"{line}\n" for line in screen).rstrip("\n")
    for pattern, stands in VARIES:
        text = re.sub(pattern, stands, text)
    found = text.split("\n")
    hosts = [number for number, line in enumerate(found) if re.fullmatch(r"\S+-\d", line)]
    for number, host in zip(hosts, sorted(found[number] for number in hosts), strict=True):
        found[number] = host
    return found


def squeezed(text: str) -> list[str]:
    """Return the lines of a text with single spaces: the widths of columns vary."""
    return [" ".join(line.split()) for line in text.split("\n")]


def test_the_first_hour(hour: FluxRelease, tmp_path: Path, update_golden: bool) -> None:
    home, images = tmp_path / "home", tmp_path / "images.json"
    home.mkdir()
    (home / "in.lj").write_text("input\n")
    images.write_text(json.dumps(testbed.values_of({}, {"cores": 2})))
    environment = {**hour.cluster.env, "KUBECONFIG": kubeconfig(hour, tmp_path)}
    # what the tests' cluster needs beside what a person types
    needs = ["-f", str(images), "--set", "pod.terminationGracePeriodSeconds=120"]
    given = [f"--values={images}", "--set=pod.terminationGracePeriodSeconds=120"]
    written = []
    for line in re.findall(r"^\$ (.*)", HOUR.read_text(), re.MULTILINE):
        words = shlex.split(line.replace(" --image ubuntu:noble", "").replace("1Gi", f"1Gi@{hour.namespace}"))
        if words[1] in ("create", "run") and "research" not in words:
            words[2:2] = needs
        if "JOB" in words:
            rows = hour.cluster.output("minicluster", "jobs", "demo", "-n", hour.namespace, "-o", "json").splitlines()
            words[words.index("JOB")] = max(map(json.loads, rows), key=lambda row: row["t_submit"])["id"]
        seen = look(words, environment, COLUMNS, folder=home, typed=TYPED.get(line, ()))
        print(line, *seen.last, sep="\n", flush=True)
        shown = "\n".join(plain(seen.last))
        for word in (*map(shlex.quote, given), "@lab"):
            shown = shown.replace(f" {word}", "").replace(word, "")
        written += [f"$ {line}", *shown.split("\n"), *([f"[exit code {seen.code}]"] if seen.code else []), ""]
    text = "\n".join(written)
    if update_golden:
        HOUR.write_text(text)
    assert squeezed(text) == squeezed(HOUR.read_text())
