"""Each refusal of contradicting values, with its whole message."""

from typing import Any

import pytest
from minicluster.errors import SpecError
from minicluster.render import broker
from minicluster.render.load import load
from minicluster.render.refusals.kubernetes import release
from minicluster.render.resources import registered
from support import deep

LEAD = {"name": "root", "address": "10.0.0.1", "size": 3}
RUNNER: dict[str, Any] = {"image": "a", "runFlux": True}
HOSTLIST = "flux-sample-[0-3],gffw-compute-a-[001-003]"
HOST = "it is for the container that runs Flux"


def sidecar(**fields: Any) -> dict[str, Any]:
    return {"containers": [RUNNER, {"name": "side", "image": "b", **fields}]}


def service(**fields: Any) -> dict[str, Any]:
    return {"services": [{"name": "web", "image": "b", **fields}]}


#: Amounts of memory that nobody means
FEW = {10: "10 bytes: did you mean 10Gi?", "512m": "0.512 bytes: did you mean 512Mi?"}


def runner(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"image": "a", **fields}]}


def volume(**fields: Any) -> dict[str, Any]:
    return runner(volumes={"v": fields})


def bursting(**fields: Any) -> dict[str, Any]:
    return {"flux": {"bursting": fields}}


def due(name: str = "night", **more: Any) -> dict[str, Any]:
    return {"name": name, "cron": "0 2 * * *", "command": ["true"], **more}


def named(**queues: Any) -> dict[str, Any]:
    return {"flux": {"queues": queues}}


def claims(*given: dict[str, Any]) -> dict[str, Any]:
    return {"pod": {"resourceClaims": [*given]}}


def scaling(size: int, max_size: int, **fields: Any) -> dict[str, Any]:
    return {"size": size, "maxSize": max_size, "autoscaling": {"enabled": True, **fields}}


CLAIM = {"state": {"claimName": "c"}}


def broker_toml(**bootstrap: str) -> str:
    """Return a broker.toml with a table bootstrap."""
    return "[bootstrap]\n" + "".join(f"{key} = {value}\n" for key, value in bootstrap.items())


