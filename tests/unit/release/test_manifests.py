"""How manifests are parsed, ordered, written to a folder and compared with it."""

import json
from pathlib import Path
from typing import Any

import pytest
from minicluster.errors import ManifestError
from minicluster.release import manifests
from minicluster.release.manifests import Manifest

MARK = b"# ns/a, by `minicluster template`: change its values, not this file\n"


def of(text: str) -> list[Manifest]:
    return list(manifests.parse(text.encode()))


def an_object(kind: str, name: str = "a", **fields: Any) -> str:
    return f"---\n{json.dumps({'kind': kind, 'metadata': {'name': name}, **fields})}\n"


def job(chart: str = "minicluster-1", /, **frozen: str) -> list[Manifest]:
    annotations = {"minicluster/immutable": json.dumps(frozen)}
    metadata = {"name": "a", "labels": {"helm.sh/chart": chart}, "annotations": annotations}
    return of(json.dumps({"kind": "Job", "metadata": metadata}))


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_manifest_keeps_the_text_of_each_object() -> None:
    first = "# Source: x\nkind: A  # b\nmetadata: {name: x.y:z}\n"
    text = f"# a comment\n---\n{first}\n  \n---\n\n--- \nkind: B\nmetadata: {{name: b}}"
    found = of(text)
    assert [(one.kind, one.name, one.text) for one in found] == [
        ("A", "x.y:z", first.encode()),
        ("B", "b", b"kind: B\nmetadata: {name: b}\n"),
    ]
    assert found[0].file == "a-x.y:z.yaml"


def test_an_object_whose_name_the_api_server_makes_has_the_beginning_of_it(tmp_path: Path) -> None:
    text = "kind: Job\nmetadata:\n  generateName: migrate-\n  annotations:\n"
    for stream in (text, f"kind: List\nitems:\n- {text.replace(chr(10), chr(10) + '  ').rstrip()}\n"):
        manifests.write(of(stream), tmp_path, "ns/a")
        assert list(written(tmp_path)) == ["job-migrate-.yaml"]
        assert not list(manifests.immutable_changes(of(stream), tmp_path))
    with pytest.raises(ManifestError, match=r"two objects would be in .*/job-migrate-\.yaml: rename one"):
        manifests.write(of(f"{text}---\n{text}"), tmp_path, "ns/a")
    assert manifests.join(of(text)).decode() == f"---\n{text}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "kind: A\nmetadata: {generateName: /a}\n",
            "an object's metadata.generateName is '/a': fix the chart's template",
        ),
        ("- a\n", "an object's kind is None: fix the chart's template"),
        ("kind: A\n", "an object's metadata.name is None: fix the chart's template"),
        ("kind: A\nmetadata: [name]\n", "an object's metadata.name is None: fix the chart's template"),
        ("kind: A\nmetadata: {name: 3}\n", "an object's metadata.name is 3: fix the chart's template"),
        ("kind: A\nmetadata: {name: ../b}\n", "an object's metadata.name is '../b': fix the chart's template"),
        ("kind: /etc/x\nmetadata: {name: b}\n", "an object's kind is '/etc/x': fix the chart's template"),
    ],
)
def test_an_object_without_a_kind_or_name_is_refused(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        of(text)
    assert str(caught.value) == message


def test_the_objects_that_pods_mount_come_before_the_job() -> None:
    stream = "".join(an_object(kind) for kind in ("Service", "Job", "ConfigMap", "Role", "Secret"))
    assert [one.kind for one in of(manifests.join(of(stream)).decode())] == [
        "ConfigMap",
        "Secret",
        "Service",
        "Job",
        "Role",
    ]


def test_the_output_folder_has_a_file_for_each_object(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    manifests.write(of(an_object("Job") + an_object("ConfigMap", "a-config")), folder, "ns/a")
    assert written(folder) == {
        "job-a.yaml": MARK + b'{"kind": "Job", "metadata": {"name": "a"}}\n',
        "configmap-a-config.yaml": MARK + b'{"kind": "ConfigMap", "metadata": {"name": "a-config"}}\n',
    }


def test_objects_of_one_name_in_two_namespaces_have_files_of_their_own(tmp_path: Path) -> None:
    # the programs of a release whose MiniClusters are in two namespaces
    both = [{"kind": "ConfigMap", "metadata": {"name": "a-programs", "namespace": name}} for name in ("ns", "other")]
    manifests.write(of("".join(f"---\n{json.dumps(one)}\n" for one in both)), tmp_path, "ns/a")
    names = ("configmap-a-programs.yaml", "other-configmap-a-programs.yaml")
    texts = [MARK + json.dumps(one).encode() + b"\n" for one in both]
    assert written(tmp_path) == dict(zip(names, texts, strict=True))


def test_writing_manifests_removes_old_files_of_the_release_and_no_others(tmp_path: Path) -> None:
    manifests.write(of(an_object("Job") + an_object("Service")), tmp_path, "ns/a")
    manifests.write(of(an_object("Job", "b")), tmp_path, "ns/b")
    (tmp_path / "kustomization.yaml").write_text("resources: []\n")
    (tmp_path / "folder.yaml").mkdir()
    manifests.write(of(an_object("Job", size=2)), tmp_path, "ns/a")
    assert {path.name for path in tmp_path.iterdir()} == {
        "job-a.yaml",
        "job-b.yaml",
        "kustomization.yaml",
        "folder.yaml",
    }
    assert b'"size": 2' in (tmp_path / "job-a.yaml").read_bytes()


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (
            an_object("Secret"),
            "the Secret a would be in {folder} in plain text: set flux.curveCertSecret to a Secret that "
            "`minicluster keygen` makes once, or leave out --output-dir and pipe the manifests to kubectl",
        ),
        (
            an_object("Job", "b") + an_object("Job", "b"),
            "two objects would be in {folder}/job-b.yaml: rename one, or leave out --output-dir",
        ),
        (
            an_object("Job", "mine"),
            "{folder}/job-mine.yaml is not a file of ns/a: move it, or give another --output-dir",
        ),
        (
            an_object("Job", "theirs"),
            "{folder}/job-theirs.yaml is not a file of ns/a: move it, or give another --output-dir",
        ),
    ],
    ids=["secret", "twice", "users", "others"],
)
def test_manifests_that_can_not_be_written_leave_the_folder_unchanged(
    tmp_path: Path, stream: str, message: str
) -> None:
    (tmp_path / "job-mine.yaml").write_text("kind: Job\n")
    manifests.write(of(an_object("Job", "theirs")), tmp_path, "ns/other")
    manifests.write(of(an_object("Job")), tmp_path, "ns/a")
    before = written(tmp_path)
    with pytest.raises(ManifestError) as caught:
        manifests.write(of(an_object("Service") + stream), tmp_path, "ns/a")
    assert str(caught.value) == message.format(folder=tmp_path)
    assert written(tmp_path) == before


