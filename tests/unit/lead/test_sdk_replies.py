"""What the SDK's program on the lead writes, and how it follows jobs, without Flux."""

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from minicluster.cluster.states import MEMORY
from minicluster.sdk.outcome import finished


class Watcher:
    """A watcher of a file, which the test plays."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call, self.runs = call, False

    def start(self) -> None:
        self.runs = True

    def stop(self) -> None:
        self.runs = False


class Timer(Watcher):
    """A timer, which the test plays; the handle has it until it is destroyed."""

    def __init__(self, handle: "Handle", call: Callable[..., None]) -> None:
        super().__init__(partial(call, handle, self, 0, None))
        self.handle = handle

    def destroy(self) -> None:
        self.handle.timers.remove(self)


class Future:
    """An answer that comes when the test says so."""

    def __init__(self, **sent: Any) -> None:
        self.sent, self.value = sent, None
        self.resets = 0

    def then(self, call: Callable[[Any], None]) -> None:
        self.call = call

    def come(self, value: Any) -> None:
        self.value = value
        self.call(self)

    def get(self) -> Any:
        if isinstance(self.value, OSError):
            raise self.value
        return self.value

    get_event = get

    def get_flux(self) -> "Handle":
        return self.sent["handle"]

    def reset(self) -> None:
        self.resets += 1


class Handle:
    """A handle of Flux that keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[Future] = []
        self.timers: list[Timer] = []

    def rpc(self, topic: str, payload: Any = None, *_: Any) -> Future:
        self.asked.append(Future(topic=topic, payload=payload))
        return self.asked[-1]

    def fd_watcher_create(self, _file: int, call: Callable[[], None], _events: int) -> Watcher:
        self.watcher = Watcher(call)
        return self.watcher

    def timer_watcher_create(self, _seconds: float, call: Callable[..., None]) -> Timer:
        self.timers.append(Timer(self, call))
        return self.timers[-1]


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    from minicluster.lead.program import SENT  # noqa: PLC0415

    outputs: dict[int, Future] = {}

    def watch(handle: Any, job: int, eventlog: str) -> Future:
        assert eventlog == "guest.output"
        return outputs.setdefault(job, Future(handle=handle))

    fake = {
        "flux": ModuleType("flux"),
        "flux.constants": ModuleType("flux.constants"),
        "flux.job": ModuleType("flux.job"),
    }
    constants: Any = fake["flux.constants"]
    constants.FLUX_POLLOUT, constants.FLUX_RPC_STREAMING = 2, 4
    fake["flux"].constants = constants  # type: ignore[attr-defined]
    job: Any = fake["flux.job"]
    job.JobID, job.event_watch_async, job.JobspecV1 = lambda n: SimpleNamespace(f58=f"f{n}"), watch, None
    for name, module in fake.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(str(SENT))
    import described  # noqa: PLC0415
    import followed  # noqa: PLC0415
    import recorded  # noqa: PLC0415
    import replies  # noqa: PLC0415

    yield SimpleNamespace(followed=followed, recorded=recorded, replies=replies, described=described, outputs=outputs)
    for name in ("followed", "recorded", "replies", "described"):
        sys.modules.pop(name, None)


