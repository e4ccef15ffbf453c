"""The SDK reads what kubectl reads: each kubeconfig that kubectl accepts, on a real API server."""

import copy
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from minicluster.sdk import ApiError, MiniCluster
from simulated import end
from support import Helm

from tools.clients import until
from tools.releases import Release

pytestmark = pytest.mark.any_helm
Change = Callable[[dict[str, Any], Path], None]


@pytest.fixture
def place(release: Release, connected: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the files of KUBECONFIG, each made by a change of one whose context lab has the namespace of the test."""
    found = json.loads(Path(connected.environment["KUBECONFIG"]).read_text())
    found["contexts"][0]["name"] = found["current-context"] = "lab"
    found["contexts"][0]["context"]["namespace"] = release.namespace

    def use(*changes: Change | str) -> None:
        paths = [tmp_path / f"kubeconfig-{number}" for number in range(len(changes))]
        for path, change in zip(paths, changes, strict=True):
            one = copy.deepcopy(found)
            if not isinstance(change, str):
                change(one, tmp_path)
            path.write_text(change if isinstance(change, str) else json.dumps(one))
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))

    return use


def same(_config: dict[str, Any], _folder: Path) -> None:
    """Change nothing."""


def without_current(config: dict[str, Any], _: Path) -> None:
    del config["current-context"]


def current(name: str) -> Change:
    return lambda config, _: config.update({"current-context": name})


def token_file(config: dict[str, Any], folder: Path) -> None:
    """Keep the token in a file, whose line has an end."""
    user = config["users"][0]["user"]
    (folder / "token").write_text(user.pop("token") + "\n")
    user["tokenFile"] = "token"


def plugin(script: str, **more: Any) -> Change:
    """Let a credential plugin be asked: a script that has the token in $1."""

    def change(config: dict[str, Any], folder: Path) -> None:
        path = folder / "plugin"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        user = config["users"][0]["user"]
        (folder / "token").write_text(user.pop("token"))
        version = "client.authentication.k8s.io/v1"
        own = {"apiVersion": version, "command": str(path), "args": [str(folder)], "interactiveMode": "Never", **more}
        user["exec"] = own

    return change


TELLS = r"""printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": %s}' """
TOKEN = TELLS + '"{\\"token\\": \\"$(cat "$1/token")\\"}"'
EXPIRES = TELLS + '"{\\"token\\": \\"$(cat "$1/token")\\", \\"expirationTimestamp\\": \\"2020-01-01T00:00:00Z\\"}"'
NULLS = "{clusters: null, contexts: null, users: null, current-context: ''}"


#: The files of KUBECONFIG, and the context that is named
ACCEPTED: dict[str, tuple[Sequence[Change | str], str]] = {
    "a current context": ((same,), ""),
    "no current one": ((without_current,), "lab"),
    "an empty current one": ((current(""),), "lab"),
    "a current one that is gone": ((current("gone"),), "lab"),
    "an empty file first": (("", same), ""),
    "a file of nulls last": ((same, NULLS), ""),
    "a file of nulls first": ((NULLS, same), ""),
    "the second file has the current one": ((without_current, same), ""),
    "the first current one counts": ((same, current("gone")), ""),
    "a file with a token": ((token_file,), ""),
    "a plugin": ((plugin(TOKEN),), ""),
    "a plugin whose token expires": ((plugin(EXPIRES),), ""),
    "a plugin with all fields": ((plugin(TOKEN, provideClusterInfo=True, env=None, installHint="get it"),), ""),
}


def test_the_sdk_accepts_what_kubectl_accepts(place: Callable[..., None], release: Release) -> None:
    release.install(size=1)

    def found(files: Sequence[Change | str], context: str) -> tuple[str, str]:
        place(*files)
        cluster = MiniCluster.connect("mc", context=context)  # which asks kubectl for it
        return cluster.namespace, repr(cluster)

    def shown(context: str) -> str:
        named = f" of context {context}" if context else ""
        return f"<MiniCluster mc in namespace {release.namespace}{named}>"

    assert {name: found(*case) for name, case in ACCEPTED.items()} == {
        name: (release.namespace, shown(context)) for name, (_, context) in ACCEPTED.items()
    }


@pytest.mark.parametrize(
    ("files", "context", "message"),
    [
        (
            (without_current,),
            "",
            r"^the kubeconfig can't be used: it has no current context: check KUBECONFIG and the context$",
        ),
        (
            (same,),
            "nope",
            r"^the kubeconfig can't be used: cannot locate context nope: check KUBECONFIG and the context$",
        ),
        (
            (plugin("echo 'Token for lab does not exist' >&2; exit 255"),),
            "",
            r"^kubectl get pods: getting credentials: exec: executable .*/plugin failed with exit code 255: "
            r"Token for lab does not exist$",
        ),
        (
            (plugin("", command="aws-not-there", installHint="get it from the intranet"),),
            "",
            r"^kubectl get pods: .*executable aws-not-there not found: get it from the intranet$",
        ),
        ((plugin("echo Welcome to lab"),), "", r"^kubectl get pods: getting credentials: decoding stdout: "),
        ((plugin(TELLS + '"{\\"token\\": \\"old\\"}"'),), "", r"^kubectl get pods: .*logged in to the server"),
    ],
    ids=["no context", "another context", "a plugin fails", "no plugin", "no JSON", "an old token"],
)
def test_the_sdk_tells_what_kubectl_tells(place: Callable[..., None], files: Any, context: str, message: str) -> None:
    place(*files)
    with pytest.raises(ApiError, match=message):
        MiniCluster.connect("mc", context=context)


def test_a_program_goes_on_with_renewed_credentials_and_in_its_own_context(
    place: Callable[..., None], release: Release, tmp_path: Path
) -> None:
    release.install(size=1)
    place(plugin(TOKEN))
    cluster, token = MiniCluster.connect("mc"), (tmp_path / "token").read_text()
    release.running(1)
    job = cluster.submit("true")
    # the session is over
    (tmp_path / "token").write_text("old")
    with pytest.raises(ApiError, match="logged in to the server") as caught:
        cluster.status()
    assert caught.value.status == 401
    until(lambda: "logged in" in cluster._queue._session.problem, 60)
    assert not job.done()
    # it is renewed, and another context has become the current one
    (tmp_path / "token").write_text(token)
    path = Path(os.environ["KUBECONFIG"])
    path.write_text(path.read_text().replace('"current-context": "lab"', '"current-context": "other"'))
    assert cluster.status()["name"] == "mc"
    until(lambda: "logged in" not in cluster._queue._session.problem, 60)
    end(release, 0, 3)
    assert "has ended" in str(job.exception(60))
    cluster.close()
