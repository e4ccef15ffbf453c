"""The queue that `minicluster replace` holds: what is asked of the lead, and what becomes of the queue on an error."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from fake_kube import FakeKube, away
from minicluster.cluster.lead import Lead
from minicluster.cluster.pods import read_pods
from minicluster.errors import Interrupted, StateError
from minicluster.lifecycle import leaving
from minicluster.lifecycle.leaving import held_queue
from minicluster.status.lookup import Cluster
from status_samples import job, pod

JOB = job()
DELETED = {**JOB, "metadata": {**JOB["metadata"], "deletionTimestamp": "2030-01-01T12:00:00Z"}}
ANEW = {**JOB, "metadata": {**JOB["metadata"], "uid": "another"}}
SETTLED = {"running": 0, "settled": True}
NEW = "mini is as before, and its queue goes on"


class Talker:
    """A channel to a lead that answers what it is asked, and else goes on saying the last of ``says``; {} ends it."""

    exit_code, stderr = 1, b""

    def __init__(self, *says: Mapping[str, Any], answers: Mapping[str, Any] | None = None) -> None:
        self._says, self._answers = list(says), answers or {}
        self._due: list[Mapping[str, Any]] = []
        self._can_read = False
        self.written, self.is_closed = b"", False

    def write(self, data: bytes) -> None:
        self.written += data
        for line in data.splitlines():
            said = json.loads(line)
            self._due += [self._answers[key] for key in said if isinstance(said, dict) and key in self._answers]

    def wait(self, _wake: object, seconds: float | None) -> bool:
        self._can_read = self._can_read or seconds != 0
        return self._can_read

    def read(self) -> bytes | None:
        self._can_read = False  # one reply at a time
        found = self._due.pop(0) if self._due else self._says.pop(0) if len(self._says) > 1 else self._says[0]
        return json.dumps(found).encode() + b"\n" if found else None

    def close(self) -> None:
        self.is_closed = True


def world(*leads: Any, job: Any = JOB) -> tuple[Cluster, Callable[[], Any], FakeKube]:
    """Return a MiniCluster whose lead answers on each connection, and how to hold its queue."""
    left = list(leads)
    kube = FakeKube(namespace="lab", has={"job": job}, commands=[lambda _: left.pop(0)])
    cluster = Cluster(kube, "mini")
    lead = Lead(read_pods({"items": [pod(0)]})[0], "/mnt/flux", "")
    return cluster, lambda: held_queue(cluster, JOB, lead), kube


def asked(channel: Talker) -> list[Any]:
    """Return what a lead was asked, after the program."""
    return [json.loads(line) for line in channel.written.splitlines()[1:]]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "RETRY_SECONDS", 0)
    monkeypatch.setattr(leaving, "LISTED_SECONDS", 0)
    monkeypatch.setattr(leaving, "LET_GO_SECONDS", 0.1)


def test_jobs_are_waited_for_and_nothing_else_is_asked() -> None:
    lead = Talker({"running": 2, "settled": False}, {"running": 2, "settled": False}, SETTLED)
    said: list[str] = []
    with world(lead)[1]() as queue:
        queue.settle(None, said.append)
    assert said == ["mini: the queue is stopped, 2 running jobs may end; --grace limits that"]
    assert (asked(lead), lead.is_closed) == ([], True)


def test_jobs_are_put_back_after_the_grace_on_a_new_connection_too() -> None:
    ends = {"copies": {"f1": "f9"}, "lost": ["f2"]}
    broken = Talker({"running": 2, "settled": False}, {})
    lead = Talker({"running": 2, "settled": False}, SETTLED, answers={"end": ends})
    said: list[str] = []
    with world(broken, away(), lead)[1]() as queue:
        queue.settle(0, said.append)
    assert said == ["mini: job f1 runs again as f9", "mini: job f2 is cancelled: it may not run again"]
    assert (asked(broken), asked(lead)) == ([], [{"end": True}])


@pytest.mark.parametrize(
    ("job", "answers", "message"),
    [
        pytest.param(JOB, {"start": {"started": True}}, f"interrupted: {NEW}", id="the Job stays"),
        pytest.param(JOB, {"start": {}}, f"interrupted: {NEW} as soon as the lead misses this command", id="no answer"),
        pytest.param(DELETED, {}, "", id="the Job is removed"),
        pytest.param(ANEW, {}, "", id="another Job is there"),
        pytest.param({}, {}, "", id="the Job is gone"),
        pytest.param(away(), {}, "", id="nobody knows"),
    ],
)
def test_ctrl_c_lets_the_queue_go_on_if_the_job_stays(job: Any, answers: Any, message: str) -> None:
    lead = Talker({"running": 1, "settled": False}, answers=answers)
    _, hold, _ = world(lead, job=job)
    with pytest.raises((Interrupted, KeyboardInterrupt)) as error, hold() as queue:
        queue.settle(None, interrupt)
    assert str(error.value) == message
    assert asked(lead) == ([{"start": True}] if answers else [])
    assert lead.is_closed


def interrupt(_: str) -> None:
    raise KeyboardInterrupt


def test_a_refusal_lets_the_queue_go_on_and_is_told() -> None:
    lead = Talker(SETTLED, answers={"start": {"started": True}})
    with pytest.raises(StateError, match=r"^nothing is removed$"), world(lead)[1]() as queue:
        queue.settle(None, print)
        raise StateError("nothing is removed")
    assert asked(lead) == [{"start": True}]


def test_a_lead_that_is_silent_ends_it_after_some_tries() -> None:
    why = "the lead of mini does not answer, and nothing has changed: the connection to the server x was refused"
    with pytest.raises(StateError, match=f"^{why}; try again$"), world(*[away()] * 5)[1]() as queue:
        queue.settle(None, print)


def test_nothing_is_held_where_no_queue_runs() -> None:
    cluster, _, kube = world()
    with held_queue(cluster, JOB, None) as queue:
        assert queue is None
    assert kube.ran == []
