"""The ways in which a MiniCluster ends badly: what `minicluster status` and the log say of each.

A test produces each of them and compares the whole line (tests/cluster/test_failures.py, tests/flux); the table of
docs/reference/failures.md is made of them. The release is ``demo``, and … stands for what differs each time.
"""

import re
from dataclasses import dataclass

from minicluster.console.templates import rendered

MARKED = re.compile(r"(<!-- failures -->\n).*?(<!-- end -->)", re.DOTALL)
NAME = "demo"


@dataclass(frozen=True)
class Failure:
    """A way to end badly."""

    cause: str
    status: str  #: the state, or the row that names it, of `minicluster status`
    log: str = ""  #: the line of the lead's log, or of the container that is named; "" where nothing runs
    more: str = ""  #: what the line is too short for


def matches(expected: str, said: str) -> bool:
    """Return whether a line is the one that is expected."""
    return re.fullmatch(".+?".join(map(re.escape, expected.split("…"))), said) is not None


def written(page: str) -> str:
    """Return the page with the table as the failures are now."""
    table = rendered(__file__, "failures.md.j2", failures=FAILURES.values())
    return MARKED.sub(lambda match: f"{match[1]}\n{table}\n{match[2]}", page)


POD = "Starting: the lead is Pending"
LEAD = "Starting: the lead's pod demo-0-… is Failed"
NO_POD = 'Starting: the lead has no pod: Error creating: pods "demo-0-…" is forbidden'
AGAIN = ": failure …, next try in about … s"
CREATE = "create it in this namespace, or correct the value that names it: the pod then starts by itself"

