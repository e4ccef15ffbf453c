"""The SDK's conversation with the lead: submissions, ends, cancellations, lost connections and lost leads."""

import concurrent.futures
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from minicluster.cluster.states import MEMORY
from minicluster.errors import AwayError, EndError, RefusedError
from minicluster.lead import ask
from minicluster.sdk import (
    ApiError,
    ArgumentError,
    ClosedError,
    CommandExecutor,
    EndedError,
    FinishedJob,
    Job,
    JobFailed,
    JobFuture,
    JobLost,
    JobRefused,
    session,
)
from minicluster.sdk.jobs import job_of, words_of
from minicluster.sdk.requests import JobsQuestion, Submission
from minicluster.sdk.session import Session
from sdk_lead import Leads, StandIn

from tools.clients import until


class Client:
    """A session, and `submit` as `MiniCluster` has it."""

    def __init__(self) -> None:
        self.leads = Leads()
        self.session = Session(self.leads.connect)

    def submit(self, command, **options) -> JobFuture:
        submission = Submission(job_of(words_of(command), options), JobFuture(lambda: self._cancel(submission)))
        self.session.send(submission)
        return submission.future

    def _cancel(self, submission: Submission) -> None:
        self.session.say(submission, submission.cancellation())

    def accepted(self, lead: StandIn, command="true", name="f1") -> tuple[JobFuture, str]:
        """Return the future of a job that Flux has, and its key."""
        future = self.submit(command)
        key = lead.next()["key"]
        lead.say(key=key, id=name)
        assert future.wait_for_id(10) == name
        return future, key


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(session, "RETRY_SECONDS", 0.01)
    client = Client()
    yield client
    client.session.close("the test is over")
    if client.session._thread.ident:
        client.session._thread.join(10)
    assert not client.session._thread.is_alive()
    client.leads.drop()


def test_a_hundred_submissions_at_most_wait_for_an_answer(client):
    futures = [client.submit("true") for _ in range(250)]
    lead = client.leads.come().begin()
    keys = [lead.next()["key"] for _ in range(100)]
    lead.say(alive=True)
    lead.say(key=keys[0], id="f0")
    lead.end(keys[0])
    keys.append(lead.next()["key"])
    assert sum(lead.counts[1:]) == 101
    for number in range(1, 250):
        lead.say(key=keys[number], id=f"f{number}")
        keys += [lead.next()["key"]] if len(keys) < 250 else []
        lead.end(keys[number])
    assert {future.result(10).exit_code for future in futures} == {0}


def test_a_future_follows_its_job_from_submission_to_end(client):
    lead = client.leads.come()
    future = client.submit("printf 'a b' $HOME", nodes=2, environment={"A": 1}, name="first")
    lead.begin()
    message = lead.next()
    key = message.pop("key")
    assert message == {
        "submit": {
            "command": ["printf", "a b", "$HOME"],
            "nodes": 2,
            "environment": {"A": "1"},
            "attributes": {"system.job.name": "first"},
        },
        "again": False,
        "drop": False,
        "age": 0,
    }
    lead.say(key=key, id="f1")
    assert future.wait_for_id(10) == future.id == "f1"
    assert not future.running()
    started = threading.Event()
    lead.say(key=key, started=True)
    used = {"nodes": {"mc-0": {"cpu_seconds": 1.5}}, "total": {"cpu_seconds": 1.5}}
    lead.end(key, 0, output=[["stdout", "a"], ["stderr", "b"], ["stdout", "c\n"]], usage=used)
    future.add_done_callback(lambda _: started.set())
    job = future.result(10)
    assert started.wait(10)
    assert job == FinishedJob("f1", 0, (("stdout", "a"), ("stderr", "b"), ("stdout", "c\n")), "", used)
    assert (job.output, job.stdout, job.stderr) == ("abc\n", "ac\n", "b")
    assert not future.running()
    assert not future.cancel()


def test_a_future_says_why_its_job_waits(client):
    lead = client.leads.come()
    future = client.submit("true")
    lead.begin()
    key = lead.next()["key"]
    lead.say(key=key, id="f1")
    future.wait_for_id(10)
    assert future.waits == ""
    lead.say(key=key, waits="waits for resources that other jobs have")
    until(lambda: future.waits, 10)
    assert future.waits == "waits for resources that other jobs have"
    lead.say(key=key, started=True)
    until(future.running, 10)
    assert future.waits == ""
    lead.end(key)
    future.result(10)


