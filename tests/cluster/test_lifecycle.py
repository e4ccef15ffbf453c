"""Install, scale, upgrade, roll back and remove, with both Helms."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_release import Release, new_namespace
from embedded import CommandError, EmbeddedCluster
from minicluster.render.load import load
from support import CERTIFICATE, GROUP, ROOT, SECRET, Helm, lines_with, load_all


def test_install(release: Release) -> None:
    done = release.install(size=3, containers=[{"command": "echo hello world"}])
    release.running(3)
    assert set(release.objects()) == {
        ("Job", "mc"),
        ("Service", "mc"),
        ("ConfigMap", "mc-config"),
        ("Secret", "mc-curve"),
    }
    job, service = release.get("job")["spec"], release.get("service")
    assert (job["completions"], job["parallelism"], job["completionMode"]) == (3, 3, "Indexed")
    assert job["successPolicy"] == {"rules": [{"succeededIndexes": "0"}]}
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    data = release.get("configmap", "mc-config")["data"]
    assert data["command"] == "echo hello world"
    certificate = base64.b64decode(release.certificate()).decode()
    assert re.search(r'public-key = "\S{40}"\n    secret-key = "\S{40}"\n$', certificate)
    for index, pod in release.pods().items():
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == (f"mc-{index}", "mc")
    for command in ("kubectl logs", "flux resource list", "flux submit", "--set size=N", "helm uninstall mc"):
        assert lines_with(done.out, command)
    assert release.revisions() == [(1, "deployed")]


def test_every_broker_has_an_address_under_its_name(release: Release) -> None:
    release.install(size=2)
    release.running(2)

    def names() -> set[str]:
        slices = release.items("endpointslices")
        mine = [s for s in slices if s["metadata"]["labels"]["kubernetes.io/service-name"] == "mc"]
        return {endpoint.get("hostname") for s in mine for endpoint in s.get("endpoints") or []}

    release.cluster.wait("addresses", lambda: names() == {"mc-0", "mc-1"})


def test_without_the_post_renderer_nothing_is_created(release: Release) -> None:
    for args in ((), ("--dry-run=server",)):
        done = release.run("install", *args, post=False)
        assert done.code != 0
        assert f'no matches for kind "MiniCluster" in version "{GROUP}/v1"' in done.err
        assert "add--post-renderer-minicluster" in done.err
        assert release.items() == []


def test_an_upgrade_without_the_post_renderer_changes_nothing(release: Release) -> None:
    release.install(size=1, maxSize=2)
    before = release.objects()
    done = release.run("upgrade", values={"size": 2}, post=False)
    assert done.code != 0
    assert GROUP in done.err
    assert release.objects() == before


def spec_without(release: Release, *fields: str) -> dict[str, Any]:
    spec = release.get("job")["spec"]
    return {key: value for key, value in spec.items() if key not in fields}


def test_scaling_changes_the_size_and_restarts_nothing(release: Release) -> None:
    release.install(size=2, maxSize=4, containers=[{"command": "sleep inf"}])
    first = release.running(2)
    spec = spec_without(release, "completions", "parallelism")
    certificate = release.certificate()
    generation = release.get("job")["metadata"]["generation"]
    release.upgrade(size=4)
    grown = release.running(4)
    assert {index: grown[index] for index in first} == first
    assert release.get("job")["metadata"]["generation"] == generation + 1
    release.upgrade("--reuse-values", size=3)
    shrunk = release.running(3)
    assert shrunk == {index: grown[index] for index in range(3)}
    assert spec_without(release, "completions", "parallelism") == spec
    assert (release.get("job")["spec"]["completions"], release.get("job")["spec"]["parallelism"]) == (3, 3)
    assert release.certificate() == certificate
    settings = release.get("configmap", "mc-config")["data"]["settings.sh"]
    assert "\nmc_size=3\n" in settings
    assert "\nmc_max_size=4\n" in settings


def test_scaling_with_nothing_but_the_size(release: Release) -> None:
    # no --reuse-values and no maxSize: the live cluster's is kept
    release.install(size=1, maxSize=3)
    first = release.running(1)
    release.values = {}
    release.upgrade(size=3)
    assert release.running(3)[0] == first[0]


def test_the_ceiling_is_fixed(release: Release) -> None:
    release.install(size=2, maxSize=3)
    before = release.objects()
    message = "MiniCluster mc: size is 4, maxSize 3: lower size, or install with a larger maxSize"
    assert lines_with(release.refuse(size=4), message)
    assert release.objects() == before


def test_two_upgrades_with_unchanged_values_change_nothing(release: Release) -> None:
    release.install(
        size=2,
        maxSize=4,
        containers=[{"command": "echo\nhello", "environment": {"A": "$b"}, "resources": {"limits": {"cpu": 1.5}}}],
        jobLabels={"a": "b"},
        pod={"securityContext": {"fsGroup": 1000660000}, "terminationGracePeriodSeconds": 0, "nodeSelector": {}},
    )
    uids = release.running(2)
    release.cluster.wait("the Job's count of its pods", lambda: release.get("job")["status"].get("ready") == 2)
    before = release.objects()
    release.upgrade()
    assert release.objects() == before
    # a first upgrade says the whole spec, of which Kubernetes filled in a part: Helm 4 then owns that as well
    version = release.get("job")["metadata"]["resourceVersion"]
    release.upgrade("--reuse-values")
    assert release.objects() == before
    assert release.get("job")["metadata"]["resourceVersion"] == version
    assert release.running(2) == uids


def test_the_certificate_survives_upgrade_scaling_and_rollback(release: Release) -> None:
    release.install(size=1, maxSize=3)
    certificate = release.certificate()
    uids = release.running(1)
    release.upgrade(size=3)
    release.running(3)
    assert release.certificate() == certificate
    release.ok("rollback", "1")
    assert release.running(1) == uids
    assert release.certificate() == certificate
    release.upgrade(size=2)
    assert release.running(2)[0] == uids[0]
    assert release.certificate() == certificate


def test_a_given_certificate_is_used_and_can_not_change(release: Release) -> None:
    release.install(flux={"curveCert": CERTIFICATE})
    assert base64.b64decode(release.certificate()).decode() == CERTIFICATE
    release.upgrade()
    other = CERTIFICATE.replace(SECRET, SECRET[::-1])
    text = release.refuse(flux={"curveCert": other})
    assert lines_with(
        text, "flux.curveCert can't change on the live MiniCluster mc: its brokers hold another certificate"
    )
    assert SECRET not in text
    assert SECRET[::-1] not in text
    release.values = {}
    release.upgrade()
    assert base64.b64decode(release.certificate()).decode() == CERTIFICATE


def test_a_lost_certificate_is_no_reason_for_another(release: Release) -> None:
    release.install(size=1)
    release.kubectl("delete", "secret", "mc-curve")
    before = release.objects()
    assert lines_with(
        release.refuse(),
        "the Secret mc-curve of the live MiniCluster mc is gone, and its brokers hold the old certificate: "
        "restore the Secret, or uninstall mc first, or install under another name",
    )
    assert release.objects() == before


def test_an_existing_secret_is_used(release: Release) -> None:
    release.kubectl("create", "secret", "generic", "mine", f"--from-literal=curve.cert={CERTIFICATE}")
    release.install(flux={"curveCertSecret": "mine"})
    assert ("Secret", "mc-curve") not in release.objects()
    pod = release.get("job")["spec"]["template"]["spec"]
    assert next(v for v in pod["volumes"] if v["name"] == "minicluster-curve")["secret"]["secretName"] == "mine"
    release.upgrade()
    release.ok("uninstall", "--wait")
    assert set(release.objects()) == {("Secret", "mine")}


def test_the_certificate_is_in_the_secret_only(release: Release) -> None:
    release.install(size=2, maxSize=3, logging={"debug": True, "zeromq": True, "strict": True, "timed": True})
    release.running(2)
    release.upgrade(size=3)
    certificate = base64.b64decode(release.certificate()).decode()
    key = re.findall(r'-key = "(\S{40})"', certificate)
    assert len(key) == 2
    places = {
        (item["kind"], item["metadata"]["name"])
        for item in release.items()
        if any(
            found in json.dumps(item, ensure_ascii=False).replace("\\\\", "\\")
            for found in (*key, release.certificate())
        )
    }
    assert places == {("Secret", "mc-curve")}
    for document in load_all(release.ok("get manifest")):
        has = any(found in yaml.safe_dump(document, width=10**6) for found in key)
        assert has == ((document["kind"], document["metadata"]["name"]) == ("Secret", "mc-curve"))
    for what in ("values", "notes", "hooks"):
        assert not any(found in release.ok(f"get {what}") for found in key)


def test_uninstall_leaves_nothing(release: Release) -> None:
    release.install(size=2)
    release.running(2)
    release.ok("uninstall", "--wait")
    release.cluster.wait("nothing", lambda: release.items() == [])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 0}, "- at '/size': minimum: got 0, want 1"),
        ({"siez": 1}, "- at '': additional properties 'siez' not allowed"),
        (
            {"size": 3, "maxSize": 2},
            "MiniCluster mc: size is 3, maxSize 2: lower size, or install with a larger maxSize",
        ),
        ({"size": 3, "minSize": 4}, "MiniCluster mc: minSize is 4, size 3: minSize can't be above size; lower minSize"),
        ({"flux": {"curveCert": SECRET}}, "flux.curveCert is not a CURVE certificate"),
        ({"flux": {"brokerConfig": "["}}, "flux.brokerConfig is not TOML"),
        ({"nameOverride": "a" * 62}, "64 characters: 63 are allowed; shorten nameOverride"),
    ],
    ids=str,
)
def test_a_wrong_value_creates_nothing(release: Release, values: dict[str, Any], message: str) -> None:
    text = release.refuse(command="install", **values)
    assert len(lines_with(text, message)) == 1
    assert SECRET not in text
    assert release.items() == []


@pytest.mark.parametrize("name", ["1st", "0"])
def test_a_name_that_begins_with_a_digit(release: Release, name: str) -> None:
    """Older clusters take no such name of a Service (RelaxedServiceNameValidation)."""
    release.install(nameOverride=name)
    release.name = name
    assert set(release.objects()) == {
        ("Job", name),
        ("Service", name),
        ("ConfigMap", f"{name}-config"),
        ("Secret", f"{name}-curve"),
    }
    release.running(1)
    assert release.pods()[0]["spec"]["hostname"] == f"{name}-0"


def test_an_upgrade_with_a_wrong_value_changes_nothing(release: Release) -> None:
    release.install(size=2, maxSize=4)
    release.running(2)
    before = release.objects()
    assert lines_with(release.refuse(size=0), "- at '/size': minimum: got 0, want 1")
    assert lines_with(release.refuse(minSize=3), "MiniCluster mc: minSize is 3, size 2")
    assert release.objects() == before
    assert release.revisions()[0] == (1, "deployed")


def test_texts_arrive_in_kubernetes(release: Release) -> None:
    texts = [
        *(
            "a 'b' \"c\" $HOME ${X} $(MINICLUSTER_HOME) $$ `id` \\ \\n",
            "  lead\n\n trail \n\n",
            "\n a\nb",
            "---\n- x: y # z",
        ),
        *("yes", "012", "1:30", "1e3", "0x1F", "~", "é 日本 🚀", "\ta\t", "{{ .Values }}", "x" * 2000, "word " * 200),
    ]
    environment = {f"V{index}": text for index, text in enumerate(texts)}
    commands = dict(zip(("init", "pre", "brokerPre", "workerPre", "post"), texts, strict=False))
    runner = {"command": texts[0], "environment": environment, "commands": commands}
    release.install(containers=[runner], flux={"environment": environment})
    data = release.get("configmap", "mc-config")["data"]
    files = ("init.sh", "pre.sh", "broker-pre.sh", "worker-pre.sh", "post.sh")
    assert {key: data[file] for key, file in zip(commands, files, strict=True)} == commands
    assert data["command"] == texts[0]
    env = release.get("job")["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {v["name"]: v.get("value", "").replace("$$", "$") for v in env if v["name"] in environment} == environment


# Users and namespaces ----------------------------------------------------------------------------------------


def test_a_user_of_the_namespace_is_enough(user: Helm, release: Release) -> None:
    release.helm = user
    assert lines_with(release.refuse(command="install"), "forbidden")
    release.cluster.grant(release.namespace, "edit")
    release.install(size=1, maxSize=2)
    uids = release.running(1)
    release.upgrade(size=2)
    assert release.running(2)[0] == uids[0]
    release.ok("rollback", "1")
    release.ok("uninstall", "--wait")
    release.cluster.wait("nothing", lambda: [o["kind"] for o in release.items()] == ["RoleBinding"])


@pytest.mark.parametrize("mode", ["image", "copy"])
def test_a_restricted_namespace_admits_the_example(connected: Helm, release: Release, mode: str) -> None:
    example = ROOT / "values-examples" / "restricted.yaml"
    if not example.exists():
        pytest.skip("there is no values-examples/restricted.yaml")
    values = yaml.safe_load(example.read_text())
    namespace = new_namespace(release.cluster, **{"pod-security.kubernetes.io/enforce": "restricted"})
    restricted = Release(connected, release.cluster, namespace)
    restricted.install("--set", f"flux.container.mode={mode}", **values)
    restricted.running(values["size"])
    with_defaults = Release(connected, release.cluster, namespace, name="baseline")
    with_defaults.install(size=1)
    release.cluster.wait(
        "a refusal", lambda: "violates PodSecurity" in release.cluster.kubectl("events", "--namespace", namespace)
    )
    release.cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def test_a_baseline_namespace_admits_the_defaults(connected: Helm, release: Release) -> None:
    namespace = new_namespace(release.cluster, **{"pod-security.kubernetes.io/enforce": "baseline"})
    baseline = Release(connected, release.cluster, namespace)
    baseline.install(size=2)
    baseline.running(2)
    release.cluster.kubectl("delete", "namespace", namespace, "--wait=false")


#: Examples whose pods run on any node with nothing beside them; test_api_examples.py validates all.
PLAIN = (
    "hello-world",
    "interactive",
    "elastic",
    "restricted",
    "batch",
    "sidecar-monitor",
    "services",
    "volume-emptydir-shm",
)


@pytest.mark.parametrize(
    "example", [ROOT / f"values-examples/{name}.yaml" for name in PLAIN], ids=lambda path: path.stem
)
def test_the_examples_install(release4: Release, example: Path) -> None:
    release4.install(**yaml.safe_load(example.read_text()))
    release4.running(release4.values["size"])


@pytest.mark.parametrize("golden", sorted((ROOT / "tests/chart/golden").glob("*.yaml")), ids=lambda path: path.stem)
def test_kubernetes_takes_what_the_golden_files_show(cluster: EmbeddedCluster, golden: Path) -> None:
    documents = load_all(golden.read_text())
    for document in documents:
        document["metadata"]["namespace"] = "default"
    # a Pod is admitted only where its service account and priority class are
    made = [document for document in documents if document["kind"] != "Pod"]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", stdin=text)


# Helm's options ----------------------------------------------------------------------------------------------


def test_options_of_helm(release: Release) -> None:
    assert "kind: Secret" in release.run("install", "--dry-run=server").out
    assert release.items() == []
    release.run("upgrade", "--install", "--wait", "--timeout", "60s", values={"maxSize": 3})
    uids = release.running(1)
    rollback = "--atomic" if release.helm.major == 3 else "--rollback-on-failure"
    assert release.run("upgrade", rollback, "--timeout", "60s", values={"maxSize": 3, "size": 2}).code == 0
    assert release.running(2)[0] == uids[0]
    assert release.run("upgrade", "--reset-then-reuse-values", values={"size": 3}).code == 0
    assert release.running(3)[0] == uids[0]
    before = release.objects()
    done = release.run("upgrade", "--dry-run=server", values={"maxSize": 3})
    assert done.code == 0
    assert "completions: 1" in done.out
    assert release.objects() == before


def test_install_into_a_new_namespace(connected: Helm, release: Release) -> None:
    other = Release(connected, release.cluster, f"{release.namespace}-new")
    other.install("--create-namespace")
    other.running(1)
    release.cluster.kubectl("delete", "namespace", other.namespace, "--wait=false")


def test_helm_4_goes_on_with_what_helm_3_installed(helm3: Helm, helm4: Helm, release: Release) -> None:
    kubeconfig = {"KUBECONFIG": str(release.cluster.kubeconfig)}
    release.helm = Helm("helm3", helm3.home, kubeconfig)
    release.install(size=1, maxSize=3)
    uids, certificate = release.running(1), release.certificate()
    release.helm = Helm("helm", helm4.home, kubeconfig)
    release.upgrade(size=2)
    assert release.running(2)[0] == uids[0]
    release.upgrade("--server-side=true", size=3)
    assert release.running(3)[0] == uids[0]
    assert release.certificate() == certificate


def test_a_size_that_something_else_set(release: Release) -> None:
    release.install(size=1, maxSize=3)
    patch = '{"spec": {"completions": 2, "parallelism": 2}}'
    release.kubectl("patch", "job", "mc", "--field-manager=autoscaler", "--patch", patch)
    uids = release.running(2)
    done = release.run("upgrade", values={"size": 3})
    if release.helm.major == 4:
        assert done.code != 0
        assert 'conflicts with "autoscaler"' in done.err
        assert release.run("upgrade", "--force-conflicts", values={"size": 3}).code == 0
    else:
        assert done.code == 0
    grown = release.running(3)
    assert {index: grown[index] for index in uids} == uids


def test_a_release_needs_no_right_to_read_what_is_not_its_own(user: Helm, release: Release) -> None:
    # an installation that reads beyond its namespace would be forbidden to
    release.cluster.grant(release.namespace, "edit")
    with pytest.raises(CommandError, match="cannot list resource"):
        release.cluster.kubectl("get", "jobs", "--all-namespaces", "--as=user")
    release.helm = user
    release.install()


def test_the_spec_of_a_live_release_is_that_of_its_values(release: Release) -> None:
    release.install(size=2, tasks=4, flux={"logLevel": 3})
    values = json.loads(release.ok("get values", "--output", "json", "--all"))
    made = load({"metadata": {"name": "mc"}, "spec": values})
    assert (made.size, made.spec["tasks"], made.flux["logLevel"]) == (2, 4, 3)
