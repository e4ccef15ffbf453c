"""mine.py: the job of a client is found by its key, whatever the clocks of the leads."""

import errno
import os
import runpy
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from fake_flux import FakeFlux, install
from minicluster.lead.program import SENT

OLD = 9e8


def job(number: int, submitted: float) -> Any:
    return SimpleNamespace(id=number, t_submit=submitted)


@pytest.mark.parametrize(
    ("submitted", "found"),
    [
        ([OLD, OLD + 10], 1),
        # one that came long after it, when the client had been gone
        ([OLD, OLD + 100], None),
        # a clock that went back with the new lead
        ([OLD, OLD - 3600], 1),
        ([], None),
    ],
)
def test_a_job_is_found_by_its_key_and_its_time_beside_the_newest(
    monkeypatch: pytest.MonkeyPatch, submitted: list[float], found: int | None
) -> None:
    install(monkeypatch, FakeFlux({}, set()))
    monkeypatch.syspath_prepend(SENT)
    find = runpy.run_path(str(SENT / "mine.py"), run_name="mine")["find"]
    jobs = [job(number, when) for number, when in enumerate(submitted, 1)]
    find.__globals__["JobList"] = lambda *_, **__: SimpleNamespace(jobs=lambda: jobs)
    find.__globals__["job_kvs_lookup"] = lambda _, number, **__: {
        "jobspec": {"attributes": {"user": {"minicluster-client": f"key-{number}"}}}
    }
    one = next(find(None, "key-1", 60.0, ["pending"]), None)
    assert (one.id if one else None) == found


@pytest.mark.parametrize(
    ("starts", "age", "lost"),
    [
        # a log of several starts is a text, of one it is parsed
        ('{"timestamp": 900.0, "name": "start"}\n{"timestamp": 999.0, "name": "start"}\n', 50, False),
        ({"timestamp": 999.0, "name": "start"}, 50, True),
        ({"timestamp": 900.0, "name": "start"}, 50, False),
        (None, 50, False),
    ],
    ids=["came back", "new", "the same", "no log"],
)
@pytest.mark.parametrize("action", ["find", "taken"])
def test_a_job_that_is_not_there_is_lost_if_the_queue_is_younger_than_its_command(
    monkeypatch: pytest.MonkeyPatch, starts: Any, age: float, lost: bool, action: str
) -> None:
    flux = FakeFlux({}, set())
    if starts:
        flux.kvs["admin.eventlog"] = starts
    install(monkeypatch, flux)
    monkeypatch.syspath_prepend(SENT)
    monkeypatch.setattr("time.time", lambda: 1000.0)
    mine = runpy.run_path(str(SENT / "mine.py"), run_name="mine")
    monkeypatch.setitem(mine["main"].__globals__, "end_command", lambda _: None)
    monkeypatch.setitem(mine["main"].__globals__, "find", lambda *_: iter(()))
    assert mine["main"]("key-1", str(age), action) == ({"lost": True} if lost else {})


def test_a_shell_is_stopped_before_the_command_that_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeFlux({}, set()))
    monkeypatch.syspath_prepend(SENT)
    order = runpy.run_path(str(SENT / "mine.py"), run_name="mine")["outermost_first"]
    parents = {5: 1, 3: 5, 9: 3, 2: 9, 7: 1}
    found = list(order({2, 3, 5, 9, 7}, parents))
    assert sorted(found) == [2, 3, 5, 7, 9]
    assert [found.index(pid) for pid in (5, 3, 9, 2)] == sorted(found.index(pid) for pid in (5, 3, 9, 2))


def test_a_command_is_stopped_as_a_whole_and_then_killed_from_the_inside_on(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeFlux({}, set()))
    monkeypatch.syspath_prepend(SENT)
    end_command = runpy.run_path(str(SENT / "mine.py"), run_name="mine")["end_command"]
    sent: list[tuple[int, int]] = []
    words = ["sh", "-c", 'sleep 60 & echo "$!"; wait', "user.minicluster-client=key-1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout
        inner = int(shell.stdout.readline())
        kill = os.kill
        monkeypatch.setattr("os.kill", lambda *to: sent.append(to))
        end_command("key-1")
        for pid in (inner, shell.pid):
            kill(pid, signal.SIGKILL)
    stop, end = signal.SIGSTOP, signal.SIGKILL
    assert sent == [(shell.pid, stop), (inner, stop), (inner, end), (shell.pid, end)]


def test_a_job_that_was_killed_with_its_lead_has_read_no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    # a link of the KVS to what is gone
    gone = OSError(errno.EOPNOTSUPP, "guest.input")
    install(monkeypatch, FakeFlux({}, set()))
    monkeypatch.syspath_prepend(SENT)
    # others may have brought it in
    monkeypatch.delitem(sys.modules, "output_events", raising=False)
    input_of = runpy.run_path(str(SENT / "mine.py"), run_name="mine")["input_of"]
    assert input_of(FakeFlux({}, set(), errors={"job-info.lookup": gone}), 7) == (0, False)
