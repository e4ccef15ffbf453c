"""The PrometheusRule: when it is made, and what fires by promtool's own tests (alerts.yaml)."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import Helm, by_name

HERE = Path(__file__).parent
API = ("--api-versions", "monitoring.coreos.com/v1/PrometheusRule")
ON: dict[str, Any] = {
    "metrics": {"enabled": True, "rules": {"enabled": True, "labels": {"release": "p"}}},
    "state": {"capacity": "1Gi"},
}


def rule(helm: Helm, values: dict[str, Any] = ON, *words: str) -> dict[str, Any] | None:
    return by_name(helm.template(*(words or API), values=values)).get(("PrometheusRule", "flux-sample"))


@pytest.mark.any_helm
def test_the_rule_is_made_if_it_is_on_and_the_cluster_has_its_api(helm: Helm) -> None:
    assert rule(helm, {"metrics": {"enabled": True}}) is None
    assert rule(helm, {"metrics": {"rules": {"enabled": True}}}) is None
    assert rule(helm, ON, "--api-versions", "monitoring.coreos.com/v1/PodMonitor") is None
    made = rule(helm)
    assert made
    assert made["metadata"]["labels"]["release"] == "p"
    (group,) = made["spec"]["groups"]
    assert group["name"] == "minicluster ns/flux-sample"
    assert [one["alert"].removeprefix("MiniCluster") for one in group["rules"]] == [
        *("HasNoLead", "AgentFails", "NodesAreMissing", "QueueStands", "StateIsFull"),
    ]
    without = rule(helm, {"metrics": ON["metrics"]})
    assert without
    assert without["spec"]["groups"][0]["rules"] == group["rules"][:4]


@pytest.mark.any_helm
def test_alerts_fire_as_promtools_tests_have_it(helm: Helm, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("promtool is missing: make .tools/bin/promtool")
    made = rule(helm)
    assert made
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": made["spec"]["groups"]}))
    shutil.copy(HERE / "alerts.yaml", tmp_path)
    done = subprocess.run(
        [promtool, "test", "rules", "alerts.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