SIZE = "a claim has some size; give e.g. 1Gi"
SOURCES = "claimName, hostPath, secretName, configMapName, emptyDir, csiDriver, capacity, image"
CLAIM_SOURCES = "resourceClaimName, resourceClaimTemplateName, spec"
BURSTS = [{"name": "b0", "size": 4}, {"name": "b1", "size": 2}]
FOLLOWED: list[tuple[dict[str, Any], str]] = [
    (
        {"bursts": ["b0"], "image": ""},
        "is set without an image: name a release's image minicluster in flux.bursting.follow.image, or one that "
        "gitops/follow/Containerfile builds",
    ),
    (
        {"bursts": ["b0:4"]},
        "has 'b0:4' is not NAME, NAME:MIN-MAX, NAME@NAMESPACE or NAME@CONTEXT/NAMESPACE",
    ),
    ({"bursts": ["--b0"]}, "has --b0: flux.bursting.clusters has b0, b1; name one of these"),
    ({"bursts": ["b1:0-3"]}, "has b1 with at most 3 hosts: give 1 to 2, which are registered"),
    ({"bursts": ["b1:0-0"]}, "has b1 with at most 0 hosts: give 1 to 2, which are registered"),
    ({"bursts": ["b0:3-2"]}, "has b0 with at least 3 and at most 2 hosts: lower the first"),
    ({"bursts": ["b0", "b1", "b0@x"]}, "has b0 twice: a burst runs in one place; drop one of them"),
    (
        {"bursts": ["b0@my_jobs"]},
        "has 'b0@my_jobs' in the namespace 'my_jobs': use a-z, 0-9 and - there, at most 63 characters",
    ),
    (
        {"bursts": ["b0@a'$(b)/jobs"]},
        "has b0 in context a'$(b), and there is no kubeconfigSecret: name a Secret with that context, or write "
        "b0@NAMESPACE for this cluster",
    ),
    (
        {"bursts": ["b0@arn:aws:eks:x:1:cluster/mine/jobs"]},
        "has b0 in context arn:aws:eks:x:1:cluster/mine, and there is no kubeconfigSecret: name a Secret with that "
        "context, or write b0@NAMESPACE for this cluster",
    ),
]
ROOMY = {"a": {"path": "/a", "claimName": "c"}}
#: Values with which the lead has an agent
AGENTS: dict[str, dict[str, Any]] = {
    "autoscaling.enabled": {"autoscaling": {"enabled": True}},
    "metrics.enabled": {"metrics": {"enabled": True}},
    "pod.disruptionBudget": {"pod": {"disruptionBudget": True}},
}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"size": 4, "maxSize": 2}, "size is 4, maxSize 2: lower size, or install with a larger maxSize"),
    ({"size": 2, "minSize": 3}, "minSize is 3, size 2: minSize can't be above size; lower minSize"),
    ({"maxSize": 3_000_000}, "maxSize is 3000000: a Job has at most 100000 pods; lower it"),
    (
        bursting(clusters=[{"name": "a", "size": 1}, {"name": "b", "size": 100_001}]),
        "flux.bursting.clusters[1].size is 100001: a Job has at most 100000 pods; lower it",
    ),
    (
        bursting(clusters=[{"name": "mc"}], leadBroker={**LEAD, "size": 100_001}),
        "flux.bursting.leadBroker.size is 100001: a Job has at most 100000 pods; lower it",
    ),
    # containers
    (
        {"containers": [{"name": "a"}, {"name": "b", "runFlux": False}, {"name": "c"}]},
        "containers[0] and containers[2] could each run Flux: set runFlux: true on the one that does",
    ),
    (
        {"containers": [{"name": "a", "runFlux": False}, {"name": "b", "runFlux": False}]},
        "containers[0] and containers[1] have runFlux: false, so none runs Flux: set runFlux: true on the one that "
        "does",
    ),
    (
        {"containers": [RUNNER, {**RUNNER, "name": "b"}, {"name": "c"}]},
        "containers[0] and containers[1] have runFlux: true, and only one can run Flux: leave it on that one",
    ),
    (
        {"containers": [RUNNER, {"image": "b"}]},
        "containers[1] has no name: give it one; only the runner needs none",
    ),
    (
        {"services": [{"image": "b"}]},
        "services[0] has no name: give it one; only the runner needs none",
    ),
    (runner(noWrapEntrypoint=True), "noWrapEntrypoint is set on the container that runs Flux: "),
    ({"containers": [RUNNER, {"name": "mc"}]}, "two containers are named mc: rename one of them"),
    (
        {"containers": [RUNNER, {"name": "flux-view"}]},
        "a container is named flux-view, as flux.container.name: rename one of them",
    ),
    ({"services": [{"name": "w"}, {"name": "w"}]}, "two containers are named w: rename one of them"),
    (
        sidecar(commands={"servicePre": "true"}),
        "containers[1].commands.servicePre is set, but the image's own entrypoint runs: give a command",
    ),
    (sidecar(command="a", noWrapEntrypoint=True), "containers[1] has command and noWrapEntrypoint: drop one of them"),
    (
        sidecar(command="a", commands={"script": "b"}),
        "containers[1] has command and commands.script: give the one that is the work",
    ),
    (
        sidecar(command="a", commands={"nodeCheck": "b"}),
        f"containers[1].commands.nodeCheck is set: {HOST}; use servicePre",
    ),
    (sidecar(command="a", commands={"pre": "b"}), f"containers[1].commands.pre is set: {HOST}; use servicePre"),
    (service(command="a", commands={"post": "b"}), f"services[0].commands.post is set: {HOST}; use servicePre"),
    (service(runFlux=True), f"services[0].runFlux is set: {HOST}; drop it"),
    *((sidecar(**{key: True}), f"containers[1].{key} is set: {HOST}; drop it") for key in ("launcher", "batch")),
    (
        runner(leadOnly=True),
        "containers[0].leadOnly is set on the container that runs Flux: each pod has a broker; drop it",
    ),
    (service(leadOnly=True, command="a"), "services[0].leadOnly is set: a service has a pod of its own; drop it"),
    *(
        (
            sidecar(leadOnly=True, **fields),
            "containers[1].leadOnly is set without a command: its image's entrypoint would run in each pod; give one",
        )
        for fields in ({}, {"noWrapEntrypoint": True})
    ),
    (
        sidecar(leadOnly=True, command="a") | bursting(leadBroker=LEAD, clusters=[{"name": "mc"}]),
        "containers[1].leadOnly is set, and with flux.bursting.leadBroker the lead is elsewhere: drop it",
    ),
    *(
        (
            sidecar(leadOnly=True, command="a")
            | {"pod": {"template": {"spec": {"initContainers": [{"name": "side", probe: {kind: {"port": 80}}}]}}}},
            f"pod.template: the {probe} of side would fail on workers, where nothing listens: use exec, and test that "
            "JOB_COMPLETION_INDEX is 0",
        )
        for probe, kind in (("startupProbe", "httpGet"), ("readinessProbe", "tcpSocket"), ("livenessProbe", "grpc"))
    ),
    (sidecar(cores=2), f"containers[1].cores is set: {HOST}; drop it"),
    *((sidecar(gpus=n), f"containers[1].gpus is set: {HOST}; drop it") for n in (0, 2)),
    (service(gpus=0), f"services[0].gpus is set: {HOST}; drop it"),
    *(
        (
            {"containers": [RUNNER, {"name": name, "ports": [80]}]},
            f"the Service mc-{name} of a sidecar's ports is the cluster's own: rename the sidecar",
        )
        for name in ("lead", "ready")
    ),
    (
        {"containers": [RUNNER, {"name": "s" * 61, "ports": [80]}]},
        f"the Service mc-{'s' * 61} of a sidecar's ports has over 63 characters: rename the sidecar",
    ),
    # variables
    *(
        (values, f"{place}.{name}: names that begin with mc_ or MINICLUSTER_ are the cluster's own; rename it")
        for name in ("mc_work", "mc_submit_words", "MINICLUSTER_HOME", "MINICLUSTER_ENVIRONMENT")
        for place, values in (
            ("flux.environment", {"flux": {"environment": {name: "x"}}}),
            ("containers[0].environment", runner(environment={name: "x"})),
            ("containers[0].secrets", runner(secrets={name: {"name": "a", "key": "b"}})),
            ("containers[1].environment", sidecar(environment={name: "x"})),
            ("services[0].environment", service(environment={name: "x"})),
        )
    ),
    (
        runner(environment={"A": "x", "B": "y"}, secrets={"B": {"name": "a", "key": "b"}}),
        "containers[0] has B in environment and in secrets: drop one of them",
    ),
    # volumes
    (volume(path="/d"), f"containers[0].volumes.v has no source: give exactly one of {SOURCES}"),
    (
        volume(path="/d", claimName="c", hostPath="/h"),
        f"containers[0].volumes.v has claimName and hostPath: give exactly one of {SOURCES}",
    ),
    (volume(claimName="c"), "containers[0].volumes.v has no path: say where to mount it"),
    (
        volume(path="/d", claimName="c", items={"a": "b"}),
        "containers[0].volumes.v.items is set without configMapName or secretName: drop it",
    ),
    (
        volume(path="/d", claimName="c", emptyDirMedium="memory"),
        "containers[0].volumes.v.emptyDirMedium is set without emptyDir: drop it",
    ),
    (
        volume(path="/d", claimName="c", image="i"),
        f"containers[0].volumes.v has claimName and image: give exactly one of {SOURCES}",
    ),
    (volume(image="i"), "containers[0].volumes.v has no path: say where to mount it"),
    (
        volume(path="/d", claimName="c", imagePullPolicy="Never"),
        "containers[0].volumes.v.imagePullPolicy is set without image: drop it",
    ),
    (
        volume(path="/d", image="i", readOnly=False),
        "containers[0].volumes.v.readOnly is false: an image is there for reading only; drop it, and write to another "
        "volume",
    ),
    *(
        (
            volume(path="/d", claimName="c", **{key: value}),
            f"containers[0].volumes.v.{key} is set without capacity: drop it",
        )
        for key, value in (
            ("storageClass", "s"),
            ("accessModes", ["ReadWriteMany"]),
            ("labels", {"a": "b"}),
            ("annotations", {"a": "b"}),
            ("keep", True),
        )
    ),
    (
        volume(path="/d", capacity="1Gi", claimName="c"),
        f"containers[0].volumes.v has claimName and capacity: give exactly one of {SOURCES}",
    ),
    (volume(capacity="1Gi"), "containers[0].volumes.v has no path: say where to mount it"),
    (
        volume(path="/d", capacity="0Gi"),
        "containers[0].volumes.v.capacity is 0Gi: a claim has some size; give e.g. 1Gi",
    ),
    (
        {"size": 3, **volume(path="/d", capacity="1Gi", accessModes=["ReadWriteOncePod"])},
        "containers[0].volumes.v.accessModes is ReadWriteOncePod, and up to 3 pods mount the claim: use ReadWriteMany",
    ),
    (
        volume(path="/d", capacity="1Gi", accessModes=["ReadWriteOncePod", "ReadWriteOnce"]),
        "containers[0].volumes.v.accessModes has ReadWriteOncePod and others: it excludes them; drop it, or the others",
    ),
    (
        {
            **runner(volumes={"v": {"path": "/d", "capacity": "1Gi"}}),
            **service(volumes={"v": {"path": "/e", "capacity": "2Gi"}}),
        },
        "services[0].volumes.v differs from the volume v of another container: rename one of them",
    ),
    (
        {"state": {"capacity": "1Gi"}, **runner(volumes={"state": {"path": "/d", "capacity": "1Gi"}})},
        "containers[0].volumes.state.capacity and state.capacity make one claim, mc-state: rename it",
    ),
    (
        runner(volumes={"minicluster-x": {"emptyDir": True}}),
        "containers[0].volumes.minicluster-x: names that begin with minicluster are the cluster's own; rename it",
    ),
    (
        {
            "containers": [
                {**RUNNER, "volumes": {"v": {"path": "/d", "claimName": "c"}}},
                {"name": "side", "volumes": {"v": {"path": "/d", "claimName": "other"}}},
            ]
        },
        "containers[1].volumes.v differs from the volume v of another container: rename one of them",
    ),
    *(
        (
            volume(path=path, emptyDir=True),
            f"containers[0].volumes.v.path is {shown}: {own} is the cluster's own; mount it elsewhere",
        )
        for path, shown, own in (
            ("/opt/software", "/opt/software", "/opt/software"),
            ("/opt/views/view", "/opt/views/view", "/opt/views"),
            ("//opt/software/", "/opt/software", "/opt/software"),
            ("/mnt/flux", "/mnt/flux", "/mnt/flux"),
            ("/mnt/flux/curve", "/mnt/flux/curve", "/mnt/flux/curve"),
            ("/mnt/flux/minicluster/x", "/mnt/flux/minicluster/x", "/mnt/flux/minicluster"),
        )
    ),
    (
        {"flux": {"container": {"mountPath": "/a"}}, **volume(path="/a", claimName="c")},
        "containers[0].volumes.v.path is /a: /a is the cluster's own; mount it elsewhere",
    ),
    (
        volume(path="/", claimName="c"),
        "containers[0].volumes.v.path is /: it would hide the whole image; mount it elsewhere",
    ),
    (
        runner(volumes={"v": {"path": "/d", "claimName": "c"}, "w": {"path": "/d/", "emptyDir": True}}),
        "containers[0].volumes: v and w are both at /d; mount one elsewhere",
    ),
    (
        service(volumes={"v": {"emptyDir": True}, "w": {"path": "/dev/shm", "claimName": "c"}}),
        "services[0].volumes: v and w are both at /dev/shm; mount one elsewhere",
    ),
    *(
        (volume(**fields), f"containers[0].volumes.v.{place}: Kubernetes allows no .. in a path; write it without")
        for fields, place in (
            ({"path": "/a/../b", "claimName": "c"}, "path is /a/../b"),
            ({"path": "/a", "hostPath": "/b/.."}, "hostPath is /b/.."),
            ({"path": "/a", "secretName": "s", "items": {"k": "../x"}}, "items.k is ../x"),
        )
    ),
    # resources
    (
        runner(resources={"limits": {"cpu": 2}, "requests": {"cpu": "2001m"}}),
        "containers[0].resources.requests.cpu is 2001m, limits.cpu 2: a request can't be above its limit; lower it",
    ),
    (
        {"agent": {"resources": {"limits": {"memory": "64M"}, "requests": {"memory": "64Mi"}}}},
        "agent.resources.requests.memory is 64Mi, limits.memory 64M: a request can't be above its limit; lower it",
    ),
    (
        bursting(follow={"resources": {"limits": {"cpu": 1}, "requests": {"cpu": 2}}}),
        "flux.bursting.follow.resources.requests.cpu is 2, limits.cpu 1: a request can't be above its limit; lower it",
    ),
    (
        service(resources={"requests": {"nvidia.com/gpu": 1}}),
        "services[0].resources.requests.nvidia.com/gpu is 1, limits.nvidia.com/gpu unset: for a device they must be "
        "equal; give both the same number",
    ),
    *(
        (values, f"{place}.{vendor}/gpu: no GPU has this name; there are {there}")
        for vendor, there in (
            ("nvidia", "nvidia.com/gpu, nvidia.com/gpu.shared, nvidia.com/mig-*"),
            ("amd", "amd.com/gpu, amd.com/*_nps*"),
            ("intel", "gpu.intel.com/i915, gpu.intel.com/xe"),
        )
        for place, values in (
            ("containers[0].resources.limits", runner(resources={"limits": {f"{vendor}/gpu": 1}})),
            ("services[0].resources.requests", service(resources={"requests": {f"{vendor}/gpu": 1}})),
        )
    ),
    # devices
    (
        runner(resources={"limits": {"nvidia.com/gpu": 1, "amd.com/gpu": 1}}),
        "containers[0].resources.limits has nvidia.com/gpu and amd.com/gpu: Flux numbers one kind of GPU; drop the "
        "other, or set containers[0].gpus",
    ),
    (runner(gpus=8193), "containers[0].gpus is 8193: must be at most 8192"),
    (runner(gpus=-1), "containers[0].gpus is -1: must be at least 0"),
    (claims({"name": "a"}), f"pod.resourceClaims[0] (a) has no source: give exactly one of {CLAIM_SOURCES}"),
    (
        claims({"name": "a", "resourceClaimName": "b"}, {"name": "c", "spec": {}, "resourceClaimTemplateName": "d"}),
        "pod.resourceClaims[1] (c) has resourceClaimTemplateName and spec: give exactly one of " + CLAIM_SOURCES,
    ),
    (
        claims({"name": "a", "resourceClaimName": "b"}, {"name": "a", "resourceClaimName": "c"}),
        "pod.resourceClaims has a twice: rename one of them",
    ),
    (claims({"resourceClaimName": "b"}), 'pod.resourceClaims[0] is {"resourceClaimName": "b"}: needs name'),
    (claims({"name": "A_", "spec": {}}), 'pod.resourceClaims[0].name is "A_": must have only a-z, 0-9 and -, and '),
    (
        claims({"name": "a", "spec": {"devices": {"requests": [{"name": "b", "deviceClassName": "gpu"}]}}}),
        "pod.resourceClaims[0].spec.devices.requests[0].deviceClassName is not a field of Kubernetes' DeviceRequest: "
        "there are exactly, firstAvailable, name",
    ),
    (
        claims({"name": "a", "spec": {"devices": [1]}}),
        "pod.resourceClaims[0].spec.devices is [1]: must be object",
    ),
    (
        runner(resources={"claims": [{"name": "a"}]}),
        "containers[0].resources.claims has a, and pod.resourceClaims has none: add it there",
    ),
    *(
        (
            deep(claims({"name": "b", "spec": {}}, {"name": "a", "spec": {}}), values),
            f"{place}.resources.claims has x, and pod.resourceClaims has a, b: add it there",
        )
        for place, values in (
            ("containers[1]", sidecar(resources={"claims": [{"name": "b"}, {"name": "x", "request": "a"}]})),
            ("flux.container", {"flux": {"container": {"resources": {"claims": [{"name": "x"}]}}}}),
            ("agent", {"agent": {"resources": {"claims": [{"name": "x"}]}}}),
        )
    ),
    *(
        (
            deep(claims({"name": "a", "spec": {}}), values),
            f"{place}.resources.claims has a: only the brokers' pods have claims; drop it",
        )
        for place, values in (
            ("services[0]", service(resources={"claims": [{"name": "a"}]})),
            ("flux.bursting.follow", bursting(follow={"resources": {"claims": [{"name": "a"}]}})),
        )
    ),
    (runner(cores=10**9), "containers[0].cores is 1000000000: no node has more than 8192; lower it"),
    (
        runner(resources={"limits": {"cpu": "10k"}}),
        "containers[0].resources: cpu is 10000: no node has more than 8192; lower it",
    ),
    (
        runner(resources={"limits": {"nvidia.com/gpu": 8193}}),
        "containers[0].resources: GPUs is 8193: no node has more than 8192; lower it",
    ),
    (
        bursting(clusters=[{"name": "b", "cores": 9000}]),
        "flux.bursting.clusters[0].cores is 9000: no node has more than 8192; lower it",
    ),
    (
        bursting(clusters=[{"name": "b", "gpus": 9000}]),
        "flux.bursting.clusters[0].gpus is 9000: no node has more than 8192; lower it",
    ),
    # fields that Kubernetes defines
    (
        runner(securityContext={"runAsUser": "root"}),
        'containers[0].securityContext.runAsUser is "root": must be integer',
    ),
    (runner(securityContext={"runAsUser": -1}), "containers[0].securityContext.runAsUser is -1: must be at least 0"),
    (
        runner(securityContext={"privileged": "true"}),
        'containers[0].securityContext.privileged is "true": must be boolean',
    ),
    (
        runner(securityContext={"capabilities": {"add": "SYS_PTRACE"}}),
        'containers[0].securityContext.capabilities.add is "SYS_PTRACE": must be array',
    ),
    (
        runner(securityContext={"capabilites": {"add": ["SYS_PTRACE"]}}),
        "containers[0].securityContext.capabilites is not a field of Kubernetes' SecurityContext: "
        "did you mean capabilities?",
    ),
    (
        {"flux": {"container": {"securityContext": {"runAsuser": 0}}}},
        "flux.container.securityContext.runAsuser is not a field of Kubernetes' SecurityContext: "
        "did you mean runAsUser?",
    ),
    (
        {"pod": {"securityContext": {"privileged": True}}},
        "pod.securityContext.privileged is not a field of Kubernetes' PodSecurityContext: there are "
        "appArmorProfile, fsGroup, fsGroupChangePolicy, runAsGroup, runAsNonRoot, runAsUser, seLinuxChangePolicy, "
        "seLinuxOptions, seccompProfile, supplementalGroups, supplementalGroupsPolicy, sysctls, windowsOptions",
    ),
    (
        {"pod": {"tolerations": [{"keys": "a"}]}},
        "pod.tolerations[0].keys is not a field of Kubernetes' Toleration: did you mean key?",
    ),
    (
        {"pod": {"topologySpreadConstraints": [{"maxSkew": "1"}]}},
        'pod.topologySpreadConstraints[0].maxSkew is "1": must be integer',
    ),
    (
        {"pod": {"template": {"spec": {"hostAlias": []}}}},
        "pod.template.spec.hostAlias is not a field of Kubernetes' PodSpec: did you mean hostAliases?",
    ),
    (
        {"pod": {"template": {"metadata": {"annotations": {"a": 1}}}}},
        "pod.template.metadata.annotations.a is 1: must be string",
    ),
    (
        {"pod": {"template": {"spec": {"containers": [{"resources": {"limits": {"memory": "4GB"}}}]}}}},
        'pod.template.spec.containers[0].resources.limits.memory is "4GB": must be a quantity, e.g. 4, 500m or 8Gi',
    ),
    ({"pod": {"template": {"spec": []}}}, "pod.template.spec is []: must be object"),
    (
        {"pod": {"template": {"spec": {"containers": [{"livenessProbe": {"tcpSocket": {"port": []}}}]}}}},
        "pod.template.spec.containers[0].livenessProbe.tcpSocket.port is []: must be integer or string",
    ),
    # job
    ({"job": {"template": {"metadata": {}}}}, "job.template has metadata: set jobLabels and jobAnnotations"),
    (
        {"job": {"template": {"spec": {"managedBy": "a.b/c", "parallelism": 2}}}},
        "job.template.spec has parallelism, which the chart writes: set size",
    ),
    (
        {"job": {"template": {"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}}},
        "job.template.spec.managedBy is kueue.x-k8s.io/multikueue: it would copy the Job alone to another cluster, "
        "without its ConfigMaps, Secret and Service; install where the pods are to run, or burst there",
    ),
    (
        {"job": {"template": {"spec": {"template": {}}}}},
        "job.template.spec has template, which the chart writes: set pod.template",
    ),
    (
        {"job": {"template": {"spec": {"selector": {}}}}},
        "job.template.spec has selector, which the chart writes: drop it",
    ),
    (
        {"job": {"template": {"spec": {"manageBy": "a.b/c"}}}},
        "job.template.spec.manageBy is not a field of Kubernetes' JobSpec: did you mean managedBy?",
    ),
    ({"job": {"template": {"spec": {"managedBy": 1}}}}, "job.template.spec.managedBy is 1: must be string"),
    ({"job": {"template": {"spec": []}}}, "job.template.spec is []: must be object"),
    (
        {"job": {"template": {"managedBy": "a.b/c"}}},
        "job.template.managedBy is not a field of Kubernetes' JobTemplateSpec: there are metadata, spec",
    ),
    # schedules
    (
        {"schedules": [due(), due("b", cron="0 25 * * *")]},
        'schedules[1].cron is "0 25 * * *", which has 25 as its hour: must be 0 to 23',
    ),
    (
        {"schedules": [due(timeZone="Mars/Olympus")]},
        'schedules[0].timeZone is "Mars/Olympus", which is no time zone of the IANA: use one such as Europe/Berlin or '
        "Etc/UTC",
    ),
    (
        {"schedules": [due("a" * 50)]},
        f"schedules[0]: the CronJob would be mc-{'a' * 50}, 53 characters: 52 are allowed; shorten the name",
    ),
    ({"schedules": [due(), due()]}, "schedules[1].name is night, which another schedule has: choose another"),
    (
        {"schedules": [due()], "flux": {"disableSocket": True}},
        "schedules is set and flux.disableSocket is true, so the lead takes no jobs: drop one of them",
    ),
    # queues
    (
        {"jobAnnotations": {"minicluster/immutable": "{}"}},
        "jobAnnotations has minicluster/immutable: the chart writes what begins with minicluster/; choose another name",
    ),
    (
        {"jobAnnotations": {"kueue.x-k8s.io/job-min-parallelism": "1"}},
        "jobAnnotations has kueue.x-k8s.io/job-min-parallelism: Kueue would start fewer pods than size, and the work "
        "would wait for the rest; lower size, or set kueue.elastic and grow later",
    ),
    (
        {"jobLabels": {"kueue.x-k8s.io/queue-name": "a"}, "kueue": {"queueName": "b"}},
        "jobLabels has kueue.x-k8s.io/queue-name a, kueue.queueName is b: drop the label",
    ),
    (
        {"jobLabels": {"kueue.x-k8s.io/priority-class": "a"}, "kueue": {"priorityClass": "b"}},
        "jobLabels has kueue.x-k8s.io/priority-class a, kueue.priorityClass is b: drop the label",
    ),
    (
        {"jobAnnotations": {"kueue.x-k8s.io/elastic-job": "true"}},
        "jobAnnotations has kueue.x-k8s.io/elastic-job true, kueue.elastic is false: drop the annotation and set "
        "kueue.elastic",
    ),
    (
        {"suspend": True, "kueue": {"queueName": "q"}},
        "suspend is true and the Job is in Kueue's queue q, which would resume it: deactivate its Workload, `kubectl "
        'patch workload NAME --type=merge -p \'{"spec":{"active":false}}\'`, or drop suspend',
    ),
    (
        {**scaling(1, 2), "jobLabels": {"kueue.x-k8s.io/queue-name": "q"}},
        "autoscaling is on and the Job is in Kueue's queue q, which restarts all pods when the size changes: set "
        "kueue.elastic, or turn autoscaling off",
    ),
    (
        {"gang": {"queue": "q"}},
        "gang.queue is set and gang.kind is not volcano, which alone has queues: drop gang.queue",
    ),
    (
        {"gang": {"kind": "coscheduling", "queue": "q"}, "pod": {"schedulerName": "s"}},
        "gang.queue is set and gang.kind is not volcano, which alone has queues: drop gang.queue",
    ),
    (
        {"gang": {"kind": "volcano"}},
        "gang.kind is volcano and pod.schedulerName is unset, so no scheduler reads the PodGroup: set it",
    ),
    (
        {
            "gang": {"kind": "coscheduling"},
            "pod": {"schedulerName": "s", "labels": {"scheduling.x-k8s.io/pod-group": "g"}},
        },
        "pod.labels has scheduling.x-k8s.io/pod-group and gang.kind is coscheduling, which sets it: drop one of them",
    ),
    (
        {
            "gang": {"kind": "volcano"},
            "pod": {"schedulerName": "s", "annotations": {"scheduling.k8s.io/group-name": "g"}},
        },
        "pod.annotations has scheduling.k8s.io/group-name and gang.kind is volcano, which sets it: drop one of them",
    ),
    (
        {"gang": {"kind": "kubernetes", "queue": "q"}},
        "gang.queue is set and gang.kind is not volcano, which alone has queues: drop gang.queue",
    ),
    (
        {"gang": {"kind": "kubernetes"}, "pod": {"template": {"spec": {"schedulingGroup": {"podGroupName": "g"}}}}},
        "pod.template.spec has schedulingGroup and gang.kind is kubernetes, which makes the PodGroup: drop one of them",
    ),
    (
        {"gang": {"kind": "kubernetes"}, "job": {"template": {"spec": {"scheduling": {}}}}},
        "job.template.spec has scheduling and gang.kind is kubernetes, which makes the PodGroup: drop one of them",
    ),
    # pod
    (
        {"shareProcessNamespace": True, "pod": {"hostPID": True}},
        "shareProcessNamespace and pod.hostPID are both true: Kubernetes allows one of them; drop the other",
    ),
    (
        {"pod": {"dnsPolicy": "None"}},
        "pod.dnsPolicy is None and no name server is given: set pod.template.spec.dnsConfig.nameservers",
    ),
    (
        {"pod": {"onStop": "requeue", "terminationGracePeriodSeconds": 0}},
        "pod.onStop is 'requeue' and pod.terminationGracePeriodSeconds is 0: a pod is killed before it can put a job "
        "back; allow it some seconds",
    ),
    (
        {"pod": {"onStop": "requeue"}, **runner(command="a", launcher=True)},
        "pod.onStop is 'requeue' and the runner is a launcher: only a launcher knows which of its jobs run again; drop "
        "onStop, and have the launcher mark jobs with --setattr=user.minicluster.requeue=1",
    ),
    (
        runner(command="a", lifeCycle={"preStopExec": "\ufeffa"}),
        "containers[0].lifeCycle.preStopExec begins with a byte-order mark: save it without one",
    ),
    # work
    (
        runner(command="a", commands={"script": "b"}),
        "containers[0] has command and commands.script: give the one that is the work",
    ),
    (
        {"interactive": True, **runner(command="a")},
        "interactive is true and there is a command: an interactive cluster runs none; drop one of them",
    ),
    (runner(command="a", batch=True, launcher=True), "containers[0] has batch and launcher: give the one that fits"),
    (runner(command="a", batchRaw=True), "containers[0].batchRaw is set without batch: set batch too"),
    (
        runner(command=["a"], batch=True),
        "containers[0].batch is set: its command must be a string, one job per line",
    ),
    (runner(launcher=True), "containers[0].launcher is set and there is no command: give one"),
    (runner(command="a", batch=True, diagnostics=True), "containers[0].diagnostics is set beside batch or launcher: "),
    (runner(command="a", commands={"servicePre": "b"}), "containers[0].commands.servicePre is for the other "),
    (
        runner(commands={"nodeCheckSeconds": 9}),
        "containers[0].commands.nodeCheckSeconds is set without nodeCheck: give the check",
    ),
    # flux
    *(
        (
            {"flux": {"memoryReserve": reserve}} | runner(resources={"limits": {"memory": limit}}) | groups,
            f"flux.memoryReserve is {reserve}, and the limit of a runner's memory {least}: no job could run; lower it",
        )
        for reserve, limit, least, groups in (
            ("2Gi", "2Gi", "2Gi", {}),
            ("1.5Gi", 9e9, "1Gi", {"groups": [{"name": "x", "resources": {"limits": {"memory": "1Gi"}}}]}),
        )
    ),
    *(
        (
            {"flux": {"optionFlags": f"-c 2 {flag}"}} | runner(command="a"),
            f"flux.optionFlags has {flag.partition('=')[0].split()[0]}, and `flux run` has no such flag: "
            "set flux.submitCommand to flux submit",
        )
        for flag in ("--cc=1-4", "--bcc 2", "--watch")
    ),
    *(
        (values, f"{place} has 131072 bytes, and Linux gives a program at most 131071: mount it as a file")
        for values, place in (
            ({"flux": {"environment": {"A": "é" * 65535}}}, "flux.environment.A"),
            (runner(environment={"A": "x" * 131070}), "containers[0].environment.A"),
            (runner(command=["echo", "x" * 131072]), "containers[0].command[1]"),
        )
    ),
    (
        {"notify": {"events": ["jobFailed"]}},
        "notify.events are set and no address: name a Secret that has it in notify.secret.name",
    ),
    (
        {"notify": {"secret": {"name": "chat"}}},
        "notify.secret.name is chat and nothing is told: name something in notify.events, or drop it",
    ),
    (
        {"size": 1, "notify": {"secret": {"name": "chat"}, "events": ["leadLost"]}},
        "notify.events has leadLost and no other pod can tell that: raise maxSize, or drop it",
    ),
    (
        {"endAfterSeconds": 60, **runner(command="true")},
        "endAfterSeconds is 60 and the cluster has work, with which it ends: drop the work, or set 0",
    ),
    (
        {"endAfterSeconds": 60, **scaling(1, 2, suspendAfterSeconds=9), **CLAIM},
        "endAfterSeconds is 60 and autoscaling.suspendAfterSeconds set: suspended, it can't end; set one",
    ),
    (
        named(a={"default": True}, b={"default": True}),
        "flux.queues.a and flux.queues.b are both the default: choose one",
    ),
    (
        named(a={}, b={}),
        "flux.queues has no default, and jobs may name no queue: set default in one of a, b",
    ),
    (
        named(a={"group": "gpu"}),
        "flux.queues.a.group is gpu, which is no group: there are no groups",
    ),
    (
        {**named(a={"group": "gp"}), "groups": [{"name": "gpu", "image": "a"}]},
        "flux.queues.a.group is gp, which is no group: give one of gpu",
    ),
    (
        {**named(a={"group": "gpu", "limits": {"nodes": 3}}), "groups": [{"name": "gpu", "maxSize": 2}]},
        "flux.queues.a.limits.nodes is 3, and its jobs can have 2 at most: lower it",
    ),
    (
        {**named(a={"limits": {"nodes": 4}}), "size": 2, "groups": [{"name": "gpu", "size": 1}]},
        "flux.queues.a.limits.nodes is 4, and its jobs can have 3 at most: lower it",
    ),
    (
        {"flux": {"queues": {"a": {}}, "brokerConfig": broker_toml()}},
        "flux.queues and flux.brokerConfig are both set: brokerConfig is used as given; set it there",
    ),
    (
        {"flux": {"scheduler": {"simple": True, "queuePolicy": "easy"}}},
        "flux.scheduler.queuePolicy is easy and simple is true: sched-simple has fcfs only; drop it",
    ),
    (
        {"flux": {"scheduler": {"simple": True, "matchPolicy": "first"}}},
        "flux.scheduler.matchPolicy is first and simple is true: sched-simple has none; drop it",
    ),
    (
        {"flux": {"scheduler": {"queuePolicy": "fcfs"}}},
        "flux.scheduler.queuePolicy is fcfs: Fluxion's fcfs fails a job that needs a node that is not up yet; "
        "use conservative, or simple: true, which is first come, first served and lets it wait",
    ),
    (
        {"flux": {"curveCert": "a", "curveCertSecret": "b"}},
        "flux.curveCert and flux.curveCertSecret are both set: give one of them",
    ),
    (
        {"flux": {"container": {"disable": True, "mode": "copy"}}},
        "flux.container.disable is true and mode is copy: without a view there is no mode; drop it",
    ),
    (
        {"flux": {"brokerConfig": "a = 1", "scheduler": {"simple": True}}},
        "flux.scheduler.simple and flux.brokerConfig are both set: brokerConfig is used as given; set it there",
    ),
    (
        {"flux": {"brokerConfig": "a = 1", "bursting": {"hostlist": "mc-[0-1]"}}},
        "flux.bursting.hostlist and flux.brokerConfig are both set: brokerConfig is used as given; set it there",
    ),
    (
        {"networkPolicy": {"enabled": True}, "pod": {"hostNetwork": True}},
        "networkPolicy.enabled and pod.hostNetwork are both true: a NetworkPolicy does not apply to the host's "
        "network; drop one of them",
    ),
    # the agent
    *(
        (
            {**values, **bursting(leadBroker=LEAD, hostlist="root-0")},
            f"{field} is true beside flux.bursting.leadBroker: it is for the lead's cluster; set it to false here",
        )
        for field, values in AGENTS.items()
    ),
    *(
        (
            {**values, "flux": {"disableSocket": True}},
            f"{field} and flux.disableSocket are both true: the agent needs the broker's socket; drop one of them",
        )
        for field, values in AGENTS.items()
    ),
    (
        {"metrics": {"enabled": True, "port": 8050}},
        "metrics.port is 8050, on which the broker listens: choose another",
    ),
    *(
        (values, "autoscaling is on and goes from 1 to 1: set maxSize, up to which the cluster can grow")
        for values in ({"autoscaling": {"enabled": True}}, scaling(1, 1))
    ),
    (scaling(2, 8, max=9), "autoscaling.max is 9, maxSize 8: lower it, or install with a larger maxSize"),
    (scaling(3, 8, min=4, max=3), "autoscaling.min is 4, autoscaling.max 3: lower min"),
    (scaling(1, 8, min=2), "size is 1, autoscaling goes from 2 to 8: choose a size between"),
    (scaling(5, 8, max=4), "size is 5, autoscaling goes from 1 to 4: choose a size between"),
    (
        {**scaling(4, 8, min=2), "minSize": 3},
        "minSize is 3, autoscaling.min 2: a lead that comes back would wait for nodes that were scaled away; "
        "lower minSize",
    ),
    (
        scaling(2, 8, targetCPUUtilizationPercentage=50),
        "autoscaling.targetCPUUtilizationPercentage is set and the runner requests no CPU: "
        "set resources.requests.cpu, of which it is a part",
    ),
    (
        {"autoscaling": {"handle": True}},
        "autoscaling.handle is true and autoscaling off, so nothing reads its replicas: enable it, or set false",
    ),
    # scale to zero
    (
        {"autoscaling": {"suspendAfterSeconds": 60}, **CLAIM},
        "autoscaling.suspendAfterSeconds is 60 and autoscaling is off, so nothing sees that the cluster is idle: "
        "enable it, or set 0",
    ),
    *(
        (
            {**scaling(1, 2, suspendAfterSeconds=60), **values},
            "autoscaling.suspendAfterSeconds is 60 and Flux's state is not on a claim, so the queue would be lost: set "
            "state.capacity or claimName",
        )
        for values in ({}, {"archive": {"path": "/a/b"}})
    ),
    *(
        (
            {**scaling(1, 2, suspendAfterSeconds=60), **CLAIM, **runner(**work)},
            "autoscaling.suspendAfterSeconds is 60 and the cluster has work of its own, so it is never idle: drop the "
            "work, or set 0",
        )
        for work in ({"command": "x"}, {"commands": {"script": "x"}}, {"diagnostics": True})
    ),
    *(
        (
            {**scaling(1, 2, suspendAfterSeconds=60), **CLAIM, **queue},
            "autoscaling.suspendAfterSeconds is 60 and the Job is in Kueue's queue q, which suspends and resumes: set "
            "0, or leave it",
        )
        for queue in (
            {"kueue": {"queueName": "q", "elastic": True}},
            {"kueue": {"elastic": True}, "jobLabels": {"kueue.x-k8s.io/queue-name": "q"}},
        )
    ),
    (
        {"containers": [RUNNER, {"name": "minicluster-agent"}]},
        "a container is named minicluster-agent, a name of the cluster's own: rename it",
    ),
    (
        runner(name="minicluster-agent"),
        "a container is named minicluster-agent, a name of the cluster's own: rename it",
    ),
    (
        {"flux": {"container": {"name": "minicluster-agent"}}},
        "flux.container.name is minicluster-agent, a name of the cluster's own: rename it",
    ),
    *(
        (
            {**values, "metrics": {**values.get("metrics", {}), "port": 9100}, **runner(ports=[80, 9100])},
            "metrics.port is 9100, a port of another container of the pod: choose another",
        )
        for values in AGENTS.values()
    ),
    # state
    (
        {"state": {"claimName": "c"}, **bursting(leadBroker=LEAD, hostlist="root-0")},
        "state.claimName and flux.bursting.leadBroker are both set: the lead has the state; drop the claim",
    ),
    (
        {"state": {"claimName": "c"}, "archive": {"path": "/a/b"}},
        "state.claimName and archive.path are both set: each restores the queue; drop one of them",
    ),
    (
        {"state": {"capacity": "1Gi"}, "archive": {"path": "/a"}},
        "state.capacity and archive.path are both set: each restores the queue; drop one of them",
    ),
    (
        {"state": {"capacity": "1Gi"}, **bursting(leadBroker=LEAD, clusters=[{"name": "mc"}])},
        "state.capacity and flux.bursting.leadBroker are both set: the lead has the state; drop the claim",
    ),
    (
        {"state": {"capacity": "1Gi", "claimName": "c"}},
        "state.claimName and state.capacity are both set: the claim is yours, or the release makes it; drop one",
    ),
    *(
        (
            {"state": {"claimName": "c", key: value}},
            f"state.{key} is set without capacity: it is of a claim that the release makes; drop it",
        )
        for key, value in (("storageClass", "s"), ("accessModes", ["ReadWriteMany"]))
    ),
    (
        {"size": 2, "state": {"capacity": "1Gi", "accessModes": ["ReadWriteOncePod"]}},
        "state.accessModes is ReadWriteOncePod, and up to 2 pods mount the claim: use ReadWriteMany",
    ),
    (
        {"state": {"capacity": "1Gi", "accessModes": ["ReadOnlyMany"]}},
        "state.accessModes is ReadOnlyMany: the lead writes to the claim; use ReadWriteMany",
    ),
    # the report of the jobs
    *(
        (
            {"report": {key: value}, **bursting(leadBroker=LEAD, hostlist="root-0")},
            f"report.{key} and flux.bursting.leadBroker are both set: the lead cluster has the jobs; drop it",
        )
        for key, value in (("path", "/a/b"), ("log", True))
    ),
    (
        {"report": {"log": True}, "logging": {"quiet": True}},
        "report.log and logging.quiet are both true: a quiet log is the job's output alone; set report.path",
    ),
    *(
        (
            {"report": {"path": path}, **runner(volumes={"d": {"path": "/data", "emptyDir": True}})},
            f"report.path is {path}, on no volume of the runner: the file is lost with the pod; mount a volume there",
        )
        for path in ("/tmp/jobs", "/database/jobs", "/data/../jobs")
    ),
    *(
        (
            {"report": {"path": path}, **runner(volumes={"d": {"path": "/data", "emptyDir": True}})},
            f"report.path is {path}, a folder: name a file in it",
        )
        for path in ("/data", "/data/", "/data/x/")
    ),
    *(
        (
            {"report": {"path": "/a/b/jobs"}, **runner(volumes={**ROOMY, "b": {"path": "/a/b", **source}})},
            "report.path is /a/b/jobs, and the volume at /a/b is read-only: name a file on another one",
        )
        for source in (
            {"secretName": "s"},
            {"configMapName": "s"},
            {"image": "i"},
            {"claimName": "c", "readOnly": True},
        )
    ),
    (
        {"report": {"path": "/a/x"}, "archive": {"path": "/a//x"}, **runner(volumes=ROOMY)},
        "report.path and archive.path are both /a/x: name two files",
    ),
    # bursting
    (bursting(hostlist="mc-0", clusters=[{"size": 1}]), "flux.bursting has hostlist and clusters: give one of them"),
    *(
        (
            bursting(leadBroker={k: v for k, v in LEAD.items() if k != key}, hostlist="root-0"),
            f"flux.bursting.leadBroker has no {key}: name and address are needed",
        )
        for key in ("name", "address")
    ),
    *(
        (
            bursting(leadBroker={k: v for k, v in LEAD.items() if k != key}, clusters=[{"name": "mc"}]),
            f"flux.bursting.leadBroker has no {key}: name, address and size are needed, or a hostlist in place of size",
        )
        for key in LEAD
    ),
    (
        {"flux": {"topology": "binomial", "bursting": {"clusters": [{"size": 1}]}}},
        "flux.topology is binomial with bursting: every broker must reach rank 0 directly; drop it",
    ),
    (
        bursting(clusters=[{"name": "b"}, {"name": "b"}]),
        "two bursts are named b: rename one of them",
    ),
    (
        bursting(clusters=[{"name": "mc"}]),
        "flux.bursting.clusters has mc, this cluster's own name: rename one of them",
    ),
    (
        bursting(clusters=[{"name": "b"}], leadBroker=LEAD),
        "flux.bursting.clusters has no mc: give the lead cluster's list, with this cluster",
    ),
    (
        {"size": 3, **bursting(clusters=[{"name": "mc", "size": 2}], leadBroker=LEAD)},
        "size is 3, flux.bursting.clusters has 2 for mc: lower size",
    ),
    (
        {"maxSize": 3, **bursting(clusters=[{"name": "mc", "size": 2}], leadBroker=LEAD)},
        "maxSize is 3, flux.bursting.clusters has 2 for mc: lower maxSize",
    ),
    (
        {"size": 2, "maxSize": 3, **bursting(clusters=[{"name": "mc", "size": 2}], leadBroker=LEAD)},
        "maxSize is 3, flux.bursting.clusters has 2 for mc: lower maxSize",
    ),
    (
        bursting(hostlist="vm-0,mc-0"),
        "flux.bursting.hostlist is vm-0,mc-0: its first host must be that of the lead, mc-0",
    ),
    (
        {"flux": {"topology": "kary:2", "bursting": {"hostlist": "mc-0,vm-0"}}},
        "flux.topology is kary:2 with bursting: every broker must reach rank 0 directly; drop it",
    ),
    (
        {**runner(command="a"), **bursting(leadBroker=LEAD, hostlist="root-0")},
        "flux.bursting.leadBroker is set and there is a command: the work is the lead cluster's; drop the command",
    ),
    (
        {"archive": {"path": "/a/b"}, **bursting(leadBroker=LEAD, hostlist="root-0")},
        "archive.path and flux.bursting.leadBroker are both set: the lead cluster has the state; drop the path",
    ),
    (
        bursting(expose={"nodePort": 30000}),
        "flux.bursting.expose has a port or annotations and no type: give NodePort or LoadBalancer",
    ),
    # bursts that follow the queue
    *(
        (
            bursting(clusters=BURSTS, expose={"address": "h"}, follow={"image": "i", **follow}),
            f"flux.bursting.follow.bursts {message}",
        )
        for follow, message in FOLLOWED
    ),
    (
        bursting(clusters=BURSTS, follow={"image": "i", "bursts": ["b0"]}),
        "flux.bursting.follow.bursts is set and flux.bursting.expose is not: the bursts reach the lead by it; set its "
        "type",
    ),
    (
        bursting(follow={"image": "i", "bursts": ["b0"]}),
        "flux.bursting.follow.bursts is set without flux.bursting.clusters: register the bursts there",
    ),
    (
        bursting(clusters=[{"name": "mc"}], leadBroker=LEAD, follow={"image": "i", "bursts": ["mc"]}),
        "flux.bursting.follow.bursts is set beside leadBroker: the queue is the lead cluster's; set it there",
    ),
    # aliases
    (
        {"flux": {"leadBroker": LEAD, "bursting": {"leadBroker": LEAD}}},
        "flux.leadBroker and leadBroker are both set: they are two names of one field; give one of them",
    ),
    (
        bursting(leadBroker={**LEAD, "hostlist": "root-[0-2],a-0"}, hostlist="root-[0-2],b-0"),
        "flux.bursting.leadBroker.hostlist and flux.bursting.hostlist differ: they are two names of one field; give "
        "one of them",
    ),
    (
        bursting(leadBroker={"hostlist": "root-0"}),
        "flux.bursting.leadBroker has no name: name and address are needed",
    ),
    (
        bursting(leadBroker={**LEAD, "hostlist": "root-0"}, clusters=[{"name": "mc"}]),
        "flux.bursting has hostlist and clusters: give one of them",
    ),
    (
        runner(commands={"preCommand": "a", "pre": "b"}),
        "preCommand and pre are both set: they are two names of one field; give one of them",
    ),
    (
        {"size": 2, "flux": {"brokerConfig": broker_toml(hosts='[{host = "mc-0"}, {host = "other-[0-3]"}]')}},
        "flux.brokerConfig has no host mc-1 in bootstrap.hosts, so its broker can't start: give "
        'hosts = [{host = "mc-[0-1]"}]',
    ),
    (
        {"flux": {"brokerConfig": broker_toml(default_connect="'tcp://%h.flux-service.ns.svc.cluster.local:%p'")}},
        "flux.brokerConfig has the Service flux-service in bootstrap.default_connect, and the cluster's is mc: set "
        "network.headlessName to flux-service, or write mc",
    ),
    (
        {"flux": {"brokerConfig": broker_toml(curve_cert="'/mnt/flux/view/curve/curve.cert'")}},
        "flux.brokerConfig has bootstrap.curve_cert = /mnt/flux/view/curve/curve.cert, where no file is: write "
        "/mnt/flux/config/curve/curve.cert",
    ),
    (
        {"flux": {"brokerConfig": "resource.path = '/mnt/flux/view/etc/flux/system/R-0'"}},
        "flux.brokerConfig has resource.path = /mnt/flux/view/etc/flux/system/R-0, where no file is: write "
        "/mnt/flux/config/etc/flux/system/R",
    ),
    (
        runner(fluxUser={"name": "a"}, fluxuser={"name": "a"}),
        "fluxuser and fluxUser are both set: they are two names of one field; give one of them",
    ),
    *(({"state": {"capacity": none}}, f"state.capacity is {none}: {SIZE}") for none in (0, 0.0, "0", "0Gi")),
    *(
        (volume(path="/d", **{**source, "capacity": none}), f"containers[0].volumes.v.capacity is {none}: {SIZE}")
        for none in (0, "0")
        for source in ({}, {"claimName": "c"}, {"emptyDir": True})
    ),
    *(
        (
            volume(emptyDir=True, emptyDirSizeLimit=none),
            f"containers[0].volumes.v.emptyDirSizeLimit is {none}, which limits nothing: drop it, or give 1Gi",
        )
        for none in (0, "0Mi")
    ),
    *(
        ({"pod": {"sharedMemory": none}}, f"pod.sharedMemory is {none}: give a size such as 1Gi, or none for 64 MB")
        for none in (0, "0")
    ),
    *(
        (spec, f"{path} is {few}, which is {why}")
        for few, why in FEW.items()
        for path, spec in {
            "containers[0].resources.limits.memory": runner(resources={"limits": {"memory": few}}),
            "containers[0].resources.requests.ephemeral-storage": runner(
                resources={"requests": {"ephemeral-storage": few}}
            ),
            "services[0].resources.limits.memory": {
                "services": [{"name": "db", "image": "db", "resources": {"limits": {"memory": few}}}]
            },
            "agent.resources.limits.memory": {"agent": {"resources": {"limits": {"memory": few, "cpu": 1}}}},
            "groups[0].resources.limits.memory": {
                "groups": [{"name": "gpu", "resources": {"limits": {"memory": few}}}]
            },
            "containers[0].volumes.v.capacity": volume(path="/d", capacity=few),
            "containers[0].volumes.v.emptyDirSizeLimit": volume(emptyDir=True, emptyDirSizeLimit=few),
            "state.capacity": {"state": {"capacity": few}},
            "flux.memoryReserve": {"flux": {"memoryReserve": few}},
            "pod.sharedMemory": {"pod": {"sharedMemory": few}},
        }.items()
    ),
    (
        {"services": [{"name": "db", "image": "db", "resources": {"limits": {"cpu": "4Gi"}}}]},
        "services[0].resources.limits.cpu is 4Gi, which is 4294967296 CPUs, and no node has more than 8192: lower it",
    ),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED, ids=lambda x: x[:50] if isinstance(x, str) else "")
def test_values_that_contradict_each_other_are_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load({"metadata": {"name": "mc", "namespace": "ns"}, "spec": spec})
    text = str(caught.value).removeprefix("MiniCluster mc: ")
    assert text == message or (message.endswith(" ") and text.startswith(message))


@pytest.mark.parametrize(
    "spec",
    [
        scaling(1, 8),
        scaling(8, 8, min=8, max=8),
        {**scaling(2, 8, min=2), "minSize": 2},
        {"size": 9, "maxSize": 9, "autoscaling": {"max": 3}},
        {"size": 3, "autoscaling": {"enabled": True}},
        {"autoscaling": {"enabled": True, "suspendAfterSeconds": 60}, **CLAIM},
        {**scaling(1, 2), "metrics": {"port": 8050}},
        {**scaling(1, 2, suspendAfterSeconds=60), **CLAIM},
        {**scaling(1, 2, suspendAfterSeconds=60), "state": {"capacity": "1Gi"}, "interactive": True},
        {**scaling(2, 8, targetCPUUtilizationPercentage=50), **runner(resources={"limits": {"cpu": 1}})},
    ],
    ids=str,
)
def test_valid_autoscaling_values_are_accepted(spec: dict[str, Any]) -> None:
    load({"metadata": {"name": "mc", "namespace": "ns"}, "spec": spec})


@pytest.mark.parametrize(
    ("alias", "name"),
    [("preCommand", "pre"), ("preWorker", "workerPre"), ("preBroker", "brokerPre")],
    ids=["both", "worker", "broker"],
)
def test_an_alias_of_a_command_means_the_same(alias: str, name: str) -> None:
    # the field itself may be there, empty
    for own in ({}, {name: ""}):
        document = {"metadata": {"name": "mc"}, "spec": runner(command="a", commands={alias: "echo", **own})}
        assert load(document).runner["commands"] == {name: "echo"}


@pytest.mark.parametrize("beside", [{}, {"hostlist": HOSTLIST}, {"hostlist": ""}], ids=["", "twice", "empty"])
@pytest.mark.parametrize("place", ["flux", "bursting"])
def test_the_hostlist_of_a_lead_broker_is_the_host_table(place: str, beside: dict[str, Any]) -> None:
    # as flux-operator's guide has it, without size
    lead = {"name": "flux-sample", "address": "24.123.50.123", "port": 30093, "hostlist": HOSTLIST}
    flux = {"leadBroker": lead, "bursting": beside} if place == "flux" else {"bursting": {"leadBroker": lead} | beside}
    cluster = load({"metadata": {"name": "burst"}, "spec": {"flux": flux}})
    assert broker.bootstrap(cluster) == [
        {"host": "flux-sample-0", "connect": "tcp://24.123.50.123:30093"},
        {"host": "flux-sample-[1-3],gffw-compute-a-[001-003]"},
    ]
    assert registered(cluster) == 7


@pytest.mark.parametrize(
    "spec",
    [
        {"flux": {"container": {"disable": True}}, **volume(path="/opt/software", claimName="c")},
        volume(path="/opt", claimName="c"),
        volume(path="/mnt/flux/data", claimName="c"),
        volume(path="/mnt/flux-data", claimName="c"),
        volume(path="/a..b", claimName="c"),
        {"containers": [RUNNER, {"name": "s" * 60, "ports": [80]}]},
        {"flux": {"topology": "kary:0", "bursting": {"hostlist": "mc-0,vm-0"}}},
        {"maxSize": 100_000, **bursting(clusters=[{"name": "b", "cores": 8192}]), **runner(cores=8192)},
        runner(resources={"limits": {"rdma/hca": 1}}),
        runner(resources={"requests": {"cpu": "1000m", "a.b/gpu": "1"}, "limits": {"cpu": 1, "a.b/gpu": 1}}),
        service(volumes={"v": {"path": "/opt/software", "claimName": "c"}}),
        {
            "containers": [
                {**RUNNER, "volumes": {"v": {"path": "/d", "emptyDir": True}}},
                {"name": "side", "volumes": {"w": {"path": "/d", "emptyDir": True}}},
            ]
        },
        runner(
            resources={"limits": {"cpu": 2, "nvidia.com/gpu": "1"}, "requests": {"cpu": "2000m", "nvidia.com/gpu": 1}}
        ),
        runner(resources={"limits": {"memory": "1Gi"}, "requests": {"memory": "1073741.824k", "cpu": "1e1"}}),
        {"pod": {"dnsPolicy": "None", "template": {"spec": {"dnsConfig": {"nameservers": ["192.0.2.1"]}}}}},
        {"pod": {"template": {"spec": {"containers": [{"name": "x", "env": [{"name": "A", "value": None}]}]}}}},
        {"pod": {"template": {"spec": {"terminationGracePeriodSeconds": 5, "overhead": {"cpu": 0.5}}}}},
        runner(securityContext={"runAsUser": 0, "seccompProfile": {"type": "RuntimeDefault"}}),
        runner(gpus=0, resources={"limits": {"nvidia.com/gpu": 1, "amd.com/gpu": 1}}),
        runner(gpus=None, resources={"limits": {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 1}}),
        {
            **runner(resources={"claims": [{"name": "a", "request": "x"}, {"name": "b"}]}),
            "pod": {
                "resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}],
                "template": {"spec": {"resourceClaims": [{"name": "b", "resourceClaimName": "c"}]}},
            },
        },
    ],
    ids=str,
)
def test_values_that_kubernetes_accepts_are_accepted(spec: dict[str, Any]) -> None:
    load({"metadata": {"name": "mc", "namespace": "ns"}, "spec": spec})


@pytest.mark.parametrize(
    ("kubernetes", "taken"), [("", False), ("v1.27.3", False), ("v1.37.9", False), ("v1.99.0", True), ("2.0", True)]
)
def test_unknown_pod_fields_are_accepted_only_for_a_newer_kubernetes(kubernetes: str, taken: bool) -> None:
    spec = {"pod": {"template": {"spec": {"fromTheFuture": 1}}, "securityContext": {"runAsUser": 1}}}
    document = {"metadata": {"name": "mc"}, "spec": spec, "kubernetes": kubernetes}
    if taken:
        load(document)
    else:
        with pytest.raises(SpecError, match=r"^MiniCluster mc: pod.template.spec.fromTheFuture is not a field of "):
            load(document)
    spec["pod"]["securityContext"]["runAsUser"] = "root"
    with pytest.raises(SpecError, match=r"pod.securityContext.runAsUser is .root.: must be integer$"):
        load(document)


@pytest.mark.parametrize("kubernetes", ["", "v1.32.0", "v1.36.0"])
def test_a_resource_claim_has_the_fields_of_the_stable_version(kubernetes: str) -> None:
    spec = claims({"name": "a", "spec": {"devices": {"requests": [{"name": "b", "exactly": {"count": 2}}]}}})
    document = {"metadata": {"name": "mc"}, "spec": spec, "kubernetes": kubernetes}
    load(document)
    spec["pod"]["resourceClaims"][0]["spec"]["devices"]["requests"][0]["exactly"]["derivedAttributes"] = []
    if kubernetes:
        shown = f"{max((1, 34), release(kubernetes) or ())[1]}"
        with pytest.raises(
            SpecError, match=rf"derivedAttributes needs Kubernetes 1.37, this is 1\.{shown}: remove it$"
        ):
            load(document)


@pytest.mark.parametrize(
    ("kubernetes", "taken"), [("", True), ("v1.36.9", False), ("1.36", False), ("v1.37.0", True), ("v2.0.0", True)]
)
def test_a_gang_of_kubernetes_may_autoscale_only_from_kubernetes_1_37_on(kubernetes: str, taken: bool) -> None:
    spec = {**scaling(1, 2), "gang": {"kind": "kubernetes"}}
    document = {"metadata": {"name": "mc"}, "spec": spec, "kubernetes": kubernetes}
    if taken:
        load(document)
        return
    with pytest.raises(SpecError) as caught:
        load(document)
    assert str(caught.value) == (
        "MiniCluster mc: autoscaling is on and gang.kind is kubernetes, and Kubernetes 1.36 fixes the size of a gang: "
        "turn autoscaling off, or drop gang.kind"
    )


NEWER_FIELDS: list[Any] = [
    ({"spec": {"resources": {"limits": {"cpu": 1}}}}, "v1.31.14", "spec.resources needs Kubernetes 1.32, this is 1.31"),
    (
        {"spec": {"containers": [{"lifecycle": {"stopSignal": "SIGUSR1"}}]}},
        "v1.32.13",
        "spec.containers[0].lifecycle.stopSignal needs Kubernetes 1.33, this is 1.32",
    ),
    (
        {"spec": {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}},
        "v1.29.6-gke.100",
        "spec.securityContext.appArmorProfile needs Kubernetes 1.30, this is 1.29",
    ),
]


@pytest.mark.parametrize(("template", "kubernetes", "message"), NEWER_FIELDS, ids=["resources", "signal", "apparmor"])
def test_a_pod_field_that_an_older_kubernetes_lacks_is_refused_by_name(
    template: dict[str, Any], kubernetes: str, message: str
) -> None:
    document = {"metadata": {"name": "mc"}, "spec": {"pod": {"template": template}}}
    with pytest.raises(SpecError) as caught:
        load({**document, "kubernetes": kubernetes})
    assert str(caught.value) == f"MiniCluster mc: pod.template.{message}: remove it"
    for newer in ("v1.33.0", "v1.99.0", ""):
        load({**document, "kubernetes": newer})


@pytest.mark.parametrize("kubernetes", ["v1.33.0", "v1.99.0", ""])
def test_a_newer_pod_field_of_a_wrong_type_is_refused(kubernetes: str) -> None:
    spec = {"pod": {"template": {"spec": {"containers": [{"lifecycle": {"stopSignal": 9}}]}}}}
    with pytest.raises(SpecError, match=r"lifecycle.stopSignal is 9: must be string$"):
        load({"metadata": {"name": "mc"}, "spec": spec, "kubernetes": kubernetes})


FOLLOWS = bursting(
    clusters=[{"name": "b0"}], expose={"address": "h"}, follow={"image": "i", "bursts": ["b0@in-cluster/jobs"]}
)


@pytest.mark.parametrize(
    ("length", "spec", "message"),
    [
        (58, bursting(expose={"type": "NodePort"}), "the Service {}-lead has over 63 characters: shorten nameOverride"),
        (56, FOLLOWS, "the Deployment {}-follow has over 63 characters: shorten nameOverride"),
        (54, service(command="a"), "the host {}-services has over 63 characters: shorten nameOverride"),
    ],
    ids=["lead", "follow", "services"],
)
def test_a_name_too_long_for_the_objects_named_after_it_is_refused(
    length: int, spec: dict[str, Any], message: str
) -> None:
    load({"metadata": {"name": "a" * length}, "spec": spec})
    name = "a" * (length + 1)
    with pytest.raises(SpecError, match=message.format(name)):
        load({"metadata": {"name": name}, "spec": spec})


def digit(name: str, key: str) -> str:
    since = "Kubernetes has such Services from 1.36 on, this is 1.35"
    return f"the name {name} begins with a digit: {since}; set {key} to a name that begins with a letter"


HEADLESS = {"network": {"headlessName": "0svc"}}
LETTER = {"network": {"headlessName": "svc"}}
PORTS = {"containers": [{"name": "a", "runFlux": True}, {"name": "b", "ports": [80]}]}
EXPOSED = bursting(expose={"type": "NodePort"})


@pytest.mark.parametrize(
    ("name", "spec", "wrong", "key"),
    [
        ("2024-run", {}, "2024-run", "nameOverride"),
        ("mc", HEADLESS, "0svc", "network.headlessName"),
        ("2024", HEADLESS, "0svc", "network.headlessName"),
        ("4node", deep(LETTER, PORTS), "4node", "nameOverride"),
        ("4node", deep(LETTER, EXPOSED), "4node", "nameOverride"),
        ("4node", LETTER, "", ""),
        ("mc", deep(LETTER, PORTS), "", ""),
    ],
)
def test_a_service_whose_name_begins_with_a_digit_needs_kubernetes_1_36(
    name: str, spec: dict[str, Any], wrong: str, key: str
) -> None:
    def message(kubernetes: str) -> str:
        try:
            load({"metadata": {"name": name}, "spec": spec, "kubernetes": kubernetes})
        except SpecError as error:
            return str(error).removeprefix(f"MiniCluster {name}: ")
        return ""

    # a version that isn't known may be a newer one
    assert (message("v1.36.0"), message("v1.37.1"), message("")) == ("", "", "")
    assert message("v1.35.9") == (digit(wrong, key) if wrong else "")
