"""What the events of kubectl's watches make of a Job and its pods."""

import json
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from live_kubectl import Kubectl
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.kubectl_stream import after_event
from minicluster.kube.port import Sight


def thing(kind: str, uid: str, version: int) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"uid": uid, "resourceVersion": str(version)}}


def event(kind: str, found: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": found}).encode() + b"\n"


JOB, ONE, TWO = thing("Job", "j", 10), thing("Pod", "1", 8), thing("Pod", "2", 12)
BEFORE = Sight(JOB, {"items": [ONE]})


@pytest.mark.parametrize(
    ("events", "job", "pods"),
    [
        ([("MODIFIED", thing("Job", "j", 11))], thing("Job", "j", 11), [ONE]),
        ([("MODIFIED", thing("Job", "j", 100))], thing("Job", "j", 100), [ONE]),
        ([("DELETED", thing("Job", "j", 11))], {}, [ONE]),
        # another Job of this name
        ([("ADDED", thing("Job", "k", 9))], thing("Job", "k", 9), [ONE]),
        ([("ADDED", TWO)], JOB, [ONE, TWO]),
        ([("MODIFIED", thing("Pod", "1", 9))], JOB, [thing("Pod", "1", 9)]),
        ([("ADDED", TWO), ("DELETED", thing("Pod", "1", 13))], JOB, [TWO]),
        ([("DELETED", thing("Pod", "3", 13))], JOB, [ONE]),
    ],
)
def test_events_change_what_is_known(events: list[Any], job: dict[str, Any], pods: list[Any]) -> None:
    assert after_event(BEFORE, [event(*one) for one in events]) == Sight(job, {"items": pods})


def test_what_a_watch_begins_with_is_no_news() -> None:
    assert after_event(BEFORE, [event("ADDED", JOB), event("ADDED", thing("Pod", "1", 7))]) is BEFORE


def test_after_an_error_all_is_read_anew() -> None:
    assert after_event(BEFORE, [event("ADDED", TWO), event("ERROR", {"kind": "Status", "code": 410})]) is None


def test_what_the_watches_tell_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = Kubectl(tmp_path)
    world.has(job=JOB, pods={"items": [ONE]})
    lines = [event("ADDED", JOB), event("MODIFIED", thing("Job", "j", 11)), event("DELETED", thing("Job", "j", 12))]
    (tmp_path / "events").write_bytes(b"".join(lines))
    script = (tmp_path / "kubectl").read_text()
    slow = """*" get job "*" --watch "*)
  while read -r line; do echo "$line"; sleep 0.3; done <"$folder/events"; sleep 60 ;;
*" --watch "*) sleep 60 ;;
"""
    (tmp_path / "kubectl").write_text(script.replace('case " $* " in\n', f'case " $* " in\n{slow}', 1))
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    with closing(Kubernetes(namespace="lab").sights("mini", "a=b")) as sights:
        seen = [sight.job for sight in islice(sights, 3)]
    assert seen == [JOB, thing("Job", "j", 11), {}]
    read = [line for line in world.asked() if "--watch" not in line]
    assert [line.split()[2:4] for line in read] == [["job", "mini"], ["pods", "--selector=a=b"]]
