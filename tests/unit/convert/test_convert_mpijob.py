"""The fields of an MPIJob besides its launcher's words: its pods, its policy, and the files of the command."""

from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from minicluster.convert import convert
from minicluster.documents import yamlio
from minicluster.errors import MiniClusterError
from mpi_jobs import BY_FLAGS, TOLD, converted, job, refused
from support import front_door

PI = ["mpirun", "-n", "2", "/home/mpiuser/pi"]
RUNNER = {"name": "mpi", "image": "i", "command": ["/home/mpiuser/pi"], "cores": 1}
PLAIN: dict[str, Any] = {"size": 2, "tasks": 2, "containers": [RUNNER]} | TOLD


def test_the_smallest_job() -> None:
    assert converted(job(PI)) == (PLAIN, [BY_FLAGS], [])


@pytest.mark.parametrize(("mpi", "option"), [("MPICH", "mpich"), ("Intel", "intel")])
def test_mpich_and_intel_mpi_find_their_ranks_by_pmi_1(mpi: str, option: str) -> None:
    expected = PLAIN | {"flux": {"optionFlags": f"-o mpi={option}"}}
    assert converted(job(PI, mpiImplementation=mpi)) == (expected, [], [])


SSHD = ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]
NO_SSH = "there is no SSH here, and Flux's broker is what the container runs"
WORKER = "mpiReplicaSpecs.Worker.template.spec"
#: Fields of the workers' container, what they become, and the warnings
CONTAINERS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "a server of SSH": ({"command": SSHD[:1], "args": SSHD[1:], "ports": [{"containerPort": 2222}]}, {}, []),
    "a script with one": (
        {"command": ["sh", "-c", "mkdir /x; /usr/sbin/sshd -D"]},
        {},
        [f"{WORKER}.containers[0].command is dropped: {NO_SSH}, commands.pre may do what comes before it"],
    ),
    "another command": ({"command": ["x"]}, {}, [f"{WORKER}.containers[0].command is dropped: {NO_SSH}"]),
    "a probe": (
        {"readinessProbe": {"tcpSocket": {"port": 22}}},
        {},
        [f"{WORKER}.containers[0].readinessProbe is dropped: {NO_SSH}"],
    ),
    "variables": (
        {"env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "C", "value": "$$x"}]},
        {"environment": {"A": "1", "B": "", "C": "$x"}},
        [],
    ),
    "a variable that nothing expands": (
        {"env": [{"name": "PATH", "value": "$PATH:/usr/bin"}]},
        {"environment": {"PATH": "$PATH:/usr/bin"}},
        [
            f"{WORKER}.containers[0].env.PATH is $PATH:/usr/bin: nothing expands its $, neither here nor in an MPIJob",
        ],
    ),
    "a secret": (
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
        {"secrets": {"A": {"name": "s", "key": "k"}}},
        [],
    ),
    "the pod's own": (
        {"securityContext": {"runAsUser": 1000}, "imagePullPolicy": "Always", "workingDir": "/w"},
        {"securityContext": {"runAsUser": 1000}, "imagePullPolicy": "Always", "workingDir": "/w"},
        [],
    ),
}


@pytest.mark.parametrize(("worker", "expected", "warnings"), CONTAINERS.values(), ids=CONTAINERS)
def test_fields_of_the_workers_container(worker: dict[str, Any], expected: dict[str, Any], warnings: list[str]) -> None:
    assert converted(job(PI, worker=worker)) == (PLAIN | {"containers": [RUNNER | expected]}, [*warnings, BY_FLAGS], [])


def test_what_the_chart_has_no_field_for_is_in_the_pods_template() -> None:
    field = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    worker = {
        "env": [field],
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "s"}],
    }
    pod = {
        "affinity": {"podAntiAffinity": {}},
        "initContainers": [{"name": "w", "image": "i", "volumeMounts": [{"name": "u", "mountPath": "/u"}]}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "u", "emptyDir": {}}, {"name": "unused", "emptyDir": {}}],
    }
    values, warnings, _ = converted(job(PI, worker=worker, pod=pod))
    own = {"name": "mpi", "envFrom": worker["envFrom"], "env": [field], "volumeMounts": worker["volumeMounts"]}
    template = {
        "affinity": pod["affinity"],
        "initContainers": pod["initContainers"],
        "containers": [own],
        "volumes": pod["volumes"][:2],
    }
    assert values == PLAIN | {"pod": {"template": {"spec": template}}}
    assert warnings == ["the text of ConfigMap c is not seen: change names like a-worker-0 in it", BY_FLAGS]


