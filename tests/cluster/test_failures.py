"""What `minicluster status` says of the ways to end badly: a real control plane, and pods whose kubelet is played."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner
from failures import FAILURES, NAME, matches
from quick import QuickCluster
from support import front_door

from tools.clients import run, until
from tools.releases import Release

pytestmark = [
    pytest.mark.any_helm,
    pytest.mark.without("limits", "quota", why="its pods ask for what decides, or for nothing"),
]

PLAYED = {"pod": {"annotations": {"kwok.x-k8s.io/played": "true"}}}
#: A claim, a Secret and a label that no cluster has
LACKING = "not-there"
Tell = Callable[[], str]


@pytest.fixture
def tell(demo: Release, cluster: QuickCluster, monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Returns the state, and why, as `minicluster status` says them, or its error."""

    # it is asked again and again
    cluster.answer_reads(monkeypatch)

    def told() -> str:
        words = ["status", NAME, "-n", demo.namespace, "-o", "json"]
        done = CliRunner().invoke(front_door, words, env=demo.helm.environment)
        if done.exit_code:
            return done.stderr.removeprefix("minicluster: ").rstrip("\n")
        found = json.loads(done.stdout)
        return ": ".join(filter(None, [found["state"], found["why"]]))

    return told


def shown(which: str) -> str:
    return FAILURES[which].status


def expect(which: str, tell: Tell) -> None:
    """Wait until the status is that of the table."""
    said = ""

    def told() -> bool:
        nonlocal said
        said = tell()
        return matches(shown(which), said)

    try:
        until(told, 30, pause=0.5)
    except Exception:
        assert said == shown(which)
        raise


def play(release: Release, index: int, **status: Any) -> None:
    """Write the status of a pod, as its kubelet would, once it has a Kubernetes node."""

    def scheduled() -> list[dict[str, Any]]:
        return [pod for pod in release.pods(index) if pod["spec"].get("nodeName")]

    name = until(scheduled, 30, "a Kubernetes node for the pod")[-1]["metadata"]["name"]
    release.kubectl(
        "patch", "pod", name, "--subresource=status", "--type=merge", f"--patch={json.dumps({'status': status})}"
    )


def waiting(reason: str, message: str, name: str = NAME) -> dict[str, Any]:
    """Return the status of a pod whose container waits."""
    return {"containerStatuses": [container(name, waiting={"reason": reason, "message": message})]}


