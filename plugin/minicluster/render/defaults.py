"""The defaults of the values: the chart's own, so that a document and a values file mean the same.

They are read from the JSON copy of values.yaml that the templates read too: JSON is parsed faster than YAML.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

DEFAULTS_FILE = Path(__file__).parent.parent / "chart" / "files" / "defaults.json"


@cache
def values() -> Mapping[str, Any]:
    """Return the chart's values. They are shared: copy what you change."""
    found: Mapping[str, Any] = json.loads(DEFAULTS_FILE.read_bytes())
    return found


def differing(given: Mapping[str, Any], beside: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a map of maps that differs from another one, such as the chart's values."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        other = beside.get(key)
        if isinstance(value, dict) and isinstance(other, dict):
            if part := differing(value, other):
                found[key] = part
        elif key not in beside or value != other:
            found[key] = value
    return found