def test_fields_of_the_pod_and_plain_volumes_are_values() -> None:
    pod = {
        "nodeSelector": {"a": "b"},
        "serviceAccountName": "s",
        "imagePullSecrets": [{"name": "p"}],
        "restartPolicy": "Never",
        "shareProcessNamespace": True,
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "host", "hostPath": {"path": "/h", "type": "Directory"}},
            {"name": "secret", "secret": {"secretName": "s"}},
            {"name": "map", "configMap": {"name": "m"}},
            {"name": "model", "image": {"reference": "i", "pullPolicy": "Always"}},
        ],
    }
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in pod["volumes"]]
    mounts[1]["readOnly"] = True
    values, _, _ = converted(job(PI, worker={"volumeMounts": mounts}, pod=pod))
    volumes = {
        "shm": {"path": "/shm", "emptyDir": True, "emptyDirMedium": "memory", "emptyDirSizeLimit": "1Gi"},
        "data": {"path": "/data", "claimName": "c", "readOnly": True},
        "host": {"path": "/host", "hostPath": "/h"},
        "secret": {"path": "/secret", "secretName": "s"},
        "map": {"path": "/map", "configMapName": "m"},
        "model": {"path": "/model", "image": "i", "imagePullPolicy": "Always"},
    }
    assert values == PLAIN | {
        "containers": [RUNNER | {"volumes": volumes}],
        "pod": {"nodeSelector": {"a": "b"}, "serviceAccountName": "s", "imagePullSecrets": ["p"]},
        "shareProcessNamespace": True,
    }


def test_tasks_have_the_variables_and_volumes_of_the_launcher() -> None:
    document = job(
        PI,
        worker={"env": [{"name": "A", "value": "1"}]},
        launcher={
            "image": "other",
            "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}],
            "workingDir": "/w",
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        },
    )
    lead = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    lead |= {"volumes": [{"name": "data", "hostPath": {"path": "/d"}}], "nodeSelector": {"a": "b"}}
    values, warnings, _ = converted(document)
    assert values == PLAIN | {
        "containers": [
            RUNNER
            | {
                "workingDir": "/w",
                "environment": {"A": "2", "B": "3"},
                "volumes": {"data": {"path": "/data", "hostPath": "/d"}},
            }
        ]
    }
    assert warnings == [
        f"{WORKER}.containers[0].env has another A than the launcher, whose value tasks get",
        "mpiReplicaSpecs.Launcher.template.spec.containers[0].image is dropped: the work runs in the workers' image, i",
        "mpiReplicaSpecs.Launcher.template.spec has nodeSelector, dropped: there is no launcher's pod, the work starts "
        "on the first node",
        BY_FLAGS,
    ]


def test_other_containers_of_the_workers_are_sidecars() -> None:
    document = job(PI)
    containers = document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    containers += [{"name": "s", "image": "j", "command": ["a"], "args": ["b"]}, {"name": "t", "image": "k"}]
    values, _, _ = converted(document)
    assert values == PLAIN | {
        "containers": [
            RUNNER | {"runFlux": True},
            {"name": "s", "image": "j", "command": ["a", "b"]},
            {"name": "t", "image": "k", "noWrapEntrypoint": True},
        ]
    }


def test_labels_of_the_operator_that_the_pods_affinity_needs_stay() -> None:
    labels = {"training.kubeflow.org/job-name": "a", "training.kubeflow.org/job-role": "worker"}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    values, _, _ = converted(job(PI, pod={"affinity": affinity}))
    assert values["pod"] == {"labels": labels, "template": {"spec": {"affinity": affinity}}}


def test_the_launcher_may_be_a_worker_too() -> None:
    document = job(["mpirun", "pi"], runLauncherAsWorker=True)
    values, warnings, _ = converted(document)
    assert (values["size"], values["tasks"]) == (3, 3)
    assert warnings == ["runLauncherAsWorker is one node more here, whose pod is as those of the workers", BY_FLAGS]
    del document["spec"]["mpiReplicaSpecs"]["Worker"]
    document["spec"]["runLauncherAsWorker"] = True
    values, warnings, _ = converted(document)
    assert values == {"size": 1, "tasks": 1, "containers": [RUNNER | {"name": "lead", "command": ["pi"]}]} | TOLD
    assert warnings == [BY_FLAGS]


