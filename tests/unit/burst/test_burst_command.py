"""`minicluster burst` with stand-ins of helm and kubectl that answer from a table and note each command."""

import base64
import json
import re
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from forks import Forked
from minicluster.burst import address, install
from support import CERTIFICATE, CHART, PUBLIC, SECRET, deep, front_door

VALUES = {
    "size": 3,
    "maxSize": None,
    "global": {},
    "containers": [{"image": "app", "command": "", "secrets": {"TOKEN": {"name": "token", "key": "k"}}}],
    "flux": {"bursting": {"clusters": [{"name": "b0", "size": 2}], "expose": {"type": "NodePort"}}},
}
HOSTLIST = {"size": 1, "maxSize": 1, "flux": {"bursting": {"hostlist": "flux-0,vm-[0-1]"}}}
JOB = {"metadata": {"annotations": {"minicluster/immutable": json.dumps({"maxSize": "4"})}}}
SERVICE = {"spec": {"type": "NodePort", "ports": [{"port": 8050, "nodePort": 30001}]}}


def pod(name: str, index: int = 0, phase: str = "Running", **status: Any) -> dict[str, Any]:
    labels = {"batch.kubernetes.io/job-completion-index": str(index)}
    return {
        "metadata": {"name": name, "namespace": "lab", "creationTimestamp": "2030-01-01T11:00:00Z", "labels": labels},
        "spec": {"nodeName": "node"},
        "status": {"phase": phase, "hostIP": "10.0.0.1", **status},
    }


def burst_job(completions: int, **status: Any) -> dict[str, Any]:
    metadata = {"namespace": "jobs", "creationTimestamp": "2026-11-21T10:00:00Z"}
    annotations = {"minicluster/immutable": '{"maxSize": "2"}'}
    spec = {"completions": completions}
    return {"metadata": {**metadata, "annotations": annotations}, "spec": spec, "status": status}


#: The answers of helm and kubectl, by a pattern of the command; a number is an exit code. The first match counts.
ANSWERS: dict[str, Any] = {
    r"^helm get values flux --all --output=json$": VALUES,
    r"^kubectl get job flux ": JOB,
    r"^kubectl get service flux-lead ": SERVICE,
    r"^kubectl get pods --selector=.*job-name=flux,": {"items": [pod("flux-0-x")]},
    r"^kubectl get node ": (1, "nodes is forbidden"),
    r"^kubectl get secret flux-curve ": {"data": {"curve.cert": base64.b64encode(CERTIFICATE.encode()).decode()}},
    r"^kubectl get secret b0-root-curve ": "",
    r"^kubectl (apply|delete) ": "",
    r"^helm version ": "v4.3.1",
    r"^helm (upgrade|uninstall|status) ": "",
    r"^kubectl get job b0 ": burst_job(2),
    r"^kubectl get pods --selector=.*job-name=b0": {"items": [pod("b0-0-x")]},
    r"flux resource drain -n -o ": "4|minicluster: b0 is being removed\n5|disk\n",
    r"flux resource (drain|undrain) ": "",
    r"flux resource status -n -s online ": "0-5\n",
    r"flux resource list -n -s all,allocated ": "all 0-7\nallocated 0-3\n",
    r"flux --version$": "commands:    \t\t0.88.0\nlibflux-core:\t\t0.88.0\n",
    r"^kubectl logs ": "minicluster: first\n<6>broker\nminicluster: the last word\n",
}


#: Of a burst of which only the Secret is left
NO_RELEASE = [1, "Error: release: not found"]
LEFT = {"get secret b0-root-curve": {"metadata": {"labels": {"app.kubernetes.io/part-of": "flux"}}}}


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Let a module be helm and kubectl, in a folder."""
    for name in ("helm", "kubectl"):
        (folder / name).touch(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(subprocess, "Popen", partial(Forked, module=module))


@dataclass(frozen=True)
class Run:
    """Runs a command of `minicluster burst` with other answers; by default the lead answers at once."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch

    def __call__(
        self, *words: str, answers: dict[str, Any] | None = None, lead: address.Handshake = address.Handshake.LEAD
    ) -> Result:
        (self.folder / "answers").write_text(json.dumps({**(answers or {}), **ANSWERS}))
        (self.folder / "asked").write_text("")
        (self.folder / "stdin").write_text("")
        self.monkeypatch.setattr(address, "probe", lambda _endpoint, _certificate: lead)
        return CliRunner().invoke(front_door, ["burst", *words])


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    stand_in(tmp_path, monkeypatch, "burst_answers")
    monkeypatch.chdir(tmp_path)
    return Run(tmp_path, monkeypatch)


