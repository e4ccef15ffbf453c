"""What an upgrade does about a change that a live Job takes or not; the live objects are a file of the chart."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from minicluster.render import defaults, kept, upgrade
from renderings import probe_chart
from support import CHART, Helm, deep, one

#: Prints what the chart decided, and the Job.
PROBE = """{{- $_ := set . "lookups" (.Files.Get "files/live.json" | fromJson) -}}
{{- include "minicluster.defaults" . -}}
{{- include "minicluster.refuseChange" . -}}
{{- $changes := "{}" -}}
{{- if ne (include "minicluster.foundValues" .) "{}" }}{{ $changes = include "minicluster.changes" . }}{{ end -}}
kind: Probe
metadata: {name: probe}
{{ include "minicluster.decision" . | fromJson | toYaml }}
changes: {{ $changes | quote }}
handed: {{ include "minicluster.installed" . | quote }}
others: {{ include "minicluster.others" . | quote }}
kept: {{ include "minicluster.keptSpecs" . | quote }}
wanted: {{ include "minicluster.wantedJobs" . | quote }}
---
kind: Job
{{ include "minicluster.job" . }}
"""
NEW = ("--kube-version", "1.36.3", "--api-versions", "batch/v1/Job")
OLD = ("--kube-version", "1.35.4", "--api-versions", "batch/v1/Job")
BASE: dict[str, Any] = {
    "size": 2,
    "interactive": True,
    "state": {"claimName": "s"},
    "containers": [{"name": "app"}],
    "flux": {"curveCertSecret": "c"},
}
REPLACE = {"upgrade": {"replace": True}}
CPUS = {"containers": [{"name": "app", "resources": {"limits": {"cpu": 3}}}]}
POOL = {"pod": {"nodeSelector": {"pool": "a"}}}
IMAGE = {"containers": [{"name": "app", "image": "other"}]}
GROUP: dict[str, Any] = {"groups": [{"name": "g"}]}
SUSPENDED = {"spec": {"suspend": True}, "status": {"conditions": [{"type": "Suspended", "status": "True"}]}}
RAN = deep(SUSPENDED, {"status": {"startTime": "then"}})
ENDING = deep(SUSPENDED, {"status": {"active": 1}})
COMPLETE = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
FAILED = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
DELETED = {"metadata": {"deletionTimestamp": "now"}}
Probe = Callable[..., Any]


@pytest.fixture
def probe(helm4: Helm, tmp_path: Path) -> Probe:
    """Render an upgrade of a release that was installed with values, and whose Jobs have changed since."""
    chart = probe_chart(tmp_path / "minicluster", PROBE)

    def jobs(installed: Mapping[str, Any], options: tuple[str, ...]) -> dict[str, Any]:
        wanted = json.loads(rendered(installed, {}, options)["wanted"])["jobs"]
        text = helm4.ok("template", "mc", CHART, *options, "--values", "-", stdin=json.dumps(installed))
        made = {name: one(text, "Job", name) for name in wanted}
        return {f"Job/{name}": json.dumps(job) for name, job in made.items()}

    def rendered(values: Mapping[str, Any], live: Mapping[str, Any], options: tuple[str, ...]) -> dict[str, Any]:
        (chart / "files" / "live.json").write_text(json.dumps(live))
        done = helm4.run("template", "mc", chart, *options, "--is-upgrade", "--values", "-", stdin=json.dumps(values))
        if done.code:
            return {"error": done.both}
        found, job = one(done.out, "Probe"), one(done.out, "Job")
        stays = kept.load(found).get(("default", job["metadata"]["name"]))
        return {**found, "job": kept.as_kept(job, stays) if stays else job}

    def probe(
        asked: Mapping[str, Any],
        now: Mapping[str, Any] | None = None,
        was: Mapping[str, Any] | None = None,
        options: tuple[str, ...] = NEW,
        gone: Sequence[str] = (),
    ) -> dict[str, Any]:
        installed = deep(BASE, was or {})
        live = {key: text for key, text in jobs(installed, options).items() if key not in gone}
        live = {key: json.dumps(deep(json.loads(text), now or {})) for key, text in live.items()}
        found = rendered(deep(installed, asked), live, options)
        return {**found, "live": {key: json.loads(text) for key, text in live.items()}}

    return probe


@pytest.mark.parametrize(
    ("asked", "now", "options", "change"),
    [
        (CPUS, {}, NEW, ""),
        (CPUS, SUSPENDED, NEW, "place"),
        (CPUS, RAN, NEW, "place"),
        (POOL, SUSPENDED, OLD, "place"),
        (deep(CPUS, POOL), RAN, NEW, "place"),
        (deep(IMAGE, POOL), SUSPENDED, NEW, ""),
        (CPUS, deep(SUSPENDED, DELETED), NEW, "error"),
        (REPLACE, {}, NEW, ""),
        (deep(REPLACE, {"size": 1}), {}, NEW, ""),
        (deep(REPLACE, CPUS), SUSPENDED, NEW, "place"),
        (deep(REPLACE, CPUS), SUSPENDED, OLD, "replace"),
        (deep(REPLACE, CPUS), {}, NEW, "replace"),
        (deep(REPLACE, IMAGE), SUSPENDED, NEW, "replace"),
        (deep(REPLACE, {"maxSize": 9}), {}, NEW, "replace"),
        (deep(REPLACE, {"metrics": {"enabled": True}}), {}, NEW, "replace"),
        (deep(REPLACE, {"autoscaling": {"enabled": True}}), {}, NEW, "replace"),
        (deep(REPLACE, IMAGE), FAILED, NEW, "replace"),
        (deep(REPLACE, IMAGE), COMPLETE, NEW, "error"),
        (REPLACE, DELETED, NEW, "replace"),
        (deep(REPLACE, {"state": {"claimName": "t"}}), {}, NEW, "error"),
    ],
    ids=str,
)
def test_a_change_is_refused_or_made_in_place_or_by_a_new_job(
    probe: Probe, asked: dict[str, Any], now: dict[str, Any], options: tuple[str, ...], change: str
) -> None:
    found = probe(asked, now, options=options)
    assert ("error" if "error" in found else found["change"]) == change, found
    if change != "error":
        # the post-renderer refuses what is left
        assert bool(found["handed"]) == (change == "")


@pytest.mark.parametrize(
    ("asked", "now", "options", "hint"),
    [
        (CPUS, SUSPENDED, OLD, "Kubernetes 1.36 can change it while the MiniCluster is suspended, this is v1.35.4"),
        (POOL, RAN, OLD, "Kubernetes 1.36 can change it while the MiniCluster is suspended, this is v1.35.4"),
        (CPUS, ENDING, NEW, "its pods are still ending, and it can change when they are gone"),
        (IMAGE, SUSPENDED, OLD, ""),
    ],
    ids=str,
)
def test_a_refusal_says_what_the_version_or_the_pods_do_not_allow(
    probe: Probe, asked: dict[str, Any], now: dict[str, Any], options: tuple[str, ...], hint: str
) -> None:
    found = probe(asked, now, options=options)
    assert (found["change"], found["hint"]) == ("", hint)
    installed = upgrade.load(found["handed"])
    assert installed
    assert installed.hint == hint


def test_a_change_in_place_is_that_of_the_allowed_fields_alone(probe: Probe) -> None:
    where = {"nodeSelector": {"pool": "a"}, "tolerations": [{"key": "x"}], "nodeAffinity": {"k": ["v"]}}
    other = {"spec": {"template": {"spec": {"subdomain": "of-an-api-server"}}}}
    found = probe(
        deep(CPUS, {"pod": {**where, "labels": {"l": "m"}, "annotations": {"n": "o"}}}), deep(SUSPENDED, other)
    )
    was, new = found["live"]["Job/mc"]["spec"]["template"], found["job"]["spec"]["template"]
    assert (new["metadata"]["labels"].pop("l"), new["metadata"]["annotations"].pop("n")) == ("m", "o")
    assert new["metadata"] == was["metadata"]
    assert new["spec"].pop("nodeSelector") == {"pool": "a"}
    assert new["spec"].pop("tolerations") == [{"key": "x"}]
    assert new["spec"]["affinity"].pop("nodeAffinity")
    assert new["spec"]["containers"][0].pop("resources") == {"limits": {"cpu": 3}}
    assert [init.pop("resources", {}) for init in new["spec"].get("initContainers", [])] in ([], [{}])
    assert new["spec"] == was["spec"]
    record = json.loads(found["job"]["metadata"]["annotations"]["minicluster/immutable"])
    assert (record["pod.nodeSelector.pool"], record["containers[0].resources.limits.cpu"]) == ("a", "3")


def test_a_replacement_keeps_max_size_and_removes_the_jobs_of_all_groups(probe: Probe) -> None:
    was = deep(GROUP, {"size": 3, "groups": [{"name": "g", "size": 2}, {"name": "h"}]})
    found = probe(deep(deep(REPLACE, IMAGE), {"size": 1, "groups": [{"name": "g"}]}), was=was)
    wanted = json.loads(found["wanted"])["jobs"]
    assert (found["change"], list(wanted), wanted["mc-h"]) == ("replace", ["mc", "mc-g", "mc-h"], None)
    record = json.loads(wanted["mc"]["minicluster/immutable"])
    assert (record["maxSize"], record["groups[0].maxSize"]) == ("3", "2")
    assert wanted["mc"].items() <= found["job"]["metadata"]["annotations"].items()


SIZED: dict[str, Any] = {"groups": [{"name": "g", "size": 3}]}
LEFT = "the Job mc-g is left of the former mc, whose values were others"
WAY = "`kubectl delete job mc-g`, then upgrade again"


@pytest.mark.parametrize(
    ("was", "asked", "now", "error"),
    [
        (GROUP, {}, SUSPENDED, ""),
        (GROUP, {"size": 1, "deadlineSeconds": 9}, {}, ""),
        # the group keeps its maxSize
        (SIZED, GROUP, {}, ""),
        (GROUP, {"groups": [{"name": "other"}]}, {}, ""),
        (GROUP, deep(REPLACE, IMAGE), {}, ""),
        (GROUP, IMAGE, SUSPENDED, f"{LEFT} (containers[0].image): {WAY}"),
        (GROUP, {"groups": [{"name": "g", "maxSize": 2}]}, {}, f"{LEFT} (maxSize): {WAY}"),
        (
            GROUP,
            {},
            {"metadata": {"annotations": {"minicluster/version": "0.0.9"}}},
            f"{LEFT} (version 0.0.9 of the chart): {WAY}",
        ),
    ],
    ids=str,
)
def test_a_group_whose_cluster_is_gone_stays_or_is_in_the_way(
    probe: Probe, was: dict[str, Any], asked: dict[str, Any], now: dict[str, Any], error: str
) -> None:
    found = probe(asked, now, was, gone=["Job/mc"])
    assert error in found.get("error", "")
    assert bool(error) == ("error" in found), found


@pytest.mark.parametrize(
    "asked",
    [
        {},
        deep(IMAGE, {"maxSize": 9}),
        {"pod": {"nodeSelector": {"a.b/c": ""}, "tolerations": [], "labels": {}}},
        {"containers": [{"name": "app", "command": "x" * 99, "resources": {}}]},
        {"flux": {"logLevel": 7}, "logging": {"quiet": True}, "groups": []},
    ],
    ids=str,
)
def test_chart_and_post_renderer_find_the_same_changes(probe: Probe, asked: dict[str, Any]) -> None:
    found = probe(asked)
    installed = upgrade.load(found["handed"])
    assert installed
    changes = upgrade.changes(installed.was, installed.asked, dict(upgrade.flat(defaults.values())))
    assert sorted(json.loads(found["changes"])) == [path for path, _, _ in changes]
    assert bool(json.loads(found["changes"])) == (asked not in ({}, {"pod": {"tolerations": []}}))
