"""Where the pods' programs are: in a ConfigMap that the MiniClusters of a release share, or in a cluster's own."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from minicluster.errors import SpecError
from minicluster.pod import shipped
from minicluster.render import curve, postrender
from minicluster.render.model import MiniClusterModel
from minicluster.render.postrender import BESIDE_SLURM
from support import GROUP, SEED, load_all

Cluster = Callable[..., MiniClusterModel]
PROGRAMS = shipped()
SLURM = {name: text for name, text in PROGRAMS.items() if name.startswith(("slurm", *BESIDE_SLURM))}
SHARED = {name: text for name, text in PROGRAMS.items() if name != "quorum.sh" and name not in SLURM}
#: The programs of another version
OTHERS = {"entrypoint.sh": "#!/bin/sh\n", "old.sh": "x\n"}
JOB = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n"


def encoded(value: Any) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


def named(name: str = "rel-programs", version: str = "0.1.0", files: Any = None) -> dict[str, str]:
    """Return what a hand-over document says of a ConfigMap with programs."""
    return {"name": name, "version": version} | ({"files": encoded(files)} if files else {})


def live(held: dict[str, str]) -> dict[str, str]:
    """Return what a hand-over document says of a live cluster with files in its own ConfigMap."""
    return {"installed": encoded({"release": "rel", "was": {}, "asked": {}, "mutable": [], "files": held})}


def document(name: str, programs: Any = None, namespace: str = "ns", **more: Any) -> str:
    metadata = {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/instance": name, "a": "b"}}
    given = {"programs": programs} if programs is not None else {}
    found = {"apiVersion": f"{GROUP}/v1", "kind": "MiniCluster", "metadata": metadata, **given, **more}
    return f"---\n{json.dumps(found)}\n"


def rendered(*documents: str) -> list[dict[str, Any]]:
    return load_all(postrender.render("".join(documents).encode(), SEED, allow_random=False))


def configmaps(*documents: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the data of the ConfigMaps by namespace and name. Each is there once."""
    found = [one for one in rendered(*documents) if one["kind"] == "ConfigMap"]
    by_name = {(one["metadata"]["namespace"], one["metadata"]["name"]): one["data"] for one in found}
    assert len(by_name) == len(found)
    return by_name


def test_kubectl_apply_can_keep_each_configmap_in_an_annotation() -> None:
    """An annotation has 256 KiB at most; without this room a few more lines would be refused."""
    found = [one for one in rendered(document("a", [named()])) if one["kind"] == "ConfigMap"]
    # as Go writes it
    texts = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in found]
    bytes_ = [len(text.encode()) + 5 * sum(map(text.count, "<>&")) for text in texts]
    assert [one for one in bytes_ if one > 260_000] == []


@pytest.fixture
def own(cluster_of: Cluster) -> dict[str, str]:
    """Return the files that a cluster has for itself, other than programs."""
    data = next(postrender.documents(cluster_of(), curve.random_keypair))["data"]
    return {name: text for name, text in data.items() if name not in {**SHARED, **SLURM}}


def test_the_clusters_of_a_release_share_their_programs_which_come_first() -> None:
    found = rendered(JOB, *(document(f"mc-{number}", [named()]) for number in range(3)))
    clusters = [made for n in range(3) for made in (("ConfigMap", f"mc-{n}-config"), ("Secret", f"mc-{n}-curve"))]
    names = [(one["kind"], one["metadata"]["name"]) for one in found]
    assert names == [("ConfigMap", "rel-programs"), ("ConfigMap", "rel-programs-slurm"), *clusters, ("Job", "j")]
    assert [one["data"] for one in found[:2]] == [SHARED, SLURM]
    assert found[0]["metadata"] == {
        "name": "rel-programs",
        "namespace": "ns",
        "labels": {"a": "b"},
        "annotations": {"minicluster/version": "0.1.0"},
    }
    assert {one["data"]["quorum.sh"] for one in found[2:] if one["kind"] == "ConfigMap"} == {PROGRAMS["quorum.sh"]}
    assert not any(one["data"].keys() & SHARED for one in found[2:] if one["kind"] == "ConfigMap")


def test_each_namespace_has_the_programs() -> None:
    found = configmaps(document("a", [named()]), document("b", [named()], namespace="other"))
    assert found["ns", "rel-programs"] == found["other", "rel-programs"] == SHARED
    assert found["ns", "rel-programs-slurm"] == found["other", "rel-programs-slurm"] == SLURM


