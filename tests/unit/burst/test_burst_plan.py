import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minicluster import flux
from minicluster.burst import address, plan
from minicluster.burst.address import Address
from minicluster.burst.root import BurstRequest, parse_values
from minicluster.errors import BurstError, ToolError
from minicluster.flux import parse_idset
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.names import OUR_PREFIX
from minicluster.render import broker, resources
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel
from support import CERTIFICATE, deep

ADDRESS = Address("192.0.2.7", 30093)
CLUSTERS = [{"name": "burst-0", "size": 2}, {"name": "burst-1", "cores": 8, "gpus": 1}]
ROOT = {"size": 3, "flux": {"bursting": {"clusters": CLUSTERS}}}
HOSTLIST = {"size": 2, "flux": {"bursting": {"hostlist": "root-[0-1],vm-[0-3],other"}}}
GROUPS = [{"name": "gpu", "size": 0, "maxSize": 4, "cores": 2, "gpus": 1, "properties": ["a100", "gpu"]}]
GROUPED = {"size": 1, "maxSize": 2, "groups": GROUPS, "flux": {"bursting": {"clusters": CLUSTERS}}}
LISTED = {**GROUPED, "flux": {"bursting": {"hostlist": "root-[0-1],root-gpu-[0-3],vm-[0-1]"}}}
Clusters = Callable[..., MiniClusterModel]


def root_of(values: dict[str, Any]) -> MiniClusterModel:
    return load({"metadata": {"name": "root", "namespace": "jobs"}, "spec": values})


def test_a_burst_has_the_pods_of_the_root_without_its_work(cluster_of: Clusters) -> None:
    runner = {
        "image": "app",
        "cores": 4,
        "command": "lammps",
        "batch": True,
        "logs": "/logs",
        "environment": {"A": "b"},
        "volumes": {"a": {"path": "/a", "claimName": "c"}},
        "commands": {"init": "init", "brokerPre": "lead", "workerPre": "worker", "prefix": "time"},
        "runFlux": True,
    }
    values = {
        "nameOverride": "root",
        "size": 3,
        "maxSize": 5,
        "minSize": 1,
        "tasks": 4,
        "services": [{"name": "db"}],
        "containers": [runner, {"name": "monitor", "image": "monitor"}],
        "archive": {"path": "/a/state.tgz"},
        "report": {"path": "/a/jobs"},
        "flux": {
            "curveCert": CERTIFICATE,
            "optionFlags": "-o x",
            "connectTimeout": "9s",
            "scheduler": {"queuePolicy": "easy"},
            "container": {"image": "view"},
            "bursting": {"clusters": CLUSTERS, "expose": {"type": "NodePort"}},
        },
        "network": {"headlessName": "head", "interface": "eth1"},
        "logging": {"quiet": True},
        "pod": {"nodeSelector": {"pool": "hpc"}, "disruptionBudget": True},
    }
    root = cluster_of(values, name="root")
    assert plan.values(root, plan.find(root, "burst-0"), 1, ADDRESS) == {
        "size": 1,
        "maxSize": 2,
        "containers": [
            {
                "image": "app",
                "cores": 4,
                "logs": "/logs",
                "environment": {"A": "b"},
                "volumes": {"a": {"path": "/a", "claimName": "c"}},
                "commands": {"init": "init", "workerPre": "worker"},
                "runFlux": True,
            },
            {"name": "monitor", "image": "monitor"},
        ],
        "flux": {
            "connectTimeout": "9s",
            "container": {"image": "view"},
            "curveCertSecret": "burst-0-root-curve",
            "bursting": {
                "clusters": [CLUSTERS[0], {"name": "burst-1", "size": 5, "cores": 8, "gpus": 1}],
                "leadBroker": {"name": "root", "address": "192.0.2.7", "port": 30093, "size": 5},
            },
        },
        "network": {"interface": "eth1"},
        "logging": {"quiet": True},
        "pod": {"nodeSelector": {"pool": "hpc"}},
    }


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        (ROOT, "burst-0", ("3-4", "burst-0-[0-1]", True)),
        (ROOT, "burst-1", ("5-7", "burst-1-[0-2]", True)),
        ({**ROOT, "maxSize": 8}, "burst-1", ("10-17", "burst-1-[0-7]", True)),
        ({"flux": {"bursting": {"clusters": [{}]}}}, "burst-0", ("1", "burst-0-0", True)),
        (GROUPED, "burst-0", ("6-7", "burst-0-[0-1]", True)),
        (GROUPED, "burst-1", ("8-9", "burst-1-[0-1]", True)),
        (LISTED, "vm-[0-1]", ("6-7", "vm-[0-1]", False)),
        (HOSTLIST, "vm-[1-2]", ("3-4", "vm-[1-2]", False)),
        (HOSTLIST, "vm-3,other", ("5-6", "vm-3,other", False)),
    ],
)
def test_a_burst_is_found_by_name_with_its_ranks_and_hosts(
    values: dict[str, Any], name: str, expected: tuple[str, str, bool]
) -> None:
    found = plan.find(root_of(values), name)
    assert (found.ranks(), found.hosts, found.is_release) == expected


