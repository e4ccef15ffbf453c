"""`minicluster burst follow` with stand-ins of helm and kubectl that keep a small world in a file."""

import base64
import fcntl
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from minicluster.burst import address, demand, follower, plan
from minicluster.burst.demand import Offer, RootJob
from minicluster.burst.follower import BurstLimits
from minicluster.burst.install import How
from minicluster.burst.root import BurstRequest
from minicluster.kube import tool as kubectl
from minicluster.kube.kubectl import Kubernetes
from minicluster.lead.ask import BrokenError
from minicluster.release import revisions
from minicluster.render.load import load
from support import CERTIFICATE, front_door
from test_burst_command import ANSWERS, VALUES, stand_in

BURSTS = [{"name": "b0", "size": 4}, {"name": "b1", "size": 2}]
ROOT = {**VALUES, "size": 2, "maxSize": 2, "flux": {"bursting": {"clusters": BURSTS, "expose": {"type": "NodePort"}}}}
FIRST = {"b0": 2, "b1": 6}
#: The world: sizes of Jobs, drains by rank, needs of the bursts, ranks with jobs, commands that fail
WORLD: dict[str, Any] = {
    "sizes": {"flux": 2}, "ends": {}, "drains": {}, "need": {}, "busy": [], "fails": {}, "lead": "flux-0-x",
    "joins": True, "starts": [], "done": [], "suspended": False, "secrets": [], "releases": {}, "root": "flux",
}  # fmt: skip


