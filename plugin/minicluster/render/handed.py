"""Facts of the live release, which the chart hands over to the post-renderer: most as JSON in base64."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from minicluster.errors import SpecError


@contextmanager
def by_the_chart(key: str) -> Iterator[None]:
    """Raise SpecError for a fact that another has written: it can't be read as the chart's."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SpecError(f"{key} is not what the chart writes: leave it out") from None


def read(text: object) -> Any:
    """Return what a text in base64 has as JSON. Raises ValueError."""
    return json.loads(base64.b64decode(str(text), validate=True))
