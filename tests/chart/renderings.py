"""The parts of a rendering that tests of the templates look at."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minicluster.render import stream
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel
from support import CHART, nested, one


def job(text: str) -> dict[str, Any]:
    return one(text, "Job")


def pod(text: str) -> dict[str, Any]:
    template: dict[str, Any] = job(text)["spec"]["template"]
    return template


def app(text: str) -> dict[str, Any]:
    container: dict[str, Any] = pod(text)["spec"]["containers"][0]
    return container


def cluster(text: str) -> MiniClusterModel:
    """Return the hand-over document as the post-renderer reads it."""
    found = [d for d in map(stream.parse, stream.split(text.encode())) if d]
    assert len(found) == 1
    return load(found[0])


def at(path: str, value: Any) -> dict[str, Any]:
    values: dict[str, Any] = nested(path.split("."), value)
    return values


def runner(**fields: Any) -> dict[str, Any]:
    return {"containers": [fields]}


def probe_chart(folder: Path, template: str) -> Path:
    """Write our chart with one template, which shows what its helpers return, and return its folder."""
    shutil.copytree(CHART, folder)
    for path in (folder / "templates").rglob("*.*"):
        if path.suffix != ".tpl":
            path.unlink()
    (folder / "templates" / "probe.yaml").write_text(template)
    return folder


def live_chart(folder: Path, live: Mapping[str, Any]) -> Path:
    """Write our chart as it finds live objects, by kind and name, and return its folder."""
    shutil.copytree(CHART, folder)
    (folder / "files" / "live.json").write_text(json.dumps({name: json.dumps(one) for name, one in live.items()}))
    values = folder / "templates" / "common" / "_values.tpl"
    begin = '{{- define "minicluster.defaults" -}}\n'
    text = values.read_text(encoding="utf-8")
    assert begin in text
    found = '{{ $_ := set . "lookups" (.Files.Get "files/live.json" | fromJson) }}'
    values.write_text(text.replace(begin, f'{begin}{{{{- if not (hasKey . "lookups") }}}}{found}{{{{ end -}}}}\n'))
    return folder