def test_a_session_joins_replies_that_come_in_pieces(client):
    lead = client.leads.come()
    future = client.submit("true")
    key = lead.begin().next()["key"]
    for byte in f'{{"key": "{key}", "id": "f\\u0192"}}\n{{"alive": true}}\n{{"key": "nobody", "id": "f2"}}\n'.encode():
        lead.raw(bytes([byte]))
    assert future.wait_for_id(10) == "f\u0192"


@pytest.mark.parametrize(
    ("status", "exception", "code", "reason"),
    [
        (3 << 8, None, 3, "failed with exit code 3"),
        (9, None, 137, f"failed with exit code 137 ({MEMORY})"),
        (137 << 8, None, 137, f"failed with exit code 137 ({MEMORY})"),
        (None, {"type": "alloc", "note": "unsatisfiable"}, 1, "can never run: unsatisfiable"),
        (15, {"type": "cancel", "note": ""}, 143, "was cancelled"),
        (0, {"type": "exec", "note": "lost"}, 1, "failed: lost"),
        (None, {"type": "timeout", "note": ""}, 1, "ran into its time limit"),
    ],
)
def test_a_failed_job_raises_job_failed_with_exit_code_and_output(client, status, exception, code, reason):
    lead = client.leads.come()
    future = client.submit("false")
    key = lead.begin().next()["key"]
    lead.say(key=key, id="f1")
    lead.end(key, status, exception, [["stderr", "why\n\n"], ["stdout", "out\n"]], {"total": {}})
    error = future.exception(10)
    assert isinstance(error, JobFailed)
    assert (error.exit_code, error.output, error.usage) == (code, "why\n\nout\n", {"total": {}})
    assert str(error) == f"job f1 {reason}: why"
    said = JobFailed(FinishedJob("f1", 1, (("stderr", "flux-shell: no such file\n"),), "failed: no such file"))
    assert str(said) == "job f1 failed: no such file"
    assert error.job == FinishedJob("f1", code, (("stderr", "why\n\n"), ("stdout", "out\n")), reason, {"total": {}})


def test_a_job_that_flux_refuses_raises_job_refused(client):
    lead = client.leads.come()
    future = client.submit("true")
    key = lead.begin().next()["key"]
    lead.say(key=key, error="no such queue")
    error = future.exception(10)
    assert isinstance(error, JobRefused)
    assert str(error) == "Flux doesn't take the job true: no such queue"
    with pytest.raises(JobRefused):
        future.wait_for_id(10)


def test_cancel_cancels_the_job(client):
    lead = client.leads.come()
    future = client.submit("sleep 9")
    lead.begin()
    key = lead.next()["key"]
    lead.say(key=key, id="f1")
    lead.say(key=key, started=True)
    future.wait_for_id(10)
    assert future.cancel()
    assert future.cancel()
    assert future.cancelled()
    assert lead.next() == {"key": key, "cancel": "f1"}
    assert concurrent.futures.wait([future], 0).done == {future}
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(0)
    lead.end(key, 15, {"type": "cancel", "note": ""})
    client.accepted(lead, name="f2")


def test_cancel_works_before_the_id_of_the_job_is_known(client):
    lead = client.leads.come()
    future = client.submit("sleep 9")
    key = lead.begin().next()["key"]
    assert future.cancel()
    lead.say(key=key, id="f1")
    assert lead.next() == {"key": key, "cancel": "f1"}


def test_a_job_that_is_cancelled_before_there_is_a_lead_is_not_submitted(client):
    future = client.submit("sleep 9")
    assert future.cancel()
    lead = client.leads.come()
    other = client.submit("true")
    message = lead.begin().next()
    assert message["submit"]["command"] == ["true"]
    lead.say(key=message["key"], id="f1")
    assert other.wait_for_id(10) == "f1"


def test_a_done_callback_may_submit_and_cancel_jobs(client):
    lead = client.leads.come()
    future = client.submit("false")
    key = lead.begin().next()["key"]
    more: list[JobFuture] = []
    future.add_done_callback(lambda done: (done.cancel(), more.append(client.submit("true"))))
    lead.say(key=key, id="f1")
    lead.end(key)
    key = lead.next()["key"]
    lead.say(key=key, id="f2")
    lead.end(key)
    assert more[0].result(10).id == "f2"


