"""A port of a pod: one kubectl forwards its connections, until one fails or another pod is the lead."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from live_kubectl import Kubectl, lead
from minicluster.errors import AwayError
from minicluster.kube.kubectl import Kubernetes
from minicluster.sdk.lead import LeadPort

#: What kubectl 1.36 says of a port where nothing listens
REFUSED = (
    'E1127 03:25:01.1 7 portforward.go:424] "Unhandled Error" err="an error occurred forwarding 40001 -> 9: error '
    'forwarding port 9 to pod b20b: failed in namespace \\"/run/netns\\": dial tcp4: connection refused "\n'
    "error: lost connection to pod\n"
)
WHY = 'error forwarding port 9 to pod b20b: failed in namespace "/run/netns": dial tcp4: connection refused'
#: kubectl port-forward: says its pod in capitals after what comes; port 9 is refused
FORWARD = f"""\
import socket, sys
pod, port = sys.argv[1].removeprefix("pod/"), sys.argv[2]
with socket.create_server(("127.0.0.1", 0)) as server:
    print(f"Forwarding from 127.0.0.1:{{server.getsockname()[1]}} -> {{port[1:]}}", flush=True)
    while True:
        with server.accept()[0] as connection:
            print("Handling connection for 1", flush=True)
            if port == ":9":
                print({REFUSED!r}, end="", file=sys.stderr, flush=True)
                sys.exit(1)
            connection.sendall(connection.recv(100) + pod.upper().encode())
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    world = Kubectl(tmp_path)
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "forward.py").write_text(FORWARD)
    script = (tmp_path / "kubectl").read_text().removeprefix("#!/bin/sh\n")
    took = f"""case $* in *port-forward*) shift; exec {sys.executable} {tmp_path}/forward.py "$@" ;; esac"""
    world.tool("kubectl", f'folder=${{0%/*}}\nprintf "%s\\n" "$*" >>"$folder/asked"\n{took}\n{script}')
    return world


@pytest.fixture
def ports(world: Kubectl) -> Iterator[dict[int, LeadPort]]:
    """Ports of the lead by their numbers."""
    assert world.folder
    found = {port: LeadPort(Kubernetes(), "mini", port) for port in (80, 9)}
    yield found
    for port in found.values():
        port.close()


def started(world: Kubectl) -> list[str]:
    """Return the pods to which a kubectl was started."""
    return [line.split()[1] for line in dict.fromkeys(world.asked()) if line.startswith("port-forward")]


def answer(port: LeadPort) -> bytes:
    with closing(port.connect()) as connection:
        connection.sendall(b"hi ")
        found = b""
        while data := connection.recv(100):
            found += data
        assert connection.error == ""
        return found


def test_connections_to_one_pod_share_a_kubectl_and_follow_the_lead(world: Kubectl, ports: dict[int, LeadPort]) -> None:
    assert [answer(ports[80]) for _ in range(3)] == [b"hi MINI-0-X"] * 3
    world.has(pods={"items": [lead(world.folder, name="mini-0-y")]})
    assert [answer(ports[80]) for _ in range(2)] == [b"hi MINI-0-Y"] * 2
    assert started(world) == ["pod/mini-0-x", "pod/mini-0-y"]


def test_a_refused_connection_says_why_and_the_next_one_has_a_kubectl_of_its_own(ports: dict[int, LeadPort]) -> None:
    for _ in range(2):
        with closing(ports[9].connect()) as connection:
            assert (connection.recv(100), connection.error) == (b"", WHY)


def test_a_kubectl_that_forwards_nothing_is_an_error(world: Kubectl) -> None:
    world.tool("kubectl", "echo 'error: pod not found' >&2; exit 1")
    with pytest.raises(AwayError, match=r"^kubectl port-forward pod/a: pod not found$"):
        Kubernetes().forward("a", 80)