RETRIES = "runPolicy.backoffLimit counts pods that were lost here: a program that fails is not started again"
STAYS = "the release stays until `helm uninstall`"
POLICIES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "nothing": ({"cleanPodPolicy": "Running", "managedBy": "kubeflow.org/mpi-operator", "suspend": False}, {}, []),
    "pods that stay": (
        {"cleanPodPolicy": "None"},
        {},
        [
            "runPolicy.cleanPodPolicy is dropped: it kept the workers after the work; here all pods end with it",
        ],
    ),
    "numbers": (
        {"activeDeadlineSeconds": 60, "backoffLimit": 3, "suspend": True},
        {"deadlineSeconds": 60, "backoffLimit": 3, "suspend": True},
        [RETRIES],
    ),
    "no retries": ({"backoffLimit": 0}, {"backoffLimit": 0}, [RETRIES]),
    "removed at the end": (
        {"ttlSecondsAfterFinished": 0},
        {"cleanup": True},
        [f"runPolicy.ttlSecondsAfterFinished is cleanup here: it removes the Job, {STAYS}"],
    ),
    "removed later": (
        {"ttlSecondsAfterFinished": 60},
        {},
        [
            f"runPolicy.ttlSecondsAfterFinished is dropped: the Job keeps its logs, and {STAYS}; cleanup: true removes "
            "the Job at its end"
        ],
    ),
    "a gang of nobody": (
        {"schedulingPolicy": {"minAvailable": 2, "queue": "q"}},
        {},
        [
            "runPolicy.schedulingPolicy is dropped: no pod names the scheduler volcano or scheduler-plugins-scheduler; "
            "set gang.kind and pod.schedulerName"
        ],
    ),
}


@pytest.mark.parametrize(("policy", "expected", "warnings"), POLICIES.values(), ids=POLICIES)
def test_the_policy_of_a_run(policy: dict[str, Any], expected: dict[str, Any], warnings: list[str]) -> None:
    assert converted(job(PI, runPolicy=policy)) == (PLAIN | expected, [*warnings, BY_FLAGS], [])


def test_gangs_are_of_the_scheduler_that_the_pods_name() -> None:
    policy = {"minAvailable": 1, "queue": "q", "priorityClass": "p", "scheduleTimeoutSeconds": 9}
    values, warnings, _ = converted(
        job(PI, pod={"schedulerName": "volcano"}, runPolicy={"schedulingPolicy": dict(policy)})
    )
    pod = {"schedulerName": "volcano", "priorityClassName": "p"}
    assert values == PLAIN | {"pod": pod, "gang": {"kind": "volcano", "queue": "q"}, "minSize": 1}
    assert warnings == [
        "runPolicy.schedulingPolicy.minAvailable is minSize here: the work starts when as many nodes are up",
        "runPolicy.schedulingPolicy.scheduleTimeoutSeconds is dropped: the PodGroup has no such field here",
        BY_FLAGS,
    ]
    pod = {"schedulerName": "scheduler-plugins-scheduler"}
    values, _, _ = converted(job(PI, pod=dict(pod)))
    assert values == PLAIN | {"pod": pod, "gang": {"kind": "coscheduling"}}


def test_the_queue_of_kueue_stays() -> None:
    document = job(PI)
    document["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/priority-class": "p", "a": "b"}
    assert converted(document)[0] == PLAIN | {"kueue": {"queueName": "q", "priorityClass": "p"}}


