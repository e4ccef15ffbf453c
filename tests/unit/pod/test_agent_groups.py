"""What the agent does with groups of unlike nodes, with a fake Flux and a fake Kubernetes."""

import pytest
from budget import selector
from fake_agent import POLICY, Setup, said

#: Ranks 0-1 are the cluster's own, 2-4 of the group gpu, 5-7 of the group spot
GROUPS = [
    {"name": "gpu", "size": 0, "max_size": 3, "policy": {"min": 0, "max": 3, "priority": 0}},
    {"name": "spot", "size": 0, "max_size": 3, "policy": {"min": 0, "max": 3, "priority": 1}},
]


@pytest.fixture
def grouped(mc: Setup) -> Setup:
    """A cluster of one node of its own, and of two groups without pods."""
    mc.settings(max_size=2, groups=GROUPS, policy={**POLICY, "max": 2})
    mc.flux.all = {
        **dict.fromkeys((0, 1), (1, 0)),
        **dict.fromkeys((2, 3, 4), (1, 1)),
        **dict.fromkeys((5, 6, 7), (1, 0)),
    }
    mc.flux.online = {0}
    for name in ("gpu", "spot"):
        mc.kube.of_group(name).size, mc.kube.of_group(name).parallelism = 4, 0
    return mc


def sizes(mc: Setup) -> list[int]:
    """Return the sizes of the cluster's own Job, gpu and spot."""
    kubes = (mc.kube, *mc.kube.groups.values())
    return [kube.size if kube.parallelism is None else 0 for kube in kubes]


