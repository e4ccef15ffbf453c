"""On the lead: how a kept queue is repaired after a kill."""

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest
from fake_flux import Clock, FakeFlux, run_program

TOLD = "minicluster: the pod was told to stop"
OFFLINE = "Scheduler is offline"
FLUXION = ("sched-fluxion-resource", "sched-fluxion-feasibility", "sched-fluxion-qmanager")


def restart(*modules: str) -> list[list[str]]:
    """Return the commands that restart a scheduler, by its modules in the order in which they are loaded."""
    both = (("remove", modules[::-1]), ("load", modules))
    return [["flux", "module", verb, name] for verb, names in both for name in names]


SIMPLE = restart("sched-simple")


class Lead:
    """A lead that came back: its Flux, its clock and the commands that were run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch, self.clock = monkeypatch, Clock()
        self.flux = FakeFlux(dict.fromkeys(range(6), (1, 0)), set(range(6)))
        self.commands: list[list[str]] = []
        #: a function that runs at each command, and the errors of commands, by their last word
        self.then: Any = lambda: None
        self.fails: dict[str, str] = {}
        monkeypatch.setattr(subprocess, "run", self._command)

    def _command(self, words: list[str], **_: Any) -> SimpleNamespace:
        self.commands.append(words)
        self.then()
        return SimpleNamespace(returncode=int(words[-1] in self.fails), stderr=self.fails.get(words[-1], ""))

    def recover(self) -> None:
        program = run_program(self.monkeypatch, self.flux, "recovery.py", clock=self.clock)
        program["recover"](self.flux, program["Copies"]())


@pytest.fixture
def lead(monkeypatch: pytest.MonkeyPatch) -> Lead:
    return Lead(monkeypatch)


def test_recovery_submits_a_job_again_whose_nodes_are_in_the_kvs_alone(lead: Lead) -> None:
    for number in (1, 2, 3):
        lead.flux.submit(number, nodes=7, urgency=9)
        lead.flux.jobs[-1]["jobspec"]["attributes"] = {"system": {"cwd": "/"}}
    lead.flux.run(4, "0")
    lead.flux.kvs = {"job.2.R": {}, "job.4.R": {}}
    lead.clock.happens[5] = lambda: setattr(lead.flux, "stop_reason", OFFLINE)
    lead.clock.happens[6] = lambda: setattr(lead.flux, "stop_reason", "")
    lead.recover()
    [(what, number, note)] = lead.flux.done
    assert (what, number) == ("cancel", 2)
    assert note.endswith("before it ran: it runs again as f1000")
    [(copy, urgency)] = lead.flux.submitted
    assert (copy["attributes"]["user"]["minicluster"], urgency) == ({"continues": "f2"}, 9)
    assert lead.commands == SIMPLE
    assert lead.clock.now < 60


def test_recovery_restarts_fluxion_when_it_holds_cores_for_no_job(
    lead: Lead, capsys: pytest.CaptureFixture[str]
) -> None:
    lead.flux.schedulers = FLUXION
    lead.flux.run(1, "0")
    lead.flux.held = {0: (1, 0), 3: (1, 0)}
    # after a restart the scheduler asks Flux again
    lead.then = lambda: lead.flux.held.pop(3, None)
    lead.recover()
    assert (lead.flux.done, lead.commands) == ([], restart(*FLUXION))
    why = "the scheduler holds 1 cores for no job after the last lead was killed: the scheduler starts again"
    assert capsys.readouterr().out == f"minicluster: {why}\n"


def test_recovery_gives_up_on_held_cores_that_no_restart_frees(lead: Lead) -> None:
    lead.flux.schedulers = FLUXION
    lead.flux.held = {3: (1, 0)}
    # as long as a job waits, the scheduler is watched
    lead.flux.submit(7)
    lead.then = lambda: lead.clock.now < 180 or pytest.fail("it never gives up")
    lead.recover()
    assert lead.commands == restart(*FLUXION) * 8


def test_recovery_does_not_take_cores_that_are_being_freed_for_leaked(lead: Lead) -> None:
    """Where jobs are short, Fluxion has most of its cores yet to free, and the same ones at each look."""
    lead.flux.schedulers = FLUXION
    lead.flux.held = {3: (1, 0)}

    def end_a_job() -> None:
        lead.flux.inactive += 1

    lead.clock.happens.update(dict.fromkeys(range(4, 30, 4), end_a_job))
    lead.clock.happens[30] = lambda: setattr(lead.flux, "held", {})
    lead.recover()
    assert (lead.flux.done, lead.commands) == ([], [])
    assert lead.clock.now >= 30


@pytest.mark.parametrize("reason", [TOLD, "maintenance"])
def test_recovery_leaves_a_stopped_queue_alone(lead: Lead, reason: str) -> None:
    lead.flux.submit(1)
    lead.flux.kvs = {"job.1.R": {}}
    lead.flux.stop_reason = reason
    lead.recover()
    assert (lead.flux.done, lead.commands) == ([], [])
    assert lead.clock.now <= 20


def test_recovery_accepts_named_queues_which_have_no_single_status(lead: Lead) -> None:
    lead.flux.errors = {"job-manager.queue-status": OSError(22, "Invalid argument")}
    lead.recover()
    assert (lead.flux.done, lead.commands) == ([], [])


@pytest.mark.parametrize("at", [0, 8, 14])
def test_recovery_restarts_the_scheduler_for_a_job_that_waits_beside_idle_nodes(
    lead: Lead, at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job may begin to wait at any time of the watch, and a second restart may be needed."""
    lead.clock.happens[at] = lambda: lead.flux.submit(7, nodes=3)
    lead.then = lambda: len(lead.commands) == 4 and lead.flux.end(7)
    lead.recover()
    assert lead.commands == SIMPLE * 2
    assert at + 10 <= lead.clock.now - 20 < at + 13
    why = "job f7 waits beside idle nodes after the last lead was killed: the scheduler starts again"
    assert capsys.readouterr().out == f"minicluster: {why}\n" * 2