def of_worker(**fields: Any) -> dict[str, Any]:
    document = job(PI)
    document["spec"]["mpiReplicaSpecs"]["Worker"] |= fields
    return document


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a field": (job(PI, slots=1), "slots is not a field of an MPIJob that is known here: drop it"),
    "a field of v1": (
        job(PI, cleanPodPolicy="Running"),
        "cleanPodPolicy is not a field of an MPIJob that is known here: drop it",
    ),
    "a field of a policy": (
        job(PI, runPolicy={"schedulingPolicy": {"x": 1}}),
        "runPolicy.schedulingPolicy.x is not a field of an MPIJob that is known here: drop it",
    ),
    "a field of a pod": (
        job(PI, pod={"nodeSelctor": {"a": "b"}}),
        "MiniCluster a: pod.template.spec.nodeSelctor is not a field of Kubernetes' PodSpec: did you mean "
        "nodeSelector?",
    ),
    "no launcher": (
        job(PI, mpiReplicaSpecs={"Worker": {}}),
        "mpiReplicaSpecs has no Launcher, whose command would be the work: give the whole document",
    ),
    "another kind of pods": (
        job(PI, mpiReplicaSpecs={"Master": {}}),
        "mpiReplicaSpecs.Master is not known: an MPIJob has a Launcher and Workers",
    ),
    "no workers": (
        of_worker(replicas=0),
        "mpiReplicaSpecs has no Worker, and runLauncherAsWorker is not set: no pod would run tasks",
    ),
    "no command": (
        job(None),
        "mpiReplicaSpecs.Launcher.template.spec.containers[0] has no command, so the work is not known: give the "
        "image's own command",
    ),
    "options for the image's command": (
        job(None, launcher={"args": ["--mode", "sweep"]}),
        "mpiReplicaSpecs.Launcher.template.spec.containers[0] has no command, so the work is not known: give the "
        "image's own command",
    ),
    "slots": (job(PI, slotsPerWorker=0), "slotsPerWorker is 0: must be a number, at least 1"),
    "an MPI": (job(PI, mpiImplementation="X"), "mpiImplementation is X: must be OpenMPI, Intel or MPICH"),
    "a manager": (
        job(PI, runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"}),
        "runPolicy.managedBy is kueue.x-k8s.io/multikueue: here Kubernetes runs the Job; drop it",
    ),
    "a host name": (
        job(PI, pod={"hostname": "h"}),
        f"{WORKER}.hostname is set: the pods' names are the Job's; drop it",
    ),
    "a value of a Secret": (
        job(
            ["mpirun", "$(A)"],
            launcher={"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
        ),
        "mpiReplicaSpecs.Launcher.template.spec.containers[0] has $(A), whose value is not in the document: write it "
        "out",
    ),
}


@pytest.mark.parametrize(("document", "message"), REFUSED.values(), ids=REFUSED)
def test_a_field_without_a_counterpart_is_refused_by_name(document: dict[str, Any], message: str) -> None:
    assert refused(document) == message


@pytest.mark.parametrize("version", ["v1", "v1alpha2"])
def test_another_version_is_refused(version: str) -> None:
    document = job(PI) | {"apiVersion": f"kubeflow.org/{version}"}
    assert refused(document) == (f"MPIJob a has the apiVersion kubeflow.org/{version}: give kubeflow.org/v2beta1")


def test_a_file_may_have_both_kinds_and_what_goes_with_them() -> None:
    cluster = {"apiVersion": "flux-framework.org/v1alpha2", "kind": "MiniCluster", "metadata": {"name": "b"}}
    service = {
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"selector": {"training.kubeflow.org/job-name": "a"}},
    }
    files, remarks = convert(
        yaml.safe_dump_all([cluster | {"spec": {"containers": [{"image": "i"}]}}, job(PI), service]).encode()
    )
    assert [(one.kind, one.name) for one in files] == [("MiniCluster", "b"), ("MPIJob", "a")]
    assert remarks == [
        "Service s selects pods by training.kubeflow.org/job-name, as only an operator labels them: apply it with the "
        'selector {"batch.kubernetes.io/job-name": "a"}'
    ]


def test_convert_prints_a_job_with_the_command_that_installs_it() -> None:
    document = job(PI, mpiImplementation="MPICH")
    document["metadata"]["namespace"] = "n"
    done = CliRunner().invoke(front_door, ["convert", "-"], input=yamlio.dump(document))
    command = "# helm install a charts/minicluster -n n -f a-values.yaml --post-renderer minicluster\n"
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == command + (
        "size: 2\ntasks: 2\ncontainers:\n- name: mpi\n  image: i\n  command:\n  - /home/mpiuser/pi\n  cores: 1\n"
        "flux:\n  optionFlags: '-o mpi=mpich'\n"
    )


KEYS = (
    *("mpiReplicaSpecs", "Launcher", "Worker", "template", "spec", "containers", "command", "args", "env", "name"),
    *("volumes", "volumeMounts", "image", "runPolicy", "schedulingPolicy", "replicas", "slotsPerWorker", "metadata"),
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["", "a", "$(X)", "mpirun"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=14,
)


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(JUNK, st.lists(JUNK, max_size=2), st.dictionaries(st.sampled_from(KEYS), JUNK, max_size=3))
def test_any_other_job_is_refused_in_one_line(junk: Any, lists: Any, container: Any) -> None:
    for document in (
        job(PI) | {"spec": junk},
        job(lists, worker=container, launcher=container),
        job(PI, pod=container, runPolicy=junk),
    ):
        try:
            converted(document)
        except MiniClusterError as error:
            assert len(str(error).splitlines()) == 1
