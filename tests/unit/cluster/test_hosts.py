"""What a person means by the name of a node, in a MiniCluster with groups."""

import pytest
from minicluster.cluster.find import Host, LiveCluster, find_host
from minicluster.cluster.job import read_job
from minicluster.cluster.pods import GroupNodes, read_pods
from minicluster.errors import StateError
from status_samples import job, pod

#: Eight hosts of its own; the name of the third group is also that of the cluster
GROUPS = [GroupNodes("gpu", 2, 8, 3, {}), GroupNodes("a-b", 1, 11, 1, {}), GroupNodes("mini", 2, 12, 2, {})]
MINI = LiveCluster("mini", {}, read_job(job()), GROUPS)
THERE = "there are 0 to 7, gpu-0 to gpu-2, a-b-0, mini-0 to mini-1"


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("0", "mini-0"),
        ("7", "mini-7"),
        ("mini-7", "mini-7"),
        # ranks of groups
        ("8", "mini-gpu-0"),
        ("10", "mini-gpu-2"),
        ("13", "mini-mini-1"),
        ("gpu-0", "mini-gpu-0"),
        ("mini-gpu-2", "mini-gpu-2"),
        ("a-b-0", "mini-a-b-0"),
        # the cluster's own, since that is its whole name
        ("mini-1", "mini-1"),
        ("mini-mini-1", "mini-mini-1"),
    ],
)
def test_a_node_is_meant_by_its_rank_or_its_name(text: str, host: str) -> None:
    assert str(find_host(MINI, text)) == host


def test_a_host_knows_its_pods() -> None:
    host = find_host(MINI, "gpu-1")
    assert host == Host("mini-gpu", "gpu", 1)
    assert host.labels == "batch.kubernetes.io/job-name=mini-gpu,batch.kubernetes.io/job-completion-index=1"
    assert (host.scaled(2), find_host(MINI, "mini-mini-1").scaled(3)) == ("mini gpu=2", "mini mini=3")
    assert find_host(MINI, "5").scaled(6) == "mini 6"
    assert [find_host(MINI, text).is_lead for text in ("0", "mini-0", "1", "gpu-0")] == [True, True, False, False]


@pytest.mark.parametrize(
    "text", ["14", "gpu", "gpu-3", "gpu-", "gpu-01", "gpu-1 ", "cpu-0", "mini-8", "-1", "08", "²", "1.0", "other-gpu-0"]
)
def test_what_is_no_node_is_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(StateError) as caught:
        find_host(MINI, text)
    assert str(caught.value) == f"mini has no node {text}: {THERE}"


def test_without_the_job_the_own_nodes_are_those_with_pods() -> None:
    found = LiveCluster("mini", read_pods({"items": [pod(0), pod(2)]}), None)
    assert str(find_host(found, "1")) == "mini-1"
    with pytest.raises(StateError) as caught:
        find_host(found, "gpu-0")
    why = "those of groups are unknown, because this user may not read its Job"
    assert str(caught.value) == f"mini has no node gpu-0: there are 0 to 2; {why}"
