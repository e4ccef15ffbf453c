"""Charts of others with a MiniCluster of flux-operator run on a real Kubernetes without flux-operator."""

import json
from pathlib import Path
from typing import Any

import pytest
from real_cluster import IN_PODS
from support import Helm, chart_of_others

from tools import tenant, testbed
from tools.clients import until
from tools.releases import FluxRelease

pytestmark = IN_PODS
TEMPLATE = "{{ toYaml .Values.document }}"


def document(**spec: Any) -> dict[str, Any]:
    images = testbed.images()
    runner = {**images["containers"][0], "runFlux": True, **spec.pop("runner", {})}
    return {
        "apiVersion": "flux-framework.org/v1alpha2",
        "kind": "MiniCluster",
        "metadata": {"name": testbed.NAME},
        "spec": {
            "logging": {"quiet": True},
            "containers": [runner],
            "pod": {"labels": tenant.LABELS},
            "flux": images.get("flux", {}),
            **spec,
        },
    }


@pytest.mark.parametrize(("command", "code"), [("hostname", 0), ("false", 1)])
def test_its_work_runs_and_the_job_has_its_exit_code(helm: Helm, tmp_path: Path, command: str, code: int) -> None:
    with testbed.new_namespace() as namespace:
        given = document(size=2, tasks=2, runner={"command": command})
        release = testbed.release(namespace, {"document": given}, tmp_path, helm.name)
        release.chart = chart_of_others(tmp_path / "other", TEMPLATE)
        release.install()
        assert ("Complete" in release.wait_for_end()) is (code == 0)
        assert release.lead_codes() == [code]
        if not code:
            assert sorted(release.log(0).split()) == ["mini-0", "mini-1"]
        release.uninstall()


def test_an_upgrade_grows_it_under_a_job(helm: Helm, tmp_path: Path) -> None:
    with testbed.new_namespace() as namespace:
        given = document(size=1, maxSize=2, interactive=True)
        release: FluxRelease = testbed.release(namespace, {"document": given}, tmp_path, helm.name)
        release.chart = chart_of_others(tmp_path / "other", TEMPLATE)
        release.install()
        release.wait_for("0")
        job = release.flux(0, "submit", "sleep", "inf").strip()
        release.upgrade(document=document(size=2, maxSize=2, interactive=True))
        release.wait_for("0-1")

        def states() -> str:
            return release.flux(0, "jobs", "-no", "{id.f58} {state}").strip()

        until(lambda: states() == f"{job} RUN", what="the job that still runs")
        assert json.loads(release.flux(0, "exec", "-r", "all", "printf", "1")) == 11
