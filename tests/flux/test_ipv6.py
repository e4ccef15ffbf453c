"""Pods that have IPv6 only: each in a network namespace of its own, two of them joined by a pair of interfaces."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from broker_clusters import Cluster
from broker_pods import NAME, Flux, Image, Pod

DOMAIN = f"{NAME}.default.svc.cluster.local"


class Wired(Cluster):
    """Two pods, each in one of two network namespaces, with broker.toml as it is computed and names in /etc/hosts."""

    def broker_toml(self, computed: str = "") -> str:
        return computed

    def wire(self, namespaces: Sequence[str]) -> "Wired":
        # Kubernetes' DNS has these names, with the dot at the end that the configuration asks for
        names = (f"fd00::{i + 1} {NAME}-{i} {NAME}-{i}.{DOMAIN} {NAME}-{i}.{DOMAIN}.\n" for i in range(self.size))
        self.hosts = "127.0.0.1 localhost\n::1 localhost\n" + "".join(names)
        self.namespaces = namespaces
        return self

    def start(self, indices: Sequence[int] = ()) -> "Wired":
        for index in indices or range(self.size):
            pod = self.pods[index] = Pod(self.root / f"pod-{index}", index, self.data, self.image)
            pod.namespace = self.namespaces[index]
            (pod.root / "hosts").write_text(self.hosts)
            pod.start()
        return self


def ip(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=check)


@pytest.fixture
def namespaces() -> Iterator[list[str]]:
    """Two network namespaces whose eth0, fd00::1 and fd00::2, are one wire; no IPv4."""
    if os.geteuid() or not shutil.which("ip"):
        pytest.skip("network namespaces need root and ip (iproute2)")
    names = [f"minicluster-{secrets.token_hex(4)}" for _ in range(2)]
    try:
        if ip("netns", "add", names[0], check=False).returncode:
            pytest.skip("no network namespaces here (ip netns add)")
        ip("netns", "add", names[1])
        ip("-n", names[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", names[1])
        for number, name in enumerate(names, 1):
            ip("-n", name, "address", "add", f"fd00::{number}/64", "dev", "eth0", "nodad")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", "eth0", "up")
        yield names
    finally:
        for name in names:
            ip("netns", "del", name, check=False)


def test_two_pods_that_have_only_ipv6_run_jobs_together(flux: Flux, namespaces: list[str], tmp_path: Path) -> None:
    values = flux.values({"size": 2, "logging": {"quiet": True}})
    cluster = Wired(tmp_path, values, {"cores": 1}, Image(**flux.image)).wire(namespaces).start()
    try:
        cluster.wait_for_ready()
        assert cluster.up() == "0-1"
        assert "enable_ipv6" not in cluster.data["minicluster"]["broker.toml"]
        ranks = cluster.lead.flux("run", "-N2", "sh", "-c", "echo $FLUX_TASK_RANK")
        assert sorted(ranks.split()) == ["0", "1"]
        # brokers of a job find each other by PMI
        assert cluster.lead.flux("alloc", "-N2", "flux", "resource", "list", "-s", "up", "-no", "{nnodes}") == "2\n"
        cluster.lead.shut_down("--quiet")
        assert cluster.wait() == [0, 0], cluster.lead.log
    finally:
        cluster.end()
