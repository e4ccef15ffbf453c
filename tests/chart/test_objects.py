"""Fields that objects need for a cluster to work; a golden file would accept anything."""

import subprocess
from typing import Any

import pytest
from minicluster.cluster.pods import REPLACED_CODES
from support import CHART, Helm, by_name, deep, load_all, one, values_text

INDEX = "batch.kubernetes.io/job-completion-index"
MODES = ["copy", "image", "none"]
SIDE = [{"runFlux": True}, {"name": "side", "image": "busybox", "command": "sleep inf", "ports": [80]}]
SERVICES = [{"name": "web", "image": "nginx"}]
#: The largest number that Kubernetes accepts here
MOST = 2147483647


def mode_of(mode: str) -> dict[str, Any]:
    return {"flux": {"container": {"disable": True} if mode == "none" else {"mode": mode}}}


def pod_of(text: str) -> dict[str, Any]:
    spec: dict[str, Any] = one(text, "Job")["spec"]["template"]["spec"]
    return spec


def init_containers(text: str) -> dict[str, dict[str, Any]]:
    return {container["name"]: container for container in pod_of(text).get("initContainers", [])}


def live(version: str) -> tuple[str, ...]:
    """Return the options that make Helm render for a live cluster of a version."""
    return "--api-versions", "batch/v1/Job", "--kube-version", version


# Which pods a Service finds ----------------------------------------------------------------------------------


def pods(text: str, cluster: str) -> dict[str, dict[str, str]]:
    """Return the labels of a cluster's pods; the index is Kubernetes' own label."""
    found = {}
    for item in load_all(text):
        if item["kind"] == "Job":
            labels = item["spec"]["template"]["metadata"]["labels"]
            found |= {f"{cluster} {role}": labels | {INDEX: str(i)} for i, role in enumerate(("lead", "worker"))}
        elif item["kind"] == "Deployment":
            found[f"{cluster} services"] = item["spec"]["template"]["metadata"]["labels"]
        elif item["kind"] == "Pod":
            found[f"{cluster} test"] = item["metadata"]["labels"]
    return found


@pytest.mark.parametrize("minimal", [False, True])
@pytest.mark.parametrize("headless", [False, True])
def test_each_service_finds_its_own_pods_and_no_others(helm4: Helm, headless: bool, minimal: bool) -> None:
    values = {
        "size": 2,
        "containers": SIDE,
        "services": SERVICES,
        "flux": {"minimalService": minimal, "bursting": {"expose": {"type": "NodePort"}}},
    }
    texts = {
        name: helm4.template(
            values=deep(values, {"network": {"headlessName": f"net-{name}"}} if headless else {}), release=name
        )
        for name in ("a", "b")
    }
    every = {name: labels for cluster, text in texts.items() for name, labels in pods(text, cluster).items()}
    assert len(every) == 8
    services = {name: item["spec"] for (kind, name), item in by_name(texts["a"]).items() if kind == "Service"}
    found = {
        name: {pod for pod, labels in every.items() if spec["selector"].items() <= labels.items()}
        for name, spec in services.items()
    }
    headless_name = "net-a" if headless else "a"
    assert found == {
        headless_name: {"a lead", "a services"} | (set() if minimal else {"a worker"}),
        "a-lead": {"a lead"},
        "a-ready": {"a lead"},
        "a-side": {"a lead", "a worker"},
    }
    # a host name is one within that Service
    for kind in ("Job", "Deployment"):
        assert one(texts["a"], kind)["spec"]["template"]["spec"]["subdomain"] == headless_name


def test_the_service_of_a_container_on_the_lead_only_selects_the_lead(helm: Helm) -> None:
    side = {"name": "side", "command": "x", "ports": [80, 81], "leadOnly": True}
    text = helm.template(values={"size": 2, "containers": [{"runFlux": True}, side]})
    service = one(text, "Service", "flux-sample-side")
    assert service["spec"] == {
        "publishNotReadyAddresses": True,
        "selector": {
            "app.kubernetes.io/name": "minicluster",
            "app.kubernetes.io/instance": "flux-sample",
            "app.kubernetes.io/component": "broker",
            INDEX: "0",
        },
        "ports": [{"name": "port-80", "port": 80}, {"name": "port-81", "port": 81}],
    }