@pytest.fixture
def pipe(programs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Let replies go to a pipe; return the end that is read. Closing it ends the thread that writes signs of life."""
    read, write = os.pipe()
    before = set(threading.enumerate())
    monkeypatch.setattr(programs.replies, "sys", SimpleNamespace(stdout=SimpleNamespace(fileno=lambda: write)))
    monkeypatch.setattr(programs.replies, "ALIVE_SECONDS", 0.01)
    yield read
    os.close(read)
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    os.close(write)


def test_replies_wait_until_the_client_reads(programs: SimpleNamespace, pipe: int) -> None:
    handle = Handle()
    reply = programs.replies.Replies(handle)
    for number in range(3000):
        reply(key=f"{number}", text="x" * 100)
    assert handle.watcher.runs
    found = b""
    while found.count(b"key") < 3000 or not found.endswith(b"\n"):
        found += os.read(pipe, 1 << 20)
        handle.watcher.call()
    assert not handle.watcher.runs
    keys = [answer["key"] for answer in map(json.loads, found.splitlines()) if "alive" not in answer]
    assert keys == [f"{number}" for number in range(3000)]


def test_signs_of_life_come_while_flux_keeps_the_program_waiting(programs: SimpleNamespace, pipe: int) -> None:
    programs.replies.Replies(Handle())
    assert json.loads(os.read(pipe, 16)) == {"alive": True}


#: What stands for Flux in a process
FAKE = "sys.modules['flux'].constants = None; "
TIMES = ["t_submit", "t_run", "t_cleanup", "t_inactive"]


class Said(list[dict[str, Any]]):
    """The replies."""

    def __call__(self, **answer: Any) -> None:
        self.append(answer)

    def refuse(self, key: str, error: Exception) -> None:
        self.append({"key": key, "error": str(error)})


def event(name: str, **context: Any) -> dict[str, Any]:
    return {"timestamp": 1.0, "name": name, **({"context": context} if context else {})}


@pytest.mark.parametrize("older", [False, True])
def test_events_that_come_before_the_id_of_their_job_count(programs: SimpleNamespace, older: bool) -> None:
    handle, said = Handle(), Said()
    journal = programs.followed.Journal(handle, said)
    [stream] = handle.asked

    def come(job: int, *events: dict[str, Any]) -> None:
        if older:
            stream.come({"events": [{"id": job, "eventlog_seq": 0, "entry": each} for each in events]})
        else:
            stream.come({"id": job, "events": list(events)})

    submitted = Future()
    journal.expect(submitted, lambda _: journal.follow("a", 7, []))
    come(8, event("start"))
    come(7, event("alloc"), event("start"))
    assert said == []
    submitted.come(None)
    come(7, event("finish", status=256))
    come(7, event("exception", severity=1, type="note"), event("exception", severity=0, type="exec", note="why"))
    come(7, event("clean"))
    assert handle.asked[1].sent["payload"] == {"id": 7, "attrs": ["ranks", "nodelist", "annotations", *TIMES]}
    job = {"annotations": {"user": {}}, "nodelist": "mini-0", "t_submit": 1.0, "t_run": 2.0, "t_inactive": 4.0}
    if older:
        # its list is behind its events, and is asked again after a pause
        handle.asked[1].come({"job": {"t_submit": 1.0}})
        [timer] = handle.timers
        assert (len(handle.asked), timer.runs) == (2, True)
        timer.call()
        assert (handle.asked[2].sent, handle.timers) == (handle.asked[1].sent, [])
    handle.asked[-1].come({"job": job})
    output = programs.outputs[7]
    output.come(SimpleNamespace(name="data", context={"stream": "stdout", "data": "text"}))
    output.come(None)
    end = {"status": 256, "exception": {"type": "exec", "note": "why"}, "output": [("stdout", "text")]}
    end |= {"usage": None, "nodes": "mini-0", "times": [1.0, 2.0, None, 4.0]}
    assert said == [{"key": "a", "id": "f7"}, {"key": "a", "started": True}, {"key": "a", "end": end}]
    assert (journal.jobs, journal.early, stream.resets) == ({}, {}, 5)


def test_a_status_that_was_told_before_and_is_stored_later_counts(
    programs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle, said = Handle(), Said()
    journal = programs.followed.Journal(handle, said)
    journal.follow_earlier("any-a", 7)
    stream, asked = handle.asked
    asked.come({"jobspec": "{}", "eventlog": json.dumps(event("start"))})
    stream.come({"id": 7, "events": [event("clean")]})
    assert [*journal.jobs] == [7]
    monkeypatch.setattr("time.monotonic", lambda: 1e9)
    journal.look()
    past = (event("start"), event("finish", status=0), event("clean"))
    handle.asked[-1].come({"eventlog": "\n".join(map(json.dumps, past))})
    handle.asked[-1].come(FileNotFoundError())
    programs.outputs[7].come(None)
    assert [(reply["end"]["status"], reply["end"]["exception"]) for reply in said if "end" in reply] == [(0, None)]


@pytest.mark.usefixtures("programs")
def test_a_client_has_one_program() -> None:
    code = "import sys, replies; replies.end_former(sys.argv[1]); print('is it', flush=True); sys.stdin.read()"
    client = uuid.uuid4().hex
    words = [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; sys.modules['flux'] = sys; {FAKE}{code}"]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*words, client], **pipes) as former, subprocess.Popen([*words, "other"], **pipes) as other:
        assert [one.stdout.readline() for one in (former, other)] == ["is it\n"] * 2
        with subprocess.Popen([*words, client], **pipes) as last:
            assert last.stdout.readline() == "is it\n"
            assert (former.wait(10), other.poll(), last.poll()) == (-signal.SIGKILL, None, None)
            last.stdin.close()
        other.stdin.close()
        assert (other.wait(10), last.wait(10)) == (0, 0)


def test_a_job_from_before_is_followed_from_its_past_on(programs: SimpleNamespace) -> None:
    handle, said = Handle(), Said()
    journal = programs.followed.Journal(handle, said)
    done: list[str] = []
    journal.follow_earlier("a", 7, lambda: done.append("a"))
    journal.follow_earlier("b", 8)
    journal.follow_earlier("c", 9)
    journal.follow_earlier("d", 10)
    stream, *asked = handle.asked
    assert [one.sent["payload"]["id"] for one in asked] == [7, 8, 9, 10]
    stream.come({"id": 7, "events": [event("finish", status=0), event("clean")]})
    spec = json.dumps({"attributes": {"user": {"minicluster-sdk": "a"}}})
    events = (event("submit", note="a\u2028b\x85c"), event("start"), event("finish", status=0))
    past = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in events)
    asked[0].come({"jobspec": spec, "eventlog": past})
    asked[1].come({"jobspec": spec, "eventlog": past})
    asked[2].come(FileNotFoundError())
    asked[3].come(PermissionError("not yours"))
    handle.asked[5].come(FileNotFoundError())
    programs.outputs[7].come(OSError("no output"))
    journal.recorded.look()
    journal.recorded.look()
    GONE = ("stderr", programs.recorded.GONE)  # noqa: N806
    assert said == [
        {"key": "a", "id": "f7"},
        {"key": "a", "started": True},
        {"key": "d", "error": "not yours"},
        # a job that ran has output, unless its record was purged
        {"key": "a", "end": {"status": 0, "exception": None, "output": [GONE], "usage": None}},
        {"key": "b", "lost": True},
        {"key": "c", "lost": True},
    ]
    assert (done, journal.jobs, journal.early) == (["a"], {}, {})


def test_the_events_of_a_job_from_before_are_read_again_until_it_has_ended(
    programs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Flux told the last ones before it stored them, and before this program listened
    handle, said, now = Handle(), Said(), [100.0]
    monkeypatch.setattr(programs.followed.time, "monotonic", lambda: now[0])
    journal = programs.followed.Journal(handle, said)
    for key, job in (("a", 7), ("b", 8), ("c", 9)):
        journal.follow_earlier(key, job)
    _, *asked = handle.asked

    def log(*events: dict[str, Any]) -> str:
        return "".join(f"{json.dumps(each)}\n" for each in events)

    for key, lookup in zip("abc", asked, strict=True):
        files = {"files": {"call_function.py": {}}} if key == "a" else {}
        spec = json.dumps({"attributes": {"user": {"minicluster-sdk": key}, "system": files}})
        lookup.come({"jobspec": spec, "eventlog": log(event("submit"), event("start"))})
    looks: list[int] = []
    for _ in range(8):
        journal.look()
        looks.append(len(handle.asked) - 4)
        now[0] += 1
    # after 1, 3 and 7 seconds
    assert looks == [0, 3, 3, 6, 6, 6, 6, 9]
    first, second, third = handle.asked[4:7]
    first.come({"eventlog": log(event("submit"), event("start"), event("finish", status=0), event("clean"))})
    second.come(OSError("busy"))
    third.come(FileNotFoundError())
    # a list that stays behind keeps nobody waiting
    now[0] += 5
    handle.asked[13].come({"job": {}})
    programs.outputs[7].come(None)
    # what its function returned
    handle.asked[14].come({"guest.minicluster.result": "x"})
    journal.look()
    assert said[6:] == [
        {
            "key": "a",
            "end": {
                "status": 0,
                "exception": None,
                "output": [],
                "usage": None,
                "nodes": "",
                "times": [None] * 4,
                "returned": "x",
            },
        },
        {"key": "c", "lost": True},
    ]
    assert [*journal.jobs] == [8]


def test_jobs_that_flux_has_forgotten_have_ended_as_the_history_says(
    programs: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINICLUSTER_HOME", str(tmp_path))
    ends: dict[str, tuple[int | None, str | None]] = {
        "ok": (0, None),
        "fails": (3, None),
        "killed": (137, None),
        "late": (142, "timeout: it took long"),
        "dropped": (None, "cancel: by me"),
    }
    records = [
        # a text of a user's that looks like a key
        {"number": 90, "name": '"minicluster-sdk": "ok"', "exit_code": 9, "user": {}},
        *(
            {"number": number, "exit_code": code, "exception": exception, "user": {"minicluster-sdk": key}}
            | ({"usage": {"total": {}}} if key == "late" else {})
            for number, (key, (code, exception)) in enumerate(ends.items())
        ),
    ]
    history = programs.recorded.History(programs.recorded.folder())
    history.append([json.dumps(each) + "\n" for each in records[:3]])
    # the other file; then a line that a kill has cut
    history.newer.rename(history.older)
    cut = '{"number": 7, "user": {"minicluster-sdk": "cut"'
    history.append([*(json.dumps(each) + "\n" for each in records[3:]), cut])
    said = Said()
    recorded = programs.recorded.Recorded(said)
    for key in (*ends, "cut", "other"):
        recorded.want(key, partial(said, key=key, lost=True))
    recorded.look()
    found = {answer["key"]: finished("f1", answer["end"]) for answer in said if "end" in answer}
    assert {key: (job.exit_code, job.reason) for key, job in found.items()} == {
        "ok": (0, ""),
        "fails": (3, "failed with exit code 3"),
        "killed": (137, f"failed with exit code 137 ({MEMORY})"),
        "late": (142, "ran into its time limit: it took long"),
        "dropped": (1, "was cancelled: by me"),
    }
    # the records of older leads lack it
    assert {key for key, job in found.items() if job.usage} == {"late"}
    assert {key: job.stderr for key, job in found.items()} == {
        key: "" if key == "dropped" else programs.recorded.GONE for key in ends
    }
    assert [answer for answer in said if "id" in answer] == [
        {"key": key, "id": f"f{number}"} for number, key in enumerate(ends)
    ]
    assert said[-2:] == [{"key": "cut", "lost": True}, {"key": "other", "lost": True}]


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({}, {"num_nodes": None, "num_tasks": 1, "cores_per_task": 1, "gpus_per_task": None, "exclusive": False}),
        (
            {"nodes": 3},
            {"num_nodes": 3, "num_tasks": 3, "cores_per_task": 1, "gpus_per_task": None, "exclusive": True},
        ),
        (
            {"nodes": 3, "tasks": 6, "cores_per_task": 2, "gpus_per_task": 1},
            {"num_nodes": 3, "num_tasks": 6, "cores_per_task": 2, "gpus_per_task": 1, "exclusive": False},
        ),
        (
            {"tasks": 2, "cores_per_task": 0, "exclusive": True},
            {"num_nodes": None, "num_tasks": 2, "cores_per_task": 1, "gpus_per_task": None, "exclusive": True},
        ),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) and "num_tasks" not in value else "",
)
def test_a_jobspec_asks_for_what_the_request_says(
    programs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, job: dict[str, Any], expected: dict[str, Any]
) -> None:
    asked: list[tuple[list[str], dict[str, Any]]] = []

    class Spec(SimpleNamespace):
        @staticmethod
        def from_command(command: list[str], **shape: Any) -> "Spec":
            asked.append((command, shape))
            return Spec(attributes={})

        def setattr(self, name: str, value: Any) -> None:
            self.attributes[name] = value

    monkeypatch.setattr(programs.described, "JobspecV1", Spec)
    monkeypatch.setenv("OUTER", "1")
    given = {"command": ["true"], "environment": {"A": "b"}, "attributes": {"system.queue": "debug"}, **job}
    spec = programs.described.jobspec(given, "key")
    assert asked == [(["true"], expected)]
    assert spec.attributes == {"system.queue": "debug", "user.minicluster-sdk": "key"}
    assert (spec.environment["OUTER"], spec.environment["A"]) == ("1", "b")
    assert (spec.cwd, spec.duration) == (os.getcwd(), 0)  # noqa: PTH109 - a text