@dataclass
class World:
    """The file, and the command that follows it."""

    folder: Path
    result: Result | None = None

    def __getitem__(self, key: str) -> Any:
        return json.loads((self.folder / "world").read_text())[key]

    def set(self, **changes: Any) -> None:
        """Change it, as another program would."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            world = {**json.loads((self.folder / "world").read_text()), **changes}
            (self.folder / "newer").write_text(json.dumps(world))
            (self.folder / "newer").rename(self.folder / "world")

    def offers(self) -> dict[str, list[int]]:
        """Return the newest offers: size and most."""
        lines = (self.folder / "offers").read_text().splitlines()
        last: dict[str, list[int]] = json.loads(lines[-1]) if lines else {}
        return last

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the bursts."""
        return {name: size for name, size in self["sizes"].items() if name != "flux"}

    def wait(self, found: Callable[[], bool]) -> None:
        """Wait until something is so."""
        end = time.monotonic() + 60
        while not found():
            assert time.monotonic() < end, (self.folder / "world").read_text()
            time.sleep(0.02)

    def follow(self, play: Callable[[], None], *words: str, ends: bool = False, is_known: bool = True) -> None:
        """Run the command while ``play`` plays in another thread; then end it by a signal, unless it ends itself."""
        failed: list[BaseException] = []
        has_ended = threading.Event()

        def run() -> None:
            try:
                if is_known and not ends:
                    self.wait(lambda: bool(self.offers().get("b0")))
                play()
            except BaseException as error:
                failed.append(error)
            if not (ends and has_ended.wait(60)):
                os.kill(os.getpid(), signal.SIGTERM)

        (self.folder / "offers").write_text("")
        thread = threading.Thread(target=run)
        thread.start()
        options = ["--backlog=0s", "--idle=0s", "--root-namespace=here", "--namespace=there"]
        self.result = CliRunner().invoke(front_door, ["burst", "follow", "flux", *(words or ["b0"]), *options])
        has_ended.set()
        thread.join()
        assert not failed, "\n".join([str(failed), *self.lines()])

    def lines(self) -> list[str]:
        """Return the lines that the command printed."""
        assert self.result
        return [line.removeprefix("minicluster: ") for line in self.result.stderr.splitlines()]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    stand_in(tmp_path, monkeypatch, "burst_world")
    (tmp_path / "world").write_text(json.dumps(WORLD))
    (tmp_path / "answers").write_text(json.dumps({"helm get values": ROOT, **ANSWERS}))
    monkeypatch.setattr(address, "probe", lambda *_: address.Handshake.LEAD)
    monkeypatch.setattr(follower, "REST_SECONDS", 0.1)
    monkeypatch.setattr(follower, "JOB_SECONDS", 0.2)
    monkeypatch.setattr(demand, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(demand, "JOB_SECONDS", 0.2)
    # a signal that comes too late is no harm
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    threads = set(threading.enumerate())
    yield World(tmp_path)
    signal.signal(signal.SIGTERM, before)
    assert set(threading.enumerate()) <= threads


BEGINS = "b0 follows the queue in namespace there: 0 to 4 hosts"
ENDS = ["ending: what has begun is finished first", "ended: the bursts stay as they are"]
#: Calls that install and remove
SECRET = "kubectl apply --server-side --force-conflicts"
REMOVED = ["helm uninstall b0", "kubectl delete secret b0-root-curve --ignore-not-found"]
GOING = "minicluster: b0 is scaling down"


def test_burst_follow_installs_resizes_and_removes_a_burst_as_the_queue_changes(world: World) -> None:
    def play() -> None:
        for need in (1, 3, 2, 0):
            world.set(need={"b0": need})
            world.wait(lambda: world.sizes() == ({"b0": need} if need else {}))  # noqa: B023 - called at once
            world.wait(lambda: world.offers().get("b0") == [need, 4])  # noqa: B023
        world.wait(lambda: world["done"][-1] == REMOVED[-1])

    world.follow(play)
    assert world.result
    assert world.result.exit_code == 0
    joined = [line for line in world.lines() if "has joined" in line]
    assert [line for line in world.lines() if line not in joined] == [
        BEGINS,
        "b0: 0 -> 1 hosts: 2 jobs wait",
        "b0: 1 -> 3 hosts: 2 jobs wait",
        "b0: 3 -> 2 hosts: no job needed more for 0 s",
        "b0: 2 -> 0 hosts: no job needed more for 0 s",
        *ENDS,
    ]
    assert joined == ["b0 has joined: ranks 2", "b0 has joined: ranks 2-4"]
    assert world["done"] == [
        *(SECRET, "helm b0 1"),
        *(SECRET, "helm b0 3"),
        *(f"kubectl flux resource drain --update 4-5 {GOING}", "helm b0 2"),
        *(f"kubectl flux resource drain --update 2-5 {GOING}", *REMOVED),
    ]
    assert CERTIFICATE not in world.result.output


def test_a_burst_with_work_stays_when_burst_follow_ends(world: World) -> None:
    world.set(need={"b0": 2})
    world.follow(lambda: world.wait(lambda: world.sizes() == {"b0": 2}))
    world.follow(lambda: world.wait(lambda: world.offers().get("b0") == [2, 4]))
    assert world.lines() == [BEGINS, *ENDS]
    assert world.sizes() == {"b0": 2}


def test_burst_follow_keeps_each_burst_within_its_limits(world: World) -> None:
    world.set(need={"b0": 4, "b1": 2})
    both = ["b0:2-3", "b1:0-1@cloud/other"]
    world.follow(lambda: world.wait(lambda: world.sizes() == {"b0": 3, "b1": 1}), *both)
    assert world.lines()[1] == "b1 follows the queue in namespace other of context cloud: 0 to 1 hosts"
    world.set(need={})
    world.follow(lambda: world.wait(lambda: world.sizes() == {"b0": 2}), *both)
    world.set(sizes={"flux": 2}, drains={})
    world.follow(lambda: world.wait(lambda: world.sizes() == {"b0": 2}), "b0:2-3")
    assert world.lines()[1] == "b0: 0 -> 2 hosts: its least size"


FAILED = {"type": "Failed", "status": "True"}
GROUPS: list[dict[str, Any]] = [
    {"name": "gpu", "cores": 1},
    {"name": "spot", "size": 0, "maxSize": 2, "cores": 1, "autoscaling": {"priority": 1}},
]


def test_burst_follow_offers_the_room_on_the_groups_of_the_root_first(world: World) -> None:
    root = {**ROOT, "groups": GROUPS, "autoscaling": {"enabled": True}}
    (world.folder / "answers").write_text(json.dumps({"helm get values": root, **ANSWERS}))
    sizes = {"flux": 2, "flux-gpu": 1, "flux-spot": 0}
    world.set(sizes=sizes, need={"b0": 1})

    def play() -> None:
        # those that grow first, then the bursts
        world.wait(lambda: [*world.offers().items()] == [
            ("spot", [0, 2]), ("", [2, 2]), ("gpu", [1, 1]), ("b0", [1, 4]),
        ])  # fmt: skip
        world.wait(lambda: world["done"][-1:] == ["helm b0 1"])
        # a group whose Job has failed has no room
        world.set(ends={"flux-gpu": [FAILED]})
        world.wait(lambda: world.offers()["gpu"] == [0, 0])
        world.set(need={})
        world.wait(lambda: world["done"][-1] == REMOVED[-1])

    world.follow(play)
    assert "b0 has joined: ranks 5" in world.lines()
    assert world["done"] == [
        *(SECRET, "helm b0 1"),
        *(f"kubectl flux resource drain --update 5-8 {GOING}", *REMOVED),
    ]


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({}, Offer(1, 4)),
        ({"spec": {"completions": 2, "parallelism": 2}}, Offer(1, 4, 2, 3)),
        ({"spec": {"completions": 4, "parallelism": 4}}, Offer(1, 4, 4, 4)),
        ({"spec": {"completions": 5, "parallelism": 0}}, Offer(1, 4, 0, 3)),
        ({"spec": {"completions": 2, "parallelism": 2, "suspend": True}}, Offer(1, 4, 0, 3)),
        ({"spec": {"completions": 2, "parallelism": 2}, "status": {"conditions": [FAILED]}}, Offer(1, 4)),
    ], ids=str,
)  # fmt: skip
@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"labels": {"kueue.x-k8s.io/queue-name": "q"}},
        {"annotations": {"minicluster/suspended": "the value suspend"}},
    ],
    ids=["", "Kueue", "suspend"],
)
def test_the_room_on_a_group_is_what_runs_or_starts_and_what_the_root_may_add(
    job: dict[str, Any], expected: Offer, metadata: dict[str, Any]
) -> None:
    found = {"metadata": metadata, **job} if job else {}
    assert RootJob("flux-gpu", range(1, 5), 3).offer(found) == expected