def test_each_group_grows_for_the_jobs_that_need_it(grouped: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    grouped.flux.used = {0: (1, 0)}
    grouped.flux.submit(1, gpus=1)
    grouped.flux.submit(2)
    grouped.flux.submit(3)
    grouped.at(0, 10, 20)
    # spot has the higher priority
    assert sizes(grouped) == [1, 1, 2]
    assert grouped.flux.done == [("mc-gpu", "resize", 4, 1), ("mc-spot", "resize", 4, 2)]
    assert said(capsys) == [
        "size 1: nothing to do",
        "group gpu: size 0: waits: 3 jobs wait for nodes, for less than 10 s",
        "group spot: size 0: waits: 3 jobs wait for nodes, for less than 10 s",
        "group gpu: size 0 -> 1: 3 jobs wait for nodes",
        "group spot: size 0 -> 2: 3 jobs wait for nodes",
        "group gpu: size 1: nothing to do",
        "group spot: size 2: nothing to do",
    ]
    assert grouped.kube.groups["gpu"].events == ["Scaled: size 0 -> 1: 3 jobs wait for nodes"]
    assert grouped.kube.events == []


def test_a_group_shrinks_to_zero_while_another_one_is_busy(grouped: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    grouped.kube.groups["gpu"].resize(grouped.kube.groups["gpu"].get_job(), 2)
    grouped.kube.groups["spot"].resize(grouped.kube.groups["spot"].get_job(), 3)
    grouped.flux.done.clear()
    grouped.flux.online = {0, 2, 3, 5, 6, 7}
    grouped.flux.used = {5: (1, 0)}
    grouped.at(0, 60)
    assert sizes(grouped) == [1, 0, 1]
    assert grouped.flux.done == [
        ("drain", "2-3"),
        ("mc-gpu", "empty", 2),
        ("drain", "6-7"),
        ("mc-spot", "resize", 3, 1),
    ]
    assert said(capsys)[-2:] == [
        "group gpu: size 2 -> 0: nodes idle for 60 s",
        "group spot: size 3 -> 1: nodes idle for 60 s",
    ]
    # the drained nodes have no pod; they are undrained once they have one again
    grouped.flux.done.clear()
    grouped.flux.submit(1, gpus=1)
    grouped.at(70, 80, 90)
    assert grouped.flux.done == [("mc-gpu", "resize", 4, 1), ("undrain", "2")]


def test_a_failure_in_one_group_does_not_stop_the_others(grouped: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    grouped.kube.groups["gpu"].errors = {"resize": "PATCH: 403 forbidden"}
    grouped.flux.used = {0: (1, 0)}
    grouped.flux.submit(1, gpus=1)
    grouped.flux.submit(2)
    grouped.at(0, 10, 11)
    assert sizes(grouped) == [1, 0, 1]
    assert said(capsys)[3:5] == [
        "group spot: size 0 -> 1: 2 jobs wait for nodes",
        "the size can't be read or changed now: PATCH: 403 forbidden",
    ]


def test_the_agent_finishes_what_an_agent_began_that_ended(grouped: Setup) -> None:
    """The Job of a group is suspended between the two changes that remove all of its pods."""
    gpu = grouped.kube.groups["gpu"]
    gpu.size, gpu.parallelism, gpu.suspended = 4, 4, True
    grouped.at(0)
    assert grouped.flux.done == [("mc-gpu", "empty", 4)]
    assert not gpu.suspended


def test_a_group_that_kueue_suspended_stays_as_it_is(grouped: Setup) -> None:
    gpu = grouped.kube.groups["gpu"]
    gpu.size, gpu.parallelism, gpu.suspended = 2, None, True
    grouped.at(0)
    assert grouped.flux.done == []


def test_a_group_grows_to_the_size_that_is_requested(grouped: Setup) -> None:
    grouped.flux.kvs["minicluster.sizes.gpu"] = 2
    grouped.at(0, 10)
    assert sizes(grouped) == [1, 2, 0]
    grouped.flux.kvs["minicluster.sizes.gpu"] = 0
    grouped.at(20, 80)
    assert sizes(grouped) == [1, 0, 0]


def test_an_upgrade_changes_the_limits_of_a_group(grouped: Setup) -> None:
    grouped.at(0)
    least = [{**GROUPS[0], "policy": {"min": 2, "max": 3, "priority": 0}}, GROUPS[1]]
    grouped.settings(max_size=2, groups=least, policy={**POLICY, "max": 2})
    grouped.at(10)
    assert sizes(grouped) == [1, 2, 0]


def test_a_cluster_is_suspended_when_its_groups_have_no_pods(grouped: Setup) -> None:
    grouped.settings(max_size=2, groups=GROUPS, policy={**POLICY, "max": 2, "suspend": 30})
    grouped.kube.groups["gpu"].resize({"spec": {"completions": 4}}, 1)
    grouped.flux.done.clear()
    grouped.at(0, 40)
    assert not grouped.kube.suspended
    grouped.at(60, 70, 100)
    assert grouped.kube.suspended
    assert grouped.flux.done == [("drain", "2"), ("mc-gpu", "empty", 1), ("drain", "0"), "suspend"]


def test_the_budget_of_each_group_holds_its_busy_pods(grouped: Setup) -> None:
    grouped.settings(max_size=2, groups=GROUPS, policy=None, budget={"always_lead": True})
    grouped.flux.used = {3: (1, 1), 6: (1, 0), 7: (1, 0)}
    grouped.at(0)
    gpu, spot = grouped.kube.groups.values()
    assert (grouped.kube.held, gpu.held, spot.held) == (["0"], ["1"], ["1", "2"])
    assert selector("mc", []) is None


def test_the_metrics_have_the_live_sizes_and_wishes_of_groups(grouped: Setup) -> None:
    grouped.settings(max_size=2, groups=GROUPS, policy={**POLICY, "max": 2}, port=8051)
    grouped.flux.used = {0: (1, 0)}
    grouped.flux.submit(1, gpus=1)
    grouped.at(0)
    lines = grouped.shown[-1][1].splitlines()
    assert [line for line in lines if line.startswith(("minicluster_size", "minicluster_autoscaler_wish"))] == [
        "minicluster_size 1",
        'minicluster_size{group="gpu"} 0',
        'minicluster_size{group="spot"} 0',
        'minicluster_autoscaler_wish{reason="queue"} 1',
        'minicluster_autoscaler_wish{reason="asked"} 0',
        'minicluster_autoscaler_wish{reason="min"} 1',
        'minicluster_autoscaler_wish{reason="queue",group="gpu"} 1',
        'minicluster_autoscaler_wish{reason="asked",group="gpu"} 0',
        'minicluster_autoscaler_wish{reason="min",group="gpu"} 0',
        'minicluster_autoscaler_wish{reason="queue",group="spot"} 0',
        'minicluster_autoscaler_wish{reason="asked",group="spot"} 0',
        'minicluster_autoscaler_wish{reason="min",group="spot"} 0',
    ]


@pytest.mark.parametrize("least", [0, 1])
def test_a_group_without_quota_shrinks_to_its_least_size_and_another_one_takes_the_jobs(
    grouped: Setup, capsys: pytest.CaptureFixture[str], least: int
) -> None:
    spot = {**GROUPS[1], "policy": {"min": least, "max": 3, "priority": 1}}
    grouped.settings(max_size=2, groups=[GROUPS[0], spot], policy={**POLICY, "max": 2})
    kube = grouped.kube.of_group("spot")
    kube.size, kube.parallelism, kube.quota, kube.suspended = 2, None, 0, True
    grouped.flux.used = {0: (1, 0)}
    for number in (1, 2):
        grouped.flux.submit(number)
    grouped.at(*range(0, 120, 10))
    assert sizes(grouped) == [2, 0 if least else 1, least]
    assert [line for line in said(capsys) if "quota" in line][-1] == (
        "group spot: size 2 -> 1: Kueue has no quota for 2 of its pods"
        if least
        else "group spot: size 1 -> 0: Kueue has no quota for 1 of its pods"
    )
