"""The world of a user in a shared cluster, in which tests run: limits, a quota, Pod Security, policies.

`Tenant` says which parts a namespace has; `arrange` makes them there. `values` adds what such a world asks of values.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from tools.clients import KubernetesCluster

#: The labels that each pod needs, by which a company charges its teams
LABELS = {"team": "sim", "cost-centre": "1234"}
#: The label that the admission of Jobs adds to their pods
ADDED = "admitted-by"
#: The label of a namespace in which a policy acts; its value tells the part
MARK = "tenant.minicluster/"
SECURITY = "pod-security.kubernetes.io/enforce"
QUOTA = {"pods": "1000", "count/jobs.batch": "500", "limits.cpu": "1000", "limits.memory": "2Ti"}
LEAST = {"cpu": "20m", "memory": "16Mi"}
LIMITS = {
    "type": "Container",
    "min": LEAST,
    "max": {"cpu": "64", "memory": "256Gi"},
    "default": {"cpu": "1", "memory": "512Mi"},
    "defaultRequest": {"cpu": "50m", "memory": "64Mi"},
    "maxLimitRequestRatio": {"cpu": "20", "memory": "8"},
}
ADMISSION = "admissionregistration.k8s.io/v1"
HAS_LABELS = " && ".join(["has(object.metadata.labels)", *(f"'{label}' in object.metadata.labels" for label in LABELS)])
ADD_LABEL = f"""
[JSONPatch{{op: "add", path: "/spec/template/metadata/labels/{ADDED}", value: "policy"}}]
"""
#: What Pod Security `restricted` asks of a pod, and of each container
POD_CONTEXT = {"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
CONTEXT = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


class Tenant(NamedTuple):
    """The parts of the world that a namespace has."""

    limits: bool = True  #: a LimitRange with a minimum, defaults and a ratio
    quota: bool = True  #: a ResourceQuota, which needs controllers
    labels: bool = True  #: pods without LABELS are denied
    mutation: bool = True  #: each new Job gets a label for its pods
    security: str = "restricted"  #: the level of Pod Security that is enforced; "" for none

    def without(self, *parts: str) -> "Tenant":
        """Return the same without parts. Raises ValueError for one that is unknown."""
        if unknown := set(parts) - set(self._fields):
            raise ValueError(f"{', '.join(unknown)}: a user's world has no such part")
        less: dict[str, Any] = {part: "" if part == "security" else False for part in parts}
        return self._replace(**less)

    @property
    def namespace_labels(self) -> dict[str, str]:
        """The labels by which a namespace has the parts that policies make."""
        marks = {f"{MARK}{part}": "true" for part in ("labels", "mutation") if getattr(self, part)}
        return marks | ({SECURITY: self.security} if self.security else {})


#: What a test has by default
SHARED = Tenant()
#: The same for images whose programs run as root
ROOT_PODS = SHARED._replace(security="baseline")
#: A namespace that has none of it, as a user's own cluster
PLAIN = Tenant(limits=False, quota=False, labels=False, mutation=False, security="")


class Less(Protocol):
    """The mark `without` of a test: the parts that its world lacks, and why."""

    args: tuple[str, ...]
    kwargs: Mapping[str, str]


def world_of(marks: Iterable[Less], world: Tenant = SHARED) -> Tenant:
    """Return a world without what the marks of a test name. Raises ValueError for a mark without a reason."""
    for mark in marks:
        if not mark.args or not mark.kwargs.get("why", "").strip():
            raise ValueError("the mark `without` names parts of a user's world, and why the test needs less")
        world = world.without(*mark.args)
    return world


def policies(*, mutating: bool) -> Iterator[dict[str, Any]]:
    """Yield the policies of a cluster; MutatingAdmissionPolicy came with Kubernetes 1.36."""
    pods = _rule("", "pods")
    deny = {"expression": HAS_LABELS, "message": f"pods need the labels {' and '.join(LABELS)}"}
    yield from _policy("Validating", "labels", pods, {"validations": [deny]}, {"validationActions": ["Deny"]})
    if mutating:
        patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": ADD_LABEL}}
        spec = {"reinvocationPolicy": "Never", "mutations": [patch]}
        yield from _policy("Mutating", "mutation", _rule("batch", "jobs"), spec, {})


def _rule(group: str, resource: str) -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}


def _policy(
    kind: str, part: str, rule: Mapping[str, Any], spec: Mapping[str, Any], binding: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield a policy and its binding, for the namespaces that have a part."""
    name, where = f"minicluster-tenant-{part}", {"matchLabels": {f"{MARK}{part}": "true"}}
    match = {"namespaceSelector": where, "resourceRules": [rule]}
    head: dict[str, Any] = {"apiVersion": ADMISSION, "metadata": {"name": name}}
    policy = {"failurePolicy": "Fail", "matchConstraints": match, **spec}
    yield {**head, "kind": f"{kind}AdmissionPolicy", "spec": policy}
    yield {**head, "kind": f"{kind}AdmissionPolicyBinding", "spec": {"policyName": name, **binding}}


