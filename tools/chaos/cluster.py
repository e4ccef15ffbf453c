"""The cluster that a chaos program disturbs, and the options by which it is chosen."""

import argparse
import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools import tenant, testbed
from tools.chaos.jobs import SHARED
from tools.chaos.troubles import FIRST_NODES, MOST_NODES, NODE_CHECK
from tools.releases import FluxRelease

#: With a history that is full after some minutes, so that its end is seen, too.
FLUX: Mapping[str, Any] = {"memoryReserve": "256Mi", "keptJobs": 300}
VALUES: Mapping[str, Any] = {
    "size": FIRST_NODES,
    "maxSize": MOST_NODES,
    "containers": [{"name": "side", "command": "sleep infinity"}],
    "backoffLimit": 10000,
    "metrics": {"enabled": True},
    "logging": {"quiet": True},
}


def options_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a command line with the options of each program."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="which troubles (any)")
    made.add_argument("--scheduler", choices=("Fluxion", "sched-simple"), default="Fluxion")
    return made


@contextmanager
def installed(
    scheduler: str, folder: Path, state: Path | None = None, nodes: Iterable[str] = (), *, keeps_state: bool = True
) -> Iterator[FluxRelease]:
    """Install the cluster, and remove it with the world of its user.

    ``folder`` is for files of the program. The state is in ``state``, or there. ``nodes`` are Kubernetes nodes with
    taints that the pods tolerate.
    """
    runner = {
        "runFlux": True,
        "cores": 1,
        "resources": {"limits": {"memory": "1Gi"}},
        "commands": {"nodeCheck": NODE_CHECK},
        "volumes": {"chaos": {"claimName": "state", "path": SHARED}},
    }
    values = testbed.values_of(VALUES, runner, scheduler=scheduler)
    values["flux"] = {**values["flux"], **FLUX}
    values |= {"state": {"claimName": "state"}} if keeps_state else {}
    values["pod"] = {"tolerations": [toleration for node in nodes for toleration in testbed.tolerations(node)]}
    try:
        with testbed.new_volume() as volume, testbed.new_namespace() as namespace:
            cluster = testbed.release(namespace, values, folder)
            testbed.bind(cluster, "state", volume, state or folder / "state")
            cluster.install()
            try:
                yield cluster
            finally:
                cluster.uninstall()
    finally:
        tenant.leave(testbed.kubernetes())
