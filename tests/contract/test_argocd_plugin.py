"""Argo CD's own plugin server (3.5) with gitops/argocd/plugin.yaml, asked as its repo-server does."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from minicluster.commands import argocd
from support import ROOT, SEED, Done, Helm, by_name, one, tool, values_text

from tools.clients import until

FOLDER = ROOT / "gitops" / "argocd"
PLUGIN = yaml.safe_load((FOLDER / "plugin.yaml").read_text())
FAILED = "rpc error: code = Unknown desc = error generating manifests: `minicluster argocd` failed exit status 1: "


@dataclass
class Server:
    """A running server and how it is asked."""

    program: Path
    socket: Path

    def ask(self, what: str, repository: Path, path: str, *parameters: object, name: str = "app") -> Done:
        """Stream a repository and return the answer."""
        application = {
            "ARGOCD_APP_NAME": name,
            "ARGOCD_APP_NAMESPACE": "team",
            "ARGOCD_APP_SOURCE_PATH": path,
            "ARGOCD_APP_PARAMETERS": json.dumps(parameters),
            "KUBE_VERSION": "1.36",
        }
        done = subprocess.run(
            [self.program, what, self.socket, repository, repository / path],
            env={"PATH": os.environ["PATH"], **application},
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def generate(self, repository: Path, path: str, *parameters: object, name: str = "app") -> str:
        done = self.ask("generate", repository, path, *parameters, name=name)
        assert done.code == 0, done.err
        return done.out

    def refuse(self, repository: Path, path: str, *parameters: object) -> str:
        done = self.ask("generate", repository, path, *parameters)
        assert (done.code, done.out) == (1, "")
        return done.err


@contextmanager
def started(helm: Helm, home: Path, seed: bytes | None) -> Iterator[Server]:
    """Run the server as its sidecar does, in a folder whose path is short enough for a socket."""
    program = tool("argocd-cmp")
    if not program:
        pytest.skip("argocd-cmp is missing: run `make tools`")
    for name in ("config", "work", "sockets"):
        (home / name).mkdir()
    shutil.copy(FOLDER / "plugin.yaml", home / "config")
    if seed:
        (home / "seed").write_bytes(seed)
    env = helm.environment | {
        "ARGOCD_PLUGINSOCKFILEPATH": str(home / "sockets"),
        "ARGOCD_CMP_WORKDIR": str(home / "work"),
        **({"MINICLUSTER_CURVE_SEED_FILE": str(home / "seed")} if seed else {}),
    }
    socket = home / "sockets" / "minicluster.sock"
    command = [program, "serve", "--config-dir-path", home / "config", "--loglevel", "warn"]
    with (home / "log").open("wb") as log, subprocess.Popen(command, env=env, stdout=log, stderr=log) as process:
        try:
            until(socket.exists, what="the socket")
            yield Server(program, socket)
        finally:
            process.kill()  # it waits for streams that are open


@pytest.fixture(scope="module")
def server(helm4: Helm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with started(helm4, tmp_path_factory.mktemp("cmp"), None) as server:
        yield server


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make a repository of values; nothing in it can be executed, or will be."""
    for path, values in {
        "team/named": {"size": 2, "maxSize": 4, "flux": {"curveCertSecret": "mine"}},
        "team/unnamed": {"size": 2},
        "team/wrong": {"size": 4, "maxSize": 3, "flux": {"curveCertSecret": "mine"}},
        "team/removed": {"cleanup": True, "flux": {"curveCertSecret": "mine"}},
    }.items():
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / argocd.VALUES_NAME).write_text(values_text(values))
    (tmp_path / "chart").mkdir()
    (tmp_path / "chart" / "values.yaml").write_text("size: 1\n")
    (tmp_path / "common.yaml").write_text("tasks: 2\nsize: 9\n")
    return tmp_path


def test_the_plugin_matches_a_folder_with_values_and_no_chart(server: Server, repository: Path) -> None:
    assert server.ask("match", repository, "team/named").out == "true\n"
    assert server.ask("match", repository, "chart").out == "false\n"


