"""Jobs that may run again: which ones do, their signals, and the one copy of each."""

import errno
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import fake_flux
import pytest
from fake_flux import Clock, FakeFlux, install, run_program

SECONDS, KILL = 20, 8
TOLD = "minicluster: the pod was told to stop"
OVER = f"{TOLD} and its grace period is over"


def jobspec(own: Any = None, **system: Any) -> dict[str, Any]:
    """Return a jobspec with attributes of ours."""
    user = {} if own is None else {"user": {"minicluster": own, "theirs": 1}}
    return {"version": 1, "attributes": {"system": {"cwd": "/", **system}, **user}}


@pytest.fixture
def flux() -> FakeFlux:
    return FakeFlux(dict.fromkeys(range(4), (4, 0)), set(range(4)), rank=1)


@pytest.fixture
def requeue(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    install(monkeypatch, flux)
    for name in ("requeue", "put_back"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("requeue")


@pytest.fixture
def put_back(requeue: ModuleType) -> ModuleType:
    assert requeue
    return importlib.import_module("put_back")


@pytest.fixture
def leave(flux: FakeFlux, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Clock]:
    """Runs leave.py."""

    def run(role: str = "worker", on_stop: str = "cancel", *lost: str, clock: Clock | None = None) -> Clock:
        clock = clock or Clock()
        words = (role, clock.now, clock.now, SECONDS, KILL, 7, tmp_path, on_stop, *(lost or ("kept",)), "", "")
        # it keeps the functions of the Flux that it was imported with
        monkeypatch.delitem(sys.modules, "requeue", raising=False)
        run_program(monkeypatch, flux, "leave.py", *words, clock=clock)
        return clock

    return run


def test_copies_are_looked_for_when_flux_has_taken_all_that_it_was_given(
    flux: FakeFlux, requeue: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a copy that an earlier run of the undrainer has asked for; each other look finds it with its validator
    flux.validates = [1, 0] * 4 + [1]

    def sleep(_: float) -> None:
        if not flux.validates:
            flux.run(7, "1", jobspec=jobspec({"continues": "f3"}))

    monkeypatch.setattr("time.sleep", sleep)
    assert requeue.continuations(flux, 0.0) == {"f3"}


# Which jobs --------------------------------------------------------------------------------------------------

INTERACTIVE = {"shell": {"options": {"pty": {"interactive": 1}}}}


@pytest.mark.parametrize(
    ("job", "cancel", "all_jobs"),
    [
        pytest.param(jobspec(), False, True, id="no attribute"),
        pytest.param(jobspec({"work": 1}), False, True, id="the cluster's work"),
        pytest.param(jobspec({"requeue": 1}), True, True, id="1"),
        pytest.param(jobspec({"requeue": True}), True, True, id="true"),
        pytest.param(jobspec({"requeue": 0}), False, False, id="0"),
        pytest.param(jobspec({"requeue": False}), False, False, id="false"),
        pytest.param(jobspec("work"), False, True, id="another type"),
        pytest.param(jobspec(**INTERACTIVE), False, False, id="interactive"),
        pytest.param(jobspec({"requeue": 1}, **INTERACTIVE), True, True, id="interactive and 1"),
        pytest.param(jobspec(shell={"options": {"pty": 1}}), False, True, id="not interactive"),
        pytest.param(None, False, False, id="gone"),
    ],
)
def test_the_requeue_attribute_of_a_job_overrides_the_value(
    requeue: ModuleType, job: Any, cancel: bool, all_jobs: bool
) -> None:
    assert [requeue.may_run_again(job, on_stop) for on_stop in ("cancel", "requeue")] == [cancel, all_jobs]


@pytest.mark.parametrize("wish", ["yes", 2, [], ""])
def test_an_invalid_requeue_attribute_is_an_error(requeue: ModuleType, wish: Any) -> None:
    with pytest.raises(ValueError, match=r"user\.minicluster\.requeue is .*: must be 0 or 1"):
        requeue.may_run_again(jobspec({"requeue": wish}), "requeue")


@pytest.mark.parametrize(
    ("wish", "found"),
    [
        (None, None),
        ("SIGUSR1", (10, float("inf"))),
        ("USR2@60s", (12, 60.0)),
        (10, (10, float("inf"))),
        ("10@1.5", (10, 1.5)),
    ],
)
def test_the_signal_attribute_names_a_signal_and_when_it_is_due(requeue: ModuleType, wish: Any, found: Any) -> None:
    assert requeue.warning(jobspec({"signal": wish})) == found


@pytest.mark.parametrize("wish", ["", "SIGNOTHING", "USR1@", "USR1@soon", 0, 1000, "@60", "'$(x)`\n"])
def test_an_invalid_signal_attribute_is_an_error(requeue: ModuleType, wish: Any) -> None:
    with pytest.raises(ValueError, match=r"user\.minicluster\.signal is (.|\n)*: must be like SIGUSR1 or SIGUSR1@60s"):
        requeue.warning(jobspec({"signal": wish}))


# The copy ----------------------------------------------------------------------------------------------------


def test_the_copy_of_a_job_differs_only_in_its_origin_and_dependencies(requeue: ModuleType) -> None:
    waited = [{"scheme": "afterok", "value": "f1"}, {"scheme": "singleton", "value": ""}]
    job = jobspec({"requeue": 1, "continues": "f1"}, duration=60, dependencies=waited)
    original = jobspec({"requeue": 1}, duration=30, environment={"A": "$b"})
    assert requeue.copy_of(job, original, 7, {}, True) == jobspec(
        {"requeue": 1, "continues": "f7"},
        duration=60,
        environment={"A": "$b"},
        dependencies=[{"scheme": "singleton", "value": ""}, {"scheme": "afternotok", "value": "f7"}],
    )
    assert job["attributes"]["system"]["dependencies"] == waited


def test_the_copy_of_a_job_chooses_its_nodes_anew(requeue: ModuleType) -> None:
    original = jobspec({"requeue": 1}, constraints={"properties": ["zone=a"]})
    copy = requeue.copy_of(jobspec({"requeue": 1}, constraints={"ranks": ["0-3"]}), original, 7, {}, True)
    assert copy["attributes"]["system"]["constraints"] == {"properties": ["zone=a"]}


def test_the_copy_of_a_slurm_job_has_its_id_and_its_files(requeue: ModuleType) -> None:
    files = {"shell": {"options": {"output": {"stdout": {"path": "{{id.dec}}.out"}}}}}
    task = {**jobspec({"requeue": 1}, **files), "tasks": [{"command": ["sh", "{{id.dec}}.out"]}]}
    task["attributes"]["user"]["slurm"] = {"index": 0}
    for number, restarts in ((1 << 60, 1), (1 << 61, 2)):
        task = requeue.copy_of(task, jobspec({"requeue": 1}), number, {}, True)
        assert task["attributes"]["user"]["slurm"] == {
            "index": 0, "array": 1 << 60, "id": str(1 << 60), "restarts": restarts,
        }  # fmt: skip
    assert task["attributes"]["system"]["shell"]["options"]["output"]["stdout"]["path"] == f"{1 << 60}.out"
    assert task["tasks"] == [{"command": ["sh", f"{1 << 60}.out"]}]


def test_a_job_has_one_copy_however_often_it_is_requested(flux: FakeFlux, put_back: ModuleType) -> None:
    for number in (1, 2):
        flux.run(number, "0-1", jobspec=jobspec({"requeue": 1}), urgency=20)
    # these wait for job 1 too, but are not copies of it
    for number, own in ((3, None), (4, {"continues": "f9"}), (5, {"requeue": 1})):
        flux.submit(number, state="depend", dependencies=["after-failure=f1"], jobspec=jobspec(own))
    found = [put_back.make_copies(flux, wanted, put_back.Copies()) for wanted in ([1], [1, 2], [2, 1])]
    both = {"f1": "f1000", "f2": "f1001"}
    assert [each["copies"] for each in found] == [{"f1": "f1000"}, both, both]
    assert [urgency for _, urgency in flux.submitted] == [20, 20]


def test_a_job_that_is_ending_or_gone_is_not_copied(flux: FakeFlux, put_back: ModuleType) -> None:
    flux.submit(1, state="cleanup", ranks="1", jobspec=jobspec({"requeue": 1}))
    flux.submit(2, jobspec=jobspec({"requeue": 1}))
    assert put_back.make_copies(flux, [1, 2, 3], put_back.Copies()) == {"copies": {}, "errors": {}}


def test_a_request_for_a_job_that_is_ending_returns_the_copy_that_exists(flux: FakeFlux, put_back: ModuleType) -> None:
    flux.submit(1, state="cleanup", ranks="1", jobspec=jobspec({"requeue": 1}))
    flux.submit(2, state="depend", dependencies=["after-failure=f1"], jobspec=jobspec({"continues": "f1"}))
    assert put_back.make_copies(flux, [1], put_back.Copies()) == {"copies": {"f1": "f2"}, "errors": {}}
    assert put_back.make_copies(flux, [3], put_back.Copies()) == {"copies": {}, "errors": {}}


def test_a_job_that_can_not_be_copied_does_not_stop_the_others(flux: FakeFlux, put_back: ModuleType) -> None:
    flux.run(1, "1", jobspec=None, urgency=16)
    flux.run(2, "1", jobspec=jobspec({"requeue": 1}), urgency=16)
    assert put_back.make_copies(flux, [1, 2], put_back.Copies()) == {
        "copies": {"f2": "f1000"},
        "errors": {"f1": "its jobspec is gone"},
    }


@pytest.mark.parametrize("error", [None, OSError(errno.EHOSTUNREACH, "No route")], ids=["copies", "error"])
def test_the_lead_answers_each_requeue_request(
    flux: FakeFlux, put_back: ModuleType, monkeypatch: pytest.MonkeyPatch, error: OSError | None
) -> None:
    class Request(list[Any]):
        payload = {"jobs": [1]}  # noqa: RUF012

    flux.run(1, "1", jobspec=jobspec({"requeue": 1}), urgency=16)
    put_back.serve(put_back.Copies())
    if error:
        monkeypatch.setattr(put_back, "jobs", lambda *_: (_ for _ in ()).throw(error))
    request = Request()
    flux.watches["minicluster.requeue"](flux, SimpleNamespace(), request, None)
    answer = {"copies": {"f1": "f1000"}, "errors": {}}
    assert request == [answer if error is None else {"copies": {}, "errors": {"f1": "[Errno 113] No route"}}]
    assert flux.services == ["minicluster"]


# A pod that leaves -------------------------------------------------------------------------------------------


def test_a_pod_that_leaves_copies_a_job_before_it_cancels_it(
    flux: FakeFlux, leave: Callable[..., Clock], capsys: pytest.CaptureFixture[str]
) -> None:
    flux.run(1, "1", jobspec=jobspec({"requeue": 1}), urgency=16)
    flux.run(2, "1-2", jobspec=jobspec(), urgency=16)
    flux.run(3, "2", jobspec=jobspec({"requeue": 1}), urgency=16)
    leave()
    again = "and runs again as f1000"
    assert flux.done == [
        ("drain", "1"),
        ("copies", {"f1": "f1000"}),
        ("cancel", 1, f"{OVER}: it runs again as f1000"),
        ("cancel", 2, OVER),
    ]
    assert capsys.readouterr().out.splitlines() == [
        f"minicluster: job f1 is cancelled {again}: the pod's grace period is over",
        "minicluster: job f2 is cancelled: the pod's grace period is over",
    ]


@pytest.mark.parametrize(("lost", "copies"), [([], 2), (["lost"], 0)], ids=["kept", "lost"])
def test_a_lead_that_leaves_puts_all_jobs_back_when_the_queue_is_kept(
    flux: FakeFlux, leave: Callable[..., Clock], lost: list[str], copies: int
) -> None:
    for number in (1, 2):
        flux.run(number, str(number), jobspec=jobspec(), urgency=16)
    leave("lead", "requeue", *lost)
    assert len(flux.submitted) == copies
    assert [entry[1] for entry in flux.done if entry[0] == "cancel"] == [1, 2]


@pytest.mark.parametrize(("wish", "at"), [("USR1", 0), ("USR1@600", 0), ("USR1@5s", SECONDS - 5)])
def test_a_job_is_copied_before_it_gets_its_signal_once(
    flux: FakeFlux, leave: Callable[..., Clock], monkeypatch: pytest.MonkeyPatch, wish: str, at: float
) -> None:
    flux.run(1, "1", jobspec=jobspec({"requeue": 1, "signal": wish}), urgency=16)
    sent: list[Any] = []
    clock = Clock()

    def kill(_: FakeFlux, number: int, signum: int) -> None:
        sent.append((clock.now, number, int(signum), len(flux.submitted)))

    monkeypatch.setattr(fake_flux, "_kill", kill)
    clock.happens[SECONDS - 1] = lambda: flux.end(1)
    leave(clock=clock)
    assert sent == [(at, 1, 10, 1)]


def test_an_invalid_requeue_attribute_is_logged_once_and_the_job_is_cancelled(
    flux: FakeFlux, leave: Callable[..., Clock], capsys: pytest.CaptureFixture[str]
) -> None:
    flux.run(1, "1", jobspec=jobspec({"requeue": "no"}), urgency=16)
    leave(on_stop="requeue")
    assert capsys.readouterr().out.splitlines() == [
        "minicluster: job f1: user.minicluster.requeue is 'no': must be 0 or 1",
        "minicluster: job f1 is cancelled: the pod's grace period is over",
    ]
    assert flux.submitted == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EHOSTUNREACH, "No route"), "no job is put back into the queue: [Errno 113] No route"),
        (OSError(errno.ENOSYS, "No service"), "no job is put back into the queue: [Errno 38] No service"),
    ],
)
def test_a_pod_that_leaves_cancels_its_job_when_the_lead_does_not_answer(
    flux: FakeFlux, leave: Callable[..., Clock], capsys: pytest.CaptureFixture[str], error: OSError, said: str
) -> None:
    flux.run(1, "1", jobspec=jobspec({"requeue": 1}), urgency=16)
    flux.errors = {"minicluster.requeue": error}
    clock = leave()
    assert capsys.readouterr().out.splitlines()[0] == f"minicluster: {said}"
    assert flux.done[-1] == ("cancel", 1, OVER)
    assert clock.now < SECONDS + KILL


def test_a_pod_that_leaves_waits_for_the_requeue_service_to_start(flux: FakeFlux, leave: Callable[..., Clock]) -> None:
    flux.run(1, "1", jobspec=jobspec({"requeue": 1}), urgency=16)
    flux.errors = {"minicluster.requeue": OSError(errno.ENOSYS, "No service")}
    clock = Clock()
    clock.happens[SECONDS + 2] = flux.errors.clear
    leave(clock=clock)
    assert len(flux.submitted) == 1


def test_a_job_whose_copy_flux_refuses_is_cancelled_and_the_reason_logged(
    flux: FakeFlux, leave: Callable[..., Clock], capsys: pytest.CaptureFixture[str]
) -> None:
    flux.run(1, "1", jobspec=jobspec({"requeue": 1}), urgency=16)
    flux.refuses = "job submission is disabled"
    leave()
    line = "minicluster: job f1 is not put back into the queue: [Errno 22] job submission is disabled"
    assert capsys.readouterr().out.splitlines()[0] == line
    assert flux.done[-1] == ("cancel", 1, OVER)
