"""`minicluster status` of MiniClusters on a real Kubernetes."""

import json
from pathlib import Path
from typing import Any

import yaml
from minicluster.flux import to_idset
from real_cluster import IN_PODS, Install
from support import as_in_schema

from tools.clients import KubernetesCluster, until
from tools.releases import STEP_SECONDS, FluxRelease, index_of
from tools.testbed import NAME

pytestmark = IN_PODS

THREE = {"size": 3, "maxSize": 5, "logging": {"quiet": True}}
TWO_CORES = {"cores": 2}


def status(cluster: FluxRelease, *options: str) -> str:
    """Return what the command prints."""
    return cluster.cluster.output("minicluster", "status", NAME, "-n", cluster.namespace, *options)


def found(cluster: FluxRelease) -> dict[str, Any]:
    """Return the JSON without the fields that differ each time."""
    document: dict[str, Any] = {}

    def is_known() -> bool:
        document.update(as_in_schema("status", json.loads(status(cluster, "-o", "json"))))
        # the lead notes Fluxion's version when the quorum is there
        return (document["scheduler"] or {}).get("version") != "" or document["state"] != "Running"

    until(is_known, STEP_SECONDS, "the version of the scheduler")
    assert document.pop("age") < 600
    assert document.pop("flux") or document["state"] != "Running"
    (document["scheduler"] or {}).pop("version", None)
    return document


def locations(cluster: FluxRelease) -> list[dict[str, Any]]:
    """Return where the pods run."""
    label = "topology.kubernetes.io/zone"
    indices: dict[tuple[str, str], list[int]] = {}
    for pod in cluster.pods():
        place = pod["metadata"]["labels"].get(label, ""), pod["spec"]["nodeName"]
        indices.setdefault(place, []).append(index_of(pod))
    return [{"ranks": to_idset(indices[at]), "node": at[1], "zone": at[0] or None} for at in sorted(indices)]


def idle(cluster: FluxRelease, scheduler: str) -> dict[str, Any]:
    """Return the expected JSON of an idle cluster."""
    fluxion = {"name": "Fluxion", "queuePolicy": "conservative", "matchPolicy": "lonode"}
    return {
        "name": NAME,
        "namespace": cluster.namespace,
        "state": "Running",
        "why": "",
        "size": 3,
        "sizeFrom": "job",
        "maxSize": 5,
        "failures": {"pods": 0, "most": 100, "groups": {}},
        "pods": [{"ranks": "0-2", "reason": "Running"}],
        "containers": [],
        "locations": locations(cluster),
        "scheduler": fluxion if scheduler == "Fluxion" else {"name": scheduler},
        "autoscaling": None,
        "quorum": {"needed": 3, "reached": True},
        "nodes": {"up": 3, "drained": 0, "missing": 0, "notStarted": 2},
        "drained": [],
        "missing": [],
        "cores": {"free": 6, "allocated": 0, "total": 6},
        "gpus": {"free": 0, "allocated": 0, "total": 0},
        "jobs": {"pending": 0, "running": 0, "done": 0, "failed": 0, "canceled": 0, "timeout": 0, "purged": 0},
        "queues": [],
        "waiting": [],
        "longestWait": 0,
        "problems": [],
        "bursts": {"registered": 0, "up": 0},
        "groups": [],
    }


def test_status_shows_nodes_jobs_and_drains_of_a_running_cluster(release: Install, scheduler: str) -> None:
    cluster = release(THREE, TWO_CORES)
    cluster.wait_for("0-2")
    assert found(cluster) == idle(cluster, scheduler)
    cluster.flux(0, "run", "true")
    assert cluster.flux(0, "run", "false") == ""
    cluster.flux(0, "submit", "--requires=rank:1", "-c2", "sleep", "600")
    cluster.flux(0, "submit", "-N3", "sleep", "1")
    cluster.flux(0, "resource", "drain", "2", "bad DIMM")
    until(lambda: found(cluster)["jobs"]["running"] == 1)
    wait = found(cluster)["longestWait"]
    until(lambda: found(cluster)["longestWait"] > wait)
    busy = found(cluster)
    del busy["longestWait"]
    (waiting,) = busy.pop("waiting")
    assert waiting["reason"].startswith("waits for nodes: it asks for 3 nodes of 1 core, and 2 are up, 1 drained")
    expected = idle(cluster, scheduler) | {
        "nodes": {"up": 2, "drained": 1, "missing": 0, "notStarted": 2},
        "drained": [{"ranks": "2", "reason": "bad DIMM"}],
        "cores": {"free": 2, "allocated": 2, "total": 6},
        "jobs": {"pending": 1, "running": 1, "done": 2, "failed": 1, "canceled": 0, "timeout": 0, "purged": 0},
    }
    del expected["longestWait"], expected["waiting"]
    assert busy == expected


