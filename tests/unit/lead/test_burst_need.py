"""How many hosts of bursts the queue needs, as the lead reports it."""

import importlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from fake_flux import FakeFlux, install
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from need import Request
from state import Nodes

NODE = Request(1, 1, 0, apart=True)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    install(monkeypatch)
    for name in ("changes", "minicluster.lead.sent.burst_need"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("minicluster.lead.sent.burst_need")


def nodes(**fields: Any) -> Nodes:
    """Return eight nodes of four cores: a root of four nodes, two of them up, and two bursts of two."""
    seen = {"all": dict.fromkeys(range(8), (4, 0)), "used": {}, "online": frozenset({0, 1}), "drained": {}}
    return Nodes(**{**seen, **fields})


def busy(*ranks: int) -> dict[int, tuple[int, int]]:
    return dict.fromkeys(ranks, (4, 0))


#: Offers of root and bursts: the current size and the largest possible one
GROUPS = [(2, 2), (0, 2), (0, 2)]
REGISTERED = [(0, 4), (4, 2), (6, 2)]


@pytest.mark.parametrize(
    ("seen", "groups", "pending", "expected"),
    [
        # (hosts needed, hosts held) of root and bursts
        pytest.param(nodes(), GROUPS, [], [(0, 0), (0, 0), (0, 0)], id="no jobs"),
        pytest.param(nodes(used=busy(0, 5)), GROUPS, [], [(1, 1), (2, 2), (0, 0)], id="only running jobs"),
        # the root's own room comes first: free cores, then the nodes that it adds by itself
        pytest.param(nodes(), GROUPS, [NODE] * 8, [(2, 0), (0, 0), (0, 0)], id="room in the root"),
        pytest.param(nodes(used=busy(0, 1)), [(2, 4), (0, 2), (0, 2)], [NODE] * 9, [(4, 2), (1, 0), (0, 0)],
                     id="root that grows"),
        # then the bursts in their order
        pytest.param(nodes(used=busy(0, 1)), GROUPS, [NODE], [(2, 2), (1, 0), (0, 0)], id="first burst"),
        pytest.param(nodes(used=busy(0, 1)), GROUPS, [NODE] * 9, [(2, 2), (2, 0), (1, 0)], id="both bursts"),
        pytest.param(nodes(used=busy(0, 1)), GROUPS, [NODE] * 99, [(2, 2), (2, 0), (2, 0)], id="more jobs than hosts"),
        # hosts that are up or start are used before hosts that may come
        pytest.param(nodes(used=busy(0, 1)), [(2, 2), (0, 2), (1, 2)], [NODE] * 4, [(2, 2), (0, 0), (1, 0)],
                     id="burst that starts"),
        pytest.param(nodes(used=busy(0, 1), online=frozenset({0, 1, 6})), GROUPS, [NODE], [(2, 2), (0, 0), (1, 0)],
                     id="burst that has joined"),
        # a burst that can't be had now keeps what has joined
        pytest.param(nodes(used=busy(0, 1)), [(2, 2), (0, 0), (0, 2)], [NODE] * 9, [(2, 2), (0, 0), (2, 0)],
                     id="burst without offer"),
        pytest.param(nodes(used=busy(0, 1), online=frozenset({0, 1, 4})), [(2, 2), (0, 0), (0, 2)], [NODE] * 9,
                     [(2, 2), (1, 0), (2, 0)], id="joined hosts of a burst without offer"),
        # a burst of at most one host
        pytest.param(nodes(used=busy(0, 1)), [(2, 2), (0, 1), (0, 2)], [NODE] * 9, [(2, 2), (1, 0), (2, 0)],
                     id="burst of one host"),
        # one job over root and bursts, once running jobs have ended
        pytest.param(nodes(used=busy(0, 1)), GROUPS, [Request(5, 4, 0, apart=True)], [(2, 2), (2, 0), (1, 0)],
                     id="job over root and bursts"),
        # not even all of it could run these
        pytest.param(nodes(used=busy(0, 1)), GROUPS, [Request(7, 1, 0, apart=True), Request(1, 5, 0)],
                     [(2, 2), (0, 0), (0, 0)], id="impossible jobs"),
        pytest.param(nodes(used=busy(0, 1)), GROUPS, [Request(7, 1, 0, apart=True), NODE], [(2, 2), (1, 0), (0, 0)],
                     id="impossible job before another"),
        # drained by others: no room. By us: there once the pod has started, unless it is about to go
        pytest.param(nodes(used=busy(0, 1), drained={4: "disk"}), GROUPS, [NODE] * 9, [(2, 2), (2, 0), (2, 0)],
                     id="one host drained by others"),
        pytest.param(nodes(used=busy(0, 1), drained={4: "disk", 5: "disk"}), GROUPS, [NODE], [(2, 2), (0, 0), (1, 0)],
                     id="burst drained by others"),
        pytest.param(nodes(used=busy(0, 1), drained={4: "minicluster: x"}), GROUPS, [NODE], [(2, 2), (1, 0), (0, 0)],
                     id="drained by us"),
        pytest.param(nodes(used=busy(0, 1), drained={6: "minicluster: x"}, online=frozenset({0, 1, 6})), GROUPS, [NODE],
                     [(2, 2), (1, 0), (0, 0)], id="drained by us and online"),
        # jobs that may run on some ranks only
        pytest.param(nodes(used=busy(0, 1)), GROUPS, [Request(1, 1, 0, ranks=frozenset({0, 1}))],
                     [(2, 2), (0, 0), (0, 0)], id="ranks of the root"),
        pytest.param(nodes(), GROUPS, [Request(1, 1, 0, ranks=frozenset({7}))], [(0, 0), (0, 0), (2, 0)],
                     id="rank of a burst"),
        pytest.param(nodes(), GROUPS, [Request(1, 1, 0, ranks=frozenset())], [(0, 0), (0, 0), (0, 0)], id="no ranks"),
    ],
)  # fmt: skip
def test_burst_needs_counts_the_needed_and_held_hosts_of_each_burst(
    program: Any,
    seen: Nodes,
    groups: list[tuple[int, int]],
    pending: list[Request],
    expected: list[tuple[int, int]],
) -> None:
    all_groups = [program.Group(*place, *offer) for place, offer in zip(REGISTERED, groups, strict=True)]
    found = program.burst_needs(seen, all_groups[:1], all_groups[1:], iter(pending), 100.0)
    assert [(one.need, one.held) for one in found] == expected


#: A root with two hosts of its own, a group with GPUs that it adds last, and a spot group that it adds first
PAIRS = {**dict.fromkeys(range(2), (4, 0)), **dict.fromkeys((2, 3), (4, 2)), **dict.fromkeys(range(4, 8), (4, 0))}
GPU = Request(1, 1, 1)


@pytest.mark.parametrize(
    ("seen", "most", "pending", "expected"),
    [
        # the hosts needed of spot, own, gpu and the burst; one host of its own runs
        pytest.param({}, (2, 2, 2), [NODE] * 4, [0, 1, 0, 0], id="room on its own"),
        pytest.param({"used": busy(0)}, (2, 2, 2), [NODE] * 8, [2, 1, 0, 0], id="spot first"),
        pytest.param({"used": busy(0)}, (2, 2, 2), [NODE] * 20, [2, 2, 2, 0], id="all groups"),
        pytest.param({"used": busy(0)}, (2, 2, 2), [NODE] * 21, [2, 2, 2, 1], id="then the burst"),
        pytest.param({"used": busy(0)}, (0, 1, 0), [NODE], [0, 1, 0, 1], id="groups that can't grow"),
        pytest.param({"used": busy(0)}, (2, 2, 2), [NODE] * 12 + [GPU] * 4, [2, 2, 2, 0], id="GPUs are left"),
        pytest.param({"used": busy(0)}, (2, 2, 0), [GPU], [0, 1, 0, 0], id="no GPU anywhere"),
        pytest.param({"used": busy(0, 2), "online": frozenset({0, 2})}, (0, 1, 0), [NODE] * 2, [0, 1, 1, 1],
                     id="a busy host of a group"),
        pytest.param({"used": busy(0), "online": frozenset({0, 2, 3})}, (0, 1, 0), [NODE] * 8, [0, 1, 2, 0],
                     id="hosts of a group that have joined"),
    ],
)  # fmt: skip
def test_the_room_on_the_groups_of_the_root_counts_before_the_bursts(
    program: Any, seen: dict[str, Any], most: tuple[int, int, int], pending: list[Request], expected: list[int]
) -> None:
    spot, own, gpu = most
    root = [program.Group(4, 2, 0, spot), program.Group(0, 2, 1, own), program.Group(2, 2, 0, gpu)]
    found = program.burst_needs(
        nodes(**{"all": PAIRS, "online": frozenset({0}), **seen}), root, [program.Group(6, 2, 0, 2)], pending, 0.0
    )
    assert [one.need for one in found] == expected


def test_burst_needs_reports_how_long_more_hosts_have_been_needed(program: Any) -> None:
    groups = [program.Group(0, 4, 2, 2), program.Group(4, 2, 1, 2), program.Group(6, 2, 0, 2)]
    # two jobs share a node: the one that has waited longest counts, in any order
    jobs = [Request(1, 2, 0, since=since) for since in (10.0, 11.0, 20.0, 21.0, 31.0, 30.0, 40.0)]
    seen = nodes(used=busy(0, 1), online=frozenset({0, 1, 4}))
    found = program.burst_needs(seen, groups[:1], groups[1:], jobs, 100.0)
    assert [one.age for one in found] == [0.0, 80.0, 70.0]
    assert [one.online for one in found] == ["0-1", "0", ""]


def test_burst_needs_stops_reading_a_long_queue_once_the_result_is_certain(program: Any) -> None:
    read = []

    def pending() -> Any:
        for number in range(10000):
            read.append(number)
            yield NODE

    groups = [program.Group(0, 4, 2, 2), program.Group(4, 2, 0, 2), program.Group(6, 2, 0, 2)]
    found = program.burst_needs(nodes(used=busy(0, 1)), groups[:1], groups[1:], pending(), 0.0)
    assert [one.need for one in found] == [2, 2, 2]
    assert len(read) == 13


RANKS = st.sets(st.integers(0, 7))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # it is the same module each time
@given(
    RANKS,
    RANKS,
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=3, max_size=3),
    st.lists(st.builds(Request, st.integers(1, 9), st.integers(1, 4), st.just(0), st.booleans()), max_size=20),
)
def test_burst_needs_never_exceed_the_hosts_offered_or_held(
    program: Any, used: set[int], online: set[int], offers: list[tuple[int, int]], pending: list[Request]
) -> None:
    groups = [program.Group(*place, min(offer), max(offer)) for place, offer in zip(REGISTERED, offers, strict=True)]
    seen = nodes(used=busy(*used), online=frozenset(online))
    needs = program.burst_needs(seen, groups[:1], groups[1:], pending, 0.0)
    for group, found in zip(groups, needs, strict=True):
        joined = max((rank + 1 - group.first for rank in online if rank in group.ranks(group.registered)), default=0)
        assert found.held <= found.need <= max(found.held, group.most, joined)


