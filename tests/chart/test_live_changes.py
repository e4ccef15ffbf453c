"""What an upgrade does about a change that a live Job takes or not."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from batch import Batch, case
from minicluster.render import constants, handover, revision
from minicluster.render import upgrade as compared
from support import Helm, by_name, deep, one

from tools.clients import ProcessError

# one worker renders all
pytestmark = pytest.mark.xdist_group("live_changes")

#: Prints what the chart decided, and the Job.
PROBE = """{{- include "minicluster.defaults" . -}}
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


class Upgrade(NamedTuple):
    """What is asked of a release that was installed with values, and what its live Jobs are now."""

    asked: Mapping[str, Any]
    now: Mapping[str, Any] = {}
    was: Mapping[str, Any] = {}
    options: tuple[str, ...] = NEW
    #: Jobs that are no longer there
    gone: Sequence[str] = ()

    @property
    def installed(self) -> dict[str, Any]:
        """The values that it was installed with."""
        values: dict[str, Any] = deep(BASE, self.was)
        return values


CHANGES: list[tuple[Upgrade, str]] = [
    (Upgrade(CPUS), ""),
    (Upgrade(CPUS, SUSPENDED), "place"),
    (Upgrade(CPUS, RAN), "place"),
    (Upgrade(POOL, SUSPENDED, options=OLD), "place"),
    (Upgrade(deep(CPUS, POOL), RAN), "place"),
    (Upgrade(deep(IMAGE, POOL), SUSPENDED), ""),
    (Upgrade(CPUS, deep(SUSPENDED, DELETED)), "error"),
    (Upgrade(REPLACE), ""),
    (Upgrade(deep(REPLACE, {"size": 1})), ""),
    (Upgrade(deep(REPLACE, CPUS), SUSPENDED), "place"),
    (Upgrade(deep(REPLACE, CPUS), SUSPENDED, options=OLD), "replace"),
    (Upgrade(deep(REPLACE, CPUS)), "replace"),
    (Upgrade(deep(REPLACE, IMAGE), SUSPENDED), "replace"),
    (Upgrade(deep(REPLACE, {"maxSize": 9})), "replace"),
    (Upgrade(deep(REPLACE, {"metrics": {"enabled": True}})), "replace"),
    (Upgrade(deep(REPLACE, {"autoscaling": {"enabled": True}})), "replace"),
    (Upgrade(deep(REPLACE, IMAGE), FAILED), "replace"),
    (Upgrade(deep(REPLACE, IMAGE), COMPLETE), "error"),
    (Upgrade(REPLACE, DELETED), "replace"),
    (Upgrade(deep(REPLACE, {"state": {"claimName": "t"}})), "error"),
]
HINTS: list[tuple[Upgrade, str]] = [
    (
        Upgrade(CPUS, SUSPENDED, options=OLD),
        "Kubernetes 1.36 can change it while the MiniCluster is suspended, this is v1.35.4",
    ),
    (
        Upgrade(POOL, RAN, options=OLD),
        "Kubernetes 1.36 can change it while the MiniCluster is suspended, this is v1.35.4",
    ),
    (Upgrade(CPUS, ENDING), "its pods are still ending, and it can change when they are gone"),
    (Upgrade(IMAGE, SUSPENDED, options=OLD), ""),
]
SIZED: dict[str, Any] = {"groups": [{"name": "g", "size": 3}]}
LEFT = "the Job mc-g is left of the former mc, whose values were others"
WAY = "`kubectl delete job mc-g`, then upgrade again"


def left(asked: Mapping[str, Any], now: Mapping[str, Any] | None = None, was: Mapping[str, Any] = GROUP) -> Upgrade:
    """Return an upgrade of a cluster with a group, whose own Job is gone."""
    return Upgrade(asked, now or {}, was, gone=["Job/mc"])


LEFT_GROUPS: list[tuple[Upgrade, str]] = [
    (left({}, SUSPENDED), ""),
    (left({"size": 1, "deadlineSeconds": 9}), ""),
    # the group keeps its maxSize
    (left(GROUP, was=SIZED), ""),
    (left({"groups": [{"name": "other"}]}), ""),
    (left(deep(REPLACE, IMAGE)), ""),
    (left(IMAGE, SUSPENDED), f"{LEFT} (containers[0].image): {WAY}"),
    (left({"groups": [{"name": "g", "maxSize": 2}]}), f"{LEFT} (maxSize): {WAY}"),
    (
        left({}, {"metadata": {"annotations": {"minicluster/version": "0.0.9"}}}),
        f"{LEFT} (version 0.0.9 of the chart): {WAY}",
    ),
]
SAME: list[dict[str, Any]] = [
    {},
    deep(IMAGE, {"maxSize": 9}),
    {"pod": {"nodeSelector": {"a.b/c": ""}, "tolerations": [], "labels": {}}},
    {"containers": [{"name": "app", "command": "x" * 99, "resources": {}}]},
    {"flux": {"logLevel": 7}, "logging": {"quiet": True}, "groups": []},
]

Ask = Callable[[Upgrade], dict[str, Any]]