def test_status_follows_a_cluster_that_grows_and_loses_its_lead(release: Install) -> None:
    cluster = release(THREE, TWO_CORES)
    cluster.wait_for("0-2")
    cluster.upgrade("--set", "size=5")
    until(lambda: found(cluster)["nodes"] == {"up": 5, "drained": 0, "missing": 0, "notStarted": 0})
    cluster.upgrade("--set", "size=3")
    until(lambda: found(cluster)["nodes"] == {"up": 3, "drained": 0, "missing": 0, "notStarted": 2})
    cluster.kubectl("delete", "pod", cluster.pod(0), "--wait=false")
    until(lambda: found(cluster)["state"] == "Starting")
    until(lambda: found(cluster)["state"] == "Running", STEP_SECONDS)
    cluster.flux(0, "shutdown")
    assert "Complete" in cluster.wait_for_end()
    assert "\nState        Complete\n" in status(cluster)


def test_status_names_an_image_that_can_not_be_pulled(release: Install) -> None:
    cluster = release({"size": 2, "logging": {"quiet": True}}, {"image": "localhost:1/not-there"})
    until(lambda: found_waits(cluster), STEP_SECONDS)


def found_waits(cluster: FluxRelease) -> bool:
    """Say whether the status names the image that the lead waits for. It must never show the cluster as Running."""
    text = status(cluster)
    assert "State        Starting: " in text
    return ("ErrImagePull" in text or "ImagePullBackOff" in text) and "localhost:1/not-there" in text


def test_a_node_whose_check_fails_is_missing_for_that_reason_until_it_succeeds(release: Install) -> None:
    check = 'test "$JOB_COMPLETION_INDEX" != 1 || test -e /tmp/fit || { echo "nvidia-smi: no devices"; false; }'
    cluster = release(THREE, {**TWO_CORES, "commands": {"nodeCheck": check}})
    why = "its check failed: nvidia-smi: no devices"
    state = f"waits for the quorum, 2 of 3 nodes are up: 1 stays out: {why}"
    until(lambda: found(cluster)["why"] == state, STEP_SECONDS)
    shown = found(cluster)
    assert (shown["state"], shown["missing"]) == ("Starting", [{"ranks": "1", "reason": why}])
    assert f"\nMissing      1: {why}\n" in status(cluster)
    words = ("minicluster", "wait", NAME, "-n", cluster.namespace, "--timeout")
    done = cluster.cluster.run(*words, "20s")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[-1].endswith(f"gave up after 20 s: Starting: {state}")
    cluster.exec(1, "touch", "/tmp/fit")
    assert cluster.cluster.run(*words, f"{STEP_SECONDS}s").code == 0
    cluster.wait_for("0-2")
    assert found(cluster)["missing"] == []


def test_status_works_for_a_user_who_may_only_see_pods_and_exec(
    release: Install,
    tmp_path: Path,
) -> None:
    cluster = release(THREE, TWO_CORES)
    cluster.wait_for("0-2")
    cluster.kubectl("create", "serviceaccount", "viewer")
    config = yaml.safe_load(Path(cluster.cluster.env["KUBECONFIG"]).read_text())
    config["users"] = [{"name": "viewer", "user": {"token": cluster.kubectl("create", "token", "viewer").strip()}}]
    config["contexts"][0]["context"]["user"] = "viewer"
    config["current-context"] = config["contexts"][0]["name"]
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    viewer = KubernetesCluster({**cluster.cluster.env, "KUBECONFIG": str(tmp_path / "kubeconfig")})

    def grant(name: str, verb: str, resource: str) -> None:
        cluster.kubectl("create", "role", name, f"--verb={verb}", f"--resource={resource}")
        cluster.kubectl("create", "rolebinding", name, f"--role={name}", f"--serviceaccount={cluster.namespace}:viewer")

    def as_viewer() -> tuple[int, str, str]:
        done = viewer.run("minicluster", "status", NAME, "-n", cluster.namespace)
        return done.code, done.out, done.err

    code, out, error = as_viewer()
    assert (code, out, error.count("\n")) == (1, "", 1)
    assert 'cannot list resource "pods"' in error
    grant("see", "list", "pods")
    code, out, error = as_viewer()
    assert (code, out, error.count("\n")) == (1, "", 1)
    assert 'cannot get resource "pods"' in error or 'cannot create resource "pods/exec"' in error
    grant("find", "get", "pods")
    grant("exec", "create", "pods/exec")
    code, out, error = as_viewer()
    assert (code, error) == (0, "")
    assert "\nSize         3 of at most 5 (counted by its pods: jobs can't be read)\n" in out
    assert "\nNodes        3 up " in out