def govern(cluster: KubernetesCluster) -> None:
    """Make the policies in a cluster, which act where a namespace asks for them. Raises ProcessError."""
    # by the server: of several workers that begin at once, a client's own `apply` fails for all but one
    cluster.kubectl("apply", "--server-side", "--filename=-", stdin=_listed(cluster))


def leave(cluster: KubernetesCluster) -> None:
    """Remove the policies from a cluster where no namespace asks for them any more. Raises ProcessError."""
    for namespace in cluster.get("namespaces")["items"]:
        metadata = namespace["metadata"]
        is_marked = any(label.startswith(MARK) for label in metadata.get("labels", ()))
        if is_marked and "deletionTimestamp" not in metadata:
            return
    cluster.kubectl("delete", "--ignore-not-found", "--filename=-", stdin=_listed(cluster))


def _listed(cluster: KubernetesCluster) -> str:
    minor = json.loads(cluster.kubectl("version", "--output=json"))["serverVersion"]["minor"]
    made = [*policies(mutating=int(minor.rstrip("+")) >= 36)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": made})


def arrange(cluster: KubernetesCluster, namespace: str, tenant: Tenant) -> None:
    """Make what a namespace has of its own, and wait until it is in force. Raises ClusterError."""
    made = {
        "LimitRange": {"limits": [LIMITS]} if tenant.limits else {},
        "ResourceQuota": {"hard": QUOTA} if tenant.quota else {},
    }
    objects = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": "tenant", "namespace": namespace}, "spec": spec}
        for kind, spec in made.items()
        if spec
    ]
    if objects:
        cluster.create(*objects)
    if tenant.quota:

        def is_counted() -> bool:
            return "hard" in cluster.get("resourcequota", "tenant", "--namespace", namespace).get("status", {})

        # until then the API server refuses each pod
        cluster.wait("the quota of the namespace", is_counted)


def values(given: Mapping[str, Any], world: Tenant = SHARED) -> dict[str, Any]:
    """Return values with what a world asks of them: labels of pods, a minimum, what `restricted` wants."""
    made = {**given}
    if world.limits:
        made["hooks"] = {"resources": {"requests": LEAST, "limits": LEAST}} | made.get("hooks", {})
    if world.labels:
        made = _with_pod(made, "labels", LABELS)
    if world.security == "restricted":
        made = _with_pod(made, "securityContext", POD_CONTEXT)
        flux = {**(made.get("flux") or {})}
        made["flux"] = {**flux, "container": _safe(flux.get("container") or {})}
        made["containers"] = [_safe(one) for one in made.get("containers") or [{}]]
        if "services" in made:
            made["services"] = [_safe(one) for one in made["services"]]
    return made


def _with_pod(given: Mapping[str, Any], key: str, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with more in a field of `pod`, and of each group that has its own in place of it."""
    pod = {**(given.get("pod") or {})}
    made = {**given, "pod": {**pod, key: {**more, **(pod.get(key) or {})}}}
    if "groups" in given:
        made["groups"] = [_with_pod(one, key, more) if key in one.get("pod", {}) else one for one in given["groups"]]
    return made


def _safe(container: Mapping[str, Any]) -> dict[str, Any]:
    return {**container, "securityContext": CONTEXT | (container.get("securityContext") or {})}