def asked(tmp_path: Path) -> Iterator[list[str]]:
    for line in (tmp_path / "asked").read_text().splitlines():
        yield json.loads(line)


def changes(tmp_path: Path) -> list[str]:
    """Return the commands that change something."""
    lines = [" ".join(words) for words in asked(tmp_path)]
    return [
        line for line in lines if re.search(r" (apply|delete|upgrade|uninstall|drain --update|undrain) ", f"{line} ")
    ]


WARNING = "minicluster: the burst's namespace needs the Secret token\n"
MADE = {
    "size": 2,
    "maxSize": 2,
    "containers": [{"image": "app", "secrets": {"TOKEN": {"name": "token", "key": "k"}}}],
    "flux": {
        "curveCertSecret": "b0-root-curve",
        "bursting": {
            "clusters": [{"name": "b0", "size": 2}],
            "leadBroker": {"name": "flux", "address": "10.0.0.1", "port": 30001, "size": 4},
        },
    },
}


def test_burst_values_prints_values_and_changes_nothing(run: Run, tmp_path: Path) -> None:
    done = run("values", "flux", "b0", "--root-context", "here", "--root-namespace", "jobs")
    assert (done.exit_code, done.stderr) == (0, WARNING)
    assert yaml.safe_load(done.stdout) == MADE
    assert done.stdout.splitlines()[:3] == [
        "# b0: ranks 4-5 of flux",
        "#   kubectl apply --server-side -f the file that --secret-file writes",
        '#   helm install b0 "$(minicluster chart path)" -f b0-values.yaml --post-renderer minicluster',
    ]
    assert changes(tmp_path) == []
    places = {"helm": ["--kube-context=here"], "kubectl": ["--context=here"]}
    assert {tuple(words[1:3]) for words in asked(tmp_path)} == {(*p, "--namespace=jobs") for p in places.values()}


def test_burst_values_keeps_the_sizes_that_groups_were_installed_with(run: Run) -> None:
    installed = {"maxSize": "4", "groups[0].name": "gpu", "groups[0].maxSize": "3"}
    groups = [{"name": "gpu", "size": 1, "cores": 1}]
    answers = {
        "get values": {**VALUES, "groups": groups},
        "get job flux ": {"metadata": {"annotations": {"minicluster/immutable": json.dumps(installed)}}},
    }
    done = run("values", "flux", "b0", answers=answers)
    assert done.stdout.splitlines()[0] == "# b0: ranks 7-8 of flux"
    lead = yaml.safe_load(done.stdout)["flux"]["bursting"]["leadBroker"]
    assert (lead["size"], lead["groups"]) == (4, [{"name": "gpu", "maxSize": 3, "cores": 1, "gpus": 0}])


