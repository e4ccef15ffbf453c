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
