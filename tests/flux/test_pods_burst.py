"""`minicluster burst` on a real Kubernetes: root and bursts are in namespaces of their own, joined by a node port."""

import json
import re
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from real_cluster import IN_PODS
from support import ROOT

from tools import testbed
from tools.clients import until
from tools.releases import STEP_SECONDS, index_of
from tools.testbed import NAME

pytestmark = IN_PODS
CLUSTERS = [{"name": "b0", "size": 2}, {"name": "b1", "size": 1}]
BURSTING = {"bursting": {"clusters": CLUSTERS, "expose": {"type": "NodePort"}}}
VALUES = {"size": 3, "logging": {"quiet": True}, "flux": BURSTING}
UNTIL_TOLD = "until [ -e /tmp/end ]; do sleep 0.2; done"


class Bursts:
    """A root, and bursts that `minicluster burst` makes."""

    def __init__(self, folder: Path, helm: str, scheduler: str) -> None:
        self.folder, self.helm = folder, helm
        self.namespaces = ExitStack()
        (folder / "helm").symlink_to(ROOT / ".tools/bin" / helm)
        values = testbed.values_of(VALUES, {"cores": 1}, scheduler=scheduler)
        self.root = testbed.release(self.namespace(), values, folder, helm)
        self.root.install()
        self.root.wait_for("0-2")

    def namespace(self) -> str:
        """Return a new namespace."""
        return self.namespaces.enter_context(testbed.new_namespace())

    def start(self, command: str, name: str, namespace: str, *words: str) -> subprocess.Popen[str]:
        """Start a command of `minicluster burst`."""
        env = testbed.kubernetes().env
        env["PATH"] = f"{self.folder}:{env['PATH']}"
        places = ["--root-namespace", self.root.namespace, "-n", namespace]
        line = ["minicluster", "burst", command, NAME, name, *places, *words]
        return subprocess.Popen(line, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def fails(self, command: str, name: str, namespace: str, *words: str) -> str:
        """Return the message of a command, which must fail."""
        process = self.start(command, name, namespace, *words)
        out, err = process.communicate(timeout=STEP_SECONDS)
        assert process.returncode == 1, out + err
        return err

    def ok(self, command: str, name: str, namespace: str, *words: str) -> str:
        """Return what the command prints; it must succeed."""
        begin = time.monotonic()
        process = self.start(command, name, namespace, *words)
        out, err = process.communicate(timeout=STEP_SECONDS)
        assert process.returncode == 0, out + err
        print(f"{self.helm} burst {command} {name} {' '.join(words)}: {time.monotonic() - begin:.1f} s")
        return out + err

    def hosts(self, nodes: int) -> list[str]:
        """Return the hosts of a job over a number of nodes."""
        return sorted(self.root.flux(0, "run", f"-N{nodes}", f"-n{nodes}", "cat", "/etc/hostname").split())

    def kubectl(self, namespace: str, *words: str) -> str:
        """Return what kubectl prints of a namespace."""
        return self.root.cluster.kubectl("-n", namespace, *words)

    def end(self) -> None:
        """Remove all."""
        self.namespaces.close()


@pytest.fixture
def bursts(request: pytest.FixtureRequest, tmp_path: Path, scheduler: str) -> Iterator[Bursts]:
    made = Bursts(tmp_path, getattr(request, "param", "helm"), scheduler)
    yield made
    made.end()


def test_bursts_are_installed_run_jobs_and_are_removed(bursts: Bursts) -> None:
    root, first, second = bursts.root, bursts.namespace(), bursts.namespace()
    assert "b0 has joined: 1 of 2 hosts, ranks 3" in bursts.ok("install", "b0", first, "--size", "1")
    assert "b0 has joined: 2 of 2 hosts, ranks 3-4" in bursts.ok("install", "b0", first)
    bursts.ok("install", "b1", second)
    everyone = ["b0-0", "b0-1", "b1-0", "mini-0", "mini-1", "mini-2"]
    assert bursts.hosts(6) == everyone
    no_key_is_seen(bursts, first)

    # a burst that is killed comes back, and jobs elsewhere go on
    elsewhere = root.flux(0, "submit", "--requires=rank:1", "sh", "-c", UNTIL_TOLD).strip()
    lost = root.flux(0, "submit", "--requires=rank:5", "sleep", "600").strip()
    root.flux(0, "job", "wait-event", "-t60", lost, "start")
    bursts.kubectl(second, "delete", "pods", "--all", "--grace-period=0", "--force")
    assert "exception" in root.flux(0, "job", "wait-event", "-t60", lost, "exception")
    root.wait_for("0-5")

    # the job ends first, then the burst goes
    job = root.flux(0, "submit", "--requires=rank:4", "sh", "-c", UNTIL_TOLD).strip()
    root.flux(0, "job", "wait-event", "-t60", job, "start")
    process = bursts.start("remove", "b0", first)
    until(lambda: root.flux(0, "resource", "status", "-n", "-s", "draining", "-o", "{ranks}").strip() == "4")
    assert process.poll() is None
    pods = json.loads(bursts.kubectl(first, "get", "pods", "-o", "json"))["items"]
    (pod,) = [pod["metadata"]["name"] for pod in pods if index_of(pod) == 1]
    bursts.kubectl(first, "exec", pod, "--", "touch", "/tmp/end")
    _, err = process.communicate(timeout=STEP_SECONDS)
    assert (process.returncode, err.splitlines()[-1]) == (
        0,
        "minicluster: removed b0; its hosts are down until it is installed again",
    )
    assert '"status":0' in root.flux(0, "job", "eventlog", "--format=json", job)
    assert bursts.kubectl(first, "get", "jobs,pods,configmaps,secrets", "-o", "name").split() == [
        "configmap/kube-root-ca.crt"
    ]

    # the burst is installed again and has all its hosts
    bursts.ok("install", "b0", first)
    root.exec(1, "touch", "/tmp/end")
    root.flux(0, "job", "wait-event", "-t60", elsewhere, "clean")
    assert bursts.hosts(6) == everyone
    assert root.conditions() == {}


def no_key_is_seen(bursts: Bursts, namespace: str) -> None:
    """The certificate is in Secrets only, and not in their annotations."""
    data = bursts.root.certificate()
    keys = [data, *re.findall(r'-key = "(.{40})"', b64decode(data).decode())]
    secret = json.loads(bursts.kubectl(namespace, "get", "secret", "b0-root-curve", "-o", "json"))
    assert secret["data"] == {"curve.cert": data}
    seen = [
        json.dumps(secret["metadata"]),
        bursts.kubectl(namespace, "get", "configmaps,jobs,pods,services,events", "-o", "yaml"),
        bursts.kubectl(namespace, "logs", "-l", "batch.kubernetes.io/job-name=b0", "--tail=-1"),
        bursts.root.helm.ok("get", "all", "b0", "-n", namespace),
        bursts.ok("values", "b0", namespace),
    ]
    assert not [key for key in keys for text in seen if key in text]


@pytest.mark.parametrize("bursts", ["helm3"], indirect=True)
def test_a_wrong_burst_is_reported_and_leaves_the_root_working(bursts: Bursts) -> None:
    namespace = bursts.namespace()
    said = bursts.fails("install", "b0", namespace, "--address", "192.0.2.2:1", "--timeout", "3s")
    assert "minicluster: warning: no lead answers at 192.0.2.2:1 from here" in said
    assert re.search(
        r"minicluster: 2 of 2 hosts of b0 have not joined mini within 3 s, such as rank 3: pod b0-0-\w+ ", said
    )
    bursts.ok("remove", "b0", namespace)

    other = testbed.values_of({**VALUES, "flux": {**BURSTING, "curveCert": CERTIFICATE}}, {})
    file = bursts.folder / "other.json"
    file.write_text(json.dumps(other))
    said = bursts.fails("install", "b0", namespace, "--root-values", str(file))
    assert re.search(r"minicluster: what answers at \S+ has another certificate than mini: give the --address", said)
    said = bursts.fails("install", "b0", namespace, "--size", "3")
    assert said.startswith("minicluster: the size 3 is impossible: mini has registered 2 hosts for b0")
    said = bursts.fails("install", "b0", f"{namespace}-none")
    assert re.search(r'namespaces "\S+" not found', said)
    assert bursts.kubectl(namespace, "get", "jobs,pods,secrets", "-o", "name") == ""
    assert bursts.hosts(3) == ["mini-0", "mini-1", "mini-2"]


CERTIFICATE = f"""metadata
curve
    public-key = "{"a" * 40}"
    secret-key = "{"b" * 40}"
"""
