"""What `helm install` prints."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batch import Batch, case
from minicluster.render import devices
from renderings import cluster
from support import CHART, Helm, deep, values_text

# one worker renders all
pytestmark = pytest.mark.xdist_group("notes")
Notes = Callable[[dict[str, Any]], list[str]]
LEAD = {"name": "root", "address": "a", "size": 2}
JOINS = {"leadBroker": LEAD, "clusters": [{"name": "mc", "size": 2}]}


def about(values: dict[str, Any]) -> dict[str, Any]:
    return case(values, release="mc", namespace="team")


@pytest.fixture(scope="module")
def batch(helm4: Helm, tmp_path_factory: pytest.TempPathFactory) -> Batch:
    """All that most of the tests install."""
    known = [shaped(shape) for shape in SHAPES]
    known += [values for table in (KEPT_CLAIMS, ELASTIC, KUEUE, FROM_THE_GUIDE) for values, _ in table]
    known += [limited(cores, limit) for cores, limit, _ in LIMITS]
    known += [with_devices(given, gpus) for given, _ in DEVICES for gpus in GPUS]
    return Batch(helm4, tmp_path_factory.mktemp("batch"), map(about, known))


@pytest.fixture(scope="module")
def notes(batch: Batch) -> Notes:
    """Return a function from values to the lines of the notes."""
    return lambda values: batch.notes(about(values))


def test_helm_prints_the_notes_behind_the_objects(helm4: Helm, notes: Notes) -> None:
    values = {"size": 2, "maxSize": 8}
    where = ("--namespace", "team", "--dry-run=client", "--post-renderer", "minicluster", "--values", "-")
    text = helm4.ok("install", "mc", CHART, *where, stdin=values_text(values))
    assert text.partition("\nNOTES:\n")[2].splitlines() == notes(values)


@pytest.mark.parametrize("values", [{}, {"flux": {"bursting": JOINS}, "size": 2}], ids=["root", "burst"])
def test_the_notes_name_commands_that_work(notes: Notes, values: dict[str, Any]) -> None:
    lines = [line.partition("   #")[0] for line in notes(values)]
    found = [re.findall(r"\b(?:helm|kubectl|minicluster) .*", line) for line in lines]
    commands = [shlex.split(command) for line in found for command in line]
    assert {words[0] for words in commands} == {"helm", "kubectl", "minicluster"}
    # without the post-renderer an upgrade is refused
    changes = [words for words in commands if words[:2] in (["helm", "install"], ["helm", "upgrade"])]
    assert changes
    for words in changes:
        assert words[words.index("--post-renderer") + 1] == "minicluster"
    for words in commands:
        assert words[words.index("-n") + 1].removesuffix(")") == "team"


IDLE = """\
MiniCluster mc in namespace team: 2 of at most 8 brokers.
It runs no command of its own: it waits for jobs until it is removed.

