"""The Roles of docs/how-to/give-users-rights.md are enough, and give no rights beyond those on the page."""

import json
import re
from typing import Any

import pytest
import yaml
from simulated import live
from support import ROOT, Helm, lines_with

from tools.clients import Done, run
from tools.releases import Release

PAGE = (ROOT / "docs/how-to/give-users-rights.md").read_text(encoding="utf-8")
ROLES: dict[str, dict[str, Any]] = {
    role["metadata"]["name"]: role
    for role in map(yaml.safe_load, re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
}
INSTALL, USE, WAKE = "minicluster-install", "minicluster-use", "minicluster-wake"
#: `pods/exec` would be a pod with the name exec
EXEC, LOG = "pods --subresource=exec", "pods --subresource=log"


def give(release: Release, name: str, without: str = "") -> None:
    """Bind "user" to a Role of the page, without a resource."""
    rules = [
        {**rule, "resources": [each for each in rule["resources"] if each != without]} for rule in ROLES[name]["rules"]
    ]
    metadata = {**ROLES[name]["metadata"], "namespace": release.namespace}
    release.cluster.create(
        {**ROLES[name], "metadata": metadata, "rules": [rule for rule in rules if rule["resources"]]}
    )
    release.kubectl("create", "rolebinding", name, f"--role={name}", "--user=user")


def may(release: Release, verb: str, what: str) -> bool:
    """Say whether "user" may do something in the namespace."""
    return release.cluster.allows("user", release.namespace, verb, what)


def test_the_install_role_of_the_documentation_is_enough_to_install(user: Helm, release: Release) -> None:
    give(release, INSTALL)
    release.helm = user
    live(release)
    assert may(release, "create", EXEC)


@pytest.mark.parametrize("resource", ["secrets", "configmaps", "services", "jobs"])
def test_the_install_role_of_the_documentation_has_no_unneeded_right(
    user: Helm, release: Release, resource: str
) -> None:
    give(release, INSTALL, without=resource)
    release.helm = user
    assert lines_with(release.refuse(command="install"), "forbidden")


@pytest.mark.any_helm
def test_the_use_role_of_the_documentation_can_not_change_anything(user: Helm, release: Release) -> None:
    release.install(size=1)
    release.running(1)
    give(release, USE)
    allowed = ("get pods", "list pods", f"get {LOG}", f"get {EXEC}", f"create {EXEC}", "get jobs/mc", "list jobs")
    refused = (
        "delete pods",
        "create pods",
        "patch jobs/mc",
        "delete jobs/mc",
        "create jobs",
        "get secrets",
        "list secrets",
    )
    release.cluster.wait("the API server's look at the Role", lambda: may(release, "get", "jobs/mc"))
    answers = {each: may(release, *each.split(maxsplit=1)) for each in (*allowed, *refused)}
    assert {each for each, answer in answers.items() if answer} == set(allowed)
    release.helm = user
    assert lines_with(release.refuse(command="upgrade", size=1), "forbidden")


@pytest.mark.any_helm
def test_the_use_role_wakes_a_cluster_with_the_wake_role(user: Helm, release: Release) -> None:
    release.install(size=1)
    sleeps = {"metadata": {"annotations": {"minicluster/suspended": "idle for 1 s"}}, "spec": {"suspend": True}}
    release.kubectl("patch", "job", "mc", "--type=merge", f"--patch={json.dumps(sleeps)}")
    release.cluster.wait("the end of the pods", lambda: not release.pods())
    give(release, USE)

    def wakes() -> Done:
        words = ("minicluster", "wait", "mc", "-n", release.namespace, "--timeout", "60s")
        return run(*words, env=user.environment)

    refused = wakes()
    assert (refused.code, release.pods()) == (1, [])
    assert 'cannot patch resource "jobs"' in refused.err
    assert refused.err.endswith(": ask for a Role that allows it\n")
    give(release, WAKE)
    woken = wakes()
    assert woken.code == 0, woken.err
    assert not release.get("job")["spec"]["suspend"]
    assert not may(release, "create", "jobs")
