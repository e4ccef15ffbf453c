"""A program that starts as MPICH's do, by PMI-1: each rank puts its part of pi, and the first one adds up all."""

from typing import Any

#: What it prints of pi
PI = "3.14159"
#: A client of PMI-1 (MPICH's wire protocol) in bash, the one shell with read -u in the images of the tests
PROGRAM = r"""
ask() { printf '%s\n' "$1" >&"$PMI_FD"; read -r -u "$PMI_FD" reply; }
ask 'cmd=init pmi_version=1 pmi_subversion=1'
ask 'cmd=get_my_kvsname'
name=${reply##*kvsname=}; name=${name%% *}
part=$(awk -v r="$PMI_RANK" -v n="$PMI_SIZE" 'BEGIN {
  for (i = r; i < 10000; i += n) { x = (i + 0.5) / 10000; s += 4 / (1 + x * x) / 10000 }
  printf "%.9f", s
}')
ask "cmd=put kvsname=$name key=part$PMI_RANK value=$part"
ask 'cmd=barrier_in'
if [ "$PMI_RANK" = 0 ]; then
  parts=
  for rank in $(seq 0 $((PMI_SIZE - 1))); do
    ask "cmd=get kvsname=$name key=part$rank"
    value=${reply##*value=}; parts="$parts ${value%% *}"
  done
  echo "$parts" | awk -v n="$PMI_SIZE" '{ for (i = 1; i <= NF; i++) s += $i; printf "%d ranks: pi is %.5f\n", n, s }'
fi
ask 'cmd=finalize'
"""


def mpi_job(name: str, launcher: list[str], container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return an MPIJob with two workers; ``container`` is theirs and, but for its words, the launcher's."""
    lead = {"name": "mpi", **container, "command": launcher}
    workers = {"name": "mpi", **container, "command": ["/usr/sbin/sshd"], "args": ["-De"]}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "mpiImplementation": "MPICH",
            "mpiReplicaSpecs": {
                "Launcher": {"template": {"spec": {"containers": [lead]}}},
                "Worker": {"replicas": 2, "template": {"spec": {"containers": [workers]}}},
            },
            **spec,
        },
    }
