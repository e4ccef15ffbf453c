"""The README's demo on a real Kubernetes: a MiniCluster from its creation to its removal, and what it keeps."""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pod_jobs import ended, submit
from real_cluster import IN_PODS, NODE_FOLDER
from support import ROOT

from tools import testbed
from tools.clients import Done, run, until
from tools.releases import STEP_SECONDS, FluxRelease

pytestmark = [IN_PODS, NODE_FOLDER]

README = (ROOT / "README.md").read_text(encoding="utf-8")
#: What must be typed, or shows until somebody ends it
SKIPPED = ("shell", "list")
Command = Callable[..., Done]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[FluxRelease]:
    """A namespace, with a storage class that has a volume for each claim of demo; the release is not made yet."""
    with testbed.new_namespace() as namespace, testbed.new_volume() as first, testbed.new_volume() as second:
        release = testbed.release(namespace, {}, tmp_path)
        release.name = "demo"
        metadata = {"name": namespace}
        made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata}
        release.cluster.create({**made, "provisioner": "kubernetes.io/no-provisioner"})
        for claim, volume in (("state", first), ("data", second)):
            testbed.offer(release, f"demo-{claim}", volume, tmp_path / claim, namespace)
        yield release
        release.cluster.kubectl("delete", "storageclass", namespace)


@pytest.fixture
def minicluster(demo: FluxRelease, tmp_path: Path) -> Command:
    """Runs `minicluster` in the namespace, in a folder of its own."""
    (tmp_path / "home").mkdir()
    environment = demo.cluster.env

    def command(*words: str) -> Done:
        at = words.index("--") if "--" in words else len(words)
        line = [*words[:at], "-n", demo.namespace, *words[at:]]
        return run("minicluster", *line, env=environment, cwd=tmp_path / "home")

    return command


def create(minicluster: Command, demo: FluxRelease, tmp_path: Path) -> Done:
    """Run the README's command, with the images and the storage class of the tests."""
    values = tmp_path / "images.json"
    runner = {"cores": 2}
    values.write_text(json.dumps(testbed.values_of({}, runner)))
    [line] = re.findall(r"^minicluster (create .*)$", README, re.MULTILINE)
    words = shlex.split(line.replace(" --image ubuntu:noble", "").replace("10Gi", f"1Gi@{demo.namespace}"))
    return minicluster(*words, "-f", str(values), "--set", "pod.terminationGracePeriodSeconds=20")


def test_the_commands_of_the_readme_work_in_their_order(
    minicluster: Command, demo: FluxRelease, tmp_path: Path
) -> None:
    assert create(minicluster, demo, tmp_path).code == 0
    (tmp_path / "home" / "in.lj").write_text("input\n")
    cells = re.findall(r"^\| [^|]* \| (`minicluster .*) \|$", README, re.MULTILINE)
    lines = [line for cell in cells for line in re.findall(r"`(minicluster \w+ [^`]*demo[^`]*)`", cell)]
    assert len(lines) >= 11
    for line in lines:
        _, name, *words = shlex.split(line.removesuffix(" -f"))
        if name in SKIPPED:
            continue
        if "JOB" in words:
            job = json.loads(minicluster("jobs", "demo", "-o", "json").out.splitlines()[0])
            words[words.index("JOB")] = job["id"]
        done = minicluster(name, *words)
        assert done.code == 0, (line, done)
        if name == "wait":
            assert " uname " in minicluster("jobs", "demo").out, "after the end"
    assert (tmp_path / "home" / "results" / "in.lj").read_text() == "input\n"
    assert demo.items("jobs,pods") == []


def test_what_is_kept_outlives_a_shrink_and_the_cluster(
    minicluster: Command, demo: FluxRelease, tmp_path: Path
) -> None:
    made = create(minicluster, demo, tmp_path)
    assert (made.code, made.out.startswith("helm install demo ")) == (0, True), made
    assert minicluster("flux", "demo", "--", "run", "-N2", "sh", "-c", "uname -n >/data/$(uname -n)").code == 0
    outlasts = submit(demo, "-N2", "sleep", "600")
    until(lambda: demo.flux(0, "jobs", "-n", "-o", "{state}", outlasts).strip() == "RUN")
    shrunk = minicluster("scale", "demo", "1", "--wait")
    assert (shrunk.code, shrunk.err.splitlines()[:3]) == (
        0,
        [
            "minicluster: demo: 1 job runs on the nodes that go, with 10 s to end",
            f"minicluster: demo: job {outlasts} (sleep) on demo-[0-1] is then cancelled",
            f"minicluster: demo in namespace {demo.namespace}: size 2 -> 1",
        ],
    )
    until(lambda: ended(demo, outlasts) == "CANCELED", STEP_SECONDS)
    waits = submit(demo, "-N2", "true")
    gone = minicluster("delete", "demo")
    where, claims = f"namespace {demo.namespace}", "demo-data, demo-state"
    removal = f"`kubectl delete pvc demo-data demo-state -n {demo.namespace}` removes them"
    assert gone == Done(
        0,
        "",
        f"minicluster: demo is removed from {where}\n"
        f"minicluster: kept with their data, for the next demo: {claims}; {removal}\n",
    )
    assert demo.items("jobs,pods") == []
    # the next one goes on with the queue and the files
    assert create(minicluster, demo, tmp_path).code == 0
    until(lambda: ended(demo, waits) == "COMPLETED", STEP_SECONDS)
    found = minicluster("flux", "demo", "--", "run", "ls", "/data").out.split()
    assert {"demo-0", "demo-1", "jobs.jsonl"} <= set(found)
    assert minicluster("delete", "demo").code == 0