def test_recovery_gives_up_on_a_job_that_no_restart_helps(lead: Lead) -> None:
    lead.flux.submit(7)
    lead.recover()
    assert lead.commands == SIMPLE * 4
    assert lead.clock.now < 180


@pytest.mark.parametrize(
    "waits",
    [
        {"nodes": 7},
        {"priority": 0},
        {"jobspec": {"resources": [], "attributes": {"system": {"constraints": {"properties": ["big"]}}}}},
    ],
    ids=["too large", "held", "constraints"],
)
def test_recovery_leaves_a_job_with_a_reason_to_wait_alone(lead: Lead, waits: dict[str, Any]) -> None:
    lead.flux.submit(7, **waits)
    lead.recover()
    assert lead.commands == []
    assert lead.clock.now <= 20


@pytest.mark.parametrize("how", ["used", "drained", "offline"])
def test_recovery_does_not_count_used_drained_or_offline_nodes_as_idle(lead: Lead, how: str) -> None:
    lead.flux.submit(7, nodes=4)
    if how == "used":
        lead.flux.run(1, "0-2")
    elif how == "drained":
        lead.flux.drained = dict.fromkeys((0, 1, 2), TOLD)
    else:
        lead.flux.online = {0, 1, 2}
    lead.recover()
    assert lead.commands == []


def test_a_failed_restart_of_the_scheduler_is_an_error(lead: Lead) -> None:
    lead.flux.schedulers = FLUXION
    lead.flux.stop_reason = OFFLINE
    lead.fails = {FLUXION[0]: "module is broken\n"}
    with pytest.raises(OSError, match=f"flux module load {FLUXION[0]}: module is broken$"):
        lead.recover()
    # the other modules are loaded all the same
    assert lead.commands == restart(*FLUXION)


def test_a_module_that_hangs_does_not_stop_the_recovery_for_ever(lead: Lead, monkeypatch: pytest.MonkeyPatch) -> None:
    lead.flux.stop_reason = OFFLINE

    def hang(words: list[str], timeout: float, **_: Any) -> None:
        lead.commands.append(words)
        raise subprocess.TimeoutExpired(words, timeout)

    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(OSError, match=r"flux module load sched-simple: it has not ended after 60 s$"):
        lead.recover()
    assert lead.commands == SIMPLE