def test_a_burst_knows_the_groups_of_its_root_and_has_none() -> None:
    root = root_of({**GROUPED, "groups": [*GROUPS, {"name": "spot", "cores": 1}], "autoscaling": {"enabled": True}})
    made = plan.values(root, plan.find(root, "burst-0"), 1, ADDRESS)
    assert made["flux"]["bursting"]["leadBroker"]["groups"] == [
        {"name": "gpu", "maxSize": 4, "cores": 2, "gpus": 1, "properties": ["a100"]},
        {"name": "spot", "maxSize": 1, "cores": 1, "gpus": 0},
    ]
    assert "groups" not in made


@pytest.mark.parametrize("values", [GROUPED, LISTED], ids=["clusters", "hostlist"])
def test_the_hosts_of_groups_are_between_those_of_the_root_and_those_of_bursts(values: dict[str, Any]) -> None:
    root = root_of(values)
    found = plan.find(root, "burst-0" if values is GROUPED else "vm-[0-1]")
    member = plan.member(root, found, plan.values(root, found, 2, ADDRESS))
    after = ["burst-0-[0-1]", "burst-1-[0-1]"] if values is GROUPED else ["vm-[0-1]"]
    assert broker.bootstrap(root) == [{"host": host} for host in ("root-[0-1]", "root-gpu-[0-3]", *after)]
    assert broker.bootstrap(member) == [
        {"host": "root-0", "connect": "tcp://192.0.2.7:30093"},
        *({"host": host} for host in ("root-1", "root-gpu-[0-3]", *after)),
    ]
    execution = json.loads(resources.resource_set(root))["execution"]
    assert execution["R_lite"][1] == {"rank": "2-5", "children": {"core": "0-1", "gpu": "0"}}
    assert execution["properties"] == {"gpu": "2-5", "a100": "2-5"}
    assert resources.resource_set(root) == resources.resource_set(member)
    assert broker.quorum(root) == 1
    assert broker.tree(root)["tbon.topo"] == "kary:0"


def sizes(root: MiniClusterModel, size: int) -> None:
    plan.values(root, plan.find(root, "burst-0"), size, ADDRESS)


JOINS = deep(ROOT, {"size": 2, "flux": {"bursting": {"leadBroker": {"name": "top", "address": "h", "size": 1}}}})
REGISTERED = "flux.bursting.hostlist is root-[0-1],vm-[0-3],other"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: plan.find(root_of(ROOT), "x"), "root has no burst x: flux.bursting.clusters has burst-0, burst-1"),
        (
            lambda: plan.find(root_of({}), "x"),
            "root has no flux.bursting.clusters: the hosts of bursts are registered at its install; uninstall it, and "
            "install it with them",
        ),
        (
            lambda: plan.find(load({"metadata": {"name": "burst-0"}, "spec": JOINS}), "burst-1"),
            "burst-0 is a burst itself: name its root, top, instead",
        ),
        *(
            (
                lambda name=name: plan.find(root_of(HOSTLIST), name),
                f"root has no hosts {name} for a burst: {REGISTERED}; name hosts that are consecutive in it, and not "
                "the root's own",
            )
            for name in ("vm-[2-4]", "vm-1,vm-0", "root-1,vm-0", "burst-0", "vm-[0-1],other")
        ),
        (
            lambda: plan.find(root_of(LISTED), "root-gpu-[0-1]"),
            "root has no hosts root-gpu-[0-1] for a burst: flux.bursting.hostlist is "
            "root-[0-1],root-gpu-[0-3],vm-[0-1]; name hosts that are consecutive in it, and not the root's own",
        ),
        (
            lambda: sizes(root_of(ROOT), 3),
            "the size 3 is impossible: root has registered 2 hosts for burst-0, so give 1 to 2; a live root can't "
            "register more",
        ),
        *(
            (
                lambda text=text: Address.parse(text, 8050),
                f"{text!r} is not an address: write HOST or HOST:PORT, an IPv6 host in brackets",
            )
            for text in ("", "a b", "host:0", "host:65536", "::1", "a;b", "http://a", "host:")
        ),
        (
            lambda: address.of_service(root_of(ROOT), {}, {}, {}),
            "there is no Service root-lead: install root with flux.bursting.expose.type, or give --address",
        ),
        (
            lambda: address.of_service(root_of(ROOT), {"spec": {"type": "LoadBalancer"}}, {}, {}),
            "the load balancer of the Service root-lead has no address yet: wait for it, or give --address",
        ),
        (
            lambda: address.of_service(root_of(ROOT), {"spec": {"type": "NodePort"}}, {}, {}),
            "the lead of root is not on a Kubernetes node yet: wait for its pod, or give --address",
        ),
        (
            lambda: parse_values(b"a: ["),
            "the root's values file is not YAML: did not find expected node content at line 2",
        ),
        (lambda: parse_values(b"a: \xff"), "the root's values file is not YAML: it cannot be read"),
        (lambda: parse_values(b"- a"), "the root's values are a list: they must be a map"),
    ],
)
def test_an_impossible_burst_is_refused_with_the_reason(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(BurstError) as caught:
        ask()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "expected"),
    [("host", "host:1"), ("10.0.0.1:30000", "10.0.0.1:30000"), ("[::1]", "[::1]:1"), ("[::1]:2", "[::1]:2")],
)
def test_an_address_without_a_port_gets_the_default_port(text: str, expected: str) -> None:
    assert str(Address.parse(text, 1)) == expected


