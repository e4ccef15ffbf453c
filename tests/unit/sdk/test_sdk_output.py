"""Lines of a job while it runs: `future.lines()`, through lost connections and copies of the job."""

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest
from minicluster.sdk import ArgumentError, ClosedError, JobFailed, JobLost, JobRefused, job_queue, session
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.job_queue import JobQueue
from sdk_lead import Leads, StandIn

from tools.clients import until


class Client:
    """A queue, and what the lead gets from it."""

    def __init__(self) -> None:
        self.leads = Leads()
        self.queue = JobQueue(self, "mini")  # type: ignore[arg-type]

    def runs(self) -> tuple[StandIn, JobFuture, str]:
        """Return a lead, and a job that runs there."""
        lead, future = self.leads.come(), self.queue.submit(["true"], {})
        key = lead.begin().next()["key"]
        lead.say(key=key, id="f1")
        future.wait_for_id(10)
        return lead, future, key


class Reader:
    """A thread that reads lines."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines: queue.Queue[Any] = queue.Queue()
        self._source = lines
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        try:
            for line in self._source:
                self.lines.put(line)
        except Exception as error:
            self.lines.put(error)
        self.lines.put(None)

    def next(self) -> Any:
        """Return the next line; None at the end, and an error before."""
        return self.lines.get(timeout=10)

    def end(self) -> list[Any]:
        """Return all until the end."""
        found = [*iter(self.next, None)]
        self._thread.join(10)
        return found


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(session, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(job_queue, "_connect", lambda kube, _name, *how: kube.leads.connect(*how))
    client = Client()
    yield client
    client.queue.close(0)
    client.leads.drop()


def test_lines_come_while_the_job_runs_and_go_on_after_a_lost_connection(client: Client) -> None:
    lead, future, job = client.runs()
    reader = Reader(future.lines())
    asked = lead.next()
    key = asked["key"]
    assert asked == {"key": key, "output": "f1", "at": 0}
    lead.say(key=key, text=["stdout", "one\ntw"], to=6)
    lead.say(key=key, text=["stderr", "not this\n"], to=15)
    assert reader.next() == "one\n"
    lead.say(key=key, text=["stdout", "o\u2028\r"], to=20)
    until(lambda: not lead.written.qsize(), 10)
    lead.break_off()
    lead = client.leads.come().begin()
    assert lead.next() == {"key": job, "watch": "f1", "again": True}
    again = lead.next()
    # what had come before the break isn't sent again
    assert (again["output"], again["at"] in (6, 15, 20)) == ("f1", True)
    for text, to in (["stderr", "not this\n"], 15), (["stdout", "o\u2028\r"], 20):
        if again["at"] < to:
            lead.say(key=key, text=text, to=to)
    lead.say(key=key, text=["stdout", "\nlast"], to=25)
    assert reader.next() == "two\u2028\r\n"
    lead.say(key=key, over=True)
    assert reader.next() == "last"
    lead.end(job, 3 << 8)
    # how it ended is for `result` to say
    assert reader.end() == []
    assert isinstance(future.exception(10), JobFailed)


def test_lines_of_each_stream_or_both_are_for_many_readers(client: Client) -> None:
    lead, future, job = client.runs()
    lead.end(job)
    for stream, expected in {"stdout": ["a\n", "b"], "stderr": ["x\n"], "output": ["x\n", "a\n", "b"]}.items():
        reader = Reader(future.lines(stream))  # type: ignore[arg-type]
        key = lead.next()["key"]
        for one, text in (("stdout", "a"), ("stderr", "x\n"), ("stdout", "\nb")):
            lead.say(key=key, text=[one, text], to=1)
        lead.say(key=key, over=True)
        assert reader.end() == expected
    with pytest.raises(ArgumentError, match=r"^stream='out': give one of stdout, stderr, output$"):
        future.lines("out")  # type: ignore[arg-type]


def test_a_slow_reader_is_sent_no_more_than_it_asks_for(client: Client) -> None:
    lead, future, job = client.runs()
    lines = future.lines()
    first = threading.Thread(target=lambda: taken.append(next(lines)))
    taken: list[str] = []
    first.start()
    key = lead.next()["key"]
    lead.say(key=key, text=["stdout", "a\nb\n"], to=4)
    lead.say(key=key, more=True)
    first.join(10)
    assert (taken, lead.written.qsize()) == (["a\n"], 0)
    reader = Reader(lines)
    assert reader.next() == "b\n"
    assert lead.next() == {"key": key, "output": "f1", "at": 4}
    lead.say(key=key, over=True)
    lead.end(job)
    assert reader.end() == []


def test_a_reader_that_stops_early_ends_the_request(client: Client) -> None:
    lead, future, _ = client.runs()
    lines = future.lines()
    client_side = threading.Thread(target=lambda: (next(lines), lines.close()))  # type: ignore[attr-defined]
    client_side.start()
    key = lead.next()["key"]
    lead.say(key=key, text=["stdout", "a\nb\n"], to=4)
    assert lead.next() == {"key": key, "output": ""}
    client_side.join(10)


@pytest.mark.parametrize("last", [{"over": True}, {"gone": True}], ids=str)
def test_lines_go_on_with_the_copy_of_a_job_that_runs_again(client: Client, last: dict[str, bool]) -> None:
    lead, future, job = client.runs()
    reader = Reader(future.lines())
    key = lead.next()["key"]
    lead.say(key=key, text=["stdout", "half"], to=4)
    lead.say(key=key, **last)
    lead.say(key=job, id="f2")
    asked = lead.next()
    assert (asked["output"], asked["at"], asked["key"] != key) == ("f2", 0, True)
    lead.say(key=asked["key"], text=["stdout", "whole\n"], to=6)
    lead.say(key=asked["key"], over=True)
    lead.end(job)
    assert reader.end()[-1] == "whole\n"


def test_lines_that_can_not_be_had_are_an_error(client: Client) -> None:
    lead, future, job = client.runs()
    reader = Reader(future.lines())
    lead.say(key=lead.next()["key"], gone=True)
    lead.end(job)
    [gone] = reader.end()
    assert (type(gone), str(gone)) == (
        JobLost,
        "Flux no longer has the output of job f1: flux.keptJobs says how many it keeps",
    )
    refused = client.queue.submit(["true"], {})
    reader = Reader(refused.lines())
    lead.say(key=lead.next()["key"], error="no")
    assert [type(error) for error in reader.end()] == [JobRefused]
    cancelled = client.queue.submit(["true"], {})
    reader = Reader(cancelled.lines())
    lead.say(key=lead.next()["key"], id="f3")
    read = lead.next()["key"]
    cancelled.cancel()
    lead.next()
    lead.say(key=read, over=True)
    assert [type(error) for error in reader.end()] == [CancelledError]
    left = client.queue.submit(["true"], {})
    reader = Reader(left.lines())
    lead.say(key=lead.next()["key"], id="f4")
    lead.say(key=lead.next()["key"], text=["stdout", "a\n"], to=2)
    assert reader.next() == "a\n"
    client.queue.close(0)
    assert [type(error) for error in reader.end()] == [ClosedError]


def test_a_program_that_starts_again_has_the_futures_of_its_earlier_jobs(client: Client) -> None:
    lead = client.leads.come()
    earlier = client.queue.job("f1")
    assert client.queue.job("\u01921") is earlier
    asked = lead.begin().next()
    key = asked["key"]
    assert (asked, key[:4]) == ({"key": key, "watch": "\u01921", "again": True}, "any-")
    lead.say(key=key, id="\u01921")
    reader = Reader(earlier.lines())
    read = lead.next()
    assert read["output"] == "\u01921"
    lead.say(key=read["key"], over=True)
    assert client.queue.job("f1") is earlier
    lead.end(key, output=[["stdout", "done\n"]])
    assert earlier.result(10).output == "done\n"
    assert reader.end() == []
    none = client.queue.job("f9")
    lead.say(key=lead.next()["key"], lost=True)
    assert str(none.exception(10)) == "job \u01929: Flux has no such job: jobs(ended=True) has all that are known"
    stops = client.queue.job("f2")
    key = lead.next()["key"]
    assert stops.cancel()
    lead.say(key=key, id="\u01922")
    assert lead.next() == {"key": key, "cancel": "\u01922"}
