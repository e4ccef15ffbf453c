"""Constraints of jobs that choose nodes by where they run."""

import errno
import runpy
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import frobnicator
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from minicluster.pod import programs
from state import parse_idset

#: Rank 3 has not joined, and rank 4 runs where Kubernetes tells no zone
PLACES = {
    0: {"zone": "a", "node": "n1"},
    1: {"zone": "b", "node": "n2"},
    2: {"zone": "a", "node": "n2"},
    3: {},
    4: {"node": "n3"},
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"properties": ["zone=a"]}, {"ranks": ["0,2"]}),
        ({"properties": ["^zone=a"]}, {"ranks": ["1"]}),
        ({"not": [{"properties": ["zone=a"]}]}, {"not": [{"ranks": ["0,2-4"]}]}),
        ({"not": [{"properties": ["^zone=a"]}]}, {"not": [{"ranks": ["1,3-4"]}]}),
        ({"not": [{"not": [{"properties": ["node=n2"]}]}]}, {"not": [{"not": [{"ranks": ["1-2"]}]}]}),
        (
            {"properties": ["gpu", "zone=a", "node=n2"]},
            {"and": [{"properties": ["gpu"]}, {"ranks": ["0,2"]}, {"ranks": ["1-2"]}]},
        ),
        (
            {"or": [{"properties": ["zone=b"]}, {"hostlist": ["x-[0-9]"]}, {"ranks": ["7"]}]},
            {"or": [{"ranks": ["1"]}, {"hostlist": ["x-[0-9]"]}, {"ranks": ["7"]}]},
        ),
        ({"properties": []}, {"properties": []}),
        ({"properties": ["zone", "time=a"]}, {"properties": ["zone", "time=a"]}),
    ],
    ids=str,
)
def test_ranks_take_the_place_of_locations(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert frobnicator.resolve(given, PLACES) == expected
    assert frobnicator.has_locations(given) == (given != expected)


LEAF = st.sampled_from(["zone=a", "zone=b", "^zone=a", "^zone=b", "node=n1", "^node=n2", "gpu", "^gpu"])
TREES = st.recursive(
    st.fixed_dictionaries({"properties": st.lists(LEAF, max_size=2)}),
    lambda below: st.one_of(
        *(
            st.fixed_dictionaries({operator: st.lists(below, min_size=1, max_size=2)})
            for operator in ("and", "or", "not")
        )
    ),
)


def holds(constraints: dict[str, Any], rank: int, properties: set[str]) -> bool:
    """Say whether constraints hold on a node, by RFC 31."""
    [(operator, values)] = constraints.items()
    if operator == "properties":
        return all((text.removeprefix("^") in properties) != text.startswith("^") for text in values)
    if operator == "ranks":
        return any(rank in parse_idset(ranks) for ranks in values)
    each = [holds(below, rank, properties) for below in values]
    return {"and": all(each), "or": any(each), "not": not all(each)}[operator]


@given(tree=TREES, zone=st.sampled_from("ab"), node=st.sampled_from(["n1", "n2", "n3"]), gpu=st.booleans())
def test_a_job_gets_only_nodes_that_it_wants_wherever_the_unknown_ones_are(
    tree: dict[str, Any], zone: str, node: str, gpu: bool
) -> None:
    try:
        found = frobnicator.resolve(tree, PLACES)
    except ValueError:
        assume(False)
    for rank, told in PLACES.items():
        other = {"gpu"} if gpu else set()
        really = {f"{key}={name}" for key, name in {"zone": zone, "node": node, **told}.items()}
        if holds(found, rank, other):
            assert holds(tree, rank, really | other)
        elif len(told) == 2:
            assert not holds(tree, rank, really | other)


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        ("zone=c", "zone=c: no node is there now: give one of a (2), b (1)"),
        ("^zone=c", "zone=c: no node is there now: give one of a (2), b (1)"),
        ("node=x", "node=x: no node is there now: give one of n1 (1), n2 (2), n3 (1)"),
        (
            "region=eu",
            "region=eu: no node knows its region: Kubernetes tells pods from 1.35 on, if the Kubernetes node has the "
            "label topology.kubernetes.io/region",
        ),
    ],
)
def test_a_location_where_no_node_is_is_an_error_that_names_those_that_there_are(wish: str, problem: str) -> None:
    with pytest.raises(ValueError) as error:
        frobnicator.resolve({"and": [{"properties": [wish]}]}, PLACES)
    assert str(error.value) == problem


