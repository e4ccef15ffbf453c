"""The ways to end badly with a real kubelet, and with real brokers that don't find each other."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from failures import FAILURES, matches
from failures import NAME as DEMO
from real_cluster import IN_PODS, Install

from tools.clients import TooLateError, until
from tools.releases import FluxRelease
from tools.testbed import NAME

pytestmark = IN_PODS

#: The image of the application is not a view
NO_VIEW = {"flux": {"container": {"image": "ubuntu:noble"}}}
#: Values, and fields of the runner
CASES: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "image missing": ({}, {"image": "nope:1"}),
    "work out of memory": (
        {},
        {"command": "tail /dev/zero", "resources": {"limits": {"memory": "200Mi"}}},
    ),
    "volume of the pod full": (
        {},
        {
            "command": "head -c 50000000 /dev/zero >/scratch/x; sleep 600",
            "volumes": {"scratch": {"path": "/scratch", "emptyDir": True, "emptyDirSizeLimit": "1Mi"}},
        },
    ),
    "limit of the disk": (
        {},
        {
            "command": "head -c 50000000 /dev/zero >/var/tmp/x; sleep 600",
            "resources": {"limits": {"ephemeral-storage": "20Mi"}},
        },
    ),
    "deadline over": ({"deadlineSeconds": 5}, {"command": "sleep 600"}),
    "worker unfit": ({"size": 2}, {"commands": {"nodeCheck": 'echo "no GPU"; test "$JOB_COMPLETION_INDEX" = 0'}}),
    "lead unfit": ({"size": 2}, {"commands": {"nodeCheck": 'echo "no GPU"; false'}}),
    "quorum never": ({"size": 2}, {"commands": {"workerPre": "sleep 600"}}),
}


def expect(cluster: FluxRelease, which: str) -> None:
    """Wait until the status is that of the table."""
    said: list[str] = []

    def told() -> bool:
        words = ("minicluster", "status", NAME, "-n", cluster.namespace, "-o", "json")
        found = json.loads(cluster.cluster.output(*words))
        line = re.sub(rf"\b{NAME}\b", DEMO, ": ".join(filter(None, [found["state"], found["why"]])))
        line = line.replace(f" -n {cluster.namespace}`", "`")
        if line not in said:
            said.append(line)
        return matches(FAILURES[which].status, line)

    try:
        until(told, 150, pause=0.5)
    except TooLateError:
        assert said == FAILURES[which].status
        raise


@pytest.mark.parametrize("which", CASES)
def test_status_names_the_failure_and_the_way_out(which: str, release: Install) -> None:
    values, runner = CASES[which]
    expect(release({"size": 1, **values}, dict(runner)), which)


def test_status_names_a_view_that_is_none_where_it_is_mounted(release: Install) -> None:
    expect(release({"size": 1, **NO_VIEW}, {}, mode="image"), "view wrong")


def test_status_and_log_name_a_view_that_is_none_where_it_is_copied(release: Install) -> None:
    cluster = release({"size": 1, **NO_VIEW}, {}, mode="copy")
    expect(cluster, "copied view wrong")
    log = cluster.kubectl("logs", cluster.pods(0)[-1]["metadata"]["name"], "--container=flux-view")
    assert f"flux-view: `{log.rstrip()}`" == FAILURES["copied view wrong"].log
