"""`minicluster create` and `delete` on a real API server. In its pods nothing runs, so no lead knows jobs."""

import os
import re
import resource
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from support import Helm

from tools.clients import Done, run
from tools.releases import Release

pytestmark = pytest.mark.without("security", "quota", "labels", why="the values are those of the words alone")

Command = Callable[..., Done]
#: Provisioners of one Kubernetes node, and of many
PROVISIONERS = {"near": "rancher.io/local-path", "far": "nfs.csi.k8s.io"}
#: What is said of jobs where no Flux runs
UNKNOWN = re.compile(r"minicluster: \w+: its jobs are not known: .*; those that run on its nodes have 15 s to end\n")


@pytest.fixture
def minicluster(connected: Helm, release: Release) -> Command:
    """Runs `minicluster` in the release's namespace, with each Helm."""
    environment = connected.environment | {"HELM_BIN": connected.name}
    return lambda *words: run("minicluster", *words, "-n", release.namespace, env=environment)


@pytest.fixture
def classes(release: Release) -> Iterator[None]:
    """Storage classes, of which none is the default."""
    for name, provisioner in PROVISIONERS.items():
        metadata = {"name": f"{name}-{release.namespace}"}
        made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata}
        release.cluster.create({**made, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"})
    yield
    names = [f"{name}-{release.namespace}" for name in PROVISIONERS]
    release.cluster.kubectl("delete", "storageclass", *names)


def test_create_delete_and_the_command_that_it_prints_again(
    minicluster: Command, release: Release, connected: Helm
) -> None:
    words = ("create", "mc", "--image", "a:1", "-N", "2", "--max", "8", "--cpu", "1", "--memory", "1Gi")
    made = minicluster(*words, "--set", "pod.annotations.note=a  'b'")
    assert made.code == 0, made.err
    status = f"`minicluster status mc -n {release.namespace}`"
    assert made.err.splitlines()[-1] == f"minicluster: mc: Running: {status} shows it"
    assert (made.out[:16], made.out.count("\n")) == ("helm install mc ", 1)
    first = release.get("job")
    [container] = first["spec"]["template"]["spec"]["containers"]
    amounts = {"cpu": "1", "memory": "1Gi"}
    assert container["resources"] == {"limits": amounts, "requests": amounts}
    assert container["image"] == "a:1"
    assert first["spec"]["completions"] == 2
    assert "command" not in release.get("configmap", "mc-config")["data"]
    assert first["spec"]["template"]["metadata"]["annotations"]["note"] == "a  'b'"
    taken = minicluster("create", "mc")
    where = f"namespace {release.namespace}"
    remedy = f"take another name, or remove it by `minicluster delete mc -n {release.namespace}`"
    assert taken == Done(1, "", f"minicluster: there is a release mc in {where} already: {remedy}\n")

    gone = minicluster("delete", "mc")
    assert (gone.code, gone.out) == (0, "")
    assert UNKNOWN.sub("", gone.err) == f"minicluster: mc is removed from {where}\n"
    assert release.items() == []
    # a person pastes it
    line = made.out.replace("helm ", f"{connected.name} ", 1)
    subprocess.run(["bash", "-c", line], env=os.environ | connected.environment, check=True, capture_output=True)
    again = release.get("job")
    for one in (first, again):
        assert one["spec"].pop("selector")
        assert one["spec"]["template"]["metadata"].pop("labels")
    assert again["spec"] == first["spec"]
    assert minicluster("delete", "mc", "--yes").code == 0


@pytest.mark.any_helm
def test_the_printed_values_make_the_same_cluster(minicluster: Command, release: Release, tmp_path: Any) -> None:
    (tmp_path / "mine.yaml").write_text("containers: [{image: b:2, environment: {A: '08'}}]\nflux: {logLevel: 5}\n")
    words = ("create", "mc", "-N", "1", "--max", "3", "--autoscale", "--cpu", "1", "--gpus", "2")
    words = (*words, "-f", str(tmp_path / "mine.yaml"), "--set", "flux.logLevel=4")
    printed = minicluster(*words, "--print-values")
    assert (printed.code, printed.err, release.items()) == (0, "", [])
    assert printed.out.startswith("# helm install mc ")
    values = yaml.safe_load(printed.out)
    resources = {"limits": {"cpu": "1", "nvidia.com/gpu": "2"}, "requests": {"cpu": "1"}}
    runner = {"image": "b:2", "environment": {"A": "08"}, "resources": resources}
    assert values == {
        "size": 1,
        "maxSize": 3,
        "autoscaling": {"enabled": True, "min": 1},
        "report": {"log": True},
        "flux": {"logLevel": 4},
        "containers": [runner],
    }
    assert minicluster(*words, "--no-wait").code == 0
    assert yaml.safe_load(release.ok("get values", "--output", "yaml")) == values


@pytest.mark.any_helm
@pytest.mark.usefixtures("classes")
def test_keep_is_one_word_for_queue_report_and_shared_files(minicluster: Command, release: Release) -> None:
    near, far = (f"{name}-{release.namespace}" for name in PROVISIONERS)
    made = minicluster("create", "mc", "-N", "2", "--max", "4", "--keep", f"1Gi@{near}", "--no-wait")
    assert made.code == 0, made.err
    assert made.err == (
        f"minicluster: the storage class {near} (rancher.io/local-path) has volumes for one Kubernetes node at a time, "
        "so all pods of mc run on one; --keep 1Gi@CLASS takes a class for several nodes (ReadWriteMany)\n"
    )
    claims = {each["metadata"]["name"]: each["spec"] for each in release.items("persistentvolumeclaims")}
    assert {name: (each["storageClassName"], each["accessModes"]) for name, each in claims.items()} == {
        "mc-state": (near, ["ReadWriteOnce"]),
        "mc-data": (near, ["ReadWriteOnce"]),
    }
    pod = release.get("job")["spec"]["template"]
    [term] = pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    mounts = {each["name"]: each["mountPath"] for each in pod["spec"]["containers"][0]["volumeMounts"]}
    assert (mounts["data"], mounts["minicluster-state"]) == ("/data", "/mnt/flux/state")
    gone = minicluster("delete", "mc")
    assert gone.err.splitlines()[-1] == (
        "minicluster: kept, never bound to a volume: mc-data, mc-state; "
        f"`kubectl delete pvc mc-data mc-state -n {release.namespace}` removes them"
    )
    uids = {each["metadata"]["uid"] for each in release.items("persistentvolumeclaims")}
    assert len(uids) == 2
    # the next one of the name goes on with them; another class is refused by name
    other = minicluster("create", "mc", "-N", "2", "--max", "4", "--keep", f"1Gi@{far}", "--no-wait")
    assert (other.code, other.err.count("\n")) == (1, 1)
    assert "that is immutable; drop the value, or uninstall, delete the claim with its data" in other.err
    assert minicluster("create", "mc", "-N", "2", "--max", "4", "--keep", f"1Gi@{near}", "--no-wait").code == 0
    assert {each["metadata"]["uid"] for each in release.items("persistentvolumeclaims")} == uids
    release.ok("uninstall")
    release.kubectl("delete", "pvc", "--all", "--wait=false")
    assert minicluster("create", "many", "-N", "2", "--keep", f"1Gi@{far}", "--no-wait").err == ""
    found = {each["metadata"]["name"]: each["spec"] for each in release.items("persistentvolumeclaims")}
    assert found["many-data"]["accessModes"] == ["ReadWriteMany"]


@pytest.mark.any_helm
def test_refusals_of_create_come_first_and_leave_nothing(minicluster: Command, release: Release) -> None:
    write, usage = "write it as 10Gi, or 10Gi@CLASS", "; see `minicluster create --help`"
    refusals = {
        ("-N", "4", "--max", "2"): (
            2,
            "4 nodes are more than the maximum of 2: lower it, or raise the maximum",
        ),
        ("--autoscale",): (
            2,
            "autoscaling needs a maximum: give --max, max_nodes in Python, the most nodes that may be",
        ),
        ("--keep", "much"): (2, f"Invalid value for '--keep': 'much' is not the size of a volume: {write}{usage}"),
        ("--memory", "much"): (2, ""),
        ("--memory", "10"): (2, f"Invalid value for '--memory': 10 is 10 bytes: did you mean 10Gi{usage}"),
        ("--keep", "10"): (2, f"Invalid value for '--keep': 10 is 10 bytes: did you mean 10Gi{usage}"),
        ("--set", "no=1"): (1, ""),
    }
    for words, (code, message) in refusals.items():
        done = minicluster("create", "mc", *words)
        assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done
        assert not message or done.err == f"minicluster: {message}\n"
    none = minicluster("create", "mc", "--keep", "1Gi@none")
    lacks = "there is no storage class for the volumes: ask an administrator for one, or leave --keep out"
    assert none.err == f"minicluster: {lacks}\n"
    assert release.items() == []


@pytest.mark.any_helm
def test_delete_removes_nothing_but_miniclusters_without_a_yes(
    minicluster: Command, release: Release, tmp_path: Any
) -> None:
    chart = tmp_path / "web"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: web, version: 1.0.0}")
    (chart / "templates" / "a.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: page}}")
    release.helm.ok("install", "web", str(chart), "--namespace", release.namespace)
    assert minicluster("delete", "web") == Done(
        1,
        "",
        f"minicluster: the release web has no MiniCluster: `helm uninstall web -n {release.namespace}` removes it\n",
    )
    # a chart around ours
    (chart / "charts").mkdir()
    (chart / "charts" / "minicluster").symlink_to(release.chart)
    (chart / "templates" / "a.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: menu}}")
    where = ("--namespace", release.namespace, "--post-renderer", "minicluster")
    release.helm.ok("install", "around", str(chart), *where, "--set", "minicluster.nameOverride=inner")
    release.cluster.wait("the Job", lambda: bool(release.items("jobs")))
    refused = minicluster("delete", "inner")
    assert (refused.code, UNKNOWN.sub("", refused.err)) == (
        1,
        "minicluster: the release around has more than one MiniCluster, and all of it goes: ConfigMap menu\n"
        "minicluster: nothing has changed, as there is no terminal to ask on: --yes agrees\n",
    )
    assert [job["metadata"]["name"] for job in release.items("jobs")] == ["inner"]
    gone = minicluster("delete", "inner", "--yes")
    assert gone.err.splitlines()[-1] == f"minicluster: around is removed from namespace {release.namespace}"
    assert release.items("jobs,pods") == []
    # what Helm didn't make
    release.install(size=1)
    release.kubectl("delete", "secret", "--selector=owner=helm,name=mc")
    assert minicluster("delete", "mc") == Done(
        1, "", "minicluster: mc belongs to no Helm release: remove it as it was made, such as by kubectl\n"
    )


@pytest.mark.any_helm
def test_a_wrong_name_or_size_is_refused_first_and_soon(minicluster: Command, release: Release) -> None:
    release.install(size=2, maxSize=3, interactive=True)
    release.running(2)
    where = f"namespace {release.namespace}"
    near = f"there is no MiniCluster mcc in {where}: did you mean mc?"
    queue = "mc keeps no queue, so it would be lost: set state.capacity, state.claimName or archive.path at the install"
    way = "uninstall mc first, which loses its queue, or install under another name"
    above = f"the size 4 is above the maxSize of mc, 3: lower it, or {way}"
    refusals = {
        ("delete", "mcc"): near,
        ("scale", "mcc", "1"): near,
        ("wait", "mcc"): near,
        ("delete", "other"): f"there is no MiniCluster other in {where}: see `minicluster list -A` and give its -n",
        ("scale", "mc", "4"): above,
        ("replace", "mc", "--set", "maxSize=9"): f"{queue}; or uninstall mc and install it again",
    }
    for words, message in refusals.items():
        begin = cpu_seconds()
        done = minicluster(*words)
        # of a quiet machine's time nearly all is CPU
        used = cpu_seconds() - begin
        assert done == Done(1, "", f"minicluster: {message}\n")
        assert used < 1.5, (words, used)
    assert release.get("job")["spec"]["completions"] == 2


def cpu_seconds() -> float:
    """Return the CPU time of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
