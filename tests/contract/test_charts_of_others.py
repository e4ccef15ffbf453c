"""MiniClusters of flux-operator in charts of others become what our chart makes of them, with both Helms."""

import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from forks import forked
from minicluster.release import caller
from support import CHART, ROOT, Done, Helm, by_name, chart_of_others, lines_with, load_all, one

POST = ("--post-renderer", "minicluster")
CASES = ROOT / "tests" / "unit" / "convert" / "cases"
#: A chart with a MiniCluster between two other objects; the MiniCluster comes from a value
TEMPLATE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: before}
data: {a: "flux-framework.org/v1alpha2 kind: MiniCluster"}
---
{{ toYaml .Values.document }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: after}
"""


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    return chart_of_others(tmp_path / "other", TEMPLATE)


def document(spec: Any = None, version: str = "v1alpha2", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"flux-framework.org/{version}",
        "kind": "MiniCluster",
        "metadata": {"name": "lammps", **metadata},
        "spec": {"size": 2, "containers": [{"image": "ubuntu:noble", "command": "lmp"}]} if spec is None else spec,
    }


def template(helm: Helm, chart: Path, given: Any, *args: object) -> str:
    return helm.template(*POST, *args, values={"document": given}, release="mine", chart=chart)


def test_a_minicluster_becomes_the_objects_of_our_chart(helm: Helm, chart: Path) -> None:
    text = template(helm, chart, document())
    assert set(by_name(text)) == {
        *(("ConfigMap", name) for name in ("before", "after", "mine-programs", "mine-programs-slurm", "lammps-config")),
        ("Service", "lammps"),
        ("Job", "lammps"),
        ("Secret", "lammps-curve"),
    }
    job = one(text, "Job")
    assert (job["metadata"]["namespace"], job["spec"]["completions"]) == ("ns", 2)
    assert {one["metadata"]["namespace"] for one in load_all(text) if "lammps" in one["metadata"]["name"]} == {"ns"}
    assert "kind: MiniCluster" not in text.replace('v1alpha2 kind: MiniCluster"', "")


@pytest.mark.parametrize("name", ["complete", "v1alpha1", "sidecars"])
def test_the_objects_are_those_of_our_chart_with_the_converted_values(
    helm: Helm, chart: Path, name: str, seed_file: Path
) -> None:
    given = next(d for d in yaml.safe_load_all((CASES / f"{name}.yaml").read_text()) if d["kind"] == "MiniCluster")
    given["metadata"]["namespace"] = "ns"
    values = {"document": given}

    def rendered(stream: str) -> dict[tuple[str, str], dict[str, Any]]:
        return by_name(forked("render", "--curve-seed-file", str(seed_file), stdin=stream).out)

    found = rendered(helm.template(values=values, release="mine", chart=chart))
    release = given["metadata"]["name"]
    converted = (CASES / f"{name}.values.yaml").read_text()
    options = ("--skip-tests", "--kube-version", "1.27", "--set", f"nameOverride={release}")
    expected = rendered(helm.template(*options, values=converted, release=release))
    found[("Job", release)]["metadata"]["annotations"].pop("minicluster/converted")
    for key in (("ConfigMap", "before"), ("ConfigMap", "after")):
        del found[key]
    assert found == expected


def test_a_job_shows_the_warnings_of_the_conversion(helm: Helm, chart: Path) -> None:
    given = document({"size": 1, "cleanup": True, "containers": [{"image": "a", "command": "b", "runFlux": True}]})
    annotations = one(template(helm, chart, given), "Job")["metadata"]["annotations"]
    warning = "cleanup removes the Job with its pods: the release stays until `helm uninstall`"
    assert annotations["minicluster/converted"] == f"MiniCluster lammps: {warning}"
    assert "minicluster/converted" not in one(template(helm, chart, document()), "Job")["metadata"]["annotations"]


def test_warnings_come_to_the_terminal_or_pipe_of_helm(helm: Helm, chart: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"document": document({"cleanup": True, "containers": [{"command": "b"}]})}))
    words = [helm.name, "template", "mine", chart, *POST, "--values", values]
    expected = "minicluster: warning: MiniCluster lammps: cleanup removes the Job with its pods: the release stays "
    piped = subprocess.run(words, capture_output=True, text=True, check=True, env=helm.environment)
    assert lines_with(piped.stderr, "minicluster:") == [f"{expected}until `helm uninstall`"]
    ours, theirs = pty.openpty()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=theirs, check=True, env=helm.environment)
    assert expected in os.read(ours, 1 << 16).decode()
    with (tmp_path / "log").open("wb") as log:
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=log, check=True, env=helm.environment)
    assert (tmp_path / "log").read_text() == ""


def test_a_service_that_selects_by_labels_of_flux_operator_is_named(helm4: Helm, chart: Path) -> None:
    spec = {"selector": {"job-name": "lammps", "job-index": "0"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "lead"}, "spec": spec}
    (chart / "templates" / "service.yaml").write_text(yaml.safe_dump(service))
    values = yaml.safe_dump({"document": document()})
    words = ["template", "mine", chart, *POST, "--values", "-"]
    assert lines_with(helm4.run(*words, stdin=values).err, "minicluster:") == [
        "minicluster: warning: Service lead selects pods by job-index, as only an operator labels them: apply it "
        'with the selector {"job-name": "lammps", "batch.kubernetes.io/job-completion-index": "0"}'
    ]


def test_a_minicluster_that_is_kept_stays_for_flux_operator(helm: Helm, chart: Path) -> None:
    given = document(annotations={"minicluster/keep": "true"})
    found = by_name(template(helm, chart, given))
    assert found[("MiniCluster", "lammps")] == given
    assert set(found) == {("ConfigMap", "before"), ("MiniCluster", "lammps"), ("ConfigMap", "after")}


MPI_JOB = {
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "metadata": {"name": "pi"},
    "spec": {
        "mpiImplementation": "MPICH",
        "mpiReplicaSpecs": {
            "Launcher": {
                "template": {"spec": {"containers": [{"name": "m", "image": "i", "command": ["mpirun", "pi"]}]}}
            },
            "Worker": {"replicas": 3, "template": {"spec": {"containers": [{"name": "m", "image": "i"}]}}},
        },
    },
}


def test_an_mpijob_becomes_the_objects_of_our_chart(helm: Helm, chart: Path) -> None:
    text = template(helm, chart, MPI_JOB)
    assert set(by_name(text)) == {
        *(("ConfigMap", name) for name in ("before", "after", "mine-programs", "mine-programs-slurm", "pi-config")),
        ("Service", "pi"),
        ("Job", "pi"),
        ("Secret", "pi-curve"),
    }
    assert one(text, "Job")["spec"]["completions"] == 3


def test_an_mpijob_that_is_kept_or_of_another_version_stays(helm: Helm, chart: Path) -> None:
    kept = MPI_JOB | {"metadata": {"name": "pi", "annotations": {"minicluster/keep": "true"}}}
    assert by_name(template(helm, chart, kept))[("MPIJob", "pi")] == kept
    older = MPI_JOB | {"apiVersion": "kubeflow.org/v1"}
    done = helm.run("template", "mine", chart, *POST, "--values", "-", stdin=yaml.safe_dump({"document": older}))
    assert by_name(done.out)[("MPIJob", "pi")] == older
    assert lines_with(done.err, "minicluster:") == [
        "minicluster: warning: MPIJob pi has the apiVersion kubeflow.org/v1: give kubeflow.org/v2beta1; it stays as it "
        "is"
    ]


def test_two_miniclusters_of_one_chart_are_both_replaced(helm: Helm, chart: Path) -> None:
    (chart / "templates" / "two.yaml").write_text("{{ toYaml .Values.second }}")
    values = {"document": document(), "second": document(name="second", namespace="elsewhere")}
    text = helm.template(*POST, values=values, release="mine", chart=chart)
    namespaces = {"lammps": "ns", "second": "elsewhere"}
    for name, namespace in namespaces.items():
        assert one(text, "Job", name)["metadata"]["namespace"] == namespace
    assert "second-[0-1]" in one(text, "ConfigMap", "second-config")["data"]["broker.toml"]
    programs = [each["metadata"] for each in load_all(text) if each["metadata"]["name"] == "mine-programs"]
    assert {each["namespace"] for each in programs} == set(namespaces.values())
    assert len(programs) == 2


@pytest.mark.any_helm
def test_many_miniclusters_of_a_chart_share_their_programs(helm: Helm, tmp_path: Path) -> None:
    """That a hundred fit in a release: tests/cluster/test_shared_programs.py."""
    each = '{{ $.Values.document | replace "NAME" (printf "mc-%d" $i) }}'
    text = f"{{{{ range $i := until 5 }}}}---\n{each}\n{{{{ end }}}}"
    chart = chart_of_others(tmp_path / "many", text)
    stream = helm.template(*POST, values={"document": yaml.safe_dump(document(name="NAME"))}, release="r", chart=chart)
    names = [each["metadata"]["name"] for each in load_all(stream) if each["kind"] in ("ConfigMap", "Job")]
    # Helm has its own order of documents that it doesn't know
    assert names[0] == "r-programs"
    assert set(names[1:7]) == {"r-programs-slurm", *(f"mc-{n}-config" for n in range(5))}
    assert sorted(names[7:]) == sorted(f"mc-{n}" for n in range(5))


REFUSED: list[Any] = [
    (document({"size": "two"}), 'MiniCluster lammps: size is "two": must be integer'),
    (document(version="v1beta1"), "MiniCluster lammps has the apiVersion flux-framework.org/v1beta1: give "),
    (document(annotations={"helm.sh/hook": "pre-install"}), "MiniCluster lammps is a hook of Helm, which"),
    (document({"size": 2, "nodes": 3}), "MiniCluster lammps: nodes is not a field; did you mean size?"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=["type", "version", "hook", "field"])
def test_what_can_not_be_replaced_is_an_error_of_one_line(helm: Helm, chart: Path, given: Any, message: str) -> None:
    if helm.major == 3 and "hook" in message:
        pytest.skip("Helm 3 gives no hook to a post-renderer")
    said = helm.fails("template", "mine", chart, *POST, "--values", "-", stdin=yaml.safe_dump({"document": given}))
    assert len(lines_with(said, message)) == 1
    assert "Traceback" not in said


def test_the_refusals_of_our_chart_are_told_without_helms_own_words(helm: Helm, chart: Path) -> None:
    given = document({"containers": [{"command": "a"}], "flux": {"container": {"mode": "image"}}})
    options = ("--kube-version", "1.30.0", "--api-versions", "batch/v1/Job")
    stdin = yaml.safe_dump({"document": given})
    said = helm.fails("template", "mine", chart, *POST, *options, "--values", "-", stdin=stdin)
    assert "MiniCluster lammps: flux.container.mode=image needs Kubernetes 1.35, this is v1.30.0" in said


def test_render_needs_the_namespace_in_the_document(helm4: Helm, chart: Path) -> None:
    stream = helm4.template(values={"document": document()}, release="mine", chart=chart)
    assert forked("render", "--random-curve", stdin=stream) == Done(
        1,
        "",
        "minicluster: MiniCluster lammps has no namespace, and no command of Helm above this one names it: write "
        "`namespace: {{ .Release.Namespace }}` in its metadata\n",
    )


def test_template_renders_a_chart_of_others(helm: Helm, chart: Path, seed_file: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    container = {"image": "a", "command": "b", "resources": {"limits": {"example.com/npu": 1}}}
    values.write_text(yaml.safe_dump({"document": document({"containers": [container]})}))
    words = ["template", "mine", "--chart", str(chart), "-n", "team", "-f", str(values)]
    done = forked(*words, "--curve-seed-file", str(seed_file), env=helm.environment)
    assert one(done.out, "Job")["metadata"]["namespace"] == "team"
    # the conversion and the post-renderer both find it
    assert done.err == (
        "minicluster: warning: MiniCluster lammps: containers[0].resources.limits.example.com/npu looks like a device, "
        "and Flux doesn't know it: set containers[0].gpus to the number that jobs may ask for, 0 for none\n"
    )


def test_the_version_of_kubernetes_is_that_of_the_command(helm: Helm, chart: Path) -> None:
    options = ("--kube-version=1.36.0", "-a", "batch/v1/Job")
    job = one(template(helm, chart, document(), *options), "Job")
    assert "successPolicy" in job["spec"]
    assert "successPolicy" not in one(template(helm, chart, document()), "Job")["spec"]


def test_the_flags_of_helm_are_known(helm: Helm) -> None:
    # a flag that is taken for an option with a value hides the word after it
    for command in ("install", "upgrade", "template"):
        text = helm.ok(command, "--help")
        flags = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+) {2,}", text, re.MULTILINE))
        optional = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+) \S+\[=", text, re.MULTILINE))
        assert flags | optional <= caller.BARE_OPTIONS
        valued = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+) [a-z]\w+ {2,}", text, re.MULTILINE))
        assert len(valued) > 10
        assert valued & caller.BARE_OPTIONS <= {"--server-side"}
        short = dict(re.findall(r"^ +(-\w), (--[a-z-]+) ", text, re.MULTILINE))
        assert {
            key: short[key] for key in short.keys() & caller.SHORT_OPTIONS.keys()
        }.items() <= caller.SHORT_OPTIONS.items()
        needed = {
            key
            for key, name in short.items()
            if name in caller.BARE_OPTIONS or name in (*caller.CLUSTER_OPTIONS, *caller.VERSION_OPTIONS)
        }
        assert needed <= caller.SHORT_OPTIONS.keys()


def test_our_own_chart_is_not_read_twice(helm4: Helm) -> None:
    # its documents have no group of flux-operator
    assert "flux-framework.org" not in helm4.template(chart=CHART)