def test_the_error_names_ten_locations_at_most() -> None:
    with pytest.raises(ValueError, match=r"give one of n0 \(1\), .*, n7 \(1\) and 2 more"):
        frobnicator.resolve({"properties": ["node=x"]}, {rank: {"node": f"n{rank}"} for rank in range(12)})


def test_a_location_that_all_nodes_have_can_not_be_avoided() -> None:
    with pytest.raises(ValueError, match=r"\^zone=a: all nodes are there now"):
        frobnicator.resolve({"properties": ["^zone=a"]}, {0: {"zone": "a"}, 1: {}})


@dataclass
class Answer:
    """The answer of a broker, or its error."""

    value: dict[str, str]
    error: OSError | None

    def wait_for(self, seconds: float) -> None:
        assert 0 <= seconds <= 5

    def get(self) -> dict[str, str]:
        if self.error:
            raise self.error
        return self.value


class Broker:
    """Answers for all brokers; rank 2 is not up, 3 doesn't know where it runs, and 4 has just gone."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.online = "0-1,3-4"
        self.properties = {"zone=b": "2-3", "gpu": "0-4", "node=z": "0"}

    def rpc(self, topic: str, payload: Any = None, nodeid: int | None = None) -> Any:
        if topic == "resource.status":
            r = {"R_lite": [{"rank": "0-2"}, {"rank": "3-4"}], "properties": self.properties}
            return SimpleNamespace(get=lambda: {"R": {"execution": r}, "online": self.online})
        assert (topic, payload, type(nodeid)) == ("attr.get", {"name": "vendor.minicluster.locations"}, int)
        self.asked.append(int(nodeid or 0))
        errors = {3: OSError(errno.ENOENT, "No such attribute"), 4: OSError(errno.EHOSTUNREACH, "No route to host")}
        return Answer({"value": f"node=n{nodeid} zone=a"}, errors.get(int(nodeid or 0)))


def test_the_brokers_tell_where_they_are_and_r_tells_it_of_others() -> None:
    broker = Broker()
    assert frobnicator.ask(broker, broker.rpc("resource.status", nodeid=0).get()) == {
        0: {"node": "n0", "zone": "a"},
        1: {"node": "n1", "zone": "a"},
        2: {"zone": "b"},
        3: {"zone": "b"},
        4: {},
    }


class Jobspec:
    """A job, as a plugin gets it."""

    def __init__(self, **system: Any) -> None:
        self.attributes: dict[str, Any] = {"system": system}

    def setattr(self, key: str, value: Any) -> None:
        assert key == "system.constraints"
        self.attributes["system"]["constraints"] = value


def test_only_jobs_that_name_a_location_are_changed_and_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, now = Broker(), [100.0]
    monkeypatch.setitem(sys.modules, "flux", SimpleNamespace(Flux=lambda: broker))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    plugin = runpy.run_path(str(programs()["frobnicator.py"]))["Frobnicator"](None)
    plugin.configure(None, {})
    for job in (Jobspec(), Jobspec(constraints={"properties": ["gpu"]})):
        before = dict(job.attributes["system"])
        plugin.frob(job, 0, 16, 0)
        assert job.attributes["system"] == before
    # at once, again for the next second's job, and when another broker has joined
    for at, online, asked in (
        (100.0, "0-1", [0, 1]),
        (100.9, "0-1", []),
        (101.0, "0-1", [0, 1]),
        (101.1, "0-1,3", [0, 1, 3]),
    ):
        now[0], broker.online, broker.asked = at, online, []
        job = Jobspec(constraints={"properties": ["zone=a"]})
        plugin.frob(job, 0, 16, 0)
        assert job.attributes["system"]["constraints"] == {"ranks": ["0-1"]}
        assert broker.asked == asked
