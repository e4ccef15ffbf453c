"""A local Kubernetes control plane for the tests and the demo.

etcd, API server, controllers and scheduler are the real ones, run by an ordinary user on loopback. The Kubernetes nodes
are simulated by kwok: pods are scheduled, get an address and are Running, but nothing runs in them (kwok.yaml says how
to end one with an exit code).

    with EmbeddedCluster(Path(".tools/bin"), Path("/tmp/cluster")) as cluster:
        cluster.kubectl("get", "nodes")
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from tools.clients import WAIT_SECONDS, ClusterError, KubernetesCluster

KWOK_CONFIG = Path(__file__).with_name("kwok.yaml")
NODE_SIZE = {"cpu": "256", "memory": "1Ti", "pods": "1000"}  # the pods of all tests stay
#: The annotation with which a simulated pod ends (kwok.yaml)
EXIT_CODE = "kwok.x-k8s.io/exit-code"
#: With setpriv, the kernel kills a program of the control plane when the process that started it ends.
LEASH = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


class EmbeddedCluster(KubernetesCluster):
    """A cluster that starts at `with` in a few seconds and ends with it; several can run at once.

    `kubeconfig` is the administrator's, `user_kubeconfig` that of "user", who has no rights until `grant`.
    `env` is an environment in which kubectl and helm find the programs and, as administrator, the cluster.
    """

    def __init__(  # noqa: PLR0913 - all but two have a default
        self,
        bin_dir: Path,
        work_dir: Path,
        *,
        nodes: int = 4,
        qps: int = 200,
        gates: str = "",
        api_server: Path | None = None,
    ) -> None:
        """Prepare the cluster.

        bin_dir has the programs that `make tools` builds. work_dir, new or empty, takes the cluster's data
        and a log of each program; it is not removed. Without nodes there are no controllers either: objects can be
        made, and nothing acts on them. qps is how many requests a second the controllers may make (and twice as many
        at once): with Kubernetes' default of 20 most of a test's time would be spent waiting. gates are feature gates,
        as in `NAME=true,NAME=true`; with them, the API server also serves alpha and beta APIs. api_server is the
        program of another version; it needs `nodes=0`, because the controllers don't fit it.
        """
        self.bin_dir = bin_dir.resolve()
        self.api_server = (api_server or bin_dir / "kube-apiserver").resolve()
        self.work_dir = work_dir.resolve()
        self.nodes = nodes
        self.qps = qps
        self.gates = f"--feature-gates={gates}" if gates else ""
        self.kubeconfig = self.work_dir / "admin.kubeconfig"
        self.user_kubeconfig = self.work_dir / "user.kubeconfig"
        super().__init__(
            {
                **os.environ,
                "PATH": f"{self.bin_dir}{os.pathsep}{os.environ['PATH']}",
                "KUBECONFIG": str(self.kubeconfig),
                "KUBECACHEDIR": str(self.work_dir / "cache"),
            }
        )
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        """Return when pods can be scheduled. Raises ClusterError with the end of the log of a program that ended."""
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def grant(self, namespace: str, role: str = "edit") -> None:
        """Bind "user" to a ClusterRole in this namespace. Raises ProcessError."""
        binding = ["rolebinding", f"user-{role}", "--user=user", f"--clusterrole={role}"]
        self.kubectl("create", *binding, f"--namespace={namespace}")

    def end_pod(self, namespace: str, name: str, code: int) -> None:
        """Let the containers of a pod end with an exit code. Raises ProcessError."""
        self.kubectl("annotate", "--overwrite", "pod", name, f"{EXIT_CODE}={code}", f"--namespace={namespace}")

    def pids(self) -> dict[str, int]:
        """Return the process of each program, by its name."""
        return {name: process.pid for name, process in self._processes.items()}

    def wait(self, what: str, ready: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
        """Wait until ready() is true. Raises ClusterError, also when a part of the cluster has ended."""

        def alive_and_ready() -> bool:
            self._check_alive()
            return ready()

        super().wait(what, alive_and_ready, seconds)

    def _start(self) -> None:
        self.work_dir.mkdir(parents=True, exist_ok=True)
        if any(self.work_dir.iterdir()):
            raise ClusterError(f"{self.work_dir} is not empty: the cluster wants a folder of its own")
        port = free_port()
        self._write_credentials(port)
        self._start_api_server(port)
        self.wait("the API server", lambda: bool(self.kubectl("get", "--raw=/readyz")), 60)
        if not self.nodes:
            return
        self._start_controllers()
        self.create(*(_node(index) for index in range(self.nodes)))
        self.wait("the nodes", self._nodes_ready)
        self.wait("the service account", lambda: bool(self.kubectl("get", "serviceaccount", "default")))

    def _write_credentials(self, port: int) -> None:
        certificate = self.work_dir / "apiserver.crt"  # the API server makes it
        tokens = []
        users = ("admin", ",system:masters", self.kubeconfig), ("user", "", self.user_kubeconfig)
        for user, group, path in users:
            token = secrets.token_hex(16)
            tokens.append(f"{token},{user},{user}{group}\n")
            config = _kubeconfig(f"https://127.0.0.1:{port}", certificate, user, token)
            _write_private(path, json.dumps(config, indent=2))
        _write_private(self.work_dir / "tokens.csv", "".join(tokens))

    def _start_api_server(self, port: int) -> None:
        # Unix sockets, because this etcd asks for no password; its URLs need a port all the same.
        # It writes its pages each two seconds and not ten times in one: no data is worth it
        clients, peers = "unix://etcd.sock:0", "unix://etcd-peers.sock:0"
        self._run(
            "etcd",
            f"""--data-dir=etcd --log-level=error --unsafe-no-fsync --backend-batch-interval=2s
            --listen-client-urls={clients} --advertise-client-urls={clients}
            --listen-peer-urls={peers} --initial-advertise-peer-urls={peers}
            --initial-cluster=default={peers}""",
        )
        # to compress what stays on this machine would be a fifteenth of its work
        self._run(
            "kube-apiserver",
            f"""--etcd-servers={clients} --cert-dir=. --secure-port={port}
            --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --endpoint-reconciler-type=none
            --service-cluster-ip-range=10.96.0.0/16 --feature-gates=APIResponseCompression=false
            --authorization-mode=RBAC --token-auth-file=tokens.csv --allow-privileged=true
            --service-account-issuer=https://kubernetes.default.svc
            --service-account-key-file=apiserver.key --service-account-signing-key-file=apiserver.key
            {self.gates} {"--runtime-config=api/alpha=true,api/beta=true" if self.gates else ""}""",
        )

    def _start_controllers(self) -> None:
        shutil.copy(KWOK_CONFIG, self.work_dir)
        common = f"--kubeconfig=admin.kubeconfig --leader-elect=false --secure-port=0 {self.gates}"
        # nobody reads Endpoints: EndpointSlices have taken their place, which take all that changes in a second at once
        self._run(
            "kube-controller-manager",
            f"""{common} --kube-api-qps={self.qps} --kube-api-burst={self.qps * 2} --controllers=*,-endpoints-controller
            --horizontal-pod-autoscaler-sync-period=1s --endpointslice-updates-batch-period=1s
            --service-account-private-key-file=apiserver.key --root-ca-file=apiserver.crt""",
        )
        self._run("kube-scheduler", common)
        self._run("kwok", f"--kubeconfig=admin.kubeconfig --config={KWOK_CONFIG.name}")

    def _run(self, name: str, flags: str) -> None:
        program = self.api_server if name == "kube-apiserver" else self.bin_dir / name
        if not program.exists():
            raise ClusterError(f"{program} is missing: run `make tools`")
        with self._log(name).open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [*LEASH, program, *flags.split()],
                cwd=self.work_dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a terminal's Ctrl-C must not end them
            )

    def _log(self, name: str) -> Path:
        return self.work_dir / f"{name}.log"

    def _check_alive(self) -> None:
        for name, process in self._processes.items():
            if process.poll() is not None:
                lines = self._log(name).read_text(errors="replace").splitlines()[-10:]
                raise ClusterError("\n  ".join([f"{name} ended with {process.returncode}:", *lines]))

    def _nodes_ready(self) -> bool:
        ready = self.kubectl("wait", "nodes", "--all", "--for=condition=Ready", "--timeout=5s")
        return ready.count("condition met") == self.nodes

    def _stop(self) -> None:
        for process in self._processes.values():
            process.kill()  # no data is worth an orderly end
        for process in self._processes.values():
            process.wait()


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def _kubeconfig(server: str, certificate: Path, user: str, token: str) -> dict[str, Any]:
    cluster = {"server": server, "certificate-authority": str(certificate)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "embedded", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": user}}],
        "current-context": "embedded",
    }


def _node(index: int) -> dict[str, Any]:
    labels = {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": "region",
        "topology.kubernetes.io/zone": f"zone-{'ab'[index % 2]}",
    }
    return simulated_node(f"node-{index}", NODE_SIZE, labels, f"10.0.0.{index + 1}")


def simulated_node(name: str, size: Mapping[str, str], labels: Mapping[str, str], address: str) -> dict[str, Any]:
    """Return a Kubernetes node of a size, a quantity for each resource, that kwok plays."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, **labels},
        },
        "status": {"capacity": size, "allocatable": size, "addresses": [{"type": "InternalIP", "address": address}]},
    }
