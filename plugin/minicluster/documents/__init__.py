"""YAML as Helm and Kubernetes read it, within limits.

Doors: yamlio.
"""

from collections.abc import Mapping
from typing import Any

#: Levels of lists and maps in a document; Python's own limit of nested calls allows some hundreds.
DEPTH_LEVELS = 100
#: The byte-order mark, with which editors of Windows begin a file
BYTE_ORDER_MARK = "\ufeff"


def value_at(document: Any, *path: str) -> Any:
    """Return what is at a path of keys; None where there is no such thing."""
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def map_at(document: Any, *path: str) -> dict[str, Any]:
    """Return the map at a path of keys; an empty one where there is no such thing."""
    value = value_at(document, *path)
    return value if isinstance(value, dict) else {}


def maps_at(document: Any, *path: str) -> list[dict[str, Any]]:
    """Return the maps in the list at a path of keys; none where there is no such thing."""
    value = value_at(document, *path)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