def test_a_host_that_is_about_to_leave_stays_when_a_job_starts_on_it(world: World) -> None:
    world.set(sizes={"flux": 2, "b0": 3}, starts=[4])

    def play() -> None:
        world.wait(lambda: any("undrain" in line for line in world["done"]))
        time.sleep(0.5)
        assert world.sizes() == {"b0": 3}
        world.set(busy=[3])
        world.wait(lambda: world.sizes() == {"b0": 2})
        world.set(busy=[])
        world.wait(lambda: world["done"][-1] == REMOVED[-1])

    world.follow(play)
    lines = [line for line in world.lines() if "joined" not in line]
    assert lines == [
        BEGINS,
        "b0: 3 hosts stay: a job started on one that was about to go",
        "b0: 3 -> 2 hosts: no job needed more for 0 s",
        "b0: 2 -> 0 hosts: no job needed more for 0 s",
        *ENDS,
    ]
    assert world["done"] == [
        f"kubectl flux resource drain --update 2-5 {GOING}",
        "kubectl flux resource undrain 2-5",
        f"kubectl flux resource drain --update 4-5 {GOING}",
        "helm b0 2",
        f"kubectl flux resource drain --update 2-5 {GOING}",
        *REMOVED,
    ]


def test_burst_follow_undoes_the_drains_of_an_interrupted_shrink(world: World) -> None:
    drains = {"2": "the pod was told to stop", "3": GOING[13:], "4": GOING[13:], "6": GOING[13:]}
    world.set(sizes={"flux": 2, "b0": 2}, need={"b0": 2}, drains=drains)
    world.follow(lambda: world.wait(lambda: world["drains"] != drains))
    # rank 4 is of a host that went
    assert world["done"] == ["kubectl flux resource undrain 3"]


def test_the_next_burst_gets_the_work_when_a_burst_can_not_be_installed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "REST_SECONDS", 30.0)
    world.set(need={"b0": 2}, fails={"cloud.* helm upgrade": "Error: exceeded quota\nof here"})

    def play() -> None:
        world.wait(lambda: "helm b0" in world["done"])
        world.wait(lambda: world.offers() == {"": [2, 2], "b0": [0, 0], "b1": [0, 2]})
        world.set(need={"b1": 1})
        world.wait(lambda: world.sizes() == {"b1": 1})

    world.follow(play, "b0@cloud/there", "b1")
    assert "b0: helm upgrade: exceeded quota of here: the next attempt is in 30 s" in world.lines()
    assert "helm b0 2" not in world["done"]


