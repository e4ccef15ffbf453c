"""Which objects of a release ``minicluster status`` finds."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_kubectl import FORBIDDEN, IDLE, NONE, Kubectl, asked, make_kubectl
from minicluster.cluster.job import read_job
from status_samples import job


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    return make_kubectl(tmp_path, monkeypatch)


def config(release: str = "mini", **metadata: Any) -> dict[str, Any]:
    """Return the ConfigMap of the MiniCluster mini, of a release."""
    return {
        "metadata": {
            "name": "mini-config",
            "namespace": "lab",
            "creationTimestamp": (datetime.now(UTC) - timedelta(minutes=90)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "labels": {"app.kubernetes.io/name": "minicluster", "app.kubernetes.io/instance": "mini"},
            "annotations": {"meta.helm.sh/release-name": release},
            **metadata,
        },
        "data": {"agent.json": json.dumps({"size": 4, "max_size": 8, "policy": None})},
    }


GONE = """\
MiniCluster  mini, namespace lab, age 1h30m
State        Gone: its Job ended and was cleaned up, or was deleted;
             `helm uninstall mini` removes the rest
Size         4 of at most 8
"""


def test_status_of_a_release_that_was_cleaned_up_is_gone(kubectl: Kubectl) -> None:
    done = kubectl("mini", **NONE, configmap=config())
    assert (done.exit_code, done.stdout, done.stderr) == (0, GONE, "")
    assert json.loads(kubectl("mini", "-o", "json", **NONE, configmap=config()).stdout)["state"] == "Gone"


@pytest.mark.parametrize("setting", ["mc_state_volume=1", "mc_archive=/data/state.tgz"])
def test_status_of_a_release_that_lost_its_job_says_how_it_comes_back(kubectl: Kubectl, setting: str) -> None:
    its = config()
    its["data"]["settings.sh"] = f"mc_archive=''\nmc_state_volume=''\n{setting}\n"
    shown = json.loads(kubectl("mini", "-o", "json", **NONE, configmap=its).stdout)
    assert (shown["state"], shown["why"]) == (
        "Gone",
        "its Job ended and was cleaned up, or was deleted; `minicluster replace mini` makes it anew and keeps the "
        "queue; `helm uninstall mini` removes the rest",
    )
    its["data"]["settings.sh"] = "mc_archive=''\nmc_state_volume=''\n"
    assert "minicluster replace" not in kubectl("mini", "-o", "json", **NONE, configmap=its).stdout


@pytest.mark.parametrize(
    "left",
    [config(labels={}), config() | {"data": {}}, FORBIDDEN.replace("jobs.batch", "configmaps")],
    ids=["no labels", "no files", "may not be read"],
)
def test_status_finds_no_minicluster_in_objects_that_are_not_its_own(kubectl: Kubectl, left: object) -> None:
    done = kubectl("mini", **NONE, configmap=left)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("minicluster: there is no MiniCluster mini in ")


def named(release: str, kind: str) -> dict[str, Any]:
    """Return a list of kubectl with objects of others and one of this release."""
    found = job() if kind == "jobs" else config()
    of_it = config(release)["metadata"]
    others = [{"metadata": {}}, {"metadata": {"annotations": {"meta.helm.sh/release-name": "x"}}}]
    return {
        kind: {
            "items": [
                *others,
                found
                | {
                    "metadata": found["metadata"]
                    | {"labels": of_it["labels"]}
                    | {"annotations": {**found["metadata"]["annotations"], **of_it["annotations"]}}
                },
            ]
        }
    }


@pytest.mark.parametrize("kind", ["jobs", "configmaps"])
def test_status_finds_a_minicluster_that_is_not_named_like_its_release(
    kubectl: Kubectl, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "pods.1").write_text('echo "{\\"items\\": []}"\n')
    (tmp_path / "job.1").write_text("\n")
    answers = named("release", kind) | ({"jobs": FORBIDDEN} if kind == "configmaps" else {})
    done = kubectl("release", "-n", "lab", **answers)
    assert (done.exit_code, done.stdout, done.stderr) == (0, IDLE, "")
    assert asked(tmp_path)[-3].split(" ")[1:4] == ["get", "job", "mini"]


def test_status_does_not_ask_flux_when_its_socket_is_disabled(kubectl: Kubectl, tmp_path: Path) -> None:
    done = kubectl("mini", job=job(**{"flux.disableSocket": "true"}))
    assert done.stdout.splitlines()[1] == "State        Running: flux.disableSocket is set, so Flux can't be asked"
    assert [line.split()[0] for line in asked(tmp_path)] == ["get", "get", "get"]
    assert "socket" not in kubectl("mini", job=job(**{"flux.disableSocket": "false"})).stdout


def test_a_job_without_our_annotations_is_not_read_as_a_minicluster() -> None:
    other = job()
    other["metadata"]["annotations"] = {}
    assert read_job(other) is None