def test_a_job_that_removes_itself_is_reported() -> None:
    assert manifests.self_removing_job(of(an_object("Job", spec={}) + an_object("Service"))) is None
    assert manifests.self_removing_job(of(an_object("Job", spec={"ttlSecondsAfterFinished": 0}))) == (
        "the Job a is removed when it has ended, and the next sync runs it again: drop cleanup"
    )


def test_changes_that_a_live_job_does_not_allow_are_reported(tmp_path: Path) -> None:
    assert list(manifests.immutable_changes(job(maxSize="2"), tmp_path)) == []
    manifests.write(job(maxSize="2", tasks="1", wrap="x"), tmp_path, "ns/a")
    assert list(manifests.immutable_changes(job(maxSize="2", tasks="1", wrap="x"), tmp_path)) == []
    assert list(manifests.immutable_changes(job(maxSize="3", tasks="1", cores="4"), tmp_path)) == [
        "cores can't change on a live Job a, was (unset), is 4: delete the Job, or undo it",
        "maxSize can't change on a live Job a, was 2, is 3: delete the Job, or undo it",
        "wrap can't change on a live Job a, was x, is (unset): delete the Job, or undo it",
    ]


def test_a_job_that_the_chart_did_not_write_is_not_compared(tmp_path: Path) -> None:
    (tmp_path / "job-a.yaml").write_text(an_object("Job"))
    assert list(manifests.immutable_changes(job(maxSize="3"), tmp_path)) == []


def test_a_new_value_of_another_chart_version_is_not_reported_as_a_change(tmp_path: Path) -> None:
    manifests.write(job("minicluster-1", maxSize="2", old="x"), tmp_path, "ns/a")
    new = {"flux.connectTimeout": "5s", "flux.wrap": "", "logging.strict": "false"}
    assert list(manifests.immutable_changes(job("minicluster-2", maxSize="2", **new), tmp_path)) == [
        "logging.strict can't change on a live Job a, was true, is false: delete the Job, or undo it",
        "old can't change on a live Job a, was x, is (unset): delete the Job, or undo it",
    ]


def test_a_changed_pod_template_of_another_chart_version_is_reported(tmp_path: Path) -> None:
    def made(chart: str, **spec: Any) -> list[Manifest]:
        metadata = {"name": "a", "labels": {"helm.sh/chart": chart}}
        return of(json.dumps({"kind": "Job", "metadata": metadata, "spec": spec}))

    manifests.write(made("minicluster-1", template={"a": 1}, completions=1), tmp_path, "ns/a")
    assert list(manifests.immutable_changes(made("minicluster-2", template={"a": 1}, completions=2), tmp_path)) == []
    assert list(manifests.immutable_changes(made("minicluster-2", template={"a": 2}), tmp_path)) == [
        "minicluster-2 makes other pods than minicluster-1, and the pods of a live Job a can't change: delete the Job, "
        "or render with minicluster-1"
    ]


def test_no_change_is_named_that_a_hook_of_the_sync_makes(tmp_path: Path) -> None:
    manifests.write(job(maxSize="2"), tmp_path, "ns/a")
    notes = {"helm.sh/hook": "pre-upgrade,pre-rollback"}
    hook = of(json.dumps({"kind": "Pod", "metadata": {"name": "a-replace-remove", "annotations": notes}}))
    assert len(list(manifests.immutable_changes(job(maxSize="4"), tmp_path))) == 1
    assert list(manifests.immutable_changes([*job(maxSize="4"), *hook], tmp_path)) == []