FAILURES: dict[str, Failure] = {
    "image missing": Failure(
        "An image is missing, or its registry needs a login",
        f'{POD}: ImagePullBackOff: Back-off pulling image "nope:1": ErrImagePull: …: correct the '
        "image's name, or set pod.imagePullSecrets for its registry",
        more="Kubernetes retries forever; `minicluster run` gives up after a minute",
    ),
    "image of another architecture": Failure(
        "An image is for another architecture",
        f"{POD}: ErrImagePull: … no match for platform in manifest: not found: the image is not for this Kubernetes "
        "node's architecture: use one that is, or set pod.nodeSelector",
        more="`flux.arch: arm` takes the view for ARM",
    ),
    "view wrong": Failure(
        "The view's image is not a Flux view",
        f"{POD}: CreateContainerError: …opt/software: no such file or directory: the view's image is not a Flux "
        "view: set flux.container.image to one",
        more="[view images](values.md#flux-flux)",
    ),
    "copied view wrong": Failure(
        "The same, where the view is copied",
        "Failed: the container flux-view of pod demo-0-… failed with exit code 66: the view's image is not a "
        "Flux view: set flux.container.image to one",
        log="flux-view: `minicluster: the view image has no /opt/views/view/bin/flux: set flux.container.image "
        "to a Flux view`",
    ),
    "libc too old": Failure(
        "The view needs a newer libc",
        "Failed: the view needs a newer libc than the image has: set flux.container.image to the view of the image's "
        "distribution",
        log="`…: version `GLIBC_…' not found (required by …)`, then `minicluster: the resource set R can't be made: "
        "see the lines above`",
        more="`ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy`, `…/flux-view-rocky:tag-9` and others",
    ),
    "no glibc": Failure(
        "The image has no glibc, as Alpine",
        "Failed: the image has no glibc, which the view needs: take an image with glibc, or one with its own Flux",
        log="`…/bin/flux: not found` (dash, busybox) or `…/bin/flux: cannot execute: required file not found` (bash)",
        more="[images for a view](values.md#images-for-a-view)",
    ),
    "view of another architecture": Failure(
        "The view is for another architecture",
        "Failed: the view is for another architecture than the Kubernetes node: set flux.container.image or flux.arch "
        "to its view",
        log="`…/bin/flux: …: Exec format error`",
    ),
    "no room": Failure(
        "No Kubernetes node has room",
        f"{POD}: Unschedulable: 0/4 nodes are available: 4 Insufficient cpu: lower resources.requests or size; it "
        "starts when a Kubernetes node has room",
    ),
    "no such Kubernetes node": Failure(
        "No Kubernetes node is allowed",
        f"{POD}: Unschedulable: 0/4 nodes are available: 4 node(s) didn't match Pod's node affinity/selector: correct "
        "pod.nodeSelector or pod.nodeAffinity",
    ),
    "quota used up": Failure(
        "A ResourceQuota is used up",
        f"{NO_POD}: exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0: lower resources or "
        "size, or ask for a larger quota",
        more="[quotas](../how-to/give-users-rights.md#quotas)",
    ),
    "quota asks for resources": Failure(
        "A ResourceQuota asks for resources",
        f"{NO_POD}: failed quota: few: must specify requests.cpu for: demo: set containers[].resources: the quota "
        "of the namespace asks for them",
        more="[quotas](../how-to/give-users-rights.md#quotas)",
    ),
    "claim missing": Failure(
        "A claim is missing",
        f'{POD}: Unschedulable: 0/4 nodes are available: persistentvolumeclaim "not-there" not found. not found: '
        "create the claim, or correct the value that names it",
        more="[claims](values.md#claims-of-the-release)",
    ),
    "Secret missing": Failure(
        "A Secret or ConfigMap of the environment is missing",
        f'{POD}: CreateContainerConfigError: secret "not-there" not found: {CREATE}',
    ),
    "Secret of a volume missing": Failure(
        "A Secret or ConfigMap of a volume is missing",
        f'{POD}: ContainerCreating: MountVolume.SetUp failed for volume "munge" : secret "not-there" not found: '
        f"{CREATE}",
        more="seen with the right to list events; `minicluster run` gives up after a minute",
    ),
    "Secret of the release missing": Failure(
        "The same of a Secret or ConfigMap that the chart makes",
        f'{POD}: ContainerCreating: MountVolume.SetUp failed for volume "munge" : secret "demo-curve" not found: it is '
        "the release's own: restore it, or install the release again; a Job that was copied from another cluster, as "
        "MultiKueue does, can't run here",
        more="also where a Job, but not its release, is copied to another cluster",
    ),
    "work out of memory": Failure(
        "The work needs more memory than the limit, and only its process is killed",
        "Failed: the work failed with exit code 137 (killed, most often for want of memory: raise "
        "resources.limits.memory): …",
        log="`minicluster: the job failed with exit code 137`",
    ),
    "out of memory": Failure(
        "The same, and the whole container is killed",
        f"{LEAD}: OOMKilled, exit code 137: it needs more memory: raise resources.limits.memory: failure 1, next "
        "try in about … s",
        more="`/dev/shm` counts too",
    ),
    "evicted for memory": Failure(
        "The Kubernetes node has no memory left",
        f"{LEAD}: Evicted: The node was low on resource: memory. …: set resources.requests.memory to what it "
        f"needs: others are then evicted first{AGAIN}",
        more="[evictions](life-cycle.md#evictions)",
    ),
    "disk of the Kubernetes node full": Failure(
        "The disk of the Kubernetes node is full",
        f"{LEAD}: Evicted: The node was low on resource: ephemeral-storage. …: the disk of its Kubernetes node is "
        f"full: write to a volume, or set resources.requests.ephemeral-storage{AGAIN}",
    ),
    "limit of the disk": Failure(
        "A pod writes more than its limit to the disk",
        f"{LEAD}: Evicted: Pod ephemeral local storage usage exceeds the total limit of containers …: write to "
        f"a volume, or raise resources.limits.ephemeral-storage{AGAIN}",
    ),
    "volume of the pod full": Failure(
        "A volume of the pod (`emptyDir`) is full",
        f'{LEAD}: Evicted: Usage of EmptyDir volume "scratch" exceeds the limit "…": write less there, or give the '
        f"volume a larger limit{AGAIN}",
    ),
    "Kubernetes node lost": Failure(
        "The Kubernetes node of the lead is lost",
        "Unknown: the Kubernetes node lonely-… of the lead gives no sign of life: Kubernetes replaces the pod "
        "when the node is back or removed, or after `kubectl delete pod -n … demo-0-… --force`",
        more="[when something is lost](life-cycle.md#what-is-lost-when)",
    ),
    "too many failures": Failure(
        "Pods failed too often",
        "Failed: its pods failed more than backoffLimit times: `kubectl describe job -n …` lists them (killed, "
        "most often for want of memory: raise resources.limits.memory)",
    ),
    "quorum never": Failure(
        "Nodes don't join the lead",
        "Starting: waits for the quorum, 1 of 2 nodes are up: 1 runs and can't join: `minicluster logs demo "
        "--node 1` says why, or a NetworkPolicy closes the brokers' port, by default 8050",
        log="`<3>broker.err[0]: quorum delayed: waiting for …`",
        more="seen after a minute, in the log not with `logging.quiet`. With `minSize` the work starts with fewer "
        "nodes; [networks](../how-to/give-users-rights.md#networks)",
    ),
    "worker unfit": Failure(
        "The check of a worker's node fails",
        "Starting: waits for the quorum, 1 of 2 nodes are up: 1 stays out: its check failed: no GPU",
        log="demo-1: its output, then `minicluster: demo-1: its check failed: no GPU; it runs again in … s`",
        more="it joins when the check succeeds; [a check of each node](../how-to/check-nodes-and-memory.md)",
    ),
    "lead unfit": Failure(
        "The check of the lead's node fails",
        "Failed: demo-0: its check failed: no GPU",
        log="its output, then `minicluster: demo-0: its check failed: no GPU`",
        more="exit code 69",
    ),
    "claim full": Failure(
        "The volume of Flux's state is full",
        "Problem: the volume of Flux's state is full, … of … MiB are free in /mnt/flux/state/…: free space there or "
        "raise state.capacity; running jobs go on, new ones may hang, and what comes from now on is lost "
        "with the lead's broker",
        log="`minicluster: the volume of Flux's state is full, …` as in the status",
        more="Flux's own lines are `content store: No space left on device`",
    ),
    "claim was full": Failure(
        "The same, when there is space again",
        "Problem: Flux's state is not saved since its volume /mnt/flux/state/… was full, Flux does not try again, "
        "and a new job may hang: save what came since by `flux dump FILE`, then delete the lead's pod",
        log="`minicluster: Flux's state is not saved since its volume /mnt/flux/state/… was full, …` as in the status",
        more="seen with Flux 0.88: neither space nor a reload of `content-sqlite` makes it save, and its KVS may hang",
    ),
    "deadline over": Failure(
        "The deadline is over",
        "Failed: deadlineSeconds are over: raise them, or limit the work itself, which keeps its log "
        "(flux.optionFlags: -t 55m)",
        more="[a limit of time](life-cycle.md#a-limit-of-time)",
    ),
    "API server away": Failure(
        "The API server does not answer",
        "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?: jobs go "
        "on without the API server: try again, or check KUBECONFIG and --context",
    ),
}