def test_the_plugin_announces_its_parameters(server: Server, repository: Path) -> None:
    announced = json.loads(server.ask("parameters", repository, "team/named").out)
    assert announced == PLUGIN["spec"]["parameters"]["static"]
    assert {one["name"]: one.get("collectionType", "string") for one in announced} == argocd.PARAMETERS


def test_the_plugin_generates_the_manifests_of_a_folder(server: Server, repository: Path) -> None:
    made = server.generate(repository, "team/named")
    maps = {("ConfigMap", f"app-{name}") for name in ("programs", "programs-slurm", "config")}
    assert set(by_name(made)) == {*maps, ("Service", "app"), ("Job", "app")}
    job = one(made, "Job")
    assert (job["metadata"]["namespace"], job["spec"]["completions"]) == ("team", 2)
    # Argo CD passes the cluster's version too, but it must not choose fields that can't change later
    assert "successPolicy" not in job["spec"]
    assert server.generate(repository, "team/named") == made


def test_parameters_change_the_manifests_of_the_plugin(server: Server, repository: Path) -> None:
    parameters: list[Any] = [
        {"name": "name", "string": "other"},
        {"name": "values-files", "array": ["../../common.yaml", argocd.VALUES_NAME]},
        {"name": "set", "map": {"size": "3", "containers[0].command": "echo a, b=c"}},
        {"name": "kube-version", "string": "1.36"},
    ]
    made = server.generate(repository, "team/named", *parameters)
    job = one(made, "Job", "other")
    assert job["spec"]["completions"] == 3
    assert job["spec"]["successPolicy"] == {"rules": [{"succeededIndexes": "0"}]}
    data = one(made, "ConfigMap", "other-config")["data"]
    assert data["command"] == "echo a, b=c"
    assert "-n 2" in data["settings.sh"]


def test_an_error_of_the_plugin_arrives_at_argo_cd(server: Server, repository: Path) -> None:
    assert server.refuse(repository, "team/wrong") == (
        FAILED + "minicluster: MiniCluster app: size is 4, maxSize 3: lower size, or install with a larger maxSize\n"
    )
    assert server.refuse(repository, "team/named", {"name": "set", "map": {"size": "x"}}) == (
        FAILED + "minicluster: size: got string, want integer\n"
    )
    assert server.refuse(repository, "chart") == (
        FAILED
        + f"minicluster: the values file {argocd.VALUES_NAME} is missing: add it, or name another in the parameter "
        "values-files\n"
    )


def test_a_job_that_argo_cd_would_run_again_and_again_is_refused(server: Server, repository: Path) -> None:
    assert server.refuse(repository, "team/removed") == (
        FAILED
        + "minicluster: the Job app is removed when it has ended, and the next sync runs it again: drop cleanup\n"
    )


def test_the_plugin_makes_a_certificate_only_with_a_seed(
    server: Server, repository: Path, helm4: Helm, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert server.refuse(repository, "team/unnamed") == (
        FAILED + "minicluster: MiniCluster app has no certificate, and a random one would differ each time: set "
        "flux.curveCertSecret to a Secret that `minicluster keygen` makes once, or give --curve-seed-file\n"
    )
    with started(helm4, tmp_path_factory.mktemp("cmp"), SEED) as seeded:
        made = seeded.generate(repository, "team/unnamed")
        assert 'secret-key = "' in one(made, "Secret", "app-curve")["stringData"]["curve.cert"]
        assert seeded.generate(repository, "team/unnamed") == made
        # a Secret that is named comes first
        assert ("Secret", "app-curve") not in by_name(seeded.generate(repository, "team/named"))


def test_the_plugin_answers_requests_at_the_same_time(server: Server, repository: Path) -> None:
    names = [f"app-{n}" for n in range(8)]
    with ThreadPoolExecutor(len(names)) as pool:
        made = list(pool.map(lambda name: server.generate(repository, "team/named", name=name), names))
    assert [one(text, "Job")["metadata"]["name"] for text in made] == names
