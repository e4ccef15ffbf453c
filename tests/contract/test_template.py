"""`minicluster template`: the same manifests with both Helms, twice, without a cluster and without a network."""

import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click.testing
import pytest
import yaml
from support import (
    BIN,
    CERTIFICATE,
    CHART,
    ROOT,
    SECRET,
    Done,
    Helm,
    by_name,
    front_door,
    lines_with,
    load_all,
    one,
    values_text,
)

from tools import clients

CASES = ROOT / "tests" / "chart" / "cases"
FILES = [CASES / "every-field.yaml", ROOT / "values-examples" / "services.yaml"]
NAMED = ("--set", "flux.curveCertSecret=mine")
#: The files of a MiniCluster a
OURS = {
    *(f"configmap-a-{name}.yaml" for name in ("programs", "programs-slurm", "config")),
    *("job-a.yaml", "service-a.yaml"),
}
NO_CERTIFICATE = (
    "minicluster: MiniCluster a has no certificate, and a random one would differ each time: set flux.curveCertSecret "
    "to a Secret that `minicluster keygen` makes once, or give --curve-seed-file\n"
)


def run_alone(helm: Helm, *args: object, prefix: tuple[str, ...] = ()) -> Done:
    """Run `minicluster` as a process, where this Helm is the only one."""
    command = (*prefix, sys.executable, "-m", "minicluster", *args)
    return clients.run(*command, cwd=helm.home, env=helm.environment | {"HELM_BIN": str(BIN / helm.name)})


def run(helm: Helm, *args: object, stdin: str = "", **env: str) -> Done:
    """Run `minicluster` in this process, where this Helm is the only one."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - helm.environment.keys():
            patch.delenv(name)
        for name, value in (helm.environment | {"HELM_BIN": str(BIN / helm.name)} | env).items():
            patch.setenv(name, value)
        patch.chdir(helm.home)
        done = click.testing.CliRunner().invoke(front_door, list(map(str, args)), input=stdin)
    assert isinstance(done.exception, SystemExit | None), done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def template(helm: Helm, *args: object, **env: str) -> str:
    done = run(helm, "template", "a", "-n", "ns", *args, **env)
    assert (done.code, done.err) == (0, "")
    return done.out


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_template_prints_the_same_bytes_each_time_and_with_both_helms(
    helm3: Helm, helm4: Helm, seed_file: Path, file: Path
) -> None:
    # by two processes, whose sets have different orders
    words = ("template", "a", "-n", "ns", "-f", file, "--curve-seed-file", seed_file)
    first, second = (run_alone(helm, *words) for helm in (helm4, helm3))
    assert first == second
    assert (first.code, first.err) == (0, "")
    assert one(first.out, "Job")


def test_template_makes_the_same_objects_as_helm_and_render(helm: Helm, seed_file: Path) -> None:
    stream = helm.ok("template", "a", CHART, "-n", "ns", "--skip-tests", "--set", "size=3")
    piped = run(helm, "render", "--curve-seed-file", seed_file, stdin=stream).out
    made = template(helm, "--set", "size=3", "--curve-seed-file", seed_file)
    assert by_name(made) == by_name(piped)
    assert [d["kind"] for d in load_all(made)] == ["ConfigMap"] * 3 + ["Secret", "Service", "Job"]


class ServedValues(BaseHTTPRequestHandler):
    """Serves values."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{size: 3, maxSize: 7}")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.mark.any_helm
