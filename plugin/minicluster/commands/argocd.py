"""``minicluster argocd``: the manifests of an Argo CD Application, for the plugin in gitops/argocd/."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import click
import yaml

from minicluster.commands import options
from minicluster.console import streams
from minicluster.documents import yamlio
from minicluster.errors import ManifestError, SpecError
from minicluster.release import manifests
from minicluster.release.helm import CHART, OfflineRelease

#: The values file by which Argo CD discovers a folder.
VALUES_NAME = "minicluster-values.yaml"
#: The parameters of an Application, and the field that holds the value of each.
PARAMETERS = {"name": "string", "chart": "string", "values-files": "array", "set": "map", "kube-version": "string"}


@click.command("argocd", hidden=True)
@options.curve_seed
def command(seed: bytes | None) -> None:
    """Print the manifests of an Argo CD Application.

    The environment describes the Application, as Argo CD sets it for its plugins.
    """
    objects = manifests.render(release(os.environ, Path.cwd()), seed)
    problem = manifests.self_removing_job(objects)
    if problem:
        raise ManifestError(problem)
    streams.write(manifests.join(objects))


def release(environ: Mapping[str, str], folder: Path) -> OfflineRelease:
    """Return the release that Argo CD's environment describes, folder being the Application's. Raises SpecError."""
    given = dict(_parameters(environ.get("ARGOCD_APP_PARAMETERS") or "[]"))
    root = folder.resolve()
    for _ in PurePosixPath(environ.get("ARGOCD_APP_SOURCE_PATH", ".")).parts:
        root = root.parent
    chart = given.get("chart")
    files = [_inside(root, folder, file) for file in given.get("values-files") or ([] if chart else [VALUES_NAME])]
    sets = [f"--set-json={key}={_json(key, text)}" for key, text in sorted(given.get("set", {}).items())]
    return OfflineRelease(
        name=given.get("name") or _variable(environ, "ARGOCD_APP_NAME"),
        namespace=_variable(environ, "ARGOCD_APP_NAMESPACE"),
        values=[*(f"--values={file}" for file in files), *sets],
        chart=str(_inside(root, folder, f"{chart}/Chart.yaml", "chart").parent) if chart else str(CHART),
        kube_version=given.get("kube-version"),
    )


def _variable(environ: Mapping[str, str], name: str) -> str:
    if not environ.get(name):
        raise SpecError(f"{name} is not set: Argo CD's plugin sets it; elsewhere use `minicluster template`")
    return environ[name]


def _parameters(text: str) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each parameter in Argo CD's JSON. Raises SpecError for an unknown one."""
    try:
        items = json.loads(text) or []
    except (ValueError, RecursionError) as error:
        raise SpecError(f"ARGOCD_APP_PARAMETERS is not JSON: {error}") from None
    for item in items if isinstance(items, list) else [items]:
        name = item.get("name") if isinstance(item, dict) else item
        field = PARAMETERS.get(name) if isinstance(name, str) else None
        if name is None or field is None:
            raise SpecError(f"the parameter {name!r} is unknown: there are {', '.join(PARAMETERS)}")
        value = item.get(field) if isinstance(item, dict) else None
        if value is None:
            raise SpecError(f"the parameter {name} has no {field}: give it as `{field}:`")
        if not _fits(value, field):
            raise SpecError(f"the parameter {name} has {value!r}: {field} must hold strings")
        yield name, value


def _fits(value: Any, field: str) -> bool:
    """Tell whether a value has the type of a parameter's field; its strings have no NUL and no surrogates."""
    texts = {"string": [value], "array": value, "map": value.values() if isinstance(value, dict) else value}[field]
    return isinstance(value, dict if field == "map" else list if field == "array" else str) and all(
        isinstance(text, str) and not re.search("[\0\ud800-\udfff]", text) for text in texts
    )


def _inside(root: Path, folder: Path, file: str, parameter: str = "values-files") -> Path:
    """Return the path of a file. Raises SpecError when it is missing, or outside the repository."""
    path = (folder / file).resolve()
    kind = "values file" if parameter == "values-files" else "file"
    if not path.is_relative_to(root):
        raise SpecError(f"the {kind} {file} is not in the repository: give a path in it")
    if not path.is_file():
        raise SpecError(f"the {kind} {file} is missing: add it, or name another in the parameter {parameter}")
    return path


def _json(key: str, text: str) -> str:
    """Return a parameter's text as JSON, read as in a values file: a number, true, null, or else a string."""
    try:
        return json.dumps(yamlio.load(text))
    except yaml.YAMLError:
        raise SpecError(f"the parameter set has {text!r} for {key}, which is not YAML: put it in quotes") from None
