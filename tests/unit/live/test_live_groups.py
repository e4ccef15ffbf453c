"""Groups in ``minicluster status``, ``list`` and ``scale``, from samples of Kubernetes' objects."""

import json
from dataclasses import replace
from typing import Any

import pytest
from fake_kube import forbidden
from minicluster.cluster.find import LiveCluster, find_by_name
from minicluster.cluster.pods import registered, size_of
from minicluster.cluster.reasons import with_reasons
from minicluster.kube.kubectl import Kubernetes
from minicluster.release.revisions import resize
from minicluster.status import listing
from minicluster.status.document import document
from minicluster.status.snapshot import snapshot
from minicluster.status.table import table
from status_samples import GATED, NOW, SETTINGS, flux, job, pod, waiting, workload

RECORD = {
    "groups[0].name": "gpu",
    "groups[0].maxSize": "3",
    "groups[1].name": "spot",
    "groups[1].maxSize": "2",
}


def group_job(name: str, size: int, **spec: Any) -> dict[str, Any]:
    found = job(size)
    labels = {"minicluster/group": name, "app.kubernetes.io/instance": "mini"}
    found["metadata"] |= {"name": f"mini-{name}", "labels": labels}
    found["spec"] |= {"parallelism": size} | spec
    return found


def group_pod(name: str, index: int, *state: Any) -> dict[str, Any]:
    found = pod(index, *state)
    found["metadata"]["labels"]["minicluster/group"] = name
    return found


JOBS = [group_job("gpu", 2), group_job("spot", 1, suspend=True)]
PODS = [group_pod("gpu", 0), pod(0), group_pod("gpu", 1, {"phase": "Pending"})]


QUEUED = {"labels": {"kueue.x-k8s.io/queue-name": "q"}}
BY_VALUE = {"annotations": {"minicluster/suspended": "the value suspend"}}


class Objects:
    """The objects of the MiniCluster mini."""

    def __init__(self, pods: list[Any] = PODS) -> None:
        self.pods = pods

    def get(self, kind: str, _: str, /) -> Any:
        return job(1, **RECORD) if kind == "job" else {}

    def select(self, kind: str, _: str, /) -> Any:
        return {"items": JOBS if kind == "jobs" else self.pods}


def found(objects: Objects | None = None) -> LiveCluster:
    mini = find_by_name(objects or Objects(), "mini")
    assert mini
    return mini


def test_a_minicluster_is_found_with_its_groups() -> None:
    mini = found()
    assert [one.name for one in mini.pods.values()] == ["mini-0-x"]
    assert [(one.name, one.size, one.first, one.max_size, sorted(one.pods)) for one in mini.groups] == [
        ("gpu", 2, 8, 3, [0, 1]),
        ("spot", 0, 11, 2, []),
    ]


@pytest.mark.parametrize(
    ("spec", "metadata", "size"),
    [
        ({"completions": 3, "parallelism": 3}, {}, 3),
        ({"completions": 3, "parallelism": 4}, {}, 3),
        ({"completions": 1, "parallelism": 1, "suspend": True}, {}, 0),
        ({"completions": 4, "parallelism": 0}, {}, 0),
        ({"completions": 3, "parallelism": 3, "suspend": True}, QUEUED, 3),
        ({"completions": 3, "parallelism": 0, "suspend": True}, QUEUED, 0),
        ({"completions": 3, "parallelism": 3, "suspend": True}, BY_VALUE, 3),
    ],
)
def test_a_group_without_pods_differs_from_one_that_is_held_back(
    spec: dict[str, Any], metadata: dict[str, Any], size: int
) -> None:
    assert size_of({"metadata": metadata, "spec": spec}) == size


def test_groups_are_read_in_the_order_of_their_ranks() -> None:
    assert registered({}) == {}
    many = {f"groups[{n}].{key}": text for n in range(11) for key, text in (("name", f"g{n}"), ("maxSize", str(n)))}
    assert list(registered(many).items()) == [(f"g{n}", n) for n in range(11)]


def test_status_counts_each_group_and_all_nodes() -> None:
    groups = [{"name": "gpu", "policy": {"min": 0, "max": 3, "priority": 0}}, {"name": "spot", "policy": None}]
    answer = json.dumps([SETTINGS | {"groups": groups}, flux(online="0,8", registered=13, drained={"8": "hot"})])
    status = document(snapshot(found(), NOW, lambda _: answer))
    assert status["nodes"] == {"up": 1, "drained": 1, "missing": 1, "notStarted": 10}
    assert status["groups"] == [
        {
            "name": "gpu",
            "size": 2,
            "maxSize": 3,
            "autoscaling": {"min": 0, "max": 3},
            "nodes": {"up": 0, "drained": 1, "missing": 1, "notStarted": 1},
        },
        {
            "name": "spot",
            "size": 0,
            "maxSize": 2,
            "autoscaling": None,
            "nodes": {"up": 0, "drained": 0, "missing": 0, "notStarted": 2},
        },
    ]
    assert (status["drained"], status["missing"]) == (
        [{"ranks": "8", "reason": "hot"}],
        [{"ranks": "9", "reason": "Pending"}],
    )
    assert status["bursts"] == {"registered": 0, "up": 0}
    # hosts of bursts come after those of the groups
    answer = json.dumps([SETTINGS | {"groups": groups}, flux(online="0,8,14", registered=16, drained={"8": "hot"})])
    with_bursts = document(snapshot(found(), NOW, lambda _: answer))
    assert with_bursts == {**status, "bursts": {"registered": 3, "up": 1}}
    assert table(status).splitlines()[6:9] == [
        "Groups       gpu: 2 of at most 3, autoscaling from 0 to 3: 0 up, 1 drained, 1",
        "             missing, 1 not started",
        "             spot: 0 of at most 2: 0 up, 0 drained, 0 missing, 2 not started",
    ]


