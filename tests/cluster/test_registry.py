"""The steps of a new user with an empty home: plugin, chart from an OCI registry, scale, roll back, remove."""

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from newcomer import VERSION, User, make_environment, need_wheels
from quick import QuickCluster
from support import BIN, ROOT, Helm, tool

from tools import clients
from tools.clients import ProcessError, until
from tools.releases import Release

pytestmark = pytest.mark.without("labels", "security", why="the first values of a new user name neither")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a registry on this machine; return its address."""
    program = tool("registry")
    if not program:
        pytest.skip("registry is missing: run `make tools`")
    home = tmp_path_factory.mktemp("registry")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"localhost:{probe.getsockname()[1]}"
    config = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(home / "data")}},
        "http": {"addr": address},
    }
    (home / "config.json").write_text(json.dumps(config))
    env = {**os.environ, "OTEL_TRACES_EXPORTER": "none"}
    command = [program, "serve", home / "config.json"]

    def answers() -> bool:
        try:
            with urllib.request.urlopen(f"http://{address}/v2/") as response:
                return bool(response.status == 200)
        except OSError as error:
            raise ProcessError(str(error)) from None

    with (home / "log").open("wb") as log, subprocess.Popen(command, env=env, stdout=log, stderr=log) as process:
        try:
            until(answers, what="the registry")
            yield address
        finally:
            process.kill()


#: What `oras push REFERENCE --artifact-type TYPE FILE...` does, and nothing else: a layer for each file, with its name
ORAS = """\
import hashlib, json, pathlib, sys, urllib.request
_, reference, _, kind, *names = sys.argv[1:]
where, _, tag = reference.rpartition(":")
host, _, repository = where.partition("/")
base = f"http://{host}/v2/{repository}"

def send(method, url, data=b"", media="application/octet-stream"):
    asked = urllib.request.Request(url, data, {"Content-Type": media}, method=method)
    return urllib.request.urlopen(asked).headers

def blob(data, media, **more):
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    place = send("POST", f"{base}/blobs/uploads/")["Location"]
    send("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest}", data)
    return {"mediaType": media, "digest": digest, "size": len(data), **more}

image = "application/vnd.oci.image"
layers = [
    blob(pathlib.Path(name).read_bytes(), f"{image}.layer.v1.tar", annotations={"org.opencontainers.image.title": name})
    for name in names
]
config = blob(b"{}", "application/vnd.oci.empty.v1+json")
media = f"{image}.manifest.v1+json"
manifest = {"schemaVersion": 2, "mediaType": media, "artifactType": kind, "config": config, "layers": layers}
headers = send("PUT", f"{base}/manifests/{tag}", json.dumps(manifest).encode(), media)
print("Digest:", headers["Docker-Content-Digest"])
"""


def publish_plugin(registry: str, built: Path, folder: Path) -> None:
    """Run the step of the release's workflow that publishes the plugin, with a registry of this machine."""
    shutil.copytree(built, folder / "dist")
    archive = folder / "dist" / f"minicluster-{VERSION}.tgz"
    archive.with_name(f"{archive.name}.prov").write_text("a provenance file")
    programs = folder / "programs"
    programs.mkdir()
    for name, text in {"oras": f"#!{sys.executable}\n{ORAS}", "cosign": '#!/bin/sh\necho "$@" >signed\n'}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yaml").read_text())["jobs"]
    [script] = [step["run"] for step in jobs["publish"]["steps"] if step.get("name") == "Plugin"]
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "OWNER": "Org", "GITHUB_REF_NAME": f"v{VERSION}"}
    words = ["bash", "-euo", "pipefail", "-c", script.replace("ghcr.io", registry)]
    subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True)
    assert (folder / "signed").read_text().startswith(f"sign --yes {registry}/org/plugins/minicluster@sha256:")


def new_user(helm: Helm, home: Path, kubeconfig: str) -> User:
    """Return a user of one of the Helms, with a cluster."""
    user = User(home, "python3", helm=helm.name)
    user.env["KUBECONFIG"] = kubeconfig
    return user


@pytest.fixture
def user(helm: Helm, built: Path, tmp_path: Path, cluster: QuickCluster, registry: str) -> User:
    """Return a user who installed the post-renderer as documented."""
    user = new_user(helm, tmp_path / "home", cluster.env["KUBECONFIG"])
    if user.helm == "helm":
        need_wheels()
        user.copies(make_environment(tmp_path / "environment"))
        publish_plugin(registry, built, tmp_path)
        source = f"oci://{registry}/org/plugins/minicluster:{VERSION}"
        assert "Installed plugin: minicluster" in user.ok("plugin", "install", "--verify=false", "--plain-http", source)
    else:
        # pip install
        (user.bin / "minicluster").symlink_to(Path(sys.executable).parent / "minicluster")
    return user


def commands(user: User, *words: str) -> Any:
    """Return the JSON that the installed minicluster prints."""
    (user.bin / "kubectl").symlink_to(BIN / "kubectl")
    program = ["sh", *user.plugins.glob("*/run.sh")] if user.helm == "helm" else ["minicluster"]
    env = {**user.env, "HELM_BIN": str(BIN / user.helm)}
    return json.loads(clients.output(*program, *words, env=env))


def test_a_new_user_installs_scales_and_removes_a_release_from_a_registry(
    registry: str, user: User, built: Path, release4: Release
) -> None:
    chart = [f"oci://{registry}/charts/minicluster", "--version", VERSION, "--plain-http"]
    place = ["--namespace", release4.namespace]
    post = ["--post-renderer", "minicluster"]
    user.ok("push", built / "chart" / f"minicluster-{VERSION}.tgz", f"oci://{registry}/charts", "--plain-http")
    user.ok("install", "mc", *chart, *place, *post, "--set", "size=2,maxSize=4")
    first = release4.running(2)
    certificate = release4.certificate()

    assert commands(user, "list", "-n", release4.namespace, "-o", "json")[0]["name"] == "mc"

    user.ok("upgrade", "mc", *chart, *place, *post, "--reuse-values", "--set", "size=3")
    assert {index: uid for index, uid in release4.running(3).items() if index in first} == first
    # a rollback runs no post-renderer: it applies what Helm stored
    user.ok("rollback", "mc", "1", *place)
    assert release4.running(2) == first
    assert release4.certificate() == certificate

    user.ok("uninstall", "mc", *place, "--wait")
    release4.cluster.wait("nothing", lambda: release4.items() == [])
    if user.helm == "helm":
        user.ok("plugin", "uninstall", "minicluster")
    assert user.left() == []


# both Helms without a registry: test_lifecycle.py
def test_an_install_from_a_registry_without_the_post_renderer_creates_nothing(
    registry: str, helm3: Helm, built: Path, release4: Release, tmp_path: Path
) -> None:
    user = new_user(helm3, tmp_path / "home", release4.cluster.env["KUBECONFIG"])
    user.ok("push", built / "chart" / f"minicluster-{VERSION}.tgz", f"oci://{registry}/charts", "--plain-http")
    chart = [f"oci://{registry}/charts/minicluster", "--plain-http", "--namespace", release4.namespace]
    done = user.run("install", "mc", *chart)
    assert "add--post-renderer-minicluster" in done.err
    assert release4.items() == []
