"""Charts of others with a MiniCluster of flux-operator, installed and changed in a cluster without flux-operator."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import Helm, chart_of_others

from tools.clients import Done
from tools.releases import Release

VALUES = {"size": 2, "maxSize": 3, "containers": [{"image": "ubuntu:noble", "command": "sleep inf"}]}


@pytest.fixture
def other(release: Release, tmp_path: Path) -> Release:
    """Return a release of another chart, whose values are the spec of its MiniCluster."""
    template = (
        "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: mc}\nspec: {{ toJson .Values }}\n"
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n"
    )
    folder = chart_of_others(tmp_path / "other", template)
    return dataclasses.replace(release, chart=folder)


def test_an_upgrade_scales_it_and_keeps_its_certificate(other: Release) -> None:
    other.install(**VALUES)
    uids = other.running(2)
    certificate = other.certificate()
    other.upgrade(size=3)
    assert other.running(3).items() >= uids.items()
    assert other.certificate() == certificate
    other.ok("rollback", "1")
    assert other.running(2) == uids
    assert other.certificate() == certificate
    other.uninstall()
    assert [one for one in other.items() if one["kind"] != "Secret" or "helm" not in one["type"]] == []


def test_it_has_what_this_version_of_kubernetes_can_do(other: Release, release: Release) -> None:
    other.install(**VALUES)
    release.name = "own"
    release.install(**VALUES)

    def abilities(name: str) -> list[Any]:
        spec = release.get("job", name)["spec"]
        views = [volume.get("image") for volume in spec["template"]["spec"]["volumes"]]
        return [views, *(spec.get(key) for key in ("successPolicy", "backoffLimitPerIndex", "podReplacementPolicy"))]

    assert abilities("mc") == abilities(release.name)
    assert any(abilities("mc")[0])


def test_other_changes_are_refused_by_name_and_change_nothing(other: Release) -> None:
    other.install(**VALUES)
    uids = other.running(2)
    before = other.objects()
    said = other.refuse(containers=[{"image": "other", "command": "sleep inf"}])
    assert "containers[0].image can't change on the live MiniCluster mc: it is ubuntu:noble, asked is other" in said
    assert "size is 4, maxSize 3" in other.refuse(size=4)
    assert other.objects() == before
    assert other.running(2) == uids


def test_dry_runs_change_nothing(other: Release) -> None:
    other.install(**VALUES)
    before = other.objects()
    for words in (("--dry-run=server",), ("--dry-run=client",)):
        done: Done = other.run("upgrade", *words, values={"size": 3})
        assert done.code == 0, done.both
    assert other.objects() == before


def test_a_user_of_the_namespace_installs_it(user: Helm, other: Release) -> None:
    other.cluster.grant(other.namespace, "edit")
    other.helm = user
    other.install(**VALUES)
    other.running(2)
    other.upgrade(size=3)
    other.running(3)


def test_scale_refuses_a_release_of_another_chart(other: Release) -> None:
    other.install(**VALUES)
    done = other.cluster.run("minicluster", "scale", "mc", "3", "-n", other.namespace)
    assert done.code == 1
    assert "the release mc is of the chart other" in done.err


CHARTS = Path(os.environ.get("MINICLUSTER_TEST_CHARTS", "/nonexistent"))


def _charts() -> list[Any]:
    found = sorted(file.parent for file in CHARTS.glob("*/Chart.yaml") if (file.parent / "templates").is_dir())
    charts = [chart for chart in found if yaml.safe_load((chart / "Chart.yaml").read_text()).get("type") != "library"]
    skip = pytest.mark.skip(reason="set MINICLUSTER_TEST_CHARTS to a folder of charts with MiniClusters")
    return [pytest.param(chart, id=chart.name) for chart in charts] or [pytest.param(None, marks=skip, id="none")]


@pytest.mark.parametrize("chart", _charts())
def test_a_published_chart_installs(release: Release, chart: Path) -> None:
    other = dataclasses.replace(release, chart=chart)
    if "kind: MiniCluster" not in release.helm.ok("template", "mc", chart):
        pytest.skip("it has no MiniCluster")
    other.install()
    size = sum(job["spec"]["completions"] for job in other.items("jobs"))

    def pods() -> set[str]:
        brokers = "--selector=app.kubernetes.io/component=broker"
        return {pod["metadata"]["uid"] for pod in other.items("pods", brokers)}

    # those with GPUs wait for a node that has some
    other.cluster.wait(f"{size} pods", lambda: len(pods()) == size > 0)
    uids = pods()
    other.upgrade()
    assert pods() == uids
    other.uninstall()
    assert other.items("jobs") == []
