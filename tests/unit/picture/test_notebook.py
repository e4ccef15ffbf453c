"""What a notebook shows: small tables, whose texts are data, and the address of a page."""

import socket
import urllib.request
from typing import Any
from unittest.mock import patch

import pytest
from minicluster.errors import AwayError
from minicluster.sdk import ArgumentError, Job, MiniCluster, SdkError
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.outcome import FinishedJob
from picture_lead import PictureLead

HOSTILE = "<img src=x onerror='alert(1)'>&"
SHOWN = "&lt;img src=x onerror=&#x27;alert(1)&#x27;&gt;&amp;"
LEFT = " style='text-align:left'"


class Cluster(MiniCluster):
    """A MiniCluster of a stand-in."""

    def __init__(self, lead: PictureLead, status: Any) -> None:
        self.name, self.namespace, self._status = "mini", "lab", status
        self._kube: Any = lead.kube

    def status(self) -> dict[str, Any]:
        if isinstance(self._status, Exception):
            raise self._status
        found: dict[str, Any] = self._status
        return found

    def end(self) -> None:
        self._close_page()


def cells(html: str) -> dict[str, str]:
    """Return the rows of a table."""
    rows = html.replace(LEFT, "").removeprefix("<table><tr><th>").removesuffix("</td></tr></table>")
    return dict(row.split("</th><td>") for row in rows.split("</td></tr><tr><th>"))


def test_a_job_is_a_table() -> None:
    job = Job("f1", HOSTILE, "inactive", "failed", 3, "mini-0", 1, 1.0, 2.25)
    assert cells(job._repr_html_()) == {
        "job": "f1",
        "name": SHOWN,
        "state": "failed",
        "nodes": "mini-0",
        "exit code": "3",
        "seconds": "2.2",
    }


def test_a_future_is_a_table_at_any_time() -> None:
    future = JobFuture(lambda: None)
    assert cells(future._repr_html_()) == {"state": "pending"}
    future.accept("f1")
    future.wait_for(HOSTILE)
    assert cells(future._repr_html_()) == {"job": "f1", "state": "pending", "why": SHOWN}
    future.start()
    assert cells(future._repr_html_()) == {"job": "f1", "state": "running"}
    future.end(FinishedJob("f1", 3, (), "failed with exit code 3"))
    assert cells(future._repr_html_()) == {"job": "f1", "state": "job f1 failed with exit code 3"}
    other = JobFuture(lambda: None)
    other.cancel()
    assert cells(other._repr_html_()) == {"state": "canceled"}


def test_a_cluster_is_a_table(picture_lead: PictureLead) -> None:
    status = {"state": "Running", "why": HOSTILE, "size": 2, "maxSize": 4, "nodes": {"up": 2, "drained": 0}}
    found = cells(Cluster(picture_lead, {**status, "jobs": {"running": 1}})._repr_html_())
    assert found == {
        "MiniCluster": "mini",
        "namespace": "lab",
        "state": f"Running: {SHOWN}",
        "size": "2 of at most 4",
        "nodes": "2 up",
        "jobs": "1 running",
    }
    found = cells(Cluster(picture_lead, AwayError("away"))._repr_html_())
    assert found == {"MiniCluster": "mini", "namespace": "lab", "unknown": "away"}


def test_the_page_is_there_until_the_cluster_is_closed(picture_lead: PictureLead) -> None:
    cluster = Cluster(picture_lead, {})
    address = cluster.dashboard()
    assert cluster.dashboard() == address
    with urllib.request.urlopen(address, timeout=20) as answer:
        assert b"mini" in answer.read()
    cluster.end()
    with pytest.raises(OSError):
        urllib.request.urlopen(address, timeout=20)


def test_a_port_that_is_taken_and_a_missing_bokeh_are_told(picture_lead: PictureLead) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(ArgumentError, match="can't be used: Address already in use"):
            Cluster(picture_lead, {}).dashboard(port=other.getsockname()[1])
    with patch("importlib.util.find_spec", return_value=None), pytest.raises(SdkError, match="needs Bokeh"):
        Cluster(picture_lead, {}).dashboard()
