"""``minicluster convert``: files in, files and messages out.

In the folder cases, NAME.yaml is an input, NAME.values.yaml its whole output (several files one after
the other) and NAME.warnings.txt its whole standard error.
"""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from conversion import ONE, WRITTEN, document
from minicluster.documents import yamlio
from support import front_door

HERE = Path(__file__).parent / "cases"
CASES = sorted(path.name for path in HERE.glob("*.yaml") if ".values." not in path.name)


def run(*arguments: str, stdin: object = b"") -> Result:
    data = stdin if isinstance(stdin, bytes) else yamlio.dump(stdin)
    return CliRunner().invoke(front_door, ["convert", *arguments], input=data)


@pytest.mark.parametrize("case", CASES)
def test_convert_writes_the_golden_values_and_warnings(
    case: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    done = run(str(HERE / case), "--output-dir", str(tmp_path))
    assert (done.exit_code, done.stdout) == (0, "")
    found = {
        "values.yaml": "".join(path.read_text() for path in sorted(tmp_path.iterdir())),
        "warnings.txt": done.stderr,
    }
    for suffix, text in found.items():
        golden = HERE / case.replace(".yaml", f".{suffix}")
        if request.config.getoption("--update-golden", default=False):
            golden.write_text(text)
        assert text == golden.read_text()


@pytest.mark.parametrize("case", ["hello-world.yaml", "complete.yaml"])
def test_convert_prints_a_single_cluster_to_standard_output(case: str) -> None:
    for done in (run(str(HERE / case)), run("-", stdin=(HERE / case).read_bytes())):
        assert done.exit_code == 0
        assert done.stdout == (HERE / case.replace(".yaml", ".values.yaml")).read_text()
        assert done.stderr == (HERE / case.replace(".yaml", ".warnings.txt")).read_text()


def test_convert_accepts_a_list_from_kubectl_get() -> None:
    live = document({"containers": [{"image": "i", "command": None}]}) | {"status": {"size": 1}}
    done = run("-", stdin={"apiVersion": "v1", "kind": "List", "items": [live]})
    assert (done.exit_code, done.stderr) == (0, "")
    assert yaml.safe_load(done.stdout) == {"containers": [{"image": "i"}]} | WRITTEN


def test_convert_of_several_clusters_requires_an_output_folder() -> None:
    done = run(str(HERE / "bursting.yaml"))
    message = "minicluster: there are 2 MiniClusters and MPIJobs in the file: give --output-dir\n"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", message)


def test_convert_writes_nothing_when_one_of_several_clusters_is_wrong(tmp_path: Path) -> None:
    stream = yaml.safe_dump_all([document({"containers": [{}]}), document({"siez": 1}, name="b")]).encode()
    done = run("-", "--output-dir", str(tmp_path / "new"), stdin=stream)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "minicluster: MiniCluster b: siez is not a field; did you mean size?\n"
    assert not (tmp_path / "new").exists()


def test_convert_does_not_overwrite_a_file_with_other_content(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    stream = (HERE / "bursting.yaml").read_bytes()
    assert run("-", "--output-dir", str(folder), stdin=stream).exit_code == 0
    texts = {path: path.read_bytes() for path in folder.iterdir()}
    again = run("-", "--output-dir", str(folder), stdin=stream)
    assert (again.exit_code, {path: path.read_bytes() for path in folder.iterdir()}) == (0, texts)
    first, last = sorted(texts)
    first.unlink()
    last.write_text("mine: true\n")
    done = run("-", "--output-dir", str(folder), stdin=stream)
    message = f"minicluster: {last} exists and has other values: move it, or give another --output-dir\n"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", message)
    assert {path: path.read_text() for path in folder.iterdir()} == {last: "mine: true\n"}


STREAMS: list[tuple[bytes, str]] = [
    (b"", "there is no MiniCluster of flux-framework.org and no MPIJob of kubeflow.org in the file: give one of them"),
    (b"a: [", "the file is not YAML: did not find expected node content at line 2"),
    (b"a\0b", "the file is not YAML: it cannot be read"),
    (
        b"kind: Pod",
        "there is no MiniCluster of flux-framework.org and no MPIJob of kubeflow.org in the file: give one of them",
    ),
    (
        b"{kind: MPIJob, apiVersion: mpioperator.example/v1alpha1}",
        "there is no MiniCluster of flux-framework.org and no MPIJob of kubeflow.org in the file: give one of them",
    ),
    (
        b"{kind: MiniCluster, apiVersion: post-renderer-required.add--post-renderer-minicluster/v1}",
        "there is no MiniCluster of flux-framework.org and no MPIJob of kubeflow.org in the file: give one of them",
    ),
    (
        yaml.safe_dump(document(ONE, version="flux-framework.org/v1")).encode(),
        "MiniCluster a has the apiVersion flux-framework.org/v1: give flux-framework.org/v1alpha1 or "
        "flux-framework.org/v1alpha2",
    ),
    (
        yaml.safe_dump_all([document(ONE), document(ONE)]).encode(),
        "two of them are named a: give each a file of its own",
    ),
    (yaml.safe_dump(document(None)).encode(), "MiniCluster a has no spec: give the whole document"),
    (
        yaml.safe_dump(document(ONE, name="")).encode(),
        "a MiniCluster has no metadata.name: set it to the name of the release",
    ),
    (
        yaml.safe_dump(document(ONE) | {"metadata": {"name": 5}}).encode(),
        "the metadata.name of a MiniCluster is 5: must be a string",
    ),
    (
        yaml.safe_dump(document(ONE, name="../a")).encode(),
        "the name '../a' is not a DNS label: use a-z, 0-9 and - (nameOverride, or the release's name)",
    ),
    (
        yaml.safe_dump(document(ONE) | {"metadata": {"name": "a", "namespace": "team\nsize: 9"}}).encode(),
        "MiniCluster a: the namespace 'team\\nsize: 9' is not a DNS label: use a-z, 0-9 and -",
    ),
]


@pytest.mark.parametrize(("data", "message"), STREAMS)
def test_convert_refuses_a_stream_without_a_usable_minicluster(data: bytes, message: str) -> None:
    done = run("-", stdin=data)
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"minicluster: {message}\n")