def test_a_failed_burst_install_is_retried_after_growing_pauses(world: World) -> None:
    world.set(need={"b0": 2}, fails={"helm upgrade": "Error: no"})

    def play() -> None:
        world.wait(lambda: len([line for line in world["done"] if line == "helm b0"]) == 2)
        world.set(fails={})
        world.wait(lambda: world.sizes() == {"b0": 2})

    world.follow(play)
    assert [line for line in world.lines() if "no" in line] == [
        f"b0: helm upgrade: no: the next attempt is in {seconds} s" for seconds in ("0.1", "0.2")
    ]


def test_a_burst_whose_hosts_do_not_join_offers_none_until_they_do(world: World) -> None:
    world.set(need={"b0": 2}, joins=False)

    def play() -> None:
        world.wait(lambda: world.sizes() == {"b0": 2})
        world.wait(lambda: world.offers().get("b0") == [0, 0])
        world.set(joins=True)
        world.wait(lambda: world.offers().get("b0") == [2, 4])

    world.follow(play, "b0", "--timeout=0.1s")
    assert [line for line in world.lines() if "joined" in line] == [
        "b0: 2 of 2 hosts have not joined within 0.1 s, such as index 0, and don't count until they have: pod b0-0-x "
        "says: the last word",
        "b0 has joined: ranks 2-3",
    ]


def test_a_burst_grows_back_only_after_its_leaving_host_is_gone(world: World) -> None:
    """Without the wait, the old pod of the host would take jobs."""
    world.set(sizes={"flux": 2, "b0": 1}, need={"b0": 1})

    def play() -> None:
        world.wait(lambda: world.offers().get("b0") == [1, 4])
        world.set(sizes={"flux": 2})  # somebody removed it, and its pod has not ended
        world.wait(lambda: world["done"] != [])

    world.follow(play)
    assert world.sizes() == {"b0": 1}


def test_a_burst_whose_job_has_ended_is_removed_before_it_is_installed_again(world: World) -> None:
    ended = [{"type": "Complete", "status": "True"}]
    world.set(sizes={"flux": 2, "b0": 3}, ends={"b0": ended}, need={"b0": 1})
    world.follow(lambda: world.wait(lambda: world["done"][-1:] == ["helm b0 1"]))
    assert world["done"] == [*REMOVED, SECRET, "helm b0 1"]
    assert world.lines()[1:3] == [
        "b0: its Job has ended: Complete: removing it",
        "b0: its Job had ended: the next attempt is in 0.1 s",
    ]


def test_burst_follow_changes_nothing_while_the_lead_does_not_answer(world: World) -> None:
    world.set(lead="", need={"b0": 2})

    def play() -> None:
        looks = world.folder / "looks"
        world.wait(lambda: looks.exists() and looks.read_text().count("flux") == 2)
        time.sleep(0.2)
        assert world["done"] == []
        world.set(lead="flux-0-y")
        world.wait(lambda: world.sizes() == {"b0": 2})
        world.set(lead="flux-0-z", need={})
        world.wait(lambda: world.sizes() == {})
        world.wait(lambda: world["done"][-1] == REMOVED[-1])

    world.follow(play, is_known=False)
    unknown = [line for line in world.lines() if "not known" in line]
    assert unknown == [
        "what the queue needs is not known: flux is Starting: the lead has no pod: `kubectl describe job flux "
        "-n there` says why",
        "what the queue needs is not known: kubectl exec flux-0-y: the pod is gone",
    ]


def test_burst_follow_changes_nothing_while_the_root_is_suspended(world: World) -> None:
    """A root that is scaled to zero has no pods, so the needs of its queue are unknown and the burst stays."""
    world.set(sizes={"flux": 2, "b0": 2}, lead="", suspended=True)

    def play() -> None:
        looks = world.folder / "looks"
        world.wait(lambda: looks.exists() and looks.read_text().count("flux") == 2)
        assert world["done"] == []
        world.set(lead="flux-0-y", suspended=False)
        world.wait(lambda: world["done"][-1:] == [REMOVED[-1]])

    world.follow(play, is_known=False)
    assert [line for line in world.lines() if "not known" in line] == [
        "what the queue needs is not known: flux is Suspended: the Job is suspended: `kubectl patch job flux "
        """--type=merge -p '{"spec":{"suspend":false}}' -n there` resumes it"""
    ]