def test_a_session_reconnects_without_submitting_a_job_twice(client):
    lead = client.leads.come()
    first = client.submit("first")
    lead.begin()
    one = lead.next()["key"]
    second = client.submit("second")
    two = lead.next()["key"]
    third = client.submit("third")
    three = lead.next()["key"]
    for key, name in ((one, "f1"), (three, "f3")):
        lead.say(key=key, id=name)
    first.wait_for_id(10)
    third.wait_for_id(10)
    third.cancel()
    assert lead.next() == {"key": three, "cancel": "f3"}
    lead.break_off()
    lead = client.leads.come().begin()
    assert lead.next() == {"key": one, "watch": "f1", "again": True}
    message = lead.next()
    assert (message["submit"]["command"], message["again"], message["drop"]) == (["second"], True, False)
    assert 0 < message["age"] < 10
    assert lead.next() == {"key": three, "cancel": "f3", "again": True}
    lead.end(one)
    assert first.result(10).id == "f1"
    lead.say(key=two, id="f2")
    lead.end(two)
    assert second.result(10).id == "f2"


def test_a_job_that_was_cancelled_while_its_id_was_lost_is_not_resubmitted(client):
    lead = client.leads.come()
    future = client.submit("sleep 9")
    key = lead.begin().next()["key"]
    future.cancel()
    lead.break_off()
    lead = client.leads.come().begin()
    message = lead.next()
    assert (message["key"], message["again"], message["drop"]) == (key, True, True)
    lead.say(key=key, lost=True)
    client.accepted(lead)


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        ([], "the job sleep 9 is lost: its lead was lost with the queue, so it may have run"),
        ([{"id": "f1"}], "job f1 is lost: its lead was lost with the queue, so it may have run"),
        ([{"id": "f1"}, {"started": True}], "job f1 is lost: its lead was lost with the queue, while it ran"),
    ],
    ids=["without an id", "pending", "running"],
)
def test_a_job_that_is_lost_with_its_lead_raises_job_lost(client, replies, expected):
    lead = client.leads.come()
    future = client.submit("sleep 9")
    key = lead.begin().next()["key"]
    for reply in replies:
        lead.say(key=key, **reply)
    until(lambda: future.running() == (len(replies) == 2) and bool(future.id) == bool(replies))
    lead.break_off(exit_code=137)
    lead = client.leads.come().begin()
    lead.next()
    lead.say(key=key, lost=True)
    error = future.exception(10)
    assert isinstance(error, JobLost)
    assert str(error) == f"{expected}: look before you submit it again; state.capacity keeps the queue"


def test_a_lost_job_that_may_run_twice_is_submitted_again(client):
    lead = client.leads.come()
    future = client.submit("sleep 9", attributes={"user.minicluster.requeue": 1})
    key = lead.begin().next()["key"]
    lead.say(key=key, id="f1")
    future.wait_for_id(10)
    lead.break_off(exit_code=137)
    lead = client.leads.come().begin()
    assert lead.next() == {"key": key, "watch": "f1", "again": True}
    lead.say(key=key, lost=True)
    message = lead.next()
    assert (message["key"], message["submit"]["command"]) == (key, ["sleep", "9"])
    lead.say(key=key, id="f2")
    lead.end(key)
    assert future.result(10).id == "f2"


def test_a_session_leaves_a_silent_lead_and_connects_again(client, monkeypatch):
    monkeypatch.setattr(ask, "SILENCE_SECONDS", 1)
    lead = client.leads.come()
    client.submit("true")
    lead.begin().next()
    assert lead.is_closed.wait(10)
    monkeypatch.setattr(ask, "SILENCE_SECONDS", 60)
    assert client.leads.come().begin().next()["again"]


def run_and_break_off(client):
    """Let a job run to its end, and then end the connection."""
    lead = client.leads.come()
    future = client.submit("true")
    key = lead.begin().next()["key"]
    lead.say(key=key, id="f1")
    lead.end(key)
    future.result(10)
    lead.break_off()
    assert lead.is_closed.wait(10)