POD = {"status": {"hostIP": "10.0.0.1"}}
NODE = {
    "status": {
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "ExternalIP", "address": "192.0.2.1"}]
    }
}


def service(kind: str, **status: Any) -> dict[str, Any]:
    return {"spec": {"type": kind, "ports": [{"port": 8050, "nodePort": 30001}]}, "status": status}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ((service("NodePort"), POD, {}), "10.0.0.1:30001"),
        ((service("NodePort"), POD, NODE), "192.0.2.1:30001"),
        ((service("NodePort"), {"status": {"hostIP": "fd00::1"}}, {}), "[fd00::1]:30001"),
        ((service("LoadBalancer", loadBalancer={"ingress": [{"ip": "192.0.2.2"}]}), POD, NODE), "192.0.2.2:8050"),
        ((service("LoadBalancer", loadBalancer={"ingress": [{"hostname": "lb.example"}]}), {}, {}), "lb.example:8050"),
    ],
)
def test_the_address_of_the_lead_is_that_of_its_service(objects: tuple[Any, Any, Any], expected: str) -> None:
    assert str(address.of_service(root_of(ROOT), *objects)) == expected


def test_the_port_of_the_lead_comes_from_the_values_when_there_is_no_service() -> None:
    expose = {"type": "NodePort", "nodePort": 30093}
    assert address.service_port(root_of(deep(ROOT, {"flux": {"bursting": {"expose": expose}}})), {}) == 30093
    assert address.service_port(root_of(ROOT), {}) == 8050


def test_the_plan_lists_the_objects_that_the_namespace_of_a_burst_needs() -> None:
    values = {
        "containers": [
            {
                "volumes": {"a": {"claimName": "data"}, "b": {"configMapName": "c"}, "d": {"emptyDir": True}},
                "secrets": {"TOKEN": {"name": "token", "key": "k"}},
                "imagePullSecret": "pull",
            },
            {"volumes": {"s": {"secretName": "token"}}},
        ],
        "flux": {"mungeSecret": "munge", "container": {"imagePullSecret": "pull-view"}},
        "pod": {
            "imagePullSecrets": ["pull"],
            "serviceAccountName": "worker",
            "resourceClaims": [
                {"name": "a", "resourceClaimName": "net"},
                {"name": "b", "resourceClaimTemplateName": "gpus"},
                {"name": "c", "spec": {}},
            ],
        },
    }
    assert plan.needs(values) == [
        *("ConfigMap c", "PersistentVolumeClaim data", "ResourceClaim net", "ResourceClaimTemplate gpus"),
        *("Secret munge", "Secret pull", "Secret pull-view", "Secret token", "ServiceAccount worker"),
    ]


def test_only_drains_with_a_minicluster_reason_count_as_ours() -> None:
    drains = ["4-5|minicluster: burst-1 is being removed", "6|broken: minicluster: x", "7|minicluster: |", "|"]
    assert plan.drained(drains, OUR_PREFIX) == [4, 5, 7]
    assert plan.drained(drains, "minicluster: burst-1") == [4, 5]


