"""What the SDK says while it waits."""

import logging
import subprocess
import sys
from typing import Any

import pytest
import status_samples
from fake_kube import FakeKube, Then, forbidden
from minicluster.sdk import lead
from minicluster.sdk.lead import wait_for_lead
from status_samples import RUNNING, STARTS, job, pod

CONTAINER = {"name": "mini", "env": [{"name": "MINICLUSTER_HOME", "value": "/mnt/flux"}]}
CREATING = status_samples.waiting("ImagePullBackOff", "no such image")


def kube(*states: Any, run: Any = None) -> FakeKube:
    """Return a namespace with the MiniCluster mini, whose lead is in these states, one after the other."""
    pods = [[{**pod(0, one, uid="u"), "spec": {"containers": [CONTAINER]}}] if one else [] for one in states]
    return FakeKube(has={"job": job(2), "pods": Then(pods)}, commands=[lambda _: run])


@pytest.mark.parametrize(("quiet", "count"), [(1e-9, 1), (3600.0, 0)], ids=["long", "short"])
def test_a_long_wait_logs_each_state_once(
    quiet: float, count: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lead, "QUIET_SECONDS", quiet)
    found = kube(None, None, CREATING, CREATING, None, CREATING, RUNNING)
    with caplog.at_level(logging.WARNING):
        assert wait_for_lead(found, "mini", None).is_ready
    assert ("sights", "mini", f"{quiet:g}") in found.asked
    lines = [record.getMessage() for record in caplog.records]
    assert {record.name for record in caplog.records} <= {"minicluster.sdk"}
    assert len([line for line in lines if "ImagePullBackOff" in line]) == count
    assert len(lines) == len(set(lines)) == 2 * count
    assert all(line.startswith("waiting for mini: ") for line in lines)


def test_what_is_waited_for_is_no_state_to_wait_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Kubernetes may tell of it between two looks."""
    monkeypatch.setattr(lead, "QUIET_SECONDS", 1e-9)
    assert wait_for_lead(kube(STARTS, STARTS, RUNNING), "mini", None).is_ready
    assert caplog.messages == []


def test_a_user_who_may_not_ask_the_lead_waits_all_the_same() -> None:
    assert wait_for_lead(kube(STARTS, STARTS, RUNNING, run=forbidden("exec")), "mini", None).is_ready


def test_the_import_of_the_sdk_prints_nothing() -> None:
    code = "import minicluster.sdk"
    done = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True)
    assert "minicluster" not in done.stderr
    assert done.stdout == ""
