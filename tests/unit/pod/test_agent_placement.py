"""What the agent does about pods in a queue of Kueue that are not ready: because of one, Kueue suspends all."""

from typing import Any

import pytest
from fake_agent import POLICY, Setup, pod_of, said
from placement import Lacking, lacking
from test_agent_groups import GROUPS

NOT_READY = "after 900 s the size gets smaller, after 1800 s, by default, Kueue suspends all pods (waitForPodsReady)"


@pytest.fixture
def elastic(mc: Setup) -> Setup:
    """An elastic Job of three pods, which somebody requested, on Kubernetes nodes with room for two."""
    mc.kube.quota, mc.kube.size, mc.kube.room = 8, 3, 2
    mc.flux.online, mc.flux.kvs["minicluster.size"] = {0, 1}, 3
    return mc


def test_the_agent_gives_up_a_pod_without_a_place_and_asks_for_it_again(
    elastic: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    elastic.at(*range(0, 1200, 10))
    assert elastic.flux.done == [("drain", "2"), ("resize", 3, 2)]
    elastic.kube.room = 3
    elastic.at(*range(1200, 1300, 10))
    elastic.flux.online = {0, 1, 2}
    elastic.at(*range(1300, 3300, 10))
    assert elastic.flux.done[2:] == [("resize", 2, 3), ("undrain", "2")]
    assert said(capsys) == [
        "size 3: nothing to do",
        f"pod 2 not ready: {NOT_READY}",
        "size 3 -> 2: pod 2 not ready for 900 s, and Kueue would suspend all pods",
        "size 2: nothing to do",
        "size 2: waits: 3 nodes were requested, for less than 10 s",
        "size 2 -> 3: 3 nodes were requested",
        "size 3: nothing to do",
    ]


def test_a_pod_starts_where_the_highest_one_was(elastic: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    elastic.kube.placed = {0, 2}
    elastic.flux.online = {0, 2}
    elastic.at(*range(0, 900, 10))
    # its job ends before it is given up
    elastic.flux.used = {2: (1, 0)}
    elastic.at(*range(900, 1000, 10))
    assert elastic.flux.done == [("drain", "2")]
    assert said(capsys)[-1] == "size 3: waits: pod 1 will be given up when no job uses node 2"
    elastic.flux.used = {}
    elastic.at(1005)
    assert elastic.flux.done[-1] == ("resize", 3, 2)
    assert [index for index, state in enumerate(elastic.kube.pods()) if state == pod_of(index, True)] == [0, 1]


def test_a_node_is_undrained_when_the_missing_pod_is_ready_after_all(elastic: Setup) -> None:
    elastic.flux.used = {2: (1, 0)}
    elastic.kube.placed, elastic.flux.online = {0, 2}, {0, 2}
    elastic.at(*range(0, 910, 10))
    elastic.kube.room, elastic.flux.online = 3, {0, 1, 2}
    elastic.at(910, 920)
    assert elastic.flux.done == [("drain", "2"), ("undrain", "2")]


def test_pods_above_one_on_a_lost_kubernetes_node_go_when_they_are_idle(elastic: Setup) -> None:
    elastic.kube.size, elastic.kube.room, elastic.flux.kvs["minicluster.size"] = 5, 5, 5
    elastic.kube.stuck, elastic.flux.online, elastic.flux.used = {2}, {0, 1, 3, 4}, {3: (1, 0)}
    elastic.at(*range(0, 910, 10))
    assert elastic.flux.done == [("drain", "2-4")]
    elastic.flux.used = {}
    elastic.at(905)
    assert elastic.flux.done[1:] == [("drain", "2-4"), ("resize", 5, 2)]


@pytest.mark.parametrize("least", [1, 3])
def test_the_least_size_of_the_policy_keeps_no_pod_that_nobody_can_place(elastic: Setup, least: int) -> None:
    elastic.settings(policy={**POLICY, "min": least})
    elastic.at(*range(0, 1200, 10))
    assert elastic.kube.size == 2
    elastic.at(*range(1200, 1220, 10))
    assert elastic.kube.size == 3


def test_a_pod_whose_broker_is_in_flux_is_not_given_up(elastic: Setup) -> None:
    elastic.flux.online = {0, 1, 2}
    elastic.at(*range(0, 2000, 10))
    assert elastic.flux.done == []


def test_the_lead_is_never_given_up(elastic: Setup) -> None:
    elastic.kube.stuck = {0, 1, 2}
    elastic.flux.online = set()
    elastic.at(*range(0, 1000, 10))
    assert elastic.kube.size == 1


@pytest.mark.parametrize(("seconds", "size"), [(0, 3), (20, 2), (100, 3)])
def test_the_policy_says_when_pods_are_given_up(elastic: Setup, seconds: int, size: int) -> None:
    elastic.settings(policy={**POLICY, "give_up": seconds})
    elastic.at(*range(0, 90, 10))
    assert elastic.kube.size == size


def test_the_time_begins_again_when_all_pods_were_ready(elastic: Setup) -> None:
    elastic.at(*range(0, 900, 10))
    elastic.kube.room = 3
    elastic.at(900)
    elastic.kube.room, elastic.kube.placed = 2, set()
    elastic.at(*range(910, 1800, 10))
    assert elastic.flux.done == []


def test_a_pod_that_has_only_just_gone_may_come_back(elastic: Setup) -> None:
    elastic.kube.size, elastic.kube.room = 4, 3
    elastic.flux.online = {0, 1, 2}
    elastic.at(*range(0, 890, 10))
    elastic.kube.room, elastic.kube.placed, elastic.flux.online = 2, {0, 1}, {0, 1}
    elastic.at(*range(890, 930, 10))
    assert elastic.kube.size == 3


def test_what_can_not_be_counted_for_a_moment_keeps_its_time(elastic: Setup) -> None:
    elastic.at(*range(0, 900, 10))
    elastic.kube.errors["pods"] = "GET …: timed out"
    elastic.at(900)
    elastic.kube.errors.clear()
    elastic.at(910)
    assert elastic.kube.size == 2


def test_a_group_gives_up_all_of_its_pods(mc: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    mc.settings(max_size=2, groups=GROUPS, policy={**POLICY, "max": 2})
    gpu = mc.kube.of_group("gpu")
    gpu.quota, gpu.size, gpu.room = 8, 2, 0
    mc.kube.of_group("spot").parallelism = 0
    mc.flux.online, mc.flux.kvs["minicluster.sizes.gpu"] = {0}, 2
    mc.at(*range(0, 1000, 10))
    assert mc.flux.done == [("drain", "2-3"), ("mc-gpu", "empty", 2)]
    line = "group gpu: size 2 -> 0: pods 0-1 not ready for 900 s, and Kueue would suspend all pods"
    assert line in said(capsys)


def leaving(pod: dict[str, Any]) -> dict[str, Any]:
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], Lacking(0, {0, 1}), id="none can be made"),
        pytest.param([pod_of(0, True), pod_of(1, True), pod_of(2, False)], Lacking(), id="one of a larger size"),
        pytest.param([pod_of(0, True), pod_of(1, "gated")], Lacking(1), id="no quota"),
        pytest.param([pod_of(0, True), pod_of(1, "stuck")], Lacking(0, set(), {1}), id="not ready"),
        pytest.param([pod_of(0, True), leaving(pod_of(1, True))], Lacking(0, set(), {1}), id="its node is lost"),
        pytest.param([pod_of(0, True), leaving(pod_of(1, True)), pod_of(1, True)], Lacking(), id="replaced"),
        pytest.param([pod_of(0, True), leaving(pod_of(1, True)), pod_of(1, False)], Lacking(0, {1}), id="no room"),
    ],
)
def test_what_a_job_lacks_is_seen_in_its_pods(pods: list[dict[str, Any]], expected: Lacking) -> None:
    for some in (pods, pods[::-1]):
        assert lacking(some, 2) == expected
