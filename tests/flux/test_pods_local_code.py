"""Local code on the nodes, on a real Kubernetes: `--upload` and `--fetch`."""

from pathlib import Path

import pytest
from minicluster.sdk import MiniCluster
from real_cluster import IN_PODS, Install

from tools import testbed
from tools.releases import FluxRelease
from tools.testbed import NAME

pytestmark = IN_PODS

NASTY = ["a b", "é😀", "-n", "$(id)", "a'b\"c", "[1]*?", "line\nbreak"]
#: Each task says what it sees, and leaves a result of its own
WORK = """cat 'a b'; echo "of $FLUX_TASK_RANK" >"out/$FLUX_TASK_RANK.txt"; echo mine >same.txt
[ $FLUX_TASK_RANK = 0 ] || echo other >same.txt; cp -- *break* out/; exit 3"""


def fill(folder: Path) -> None:
    (folder / "out").mkdir(parents=True)
    for name in [*NASTY, "out/.keep"]:
        (folder / name).write_text("text\n")
    (folder / "work.sh").write_text(WORK)


def texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)
def test_local_code_runs_on_all_nodes_and_results_come_back(release: Install, tmp_path: Path) -> None:
    cluster, folder = release({"size": 3, "logging": {"quiet": True}}), tmp_path / "mine"
    fill(folder)
    assert cluster.cluster.run("minicluster", "wait", NAME, "-n", cluster.namespace).code == 0
    words = ("minicluster", "flux", "-n", cluster.namespace, NAME, "--upload", str(folder))
    work = ("--fetch", "out/", "--fetch", "same.txt", "--", "run", "-N3", "-n3", "sh", "work.sh")
    before = texts(folder)
    done = cluster.cluster.run(*words, *work)
    print(done.err)
    assert (done.code, done.out.count("text\n")) == (3, 3)
    results = {f"out/{rank}.txt": f"of {rank}\n" for rank in range(3)} | {"out/line\nbreak": "text\n"}
    same = {name: text for name, text in texts(folder).items() if name.startswith("same.txt")}
    assert texts(folder) == {**before, **results, **same}
    assert (sorted(same.values()), "same.txt" in same) == (["mine\n", "other\n", "other\n"], True)
    # only what has changed is sent
    (folder / "a b").write_text("new\n")
    for name in same:
        (folder / name).unlink()
    done = cluster.cluster.run(*words, "--", "run", "-N3", "-n3", "sh", "work.sh")
    assert (done.code, done.out.count("new\n")) == (3, 3)
    # the results of before are new files here
    assert f"{NAME}-0:" in done.err
    assert f", {1 + len(results)} files, " in done.err


def test_a_run_of_its_own_has_local_code(tmp_path: Path) -> None:
    with testbed.new_namespace() as namespace:
        cluster: FluxRelease = testbed.release(namespace, {}, tmp_path)
        folder = tmp_path / "mine"
        fill(folder)
        values = testbed.values_of({"size": 2}, {"cores": 2})
        result = MiniCluster.run(
            ["sh", "work.sh"],
            cluster.namespace,
            values,
            nodes=2,
            name=NAME,
            upload=str(folder),
            fetch=["*.txt"],
            progress=print,
        )
        assert (result.exit_code, result.stdout.count("text\n")) == (3, 2)
        assert {name for name in texts(folder) if name.startswith("out/")} == {"out/.keep", "out/0.txt", "out/1.txt"}
        assert cluster.items() == []