Status   minicluster status mc -n team
Watch    kubectl get pod -n team -l app.kubernetes.io/instance=mc -w
Log      minicluster logs mc -n team -f
Quorum   minicluster wait mc -n team
Nodes    minicluster flux mc -n team -- resource list
Run      minicluster flux mc -n team -- run -N1 hostname
Jobs     minicluster jobs mc -n team
Shell    minicluster shell mc -n team
Scale    minicluster scale mc N -n team   # 1 to 8 nodes
Change   helm upgrade mc CHART -n team --reuse-values --post-renderer minicluster --set KEY=VALUE
Remove   helm uninstall mc -n team
"""
WORKS = (
    IDLE.replace(
        "It runs no command of its own: it waits for jobs until it is removed.",
        "It runs its command as soon as its brokers are there, and ends with it.",
    )
    .replace("Quorum   minicluster wait mc -n team\n", "Result   minicluster wait mc -n team --for end\n")
    .replace("Run      minicluster flux mc -n team -- run -N1 hostname\n", "")
)
SHAPES: dict[str, tuple[dict[str, Any], str]] = {
    "idle": ({"size": 2, "maxSize": 8}, IDLE),
    "command": ({"size": 2, "maxSize": 8, "containers": [{"command": "hostname"}]}, WORKS),
    "script": ({"size": 2, "maxSize": 8, "containers": [{"commands": {"script": "hostname"}}]}, WORKS),
    "one node": (
        {},
        IDLE.replace("2 of at most 8", "1 of at most 1").replace(
            "Scale    minicluster scale mc N -n team   # 1 to 8 nodes\n", ""
        ),
    ),
    "groups": (
        {"size": 2, "maxSize": 8, "groups": [{"name": "gpu", "size": 0, "maxSize": 3, "cores": 4}]},
        IDLE.replace("brokers.\n", "brokers.\nIts group gpu: 0 of at most 3 brokers.\n", 1).replace(
            "Change", "Scale    minicluster scale mc gpu=N -n team   # 0 to 3 nodes\nChange"
        ),
    ),
    "suspended": (
        {"size": 2, "maxSize": 8, "suspend": True},
        IDLE.replace("brokers.\n", "brokers.\nIt is suspended, and starts after an upgrade with suspend=false.\n", 1),
    ),
    "no socket": (
        {"size": 2, "maxSize": 8, "containers": [{"command": "hostname"}], "flux": {"disableSocket": True}},
        "".join(line for line in WORKS.splitlines(keepends=True) if not line.startswith(("Nodes", "Jobs"))),
    ),
}


def shaped(shape: str) -> dict[str, Any]:
    return deep(SHAPES[shape][0], {"flux": {"container": {"mode": "copy"}}})


@pytest.mark.parametrize("shape", SHAPES)
def test_the_notes_fit_what_was_installed(notes: Notes, shape: str) -> None:
    assert notes(shaped(shape)) == SHAPES[shape][1].splitlines()


@pytest.mark.parametrize(
    ("version", "mode", "named"),
    [
        ("1.34.9", "auto", False),
        ("1.35.0", "auto", True),
        ("1.35.4-gke.1", "auto", True),
        ("1.35.0", "copy", False),
        ("1.35.0", "image", False),
        ("1.36.0", "auto", False),
    ],
)
def test_the_notes_name_the_mode_image_where_nodes_can_mount_images(
    helm: Helm, tmp_path: Path, version: str, mode: str, named: bool
) -> None:
    options = ("--kube-version", version, "--api-versions", "batch/v1/Job")
    lines = Batch(helm, tmp_path, [], *options).notes(case({"flux": {"container": {"mode": mode}}}))
    assert any("flux.container.mode=image" in line for line in lines) == named


WARNING = "WARNING: the claim mc-state of state is ReadWriteOnce: all pods must run on one Kubernetes node."
KEPT = "Kept     mc-state, the claim of state; once uninstalled, remove it: kubectl delete pvc -n team mc-state"


KEPT_CLAIMS: list[tuple[dict[str, Any], set[str]]] = [
    ({"size": 2, "state": {"capacity": "1Gi", "accessModes": ["ReadWriteOnce"]}}, {KEPT, WARNING}),
    ({"size": 1, "state": {"capacity": "1Gi", "accessModes": ["ReadWriteOnce"]}}, {KEPT}),
    ({"size": 2, "state": {"capacity": "1Gi", "keep": False}}, set()),
]


@pytest.mark.parametrize(("values", "expected"), KEPT_CLAIMS, ids=["several nodes", "one node", "not kept"])
def test_the_notes_name_a_kept_claim_and_warn_if_it_needs_one_node(
    notes: Notes, values: dict[str, Any], expected: set[str]
) -> None:
    assert {line for line in notes(values) if "mc-state" in line} == expected


def test_the_notes_say_how_to_reach_a_container_on_the_lead_only(notes: Notes) -> None:
    side = {"name": "web", "command": "x", "ports": [80, 8080], "leadOnly": True}
    lines = notes({"containers": [{"runFlux": True}, side]})
    assert "Forward  kubectl port-forward -n team service/mc-web 80 8080" in lines


SIDE = {"name": "side", "command": "x", "resources": {"limits": {"cpu": 1}}}
LIMITS: list[tuple[Any, Any, str]] = [
    (8, 2, "8 cores of a node (cores), which share the time of 2 CPUs"),
    (4, "500m", "4 cores of a node (cores), which share the time of 500m CPUs"),
    (2, "1.5", "2 cores of a node (cores), which share the time of 1.5 CPUs"),
    (2, 2, ""),
    (2, "2000m", ""),
    (2, "1k", ""),
    (None, 2, ""),
]


def limited(cores: Any, limit: Any) -> dict[str, Any]:
    return {"containers": [{"runFlux": True, "cores": cores, "resources": {"limits": {"cpu": limit}}}, SIDE]}


@pytest.mark.parametrize(("cores", "limit", "warning"), LIMITS, ids=str)
def test_the_notes_warn_of_more_cores_than_cpus(notes: Notes, cores: Any, limit: Any, warning: str) -> None:
    found = [line for line in notes(limited(cores, limit)) if "CPUs" in line]
    assert found == ([f"WARNING: Flux has {warning} (resources.limits.cpu)."] if warning else [])


DEVICES: list[tuple[dict[str, Any], int]] = [
    ({}, 0),
    ({"limits": {"nvidia.com/mig-1g.5gb": 1, "cpu": 1, "hugepages-2Mi": "1Gi", "rdma/hca": 1}}, 0),
    ({"limits": {"example.com/npu": 1, "nvidia.com/gpu2": 1, "smarter-devices/fuse": 1, "xrdma/hca": 1}}, 3),
    ({"limits": {"a.b/c": 1}, "claims": [{"name": "x", "request": "r"}, {"name": "y"}, {"name": "x"}]}, 3),
]


GPUS = (None, 0, 2)


def with_devices(given: dict[str, Any], gpus: int | None) -> dict[str, Any]:
    claims = [{"name": name, "resourceClaimName": "c"} for name in ("x", "y")]
    runner = {"runFlux": True, "gpus": gpus, "resources": given}
    return {"containers": [SIDE, runner], "pod": {"resourceClaims": claims}}


@pytest.mark.parametrize("gpus", GPUS, ids=str)
@pytest.mark.parametrize(("given", "number"), DEVICES, ids=str)
def test_the_notes_name_the_same_uncounted_devices_as_the_post_renderer(
    batch: Batch, given: dict[str, Any], number: int, gpus: int | None
) -> None:
    release = about(with_devices(given, gpus))
    found = [line for line in batch.notes(release) if line.startswith("WARNING: ")]
    assert found == [f"WARNING: {text}." for text in devices.uncounted(cluster(batch.stream(release)))]
    assert len(found) == (number if gpus is None else 0)


ELASTIC: list[tuple[dict[str, Any], bool]] = [
    ({"kueue": {"elastic": True}}, True),
    ({"kueue": {"elastic": True, "queueName": "q"}}, False),
    ({"kueue": {"elastic": True}, "jobLabels": {"kueue.x-k8s.io/queue-name": "q"}}, False),
    ({}, False),
]


@pytest.mark.parametrize(("values", "warned"), ELASTIC, ids=str)
def test_the_notes_warn_of_an_elastic_job_without_a_queue(notes: Notes, values: dict[str, Any], warned: bool) -> None:
    assert any("kueue.elastic is true without" in line for line in notes(values)) == warned


QUEUED = {"kueue": {"queueName": "q"}}
GIVES_UP = {"kueue": {"queueName": "q", "elastic": True}, "autoscaling": {"enabled": True}, "maxSize": 2}


KUEUE: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    (GIVES_UP, ""),
    (QUEUED, "Kubernetes node, and the queue of jobs is lost. With"),
    ({"jobLabels": {"kueue.x-k8s.io/queue-name": "q"}}, "Kubernetes node, and the queue of jobs is lost. With"),
    (GIVES_UP | {"autoscaling": {}}, "Kubernetes node, and the queue of jobs is lost. With"),
    (QUEUED | {"state": {"claimName": "c"}}, "Kubernetes node. With"),
]


@pytest.mark.parametrize(("values", "warned"), KUEUE, ids=str)
def test_the_notes_warn_that_kueue_suspends_all_pods_because_of_one(
    notes: Notes, values: dict[str, Any], warned: str
) -> None:
    found = [line for line in notes(values) if "not ready for 30 minutes" in line]
    assert [warned in line for line in found] == [True] * bool(warned)


@pytest.mark.parametrize(("policy", "warned"), [("fcfs", True), ("easy", True), ("hybrid", False)])
def test_the_notes_warn_of_a_policy_that_fails_waiting_jobs(notes: Notes, policy: str, warned: bool) -> None:
    why = f"{policy}, by which Fluxion may fail a job whose nodes are not up: use conservative."
    toml = f"[sched-fluxion-qmanager]\nqueue-policy = '{policy}'\n"
    found = notes({"flux": {"brokerConfig": toml}})
    assert (f"WARNING: flux.brokerConfig has the queue-policy {why}" in found) == warned
    if policy != "fcfs":  # refused
        found = notes({"flux": {"scheduler": {"queuePolicy": policy}}})
        assert (f"WARNING: flux.scheduler.queuePolicy is {why}" in found) == warned


@pytest.mark.parametrize(("size", "warned"), [(2, True), (1, False)])
def test_the_notes_warn_of_a_broker_config_without_hosts(notes: Notes, size: int, warned: bool) -> None:
    found = notes({"size": size, "flux": {"brokerConfig": "a = 1"}})
    assert any("flux.brokerConfig has no bootstrap.hosts" in line for line in found) == warned


FROM_THE_GUIDE: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"containers": [{"commands": {"preCommand": "a", "preWorker": "b"}}]},
        [
            "commands.preCommand is another name of commands.pre.",
            "commands.preWorker is another name of commands.workerPre.",
        ],
    ),
    (
        {"containers": [{"fluxuser": {"uid": 1002, "name": "flux"}}]},
        [
            "fluxUser and commands.runFluxAsRoot have no effect: everything runs as the pod's user "
            "(pod.securityContext)."
        ],
    ),
    (
        {"flux": {"leadBroker": {**LEAD, "hostlist": "root-0,b-[01-02]"}}},
        [
            "flux.leadBroker is another name of flux.bursting.leadBroker.",
            "flux.leadBroker.hostlist is another name of flux.bursting.hostlist.",
        ],
    ),
    (
        {"flux": {"bursting": {"leadBroker": {**LEAD, "hostlist": "root-0"}}}},
        ["flux.bursting.leadBroker.hostlist is another name of flux.bursting.hostlist."],
    ),
]


@pytest.mark.parametrize(("values", "warnings"), FROM_THE_GUIDE, ids=str)
def test_the_notes_warn_once_of_each_name_of_the_guide(
    notes: Notes, values: dict[str, Any], warnings: list[str]
) -> None:
    found = [line for line in notes(values) if line.startswith("WARNING: ")]
    assert found == [f"WARNING: {warning}" for warning in warnings]
