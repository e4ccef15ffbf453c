"""The objects by which benchmarks/operators.py runs LAMMPS in each way."""

import base64
import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from minicluster.console.templates import rendered

from tools import testbed
from tools.tenant import PLAIN

NAME = "lammps"
MELT = {"cells": 10, "steps": 200}
#: Runs on each rank. Ranks that share two cores yield
LAMMPS = "env OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl=tcp,self lmp -in /tmp/melt -log none"
HOSTS = "--hostfile /tmp/hosts --mca orte_keep_fqdn_hostnames true"
STAMP = 'echo "stamp $(date +%s.%N)"'
INDEX_0 = f"job-name={NAME},batch.kubernetes.io/job-completion-index=0"
#: The labels of the pod that starts LAMMPS
LEADS = {
    "mpirun": INDEX_0,
    "mpi-operator": f"training.kubeflow.org/job-name={NAME},training.kubeflow.org/job-role=launcher",
    "flux-operator": INDEX_0,
    "chart": INDEX_0,
}
#: $JOB_COMPLETION_INDEX 0 waits for the sshd of all pods, and starts LAMMPS
BARE = """
mkdir -p ~/.ssh /run/sshd && cp /keys/* ~/.ssh && chmod -R go= ~/.ssh
[ "$JOB_COMPLETION_INDEX" = 0 ] || exec /usr/sbin/sshd -D
/usr/sbin/sshd
for index in $(seq 0 {last}); do
  until ssh -o ConnectTimeout=1 {name}-$index.{name} true 2>/dev/null; do sleep 0.1; done
  echo "{name}-$index.{name} slots=1" >>/tmp/hosts
done
"""


def melt() -> str:
    """Return the shell words that write the input of LAMMPS."""
    text = base64.b64encode(rendered(__file__, "melt.lammps.j2", **MELT).encode()).decode()
    return f"echo {text} | base64 -d >/tmp/melt"


def stamped(words: str) -> str:
    """Return a script that tells when a launcher begins and ends, and fails as it does."""
    return f"{STAMP} && {words} && {STAMP}\n"


@cache
def keys() -> dict[str, str]:
    """Return the files of ~/.ssh with which root can log in to root."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", NAME, "-f", f"{folder}/id_ed25519"]
        subprocess.run(words, check=True)
        public = Path(folder, "id_ed25519.pub").read_text()
        return {"id_ed25519": Path(folder, "id_ed25519").read_text(), "authorized_keys": public}


def several(*made: dict[str, Any]) -> str:
    """Return objects as one."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": made})


def container(image: str, script: str) -> dict[str, Any]:
    """Return a container that runs a script."""
    return {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script]}


def mpirun(image: str, pods: int) -> str:
    """Return bare pods, of which the first one calls mpirun over ssh."""
    run = f"mpirun --allow-run-as-root {HOSTS} --bind-to none -n {pods} {LAMMPS}"
    script = f"{melt()}\n{BARE.format(last=pods - 1, name=NAME)}{stamped(run)}"
    main = {**container(image, script), "volumeMounts": [{"name": "keys", "mountPath": "/keys"}]}
    volume = {"name": "keys", "secret": {"secretName": NAME}}
    pod = {"subdomain": NAME, "restartPolicy": "Never", "containers": [main], "volumes": [volume]}
    spec = {
        "completionMode": "Indexed",
        "completions": pods,
        "parallelism": pods,
        "backoffLimit": 0,
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
        "template": {"spec": pod},
    }
    service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"job-name": NAME}}
    return several(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME}, "stringData": keys()},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME}, "spec": service},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": NAME}, "spec": spec},
    )


def mpi_operator(image: str, pods: int) -> str:
    """Return an MPIJob; its launcher is a pod of its own."""
    run = f"mpirun --allow-run-as-root --bind-to none -n {pods} {LAMMPS}"
    launcher = container(image, stamped(run))
    worker = container(image, f"{melt()}; mkdir -p /run/sshd; exec /usr/sbin/sshd -De")
    replicas = {
        "Launcher": {"replicas": 1, "template": {"spec": {"containers": [launcher]}}},
        "Worker": {"replicas": pods, "template": {"spec": {"containers": [worker]}}},
    }
    spec = {"slotsPerWorker": 1, "runPolicy": {"cleanPodPolicy": "Running"}, "mpiReplicaSpecs": replicas}
    return json.dumps(
        {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": NAME}, "spec": spec}
    )


def flux_operator(image: str, pods: int) -> str:
    """Return a MiniCluster of flux-operator, whose lead runs a script as its launcher."""
    import zmq  # noqa: PLC0415 - only here

    public, secret = (key.decode() for key in zmq.curve_keypair())
    certificate = (
        f'metadata\n    name = "{NAME}"\n    keygen.hostname = "{NAME}-0"\n'
        f'curve\n    public-key = "{public}"\n    secret-key = "{secret}"\n'
    )
    script = base64.b64encode(stamped(f"flux run -N{pods} -n{pods} {LAMMPS}").encode()).decode()
    runner = {
        "image": image,
        "command": "sh /tmp/launch",
        "launcher": True,
        # it appends a redirection
        "commands": {"pre": f"{{ {melt()}; echo {script} | base64 -d >/tmp/launch; }}"},
    }
    view = testbed.images()["flux"]["container"]["image"]
    spec = {
        "size": pods,
        "tasks": pods,
        "logging": {"quiet": True},
        "containers": [runner],
        "flux": {"container": {"image": view}, "curveCert": certificate},
    }
    kind = {"apiVersion": "flux-framework.org/v1alpha2", "kind": "MiniCluster"}
    return json.dumps({**kind, "metadata": {"name": NAME}, "spec": spec})


def chart(image: str, pods: int) -> str:
    """Return the values of the chart, with the same launcher."""
    run = stamped(f"flux run -N{pods} -n{pods} {LAMMPS}")
    runner = {"image": image, "command": run, "launcher": True, "commands": {"pre": melt()}, "cores": 1}
    return json.dumps(testbed.values_of({"size": pods, "logging": {"quiet": True}}, runner, world=PLAIN))


OBJECTS = {"mpirun": mpirun, "mpi-operator": mpi_operator, "flux-operator": flux_operator}