def test_template_takes_values_from_standard_input_an_address_and_files_in_their_order(
    helm: Helm, tmp_path: Path
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("{size: 4}")
    with ThreadingHTTPServer(("127.0.0.1", 0), ServedValues) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        given = ("-f", "-", "-f", f"http://127.0.0.1:{server.server_port}/values.yaml,{file}")
        done = run(helm, "template", "a", *NAMED, *given, stdin="{size: 2, maxSize: 9, pod: {labels: {a: b}}}")
        server.shutdown()
    assert (done.code, done.err) == (0, "")
    job = one(done.out, "Job")["spec"]
    assert job["completions"] == 4
    assert job["template"]["metadata"]["labels"]["a"] == "b"
    assert "a-[0-6]" in done.out
    assert "a-[0-8]" not in done.out


@pytest.mark.any_helm
def test_template_writes_the_same_manifests_to_a_folder(helm: Helm, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert template(helm, *NAMED, "--output-dir", folder) == ""
    mark = b"# ns/a, by `minicluster template`: change its values, not this file\n"
    made = files(folder)
    assert set(made) == OURS
    assert all(text.startswith(mark) for text in made.values())
    stream = b"".join(
        b"---\n" + made[f"{name}.yaml"].removeprefix(mark)
        for name in ("configmap-a-programs", "configmap-a-programs-slurm", "configmap-a-config", "service-a", "job-a")
    )
    assert stream.decode() == template(helm, *NAMED)


@pytest.mark.any_helm
def test_template_with_a_new_size_changes_two_fields_of_the_job(helm: Helm, tmp_path: Path) -> None:
    for size in (2, 3):
        template(helm, *NAMED, "--set", f"size={size},maxSize=4", "--output-dir", tmp_path / str(size))
    old, new = (files(tmp_path / str(size)) for size in (2, 3))
    changed = {
        name: [
            (was, now)
            for was, now in zip(text.splitlines(), new[name].splitlines(), strict=True)
            if was != now and b"mc_start_words" not in was  # the quorum in it
        ]
        for name, text in old.items()
    }
    assert changed == {
        "service-a.yaml": [],
        "configmap-a-programs.yaml": [],
        "configmap-a-programs-slurm.yaml": [],
        "configmap-a-config.yaml": [(b"    mc_size=2", b"    mc_size=3"), (b'      "size": 2,', b'      "size": 3,')],
        "job-a.yaml": [(b"  completions: 2", b"  completions: 3"), (b"  parallelism: 2", b"  parallelism: 3")],
    }


@pytest.mark.any_helm
def test_template_warns_of_changes_that_a_live_job_does_not_allow(helm: Helm, tmp_path: Path) -> None:
    folder = ("--output-dir", tmp_path)
    template(helm, *NAMED, *folder)
    done = run(helm, "template", "a", "-n", "ns", *NAMED, "--set", "size=2,tasks=2", *folder)
    assert done == Done(
        0,
        "",
        "minicluster: warning: maxSize can't change on a live Job a, was 1, is 2: delete the Job, or undo it\n"
        "minicluster: warning: tasks can't change on a live Job a, was 1, is 2: delete the Job, or undo it\n",
    )


def test_template_warns_of_a_job_that_removes_itself(helm4: Helm, tmp_path: Path) -> None:
    done = run(helm4, "template", "a", *NAMED, "--set", "cleanup=true", "--output-dir", tmp_path)
    assert (done.code, done.err) == (
        0,
        "minicluster: warning: the Job a is removed when it has ended, and the next sync runs it again: drop cleanup\n",
    )


@pytest.mark.any_helm
def test_template_warns_of_a_device_that_flux_does_not_count(helm: Helm, tmp_path: Path) -> None:
    limit = ("--set", r"containers[0].image=a,containers[0].resources.limits.example\.com/npu=1")
    for folder in ((), ("--output-dir", tmp_path)):
        done = run(helm, "template", "a", *NAMED, *limit, *folder)
        assert (done.code, done.err) == (
            0,
            "minicluster: warning: MiniCluster a: containers[0].resources.limits.example.com/npu looks like a device, "
            "and Flux doesn't know it: set containers[0].gpus to the number that jobs may ask for, 0 for none\n",
        )
    assert template(helm, *NAMED, *limit, "--set", "containers[0].gpus=0")


def test_template_removes_files_of_objects_that_are_gone_and_no_others(helm4: Helm, tmp_path: Path) -> None:
    service = ("--set", "services[0].name=db,services[0].image=redis")
    template(helm4, *NAMED, *service, "--output-dir", tmp_path)
    assert "deployment-a-services.yaml" in files(tmp_path)
    (tmp_path / "note.yaml").write_text("a: note\n")
    template(helm4, *NAMED, "--output-dir", tmp_path)
    assert set(files(tmp_path)) == {*OURS, "note.yaml"}


@pytest.mark.any_helm
@pytest.mark.parametrize("version", [None, "1.27", "1.31", "1.36"])
def test_template_uses_fields_of_newer_kubernetes_only_for_kube_version(helm: Helm, version: str | None) -> None:
    spec = one(template(helm, *NAMED, *(["--kube-version", version] if version else [])), "Job")["spec"]
    init = [container["name"] for container in spec["template"]["spec"].get("initContainers", [])]
    assert ("successPolicy" in spec) == (version in ("1.31", "1.36"))
    assert init == ([] if version == "1.36" else ["flux-view"])


@pytest.mark.any_helm
def test_template_refuses_a_kubernetes_that_is_too_old(helm: Helm) -> None:
    done = run(helm, "template", "a", *NAMED, "--kube-version", "1.26")
    assert (done.code, done.out) == (1, "")
    assert lines_with(done.err, "minicluster: helm template: chart requires kubeVersion: >=1.27.0-0")
    assert len(done.err.splitlines()) == 1


@pytest.mark.any_helm
def test_template_works_without_a_network(helm: Helm, seed_file: Path) -> None:
    alone = ("unshare", "--net", "--map-root-user")
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine makes no network namespaces (unshare --net)")
    done = run_alone(helm, "template", "a", "-n", "ns", "--curve-seed-file", seed_file, prefix=alone)
    assert (done.code, done.err) == (0, "")
    assert done.out == template(helm, "--curve-seed-file", seed_file)


def test_template_takes_the_seed_file_from_the_environment(helm4: Helm, seed_file: Path) -> None:
    assert template(helm4, MINICLUSTER_CURVE_SEED_FILE=str(seed_file)) == template(
        helm4, "--curve-seed-file", seed_file
    )


@pytest.mark.any_helm
def test_template_renders_another_chart_around_minicluster(helm: Helm, tmp_path: Path) -> None:
    chart = tmp_path / "around"
    (chart / "templates").mkdir(parents=True)
    shutil.copytree(CHART, chart / "charts" / "minicluster")
    dependency = {"name": "minicluster", "version": ">=0", "alias": "mc"}
    text = yaml.safe_dump({"apiVersion": "v2", "name": "around", "version": "1.0.0", "dependencies": [dependency]})
    (chart / "Chart.yaml").write_text(text)
    text = "kind: ConfigMap\nmetadata: {name: about}\ndata: {kubernetes: {{ .Capabilities.KubeVersion.Version }}}\n"
    (chart / "templates" / "about.yaml").write_text(text)
    made = by_name(template(helm, "--chart", chart, "--set", "mc.flux.curveCertSecret=x"))
    maps = {("ConfigMap", name) for name in ("a-programs", "a-programs-slurm", "a-config", "about")}
    assert set(made) == {*maps, ("Service", "a"), ("Job", "a")}
    # not that of this Helm
    assert made["ConfigMap", "about"]["data"] == {"kubernetes": "v1.27"}


# Errors ------------------------------------------------------------------------------------------------------

REFUSED: list[Any] = [
    ((), NO_CERTIFICATE),
    (
        ("--set", "size=0"),
        "minicluster: size: minimum: got 0, want 1\n",
    ),
    (
        (*NAMED, "--set", "size=4,maxSize=3"),
        "minicluster: MiniCluster a: size is 4, maxSize 3: lower size, or install with a larger maxSize\n",
    ),
    (
        ("-f", "https://127.0.0.1:1/values.yaml"),
        'minicluster: helm template: Get "https://127.0.0.1:1/values.yaml": dial tcp 127.0.0.1:1: connect: '
        "connection refused\n",
    ),
]


@pytest.mark.any_helm
@pytest.mark.parametrize(("args", "message"), REFUSED, ids=["certificate", "schema", "refusal", "address"])
def test_template_refuses_wrong_input_in_one_line_and_writes_nothing(
    helm: Helm, tmp_path: Path, args: tuple[str, ...], message: str
) -> None:
    folder = tmp_path / "out"
    assert run(helm, "template", "a", *args, "--output-dir", folder) == Done(1, "", message)
    assert not folder.exists()


@pytest.mark.parametrize("certificate", ["seed", "given"])
def test_template_writes_no_secret_to_a_folder(helm4: Helm, seed_file: Path, tmp_path: Path, certificate: str) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(values_text({"flux": {"curveCert": CERTIFICATE}} if certificate == "given" else {}))
    folder = tmp_path / "out"
    args = ("-f", values, "--curve-seed-file", seed_file, "--output-dir", folder)
    assert run(helm4, "template", "a", *args) == Done(
        1,
        "",
        f"minicluster: the Secret a-curve would be in {folder} in plain text: set flux.curveCertSecret to a Secret "
        "that `minicluster keygen` makes once, or leave out --output-dir and pipe the manifests to kubectl\n",
    )
    assert not folder.exists()


def test_template_puts_a_given_certificate_into_the_secret_only(helm4: Helm, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(values_text({"flux": {"curveCert": CERTIFICATE}}))
    documents = load_all(template(helm4, "-f", values))
    assert [d["kind"] for d in documents if SECRET in yaml.safe_dump(d)] == ["Secret"]


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"HELM_BIN": ""}, "minicluster: there is no helm in PATH: "),
        ({"HELM_BIN": "/no/helm"}, "minicluster: HELM_BIN is /no/helm: there is no such program: "),
    ],
)
def test_template_without_helm_says_how_to_get_it(helm4: Helm, env: dict[str, str], message: str) -> None:
    done = run(helm4, "template", "a", **({"PATH": "/nowhere"} | env))
    assert done == Done(1, "", f"{message}install Helm 3.14 or later, or Helm 4, or set HELM_BIN to its path\n")
