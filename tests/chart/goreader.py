"""Go's reader of YAML, sigs.k8s.io/yaml, as Helm has it."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support import Helm, load_all

#: A Helm that reads documents, each a map, and gives them back as JSON.
Read = Callable[[list[str]], list[Any]]


def reader(helm: Helm, chart: Path) -> Read:
    """Return a function that reads documents by Go, all in one call of Helm."""
    (chart / "templates").mkdir()
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: reader\nversion: 0.1.0\n")
    template = "x:\n{{- range .Values.documents }}\n- {{ fromYaml . | toJson | b64enc }}\n{{- end }}\n"
    (chart / "templates" / "all.yaml").write_text(template)

    def go(documents: list[str]) -> list[Any]:
        text = helm.template(values={"documents": documents}, chart=chart)
        return [json.loads(base64.b64decode(one)) for one in load_all(text)[0]["x"]]

    return go