def test_a_new_offer_of_one_burst_keeps_the_answers_about_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    root = load({"metadata": {"name": "flux", "namespace": "here"}, "spec": ROOT})
    found = demand.Demand(root, Kubernetes(), {name: Offer(first, 2) for name, first in FIRST.items()})
    group = {"need": 1, "held": 0, "age": 0.0, "online": "0"}
    answers = [{"number": number, "waiting": 1, "groups": [group] * 3} for number in (0, 1)]

    def talk() -> Iterator[Any]:
        yield answers[0]
        known = demand.BurstNeed(1, 0, math.inf, frozenset({0}), 1)
        assert (found.answer("b0"), found.answer("b1"), found.is_known) == (known, known, True)
        found.offer("b1", Offer(6, 2, 1, 2))
        assert (found.answer("b0"), found.answer("b1")) == (known, None)
        yield answers[1]
        assert (found.answer("b0"), found.answer("b1")) == (known, known)
        found.stop()

    monkeypatch.setattr(found, "_talk", talk)
    found.thread.run()
    assert (found.answer("b0"), found.is_known, found.error) == (None, False, None)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sizes": {"b0": 2}}, "flux has ended: Gone: the Job flux was deleted, or cleaned up after its end"),
        (
            {"ends": {"flux": [{"type": "Failed", "status": "True", "reason": "Deadline", "message": "late"}]}},
            "flux has ended: Failed: Deadline: late",
        ),
    ],
)
def test_burst_follow_ends_with_the_root(world: World, change: dict[str, Any], why: str) -> None:
    world.set(sizes={"flux": 2, "b0": 2}, need={"b0": 2}, secrets=["b0-root-curve"])

    def play() -> None:
        world.wait(lambda: world.offers().get("b0") == [2, 4])
        world.set(**change)

    world.follow(play, ends=True)
    assert world.result
    assert world.result.exit_code == 1
    assert world.lines()[-2:] == ["b0: its root has ended: removing it", f"{why}: its bursts are removed"]
    assert world["done"] == REMOVED


def test_burst_follow_removes_nothing_of_a_root_that_it_never_saw(world: World) -> None:
    """The root may be in another namespace."""
    world.set(sizes={"b0": 2}, secrets=["b0-root-curve"])
    world.follow(lambda: None, ends=True)
    why = "flux has ended: Gone: the Job flux was deleted, or cleaned up after its end"
    assert world.lines()[-1] == f"{why}; helm uninstall removes what is left of its bursts"
    assert world["done"] == []


@pytest.mark.parametrize(
    ("left", "done"),
    [
        pytest.param({"releases": {"b0": "uninstalling"}}, REMOVED, id="its Job is removed"),
        pytest.param({}, REMOVED[1:], id="its release is removed"),
        pytest.param({"releases": {"b0": "pending-install"}}, REMOVED, id="its Job is not made yet"),
        pytest.param({"releases": {"b0": "uninstalling"}, "root": "other"}, REMOVED[1:], id="a release of another"),
    ],
)
def test_burst_follow_removes_what_a_killed_helm_has_left_of_a_burst_that_nobody_needs(
    world: World, monkeypatch: pytest.MonkeyPatch, left: dict[str, Any], done: list[str]
) -> None:
    monkeypatch.setattr(revisions, "KILLED_SECONDS", 0.3)
    world.set(secrets=["b0-root-curve"], **left)
    world.follow(lambda: world.wait(lambda: world["done"][-1:] == done[-1:]))
    assert world["done"] == done
    assert "b0: removing what an interrupted change has left" in world.lines()


def test_what_a_helm_makes_that_outlives_its_follower_stays(world: World) -> None:
    world.set(secrets=["b0-root-curve"], releases={"b0": "pending-install"})
    looks = world.folder / "looks"

    def play() -> None:
        world.wait(lambda: looks.read_text().count("flux") > 3)
        world.set(sizes={"flux": 2, "b0": 1}, releases={}, need={"b0": 1})
        world.wait(lambda: world.offers().get("b0") == [1, 4])

    world.follow(play)
    assert world["done"] == []