class Reactor:
    """The handle of `Changes`: each wait reads the standard input, if there is any."""

    def __init__(self) -> None:
        self.callback: Callable[[], None] = lambda: None

    def fd_watcher_create(self, number: int, callback: Callable[[], None], events: int) -> Any:
        assert (number, events) == (0, 1)
        self.callback = callback
        return nullcontext()


def test_the_burst_need_program_answers_each_offer_until_its_input_ends(
    program: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    instance = FakeFlux(dict.fromkeys(range(4), (1, 0)), {0, 1})
    instance.run(1, "0-1")
    for number in (2, 3, 4):
        instance.submit(number)
    # only the scheduler can resolve the second constraint, so any rank may fit it
    for job, constraints in ((1, {"hostlist": ["flux-0"]}), (2, {"properties": ["fast"]})):
        instance.jobs[job]["jobspec"]["attributes"] = {"system": {"constraints": constraints}}
    asked, wakes = [], []

    class Resources:
        def __init__(self, found: Any) -> None:
            assert found["version"] == 1

        def copy_constraint(self, text: str) -> Any:
            asked.append(json.loads(text))
            if "properties" in text:
                raise ValueError("unknown constraint operator: properties")
            return SimpleNamespace(ranks=[0])

    monkeypatch.setattr(sys.modules["flux.resource"], "ResourceSet", Resources, raising=False)
    groups = [program.Group(0, 2, 2, 2)._asdict(), program.Group(2, 2, 0, 2)._asdict()]
    offers = [{"number": 1, "root": groups[:1], "bursts": groups[1:]}, {"number": 2, "root": groups[:1], "bursts": []}]
    text = "".join(json.dumps(offer) + "\n" for offer in offers).encode()
    first = text.index(b"\n")
    pieces = [text[:20], text[20 : first + 9], text[first + 9 :], b""]
    reactor = Reactor()
    handles = [reactor, instance]
    monkeypatch.setattr(sys.modules["flux"], "Flux", lambda: handles.pop(0), raising=False)
    monkeypatch.setattr(os, "read", lambda *_: pieces.pop(0))
    monkeypatch.setattr(program.time, "monotonic", lambda: 50.0)
    monkeypatch.setattr(program.Changes, "wait", lambda *_: reactor.callback())
    monkeypatch.setattr(program.Changes, "wake", lambda _: wakes.append(1))
    program.main()
    ready, *answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ready == {"ready": "0.88.0"}
    root = {"need": 2, "held": 2, "age": 0.0, "online": "0-1"}
    burst = {"need": 2, "held": 0, "age": 0.001, "online": ""}
    assert answers == [
        {"number": 1, "waiting": 3, "groups": [root, burst]},
        {"number": 2, "waiting": 3, "groups": [root]},
    ]
    assert asked == [{"hostlist": ["flux-0"]}, {"properties": ["fast"]}]
    assert len(wakes) == 4, "it answers an offer at once"
    assert instance.lookups == [2, 3, 4]