def test_a_session_stays_disconnected_while_no_job_is_open(client):
    run_and_break_off(client)
    assert client.leads.asked == 1
    lead = client.leads.come()
    client.submit("true")
    lead.begin().next()
    assert client.leads.asked == 2


def test_the_end_of_the_minicluster_ends_the_open_futures(client):
    client.leads.come(EndError("mini has ended: Complete"))
    first = client.submit("true")
    assert isinstance(first.exception(10), EndedError)
    client.leads.come(RefusedError("pods is forbidden", status=403))
    assert isinstance(client.submit("true").exception(10), ApiError)
    # the thread lives on
    lead = client.leads.come()
    future = client.submit("true")
    lead.say(key=lead.begin().next()["key"], error="no")
    assert isinstance(future.exception(10), JobRefused)


def test_a_session_asks_an_absent_api_server_again_for_a_limited_time(client, monkeypatch):
    for _ in range(3):
        client.leads.come(AwayError("connection refused"))
    lead = client.leads.come()
    future = client.submit("true")
    lead.begin().next()
    assert client.leads.asked == 4
    monkeypatch.setattr("minicluster.kube.outage.OUTAGE_SECONDS", -1)
    client.leads.come(AwayError("no server"))
    lead.break_off(1, b"usage\nflux: no broker\n")
    assert str(future.exception(10)) in ("the lead's program ended: usage flux: no broker", "no server")


def test_the_time_without_open_jobs_is_no_outage(client, monkeypatch):
    run_and_break_off(client)
    until(lambda: client.session.problem and not client.session._is_connected)
    # an hour later
    now = time.monotonic() + 3600
    monkeypatch.setattr("minicluster.kube.outage.time", SimpleNamespace(monotonic=lambda: now, time=time.time))
    client.leads.come(AwayError("there is no lead"))
    lead = client.leads.come()
    client.submit("true")
    assert lead.begin().next()["submit"]


def test_a_bug_in_the_sdk_ends_the_open_futures(client, caplog):
    client.leads.come(KeyError("oops"))
    error = client.submit("true").exception(10)
    assert str(error) == "the SDK has a bug, please report it: KeyError('oops')"
    assert "the conversation with the lead broke" in caplog.text
    lead = client.leads.come()
    client.submit("true")
    assert lead.begin().next()["submit"]


def test_close_ends_the_open_futures_and_refuses_new_jobs(client):
    lead = client.leads.come()
    future = client.submit("sleep 9")
    lead.begin().next()
    client.session.close("mini was closed")
    client.session.close("again")
    assert str(future.exception(10)) == "mini was closed: Flux may not have this job"
    assert isinstance(future.exception(), ClosedError)
    assert lead.is_closed.wait(10)
    with pytest.raises(ClosedError, match="connect to it again"):
        client.submit("true")


def test_close_waits_until_the_lead_knows_of_jobs_and_cancellations(client, caplog):
    lead = client.leads.come()
    goes, ends = client.submit("sleep 9"), client.submit("sleep 9")
    first, second = (lead.begin().next()["key"], lead.next()["key"])
    assert ends.cancel()
    closing = threading.Thread(target=lambda: client.session.close("mini was closed", 10))
    closing.start()
    lead.say(key=first, id="f1")
    lead.say(key=second, id="f2")
    assert lead.next() == {"key": second, "cancel": "f2"}
    assert closing.is_alive()
    lead.say(key=second, cancelled=True)
    closing.join(10)
    assert str(goes.exception(0)) == "mini was closed: job f1 goes on"
    assert caplog.messages == []


def test_close_says_what_the_lead_may_not_know(client, caplog):
    client.submit("true")
    client.session.close("mini was closed", 0.1)
    assert caplog.messages == ["Flux may not know of 1 job that was submitted or cancelled: no answer came"]


def listed(name: str, submitted: float) -> dict[str, object]:
    """Return what the lead says of a job."""
    job = {"id": name, "name": "sleep", "state": "run", "result": "", "exit_code": None, "nodes": "mini-0"}
    return {**job, "tasks": 1, "submitted": submitted, "runtime": 2.5}