class Probe:
    """Renders upgrades of releases that were installed with values, and whose Jobs have changed since."""

    def __init__(self, helm: Helm, folder: Path, known: Sequence[Upgrade], options: tuple[str, ...]) -> None:
        """Render the known ones at once."""
        folders = folder / "installed", folder / "upgraded"
        self.installed = Batch(helm, folders[0], [release(one.installed) for one in known], *options)
        upgrades = [self.upgrade(one) for one in known]
        self.upgraded = Batch(helm, folders[1], upgrades, *options, "--is-upgrade", template=PROBE)

    def live(self, asked: Upgrade) -> dict[str, Any]:
        """Return the Jobs that are live at an upgrade."""
        made = by_name(self.installed.stream(release(asked.installed)))
        jobs = {f"{kind}/{name}": job for (kind, name), job in made.items() if kind == "Job"}
        return {key: deep(job, asked.now) for key, job in jobs.items() if key not in asked.gone}

    def upgrade(self, asked: Upgrade) -> dict[str, Any]:
        """Return an upgrade as a case."""
        lookups = {key: json.dumps(job) for key, job in self.live(asked).items()}
        return release(deep(asked.installed, asked.asked), lookups=lookups)

    def __call__(self, asked: Upgrade) -> dict[str, Any]:
        """Return what the chart decided, the Job, and the live ones; of a refusal its text."""
        try:
            text = self.upgraded.stream(self.upgrade(asked))
        except ProcessError as error:
            return {"error": str(error)}
        found, job = one(text, "Probe"), one(text, "Job")
        stays = handover.live_jobs(found).get(("default", job["metadata"]["name"]))
        return {**found, "job": revision.as_kept(job, stays) if stays else job, "live": self.live(asked)}


def release(values: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return case(values, release="mc", namespace="default", **more)


@pytest.fixture(scope="module")
def probe(helm4: Helm, tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Render an upgrade. Those that are refused are not known before: Helm stops at the first."""
    known = [
        *(upgrade for upgrade, change in CHANGES if change != "error"),
        *(upgrade for upgrade, _ in HINTS),
        *(upgrade for upgrade, error in LEFT_GROUPS if not error),
        *map(Upgrade, SAME),
    ]
    folder = tmp_path_factory.mktemp("batch")
    probes = {
        options: Probe(helm4, folder / options[1], [one for one in known if one.options == options], options)
        for options in (NEW, OLD)
    }
    return lambda upgrade: probes[upgrade.options](upgrade)


@pytest.mark.parametrize(("upgrade", "change"), CHANGES, ids=str)
def test_a_change_is_refused_or_made_in_place_or_by_a_new_job(probe: Ask, upgrade: Upgrade, change: str) -> None:
    found = probe(upgrade)
    assert ("error" if "error" in found else found["change"]) == change, found
    if change != "error":
        # the post-renderer refuses what is left
        assert bool(found["handed"]) == (change == "")


@pytest.mark.parametrize(("upgrade", "hint"), HINTS, ids=str)
def test_a_refusal_says_what_the_version_or_the_pods_do_not_allow(probe: Ask, upgrade: Upgrade, hint: str) -> None:
    found = probe(upgrade)
    assert (found["change"], found["hint"]) == ("", hint)
    installed = handover.installed(found["handed"])
    assert installed
    assert installed.hint == hint


def test_a_change_in_place_is_that_of_the_allowed_fields_alone(probe: Ask) -> None:
    where = {"nodeSelector": {"pool": "a"}, "tolerations": [{"key": "x"}], "nodeAffinity": {"k": ["v"]}}
    other = {"spec": {"template": {"spec": {"subdomain": "of-an-api-server"}}}}
    asked = deep(CPUS, {"pod": {**where, "labels": {"l": "m"}, "annotations": {"n": "o"}}})
    found = probe(Upgrade(asked, deep(SUSPENDED, other)))
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


def test_a_replacement_keeps_max_size_and_removes_the_jobs_of_all_groups(probe: Ask) -> None:
    was = deep(GROUP, {"size": 3, "groups": [{"name": "g", "size": 2}, {"name": "h"}]})
    found = probe(Upgrade(deep(deep(REPLACE, IMAGE), {"size": 1, "groups": [{"name": "g"}]}), was=was))
    wanted = json.loads(found["wanted"])["jobs"]
    assert (found["change"], list(wanted), wanted["mc-h"]) == ("replace", ["mc", "mc-g", "mc-h"], None)
    record = json.loads(wanted["mc"]["minicluster/immutable"])
    assert (record["maxSize"], record["groups[0].maxSize"]) == ("3", "2")
    assert wanted["mc"].items() <= found["job"]["metadata"]["annotations"].items()


@pytest.mark.parametrize(("upgrade", "error"), LEFT_GROUPS, ids=str)
def test_a_group_whose_cluster_is_gone_stays_or_is_in_the_way(probe: Ask, upgrade: Upgrade, error: str) -> None:
    found = probe(upgrade)
    assert error in found.get("error", "")
    assert bool(error) == ("error" in found), found


@pytest.mark.parametrize("asked", SAME, ids=str)
def test_chart_and_post_renderer_find_the_same_changes(probe: Ask, asked: dict[str, Any]) -> None:
    found = probe(Upgrade(asked))
    installed = handover.installed(found["handed"])
    assert installed
    changes = compared.changes(installed.was, installed.asked, dict(compared.flat(constants.default_values())))
    assert sorted(json.loads(found["changes"])) == [path for path, _, _ in changes]
    assert bool(json.loads(found["changes"])) == (asked not in ({}, {"pod": {"tolerations": []}}))
