"""A MiniCluster that an upgrade suspends and resumes, without Kueue."""

from tools.releases import Release


def test_an_upgrade_suspends_and_resumes_a_minicluster(release: Release) -> None:
    release.install(size=2, suspend=True)
    assert release.get("job")["spec"]["suspend"] is True
    release.upgrade(suspend=False)
    before = release.running(2)
    release.upgrade(suspend=True)
    release.cluster.wait("the end of the pods", lambda: not release.pods())
    job = release.get("job")
    assert job["spec"]["suspend"] is True
    assert job["metadata"]["annotations"]["minicluster/suspended"] == "the value suspend"
    assert "Failed" not in release.conditions()
    # the size of a suspended cluster may change
    release.upgrade(size=1)
    assert not release.pods()
    release.upgrade(suspend=False)
    after = release.running(1)
    assert not set(before.values()) & set(after.values())
    assert "minicluster/suspended" not in release.get("job")["metadata"]["annotations"]
    # an upgrade that does not name it changes nothing
    release.upgrade(deadlineSeconds=1000)
    assert release.running(1) == after
