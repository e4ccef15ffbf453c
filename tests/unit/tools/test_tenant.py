"""tools/tenant.py: the parts of a user's world, and the marks of tests that need less of it."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tools import tenant


def mark(*parts: str, **words: str) -> Any:
    return SimpleNamespace(args=parts, kwargs=words)


def test_a_test_that_needs_less_lacks_these_parts_alone() -> None:
    assert tenant.world_of([]) == tenant.SHARED
    some = tenant.world_of([mark("mutation", why="no value for it"), mark("security", why="a folder of its node")])
    assert some == tenant.Tenant(mutation=False, security="")
    assert tenant.world_of([mark(*tenant.Tenant._fields, why="a cluster of one's own")]) == tenant.PLAIN


@pytest.mark.parametrize(
    ("labels", "ends", "stays"),
    [
        ({}, False, False),
        ({"tenant.minicluster/labels": "true"}, False, True),
        ({"tenant.minicluster/mutation": "true"}, False, True),
        ({"tenant.minicluster/labels": "true"}, True, False),
    ],
)
@pytest.mark.parametrize("minor", ["33", "36+"])
def test_the_last_who_leaves_removes_what_was_made(labels: dict[str, str], ends: bool, stays: bool, minor: str) -> None:
    called: dict[str, str] = {}

    def kubectl(verb: str, *_: str, stdin: str = "") -> str:
        called[verb] = stdin
        return json.dumps({"serverVersion": {"minor": minor}})

    one = {"name": "a", "labels": labels} | ({"deletionTimestamp": "2030-01-01T00:00:00Z"} if ends else {})
    there = {"items": [{"metadata": {"name": "default"}}, {"metadata": one}]}
    cluster: Any = SimpleNamespace(kubectl=kubectl, get=lambda _: there)
    tenant.govern(cluster)
    tenant.leave(cluster)
    assert called.get("delete") == (None if stays else called["apply"])
    assert len(json.loads(called["apply"])["items"]) == (4 if minor == "36+" else 2)


@pytest.mark.parametrize("bad", [mark(), mark("labels"), mark("labels", why=" "), mark(why="x"), mark("net", why="x")])
def test_a_mark_without_a_reason_or_with_an_unknown_part_is_an_error(bad: Any) -> None:
    with pytest.raises(ValueError, match="user's world"):
        tenant.world_of([bad])


def test_values_get_what_the_world_asks_and_keep_what_they_have() -> None:
    given: dict[str, Any] = {
        "size": 2,
        "pod": {"labels": {"team": "ml"}, "securityContext": {"runAsUser": 7}},
        "containers": [{"image": "a", "securityContext": {"capabilities": {"drop": ["NET_RAW"]}}}],
        "services": [{"image": "b"}],
        "groups": [{"name": "gpu", "pod": {"labels": {"kind": "gpu"}}}, {"name": "cpu", "pod": {}}, {"name": "own"}],
    }
    groups = [{"name": "gpu", "pod": {"labels": tenant.LABELS | {"kind": "gpu"}}}, *given["groups"][1:]]
    labels = tenant.LABELS | {"team": "ml"}
    hooks = {"hooks": {"resources": {"requests": tenant.LEAST, "limits": tenant.LEAST}}}
    labelled = given | hooks | {"pod": {"labels": labels, "securityContext": {"runAsUser": 7}}, "groups": groups}
    safe = tenant.CONTEXT | {"capabilities": {"drop": ["NET_RAW"]}}
    assert tenant.values(given, tenant.PLAIN) == given
    assert tenant.values(given, tenant.ROOT_PODS) == labelled
    assert tenant.values(given) == {
        "size": 2,
        "pod": {
            "labels": tenant.LABELS | {"team": "ml"},
            "securityContext": tenant.POD_CONTEXT | {"runAsUser": 7},
        },
        "containers": [{"image": "a", "securityContext": safe}],
        "services": [{"image": "b", "securityContext": tenant.CONTEXT}],
        "flux": {"container": {"securityContext": tenant.CONTEXT}},
        "groups": groups,
        **hooks,
    }
    assert tenant.values(tenant.values(given)) == tenant.values(given)
    assert tenant.values({})["containers"] == [{"securityContext": tenant.CONTEXT}]
