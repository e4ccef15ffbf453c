"""The agent's log.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field


def log(text: str) -> None:
    """Write a line of the log."""
    print(f"minicluster-agent: {text}", file=sys.stderr, flush=True)


@dataclass
class Once:
    """Logs a line only when it is new."""

    logged: dict[str, str] = field(default_factory=dict)  #: the last line about each subject

    def log(self, text: str, about: str = "size") -> None:
        """Log a line unless it is the last one about its subject. "" logs nothing and ends the repetition."""
        if text != self.logged.get(about, ""):
            self.logged[about] = text
            if text:
                log(text)
