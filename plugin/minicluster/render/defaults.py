"""The defaults of the values: the chart's own values.yaml, so that a document and a values file mean the same."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from minicluster import yamlio

FILE = Path(__file__).parent.parent / "chart" / "values.yaml"


@cache
def values() -> Mapping[str, Any]:
    """Return the chart's values. They are shared: copy what you change."""
    found: Mapping[str, Any] = yamlio.load(FILE.read_bytes())
    return found
