"""The address of the lead and the number of hosts that bursts get from a live root."""

import json
import subprocess
import tomllib
from typing import Any

import pytest
import yaml
from support import lines_with

from tools.releases import Release

pytestmark = pytest.mark.any_helm

CLUSTERS = [{"name": "b0"}, {"name": "b1", "size": 1}]


def bursting(**expose: Any) -> dict[str, Any]:
    return {"size": 2, "flux": {"bursting": {"clusters": CLUSTERS, "expose": expose}}}


def lead(release: Release, *words: str) -> dict[str, Any]:
    """Return the lead broker in the values of a burst."""
    command = ["minicluster", "burst", "values", release.name, "b0", "--root-namespace", release.namespace, *words]
    done = subprocess.run(command, env=release.helm.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = yaml.safe_load(done.stdout)["flux"]["bursting"]
    assert found["clusters"][0] == {"name": "b0", "size": 2}
    return dict(found["leadBroker"])


def test_the_notes_show_the_node_port_of_the_lead_once_it_is_known(release: Release) -> None:
    ask = f"  kubectl get service -n {release.namespace} mc-lead"
    assert lines_with(release.install(**bursting(type="NodePort")).out, "get service") == [ask]
    port = release.get("service", "mc-lead")["spec"]["ports"][0]["nodePort"]
    notes = release.upgrade().out
    assert f"\n  port {port} of any Kubernetes node\n" in notes
    places = f"--root-namespace {release.namespace} --context CONTEXT"
    assert lines_with(notes, "minicluster burst") == [
        f"  minicluster burst install mc {name} {places}" for name in ("b0", "b1")
    ]
    release.running(2)
    address = release.live_pods()[0]["status"]["hostIP"]
    assert lead(release) == {"name": "mc", "address": address, "port": port, "size": 2}
    assert lead(release, "--address", "192.0.2.1") == {"name": "mc", "address": "192.0.2.1", "port": port, "size": 2}


def test_the_notes_show_a_chosen_node_port_at_once(release4: Release) -> None:
    # not 30093, which other tests of the same API server give away
    assert (
        "\n  port 30094 of any Kubernetes node\n" in release4.install(**bursting(type="NodePort", nodePort=30094)).out
    )


def test_the_notes_and_bursts_get_the_address_of_the_load_balancer(release4: Release) -> None:
    assert lines_with(release4.install(**bursting(type="LoadBalancer")).out, "get service")
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}}
    release4.kubectl("patch", "service", "mc-lead", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    assert "\n  192.0.2.9:8050\n" in release4.upgrade().out
    assert lead(release4) == {"name": "mc", "address": "192.0.2.9", "port": 8050, "size": 2}
    # how the lead is exposed may change while the root lives
    assert "\n  hpc.example:443\n" in release4.upgrade(**bursting(address="hpc.example:443")).out
    assert lead(release4) == {"name": "mc", "address": "hpc.example", "port": 443, "size": 2}
    assert [key for key in release4.objects() if key[0] == "Service"] == [("Service", "mc")]


def test_scaling_the_root_does_not_change_the_host_table(release4: Release) -> None:
    """Sizes that are not set, of the root and of its bursts, stay those of the install."""
    release4.install(**bursting(type="NodePort"))
    release4.running(2)
    tables = [_hosts(release4)]
    release4.upgrade(size=1)
    tables.append(_hosts(release4))
    assert tables == [[{"host": "mc-[0-1]"}, {"host": "b0-[0-1]"}, {"host": "b1-0"}]] * 2
    assert lead(release4)["size"] == 2


def _hosts(release: Release) -> Any:
    return tomllib.loads(release.get("configmap", "mc-config")["data"]["broker.toml"])["bootstrap"]["hosts"]


def test_the_notes_of_a_burst_name_the_root_that_it_joins(release4: Release) -> None:
    joins = {"name": "root", "address": "192.0.2.9", "size": 2}
    values = {"flux": {"bursting": {"clusters": [{"name": "mc"}], "leadBroker": joins}, "curveCertSecret": "x"}}
    notes = release4.install(**values).out
    assert lines_with(notes, "join") == ["They join root at 192.0.2.9:8050, which runs the work."]
    assert lines_with(notes, "minicluster burst") == [
        f"Remove   minicluster burst remove root mc -n {release4.namespace}   # lets its jobs end first"
    ]
    assert not lines_with(notes, "lead=")