def test_burst_values_with_root_values_and_an_address_asks_no_cluster(run: Run, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(json.dumps({**VALUES, "maxSize": 4}))
    done = run("values", "flux", "b0", "--root-values", str(values), "--address", "10.0.0.1:30001")
    assert yaml.safe_load(done.stdout) == MADE
    assert list(asked(tmp_path)) == []


@pytest.mark.parametrize(
    ("expose", "expected"),
    [
        ({"address": "hpc.example"}, ("hpc.example", 8050)),
        ({"address": "hpc.example:443"}, ("hpc.example", 443)),
        ({"address": "hpc.example", "type": "NodePort"}, ("hpc.example", 30001)),
    ],
    ids=str,
)
def test_burst_values_takes_the_address_of_the_lead_from_the_root(
    run: Run, expose: dict[str, str], expected: tuple[str, int]
) -> None:
    values = {**VALUES, "flux": {"bursting": {"clusters": [{"name": "b0"}], "expose": expose}}}
    lead = yaml.safe_load(run("values", "flux", "b0", answers={"get values": values}).stdout)["flux"]["bursting"][
        "leadBroker"
    ]
    assert (lead["address"], lead["port"]) == expected


def test_burst_values_writes_the_secret_to_a_private_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "secret.yaml"
    path.write_text("old")
    path.chmod(0o644)
    done = run("values", "flux", "b0", "--secret-file", str(path), "-n", "there")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    secret = yaml.safe_load(path.read_text())
    assert secret["stringData"] == {"curve.cert": CERTIFICATE}
    assert secret["metadata"]["name"], secret["metadata"]["namespace"] == ("b0-root-curve", "there")
    assert f"kubectl apply --server-side -f {path}" in done.stdout
    assert SECRET not in done.output


def test_burst_install_installs_the_release_and_waits_for_its_ranks(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("{}")
    there = ["--context", "other", "-n", "there", "-f", str(own)]
    done = run("install", "flux", "b0", "--size", "1", *there, answers={"get job b0": burst_job(1)})
    assert done.stderr == WARNING + (
        "minicluster: installed b0 in namespace there of context other: waiting for ranks 4 of flux\n"
        "minicluster: b0 has joined: 1 of 2 hosts, ranks 4\n"
    )
    assert (done.exit_code, done.stdout) == (0, "")
    assert changes(tmp_path) == [
        "kubectl exec flux-0-x -- /mnt/flux/bin/flux resource undrain 4",
        "kubectl --context=other --namespace=there apply --server-side --force-conflicts "
        "--field-manager=minicluster -f -",
        f"helm --kube-context=other --namespace=there upgrade --install b0 {CHART} --values - --values {own} "
        "--post-renderer minicluster",
    ]
    assert json.dumps({**MADE, "size": 1}) in (tmp_path / "stdin").read_text()


def test_burst_install_that_is_interrupted_says_what_stays(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(install, "wait", interrupted)
    done = run("install", "flux", "b0", "-n", "there")
    way = "whole or in part: `minicluster burst remove flux b0` removes it"
    assert done.stderr.endswith(f"minicluster: interrupted: b0 stays in namespace there, {way}\n")
    assert done.exit_code == 130


def test_burst_remove_drains_the_ranks_before_it_removes_the_release(run: Run, tmp_path: Path) -> None:
    done = run("remove", "flux", "b0", "-n", "there", "--timeout=1m5s")
    assert done.stderr == (
        "minicluster: drained ranks 4-5 of flux: waiting for the jobs that run there\n"
        "minicluster: removed b0; its hosts are down until it is installed again\n"
    )
    assert changes(tmp_path) == [
        "kubectl exec flux-0-x -- /mnt/flux/bin/flux resource drain --update 4-5 minicluster: b0 is being removed",
        "helm --namespace=there uninstall b0 --cascade foreground --wait=legacy --timeout 65s",
        "kubectl --namespace=there delete secret b0-root-curve --ignore-not-found",
    ]


def test_burst_remove_removes_what_a_killed_removal_has_left(run: Run, tmp_path: Path) -> None:
    done = run("remove", "flux", "b0", answers={"helm status": NO_RELEASE, **LEFT})
    assert done.stderr.endswith("removed b0; its hosts are down until it is installed again\n")
    assert changes(tmp_path)[1:] == ["kubectl delete secret b0-root-curve --ignore-not-found"]


def test_burst_hosts_writes_a_private_folder_for_a_hostlist(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    answers = {"^helm get values": HOSTLIST}
    for _ in range(2):
        done = run(
            "hosts", "flux", "vm-[0-1]", "--output-dir", str(folder), "--address", "192.0.2.1:8050", answers=answers
        )
        assert done.exit_code == 0, done.output
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {
            "broker.toml": 0o644,
            "curve.cert": 0o400,
            "start.sh": 0o755,
            "minicluster-burst.service": 0o644,
        }
    done = run("remove", "flux", "vm-[0-1]", answers={**answers, "-s all,allocated": "all 0-7\nallocated 0\n"})
    assert done.stderr.splitlines()[-1] == (
        "minicluster: no job runs on vm-[0-1]: stop the brokers there, and `flux resource undrain vm-[0-1]` before "
        "they come back"
    )
    assert [line for line in changes(tmp_path) if "uninstall" in line] == []


IMAGE = {"name": "b0", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
NO_NODE = "0/1 nodes are available"
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_NODE}
ALONE = {"online": "0-3\n"}
LATE = "2 of 2 hosts of b0 have not joined flux within 0 s, such as rank 4: "


def waiting(*pods: Any) -> dict[str, Any]:
    return {**ALONE, "job-name=b0": {"items": list(pods)}}


@pytest.mark.parametrize(
    ("words", "answers", "message", "count"),
    [
        (
            ["values"],
            {"helm get values": [1, "Error: release: not found"]},
            "the root flux in the current namespace can't be read: helm get values: release: not found; "
            "--root-namespace and --root-context say where it is",
            0,
        ),
        (["values", "--size", "3"], {}, "the size 3 is impossible: flux has registered 2 hosts for b0, so give 1 to "
         "2; a live root can't register more", 0),
        (["values"], {"get values": deep(VALUES, {"size": 0})}, "MiniCluster flux: size is 0: must be at least 1", 0),
        (["values", "--secret-file", "s"], {"get secret flux-curve": ""}, "there is no Secret flux-curve with "
         "curve.cert in the current namespace: is the root installed there?", 0),
        (["values", "--secret-file", "/dev/null"], {}, "/dev/null exists and is not a regular file: give "
         "the path of a file", 0),
        (["hosts", "--output-dir", "/proc/1"], {}, "/proc/1 has other files, such as arch_status: give a new or empty "
         "folder", 0),
        (["install"], {"job-name=flux": {"items": [pod("x", phase="Pending")]}}, "the lead of flux doesn't run in "
         "the current namespace: see the pods there", 0),
        (["install"], {"helm upgrade": [1, "Error: size can't\nchange"]}, "helm upgrade: size can't change",
         3),
        (["install"], waiting(), LATE + "it has no pod: `kubectl describe job b0` says why", 3),
        (["install"], waiting(pod("p", phase="Pending", containerStatuses=[IMAGE])),
         LATE + "pod p is Pending: ImagePullBackOff: no such image: correct the image's name, or set "
         "pod.imagePullSecrets for its registry", 3),
        (["install"], waiting(pod("p", phase="Pending", conditions=[UNSCHEDULABLE])),
         LATE + "pod p is Pending: Unschedulable: 0/1 nodes are available", 3),
        (["install"], waiting(pod("p")), LATE + "pod p says: the last word", 3),
        (
            ["install"],
            {**waiting(pod("p", phase="Failed")),
             "get job b0": burst_job(2, conditions=[{"type": "Failed", "status": "True"}])},
            "b0 has ended: pod p says: the last word; remove it before you install it again",
            3,
        ),
        (
            ["install"],
            {**waiting(pod("p")), "exec p -- .*flux --version": "commands: 0.80.1"},
            "b0 has Flux 0.80.1 and flux has 0.88.0, which don't work together: remove it, and give it the root's view "
            "by --values",
            3,
        ),
        (["remove", "-n", "there"], {"helm status b0": NO_RELEASE}, "b0 can't be removed from "
         "namespace there: helm status b0: release: not found; --namespace and --context say where it is", 0),
        (["remove"], {"-s all,allocated": ""}, "Flux does not say where jobs run in flux, and nothing is removed: try "
         "again", 1),
        (["remove"], {"-s all,allocated": "all 0-7\nallocated 0-4\n"}, "after 0 s jobs still run on b0, whose hosts "
         "take no new ones: run this again, or cancel the jobs that `flux jobs` shows", 1),
        (["install"], {"get values": HOSTLIST}, "flux has no hosts b0 for a burst: flux.bursting.hostlist is "
         "flux-0,vm-[0-1]; name hosts that are consecutive in it, and not the root's own", 0),
    ], ids=lambda x: x[:60] if isinstance(x, str) else "",
)  # fmt: skip
def test_a_failed_burst_command_ends_with_a_one_line_message(
    run: Run, words: list[str], answers: dict[str, Any], message: str, count: int
) -> None:
    command, *rest = words
    timeout = ["--timeout=0s"] if command in ("install", "remove") else []
    done = run(command, "flux", "b0", *timeout, *rest, answers=answers)
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1] == f"minicluster: {message}"
    assert done.stdout == ""
    assert len(changes(run.folder)) == count
    assert not Path("s").exists()


def test_burst_install_refuses_hosts_that_are_not_pods(run: Run) -> None:
    done = run("install", "flux", "vm-0", "--address", "h", answers={"get values": HOSTLIST})
    assert done.stderr == (
        "minicluster: vm-0 is of flux.bursting.hostlist, so its hosts are not pods: use `minicluster burst hosts`\n"
    )


def test_a_failed_burst_install_deletes_the_secret_that_it_made(run: Run, tmp_path: Path) -> None:
    refused = {"helm upgrade": [1, "Error: no"], "get job b0 ": "", "helm status": NO_RELEASE}
    assert run("install", "flux", "b0", answers=refused).exit_code == 1
    assert changes(tmp_path)[-1] == "kubectl delete secret b0-root-curve --ignore-not-found"
    # a Secret that was there before, or that pods need, or that goes with a release, stays
    config = {"flux": {"bursting": {"leadBroker": {"name": "flux"}}}}
    half = {"info": {"status": "failed"}, "config": config}
    for kept in (LEFT, {"get job b0 ": burst_job(2)}, {"helm status": half}):
        run("install", "flux", "b0", answers={**refused, **kept})
        assert "helm upgrade" in changes(tmp_path)[-1]


def test_burst_install_refuses_another_lead_and_warns_when_none_answers(run: Run, tmp_path: Path) -> None:
    done = run("install", "flux", "b0", lead=address.Handshake.OTHER)
    assert done.exit_code == 1
    assert done.stderr == WARNING + (
        "minicluster: what answers at 10.0.0.1:30001 has another certificate than flux: give the --address of its "
        "lead; see the Services in the current namespace\n"
    )
    assert changes(tmp_path) == []
    done = run("install", "flux", "b0", "--address", "192.0.2.9", lead=address.Handshake.NONE)
    assert done.exit_code == 0
    assert done.stderr.splitlines()[1] == (
        "minicluster: warning: no lead answers at 192.0.2.9:30001 from here; the burst must reach it: one TCP port"
    )


def test_a_burst_command_names_a_missing_helm(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert run("values", "flux", "b0").stderr == (
        "minicluster: the root flux in the current namespace can't be read: there is no helm in PATH: install Helm "
        "3.14 or later, or Helm 4, or set HELM_BIN to its path; --root-namespace and --root-context say where it is\n"
    )


def test_burst_commands_never_print_the_certificate_or_pass_it_as_an_argument(run: Run, tmp_path: Path) -> None:
    values = deep(VALUES, {"flux": {"curveCert": CERTIFICATE}})
    folder = tmp_path / "folder"
    secret = ["--secret-file", str(tmp_path / "s")]
    refused = {"helm upgrade": [1, "Error: no"]}
    for words, answers in (
        *((words, {}) for words in (["install"], ["remove"], ["values", *secret], ["values"])),
        (["hosts", "--output-dir", str(folder)], {}),
        (["install"], {"helm get values": values}),
        (["install"], refused),
        (["install"], {"kubectl apply": [1, "error: no"]}),
    ):
        done = run(*words, "flux", "b0", answers=answers)
        seen = done.output + (tmp_path / "asked").read_text()
        given = [text for text in (tmp_path / "stdin").read_text().splitlines() if '"kind": "Secret"' not in text]
        assert not [key for key in (PUBLIC, SECRET) if key in seen or key in "".join(given)]
    files = {path.name: path.read_text() for path in [*folder.iterdir(), *tmp_path.iterdir()] if path.is_file()}
    assert {name for name, text in files.items() if SECRET in text} <= {"curve.cert", "s", "answers", "stdin"}