def test_burst_follow_ends_a_removal_that_had_only_begun_once_no_job_runs_there(world: World) -> None:
    drains = {str(rank): "b0 is scaling down" for rank in (2, 3)}
    world.set(sizes={"flux": 2, "b0": 2}, releases={"b0": "uninstalling"}, secrets=["b0-root-curve"], drains=drains)
    world.set(need={"b0": 1}, busy=[3])

    def play() -> None:
        world.wait(lambda: len(world["done"]) >= 2)
        assert world.sizes() == {"b0": 2}
        world.set(busy=[])
        world.wait(lambda: world.sizes() == {"b0": 1})

    world.follow(play, is_known=False)
    drain = "kubectl flux resource drain --update 2-5 minicluster: b0 is being removed"
    assert sorted({*world["done"]}) == sorted(
        [drain, *REMOVED, "kubectl flux resource undrain 2-5", SECRET, "helm b0 1"]
    )
    assert world["done"][-5:] == [*REMOVED, "kubectl flux resource undrain 2-5", SECRET, "helm b0 1"]
    assert "b0: its removal was interrupted, and jobs still run there: the next attempt is in 0.1 s" in world.lines()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["b2"], "flux has no burst b2: flux.bursting.clusters has b0, b1"),
        (["b0", "b0"], "there is b0 twice: a burst runs in one place; drop one of them"),
        (["b0:0-5"], "there is b0 with at most 5 hosts: give 1 to 4, which are registered"),
        (["b0:3-2"], "there is b0 with at least 3 and at most 2 hosts: lower the first"),
        (["b0:4"], "Invalid value for 'BURST...': 'b0:4' is not NAME, NAME:MIN-MAX, NAME@NAMESPACE or "
         "NAME@CONTEXT/NAMESPACE; see `minicluster burst follow --help`"),
        (["b0@Here"], "Invalid value for 'BURST...': 'b0@Here' in the namespace 'Here': use a-z, 0-9 and - there, at "
         "most 63 characters; see `minicluster burst follow --help`"),
        (["b0@a:b/c/there"], "the kubeconfig has no context a:b/c: it has here, cloud"),
        (["b0", "--root-context=nowhere"], "the kubeconfig has no context nowhere: it has here, cloud"),
    ],
)  # fmt: skip
def test_burst_follow_refuses_impossible_arguments_before_it_changes_anything(
    world: World, words: list[str], message: str
) -> None:
    world.follow(lambda: None, *words, ends=True)
    assert world.result
    assert world.lines() == [message]
    assert world.result.exit_code in (1, 2)
    assert world["done"] == []


# Changes by people, and bursts that break -------------------------------------------------------------------------


def test_shrinking_a_burst_that_somebody_enlarged_loses_no_job(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "JOB_SECONDS", 30.0)
    world.set(sizes={"flux": 2, "b0": 2}, need={"b0": 2})

    def play() -> None:
        world.wait(lambda: world.offers().get("b0") == [2, 4])
        world.set(sizes={"flux": 2, "b0": 4}, need={}, starts=[5])
        world.wait(lambda: len(world["done"]) >= 2)

    world.follow(play)
    assert world["done"][:2] == [
        f"kubectl flux resource drain --update 2-5 {GOING}",
        "kubectl flux resource undrain 2-5",
    ]
    assert world.sizes() == {"b0": 4}


def test_removing_a_burst_drains_no_host_of_another_burst(world: World) -> None:
    """A Job may have been scaled beyond its registered hosts; the next ranks belong to another burst."""
    world.set(sizes={"flux": 2, "b0": 6})
    world.follow(lambda: world.wait(lambda: world["done"][-1:] == [REMOVED[-1]]))
    assert world["done"] == [f"kubectl flux resource drain --update 2-5 {GOING}", *REMOVED]


def test_a_burst_whose_job_keeps_ending_is_retried_after_growing_pauses(world: World) -> None:
    end = {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "exit code\n3"}
    world.set(need={"b0": 1}, joins=False)

    def play() -> None:
        for _ in range(2):
            world.wait(lambda: world.sizes() == {"b0": 1})
            world.set(ends={"b0": [end]})
            world.wait(lambda: world.sizes() == {})

    world.follow(play)
    ends = "b0: its Job has ended: Failed: PodFailurePolicy: exit code 3: removing it"
    assert [line for line in world.lines() if line.startswith("b0: its Job")] == [
        *(ends, "b0: its Job had ended: the next attempt is in 0.1 s"),
        *(ends, "b0: its Job had ended: the next attempt is in 0.2 s"),
    ]


