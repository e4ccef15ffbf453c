"""MiniClusters that are added to a live release, renamed, or left without a Job."""

from pathlib import Path
from typing import Any

import pytest
from support import chart_of_others, lines_with, umbrella

from tools.clients import until
from tools.releases import Release

LOOP = """
{{- range .Values.names }}
---
apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata:
  name: {{ $.Release.Name }}-{{ . }}
spec:
  size: 1
  containers:
  - image: ubuntu:noble
    command: hostname
{{- end }}
"""
RENAMED = "nameOverride can't change on the live MiniCluster"


def jobs(release: Release) -> dict[str, str]:
    """Return the UIDs of the Jobs that are not being deleted, by name."""
    found = (job["metadata"] for job in release.items("jobs"))
    return {one["name"]: one["uid"] for one in found if "deletionTimestamp" not in one}


def test_a_document_of_another_chart_is_added_and_removed(release: Release, tmp_path: Path) -> None:
    release.chart = chart_of_others(tmp_path / "many", LOOP)
    release.install(names=["a", "b"])
    before = jobs(release)
    assert set(before) == {"mc-a", "mc-b"}
    release.upgrade(names=["a", "b", "c"])
    added = jobs(release)
    assert set(added) == {"mc-a", "mc-b", "mc-c"}
    assert before.items() <= added.items()
    # one that comes while another one goes may be the same
    said = release.refuse(names=["a", "b", "d"])
    assert f"{RENAMED} mc-c: the new name is mc-d" in said
    assert jobs(release) == added
    release.upgrade(names=["a", "b"])
    until(lambda: jobs(release) == before, 30, "the end of a Job")
    release.upgrade(names=["a", "b", "d"])
    assert before.items() <= jobs(release).items()


def test_an_alias_is_turned_on_later(release: Release, tmp_path: Path) -> None:
    release.chart = umbrella(tmp_path / "umbrella", "first", "second", "third")
    parts: dict[str, Any] = {name: {"enabled": False, "nameOverride": name} for name in ("first", "second", "third")}
    release.install(**parts | {"first": {"nameOverride": "a", "enabled": True}})
    before = jobs(release)
    assert set(before) == {"a"}
    release.upgrade(second={"enabled": True, "nameOverride": "b"})
    added = jobs(release)
    assert set(added) == {"a", "b"}
    assert before.items() <= added.items()
    said = release.refuse(second={"enabled": True, "nameOverride": "c"})
    assert f"{RENAMED} b: the new name is c, and the queue of b would be lost; keep the name b" in said
    assert jobs(release) == added
    # one alias goes, and another one comes
    release.upgrade(second={"enabled": False, "nameOverride": "b"}, third={"enabled": True, "nameOverride": "d"})
    until(lambda: set(jobs(release)) == {"a", "d"}, 30, "the end of a Job")
    assert jobs(release)["a"] == before["a"]


@pytest.mark.any_helm
def test_a_document_is_added_beside_a_part_that_is_ours(release: Release, tmp_path: Path) -> None:
    release.chart = umbrella(tmp_path / "umbrella", "hpc")
    (release.chart / "templates" / "all.yaml").write_text(LOOP)
    release.install(names=[])
    before = jobs(release)
    release.upgrade(names=["a"])
    added = jobs(release)
    assert set(added) == {"mc", "mc-a"}
    said = release.refuse(names=["a"], hpc={"nameOverride": "other"})
    assert f"{RENAMED} mc: the new name is other" in said
    assert jobs(release) == added
    assert before.items() <= added.items()


def test_a_minicluster_comes_back_beside_the_job_of_a_group(release: Release) -> None:
    group = {"name": "gpu", "size": 2, "cores": 1}
    release.install(size=1, interactive=True, groups=[group])
    release.running(1)
    release.upgrade(groups=[{**group, "size": 0}])
    release.cluster.wait("a group without pods", lambda: release.get("job", "mc-gpu")["spec"]["suspend"])
    release.kubectl("delete", "job", "mc")
    left = jobs(release)
    assert set(left) == {"mc-gpu"}
    said = release.refuse(containers=[{"image": "ubuntu:jammy"}])
    assert lines_with(said, "the Job mc-gpu is left of the former mc, whose values were others (containers[0].image)")
    release.upgrade(groups=[{**group, "size": 1}])
    release.running(1)
    assert left.items() <= jobs(release).items()
    assert release.get("job", "mc-gpu")["spec"]["completions"] == 1
    # with other values, when it is gone too
    release.kubectl("delete", "job", "mc", "mc-gpu")
    release.upgrade(containers=[{"image": "ubuntu:jammy"}])
    release.running(1)