def container(name: str, **state: Any) -> dict[str, Any]:
    """Return the status of a container."""
    return {"name": name, "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}


def ended(reason: str, code: int, name: str = NAME) -> dict[str, Any]:
    """Return the state of a container that ended now."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return container(name, terminated={"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now})


def over_limit(message: str) -> dict[str, Any]:
    """Return the status of a pod that its kubelet evicted for its own limit of the disk (eviction_manager.go)."""
    return {"phase": "Failed", "reason": "Evicted", "message": message, "containerStatuses": [ended("Error", 137)]}


def evicted(message: str) -> dict[str, Any]:
    """Return the same of one that was evicted because its Kubernetes node had no room."""
    target = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": message}
    return {**over_limit(message), "conditions": [target]}


NOT_FOUND = (
    'Back-off pulling image "nope:1": ErrImagePull: failed to pull and unpack image "docker.io/library/nope:1": failed '
    'to resolve reference "docker.io/library/nope:1": docker.io/library/nope:1: not found'
)
NO_PLATFORM = 'failed to pull and unpack image "docker.io/library/nope:1": no match for platform in manifest: not found'
NO_VIEW = (
    'failed to generate container "0b1c" spec: failed to mount image volume: lstat '
    "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/7/fs/opt/software: no such file or directory"
)
LOW_MEMORY = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 51208Ki. Container demo was using "
    "3Gi, request is 1Gi, has larger consumption of memory. "
)
LOW_DISK = (
    "The node was low on resource: ephemeral-storage. Threshold quantity: 5Gi, available: 3Gi. Container demo "
    "was using "
    "9Gi, request is 0, has larger consumption of ephemeral-storage. "
)
#: By the kubelet, before a container runs: the status of the lead's pod
WAITING: dict[str, Mapping[str, Any]] = {
    "image missing": waiting("ImagePullBackOff", NOT_FOUND),
    "image of another architecture": waiting("ErrImagePull", NO_PLATFORM),
    "view wrong": waiting("CreateContainerError", NO_VIEW),
    "Secret missing": waiting("CreateContainerConfigError", f'secret "{LACKING}" not found'),
}


def test_status_names_why_a_container_waits_and_the_way_out(demo: Release, tell: Tell) -> None:
    demo.install(size=1, **PLAYED)
    for which, status in WAITING.items():
        play(demo, 0, **status)
        expect(which, tell)


#: By the kubelet: the status of a pod that failed, made when it is needed: the back-off counts from a pod's end
FAILED: dict[str, Callable[[], Mapping[str, Any]]] = {
    "out of memory": lambda: {"phase": "Failed", "containerStatuses": [ended("OOMKilled", 137)]},
    "evicted for memory": lambda: evicted(LOW_MEMORY),
    "disk of the Kubernetes node full": lambda: evicted(LOW_DISK),
    "limit of the disk": lambda: over_limit(
        "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "
    ),
    "volume of the pod full": lambda: over_limit('Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". '),
}


@pytest.mark.parametrize("which", FAILED)
def test_status_names_what_a_kubelet_reports_and_the_way_out(which: str, demo: Release, tell: Tell) -> None:
    demo.install(size=1, **PLAYED)
    play(demo, 0, **FAILED[which]())
    expect(which, tell)


#: By the scheduler: values with which no pod gets a Kubernetes node
SCHEDULERS: dict[str, Mapping[str, Any]] = {
    "no room": {"containers": [{"image": "i", "resources": {"requests": {"cpu": "1000"}}}]},
    "claim missing": {"containers": [{"image": "i", "volumes": {"data": {"path": "/data", "claimName": LACKING}}}]},
    "no such Kubernetes node": {"pod": {"nodeSelector": {LACKING: "true"}}},
}


@pytest.mark.xdist_group("nodes")
@pytest.mark.parametrize("which", SCHEDULERS)
def test_status_names_what_the_scheduler_reports_and_the_way_out(which: str, demo: Release, tell: Tell) -> None:
    demo.install(size=1, **SCHEDULERS[which])
    expect(which, tell)


#: By a quota: the hard limits of the namespace
QUOTAS = {"quota used up": {"pods": "0"}, "quota asks for resources": {"requests.cpu": "1"}}


@pytest.mark.parametrize("which", QUOTAS)
def test_status_names_a_quota_and_the_way_out(which: str, demo: Release, tell: Tell) -> None:
    metadata = {"name": "few", "namespace": demo.namespace}
    demo.cluster.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": QUOTAS[which]}}
    )
    # the quota holds once its controller has counted
    until(lambda: demo.get("resourcequota", "few").get("status", {}).get("hard"))
    demo.install(size=1)
    expect(which, tell)


@pytest.mark.parametrize(
    ("which", "secret"), [("Secret of a volume missing", LACKING), ("Secret of the release missing", f"{NAME}-curve")]
)
def test_status_and_waits_name_a_volume_that_can_not_be_mounted(
    demo: Release, tell: Tell, which: str, secret: str
) -> None:
    demo.install(size=1, **PLAYED)
    play(demo, 0, **waiting("ContainerCreating", ""))
    (pod,) = demo.pods(0)
    demo.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "mount", "namespace": demo.namespace},
            "involvedObject": {"kind": "Pod", "name": pod["metadata"]["name"], "namespace": demo.namespace},
            "type": "Warning",
            "reason": "FailedMount",
            "message": f'MountVolume.SetUp failed for volume "munge" : secret "{secret}" not found',
            "lastTimestamp": "2030-01-01T00:00:00Z",
        }
    )
    expect(which, tell)
    for words in (("wait", NAME, "--timeout", "20s"), ("shell", NAME, "--no-wait")):
        done = run("minicluster", words[0], "-n", demo.namespace, *words[1:], env=demo.helm.environment)
        assert (done.code, shown(which) in done.err.splitlines()[-1]) == (1, True), done


def test_status_names_a_deadline_that_is_over(demo: Release, tell: Tell) -> None:
    demo.install(size=1, deadlineSeconds=1)
    expect("deadline over", tell)


def test_status_names_a_view_image_that_could_not_be_copied(demo: Release, tell: Tell) -> None:
    demo.install(size=1, flux={"container": {"mode": "copy"}}, **PLAYED)
    play(demo, 0, phase="Failed", initContainerStatuses=[ended("Error", 66, "flux-view")])
    expect("copied view wrong", tell)


def test_status_names_too_many_failures(demo: Release, tell: Tell) -> None:
    demo.install(size=1, backoffLimit=0, **PLAYED)
    play(demo, 0, phase="Failed", containerStatuses=[ended("OOMKilled", 137)])
    expect("too many failures", tell)


@pytest.fixture
def lonely_node(demo: Release) -> Iterator[str]:
    """Make a Kubernetes node without a kubelet, for pods that ask for it."""
    name = f"lonely-{demo.namespace}"
    demo.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"lonely": "true"}},
            "spec": {"taints": [{"key": "lonely", "effect": "NoSchedule"}]},
        }
    )
    yield name
    demo.cluster.kubectl("delete", "node", name, "--wait=false")


def node_status(ready: str) -> str:
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    condition = {
        "type": "Ready",
        "status": ready,
        "reason": "KubeletReady",
        "lastHeartbeatTime": "2030-01-01T00:00:00Z",
    }
    return json.dumps({"status": {"capacity": room, "allocatable": room, "conditions": [condition]}})


@pytest.mark.xdist_group("nodes")
def test_status_names_a_lost_kubernetes_node(demo: Release, tell: Tell, lonely_node: str) -> None:
    patch = ("patch", "node", lonely_node, "--subresource=status", "--type=merge")
    demo.cluster.kubectl(*patch, f"--patch={node_status('True')}")
    pod = {
        **PLAYED["pod"],
        "nodeSelector": {"lonely": "true"},
        "tolerations": [{"key": "lonely", "operator": "Exists"}],
    }
    demo.install(size=1, pod=pod)
    runs = container(NAME, running={"startedAt": "2030-01-01T00:00:00Z"})
    conditions = [{"type": kind, "status": "True"} for kind in ("Initialized", "ContainersReady", "Ready")]
    play(demo, 0, phase="Running", containerStatuses=[{**runs, "ready": True}], conditions=conditions)
    # without a lease, Kubernetes gives the Kubernetes node up after 50 s
    until(lambda: "no sign of life" in tell(), 120, "the Kubernetes node's loss", pause=2)
    expect("Kubernetes node lost", tell)
