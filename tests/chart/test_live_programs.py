"""Which ConfigMap the pods' programs are in, by what is live; the live objects are a file of the chart."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from minicluster.release.helm import version
from renderings import probe_chart
from support import Helm, one

#: Two MiniClusters of a release, as aliases of a sub-chart are: they have the same `Release`.
PROBE = """{{- $_ := set . "lookups" (.Files.Get "files/live.json" | fromJson) -}}
{{- include "minicluster.defaults" . -}}
kind: Probe
metadata: {name: probe}
first: {{ include "minicluster.allPrograms" . }}
second: {{ include "minicluster.allPrograms" . }}
volume:
  {{- include "minicluster.configVolume" . | nindent 2 }}
"""
NOW = version()
DATA = {"entrypoint.sh": "text\n"}
VALUES = {"groups": [{"name": "g"}]}
OWN = {"configMap": {"name": "mc-config", "defaultMode": 365}}
Probe = Callable[..., dict[str, Any]]


def job(volume: dict[str, Any]) -> dict[str, Any]:
    annotations = {"minicluster/immutable": "{}", "minicluster/version": NOW}
    volumes = [{"name": "minicluster", "emptyDir": {}}, {"name": "minicluster-config", **volume}]
    return {"metadata": {"annotations": annotations}, "spec": {"template": {"spec": {"volumes": volumes}}}}


def shared(name: str, *, slurm: bool = True) -> dict[str, Any]:
    commands = [{"configMap": {"name": f"{name}-slurm", "optional": True}}] if slurm else []
    sources = [{"configMap": {"name": name}}, *commands, {"configMap": {"name": "mc-config"}}]
    return {"projected": {"defaultMode": 365, "sources": sources}}


def configmap(of: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {"minicluster/version": of}}, "data": DATA}


@pytest.fixture
def probe(helm: Helm, tmp_path: Path) -> Probe:
    """Return what the chart says with live objects of the release rel, whose MiniCluster mc has a group."""
    chart = probe_chart(tmp_path / "minicluster", PROBE)

    def ask(values: Any = None, **live: Any) -> dict[str, Any]:
        names = {"own": "Job/mc", "group": "Job/mc-g"}
        names |= {"programs": "ConfigMap/rel-programs", "slurm": "ConfigMap/rel-programs-slurm"}
        found = {names.get(name, name): json.dumps(thing) for name, thing in live.items()}
        (chart / "files" / "live.json").write_text(json.dumps(found))
        given = json.dumps({"nameOverride": "mc", **VALUES, **(values or {})})
        return one(helm.ok("template", "rel", chart, "--is-upgrade", "--values", "-", stdin=given), "Probe")

    return ask


def named(name: str = "rel-programs", of: str = NOW, files: bool = False, more: Any = None) -> dict[str, str]:
    data = DATA | (more or {})
    handed = {"files": base64.b64encode(json.dumps(data, separators=(",", ":")).encode()).decode()}
    return {"name": name, "version": of, **(handed if files else {})}


@pytest.mark.parametrize("live", [{}, {"programs": configmap(NOW)}], ids=["none", "of this version"])
def test_a_new_cluster_has_the_programs_of_its_release(probe: Probe, live: Any) -> None:
    found = probe(**live)
    # no live pod runs them: they are rendered anew
    assert found["first"] == [named()]
    assert found["volume"] == [{"name": "minicluster-config", **shared("rel-programs")}]


def test_a_new_cluster_has_programs_beside_those_of_another_version(probe: Probe) -> None:
    found = probe(programs=configmap("0.0.9+a"))
    assert found["first"] == [named(f"rel-programs-{NOW}")]
    assert found["volume"] == [{"name": "minicluster-config", **shared(f"rel-programs-{NOW}")}]


def test_a_live_cluster_keeps_the_programs_that_it_mounts_and_one_document_has_them(probe: Probe) -> None:
    live = job(shared("rel-programs"))
    found = probe(own=live, group=live, programs=configmap("0.0.9"))
    assert found["first"] == [named(of="0.0.9", files=True)]
    assert found["second"] == [named(of="0.0.9")]
    assert found["volume"] == [{"name": "minicluster-config", **shared("rel-programs")}]


def test_a_live_cluster_keeps_slurms_commands_if_its_version_had_them(probe: Probe) -> None:
    commands = configmap("0.0.9") | {"data": {"slurm.py": "text\n"}}
    with_them, without = shared("rel-programs"), shared("rel-programs", slurm=False)
    for volume, live, more in ((with_them, {"slurm": commands}, commands["data"]), (without, {}, {})):
        found = probe(own=job(volume), group=job(volume), programs=configmap("0.0.9"), **live)
        assert found["first"] == [named(of="0.0.9", files=True, more=more)]
        assert found["volume"] == [{"name": "minicluster-config", **volume}]


def test_a_live_cluster_of_an_older_version_keeps_its_volume(probe: Probe) -> None:
    live = job(OWN)
    found = probe(own=live, group=live, programs=configmap("0.0.9"))
    assert found["first"] == [named("")]
    assert found["volume"] == [{"name": "minicluster-config", **OWN}]


def test_the_live_group_of_a_job_that_is_gone_keeps_what_it_mounts(probe: Probe) -> None:
    found = probe(group=job(shared("rel-programs")), programs=configmap("0.0.9"))
    assert sorted(found["first"], key=lambda each: each["name"]) == [
        named(of="0.0.9", files=True),
        named(f"rel-programs-{NOW}"),
    ]
    older = probe(group=job(OWN))
    assert sorted(older["first"], key=lambda each: each["name"]) == [named(""), named()]


def test_a_cluster_whose_jobs_are_made_anew_is_a_new_one(probe: Probe) -> None:
    live = job(shared("rel-programs"))
    replaced = {"upgrade": {"replace": True}, "tasks": 7}
    assert probe(replaced, own=live, group=live, programs=configmap(NOW))["first"] == [named()]
    assert probe(replaced, own=live, group=live, programs=configmap("0.0.9"))["first"] == [named(f"rel-programs-{NOW}")]
    assert probe(replaced, own=job(OWN), group=job(OWN))["first"] == [named()]


def test_programs_that_somebody_removed_are_not_handed_over(probe: Probe) -> None:
    live = job(shared("rel-programs"))
    assert probe(own=live, group=live)["first"] == [named()]
