"""A simulated cluster that this process reads and writes itself, for a 30th of what a kubectl costs; a Helm for it."""

import json
import os
import urllib.parse
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import urllib3
import warm
from minicluster.kube.kubectl import Kubernetes
from support import BIN

from tools.clients import Helm, ProcessError
from tools.embedded import EXIT_CODE, EmbeddedCluster

#: All resources of all groups, in one answer
DISCOVERY = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)
#: kubectl's options, as the API server names them
SELECTORS = {"--selector": "labelSelector", "--field-selector": "fieldSelector"}


class Resource(NamedTuple):
    """A resource of the API, in its preferred version."""

    group: str
    version: str
    plural: str
    kind: str
    has_namespace: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}".lstrip("/")

    def path(self, namespace: str | None) -> str:
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"


class QuickCluster(EmbeddedCluster):
    """An EmbeddedCluster, as its administrator."""

    _resources: Mapping[tuple[str, str], Resource] | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        """Prepare the cluster; its `minicluster` starts warm."""
        super().__init__(*args, **options)
        self.env["PATH"] = os.pathsep.join([str(warm.ours()), self.env["PATH"]])

    def get(self, *args: object) -> Any:
        """Return what `kubectl get` would: KINDS [NAME], and the namespace or selectors. Raises ProcessError."""
        words, query, namespace = _parse(map(str, args))
        kinds, *names = words
        resources = [self._resource(kind) for kind in kinds.split(",")]
        if names:
            path = resources[0].path(namespace if resources[0].has_namespace else None)
            return _shown(self._ask("GET", f"{path}/{names[0]}"))
        items = []
        for one in resources:
            found = self._ask("GET", one.path(namespace if one.has_namespace else None), query=query)["items"]
            items += [_shown({"apiVersion": one.api_version, "kind": one.kind, **item}) for item in found]
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def answer_reads(self, patch: pytest.MonkeyPatch) -> None:
        """Answer what the package reads in this process, in place of a kubectl each time; all else is kubectl's."""

        def get(kubernetes: Kubernetes, kind: str, *words: str) -> Any:
            try:
                return self.get(kind, f"--namespace={kubernetes.namespace}", *words)
            except ProcessError as error:
                if ": NotFound: " in str(error):
                    return {}
                raise

        patch.setattr(Kubernetes, "get", get)

    def create(self, *objects: Mapping[str, Any], dry_run: bool = False) -> None:
        """Create the objects, which have no unknown fields; a dry run only checks them. Raises ProcessError."""
        query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
        for one in objects:
            resource = self._resource(one["kind"], one["apiVersion"])
            namespace = one["metadata"].get("namespace", "default") if resource.has_namespace else None
            self._ask("POST", resource.path(namespace), query=query, body=one)

    def end_pod(self, namespace: str, name: str, code: int) -> None:
        """Let the containers of a pod end with an exit code. Raises ProcessError."""
        change = {"metadata": {"annotations": {EXIT_CODE: str(code)}}}
        self._ask("PATCH", f"{self._resource('pods').path(namespace)}/{name}", body=change)

    def token(self, namespace: str, account: str) -> str:
        """Return a token of a service account, as its pods have it. Raises ProcessError."""
        made = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"{self._resource('serviceaccounts').path(namespace)}/{account}/token"
        found: str = self._ask("POST", path, body=made)["status"]["token"]
        return found

    def allows(self, user: str, namespace: str, verb: str, what: str) -> bool:
        """Say what `kubectl auth can-i` would: of TYPE, TYPE/NAME or TYPE --subresource=NAME. Raises ProcessError."""
        kind, _, subresource = what.partition(" --subresource=")
        plural, _, name = kind.partition("/")
        one = self._resource(plural)
        asked = {"verb": verb, "group": one.group, "resource": one.plural, "subresource": subresource, "name": name}
        # of an account, its namespace
        groups = [f"system:serviceaccounts:{user.split(':')[2]}", "system:serviceaccounts"] if ":" in user else []
        spec = {"user": user, "groups": groups, "resourceAttributes": {**asked, "namespace": namespace}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(self._ask("POST", path, body={"spec": spec})["status"]["allowed"])

    @cached_property
    def _http(self) -> urllib3.HTTPSConnectionPool:
        config = json.loads(self.kubeconfig.read_text())
        address = urllib3.util.parse_url(config["clusters"][0]["cluster"]["server"])
        headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
        authority = config["clusters"][0]["cluster"]["certificate-authority"]
        # a second thread plays the pods of hooks
        return urllib3.HTTPSConnectionPool(
            address.host, address.port, maxsize=2, ca_certs=authority, headers=headers, retries=2
        )

    def _ask(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None, accept: str = ""
    ) -> Any:
        """Return the API server's answer. Raises ProcessError for an error, in its words."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {**self._http.headers, "Accept": accept or "application/json", "Content-Type": kind}
        url = f"{path}?{urllib.parse.urlencode(query)}" if query else path
        try:
            answer = self._http.urlopen(method, url, body=json.dumps(body) if body else None, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise ProcessError(f"{method} {path}: {error}") from None
        found = answer.json()
        if answer.status >= 400:
            raise ProcessError(f"{method} {path}: {found.get('reason')}: {found.get('message')}")
        return found

    def _resource(self, name: str, api_version: str = "") -> Resource:
        """Return the resource of a kind, or of a name as kubectl takes it. Raises ProcessError."""
        for _ in range(2):
            self._resources = self._resources or self._discover()
            if found := self._resources.get((name, api_version)):
                return found
            self._resources = None  # a CRD may have come
        raise ProcessError(f"the API server has no {name} {api_version}")

    def _discover(self) -> dict[tuple[str, str], Resource]:
        """Return all resources by their names and kinds, each alone and with its version."""
        found: dict[tuple[str, str], Resource] = {}
        groups = [group for root in ("/api", "/apis") for group in self._ask("GET", root, accept=DISCOVERY)["items"]]
        for group in groups:
            name = group["metadata"].get("name", "")
            for version, one in ((v["version"], one) for v in group["versions"] for one in v.get("resources", [])):
                kind, plural = one["responseKind"]["kind"], one["resource"]
                made = Resource(name, version, plural, kind, one["scope"] == "Namespaced")
                for key in (plural, f"{plural}.{name}", one.get("singularResource", ""), kind):
                    found.setdefault((key, ""), made)
                found[kind, made.api_version] = made
        return found


class QuickHelm(Helm):
    """A Helm without the API server's schema, and whose pods' programs are a line each: together half of an upgrade.

    So is the Helm of the commands and the SDK in its environment. Nothing runs in the pods. test_api.py has each kind
    of object checked strictly, and installs with schema and whole programs by both Helms; so do tests that use Helm
    itself, as that of `user`.
    """

    @property
    def environment(self) -> dict[str, str]:
        """The environment that it runs in."""
        programs = _without_schema(self.name, self.home / "quick")
        prepared = {**super().environment, **warm.NO_GARBAGE}
        if "PATH" in self.env:  # another version's programs
            return {**prepared, "PATH": f"{programs}{os.pathsep}{prepared['PATH']}"}
        path = os.pathsep.join([str(programs), str(warm.ours()), prepared["PATH"]])
        return {**prepared, warm.SHORT_PROGRAMS: "yes", "PATH": path}


def take_environment(monkeypatch: pytest.MonkeyPatch, helm: Helm) -> None:
    """Let commands and the SDK that run in this process have the environment of a Helm, and that Helm."""
    monkeypatch.setenv("HELM_BIN", helm.name)
    for name, value in helm.environment.items():
        monkeypatch.setenv(name, value)


#: The program in PATH
WITHOUT_SCHEMA = """#!/bin/sh
case " $* " in
    *" install "* | *" upgrade "*) exec '{helm}' "$@" --disable-openapi-validation ;;
    *) exec '{helm}' "$@" ;;
esac
"""


def _without_schema(name: str, folder: Path) -> Path:
    """Return a folder for PATH, whose Helm asks for no schema."""
    program = folder / name
    if not program.exists():
        folder.mkdir()
        program.write_text(WITHOUT_SCHEMA.format(helm=BIN / name))
        program.chmod(0o755)
    return folder


def _parse(args: Any) -> tuple[list[str], dict[str, str], str | None]:
    """Return the words, the selectors, and the namespace, which is None for all of them."""
    words, query, namespace = [], {}, "default"
    for arg in args:
        key, _, value = arg.partition("=")
        if key == "--namespace":
            namespace = value or next(args)
        elif key == "--all-namespaces":
            namespace = None
        elif key in SELECTORS:
            query[SELECTORS[key]] = value or next(args)
        else:
            words.append(arg)
    return words, query, namespace


def _shown(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object as kubectl shows it."""
    item["metadata"].pop("managedFields", None)
    return item
