"""Creates a MiniCluster that stays, on storage that fits, and waits for its quorum."""

from contextlib import suppress
from dataclasses import replace

from minicluster.console.streams import Say
from minicluster.console.terminal import ok
from minicluster.errors import DeadlineError, EndError, KubernetesError, StateError
from minicluster.kube.port import KubePort, Object
from minicluster.release import created
from minicluster.status.lookup import find_cluster, refusals
from minicluster.status.reporter import ended
from minicluster.waiting.wait import StartWatch, is_ready, look_for

#: The Role that the agent needs (templates/agent/role.yaml)
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"generateName": "minicluster-"},
    "rules": [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
    ],
}


def with_storage(kubernetes: KubePort, asked: created.CreateReleaseOptions) -> created.CreateReleaseOptions:
    """Return what is asked, with what its storage class offers. Raises UsageError, StateError, AccessError."""
    created.check(asked)
    if not asked.keep:
        return asked
    with refusals():
        known = find_class(kubernetes, asked.keep.storage_class, f"--keep {asked.keep.capacity}@CLASS")
    name, provisioner = known or ("", "")
    if provisioner not in ONE_NODE_PROVISIONERS or max(asked.nodes or 1, asked.most or 1) == 1:
        return asked
    return replace(asked, keep=asked.keep._replace(of_one_node=f"{name} ({provisioner})"))


def _check_role(kubernetes: KubePort, asked: created.CreateReleaseOptions) -> None:
    """Raise StateError if this user may not give the autoscaler's agent its rights: Helm would leave half a release."""
    if not asked.autoscales or asked.files or any("rbac" in text for text in asked.sets):
        return
    try:
        kubernetes.made(ROLE)
    except KubernetesError as error:
        if error.is_forbidden:
            raise StateError(
                "--autoscale needs the right to create Roles, which the ClusterRole edit has not: ask for admin in "
                f"this namespace, or leave it out and change the size by `minicluster scale {asked.name} SIZE`"
            ) from None


def remark(asked: created.CreateReleaseOptions) -> str:
    """Return what a person has to know of the nodes that share a volume; "" for nothing."""
    keep = asked.keep
    if not (keep and keep.of_one_node):
        return ""
    return (
        f"the storage class {keep.of_one_node} has volumes for one Kubernetes node at a time, so all pods of "
        f"{asked.name} run on one; --keep {keep.capacity}@CLASS takes a class for several nodes (ReadWriteMany)"
    )


def create(
    kubernetes: KubePort, asked: created.CreateReleaseOptions, seconds: float | None, say: Say, show: Say
) -> None:
    """Install a MiniCluster, and give ``show`` the command of Helm; with ``seconds`` wait for the quorum.

    After the install the MiniCluster stays. Raises ToolError, StateError for a refusal; EndError, DeadlineError.
    """
    _check_role(kubernetes, asked)
    way = f"`minicluster delete {asked.name}` removes it"
    try:
        show(created.install(kubernetes, asked))
        if text := remark(asked):
            say(text)
        if seconds is None:
            return
        cluster = find_cluster(kubernetes, asked.name)
        end, lead = look_for(cluster.within(seconds), is_ready, say, StartWatch(cluster.name))
    except (EndError, DeadlineError) as error:
        raise type(error)(f"{error}; the release stays: {way}") from None
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"{asked.name} stays, whole or in part: {way}")
        raise
    if end:
        raise EndError(ended(cluster.name, end, lead))
    say(ok(f"{cluster.name}: Running: `minicluster status {cluster.name}` shows it"))


CLASSES = "storageclasses.storage.k8s.io"
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
#: Provisioners whose volumes one Kubernetes node at a time can mount (ReadWriteOnce): local disks, and block devices
ONE_NODE_PROVISIONERS = {
    "blockvolume.csi.oraclecloud.com",
    "cinder.csi.openstack.org",
    "csi.hetzner.cloud",
    "disk.csi.azure.com",
    "diskplugin.csi.alibabacloud.com",
    "dobs.csi.digitalocean.com",
    "ebs.csi.aws.com",
    "kubernetes.io/aws-ebs",
    "kubernetes.io/azure-disk",
    "kubernetes.io/gce-pd",
    "linodebs.csi.linode.com",
    "local.csi.openebs.io",
    "openebs.io/local",
    "openshift-storage.rbd.csi.ceph.com",
    "pd.csi.storage.gke.io",
    "rancher.io/local-path",
    "rook-ceph.rbd.csi.ceph.com",
    "topolvm.io",
    "vpc.block.csi.ibm.io",
}
#: A claim that names no class
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"generateName": "minicluster-"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def find_class(kube: KubePort, name: str, way: str) -> tuple[str, str] | None:
    """Return name and provisioner of a storage class, the default one for ""; None for a user who may not read them.

    ``way`` is how a person names one. Raises StateError when there is none, KubernetesError.
    """
    try:
        items = kube.select(CLASSES)["items"]
    except KubernetesError as error:
        if not error.is_forbidden:
            raise
        if not name and _lacks_default(kube):
            raise StateError(
                f"there is no default storage class for the volumes: give {way}, whose CLASS an administrator knows, "
                "or leave it out"
            ) from None
        return None
    if not items:
        raise StateError("there is no storage class for the volumes: ask an administrator for one, or leave --keep out")
    classes = {
        (each["metadata"]["name"], str(each["provisioner"]))
        for each in items
        if (each["metadata"]["name"] == name if name else _is_default(each))
    }
    if not classes:
        names = ", ".join(sorted(each["metadata"]["name"] for each in items))
        what = f"no storage class {name}" if name else "no default storage class"
        raise StateError(f"there is {what} for the volumes: give {way}; there are {names}")
    return min(classes)


def _lacks_default(kube: KubePort) -> bool:
    """Return whether Kubernetes gives a claim that names no class none, to a user who may not read the classes."""
    with suppress(KubernetesError):  # the install says what is wrong
        return not kube.made(CLAIM)["spec"].get("storageClassName")
    return False


def _is_default(item: Object) -> bool:
    return bool(item["metadata"].get("annotations", {}).get(IS_DEFAULT) == "true")
