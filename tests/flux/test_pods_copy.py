"""`minicluster copy` on a real Kubernetes: files into and out of the lead, and to all nodes."""

from pathlib import Path

import pytest
from real_cluster import IN_PODS, Install

from tools.clients import Done
from tools.releases import FluxRelease
from tools.testbed import NAME

pytestmark = [IN_PODS, pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)]

THREE = {"size": 3, "maxSize": 4, "logging": {"quiet": True}}
NASTY = ["a b", "é😀", "-n", "$(id)", "a'b\"c", "[1]*?", "line\nbreak"]
SUMS = """cd "$1" && find . -type f -exec sha256sum {} + | sort"""


def copy(cluster: FluxRelease, *words: str) -> Done:
    """Run `minicluster copy`."""
    return cluster.cluster.run("minicluster", "copy", "-n", cluster.namespace, *words)


def copied(source: object, target: object, what: str) -> Done:
    """Return the success of a copy that says what it did."""
    # a line of ours has no line breaks
    return Done(0, "", f"minicluster: copied {source} to {target}, {what}\n")


def fill(folder: Path) -> None:
    """Make a folder with files of all sizes and names."""
    for name in NASTY:
        (folder / name).mkdir(parents=True)
        (folder / name / name).write_text(name)
    (folder / "large").write_bytes(bytes(range(256)) * 100_000)
    (folder / "run").write_text("")
    (folder / "run").chmod(0o755)


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return the files of a folder: what they contain, and their modes."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode) for path in paths}


def test_files_come_in_and_out_unchanged(release: Install, tmp_path: Path) -> None:
    cluster = release(THREE)
    source, back = tmp_path / "source", tmp_path / "back"
    fill(source)
    # it waits for the quorum
    assert copy(cluster, str(source), f"{NAME}:/tmp/new").code == 0
    what = f"{len(NASTY) + 2} files, 25.6 MB"
    assert copy(cluster, f"{NAME}:/tmp/new", str(back)) == copied(f"{NAME}-0:/tmp/new", back, what)
    assert files(back) == files(source)
    large = f"{NAME}-0:/tmp/new/a b/large"
    done = copied(source / "large", large, "25.6 MB")
    assert copy(cluster, str(source / "large"), f"{NAME}:/tmp/new/a b") == done
    done = copied(large, back / "é😀" / "large", "25.6 MB")
    assert copy(cluster, f"{NAME}:/tmp/new/a b/large", str(back / "é😀")) == done
    assert (back / "é😀" / "large").read_bytes() == (source / "large").read_bytes()
    # relative to the container's working directory
    cluster.exec(0, "sh", "-c", "echo text >here")
    assert copy(cluster, f"{NAME}:here", str(tmp_path / "text")) == copied(
        f"{NAME}-0:here", tmp_path / "text", "5 bytes"
    )
    assert (tmp_path / "text").read_text() == "text\n"
    missing = "/nowhere/new: there is no folder /nowhere on the lead: write /nowhere/ to make it"
    assert copy(cluster, str(source), f"{NAME}:/nowhere/new") == Done(1, "", f"minicluster: {missing}\n")
    refused = copy(cluster, str(source / "run"), f"{NAME}:/proc/new")
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert refused.err.startswith("minicluster: /proc/new: tar: ")


def test_files_come_to_all_nodes(release: Install, tmp_path: Path) -> None:
    cluster = release(THREE)
    fill(tmp_path / "source")
    # the lead is ready before all workers are there
    assert cluster.cluster.run("minicluster", "wait", NAME, "-n", cluster.namespace).code == 0
    done = copied(tmp_path / "source", f"{NAME}-0:/tmp/source", f"{len(NASTY) + 2} files, 25.6 MB")
    done = Done(0, "", f"{done.err}minicluster: the other nodes have it, too\n")
    assert copy(cluster, "--all", str(tmp_path / "source"), f"{NAME}:/tmp") == done
    sums = [cluster.exec(index, "sh", "-c", SUMS, "sh", "/tmp/source") for index in range(3)]
    assert sums[0].count("\n") == len(NASTY) + 2
    assert sums == [sums[0]] * 3
    # a node that can't have them is named; Flux has forgotten all
    cluster.exec(2, "touch", "/tmp/there")
    cluster.exec(0, "mkdir", "/tmp/there")
    failed = copy(cluster, "--all", str(tmp_path / "source" / "run"), f"{NAME}:/tmp/there")
    assert (failed.code, failed.out, failed.err.count("\n")) == (1, "", 2)
    done = copied(tmp_path / "source" / "run", f"{NAME}-0:/tmp/there/run", "0 bytes")
    assert failed.err.startswith(f"{done.err}minicluster: {NAME}-2: mkdir: ")
    cluster.exec(1, "test", "-x", "/tmp/there/run")
    keys = cluster.flux(0, "kvs", "ls", "-R")
    assert "resource" in keys
    assert "minicluster-" not in keys