def test_a_document_that_no_chart_wrote_has_its_own_programs() -> None:
    found = configmaps(document("a"), document("b", []))
    assert [name for _, name in found] == ["a-config", "b-config"]
    assert all(data.items() >= PROGRAMS.items() for data in found.values())


def test_live_clusters_keep_the_programs_of_their_version_and_new_ones_have_others_beside(own: dict[str, str]) -> None:
    found = rendered(
        document("new", [named("rel-programs-2.0.0", "2.0.0")]),
        document("a", [named(version="1.0.0")], **live(own)),
        document("b", [named(version="1.0.0", files=OTHERS)], **live(own)),
        document("newer", [named("rel-programs-2.0.0", "2.0.0")]),
    )
    maps = {one["metadata"]["name"]: one for one in found if one["kind"] == "ConfigMap"}
    assert {name: maps[name]["data"] for name in maps if "programs" in name} == {
        "rel-programs": OTHERS,
        "rel-programs-2.0.0": SHARED,
        "rel-programs-2.0.0-slurm": SLURM,
    }
    versions = {name: one["metadata"]["annotations"] for name, one in maps.items() if "programs" in name}
    assert versions["rel-programs"] == {"minicluster/version": "1.0.0"}
    assert versions["rel-programs-2.0.0"] == {"minicluster/version": "2.0.0"}
    assert not any(maps[f"{name}-config"]["data"].keys() & SHARED for name in ("new", "newer", "a", "b"))


@pytest.mark.parametrize("order", [1, -1], ids=["new first", "live first"])
def test_a_new_cluster_does_not_run_other_programs_that_live_ones_keep(own: dict[str, str], order: int) -> None:
    # two states of one version, as between releases
    both = document("new", [named()]), document("live", [named(files=OTHERS)], **live(own))
    found = configmaps(*both[::order])
    assert found["ns", "rel-programs"] == OTHERS
    assert found["ns", "new-config"].items() >= PROGRAMS.items()
    assert not found["ns", "live-config"].keys() & SHARED
    # which then keeps them
    held = found["ns", "new-config"] | {"entrypoint.sh": "of its install"}
    later = configmaps(document("new", [named(files=OTHERS)], **live(held)))
    assert later == {("ns", "rel-programs"): OTHERS, ("ns", "new-config"): held}


def test_a_new_cluster_shares_live_programs_that_are_the_same(own: dict[str, str]) -> None:
    found = configmaps(document("new", [named()]), document("live", [named(files=SHARED | SLURM)], **live(own)))
    assert found["ns", "rel-programs"] == SHARED
    assert not found["ns", "new-config"].keys() & SHARED


def test_a_live_cluster_of_a_version_without_shared_programs_keeps_its_own(own: dict[str, str]) -> None:
    held = {**own, **OTHERS}
    found = configmaps(document("live", [named("")], **live(held)), document("new", [named()]))
    assert found["ns", "live-config"] == held
    assert found["ns", "rel-programs"] == SHARED
    # without its files, fresh ones are better than none
    assert configmaps(document("live", [named("")], **live({})))["ns", "live-config"].items() >= PROGRAMS.items()


def test_a_job_made_anew_beside_a_group_of_an_older_version_brings_the_programs() -> None:
    found = configmaps(document("a", [named(), named("")]))
    assert found["ns", "rel-programs"] == SHARED
    assert found["ns", "a-config"].items() >= PROGRAMS.items()


def test_programs_that_somebody_removed_are_made_anew(own: dict[str, str]) -> None:
    found = configmaps(document("live", [named()], **live(own)))
    assert found["ns", "rel-programs"] == SHARED
    assert not found["ns", "live-config"].keys() & SHARED


WRONG: list[Any] = ["a", 1, {}, [1], [{}], [{"name": "a"}], [named() | {"files": "!"}], [named(files=[1])]]


@pytest.mark.parametrize("programs", WRONG, ids=str)
def test_programs_that_the_chart_did_not_write_are_refused(programs: Any) -> None:
    with pytest.raises(SpecError) as caught:
        configmaps(document("a", programs))
    assert str(caught.value) == "programs is not what the chart writes: leave it out"
