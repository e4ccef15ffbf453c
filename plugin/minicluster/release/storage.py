"""What a StorageClass offers: Kubernetes does not say it, so the provisioners of block storage are known by name."""

from contextlib import suppress
from typing import NamedTuple

from minicluster.errors import KubernetesError, StateError
from minicluster.kube.port import KubePort, Object

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


class StorageClass(NamedTuple):
    """A storage class."""

    name: str
    provisioner: str

    @property
    def is_of_one_node(self) -> bool:
        """Whether only one Kubernetes node at a time can mount a volume of it."""
        return self.provisioner in ONE_NODE_PROVISIONERS


def find_class(kube: KubePort, name: str, way: str) -> StorageClass | None:
    """Return a storage class, the default one for ""; None for a user who may not read them.

    ``way`` is how a person names one. Raises StateError when there is none, KubernetesError.
    """
    try:
        items = kube.select(CLASSES)["items"]
    except KubernetesError as error:
        if not error.is_forbidden:
            raise
        if not name and _lacks_default(kube):
            raise StateError(f"there is no default storage class for the volumes: give {way}") from None
        return None
    found = {_read(each) for each in items if (each["metadata"]["name"] == name if name else _is_default(each))}
    names = ", ".join(sorted(each["metadata"]["name"] for each in items)) or "none"
    if not found:
        what = f"no storage class {name}" if name else "no default storage class"
        raise StateError(f"there is {what} for the volumes: give {way}; there are {names}")
    return min(found)


def _lacks_default(kube: KubePort) -> bool:
    """Return whether Kubernetes gives a claim that names no class none, to a user who may not read the classes."""
    with suppress(KubernetesError):  # the install says what is wrong
        return not kube.made(CLAIM)["spec"].get("storageClassName")
    return False


def _read(item: Object) -> StorageClass:
    return StorageClass(item["metadata"]["name"], item["provisioner"])


def _is_default(item: Object) -> bool:
    return bool(item["metadata"].get("annotations", {}).get(IS_DEFAULT) == "true")
