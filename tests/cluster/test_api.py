"""A real API server accepts the objects of examples and cases; `make kubernetes VERSION=…` chooses its version."""

import json
import re
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from batch import Batch, case
from minicluster.render import postrender
from quick import QuickCluster
from simulated import new_namespace
from support import ROOT, SEED, Helm, load_all

from tools import ecosystem, tenant
from tools.clients import ClusterError, ProcessError
from tools.releases import Release

EXAMPLES = ROOT / "values-examples"
FILES = sorted([*EXAMPLES.glob("*.yaml"), *(ROOT / "tests/chart/cases").glob("*.yaml")])
#: Examples that both Helms install: together they have each kind of object and each choice by version.
INSTALLED = ("elastic", "autoscaling", "metrics", "services", "sidecar-monitor", "minimal-service")
#: Those whose pods fit the limits of a shared namespace; test_accepted.py starts the pods of some more.
STARTED = ("elastic", "services", "sidecar-monitor")
#: Cases that are refused by an older Kubernetes: the version that they need, and the reason.
NEEDS = {
    "view-image": ((1, 35), "flux.container.mode=image needs Kubernetes 1.35, this is {}: use auto or copy"),
    **dict.fromkeys(
        ("volume-image", "vllm"),
        (
            (1, 35),
            "containers[0].volumes.model.image needs Kubernetes 1.35, this is {}: use another source, such as a claim",
        ),
    ),
    **dict.fromkeys(
        ("dra", "compute-domain"),
        ((1, 34), "pod.resourceClaims needs Kubernetes 1.34, and this cluster, {}, serves no resource.k8s.io: "),
    ),
}


#: What the pods of tests/chart/cases/every-field.yaml name
CLASSES: tuple[dict[str, Any], ...] = (
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1,
    },
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "nvidia",
        "overhead": {"podFixed": {"cpu": "100m"}},
    },
)


@dataclass(frozen=True)
class Server:
    """The API server, its version, and a namespace for all dry runs, which leave nothing in it."""

    api: QuickCluster
    version: str
    namespace: str
    accepted: set[str] = field(default_factory=set)  #: most objects of a case are the same however it is rendered

    @property
    def helm_options(self) -> tuple[str, ...]:
        """The options by which `helm template` knows as much of the API server as `helm install` does."""
        served = ["v1/Pod", "batch/v1/Job", *(["resource.k8s.io/v1/ResourceClaimTemplate"] * (self.minor >= (1, 34)))]
        return ("--kube-version", self.version, *(f"--api-versions={kind}" for kind in served))

    @property
    def minor(self) -> tuple[int, ...]:
        """The version to compare with."""
        return tuple(map(int, self.version.removeprefix("v").split(".")[:2]))

    def dry_run(self, stream: str) -> set[str]:
        """Return the kinds of what the post-renderer makes of a stream, all of it accepted. Raises ProcessError."""
        return self.accept(load_all(postrender.render(stream.encode(), seed=SEED, allow_random=False).decode()))

    def accept(self, manifests: list[dict[str, Any]]) -> set[str]:
        """Return the kinds of objects, all of them accepted. Raises ProcessError."""
        # test_gangs.py has the PodGroups
        known = [one for one in manifests if one["kind"] != "PodGroup"]
        new = {text: one for one in known if (text := json.dumps(one)) not in self.accepted}
        for one in new.values():
            if one["kind"] == "Pod":
                # a dry run makes no account that a pod could have
                one["spec"].pop("serviceAccountName", None)
        self.api.create(*new.values(), dry_run=True)
        self.accepted.update(new)
        return {one["kind"] for one in known}


@pytest.fixture(scope="module")
def server(api: QuickCluster) -> Server:
    version = json.loads(api.kubectl("get", "--raw", "/version"))["gitVersion"]
    for one in CLASSES:
        # random order may bring a module back
        if one["metadata"]["name"] not in [found["metadata"]["name"] for found in api.get(one["kind"])["items"]]:
            api.create(one)
    # some examples need privileges
    return Server(api, version, new_namespace(api, tenant.PLAIN))