def test_status_names_pods_and_failing_sidecars_of_groups_by_rank() -> None:
    web = {"name": "web", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 2}
    state = {"phase": "Running", "initContainerStatuses": [web]}
    pods = [pod(0, state), group_pod("gpu", 0, state), group_pod("spot", 1, waiting("ErrImagePull"))]
    status = document(snapshot(found(Objects(pods)), NOW, lambda _: "no JSON"))
    assert (status["pods"], status["nodes"]) == (
        [{"ranks": "0,8", "reason": "Running"}, {"ranks": "12", "reason": "Pending: ErrImagePull"}],
        None,
    )
    assert status["containers"] == [{"name": "web", "ranks": "0,8", "reason": "CrashLoopBackOff, 2 restarts"}]


def test_without_the_right_to_list_jobs_pods_tell_the_size_of_a_group() -> None:
    class Few(Objects):
        def select(self, kind: str, labels: str, /) -> Any:
            if kind == "jobs":
                raise forbidden("jobs")
            return super().select(kind, labels)

    assert [(one.name, one.size) for one in found(Few()).groups] == [("gpu", 2), ("spot", 0)]


def test_list_counts_the_pods_of_groups_and_shows_no_group_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    own = job(1, **RECORD)
    ready = [one | {"status": {"ready": count}} for one, count in zip((own, *JOBS), (1, 2, 0), strict=True)]
    monkeypatch.setattr(Kubernetes, "get", lambda *words: {"items": ready if words[1] == "jobs" else []})
    [row] = listing.find_all(Kubernetes(), everywhere=False, now=NOW)
    assert (row["name"], row["size"], row["ready"]) == ("mini", 3, 3)
    assert row["groups"] == {"gpu": 2, "spot": 0}
    assert listing.table([row], everywhere=False).splitlines()[1].split()[3:6] == ["gpu=2,spot=0", "3", "Starting"]


def test_a_resize_of_a_group_gives_helm_the_whole_list(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [{"name": "gpu", "size": 2, "pod": {"labels": {"a": 'it\'s "b"'}}}, {"name": "spot"}]
    answers = {"metadata": {"chart": "minicluster"}, "values": {"groups": groups, "size": 1}}
    asked: list[tuple[str, ...]] = []

    def helm(_: Kubernetes, *words: str) -> str:
        asked.append(words)
        return json.dumps(answers.get(words[1]))

    monkeypatch.setattr(Kubernetes, "helm", helm)
    resize(Kubernetes(), "mini", 4, "spot", print)
    option, values = asked[-1][4:6]
    assert (option, json.loads(values.removeprefix("groups="))) == (
        "--set-json",
        [groups[0], {"name": "spot", "size": 4}],
    )


def test_status_says_why_kueue_holds_the_nodes_of_a_group_back(monkeypatch: pytest.MonkeyPatch) -> None:
    held = group_job("gpu", 2, suspend=True)
    held["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "q"
    monkeypatch.setattr(f"{__name__}.JOBS", [held, JOBS[1]])
    mini = found(Objects([pod(0)]))
    assert (mini.groups[0].queue, mini.groups[0].is_suspended, mini.groups[0].size) == ("q", True, 2)
    mini = mini._replace(groups=[replace(mini.groups[0], why_held="no quota"), mini.groups[1]])
    groups = [{"name": "gpu", "policy": None}, {"name": "spot", "policy": None}]
    answer = json.dumps([SETTINGS | {"groups": groups}, flux(online="0", registered=13)])
    status = document(snapshot(mini, NOW, lambda _: answer))
    assert {"ranks": "8-9", "reason": "no quota"} in status["missing"]
    assert {"ranks": "8-9", "reason": "no quota"} in status["pods"]


def test_status_says_why_kueue_keeps_pods_of_a_group_gated(monkeypatch: pytest.MonkeyPatch) -> None:
    grows, gated = group_job("gpu", 2), group_pod("gpu", 1, {"phase": "Pending"}) | {"spec": GATED}
    grows["metadata"]["uid"] = "u-2"
    grows["metadata"]["labels"] |= QUEUED["labels"]
    monkeypatch.setattr(f"{__name__}.JOBS", [grows, JOBS[1]])
    held = workload(("QuotaReserved", "False", "no quota"))
    monkeypatch.setattr(Kubernetes, "get", lambda _, *words: {"items": [held] if "u-2" in words[-1] else []})
    mini = with_reasons(Kubernetes(), found(Objects([pod(0), group_pod("gpu", 0), gated])))
    gpu = mini.groups[0]
    assert (gpu.why_held, gpu.pods[0].why, gpu.pods[1].why) == ("", "Running", "Pending: waits for Kueue: no quota (R)")
