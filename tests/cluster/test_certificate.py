"""The certificate of a release: where it is, and that it stays the same."""

import base64
import json
import re

import pytest
import yaml
from support import CERTIFICATE, SECRET, lines_with, load_all

from tools.releases import Release


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


@pytest.mark.any_helm
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


@pytest.mark.any_helm
def test_an_upgrade_is_refused_when_the_certificate_secret_is_gone(release: Release) -> None:
    release.install(size=1)
    release.kubectl("delete", "secret", "mc-curve")
    before = release.objects()
    assert lines_with(
        release.refuse(),
        "the Secret mc-curve of the live MiniCluster mc is gone, and its brokers hold the old certificate: "
        "restore the Secret, or uninstall mc first, or install under another name",
    )
    assert release.objects() == before


@pytest.mark.any_helm
def test_a_certificate_secret_of_the_user_is_used(release: Release) -> None:
    release.kubectl("create", "secret", "generic", "mine", f"--from-literal=curve.cert={CERTIFICATE}")
    release.install(flux={"curveCertSecret": "mine"})
    assert ("Secret", "mc-curve") not in release.objects()
    pod = release.get("job")["spec"]["template"]["spec"]
    assert next(v for v in pod["volumes"] if v["name"] == "minicluster-curve")["secret"]["secretName"] == "mine"
    release.upgrade()
    release.ok("uninstall", "--wait")
    assert set(release.objects()) == {("Secret", "mine")}


@pytest.mark.any_helm
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