def test_a_container_on_the_lead_only_decides_in_its_program_and_hooks_where_it_is(helm4: Helm) -> None:
    """Its program and hooks must find out whether they run on the lead, because all pods share the template."""
    text = "echo '$(A)' \"b\"\n: $HOME"
    side = {"name": "side", "command": "x", "leadOnly": True, "lifeCycle": {"postStartExec": text}}
    container = init_containers(helm4.template(values={"containers": [{"runFlux": True}, side]}))["side"]
    assert container["command"] == ["/bin/sh", "/mnt/flux/configmap/start.sh", "container.sh", "side", "lead"]
    hook = container["lifecycle"]["postStart"]["exec"]["command"]
    assert hook[-1] == text
    for index, printed in (("0", "$(A) b\n"), ("1", "")):
        env = {"JOB_COMPLETION_INDEX": index, "HOME": "/"}
        done = subprocess.run(hook, env=env, capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == (printed, "")


STOP = ["/bin/sh", "/mnt/flux/configmap/stop.sh"]
SLEEP = {"sleep": {"seconds": 5}}


@pytest.mark.parametrize(
    ("values", "hook"),
    [
        ({}, {"exec": {"command": STOP}}),
        ({"containers": [{"lifeCycle": {"preStopExec": "a 'b' $(C)"}}]}, {"exec": {"command": [*STOP, "a 'b' $(C)"]}}),
        # a hook has one action only
        (
            {"pod": {"template": {"spec": {"containers": [{"name": "flux-sample", "lifecycle": {"preStop": SLEEP}}]}}}},
            SLEEP,
        ),
        (
            {"pod": {"template": {"spec": {"containers": [{"name": "side", "lifecycle": {"preStop": SLEEP}}]}}}},
            {"exec": {"command": STOP}},
        ),
    ],
    ids=["default", "own text", "own hook", "hook of another"],
)
def test_the_runner_has_a_stop_hook_that_runs_the_hook_of_the_user(
    helm4: Helm, values: dict[str, Any], hook: dict[str, Any]
) -> None:
    containers = one(helm4.template(values=values), "Job")["spec"]["template"]["spec"]["containers"]
    [runner] = [container for container in containers if container["name"] == "flux-sample"]
    assert runner["lifecycle"] == {"preStop": hook}


def test_services_publish_pods_that_are_not_ready_where_brokers_need_them(helm4: Helm) -> None:
    """Brokers look for each other before they are ready; a sidecar serves while another one fails."""
    values = {"containers": SIDE, "flux": {"bursting": {"expose": {"type": "LoadBalancer"}}}}
    services = {
        name: item["spec"] for (kind, name), item in by_name(helm4.template(values=values)).items() if kind == "Service"
    }
    assert {name: spec.get("publishNotReadyAddresses", False) for name, spec in services.items()} == {
        "flux-sample": True,
        "flux-sample-lead": True,
        "flux-sample-ready": False,
        "flux-sample-side": True,
    }
    assert {name for name, spec in services.items() if spec.get("clusterIP") == "None"} == {
        "flux-sample",
        "flux-sample-ready",
    }
    assert services["flux-sample-lead"]["ports"] == [{"name": "broker", "port": 8050}]


@pytest.mark.parametrize("name", ["a", "n" * 53])
def test_helm_test_asks_for_the_address_of_the_ready_service(helm4: Helm, name: str) -> None:
    text = helm4.template(values={"network": {"clusterDomain": "k8s.example"}}, release=name)
    [service] = [
        item for (kind, found), item in by_name(text).items() if kind == "Service" and found.endswith("-ready")
    ]
    [container] = one(text, "Pod")["spec"]["containers"]
    assert container["args"][0] == f"{service['metadata']['name']}.ns.svc.k8s.example"


# The pod -----------------------------------------------------------------------------------------------------


def test_the_startup_probe_of_a_broker_never_gives_up(helm4: Helm) -> None:
    [runner] = pod_of(helm4.template())["containers"]
    assert runner["startupProbe"]["failureThreshold"] == MOST
    assert not {"livenessProbe", "readinessProbe"} & set(runner)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", ["autoscaling", "metrics"])
@pytest.mark.parametrize("containers", [SIDE, [{}]], ids=["sidecar", "alone"])
def test_sidecars_and_the_agent_are_rendered_in_each_mode_of_the_view(
    helm4: Helm, mode: str, what: str, containers: list[Any]
) -> None:
    text = helm4.template(values={"containers": containers, what: {"enabled": True}, **mode_of(mode)})
    found = init_containers(text)
    # to Kubernetes they are sidecars: without this it would wait for their end before it starts the broker
    sidecars = dict.fromkeys([*(["side"] if containers is SIDE else []), "minicluster-agent"], "Always")
    # the view comes first: the containers that use it start after it
    view: dict[str, str | None] = {"flux-view": None} if mode == "copy" else {}
    policies = {name: container.get("restartPolicy") for name, container in found.items()}
    assert list(policies.items()) == list((view | sidecars).items())
    assert [container["name"] for container in pod_of(text)["containers"]] == ["flux-sample"]


@pytest.mark.parametrize(
    ("capabilities", "left"),
    [
        ({"add": ["SYS_ADMIN"]}, {}),
        ({"add": ["SYS_ADMIN"], "drop": ["ALL"]}, {"capabilities": {"drop": ["ALL"]}}),
        ({"drop": ["ALL"]}, {"capabilities": {"drop": ["ALL"]}}),
    ],
    ids=str,
)
def test_the_agent_runs_as_the_user_of_the_runner_without_added_privileges(
    helm4: Helm, capabilities: dict[str, Any], left: dict[str, Any]
) -> None:
    user = {"runAsUser": 5, "runAsGroup": 6, "seccompProfile": {"type": "RuntimeDefault"}}
    context = {**user, "privileged": True, "procMount": "Unmasked", "capabilities": capabilities}
    values = {"containers": [{"securityContext": context}], "autoscaling": {"enabled": True}}
    text = helm4.template(values=values)
    assert pod_of(text)["containers"][0]["securityContext"] == context
    assert init_containers(text)["minicluster-agent"]["securityContext"] == user | left


# Exit codes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_the_pod_failure_policy_fails_the_job_at_these_exit_codes(helm4: Helm, mode: str) -> None:
    """view.sh exits with 66 for an image that is not a view: a replacement of the pod would fail too."""
    rules = one(helm4.template(values=mode_of(mode)), "Job")["spec"]["podFailurePolicy"]["rules"]
    by_code = [(rule["action"], *rule["onExitCodes"].values()) for rule in rules if "onExitCodes" in rule]
    view = [("FailJob", "flux-view", "In", [66])] if mode == "copy" else []
    assert by_code == [("FailJob", "flux-sample", "NotIn", [*REPLACED_CODES]), *view]
    # before any exit code counts
    assert rules[0] == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


# Values that need a newer Kubernetes -------------------------------------------------------------------------

NEEDS: list[Any] = [
    ({"containers": SIDE}, "1.29", "containers beside the one that runs Flux need Kubernetes 1.29, this is v{}"),
    *(
        (values, "1.29", "autoscaling, metrics and pod.disruptionBudget need Kubernetes 1.29, this is v{}: turn")
        for values in (
            {"autoscaling": {"enabled": True}},
            {"metrics": {"enabled": True}},
            {"pod": {"disruptionBudget": True}},
        )
    ),
    ({"flux": {"minimalService": True}}, "1.28", "flux.minimalService needs Kubernetes 1.28, this is v{}"),
    (mode_of("image"), "1.35", "flux.container.mode=image needs Kubernetes 1.35, this is v{}: use auto or copy"),
    *(
        (
            {group: [*others, {"name": "x", "command": "x", "volumes": {"model": {"path": "/m", "image": "i"}}}]},
            "1.35",
            f"{group}[{len(others)}].volumes.model.image needs Kubernetes 1.35, this is v{{}}: use another source, "
            "such as a claim",
        )
        for group, others in (("containers", [{"runFlux": True}]), ("services", []))
    ),
]


@pytest.mark.parametrize(
    ("values", "first", "message"),
    NEEDS,
    ids=["sidecar", "autoscaling", "metrics", "budget", "service", "view", "volume", "volume of a service"],
)
def test_values_that_need_a_newer_kubernetes_are_refused(
    helm: Helm, values: dict[str, Any], first: str, message: str
) -> None:
    older = f"1.{int(first.split('.')[1]) - 1}.15"
    where = ("template", "x", CHART, "--values", "-")
    text = helm.fails(*where, *live(older), stdin=values_text(values))
    assert message.format(older) in text
    for options in (live(f"{first}.0"), ()):
        helm.ok(*where, *options, stdin=values_text(values))


# Shared memory -----------------------------------------------------------------------------------------------

SHM = {"name": "minicluster-shm", "mountPath": "/dev/shm"}
MINE = {"volumes": {"mine": {"path": "/dev/shm/", "emptyDir": True}}}
FRAGMENT = {"name": "flux-sample", "volumeMounts": [{"name": "other", "mountPath": "/dev/shm"}]}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {"medium": "Memory"}),
        ({"pod": {"sharedMemory": "2Gi"}}, {"medium": "Memory", "sizeLimit": "2Gi"}),
        ({"pod": {"sharedMemory": 1073741824}}, {"medium": "Memory", "sizeLimit": "1.073741824e+09"}),
        # of another container: the runner has its own
        ({"containers": [{"runFlux": True}, {**SIDE[1], **MINE}]}, {"medium": "Memory"}),
        ({"pod": {"sharedMemory": "none"}}, None),
        ({"pod": {"hostIPC": True}}, None),
        ({"containers": [MINE]}, None),
        ({"containers": [{"volumes": {"mine": {"emptyDir": True}}}]}, None),
        ({"pod": {"template": {"spec": {"containers": [FRAGMENT]}}}}, None),
    ],
    ids=lambda x: str(x)[:80],
)
def test_the_runner_gets_shared_memory_unless_it_mounts_its_own(helm4: Helm, values: Any, expected: Any) -> None:
    pod = pod_of(helm4.template("--set", "nameOverride=flux-sample", values=values))
    mounts = [mount["name"] for mount in pod["containers"][0]["volumeMounts"] if mount == SHM]
    volumes = [volume["emptyDir"] for volume in pod["volumes"] if volume["name"] == SHM["name"]]
    assert (mounts, volumes) == (([SHM["name"]], [expected]) if expected else ([], []))
    assert all(SHM not in container["volumeMounts"] for container in pod.get("initContainers", []))