def test_the_secret_of_a_burst_has_its_name_and_labels() -> None:
    root = root_of(ROOT)
    assert plan.secret(root, plan.find(root, "burst-0"), "text", "there") == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "burst-0-root-curve",
            "namespace": "there",
            "labels": {
                "app.kubernetes.io/name": "minicluster",
                "app.kubernetes.io/instance": "burst-0",
                "app.kubernetes.io/part-of": "root",
            },
        },
        "type": "Opaque",
        "stringData": {"curve.cert": "text"},
    }


SIZES = st.integers(1, 110)


@st.composite
def roots(draw: st.DrawFn) -> dict[str, Any]:
    """Roots with bursts of any sizes, some of them unset."""
    size = draw(SIZES)
    clusters = draw(
        st.lists(
            st.fixed_dictionaries({}, optional={"size": SIZES, "cores": SIZES, "gpus": SIZES}), min_size=1, max_size=5
        )
    )
    max_size = draw(st.none() | st.integers(size, 150))
    fields = {"size": SIZES, "gpus": st.integers(0, 9), "properties": st.lists(st.sampled_from("xy"))}
    group = st.fixed_dictionaries({"name": st.sampled_from("abc"), "cores": SIZES}, optional=fields)
    groups = draw(st.lists(group, max_size=2, unique_by=lambda one: one["name"]))
    runner = {"image": "i", **draw(st.fixed_dictionaries({}, optional={"cores": SIZES}))}
    return {
        "size": size,
        "maxSize": max_size,
        "containers": [runner],
        "groups": groups,
        "flux": {"bursting": {"clusters": clusters}},
    }


def names(entries: list[dict[str, str]]) -> list[str]:
    return [host for entry in entries for host in flux.expand_hosts(entry["host"])]


@settings(max_examples=15)
@given(roots(), st.data())
def test_root_and_burst_have_the_same_host_table(values: dict[str, Any], data: st.DataObject) -> None:
    root = root_of(values)
    one = data.draw(st.sampled_from(root.bursts))
    found = plan.find(root, one["name"])
    member = plan.member(root, found, plan.values(root, found, data.draw(st.integers(1, one["size"])), ADDRESS))
    ours, theirs = broker.bootstrap(root), broker.bootstrap(member)
    assert names(ours) == names(theirs)
    assert [names(theirs)[rank] for rank in parse_idset(found.ranks())] == [
        f"{one['name']}-{index}" for index in range(one["size"])
    ]
    assert [entry for entry in theirs if "connect" in entry] == [{"host": "root-0", "connect": "tcp://192.0.2.7:30093"}]
    assert resources.resource_set(root) == resources.resource_set(member)
    assert broker.tree(root) == broker.tree(member)


@settings(max_examples=10)
@given(SIZES, st.integers(0, 1000), st.integers(1, 1000))
def test_the_host_table_does_not_depend_on_the_size(first: int, more: int, size: int) -> None:
    """A table that depended on `size` would differ after scaling, in the root and in its bursts."""
    max_size = first + more
    tables = [root_of(deep(ROOT, {"size": s, "maxSize": max_size})) for s in (first, min(size, max_size))]
    assert resources.table(tables[0]) == resources.table(tables[1])


@given(st.sets(st.integers(0, 60)))
def test_an_idset_is_parsed_with_and_without_brackets(numbers: set[int]) -> None:
    assert parse_idset(",".join(map(str, sorted(numbers)))) == sorted(numbers)
    assert parse_idset("[0-2,5]\n") == [0, 1, 2, 5]


@pytest.mark.parametrize(
    ("left", "asked"), [("4", ["3-4", "4"]), ("3,4", ["3-4"])], ids=["undrained by somebody", "refused"]
)
def test_a_rank_that_somebody_else_undrained_is_left_out_of_the_next_attempt(
    monkeypatch: pytest.MonkeyPatch, left: str, asked: list[str]
) -> None:
    """A flux before 0.81 has no `undrain --update`: it undrains no rank when one of them is not drained."""
    drained = iter(["3,4", left, left])
    ranks: list[str] = []

    def flux(_: BurstRequest, *words: str) -> str:
        if words[1] == "drain":
            return f"{next(drained)}|minicluster: x\n"
        ranks.append(words[2])
        if len(ranks) == 1:
            raise ToolError("flux resource: rank 3 not drained")
        return ""

    monkeypatch.setattr(BurstRequest, "flux", flux)
    root = root_of(ROOT)
    request = BurstRequest(root, Kubernetes(), plan.find(root, "burst-0"), Kubernetes())
    with nullcontext() if len(asked) > 1 else pytest.raises(ToolError, match="rank 3 not drained"):
        request.undrain(OUR_PREFIX, range(2))
    assert ranks == asked