def follower_of_b0() -> follower.Follower:
    root = load({"metadata": {"name": "flux", "namespace": "here"}, "spec": ROOT})
    request = BurstRequest(root, Kubernetes(), plan.find(root, "b0"), Kubernetes())
    queue = demand.Demand(root, Kubernetes(), {"b0": Offer(2, 4)})
    return follower.Follower(request, BurstLimits(0, 4, 10, 60), How(None, "", [], 600), queue)


def test_a_burst_that_ran_well_for_long_is_retried_after_a_short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    now = [0.0]
    monkeypatch.setattr(follower.streams, "say", said.append)
    monkeypatch.setattr(follower.time, "monotonic", lambda: now[0])
    one = follower_of_b0()
    monkeypatch.setattr(one.demand.stopped, "wait", lambda seconds: now.append(now.pop() + seconds))
    for pause in (0, 0, 800, 1000):
        now[0] += pause
        one._leave_alone("away")
    assert said == [f"b0: away: the next attempt is in {seconds} s" for seconds in (15, 30, 60, 15)]


def test_the_idle_window_starts_again_after_the_queue_was_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    one = follower_of_b0()
    shrunk: list[tuple[float, int]] = []
    known = demand.BurstNeed(0, 0, math.inf, frozenset(range(4)), 0)
    unknown = range(30, 100)
    monkeypatch.setattr(type(one.demand), "is_known", property(lambda _: now not in unknown))
    monkeypatch.setattr(one.demand, "answer", lambda _: None if now in unknown else known)
    monkeypatch.setattr(one, "_look", lambda: setattr(one, "_size", 4))
    monkeypatch.setattr(BurstRequest, "undrain", lambda *_: None)
    monkeypatch.setattr(one, "_shrink", lambda size: shrunk.append((now, size)))
    for now in range(0, 161, 10):
        one._step(now)
    assert shrunk == [(160, 0)]


def test_a_bug_in_burst_follow_is_reported_in_one_line_without_secrets(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(*_: Any) -> None:
        raise ValueError(CERTIFICATE)

    monkeypatch.setattr(follower.install, "install", install)
    world.set(need={"b0": 2})
    world.follow(lambda: None, ends=True)
    assert world.result
    assert (world.result.exit_code, world.lines()[2:]) == (1, [world.lines()[-1]])
    assert re.fullmatch(
        r"ValueError at follower\.py:\d+, a bug in minicluster: report it with your input", world.lines()[-1]
    )


def test_a_root_certificate_that_is_not_text_is_reported_and_not_shown(world: World) -> None:
    answers = json.loads((world.folder / "answers").read_text())
    name = next(key for key in answers if "secret" in key)
    answers[name] = {"data": {"curve.cert": base64.b64encode(b"\xffsecret").decode()}}
    (world.folder / "answers").write_text(json.dumps(answers))
    world.set(need={"b0": 2})

    def play() -> None:
        world.wait(lambda: '"b0": [2, 4]' in (world.folder / "offers").read_text())
        world.wait(lambda: world.offers()["b0"] == [0, 0])

    world.follow(play)
    assert world.result
    assert "b0: the Secret flux-curve in namespace here has a curve.cert that is not text" in world.result.stderr
    assert "xff" not in world.result.output


def test_an_offer_is_not_written_to_a_lead_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Popen closes the standard input of a lead that is gone; nothing is written to it after that."""
    root = load({"metadata": {"name": "flux", "namespace": "here"}, "spec": ROOT})
    found = demand.Demand(root, Kubernetes(), {"b0": Offer(2, 4)})

    class Gone(subprocess.Popen[bytes]):
        def __exit__(self, *error: Any) -> None:
            super().__exit__(*error)
            found.offer("b0", Offer(2, 4, 1, 4))

    pod = SimpleNamespace(name="p", runner="flux")
    lead = SimpleNamespace(pod=pod, flux_words=lambda *_: [])
    monkeypatch.setattr(found, "_find_lead", lambda: lead)
    monkeypatch.setattr(Kubernetes, "words", lambda *_: [sys.executable, "-c", ""])
    monkeypatch.setattr(kubectl.subprocess, "Popen", Gone)
    with pytest.raises(BrokenError, match=r"^the lead's program ended: exit code 0$"):
        next(found._talk())
