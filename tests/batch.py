"""Many values by one Helm: its start and the loading of the chart cost six times as much as the templates themselves.

Helm's own steps are left out: the check by the schema, and the order of the objects.
"""

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from support import CHART, DEFAULTS, Helm, load_all, values_text

from tools.clients import ProcessError

NOTES, *OBJECTS = sorted(path.relative_to(CHART) for path in CHART.glob("templates/**/*.*") if path.suffix != ".tpl")
#: Renders each case as Helm does: all templates have one root
TEMPLATE = """\
{{- range .Values.cases }}
{{- $root := dict "Chart" $.Chart "Files" $.Files "Capabilities" $.Capabilities "Template" $.Template -}}
{{- $root = set $root "Release" (merge .release $.Release) | merge (dict "Values" .values) .more -}}
{{- $texts := list -}}
{{- range $.Values.templates }}{{ $texts = append $texts (include . $root) }}{{ end }}
---
kind: Case
texts: {{ toJson $texts }}
{{- end }}
"""


def coalesced(defaults: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with defaults as Helm merges them: a null takes the default away."""
    merged = {**defaults, **values}
    for key in defaults.keys() & values.keys():
        if values[key] is None:
            del merged[key]
        elif isinstance(defaults[key], Mapping) and isinstance(values[key], Mapping):
            merged[key] = coalesced(defaults[key], values[key])
    return merged


def case(
    values: Mapping[str, Any], *, release: str = "flux-sample", namespace: str = "ns", **more: Any
) -> dict[str, Any]:
    """Return what is rendered together: the values of a release, and what else its templates find in their root."""
    about = {"Name": release, "Namespace": namespace}
    return {"values": coalesced(DEFAULTS, values), "release": about, "more": more}


def batch_chart(folder: Path, template: str = "") -> Path:
    """Write our chart with one template, which renders the others or only the given one, and return its folder."""
    shutil.copytree(CHART, folder)
    (folder / "values.schema.json").unlink()
    (folder / "values.yaml").write_text("")
    for path in (NOTES, *OBJECTS):
        (folder / path).rename(folder / path.with_name(f"_{path.name}"))
    (folder / "templates" / "cases.yaml").write_text(TEMPLATE)
    (folder / "templates" / "_probe.yaml").write_text(template)
    return folder


class Batch:
    """Renders cases by one Helm and its options: all that are known, when the first is asked for."""

    def __init__(
        self, helm: Helm, folder: Path, known: Iterable[Mapping[str, Any]], *options: str, template: str = ""
    ) -> None:
        """Render nothing yet. A template is rendered in place of the chart's."""
        self.helm = helm
        self.options = options
        self.known = {json.dumps(one): one for one in known}
        self.chart = batch_chart(folder / "minicluster", template)
        self.paths = [Path("templates/probe.yaml")] if template else [NOTES, *OBJECTS]
        self.done: dict[str, list[str] | ProcessError] = {}

    def _render(self, cases: Mapping[str, Mapping[str, Any]]) -> None:
        """Render cases, and after an error each half of them, until it is known whose error it is."""
        templates = [f"minicluster/{path.with_name(f'_{path.name}')}" for path in self.paths]
        values = values_text({"templates": templates, "cases": list(cases.values())})
        try:
            text = self.helm.ok("template", "x", self.chart, *self.options, "--values", "-", stdin=values)
        except ProcessError as error:
            if len(cases) == 1:
                self.done |= dict.fromkeys(cases, error)
                return
            keys = list(cases)
            for half in (keys[: len(keys) // 2], keys[len(keys) // 2 :]):
                self._render({key: cases[key] for key in half})
        else:
            self.done |= zip(cases, (one["texts"] for one in load_all(text)), strict=True)

    def texts(self, one: Mapping[str, Any]) -> list[str]:
        """Return the text of each template, in the order of the paths. Raises ProcessError when one fails."""
        key = json.dumps(one)
        if key not in self.done:
            self._render({**({} if self.done else self.known), key: one})
        found = self.done[key]
        if isinstance(found, ProcessError):
            raise found
        return found

    def notes(self, one: Mapping[str, Any]) -> list[str]:
        """Return the lines that `helm install` prints of a case."""
        return self.texts(one)[self.paths.index(NOTES)].splitlines()

    def stream(self, one: Mapping[str, Any]) -> str:
        """Return the objects of a case, as `helm template` prints them."""
        texts = [(path, text.strip()) for path, text in zip(self.paths, self.texts(one), strict=True) if path != NOTES]
        return "".join(f"---\n# Source: minicluster/{path}\n{text}\n" for path, text in texts if text)