def case_of(server: Server, file: Path) -> dict[str, Any]:
    """Return the case of a values file."""
    values = yaml.safe_load(file.read_text())
    return case(values, release=file.stem.replace(".", "-"), namespace=server.namespace)


@pytest.fixture(scope="module")
def batches(server: Server, helm4: Helm, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Batch]:
    """All files, as Helm renders them without a cluster and with what it knows of this one."""
    known = [case_of(server, file) for file in FILES]
    options = {"portable": (), "live": server.helm_options}
    return {how: Batch(helm4, tmp_path_factory.mktemp(how), known, *words) for how, words in options.items()}


@pytest.mark.parametrize("how", ["portable", "live"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_the_api_server_accepts_the_objects_of_an_example_or_case(
    server: Server, batches: dict[str, Batch], file: Path, how: str
) -> None:
    one = case_of(server, file)
    needed, why = NEEDS.get(one["release"]["Name"], ((1, 0), ""))
    if server.minor < needed:
        if how == "live":
            with pytest.raises(ProcessError, match=re.escape(why.format(server.version))):
                batches[how].texts(one)
        return  # without a version the chart can't know, and renders what was asked for
    assert {"Job", "ConfigMap"} <= server.dry_run(batches[how].stream(one))


@pytest.mark.timeout(3600)
def test_the_api_server_accepts_what_public_files_become(server: Server, helm: Helm) -> None:
    try:
        folder = ecosystem.index()
    except ClusterError as error:
        pytest.skip(str(error))
    known = [file for file in ecosystem.listed() if (folder / file.sha256).is_file()]
    made = partial(ecosystem.objects_of, program=helm.name, namespace=server.namespace, options=server.helm_options)
    refused, accepted = {}, Counter[str]()
    with ProcessPoolExecutor() as workers:
        streams = workers.map(made, ((folder / one.sha256).read_bytes() for one in known))
        for file, texts in zip(known, streams, strict=True):
            try:
                accepted[file.kind] += bool(texts and server.accept(load_all("\n---\n".join(texts))))
            except ProcessError as error:
                refused[f"{file.repository}/{file.path}"] = str(error)
    print(dict(accepted))
    assert refused == {}
    assert accepted


@pytest.mark.parametrize(("example", "admitted"), [("apptainer", True), ("singularity", False)])
def test_pods_with_a_user_namespace_are_admitted_where_privileged_ones_are_not(
    server: Server, helm4: Helm, example: str, admitted: bool
) -> None:
    if server.minor < (1, 35):
        pytest.skip("Pod Security knows user namespaces from 1.35 on")
    namespace = new_namespace(server.api, tenant.PLAIN._replace(security="baseline"))
    text = helm4.template("--namespace", namespace, values=(EXAMPLES / f"{example}.yaml").read_text())
    (job,) = [one for one in load_all(text) if one["kind"] == "Job"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": namespace}}
    with nullcontext() if admitted else pytest.raises(ProcessError, match='violates PodSecurity "baseline:latest"'):
        server.api.create({**pod, "spec": job["spec"]["template"]["spec"]}, dry_run=True)


@pytest.mark.parametrize("example", INSTALLED)
def test_both_helms_install_and_scale_an_example(helm: Helm, server: Server, example: str) -> None:
    namespace = new_namespace(server.api)
    release = Release(helm.with_env(KUBECONFIG=server.api.kubeconfig), server.api, namespace, world=tenant.SHARED)
    values = yaml.safe_load((EXAMPLES / f"{example}.yaml").read_text())
    size = values["size"] + 1
    release.install(**{**values, "maxSize": max(size, values.get("maxSize", 0))})
    if server.api.nodes and example in STARTED:
        release.running(values["size"])
    before = release.get("job")["spec"]
    assert ("successPolicy" in before) is (server.minor >= (1, 31))
    assert any("image" in volume for volume in before["template"]["spec"]["volumes"]) is (server.minor >= (1, 36))
    release.upgrade(size=size)
    if example != "autoscaling":  # autoscaling keeps the live size
        before |= {"completions": size, "parallelism": size}
    assert release.get("job")["spec"] == before
