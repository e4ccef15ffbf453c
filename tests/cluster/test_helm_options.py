"""Options of Helm, a change of Helm's version, and a size that Helm did not set."""

from support import Helm

from tools.releases import Release


def test_helm_dry_run_wait_and_rollback_on_failure_work(release: Release) -> None:
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


def test_install_with_create_namespace_starts_the_pods(connected: Helm, release: Release) -> None:
    other = Release(connected, release.cluster, f"{release.namespace}-new")
    other.install("--create-namespace")
    other.running(1)


def test_helm_4_upgrades_a_release_of_helm_3_without_a_restart(helm3: Helm, helm4: Helm, release4: Release) -> None:
    kubeconfig = release4.cluster.kubeconfig
    release4.helm = helm3.with_env(KUBECONFIG=kubeconfig)
    release4.install(size=1, maxSize=3)
    uids, certificate = release4.running(1), release4.certificate()
    release4.helm = helm4.with_env(KUBECONFIG=kubeconfig)
    release4.upgrade(size=2)
    assert release4.running(2)[0] == uids[0]
    release4.upgrade("--server-side=true", size=3)
    assert release4.running(3)[0] == uids[0]
    assert release4.certificate() == certificate


def test_helm_4_reports_a_conflict_over_a_size_that_something_else_set(release: Release) -> None:
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