def test_a_long_list_of_jobs_comes_in_parts_and_whole_after_a_lost_connection(client):
    lead = client.leads.come()
    question = JobsQuestion(ended=True)
    client.session.send(question)
    lead.begin().next()
    lead.say(key=question.key, jobs=[listed("f7", 1.0)], more=True)
    lead.break_off()
    lead = client.leads.come().begin()
    lead.next()
    lead.say(key=question.key, jobs=[listed("f2", 2.0), listed("f1", 1.0)], more=True)
    lead.say(key=question.key, jobs=[listed("f4", 4.0)], more=True)
    lead.say(key=question.key, jobs=[listed("f3", 3.0)])
    assert [job.id for job in question.answer.result(10)] == ["f1", "f2", "f3", "f4"]


def test_a_question_is_asked_again_after_a_lost_connection(client):
    lead = client.leads.come()
    question = JobsQuestion(ended=False)
    client.session.send(question)
    lead.begin()
    assert lead.next() == {"key": question.key, "list": False}
    lead.break_off()
    lead = client.leads.come().begin()
    assert lead.next() == {"key": question.key, "list": False}
    lead.say(key=question.key, jobs=[listed("f1", 1.5)])
    assert question.answer.result(10) == [Job("f1", "sleep", "run", "", None, "mini-0", 1, 1.5, 2.5)]
    question = JobsQuestion(ended=False)
    client.session.send(question)
    lead.next()
    lead.say(key=question.key, error="Function not implemented")
    assert str(question.answer.exception(10)) == "list: Flux says Function not implemented"


def test_an_executor_submits_commands_and_returns_their_output(client):
    lead = client.leads.come()
    executor = CommandExecutor(client.submit, {"nodes": 1})
    with executor:
        results = executor.map("echo -n", ["a b", 2], timeout=10)
        special = executor.submit(["sleep"], 9, nodes=2)
        lead.begin()
        messages = [lead.next() for _ in range(3)]
        jobs = [(message["submit"]["command"], message["submit"]["nodes"]) for message in messages]
        assert jobs == [(["echo", "-n", "a b"], 1), (["echo", "-n", "2"], 1), (["sleep", "9"], 2)]
        for number, message in enumerate(messages):
            lead.say(key=message["key"], id=f"f{number}")
            lead.end(message["key"], output=[["stdout", f"{number}"]])
        assert [job.output for job in results] == ["0", "1"]
    assert special.done()
    with pytest.raises(RuntimeError, match="was shut down"):
        executor.submit("true")


def test_an_executor_that_is_shut_down_cancels_its_jobs(client):
    client.leads.come()
    executor = CommandExecutor(client.submit, {})
    future = executor.submit("sleep 9")
    executor.shutdown(cancel_futures=True)
    assert future.cancelled()


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        (print, {}, "<built-in function print> is a Python callable, and `run` takes a command: submit, map and "
         "executor of a MiniCluster take functions"),
        ("echo 'a", {}, "\"echo 'a\" is not a command: No closing quotation; a list needs no quotes"),
        ("", {}, "'' is not a command: give at least one word"),
        (7, {}, "7 is not a command: give a text, or a list of words"),
        ("a", {"nodes": 0}, "nodes=0: give a whole number, 1 or more"),
        ("a", {"tasks": "2"}, "tasks='2': give a whole number, 1 or more"),
        ("a", {"gpus_per_task": -1}, "gpus_per_task=-1: give a whole number, 0 or more"),
        ("a", {"nodes": 3, "tasks": 2}, "nodes=3 for tasks=2: each node needs a task; leave tasks out or raise it"),
        ("a", {"exclusive": True}, "exclusive=True without nodes: say how many nodes"),
        ("a", {"time_limit": 0}, "time_limit=0: give seconds, more than 0, or a text such as '15m' or '2h'; without it "
         "there is no limit"),
        ("a", {"time_limit": "1 hour"}, "time_limit='1 hour': give seconds, more than 0, or a text such as '15m' or "
         "'2h'; without it there is no limit"),
        ("a", {"node": 2}, "node is not an option of a job: give one of nodes, tasks, cores_per_task, gpus_per_task, "
         "exclusive, instance, environment, working_dir, upload, packages, time_limit, name, attributes"),
    ],
)  # fmt: skip
def test_submit_names_a_wrong_argument(client, command, options, message):
    with pytest.raises(ArgumentError) as caught:
        client.submit(command, **options)
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)
